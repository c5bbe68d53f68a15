# Everyday commands; `make help` lists them, `make help-all` the others, which make/ has. Override on the command line: make serve PORT=9000
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
MODEL ?= gramvec-en
# The folder with train/ and dev/ (docs/training-data.md): set GRAMVEC_DATA, or give DATA=FOLDER.
DATA ?= $(GRAMVEC_DATA)
export GRAMVEC_DATA := $(DATA)
RUNS ?= runs
VENV := .venv
BIN := $(VENV)/bin
MODELS := gramvec-en charagram-phrase paragram-phrase sif
# One thread a process: the kernels are small, and timings stay comparable.
export OMP_NUM_THREADS ?= 1
# Where a container sets it, each of the hundreds of processes that tests start compiles gramvec and its own tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help help-all needs-data serve test test-all check format bench train clean
.DEFAULT_GOAL := help

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

help-all:  ## list all commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Each stamp is newer than what it was installed from, so a second call installs nothing.
$(VENV)/.serve: pyproject.toml requirements/constraints.txt hatch_build.py $(wildcard service/gramvec/native/*.[ch])
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gramvec needs Python 3.11 or newer; name one: make serve PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[cpu,match]'
	touch $@

$(VENV)/.dev: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip>=25.1'  # knows dependency groups
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt \
		-e '.[cpu,bulk,sheets,classify,match,labels,search,static,tracing,hub,train]' --group dev --group clients --group tables
	touch $@

serve: $(VENV)/.serve  ## serve the default model on http://$(HOST):$(PORT)
	@exec $(BIN)/gramvec serve --model $(MODEL) --host $(HOST) --port $(PORT)

# Two processes, a file in one of them: servers listen on ports of their own, so files can run side by side.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile
test: $(VENV)/.dev  ## install what the tests need and run the quick ones (under five minutes)
	$(PYTEST) -m 'not slow and not packaging and not ray and not cuda'

test-all: $(VENV)/.dev  ## run every test: processes, browsers, documents, training too (a quarter of an hour)
	$(PYTEST)

needs-data:
	@test -n "$(DATA)" || { echo "set GRAMVEC_DATA, or give DATA=FOLDER: the folder with train/ and dev/, which docs/training-data.md describes" >&2; exit 1; }

check: $(VENV)/.dev  ## lint, types, import contract, formatting, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml docker/compose.*.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

format: $(VENV)/.dev  ## format the code and sort the imports
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

PARTS ?= all
bench: $(VENV)/.dev  ## measure, each figure against a limit or a peer; some parts alone: make bench PARTS=http,memory
	$(if $(DATA),BENCH_JOINS=$(DATA)/dev/joins BENCH_MATCHING=$(DATA)/dev/matching) $(BIN)/python -m benchmarks $(if $(filter-out all,$(PARTS)),--only $(PARTS))

# Without DATA the cut is fetched into a folder that git ignores. MIRROR: where OWNER/NAME/COMMIT/PATH lies, instead of GitHub.
MIRROR ?=
train: $(VENV)/.dev  ## fetch 20 MB of open data (or DATA=FOLDER), train each paper's model, score and serve them (ten minutes)
	@$(BIN)/python training/make_first_models.py $(or $(DATA),build/data) --out $(RUNS)/first $(if $(MIRROR),--mirror $(MIRROR))

clean:  ## remove the environment and everything that tools left behind
	rm -rf $(VENV) build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

include $(sort $(wildcard make/*.mk))

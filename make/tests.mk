# What is tested beside the everyday tests: random inputs, other Pythons, other libraries, images, devices.

.PHONY: fuzz test-stalls test-lowest test-python test-integrations test-packaging test-arm test-cuda test-ray image-test coverage coverage-floor

FUZZ_SECONDS ?= 600
FUZZ ?=
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

$(VENV)/.ray: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[ray]' --group engines
	touch $@

test-ray: $(VENV)/.ray  ## install Ray and Spark, and run a job on two workers, one of them killed, and examples/ (three minutes)
	$(BIN)/python -m pytest -m ray tests/bulk/test_bulk_ray.py tests/matching/test_engines.py
	$(BIN)/python -m pytest tests/docs/test_examples.py tests/pairs/test_arrow.py

image-test: $(VENV)/.dev  ## build the image and try it, with docker or podman
	@sh docker/test.sh $(BIN)/python

coverage: $(VENV)/.dev  ## run the tests of one process and say which lines none of them reaches: build/coverage/index.html
	$(PYTEST) -m 'not slow and not packaging and not ray and not cuda' --cov=service/gramvec --cov=training/gramvec_training \
		--cov-report=term:skip-covered --cov-report=html:build/coverage

# Six folders reach 75 % of the service's lines in one process; counting costs half of their time again, so `make test` does not.
COVERED = bundle duplicates matching pairs search tables
COVERED_FLOOR = 74
coverage-floor: $(VENV)/.dev  ## run the quick tests of six folders and fail if they reach fewer lines than a floor (three minutes)
	$(PYTEST) -q -m 'not slow and not packaging and not ray and not cuda' --cov=service/gramvec --cov-report= \
		--cov-fail-under=$(COVERED_FLOOR) $(addprefix tests/,$(COVERED))

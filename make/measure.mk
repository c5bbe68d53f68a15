# What is measured against peers and limits, and pictures of pages.

.PHONY: soak bench-peers figures pictures review-figures

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

figures: needs-data $(VENV)/.peers  ## measure again, and write the figures into the README and benchmarks/results
	$(BIN)/python -m benchmarks --json benchmarks/results/cpu.json
	rm -f benchmarks/results/static.json benchmarks/results/service.json
	$(BIN)/python -m benchmarks.readme

pictures: needs-data $(VENV)/.dev  ## pictures of pages for the documentation, by Chromium
	$(BIN)/python -m benchmarks.pictures $(DATA)/dev docs/images

review-figures: needs-data $(VENV)/.dev  ## F1 after 25, 50 and 100 answers of a review, beside random labels
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.review $(DATA)/dev

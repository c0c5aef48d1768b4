# Everything a clone needs; two cores are enough for all of it.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DOCS_STAMP := .venv/.installed-docs

# Two test workers with one thread each: more threads than cores only wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# What `make test` leaves to `make test-all`; the markers are explained in pyproject.toml.
LONG := slow or kill or device or families or notebooks or hostile or large
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n 2

.PHONY: install demo test test-fast test-all test-large test-min lint wheel docs bench clean

install: $(STAMP)

# Runs again only when what is to be installed has changed.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: install
	$(BIN)/veridical demo

# The everyday suite: at most ten minutes on two cores.
test: install
	$(PYTEST) -m "not ($(LONG))" $(ARGS)

# About two minutes: what needs no training, no other process, no browser and no download.
test-fast: install
	$(PYTEST) -m "not (whole or asset or browser or $(LONG))" $(ARGS)

# Everything, the long ones too: at most 45 minutes.
test-all: install
	$(PYTEST) -m "not large" $(ARGS)

# The larger embedded models: fetches half a gigabyte the first time, and keeps 1.1 GB.
test-large: install
	$(ONE_THREAD) $(BIN)/python -m pytest -m large $(ARGS)

# The oldest versions that are allowed, in an environment of their own.
test-min:
	test -x .venv-min/bin/python || $(PYTHON) -m venv .venv-min
	.venv-min/bin/python -m pip install --disable-pip-version-check -c constraints-min.txt -e . pytest pytest-xdist hypothesis
	$(ONE_THREAD) .venv-min/bin/python -m pytest -n 2 -m "not ($(LONG))" $(ARGS)

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright

# A wheel and an sdist in dist/, looked through, and the demo from the wheel in an environment of its own.
wheel: install
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python .ci/wheel.py dist

# What Sphinx needs, which no test does.
$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# These pages as a site in build/docs, to be opened from the disk; a warning is an error. Built anew each time.
docs: $(DOCS_STAMP)
	rm -rf build/docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html -c docs -d build/doctrees . build/docs
	@echo "Open build/docs/index.html in a browser."

bench: install
	$(BIN)/python -m benchmarks $(ARGS)

# Whatever make made; runs are yours and stay.
clean:
	rm -rf .venv .venv-min build dist .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

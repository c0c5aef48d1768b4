# Everything a clone needs; two cores are enough for all of it.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# Two test workers with one thread each: more threads than cores only wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: install demo test lint bench clean

install: $(STAMP)

# Runs again only when what is to be installed has changed.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: install
	$(BIN)/veridical demo

test: install
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 $(ARGS)

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

bench: install
	$(BIN)/python -m benchmarks $(ARGS)

# Whatever make made; runs are yours and stay.
clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

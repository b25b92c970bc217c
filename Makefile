# Every target starts from a machine that has Python ≥ 3.11 and make: .venv is created when needed.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

export JAX_PLATFORMS ?= cpu

.PHONY: help install demo test sweep lint format bench clean

help:
	@echo 'make demo    analyze, convert and verify every sample; ends with a table'
	@echo 'make test    the test suite'
	@echo 'make sweep   every rule and conversion on all of torch'\''s samples, resumable; then the long tests'
	@echo 'make lint    ruff and mypy'
	@echo 'make bench   conversion speed and start-up time'
	@echo 'make install create $(VENV) only'

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt libtpu \
		|| echo 'libtpu does not install here: the tests of --lower-for are skipped'
	@touch $(STAMP)

# Small models, run a few times each: most of the time is compilation.
demo: export XLA_FLAGS ?= --xla_backend_optimization_level=0
demo: install
	@echo '== What stands in the way?'
	$(BIN)/migrate analyze samples || test $$? -eq 1
	@echo '== The same models in Flax'
	$(BIN)/migrate convert samples -o samples/flax || test $$? -eq 1
	@echo '== Do both compute the same?'
	$(BIN)/migrate verify --jobs 2

test: install
	$(BIN)/python -m pytest -n 2

sweep: install
	$(BIN)/python -m tests.rules.sweep --jobs 2 --write
	$(BIN)/python -m tests.rules.coverage
	$(BIN)/python -m pytest -n 2 -m sweep

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: install
	$(BIN)/python benchmarks/convert_speed.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Two commands on a fresh machine: `make demo` and `make test`. Everything is installed into $(VENV), once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(wildcard native/*)

.PHONY: help demo test check check-all bench docs clean
help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.installed  ## set up, then prepare the embedded data and evaluate on it
	@$(BIN)/pslrec demo

test: $(VENV)/.installed-test  ## set up, then run the tests
	$(BIN)/pytest -n 2 --dist worksteal

check: $(VENV)/.installed-dev  ## format, lint, types, import contracts, tests, docs: what CI runs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist worksteal
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check-all: check  ## check, and the slow tests (fuzz and load among them) and those in a browser
	$(BIN)/pytest -m "slow or browser"

bench: $(VENV)/.installed-bench  ## measure, print a table, write benchmarks/results
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-dev  ## serve the documentation on localhost
	$(BIN)/mkdocs serve

clean:  ## remove everything that was built or installed here
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(BUILD_INPUTS)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-bench: $(BIN)/python $(BUILD_INPUTS)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[bench,serve]'
	@touch $@

$(VENV)/.installed-test: $(BIN)/python $(BUILD_INPUTS)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(BIN)/python $(BUILD_INPUTS)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed

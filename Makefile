# Two commands on a fresh machine: `make demo` and `make test`. Everything is installed into $(VENV), once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
BUILD_INPUTS := pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
# The package takes any torch from 2.4 on; our own environments stay with the build that was tested.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test lint check check-all wheel notebooks house bench docs clean
help:  ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.installed  ## set up, then prepare the embedded data and evaluate on it
	@$(BIN)/pslrec demo

test: $(VENV)/.installed-test  ## set up, then run the tests
	$(BIN)/pytest -n 2 --dist worksteal

lint: $(VENV)/.installed-dev  ## format, lint, types, import contracts: what takes less than a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint  ## lint, tests, documentation: what CI runs
	$(BIN)/pytest -n 2 --dist worksteal
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

check-all: check wheel  ## check, the wheel, the slow tests (fuzz and load among them), those in a browser
	$(BIN)/pytest -m "slow or browser"

wheel: $(BIN)/python  ## build the wheel of this platform and try it in an empty environment
	rm -rf dist build/empty
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/empty
	build/empty/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt dist/*.whl
	build/empty/bin/python scripts/try_installation.py

notebooks: $(VENV)/.installed-dev  ## execute the notebooks in examples/ and keep their outputs
	cd examples && for name in *.ipynb; do ../$(BIN)/jupyter-nbconvert --to notebook --execute --inplace \
	  --ExecutePreprocessor.record_timing=False $$name || exit 1; done

house: $(VENV)/.installed-dev  ## measure the code and draw the packages in ARCHITECTURE.md
	$(BIN)/python scripts/house.py

bench: $(VENV)/.installed-bench  ## measure, print a table, write benchmarks/results
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed-dev  ## serve the documentation on localhost
	$(BIN)/mkdocs serve

clean:  ## remove everything that was built or installed here
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(BUILD_INPUTS)
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-bench: $(BIN)/python $(BUILD_INPUTS)
	$(PIP) -e '.[bench,serve]'
	@touch $@

$(VENV)/.installed-test: $(BIN)/python $(BUILD_INPUTS)
	$(PIP) -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(BIN)/python $(BUILD_INPUTS)
	$(PIP) -e '.[dev]'
	@touch $@ $(VENV)/.installed-test $(VENV)/.installed

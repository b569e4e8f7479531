# `make demo` and `make test` need Python 3.11 or newer, pip, git and make, and set up
# the rest in .venv; a second run starts at once.

VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check bench clean

help:
	@echo "make demo    see a walker lose half its strength (runs/demo)"
	@echo "make test    run the tests"
	@echo "make check   lint, formatting and types"
	@echo "make bench   physics speed beside dm_control"
	@echo "make clean   remove .venv and caches"

demo: $(VENV)/.ready-demo
	$(BIN)/fallow demo

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready-test
	$(BIN)/python benchmarks/physics.py

$(VENV)/.ready-demo: pyproject.toml constraints.txt tools/setup.sh
	sh tools/setup.sh $(VENV) .
	touch $@

$(VENV)/.ready-test: pyproject.toml constraints.txt tools/setup.sh
	sh tools/setup.sh $(VENV) '.[test]'
	touch $@ $(VENV)/.ready-demo

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

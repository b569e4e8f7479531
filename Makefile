# `make demo` and `make test` need Python 3.11 or newer, pip, git and make, and set up
# the rest in .venv; a second run starts at once.

VENV := .venv
BIN := $(VENV)/bin
# the adapters' libraries have their own environment: torch is never a default dependency
EXTRAS := .venv-extras
TORCH := torch==2.13.0+cpu
TORCH_OPTIONS :=

.PHONY: help demo test test-slow test-extras test-gpu check docs fuzz bench clean

help:
	@echo "make demo    recorded findings, then a paired study in small (runs/demo/report.html)"
	@echo "make test    run the tests"
	@echo "make test-slow     those that take minutes of tracing"
	@echo "make test-extras   those that need torch (a CPU build), ray or a browser"
	@echo "make test-gpu      compiled kernels beside plain forms, learning with both (needs a GPU)"
	@echo "make check   lint, formatting and types"
	@echo "make docs    the documentation as a site (site/index.html)"
	@echo "make fuzz    damaged logs, studies, folders and command lines, in minutes"
	@echo "make bench   speed beside dm_control, a plain ring and ruptures.Pelt"
	@echo "make clean   remove .venv and caches"

demo: $(VENV)/.ready-demo
	$(BIN)/fallow demo

test: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# kernels interpreted beside plain forms, learning, and other minutes of tracing
test-slow: $(VENV)/.ready-test
	$(BIN)/python -m pytest -n 2 -m slow

test-extras: $(EXTRAS)/.ready-test
	$(EXTRAS)/bin/python -m pytest tests/replay/test_sb3.py tests/replay/test_torchrl.py \
		tests/study/test_ray.py tests/report/test_browser.py tests/repo/test_docs.py

# by the Python that has JAX for the card, e.g. make test-gpu PYTHON=python3; what is
# held against the kernels multiplies in full precision, and programs are optimised, for
# which tests/conftest.py takes no time
PYTHON := $(BIN)/python
test-gpu:
	XLA_FLAGS='$(XLA_FLAGS)' JAX_DEFAULT_MATMUL_PRECISION=highest \
		$(PYTHON) -m pytest -m slow $(addprefix tests/agents/test_, \
		fleet_hurry.py dreamer_forms.py posterior_scan.py dreamer_heads.py dreamer_sizes.py \
		dreamer_learning.py)

check: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

SEED := 0
fuzz: $(VENV)/.ready-test
	$(BIN)/python tools/fuzz.py logs --count 5000 --seed $(SEED)
	$(BIN)/python tools/fuzz.py toml --count 1000 --seed $(SEED)
	$(BIN)/python tools/fuzz.py commands --count 2000 --seed $(SEED)
	$(BIN)/python tools/fuzz.py folders --count 300 --seed $(SEED)

bench: $(VENV)/.ready-test
	$(BIN)/python benchmarks/physics.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/response.py

$(VENV)/.ready-demo: pyproject.toml constraints.txt tools/setup.sh
	sh tools/setup.sh $(VENV) '.[fleet]'
	touch $@

$(VENV)/.ready-test: pyproject.toml constraints.txt tools/setup.sh
	sh tools/setup.sh $(VENV) '.[test]'
	touch $@ $(VENV)/.ready-demo

$(VENV)/.ready-docs: pyproject.toml constraints.txt tools/setup.sh
	sh tools/setup.sh $(VENV) '.[docs]'
	touch $@

$(EXTRAS)/.ready-test: pyproject.toml constraints.txt tools/setup.sh tools/install_torch.sh
	sh tools/setup.sh $(EXTRAS) '.[test]'
	TORCH_OPTIONS='$(TORCH_OPTIONS)' sh tools/install_torch.sh $(EXTRAS) '$(TORCH)'
	$(EXTRAS)/bin/python -m pip install --quiet $(TORCH_OPTIONS) -c constraints.txt \
		'$(TORCH)' -e '.[ray,sb3,torchrl]'
	touch $@

clean:
	rm -rf $(VENV) $(EXTRAS) site .pytest_cache .mypy_cache .ruff_cache .hypothesis

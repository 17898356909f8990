# `make` lists the targets. Variables: PYTHON (3.11 or newer), TORCH_INDEX (see README) and
# FUZZ_MINUTES (of make soak).

ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && exit; \
	done; echo python3)
endif
TORCH_INDEX ?=
FUZZ_MINUTES ?= 60

BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --constraint constraints.txt
TORCH := $(BIN)/python -m pip install --index-url $(TORCH_INDEX) $(shell grep '^torch==' constraints.txt)
SOURCES := pyproject.toml setup.py constraints.txt
TOOLS := .venv/stamp-dev
PYTEST := $(BIN)/python -m pytest
SIDE_BY_SIDE := --numprocesses logical --maxprocesses 4 --dist loadfile

# Tests that measure nothing run side by side, then all others alone; both run, whatever fails.
define TESTS
	failed=0; \
	$(PYTEST) $(SIDE_BY_SIDE) -m "together and $(1)" || failed=1; \
	$(PYTEST) -m "not together and $(1)" || failed=1; \
	exit $$failed
endef

.DEFAULT_GOAL := help
.PHONY: demo test quick check lab soak clean help
.NOTPARALLEL:

demo: .venv/stamp-all  ## Profile a real training loop and write its report
	$(BIN)/workbench demo

test: $(TOOLS)  ## Run all tests, in a real browser too
	$(BIN)/python -m tests.system
	$(call TESTS,not soak)

quick: $(TOOLS)  ## Run the tests that are neither slow nor in a browser
	$(call TESTS,not slow and not browser and not soak)

check: $(TOOLS)  ## Lint, format, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

lab: .venv/stamp-all  ## Open the notebooks in JupyterLab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

soak: $(TOOLS)  ## Run what takes long: benchmarks, an hour of fuzzing, soak tests
	$(BIN)/python -m tests.system
	for each in benchmarks/*.py; do [ ! -e "$$each" ] || $(BIN)/python "$$each" || exit 1; done
	$(BIN)/python -m tests.soak.fuzz --minutes $(FUZZ_MINUTES)
	$(BIN)/python -m tests.soak.answers --minutes 10
	$(PYTEST) -m soak

clean:  ## Remove .venv, caches and build outputs; runs stay
	rm -rf .venv build dist *.egg-info test-results
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find workbench widgets tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) lacks the venv module (Debian: apt-get install python3-venv)." >&2; exit 1; }
	"$(PYTHON)" -m venv --clear .venv

.venv/stamp-all: $(SOURCES) | $(BIN)/python
	@echo "Installing into .venv; the first time takes a few minutes."
	@if [ "$$(uname -s)" = Linux ] && [ -z "$(TORCH_INDEX)" ] && ! command -v nvidia-smi >/dev/null; then \
		echo "No NVIDIA driver here. PyPI's torch brings CUDA (several GB); for the small CPU build:"; \
		echo "  make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu"; fi
	$(if $(TORCH_INDEX),$(TORCH))
	$(INSTALL) --editable ".[all]"
	@touch $@

$(TOOLS): .venv/stamp-all
	$(INSTALL) --editable ".[dev]"
	@touch $@

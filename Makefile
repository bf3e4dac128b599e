# Every target is short; what needs more than a line lies in scripts/. `make` prints this list.
SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
DEVICE ?= cpu
ARGS ?=
READY := $(VENV)/.ready
.DEFAULT_GOAL := help
.PHONY: help setup up test check e2e e2e-containers e2e-cluster golden docs readme wheel bench device-check clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16

setup: $(READY) ## system packages, the virtual environment, selfhost and the tools to work on it

$(READY): pyproject.toml scripts/setup.sh
	bash scripts/setup.sh $(VENV)
	@touch $@

up: setup ## bring a checked endpoint up on this machine (DEVICE=cpu, ARGS="MODEL --name …")
	$(BIN)/selfhost up --device $(DEVICE) --yes $(ARGS)

test: setup ## all tests but the marker `slow`; as root it installs the container engines that they use
	bash scripts/test_tools.sh
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

check: setup ## what to run before a commit: format, lint, types, imports, words, docs, quick tests
	bash scripts/check.sh $(BIN)

e2e: setup ## every test, the long ones too
	bash scripts/test_tools.sh
	$(BIN)/python -m pytest $(ARGS)

e2e-containers: up ## containers with real engines: serving, restarts, faults, kills, the stand-in matrix; half an hour
	bash scripts/test_tools.sh
	$(BIN)/python -m pytest -s tests/e2e/test_containers_*.py tests/e2e/test_status_containers.py tests/e2e/test_rendered_files.py $(ARGS)

e2e-cluster: setup ## chart, up and verdicts on a real cluster (KUBECONFIG=…, ARGS=--fake-nodes for one without cards)
	KUBECONFIG="$(KUBECONFIG)" bash scripts/e2e_cluster.sh $(BIN) $(ARGS)

golden: setup ## write the golden folders of rendered files anew; review them with git diff
	@if [ -d tests/golden ]; then $(BIN)/python -m pytest tests/render --regenerate -q; else echo "there is no tests/golden to write anew"; fi

docs: setup ## write docs/reference anew from the code
	$(BIN)/python scripts/docs.py

readme: setup ## run the README's commands and put their real output there
	$(BIN)/python scripts/readme.py

wheel: setup ## build the wheel into dist/
	$(BIN)/python -m build --wheel

bench: setup ## start-up time beside `ramalama version`
	$(BIN)/python benchmarks/cli_start.py

device-check: setup ## hold detect and doctor against a real NVIDIA card, about 4 minutes, no network (ARGS=…)
	$(BIN)/python scripts/device --out device-out $(ARGS)

clean: ## what builds and tests left; deployments and caches of selfhost stay
	rm -rf $(VENV) build dist device-out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

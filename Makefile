# One verb per habit; `make help` lists them. Needs Python 3.11 or newer, make and git.

PYTHON ?= python3
PORT ?= 8080
# Extra arguments: `make test ARGS="tests/core -x"`, `make lock ARGS=--upgrade`.
ARGS ?=
SEEDS ?= 10000
# How often a campaign stages its fault; empty: as often as for a release.
CYCLES ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCKS := $(addprefix requirements/,base.txt build.txt dev.txt)
STAMP := $(VENV)/.stamp
CLIENTS := tests/clients/node_modules/.stamp
# What looks for faults by the thousand, at a fraction of the size that a release runs.
CAMPAIGNS := tests/campaigns tests/simulation

PROTO := proto/unbroken/v1/agent_runtime.proto
GEN := proto/gen
PROTOC_OUT := $(addsuffix =$(GEN),--python_out --grpc_python_out --mypy_out --mypy_grpc_out)

export PORT
.DELETE_ON_ERROR:
.PHONY: help run lab setup setup-run test test-js test-realtime test-campaigns lint format gen check-gen lock check-deploy \
  sim kill pause roll outage network clocks leaks crash-points mutants reliability \
  bench clean check-python

help:  ## List the verbs.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: setup-run  ## Start the runtime and the edge here, at http://127.0.0.1:8080 (or PORT).
	$(BIN)/python -m edge.local

lab: setup-run  ## Start the connection lab: break connections and processes, and watch (PORT).
	$(BIN)/python -m tests.lab

setup: $(STAMP)-dev  ## Make .venv with everything for tests, checks and code generation.

setup-run: $(STAMP)-run

test: setup $(CLIENTS)  ## Run the fast test suite.
	$(BIN)/python -m pytest $(ARGS)

test-js: setup $(CLIENTS)  ## Run the part of `make test` whose subject is JavaScript: the library, the page, npm's clients.
	$(BIN)/python -m pytest tests/edge/static tests/clients $(ARGS)

test-realtime: setup $(CLIENTS)  ## Run the tests that wait for real time, kill processes and cut connections.
	$(BIN)/python -m pytest -m realtime $(addprefix --ignore=,$(CAMPAIGNS)) $(ARGS)

test-campaigns: setup  ## Run the campaigns and the simulation at a small size: what `make reliability` runs for hours.
	$(BIN)/python -m pytest -m realtime $(CAMPAIGNS) $(ARGS)

lint: setup  ## Check style, types, import directions, contract and Dockerfile.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/hadolint Dockerfile

format: setup  ## Format the code and the contract.
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/buf format --write

gen: setup  ## Generate proto/gen from the contract.
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I proto $(PROTOC_OUT) $(PROTO)

check-gen: setup  ## Fail if proto/gen is not what the contract generates.
	$(BIN)/python -m pytest -q tests/architecture/test_contract.py

lock: setup  ## Compile requirements/*.txt again; ARGS=--upgrade takes newer releases.
	$(call compile,build.txt,requirements/build.in)
	$(call compile,base.txt,pyproject.toml)
	$(call compile,openai.txt,--extra openai pyproject.toml)
	$(call compile,dev.txt,--extra openai pyproject.toml requirements/build.in requirements/dev.in)
	$(call compile,deploy-check.txt,requirements/deploy-check.in)

check-deploy: setup  ## Check deploy/service.yaml against Google's own description of Cloud Run.
	$(PIP) install --quiet --require-hashes -r requirements/deploy-check.txt
	$(BIN)/python -m deploy.check_service_yaml deploy/service.yaml

sim: setup  ## Simulate SEEDS=n seeded worlds of the production edges, under every staged fault.
	$(BIN)/python -m tests.campaigns sim --cycles $(SEEDS)

kill: setup  ## Kill CYCLES=n real edges with -9, at random moments under users at work.
pause: setup  ## Stop CYCLES=n real edges in their tracks past their lease, and wake them.
roll: setup  ## Tell CYCLES=n real edges to stop, one after the other, under live streams.
outage: setup  ## Take the store away for 5, 30 and 90 s at each phase of a turn.
network: setup  ## Put every kind of network fault on every link.
clocks: setup  ## Run an edge under clocks that are an hour off, or twice as fast.
leaks: setup  ## Attach, drop and cancel by the thousand: everything is given back.
crash-points: setup  ## Fail the k-th call to journal or runtime, for every k.
mutants: setup  ## Break the edges' rules one by one: the simulation must find each.

kill pause roll outage network clocks leaks crash-points mutants:
	$(BIN)/python -m tests.campaigns $@ $(if $(CYCLES),--cycles $(CYCLES))

reliability: setup  ## Run all of these as for a release, and fill docs/reliability.md (hours).
	$(BIN)/python -m tests.campaigns all

bench: setup  ## Run the benchmarks.
	$(BIN)/python -m tests.benchmarks $(ARGS)

clean:  ## Remove .venv and every cache.
	rm -rf $(VENV) tests/clients/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, but '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.13 ..." >&2; exit 1; }

# A changed lock makes the environment anew, so that nothing of the old one is left in it.
$(STAMP): $(LOCKS) | check-python
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(STAMP)-run: $(STAMP) pyproject.toml
	$(PIP) install --quiet --require-hashes -r requirements/base.txt
	$(call install-editable)
	@touch $@

$(STAMP)-dev: $(STAMP) pyproject.toml
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	$(call install-editable)
	@touch $@ $(STAMP)-run

# Without npm, or without what it asks, the tests of these packages say that they were NOT RUN.
$(CLIENTS): tests/clients/package-lock.json
	-@command -v npm >/dev/null && cd tests/clients && npm ci --silent && touch node_modules/.stamp

# No index is asked: what builds the package was installed from its hashes.
define install-editable
	$(PIP) install --quiet --require-hashes -r requirements/build.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --no-index --editable .
endef

# $(call compile,OUTPUT,SOURCES): names no index host and no path of this machine.
# A newer pin in one file never meets an older one in another: all but the first obey base.txt.
define compile
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	  --no-emit-index-url --custom-compile-command "make lock" $(ARGS) \
	  $(if $(filter base.txt,$(1)),,--constraints requirements/base.txt) $(2) \
	  --output-file requirements/$(1)
endef

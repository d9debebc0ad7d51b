# make demo   the whole flow, on this machine and on a simulated fabric
# make test   everything that CI runs
# make dev    set up for development: afterwards .venv/bin/fablint works
# make bench  the figures, side by side
# make lint   the linters alone
# make clean  remove what was built, the set-up included
#
# Needs Python 3.11 with its venv module, g++, make and git. Without an mpicxx on the PATH, MPI comes from the `mpich` wheel.
# Set-up steps leave a stamp in .venv, so that they are done once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check
MPI    := $(if $(shell command -v mpicxx),,[mpich])

ENGINE_SOURCES := $(shell find engine -name '*.cpp' -o -name '*.hpp')
REGISTRY       := engine/benchmarks.inc
BENCHMARKS     := $(wildcard benchmarks/*.py)

# The wheel's mpicxx and mpiexec come after the site's.
export PATH := $(PATH):$(abspath $(BIN))

.PHONY: demo test test-engine test-python dev bench lint lint-python lint-engine format-engine clean
.DELETE_ON_ERROR:

demo: $(VENV)/.engine
	$(BIN)/fablint demo

dev: $(VENV)/.dev $(VENV)/.engine

# The engine's tests are compiled with -Werror: the linter need not compile the engine once more.
test: lint-python format-engine test-engine test-python

# Most tests wait for launchers: as many at once as there are CPUs, each file on one of them, since files share fixtures.
# Those that measure a virtual cluster need the CPUs for themselves.
test-python: dev
	$(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m "not alone"
	$(BIN)/pytest -m alone

test-engine: dev
	engine/tests/run.sh

bench: dev
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

lint: lint-python lint-engine

lint-python: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

lint-engine: format-engine
	$(MAKE) --silent -C engine -j$(shell nproc) WERROR=1 BUILD=../build/lint

format-engine: dev
	$(BIN)/clang-format --dry-run -Werror $(ENGINE_SOURCES)

clean:
	rm -rf $(VENV) build dist
	find . -name __pycache__ -prune -exec rm -rf {} +

# ---- set-up, once

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fablint needs Python 3.11: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.fablint: pyproject.toml | $(VENV)/.python
	$(PIP) --editable '.$(MPI)'
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.fablint
	$(PIP) --editable '.[dev,export]'
	touch $@

$(VENV)/.engine: $(VENV)/.fablint $(ENGINE_SOURCES) $(REGISTRY)
	$(BIN)/fablint engine build
	touch $@

# make demo       the whole flow, on this machine and on a simulated fabric
# make test       linters and tests with the MPI library on the PATH: about 9 minutes on 2 cores
# make test-fast  tests of what differs from main, the nearest first, for a minute; says what it left out
# make test-long  all other tests: sanitizers, further MPI libraries, test beds; CI runs both
# make dev        set up for development: afterwards .venv/bin/fablint works
# make docs       the documentation as a site: build/docs/index.html
# make reference  the pages, man pages and completion files that are written from the help texts and tables
# make sbom       the packages of an installation, as CycloneDX: build/fablint.cdx.json
# make bench      the figures, side by side
# make sentences  write what the product says into tests/sentences; TESTS=tests/analyse for a part of the tests
# make new-check ID=host.x, new-importer TOOL=x, new-kernel NAME=x   files, row, test and lines of a new part
# make lint       the linters only
# make clean      remove what was built, the set-up included
#
# Every test is in exactly one of test and test-long (tests/test_selections.py). FABLINT_TEST_MPI="openmpi mpich" names the
# MPI libraries by the suffixes of Debian's wrappers: test uses the first one, test-long the others. By default they are
# those that are installed (tests/tested_mpis.py).
#
# Needs Python 3.11 with its venv module, g++, make and git. Without an mpicxx on the PATH, MPI comes from the `mpich` wheel.
# Set-up steps leave a stamp in .venv, so that they are done once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check
MPI    := $(if $(shell command -v mpicxx),,[mpich])

ENGINE_SOURCES := $(shell find engine -name '*.cpp' -o -name '*.hpp')
REGISTRY       := $(wildcard engine/registry/*.inc)
REFERENCES     := $(wildcard docs/*_reference.py) docs/man_pages.py docs/shell_completion.py
BENCHMARKS     := $(wildcard benchmarks/*.py benchmarks/*/__main__.py)

# The wheel's mpicxx and mpiexec come after the site's. Where ccache is installed, the compilers are those of its folder:
# engines for several MPI libraries, and for several clones, share what they compile.
CCACHE := $(wildcard /usr/lib/ccache /usr/lib64/ccache)
export PATH := $(CCACHE:%=%:)$(PATH):$(abspath $(BIN))
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1

# Bytecode is kept, also where the environment says otherwise: without it every start of fablint compiles fablint, and
# every worker of pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: sbom demo docs reference test test-engine test-python test-bytecode test-fast test-long test-engine-long test-python-long test-python-alone dev bench new-check new-importer new-kernel sentences lint lint-python lint-engine format-engine clean
.DELETE_ON_ERROR:

demo: $(VENV)/.engine
	$(BIN)/fablint demo

dev: $(VENV)/.dev $(VENV)/.engine

# The engine's tests are compiled with -Werror: the linter need not compile the engine once more. The linters of Python
# use one CPU, beside the compiler.
test: dev
	$(MAKE) --jobs=2 --output-sync=target lint-python format-engine test-engine test-bytecode
	$(MAKE) test-python

# The engine's tests keep one CPU busy most of the time, those of Python wait for launchers: side by side.
test-long: dev
	$(MAKE) --jobs=2 --output-sync=target test-engine-long test-python-long
	$(MAKE) test-python-alone

test-fast: dev
	$(BIN)/python tools/touched_tests.py

# All workers of pytest import all tests at the same time: what they read is compiled before, once. What cannot be imported
# is reported by the workers.
test-bytecode: dev
	-@$(BIN)/python -m pytest --collect-only -qq >/dev/null

# Many tests wait for launchers: several at once on each CPU. A file is on one of the workers, since its tests share
# fixtures.
side_by_side = $(BIN)/pytest --numprocesses $(shell expr $$(nproc) \* $(1)) --dist loadfile --no-loadscope-reorder

test-python: dev
	$(call side_by_side,3) -m "not long"

test-python-long: dev
	$(call side_by_side,2) -m "long and not alone"

# Tests that measure a virtual cluster need the CPUs for themselves. All are in these folders: to look for them in the
# others takes 10 s.
test-python-alone: dev
	$(BIN)/pytest -m alone tests/cluster/check tests/preflight/pings

TESTED_MPIS = $(shell $(BIN)/python tests/tested_mpis.py)

test-engine: dev
	FABLINT_TEST_MPI="$(TESTED_MPIS)" engine/tests/run.sh quick

test-engine-long: dev
	FABLINT_TEST_MPI="$(TESTED_MPIS)" engine/tests/run.sh long
	engine/tests/run.sh aarch64

# A broken link, or a page that the sidebar lacks, is an error.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -d build/docs-cache docs build/docs
	@echo build/docs/index.html

# Of an environment that has fablint and what it needs, and nothing else.
sbom: $(VENV)/.python
	$(PYTHON) -m venv --clear build/sbom
	build/sbom/bin/pip install --quiet --disable-pip-version-check .
	build/sbom/bin/pip uninstall --quiet --yes pip setuptools
	$(PIP) 'cyclonedx-bom>=5,<8'
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o build/fablint.cdx.json build/sbom
	@echo build/fablint.cdx.json

reference: $(VENV)/.dev
	@set -e; for script in $(REFERENCES); do $(BIN)/python $$script; done

# Files, row, test and line of documentation of a new part; docs/developing says what to replace.
new-check: $(VENV)/.dev
	$(BIN)/python tools/new_part.py check '$(ID)' --file '$(FILE)'

new-importer: $(VENV)/.dev
	$(BIN)/python tools/new_part.py importer '$(TOOL)'

new-kernel: $(VENV)/.dev
	$(BIN)/python tools/new_part.py kernel '$(NAME)'

sentences: dev
	$(BIN)/python tools/renew_sentences.py $(TESTS)

bench: dev
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

lint: lint-python lint-engine

lint-python: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

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

$(VENV)/.docs: pyproject.toml | $(VENV)/.fablint
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.engine: $(VENV)/.fablint $(ENGINE_SOURCES) $(REGISTRY)
	$(BIN)/fablint engine build
	touch $@

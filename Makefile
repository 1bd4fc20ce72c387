# Every target sets up what it needs and is quick the second time. Needs Python 3.11 or later, make,
# and for some tests Node and a C compiler.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
SCHEMA := .cache/.schema
COMPILED := $(VENV)/.compiled
COLLECTED := $(VENV)/.collected
BIN := $(VENV)/bin
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

PAGE := src/dragoman/web/static/index.html

.PHONY: run serve test test-agents conformance check fix bench soak cover dist gen docs lock clean

run: $(READY) $(PAGE) $(COMPILED)
ifdef ARGS
	@$(BIN)/dragoman $(ARGS)
else
	@sh scripts/first_run.sh $(BIN)/dragoman
endif

serve:
	@$(MAKE) --no-print-directory run ARGS='serve --open'

# Most tests wait for processes: four at a time keep two cores busy. They come in the order of
# tests/conftest.py, and what Python compiles for them is kept for the next run.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY) $(SCHEMA) $(PAGE) $(COMPILED) $(COLLECTED)
	@sh scripts/system_packages.sh
	@if test -d web/node_modules; then npm --prefix web test --silent; fi
	$(BIN)/pytest -q -n 4 --dist loadfile --no-loadscope-reorder

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if $(BIN)/pyright --version >/dev/null 2>&1; then $(BIN)/pyright; \
	 else echo "make check: pyright was skipped, it could not be fetched from npm"; fi
	$(BIN)/python scripts/gen_schema.py --check
	$(BIN)/python scripts/gen_cli_docs.py --check
	$(BIN)/python scripts/gen_agent_docs.py --check
	$(BIN)/python scripts/gen_conformance_docs.py --check
	$(BIN)/python scripts/gen_reference.py --check
	$(BIN)/python scripts/gen_page_types.py --check
	$(BIN)/python scripts/check_words.py

fix: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m bench

# The long counts, and every example that property tests draw.
soak: $(READY) $(SCHEMA) $(PAGE)
	ALL_EXAMPLES=1 $(BIN)/pytest -q -m "soak or hypothesis"

# Real agents, in a lab that $DRAGOMAN_LAB names; long.
test-agents: $(READY) $(PAGE)
	$(BIN)/python scripts/test_agents.py $(ARGS)

# What agents and clients do by the checks of conformance, in a lab that $DRAGOMAN_LAB names; long.
conformance: $(READY)
	$(BIN)/python scripts/conformance_matrix.py $(ARGS)

# What is pure is covered to its last branch, by its own tests alone.
cover: $(READY) $(SCHEMA)
	ALL_EXAMPLES=1 $(BIN)/coverage run -m pytest -q tests/schema tests/session tests/wire \
	    tests/ui_stream tests/test_errors.py tests/test_safe_text.py tests/test_stream.py
	$(BIN)/coverage report --fail-under=100 --include="src/dragoman/schema/*,src/dragoman/session/*,\
	src/dragoman/wire/*,src/dragoman/ui_stream/*,src/dragoman/errors.py,src/dragoman/safe_text.py,src/dragoman/stream.py"

# The wheel brings the built page: whoever installs it needs no Node.
dist: $(READY) $(PAGE)
	@test -f $(PAGE) || { echo "make dist: the page could not be built (is Node 20 there?)"; exit 1; }
	rm -rf dist
	$(BIN)/python -m hatchling build

gen: $(READY)
	$(BIN)/python scripts/gen_schema.py
	$(BIN)/python scripts/gen_page_types.py

# The pages of docs/reference that are made from the source.
docs: $(READY)
	$(BIN)/python scripts/gen_cli_docs.py
	$(BIN)/python scripts/gen_agent_docs.py
	$(BIN)/python scripts/gen_conformance_docs.py
	$(BIN)/python scripts/gen_reference.py

lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-header --upgrade -o requirements.lock

clean:
	rm -rf $(VENV) .cache dist bench/build web/node_modules src/dragoman/web/static

# The package itself is installed without looking for dependencies: the lock has them all.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "make: Python 3.11 or later is needed; say which with PYTHON=…"; exit 1; }
	@echo "make: installing the Python packages into $(VENV), once: a minute or two …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# Where Python is told to write no bytecode, as in many containers, every start would compile
# everything again.
$(COMPILED): $(READY) $(shell find src -name "*.py")
	@echo "make: compiling …"
	@$(BIN)/python -m compileall -q src
	@touch $@

# Otherwise each of pytest's workers would compile every test for itself.
$(COLLECTED): $(READY) $(shell find tests -name "*.py")
	@echo "make: compiling the tests …"
	@$(BIN)/pytest --collect-only tests/[a-h]*/ >/dev/null 2>&1 & \
	 $(BIN)/pytest --collect-only tests/[i-z]*/ tests/test_*.py >/dev/null 2>&1; wait
	@touch $@

# Fetched once for the tests that compare with the schema; without a network those are skipped, and
# the next run tries again.
$(SCHEMA): $(READY) scripts/gen_schema.py $(wildcard scripts/schema_gen/*.py)
	@$(BIN)/python scripts/gen_schema.py --check
	@if ls .cache/agentclientprotocol-sdk-*.tgz >/dev/null 2>&1; then touch $@; fi

# Kept by its date: built anew when a source is newer.
$(PAGE): $(shell find web -type f -not -path "*/node_modules/*" 2>/dev/null)
	@sh scripts/build_page.sh
	@if test -f $@; then touch $@; fi

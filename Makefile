# Every target makes its own environment in .venv; nothing has to be installed by hand. `demo` installs what a user has, the others
# what developers need as well.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
USER_STAMP := $(VENV)/.installed
STAMP := $(VENV)/.installed-for-developers
DOCS_STAMP := $(VENV)/.installed-for-docs
CORES := $(shell nproc 2>/dev/null || echo 2)
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-slow laws proofs programs constants torture mutants lint format bench routing regret arena finite-time entry-points tracking scale story cluster kills clean

$(USER_STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "allocopt needs Python 3.11 or newer (set PYTHON=...)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[files]'
	touch $@

$(STAMP): pyproject.toml $(USER_STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(DOCS_STAMP): pyproject.toml $(USER_STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

demo: $(USER_STAMP)
	$(BIN)/allocopt demo

test: $(STAMP)
	$(BIN)/python -m pytest -n $(CORES) -m 'not slow'

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n $(CORES) -m slow

laws: $(STAMP)
	ALLOCOPT_EXAMPLES=$(or $(ALLOCOPT_EXAMPLES),3000) $(BIN)/python -m pytest -n $(CORES) tests/solving/test_laws.py tests/solving/test_named_laws.py tests/solvers/test_methods_agree.py

torture: $(STAMP)
	$(BIN)/python benchmarks/torture.py --instances $(or $(ALLOCOPT_TORTURE),20000)

mutants: $(STAMP)
	$(BIN)/python benchmarks/mutants.py $(if $(ALLOCOPT_MUTANTS),--most $(ALLOCOPT_MUTANTS))

.PHONY: docs
docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -E -W --keep-going -q -c docs . build/site
	@echo "The site is in build/site: open build/site/index.html"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/compare.py
	printf '\n## Compiled\n\n`Allocator` and `solve_many`, certified 1e-8.\n\n' >> benchmarks/RESULTS.md
	$(BIN)/python benchmarks/small.py | tee -a benchmarks/RESULTS.md
	printf '\n## Proofs\n\n' >> benchmarks/RESULTS.md
	$(BIN)/python benchmarks/verify.py | tee -a benchmarks/RESULTS.md
	printf '\nElsewhere: SCALE.md (large sets), REGRET.md (policies), STORY.md (studies), ROUTING.md (graphs).\n' >> benchmarks/RESULTS.md

programs: $(STAMP)
	$(BIN)/python benchmarks/programs.py
	$(BIN)/python benchmarks/programs_sizes.py

constants: $(STAMP)
	$(BIN)/python benchmarks/constants.py

routing: $(STAMP)
	$(BIN)/python benchmarks/routing.py

regret: $(STAMP)
	$(BIN)/python benchmarks/regret.py

arena: $(STAMP)
	$(BIN)/python benchmarks/arena.py $(if $(ALLOCOPT_MINUTES),--minutes $(ALLOCOPT_MINUTES))

finite-time: $(STAMP)
	$(BIN)/python benchmarks/finite_time.py

tracking: $(STAMP)
	$(BIN)/python benchmarks/tracking.py
	$(BIN)/python benchmarks/near_ties.py

proofs: $(STAMP)
	$(BIN)/python benchmarks/verify.py

entry-points: $(STAMP)
	$(BIN)/python benchmarks/entry_points.py

scale: $(STAMP)
	$(BIN)/python benchmarks/scale.py

story: $(STAMP)
	$(BIN)/python benchmarks/story.py

cluster: $(STAMP)
	$(BIN)/python benchmarks/cluster.py

kills: $(STAMP)
	$(BIN)/python benchmarks/kills.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

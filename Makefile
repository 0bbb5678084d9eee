# Needs only Python >= 3.11 and make: every target sets up what it uses, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= results
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow lint bench clean

demo: $(VENV)/run
	@started=$$(date +%s) && \
	$(BIN)/elephant reproduce sine edit activations --out "$(OUT)" && \
	$(BIN)/elephant reproduce split-digits --methods mlp,emlp,lda/elephant --out "$(OUT)" && \
	$(BIN)/elephant report --out "$(OUT)" && \
	echo "make demo took $$(( $$(date +%s) - started )) s. The command is $(BIN)/elephant; next, try:" && \
	echo "  $(BIN)/elephant reproduce rl-mountain-car --methods emlp,mlp --seeds 5"

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 -m slow

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/run
	$(PIP) -e ".[bench]"
	$(BIN)/elephant bench --write benchmarks/table.md

clean:
	rm -rf $(VENV) dist

$(VENV)/run: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'elephant-nn needs Python 3.11 or later: make PYTHON=python3.12 demo')"
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[experiments]"
	@touch $@

$(VENV)/dev: $(VENV)/run
	$(PIP) -e ".[dev]"
	@touch $@

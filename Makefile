# Needs only Python >= 3.11 and make: every target sets up what it uses, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= results

.PHONY: demo test lint bench results clean

demo: $(VENV)/run
	@started=$$(date +%s) && \
	$(BIN)/elephant reproduce all --out "$(OUT)" && \
	$(BIN)/elephant report --out "$(OUT)" && \
	echo "make demo took $$(( $$(date +%s) - started )) s"

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/run
	$(BIN)/elephant bench --write benchmarks/table.md

# Everything under docs/results, from nothing: about five minutes on two cores.
results: $(VENV)/run
	$(BIN)/elephant reproduce activations --out "$(OUT)"
	$(BIN)/elephant reproduce sine edit --seeds 20 --out "$(OUT)"
	$(BIN)/elephant sweep sine --seeds 20 --out "$(OUT)"
	$(BIN)/python docs/results/collect.py "$(OUT)"

clean:
	rm -rf $(VENV) dist

$(VENV)/run: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'elephant-nn needs Python 3.11 or later: make PYTHON=python3.12 demo')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/dev: $(VENV)/run
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

# Needs only Python >= 3.11 and make: every target sets up what it uses, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= results

.PHONY: demo test lint bench results results-classes results-rl clean

demo: $(VENV)/run
	@started=$$(date +%s) && \
	$(BIN)/elephant reproduce sine edit activations split-digits --out "$(OUT)" && \
	$(BIN)/elephant report --out "$(OUT)" && \
	echo "make demo took $$(( $$(date +%s) - started )) s"

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/run
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	$(BIN)/elephant bench --write benchmarks/table.md

# What docs/results says of the sine, from nothing: about five minutes on two cores.
results: $(VENV)/run
	$(BIN)/elephant reproduce activations --out "$(OUT)"
	$(BIN)/elephant reproduce sine edit --seeds 20 --out "$(OUT)"
	$(BIN)/elephant sweep sine --seeds 20 --out "$(OUT)"
	$(BIN)/python docs/results/collect.py "$(OUT)"

REFERENCES := nearest-mean/elephant,naive-bayes/elephant,lda/elephant,mlp/shuffled,emlp/shuffled

# What docs/results says of class-incremental learning. It goes on from the rows kept there; from
# nothing it takes days on two cores.
results-classes: $(VENV)/run
	$(BIN)/python docs/results/collect.py --restore "$(OUT)"
	$(BIN)/elephant sweep split-digits --coarse --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods mlp --seeds 5 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods emlp --coarse --seeds 5 --finalists 6 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods mlp-ewc --coarse --seeds 2 --finalists 6 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods sdmlp/one-pass --seeds 1 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods cnn --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods cnn-ewc --coarse --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods ecnn --coarse --seeds 1 --finalists 4 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 1000 --methods $(REFERENCES) --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --methods mlp-ewc/boundaries --seeds 1 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 10000 --methods mlp --seeds 1 --finalists 4 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 10000 --methods emlp --coarse --seeds 1 --finalists 6 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 10000 --methods mlp-ewc --coarse --seeds 1 --finalists 2 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 10000 --methods cnn,cnn-ewc,ecnn --coarse --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-mnist --neurons 10000 --methods nearest-mean/elephant,naive-bayes/elephant --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods mlp --seeds 2 --finalists 4 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods mlp-ewc --coarse --seeds 1 --finalists 4 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods emlp --coarse --seeds 2 --finalists 4 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods cnn --seeds 1 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods cnn-ewc --coarse --seeds 1 --finalists 6 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods ecnn --coarse --seeds 1 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 1000 --methods $(REFERENCES) --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --methods flymodel --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --methods mlp-ewc/boundaries --seeds 1 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant sweep split-cifar10 --neurons 10000 --methods emlp,mlp,mlp-ewc,cnn,cnn-ewc,ecnn --coarse --seeds 1 --out "$(OUT)"
	$(BIN)/elephant reproduce split-digits --seeds 20 --out "$(OUT)"
	$(BIN)/elephant reproduce split-mnist --neurons 1000 --methods mlp,mlp-ewc,emlp --seeds 20 --out "$(OUT)"
	$(BIN)/elephant reproduce split-cifar10 --neurons 1000 --methods mlp,emlp --seeds 20 --out "$(OUT)"
	$(BIN)/elephant sweep split-protocols --methods mlp,emlp --seeds 2 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant sweep split-protocols --methods cnn,ecnn --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep split-protocols-cifar10 --seeds 2 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant reproduce split-mnist split-cifar10 --out "$(OUT)"
	$(BIN)/elephant reproduce split-protocols split-protocols-cifar10 --out "$(OUT)"
	$(BIN)/python docs/results/collect.py "$(OUT)"

# What docs/results says of reinforcement learning, likewise; from nothing about a day.
results-rl: $(VENV)/run
	$(BIN)/python docs/results/collect.py --restore "$(OUT)"
	$(BIN)/elephant sweep rl-mountain-car rl-acrobot --methods emlp,mlp --seeds 2 --finalists 8 --out "$(OUT)"
	$(BIN)/elephant sweep rl-mountain-car --methods mlp --seeds 10 --finalists 2 --out "$(OUT)"
	$(BIN)/elephant sweep rl-mountain-car --methods fta,lwta,maxout,later-emlp --seeds 1 --finalists 2 --out "$(OUT)"
	$(BIN)/elephant sweep rl-acrobot --methods fta,lwta,maxout,later-emlp --coarse --seeds 2 --out "$(OUT)"
	$(BIN)/elephant sweep rl-catcher --methods emlp,mlp --coarse --seeds 1 --finalists 2 --out "$(OUT)"
	$(BIN)/elephant sweep rl-pixelcopter --methods emlp,mlp --coarse --seeds 1 --out "$(OUT)"
	$(BIN)/elephant sweep rl-buffers --seeds 2 --out "$(OUT)"
	$(BIN)/elephant sweep rl-buffers --methods mlp --seeds 2 --finalists 3 --out "$(OUT)"
	$(BIN)/elephant reproduce rl-mountain-car rl-acrobot rl-buffers --out "$(OUT)"
	$(BIN)/elephant reproduce rl-mountain-car --methods emlp,mlp --seeds 100 --out "$(OUT)"
	$(BIN)/elephant reproduce rl-acrobot --methods emlp,mlp --seeds 50 --out "$(OUT)"
	$(BIN)/elephant reproduce rl-buffers --methods mlp --seeds 20 --out "$(OUT)"
	$(BIN)/elephant reproduce rl-catcher rl-pixelcopter --methods emlp,mlp --out "$(OUT)"
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

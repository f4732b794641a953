# Two commands: `make book` and `make test`. Each sets up .venv first, once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# auto: install the torch that fits this machine; keep: leave an installed one alone; none: NumPy only.
# Without a word the last choice holds.
TORCH  ?= $(shell cat $(VENV)/torch-choice 2>/dev/null || echo auto)
READY  := $(VENV)/ready-$(TORCH)
# One BLAS thread in each of two test processes: two cores are used once, not twice.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help setup book test quick lint notebooks lab bench models clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY) ## the environment in .venv (TORCH=auto|keep|none)
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "Ready: $(VENV) with TORCH=$(TORCH)",true)

$(READY): pyproject.toml constraints.txt tools/set_up.py
	$(PYTHON) tools/set_up.py --torch $(TORCH) --venv $(VENV)
	@rm -f $(VENV)/ready-*; echo $(TORCH) > $(VENV)/torch-choice; touch $@

book: setup ## run every notebook on this machine, then build the site
	$(BIN)/python tools/run_notebooks.py --cache _build/jupyter_cache
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -b html -c docs . _build/html
	@echo "The book is ready. Open _build/html/index.html"

test: setup ## all tests
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal

quick: setup ## the fast test lane
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

lint: setup ## ruff, the import contract, the stored notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/run_notebooks.py --check

notebooks: setup ## execute the notebooks and store them with their outputs
	$(BIN)/python tools/run_notebooks.py --store

lab: setup ## open the notebooks in JupyterLab
	$(BIN)/jupyter lab notebooks

bench: setup ## the NumPy model against this machine's roof and against transformers
	$(BIN)/python tools/bench_model.py

models: setup ## train the bundled model anew (about an hour)
	$(BIN)/python tools/train_bundled.py

clean: ## remove what was built; keeps .venv
	rm -rf _build dist .pytest_cache .ruff_cache .hypothesis

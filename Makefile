# Each target makes its own virtual environment in .venv and installs what it needs.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python

.PHONY: demo test lint format venv clean

venv: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	@echo "Installing kctx and what its tests and demo need into $(VENV) (about 4 GB, some minutes)"
	$(PY) -m pip install --quiet --editable ".[cpu,dev,jax,plot,test]"
	touch $@

## Pretrain, fine-tune, export and serve a small BERT on the CPU, in under six minutes.
demo: venv
	$(PY) recipes/demo.py

## The whole suite, once under each Keras backend that is installed.
test: venv
	$(PY) -m tests

lint: venv
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: venv
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean:
	rm -rf $(VENV) build *.egg-info

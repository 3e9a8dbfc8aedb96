# Every target makes what it needs. Only Python 3.11+, make and a package registry are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help setup demo test lint bench clean

help:  ## show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: $(VENV)/.ready  ## make .venv with all that the demo and the tests need

$(VENV)/.ready: pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh scripts/setup.sh

demo: setup  ## find out why a real RAG is slow, cure it and prove it (out/demo/report.html)
	@$(BIN)/ragclinic demo --out out/demo $(ARGS)

test: setup  ## run the whole test suite
	@$(BIN)/python -m pytest -n 2 --dist loadscope $(ARGS)

lint: setup  ## format check, lint, types, import order
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup  ## run the benchmarks and write their tables
	@$(BIN)/python -m benchmarks

clean:  ## remove the virtual environment and all output
	@rm -rf $(VENV) $(VENV).new out

# make test: set up .venv from the pinned constraints and check everything. make demo: see it work.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export TOKENIZERS_PARALLELISM := false

.PHONY: setup test lint types layers unit test-lowest demo results site wheel lock clean

setup: $(VENV)/.installed

# torch first and by its pin: another package's looser range would pull a GPU build of several gigabytes.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

test: lint types layers unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

unit: setup
	$(BIN)/pytest -n 2

# The oldest versions that pyproject.toml allows, in an environment of their own.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt torch
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-lowest.txt -e '.[dev]'
	.venv-lowest/bin/pytest -n 2

demo: setup
	$(BIN)/python examples/demo.py

results: setup
	$(BIN)/python -m satkgc.analysis.tables

site: setup  # these pages, the notebooks and the API reference, with search: build/site/index.html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	$(BIN)/python scripts/make_site.py

wheel: setup  # wheel and sdist in dist/, and the README's way with the wheel alone, in an environment of its own
	rm -rf dist build/clean
	$(BIN)/python -m hatchling build --directory dist
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	build/clean/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[minilm,rdf,serve]"
	scripts/try_wheel.sh build/clean

lock: setup  # requirements.lock, with hashes, and sbom.json, the bill of materials of a release
	$(BIN)/python scripts/lock.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache

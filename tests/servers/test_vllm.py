"""vLLM for real: its log-probs after every update are those of the weights that are trained here.

`make test-vllm` installs it into an environment of its own and names its Python in PARTWAY_VLLM.
"""

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import torch

from partway.execution import PYTHON
from partway.models.engine import Request
from partway.models.loading import load_model
from partway.models.servers.calls import Trouble
from partway.models.servers.engine import ServerEngine
from partway.models.settings import SamplingSettings
from partway.models.tiny import build_tiny_model
from partway.runs import Run
from partway.solution import EMPTY
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from training_cases import SMALL, apples

VLLM = os.environ.get("PARTWAY_VLLM")
pytestmark = pytest.mark.skipif(
    VLLM is None, reason="make test-vllm runs these, in an environment of its own"
)
PROBLEMS = apples(8)
SECONDS_TO_START = 900
TOLERANCE = 2e-3  # of a completion's log-prob, in float32: kernels add up in another order


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    """A small model, random but with opinions: its log-probs tell versions apart."""
    path = tmp_path_factory.mktemp("vllm") / "model"
    language_model = build_tiny_model(PROBLEMS, hidden_size=64, layers=2, heads=2)
    untie(language_model.model)
    perturb(language_model.model, 0.1)
    language_model.model.save_pretrained(path)
    language_model.codec.tokenizer.save_pretrained(path)
    return path


def untie(model: torch.nn.Module) -> None:
    """Give the output layer weights of its own: vLLM 0.32 on a CPU reloads no tied ones (docs/servers.md)."""
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())


@contextmanager
def vllm_serve(model: Path, log: Path):
    """A server in developer mode; its process group and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": "3000",  # on a machine with other work to do
        "TORCHDYNAMO_DISABLE": "1",  # --enforce-eager still compiles the sampler, for minutes
        "HF_HUB_OFFLINE": "1",
    }
    words = ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    words += ["--max-model-len", "256", "--max-num-seqs", "32", "--enable-lora", "--max-loras", "2"]
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(VLLM), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *words],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings},
            start_new_session=True,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}", process, log)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        end(process)


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(1)
    raise AssertionError(f"vllm did not start:\n{log.read_text()[-3000:]}")


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)


@pytest.fixture(scope="module")
def server(directory, tmp_path_factory):
    with vllm_serve(directory, tmp_path_factory.mktemp("log") / "vllm.log") as (_, url):
        yield url


def perturb(model: torch.nn.Module, scale: float) -> None:
    """Another version of the weights that are trained."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(torch.randn(weight.shape, generator=generator) * scale)


def log_prob(model, prompt: list[int], tokens: list[int]) -> float:
    """Of the tokens behind the prompt, by the model here."""
    with torch.no_grad():
        log_probs_T_V = model(torch.tensor([prompt + tokens])).logits[0].log_softmax(-1)
    return sum(log_probs_T_V[len(prompt) + n - 1, token].item() for n, token in enumerate(tokens))


class Watching(ServerEngine):
    """Remembers what servers wrote, token by token."""

    def _draw(self, request, written):
        self.seen.append((request, written))
        return super()._draw(request, written)


def differences(engine: Watching, model) -> list[float]:
    """How far the server's log-probs of new samples are from the model's here."""
    engine.seen = []
    requests = [Request(problem, EMPTY, 4) for problem in PROBLEMS[:4]]
    draws = engine.complete(requests, SamplingSettings(max_completion_length=12), 0)
    assert [sum(draw.count for draw in of_one) for of_one in draws] == [4] * 4
    return [
        abs(
            sum(written.log_probs)
            - log_prob(model, engine.codec.prompt(request.problem.question), list(written.tokens))
        )
        for request, written in engine.seen
    ]


def watching(url: str, language_model, tmp_path: Path, **options) -> Watching:
    engine = Watching(
        [url],
        language_model,
        programs=PYTHON,
        directory_of=lambda version: tmp_path / "weights" / f"v{version}",
        patience=120,
        **options,
    )
    engine.seen = []
    return engine


def test_whole_weights_arrive(server, directory, tmp_path):
    language_model = load_model(directory, device="cpu")
    engine = watching(server, language_model, tmp_path)
    for version in range(3):
        engine.update(language_model.model, version)
        assert max(differences(engine, language_model.model)) < TOLERANCE, f"version {version}"
        perturb(language_model.model, 0.1)
        assert max(differences(engine, language_model.model)) > 50 * TOLERANCE, (
            "the test would see old weights"
        )
    assert httpx.get(f"{server}/is_paused").json() == {"is_paused": False}
    engine.close()


def test_a_directory_that_the_server_cannot_see_leaves_it_as_it_was(server, directory, tmp_path):
    language_model = load_model(directory, device="cpu")
    engine = watching(server, language_model, tmp_path)
    engine.update(language_model.model, 0)
    kind = engine.pool.endpoints[0].identity.kind
    nowhere = replace(engine.current, directory=tmp_path / "only-here")
    (tmp_path / "only-here" / "visible").mkdir(parents=True)  # without the file that is read
    with pytest.raises(Trouble, match="cannot read"):
        kind.load(nowhere)
    assert max(differences(engine, language_model.model)) < TOLERANCE
    assert httpx.get(f"{server}/is_paused").json() == {"is_paused": False}
    engine.close()


def test_adapters_arrive(server, directory, tmp_path):
    peft = pytest.importorskip("peft")
    language_model = load_model(directory, device="cpu")
    whole = watching(server, language_model, tmp_path / "base")
    whole.update(
        language_model.model, 0
    )  # under the adapters lie the weights of the model, whatever was before
    config = peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(language_model.model, config).eval()
    engine = watching(server, language_model, tmp_path)
    for version in range(3):
        perturb(adapted, 0.3)
        engine.update(adapted, version)
        assert engine.current.form == "lora"
        assert max(differences(engine, adapted)) < TOLERANCE, f"version {version}"
    perturb(adapted, 0.3)
    assert max(differences(engine, adapted)) > 50 * TOLERANCE, "the test would see old weights"
    engine.close()
    whole.close()


def test_one_of_two_servers_is_killed_in_the_middle_of_a_run(server, directory, tmp_path):
    with vllm_serve(directory, tmp_path / "vllm.log") as (process, url):
        settings = {"eval_strategy": "no", "max_steps": 4, "logging_steps": 1, "explore_ahead": 1}
        args = SelfSamplingConfig(
            **{**SMALL, **settings, "output_dir": str(tmp_path / "run"), "engine": [server, url]}
        )
        trainer = SelfSamplingTrainer(str(directory), args, PROBLEMS)
        explore = trainer.explore

        def exploring(problems):
            if trainer.step == 3:
                end(process)
            explore(problems)

        trainer.explore = exploring
        trainer.train()
    run = Run(tmp_path / "run")
    per_step = [sum(sample.count for sample in run.samples() if sample.step == step) for step in range(1, 5)]
    assert per_step == [12] * 4, "a sample is missing"
    assert run.timings()[-1]["servers/live"] == 1

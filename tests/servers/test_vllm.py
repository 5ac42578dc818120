"""vLLM for real: its log-probs after every update are those of the weights that are trained here.

`make test-vllm` installs it into an environment of its own and names its Python in PARTWAY_VLLM.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
import torch
from training_cases import SMALL, apples

from benchmarks.serving import end, vllm_serve
from modelservers.calls import Trouble
from modelservers.http_engine import HttpEngine
from partway.models.engine import SamplingSettings
from partway.models.loading import load_model
from partway.models.tiny import build_tiny_model
from partway.runs import Run
from partway.sample import Request
from partway.sampling.local_engine import end_ids
from partway.smollm2 import unpacking as smollm2
from partway.solution import EMPTY
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

VLLM = os.environ.get("PARTWAY_VLLM")
pytestmark = pytest.mark.skipif(
    VLLM is None, reason="make test-vllm runs these, in an environment of its own"
)
PROBLEMS = apples(8)
TOLERANCE = 2e-3  # of a completion's log-prob, in float32: kernels add up in another order


@pytest.fixture(scope="module")
def directories(tmp_path_factory) -> dict[str, Path]:
    """Where models are: most small ones tie their output layer to their embeddings, smollm2 too."""
    base = tmp_path_factory.mktemp("vllm")
    return {
        "tied": saved(base / "tied", tied=True),
        "untied": saved(base / "untied", tied=False),
        "smollm2": smollm2.unpacked(smollm2.gguf_file()),
    }


def saved(path: Path, *, tied: bool) -> Path:
    """A small model, random but with opinions: its log-probs tell versions apart."""
    language_model = build_tiny_model(PROBLEMS, hidden_size=64, layers=2, heads=2)
    model = language_model.model
    if not tied:
        model.config.tie_word_embeddings = False
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    perturb(model, 3.0)
    model.save_pretrained(path)
    language_model.codec.tokenizer.save_pretrained(path)
    return path


def started(model: Path, log: Path):
    """A server with room for adapters."""
    words = ("--max-model-len", "256", "--max-num-seqs", "32", "--enable-lora", "--max-loras", "2")
    return vllm_serve(str(VLLM), model, log, *words)


@dataclass(frozen=True)
class Served:
    """A model and a server that was started with it."""

    directory: Path
    url: str


@pytest.fixture(scope="module")
def served(request, directories, tmp_path_factory):
    directory = directories[request.param]
    with started(directory, tmp_path_factory.mktemp("log") / "vllm.log") as (_, url):
        yield Served(directory, url)


def serving(*names):
    """A test runs with a server of each of these models; those of one model share it."""
    return pytest.mark.parametrize("served", names, indirect=True)


def perturb(model: torch.nn.Module, scale: float) -> None:
    """Another version of the weights that are trained: each is moved by its layer's `scale` spreads."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                spread = weight.std().clamp(min=0.02)  # those of norms are all equal
                weight.add_(torch.randn(weight.shape, generator=generator) * scale * spread)


def log_prob(model, prompt: list[int], tokens: list[int]) -> float:
    """Of the tokens behind the prompt, by the model here."""
    with torch.no_grad():
        log_probs_T_V = model(torch.tensor([prompt + tokens])).logits[0].log_softmax(-1)
    return sum(log_probs_T_V[len(prompt) + n - 1, token].item() for n, token in enumerate(tokens))


class Watching(HttpEngine):
    """Remembers what servers wrote, token by token."""

    def _sample(self, request, written):
        self.seen.append((request, written))
        return super()._sample(request, written)


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
        language_model.codec,
        ends=end_ids(language_model),
        weight_sync="auto",
        directory_of=lambda version: tmp_path / "weights" / f"v{version}",
        patience=120,
        say=(said := []).append,
        **options,
    )
    engine.seen, engine.said = [], said
    return engine


@serving("tied", "untied", "smollm2")
def test_whole_weights_arrive(served, tmp_path):
    language_model = load_model(served.directory, device="cpu")
    engine = watching(served.url, language_model, tmp_path)
    for version in range(3):
        engine.update(language_model.model, version)
        assert max(differences(engine, language_model.model)) < TOLERANCE, f"version {version}"
        perturb(language_model.model, 0.1)
        assert max(differences(engine, language_model.model)) > 50 * TOLERANCE, (
            "the test would see old weights"
        )
    assert httpx.get(f"{served.url}/is_paused").json() == {"is_paused": False}
    assert not engine.said, "the engine saw a difference too"
    engine.close()


@serving("tied")
def test_a_directory_that_the_server_cannot_see_leaves_it_as_it_was(served, tmp_path):
    language_model = load_model(served.directory, device="cpu")
    engine = watching(served.url, language_model, tmp_path)
    engine.update(language_model.model, 0)
    kind = engine.pool.endpoints[0].kind
    nowhere = replace(engine.handover.current, directory=tmp_path / "only-here")
    (tmp_path / "only-here" / "visible").mkdir(parents=True)  # without the file that is read
    with pytest.raises(Trouble, match="cannot read"):
        kind.load(nowhere)
    assert max(differences(engine, language_model.model)) < TOLERANCE
    assert httpx.get(f"{served.url}/is_paused").json() == {"is_paused": False}
    engine.close()


@serving("tied", "smollm2")
def test_adapters_arrive(served, tmp_path):
    peft = pytest.importorskip("peft")
    language_model = load_model(served.directory, device="cpu")
    whole = watching(served.url, language_model, tmp_path / "base")
    whole.update(language_model.model, 0)  # whatever it had before, under the adapters lies this model
    config = peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(language_model.model, config).eval()
    engine = watching(served.url, language_model, tmp_path)
    for version in range(3):
        perturb(adapted, 1.0)
        engine.update(adapted, version)
        assert engine.handover.current.form == "lora"
        assert max(differences(engine, adapted)) < TOLERANCE, f"version {version}"
    perturb(adapted, 1.0)
    assert max(differences(engine, adapted)) > 50 * TOLERANCE, "the test would see old weights"
    engine.close()
    whole.close()


@serving("tied")
def test_one_of_two_servers_is_killed_in_the_middle_of_a_run(served, tmp_path):
    with started(served.directory, tmp_path / "vllm.log") as (process, url):
        settings = {"eval_strategy": "no", "max_steps": 4, "logging_steps": 1, "explore_ahead": 1}
        engine = [served.url, url]
        args = SelfSamplingConfig(
            **{**SMALL, **settings, "output_dir": str(tmp_path / "run"), "engine": engine}
        )
        trainer = SelfSamplingTrainer(str(served.directory), args, PROBLEMS)
        trainer.engine.pool.look()
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
    name = url.partition("//")[2]
    assert run.timings()[0][f"servers/{name}/samples"] > 0, "both servers worked at first"
    assert run.timings()[-1]["servers/live"] == 1

"""Training whose samples scripted servers draw: at once, ahead, with servers that go, and replayed."""

import time
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
import torch
from chat_templates import chat_model, chat_tokenizer
from click.testing import CliRunner, Result
from safetensors.torch import load_file
from scripted_server import apple_routes, completions, routed_server, solved_apples, too_much
from training_cases import SMALL, apples, small_trainer, tiny_gpt_neo

from modelservers import pool
from modelservers.ahead import Ahead
from partway.cli import app
from partway.errors import ConfigError, EngineError, RunError
from partway.models.engine import Engine, SamplingSettings
from partway.models.loading import load_codec
from partway.problems import write_problems
from partway.runs import Run
from partway.sample import Request
from partway.solution import EMPTY
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")
PROBLEMS = apples(6)


def settings(directory: Path, **chosen: Any) -> SelfSamplingConfig:
    few = {"eval_strategy": "no", "max_steps": 5, "logging_steps": 1, "num_generations": 2, "save_steps": 3}
    return SelfSamplingConfig(**{**SMALL, **few, "output_dir": str(directory), **chosen})


def trainer(directory: Path, **chosen: Any) -> SelfSamplingTrainer:
    return SelfSamplingTrainer(tiny_gpt_neo(PROBLEMS), settings(directory, **chosen), PROBLEMS)


def weights_by_step(run: Run) -> dict[int, set[int | None]]:
    found: dict[int, set[int | None]] = {}
    for sample in run.samples():
        found.setdefault(sample.step, set()).add(sample.weights)
    return found


def same_end(one: Path, other: Path) -> None:
    assert (one / "final" / "buffer.jsonl").read_bytes() == (other / "final" / "buffer.jsonl").read_bytes()
    weights, others = (load_file(run / "final" / "model.safetensors") for run in (one, other))
    assert weights.keys() == others.keys()
    assert all(torch.equal(weight, others[name]) for name, weight in weights.items())


def replay(run: Run, directory: Path) -> None:
    """The same run from its samples, which asks no server and ends in the same place."""
    args = SelfSamplingConfig(**{**run.config, "output_dir": str(directory), "disable_tqdm": True})
    again = SelfSamplingTrainer(tiny_gpt_neo(PROBLEMS), args, PROBLEMS, replay=run)
    again.engine = Forbidden()
    again.train()
    same_end(run.directory, directory)


class Forbidden(Engine):
    """An engine that must not be asked."""

    def complete(self, requests: Any, settings: Any, seed: int) -> Any:
        raise AssertionError("a replay samples")

    def update(self, weights: Any, version: int) -> None:
        """Weights may be told."""


def test_servers_of_the_settings_draw_with_the_weights_of_each_step_and_are_replayed(tmp_path):
    with routed_server(apple_routes()) as one, routed_server(apple_routes()) as other:
        trainer(tmp_path / "run", engine=[f"{one.url}/v1", other.url]).train()
        asked = [call for server in (one, other) for call in server.asked()]
    run = Run(tmp_path / "run")
    assert weights_by_step(run) == {step: {step - 1} for step in range(1, 6)}
    assert {Path(call["model"]).name for call in asked} == {f"step-{step}" for step in range(5)}
    assert run.metrics()[-2]["buffer/fcs_per_problem"] > 1
    assert {line.get("samples/mean_steps_late") for line in run.metrics()[:-1]} == {0}
    drawn = sum(value for line in run.timings() for key, value in line.items() if key.endswith("/samples"))
    assert drawn == sum(sample.count for sample in run.samples())
    assert run.timings()[0]["servers/live"] in (1, 2)

    replay(run, tmp_path / "replay")
    rows = [list(Run(tmp_path / name).samples()) for name in ("run", "replay")]
    assert rows[0] == rows[1]


def evaluated(url: str, directory: Path, *options: str) -> Result:
    """`partway evaluate --engine` on the problems, one sample of each."""
    write_problems(directory / "problems.jsonl", PROBLEMS)
    words = ["evaluate", "--engine", url, "--problems", str(directory / "problems.jsonl"), "--json"]
    more = ["--samples", "1", "--max-completion-length", "16", "--out", str(directory / "out"), "--overwrite"]
    return CliRunner().invoke(app, [*words, *more, *options])


SERVE, VLLM = ("/load_model", "/reset"), ("/version", "/tokenize")


@pytest.mark.parametrize("routes", [SERVE, VLLM], ids=["text", "tokens"])
@pytest.mark.parametrize("name", ["Qwen2.5", "Llama 3"])
def test_training_and_evaluating_ask_a_chat_model_alike(tmp_path, name, routes):
    """Through its own template; what closes an answer is not a part of it."""
    answer = {"POST /v1/completions": lambda payload: (200, completions("n0 = 1\nx = 2\n```\nThat is all."))}
    with routed_server(answer | {f"POST {route}": lambda payload: (200, {}) for route in routes}) as server:

        def prompts() -> set[str]:
            asked = {str(payload["prompt"]) for payload in server.asked()}
            server.calls.clear()
            return asked

        args = settings(tmp_path / "run", engine=server.url, weight_sync="none", self_sampling="fcs")
        model, tokenizer = chat_model(name, PROBLEMS).model, chat_tokenizer(name, PROBLEMS)
        SelfSamplingTrainer(model, args, PROBLEMS, processing_class=tokenizer).train()
        training = prompts()
        as_the_run = ("--tokenizer", str(tmp_path / "run"))
        assert evaluated(server.url, tmp_path, *as_the_run).exit_code == 0
        assert prompts() == training
        assert evaluated(server.url, tmp_path, *as_the_run, "--chat-template", "none").exit_code == 0
        plainly = prompts()
    codec = load_codec(tmp_path / "run")
    questions = [problem.question for problem in PROBLEMS]
    if routes == VLLM:
        assert training == {str(codec.prompt(question)) for question in questions}
        assert plainly == {str(codec.encode(f"# {question}\n")) for question in questions}
    else:
        assert training == {codec.question.text(question) for question in questions}
        assert plainly == {f"# {question}\n" for question in questions}
    assert {sample.completion for sample in Run(tmp_path / "run").samples()} == {"n0 = 1\nx = 2\n"}


def test_without_a_tokenizer_the_command_says_how_the_question_is_put(tmp_path):
    with routed_server(apple_routes()) as server:
        said = evaluated(server.url, tmp_path).stderr
    assert "`# QUESTION`, without a chat template; --tokenizer NAME adds that model's" in said


def test_exploring_ahead_learns_while_servers_draw_and_tells_how_late_samples_are(tmp_path):
    sent: list[tuple[float, str]] = []

    def slowly(payload: dict[str, Any]) -> tuple[int, Any]:
        sent.append((time.monotonic(), payload["prompt"]))
        return solved_apples(payload)

    with routed_server(apple_routes(slowly)) as server:
        trainer(tmp_path / "run", engine=server.url, explore_ahead=2).train()
    run = Run(tmp_path / "run")
    # A request that still waits when new weights come is drawn with these: never older, maybe newer.
    sent_with = {1: 0, 2: 0, 3: 0, 4: 1, 5: 2}
    for step, drawn_with in weights_by_step(run).items():
        assert drawn_with <= set(range(sent_with[step], step))
    late = [line["samples/mean_steps_late"] for line in run.metrics()[:-1]]
    assert all(0 <= now <= most for now, most in zip(late, [0, 1, 2, 2, 2], strict=True))
    assert sum(late) > 4  # most of them were drawn ahead
    assert [line["samples/drawn"] for line in run.metrics()[:-1]] == [8, 4, 8, 4, 8]
    replay(run, tmp_path / "replay")


def test_batches_ahead_are_drawn_at_the_same_time_and_given_up_without_waiting():
    together, may_answer = Barrier(4), Event()

    class Slow(Engine):
        def complete(self, requests: Any, settings: Any, seed: int) -> Any:
            together.wait(10)
            may_answer.wait(10)
            return [[] for _ in requests]

    asked = ([Request(PROBLEMS[0], EMPTY, 1)], SamplingSettings())
    ahead = Ahead(Slow(), 2, lambda step: [(*asked, step)])
    ahead.update(tiny_gpt_neo(PROBLEMS).model, 0)
    together.wait(10)  # breaks unless all three are under way
    started = time.monotonic()
    ahead.rest()
    assert time.monotonic() - started < 5
    may_answer.set()


def test_weights_are_handed_over_every_so_many_steps(tmp_path):
    with routed_server(apple_routes()) as server:
        trainer(tmp_path / "run", engine=server.url, weight_sync_steps=2).train()
    assert weights_by_step(Run(tmp_path / "run")) == {1: {0}, 2: {0}, 3: {2}, 4: {2}, 5: {4}}


def test_servers_may_keep_weights_of_their_own(tmp_path):
    with routed_server(apple_routes()) as server:
        trainer(tmp_path / "run", engine=server.url, weight_sync="none").train()
        assert not any("model" in payload for payload in server.asked())
    assert {sample.weights for sample in Run(tmp_path / "run").samples()} == {None}
    assert not (tmp_path / "run" / "weights").exists()


def test_when_servers_are_gone_for_good_the_run_is_saved_and_goes_on_later(tmp_path):
    with routed_server(apple_routes()) as server:

        def until_third_step(payload: dict[str, Any]) -> tuple[int, Any]:
            server.is_down = "step-2" in payload.get("model", "")
            return solved_apples(payload)

        server.routes["POST /v1/completions"] = until_third_step
        with pytest.raises(
            EngineError, match=r"no server answered for 0.5 s .*; checkpoint-2 is saved, --res"
        ):
            trainer(tmp_path / "run", engine=server.url, engine_timeout=0.5).train()
    run = Run(tmp_path / "run")
    assert list(run.checkpoints()) == [2]
    with routed_server(apple_routes()) as server:
        trainer(tmp_path / "run", engine=server.url).train(resume_from_checkpoint=True)
    assert weights_by_step(run) == {step: {step - 1} for step in range(1, 6)}
    assert [sum(s.count for s in run.samples() if s.step == step) for step in range(1, 6)] == [8, 4, 8, 4, 8]
    replay(run, tmp_path / "replay")


def faulty(good: Any, faults: list[Any]) -> Any:
    """From the weights of step 1 on, one fault after the other in place of answers."""
    left = iter(faults)

    def answer(payload: dict[str, Any]) -> tuple[int, Any]:
        is_begun = "step-0" in payload.get("model", "") or payload["prompt"] == "1"  # weights are tried
        return good(payload) if is_begun else next(left, good)(payload)

    return answer


FAULTS = [
    lambda payload: (500, {"error": "out of memory"}),
    lambda payload: (200, b"<html>busy</html>"),
    lambda payload: (200, too_much()),
    lambda payload: time.sleep(3) or solved_apples(payload),
]


def test_a_step_waits_for_the_answers_that_a_failing_server_owes_it(tmp_path, monkeypatch, capsys):
    """One server that fails in every way: training says so, waits, and no sample is missing or made up."""
    monkeypatch.setattr(pool, "LONGEST_PAUSE", 0.1)
    with routed_server(apple_routes(faulty(solved_apples, FAULTS))) as server:
        training = trainer(tmp_path / "run", engine=server.url, engine_timeout=60.0, disable_tqdm=False)
        training.engine.pool.endpoints[0].calls.timeout = 1.0
        training.train()
        asked = [call for call in server.asked() if call["prompt"] != "1"]
    run = Run(tmp_path / "run")
    assert [sum(s.count for s in run.samples() if s.step == step) for step in range(1, 6)] == [8, 4, 8, 4, 8]
    assert len(asked) == 32 + len(FAULTS), "every fault came, and was asked again"
    written = {step for s in run.samples() for step in s.completion.splitlines()}
    assert "answer = 1" not in written, "what was not asked for was taken"
    assert sum(line[f"servers/{server.url[7:]}/failures"] for line in run.timings()) > 1
    said = capsys.readouterr()
    assert "no server answers" in said.out + said.err
    assert "answers again" in said.out + said.err


def test_a_run_of_the_model_itself_is_replayed_with_its_evaluations(tmp_path):
    small_trainer(tmp_path / "run").train()
    again = small_trainer(tmp_path / "replay")
    again.replay = Run(tmp_path / "run")
    again.engine = Forbidden()
    again.train()
    same_end(tmp_path / "run", tmp_path / "replay")
    evaluations = [Run(tmp_path / name).evaluations() for name in ("run", "replay")]
    assert evaluations[0][4]["metrics"] == evaluations[1][4]["metrics"]


def test_a_replay_is_evaluated_although_the_servers_of_its_settings_are_gone(tmp_path):
    with routed_server(apple_routes()) as server:
        trainer(tmp_path / "run", engine=server.url, explore_ahead=1, max_steps=2).train()
    run = Run(tmp_path / "run")
    changed = {"output_dir": str(tmp_path / "replay"), "disable_tqdm": True, "engine_timeout": 0.1}
    changed |= {"eval_strategy": "steps", "eval_steps": 1, "load_best_model_at_end": False}
    args = SelfSamplingConfig(**{**run.config, **changed})
    assert args.servers == [server.url]
    dev = apples(2, seed=1)
    SelfSamplingTrainer(tiny_gpt_neo(PROBLEMS), args, PROBLEMS, dev, replay=run).train()
    assert list(Run(tmp_path / "replay").evaluations()) == [1, 2]
    same_end(tmp_path / "run", tmp_path / "replay")


def test_a_run_that_recorded_too_little_cannot_be_replayed(tmp_path):
    small_trainer(tmp_path / "run", eval_strategy="no", max_steps=2).train()
    problems = apples(10)
    args = SelfSamplingConfig(
        **{**SMALL, "eval_strategy": "no", "output_dir": str(tmp_path / "again"), "max_steps": 4}
    )
    longer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems, replay=Run(tmp_path / "run"))
    with pytest.raises(RunError, match=r"no samples of problem .* at step 3; replay with the settings"):
        longer.train()


def test_the_model_that_learns_cannot_draw_ahead(tmp_path):
    with pytest.raises(ConfigError, match="explore_ahead is 1, but the model that learns draws the samples"):
        trainer(tmp_path / "run", explore_ahead=1)

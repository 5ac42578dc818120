"""Training whose samples scripted servers draw: at once, ahead, with servers that go, and replayed."""

import time
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from partway.errors import ConfigError, EngineError, RunError
from partway.models.engine import Request
from partway.models.servers import endpoint
from partway.runs import Run
from partway.solution import EMPTY
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.exploration import Ahead
from partway.training.replay import Recording
from scripted_server import apple_routes, completions, routed_server, solved_apples, too_much
from training_cases import SMALL, apples, small_trainer, tiny_gpt_neo

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")
PROBLEMS = apples(6)


def trainer(directory: Path, **settings: Any) -> SelfSamplingTrainer:
    chosen = {
        "eval_strategy": "no",
        "max_steps": 5,
        "logging_steps": 1,
        "num_generations": 2,
        "save_steps": 3,
    }
    args = SelfSamplingConfig(**{**SMALL, **chosen, "output_dir": str(directory), **settings})
    return SelfSamplingTrainer(tiny_gpt_neo(PROBLEMS), args, PROBLEMS)


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


class Forbidden:
    """An engine that must not be asked."""

    def complete(self, requests: Any, settings: Any, seed: int) -> Any:
        raise AssertionError("a replay samples")

    def update(self, weights: Any, version: int) -> None:
        """Weights may be told."""


def test_servers_of_the_settings_draw_with_the_weights_of_each_step_and_are_replayed(tmp_path):
    with routed_server(apple_routes()) as one, routed_server(apple_routes()) as other:
        trainer(tmp_path / "run", engine=[f"{one.url}/v1", other.url]).train()
        asked = [call for server in (one, other) for call in server.asked("/v1/completions")]
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


def test_exploring_ahead_learns_while_servers_draw_and_tells_how_late_samples_are(tmp_path):
    sent: list[tuple[float, str]] = []

    def slowly(payload: dict[str, Any]) -> tuple[int, Any]:
        sent.append((time.monotonic(), payload["prompt"]))
        return solved_apples(payload)

    with routed_server(apple_routes(slowly)) as server:
        trainer(tmp_path / "run", engine=server.url, explore_ahead=2).train()
    run = Run(tmp_path / "run")
    assert weights_by_step(run) == {1: {0}, 2: {0}, 3: {0}, 4: {1}, 5: {2}}
    assert [line["samples/mean_steps_late"] for line in run.metrics()[:-1]] == [0, 1, 2, 2, 2]
    assert [line["samples/drawn"] for line in run.metrics()[:-1]] == [8, 4, 8, 4, 8]
    replay(run, tmp_path / "replay")


def test_batches_ahead_are_drawn_at_the_same_time_and_given_up_without_waiting():
    together, may_answer = Barrier(4), Event()

    def complete(requests: Any, seed: int) -> Any:
        together.wait(10)
        may_answer.wait(10)
        return [[] for _ in requests]

    ahead = Ahead(complete, steps=2)
    for step in (1, 2, 3):
        ahead.send(step, [[Request(PROBLEMS[0], EMPTY, 1)]], seed=0)
    together.wait(10)  # breaks unless all three are under way
    started = time.monotonic()
    ahead.give_up()
    assert time.monotonic() - started < 5
    may_answer.set()


def test_weights_are_handed_over_every_so_many_steps(tmp_path):
    with routed_server(apple_routes()) as server:
        trainer(tmp_path / "run", engine=server.url, weight_sync_steps=2).train()
    assert weights_by_step(Run(tmp_path / "run")) == {1: {0}, 2: {0}, 3: {2}, 4: {2}, 5: {4}}


def test_servers_may_keep_weights_of_their_own(tmp_path):
    with routed_server(apple_routes()) as server:
        trainer(tmp_path / "run", engine=server.url, weight_sync="none").train()
        assert not any("model" in payload for payload in server.asked("/v1/completions"))
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
    lambda payload: (200, {"choices": []}),
    lambda payload: (200, completions(*["answer = 1\n"] * 300)),
    lambda payload: (200, too_much()),
    lambda payload: (200, b"[" * 200_000),
    lambda payload: time.sleep(3) or solved_apples(payload),
]


def test_a_step_waits_for_the_answers_that_a_failing_server_owes_it(tmp_path, monkeypatch, capsys):
    """One server that fails in every way: training says so, waits, and no sample is missing or made up."""
    monkeypatch.setattr(endpoint, "LONGEST_PAUSE", 0.1)
    with routed_server(apple_routes(faulty(solved_apples, FAULTS))) as server:
        training = trainer(tmp_path / "run", engine=server.url, engine_timeout=60.0, disable_tqdm=False)
        training.engine.pool.endpoints[0].calls._http.timeout = 1.0
        training.train()
        asked = [call for call in server.asked("/v1/completions") if call["prompt"] != "1"]
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
    again.exploration.recording = Recording(Run(tmp_path / "run"), again.programs)
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

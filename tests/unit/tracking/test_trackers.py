"""Trackers that take tables get the samples with their verdicts at every evaluation."""

import sys
from types import ModuleType
from typing import Any

import pytest
from training_cases import watched_trainer

from partway.tracking.sample_tables import COLUMNS, MOST, SampleTables


class FakeTracker(ModuleType):
    """As much of wandb and trackio as is used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.run: Any = object()
        self.logged: list[dict[str, Any]] = []
        self.Table = lambda columns, data: {"columns": columns, "data": data}

    def log(self, metrics: dict[str, Any]) -> None:
        self.logged.append(metrics)


@pytest.fixture(params=["wandb", "trackio"])
def tracker(request: Any, monkeypatch: pytest.MonkeyPatch) -> FakeTracker:
    fake = FakeTracker(request.param)
    monkeypatch.setitem(sys.modules, request.param, fake)
    return fake


def trained(tmp_path: Any, name: str, **settings: Any) -> Any:
    trainer = watched_trainer(tmp_path, max_steps=4, save_steps=2, eval_steps=2, eval_samples=5, **settings)
    trainer.args.report_to = [name]  # after transformers has looked for its own callback
    trainer.train()
    return trainer


def test_every_evaluation_gives_a_table_of_self_samples_and_of_its_own(
    tmp_path: Any, tracker: FakeTracker
) -> None:
    trainer = trained(tmp_path, tracker.__name__)
    tables = [line["samples"] for line in tracker.logged]
    assert [line["train/global_step"] for line in tracker.logged] == [2, 4]
    assert all(table["columns"] == list(COLUMNS) for table in tables)
    rows = [dict(zip(COLUMNS, row, strict=True)) for table in tables for row in table["data"]]
    drawn = [row for row in rows if row["from"] == "self-sample"]
    assert [(row["step"], row["problem"], row["verdict"]) for row in drawn] == [
        (sample.step, sample.problem, str(sample.verdict)) for sample in trainer.run.samples()
    ], "each once"
    assert [row["solution"] for row in drawn] == [sample.written for sample in trainer.run.samples()]
    evaluated = [row for row in rows if row["from"] == "evaluation"]
    assert {row["problem"] for row in evaluated} == {problem.id for problem in trainer.eval_dataset}
    assert all(row["question"] for row in rows)


def test_a_tracker_without_a_run_and_one_without_tables_get_nothing(
    tmp_path: Any, tracker: FakeTracker
) -> None:
    tracker.run = None
    trained(tmp_path / "a", tracker.__name__)
    tracker.run = object()
    trained(tmp_path / "b", "tensorboard")
    assert tracker.logged == []


def test_a_table_has_an_end(tmp_path: Any, tracker: FakeTracker) -> None:
    trainer = trained(tmp_path, "none")
    samples = list(trainer.run.samples()) * MOST

    class Many:
        samples = staticmethod(lambda after: samples)
        evaluated_steps = staticmethod(list)

    state = type("State", (), {"global_step": 4, "is_world_process_zero": True})
    SampleTables(Many(), {}).on_evaluate(type("Args", (), {"report_to": [tracker.__name__]}), state, None)  # type: ignore[arg-type]
    (line,) = tracker.logged
    assert len(line["samples"]["data"]) == MOST

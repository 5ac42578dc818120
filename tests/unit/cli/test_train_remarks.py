"""What `partway train` says before its first step and after its last."""

import json
from types import SimpleNamespace

import pytest
import torch

from partway.cli.train import _conclude, outline
from partway.language import PYTHON
from partway.problem import Problem
from partway.runs import Run


def trainer_of(directory, *, trained: int, **settings):
    """What an outline looks at: a model of 200 weights, of which so many are trained."""
    weights = [torch.nn.Parameter(torch.zeros(trained)), torch.nn.Parameter(torch.zeros(200 - trained))]
    weights[1].requires_grad = False
    args = {
        "max_steps": 30,
        "num_train_epochs": 2,
        "eval_steps": 10.0,
        "eval_strategy": "steps",
        "problems_per_step": 8,
    }
    args |= {"self_sampling": "fcs", "objective": "mml", "model_name_or_path": "some-model"}
    said: list[str] = []
    return SimpleNamespace(
        args=SimpleNamespace(**args | settings),
        language=PYTHON,
        model=torch.nn.ParameterList(weights),
        codec=SimpleNamespace(question=SimpleNamespace(is_markup=True)),
        batches=SimpleNamespace(order=SimpleNamespace(steps_per_epoch=5)),
        train_dataset=[Problem("a", "1 and 1?", 2, "answer = 2"), Problem("b", "2 and 2?", 4)],
        eval_dataset=[Problem("c", "3 and 3?", 6)],
        run=Run(directory),
        recorder=SimpleNamespace(say=said.append),
        said=said,
    )


def test_the_outline_tells_problems_model_steps_and_place(tmp_path):
    assert outline(trainer_of(tmp_path, trained=2)) == [
        "2 problems: 1 with a solution, 1 with the answer only; solved_share mixes them in each batch",
        "some-model, 200 weights, 1.00% trained; asked by its chat template for Python that assigns 'answer'",
        "30 steps of 2 problems; self_sampling fcs, objective mml; evaluation on 1 problem every 10 steps",
        f"everything goes to {tmp_path}; Ctrl-C saves and stops, --resume goes on",
    ]
    assert outline(trainer_of(tmp_path, trained=200, max_steps=-1))[2].startswith("10 steps of 2 problems")
    shared = outline(trainer_of(tmp_path, trained=2, max_steps=1, eval_steps=0.5, problems_per_step=1))[2]
    assert shared.startswith("1 step of 1 problem; ")
    assert shared.endswith("on 1 problem every 1 step")


@pytest.mark.parametrize(
    ("loss", "norm", "is_told"), [(0.0, 0.0, True), (0.0, 0.5, False), (0.5, 0.5, False)]
)
def test_a_run_in_which_no_weight_changed_says_so(tmp_path, loss, norm, is_told):
    trainer = trainer_of(tmp_path, trained=2)
    trainer.run.final.mkdir()
    kept = {"id": "a", "rules": {}, "max_length": 1, "solutions": [{"kind": "fully_correct", "steps": []}]}
    (trainer.run.final / "buffer.jsonl").write_text(json.dumps(kept) + "\n")
    trainer.run.append_metrics({"step": 1, "loss": loss, "grad_norm": norm}, {"step": 1, "seconds": 1.0})
    _conclude(trainer, as_json=False)
    told = f"NOTHING was learned: the loss was 0 at every step; what was sampled is in {tmp_path / 'samples'}"
    assert (told in trainer.said) == is_told


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"eval_strategy": "no"}, "no evaluation (eval_strategy is no)"),
        ({"eval_strategy": "epoch"}, "evaluation on 1 problem after every epoch"),
        ({"eval_steps": 0.25}, "evaluation on 1 problem every 8 steps"),  # of 30
    ],
)
def test_the_outline_tells_which_evaluations_there_will_be(tmp_path, settings, told):
    trainer = trainer_of(tmp_path, trained=2, **settings)
    assert outline(trainer)[2].endswith(f"; {told}")
    trainer.eval_dataset = None
    assert outline(trainer)[2].endswith("; no evaluation (eval_file is not set)")


@pytest.mark.parametrize(("executing", "is_told"), [(6.0, True), (1.0, False)])
def test_a_run_that_spent_its_time_on_programs_says_where_to_look(
    tmp_path, executing, is_told, capsys, caplog
):
    caplog.set_level("INFO")
    trainer = trainer_of(tmp_path, trained=2)
    trainer.run.final.mkdir()
    (trainer.run.final / "buffer.jsonl").write_text('{"id": "a", "solutions": [{"steps": ["answer = 2"]}]}\n')
    trainer.run.append_metrics(
        {"step": 1, "loss": 1.0}, {"step": 1, "seconds": 10.0, "time/executing": executing}
    )
    _conclude(trainer, as_json=False)
    told = f"running programs took 60% of the time; to see which: partway buffer slowest {tmp_path}"
    assert (told in trainer.said) == is_told
    commands = (f"partway evaluate {tmp_path} --problems TEST.jsonl", f"partway report {tmp_path}")
    assert caplog.messages == [f"next: {', or '.join(commands)}"]
    assert capsys.readouterr().out == f"{trainer.run.final}\n"

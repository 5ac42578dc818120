"""A run that branches from another ends as if it had made all its steps itself, or is refused."""

import shutil
from pathlib import Path

import pytest
from training_cases import small_trainer

from partway.errors import RunError
from partway.runs import Run
from partway.runs.run import save_buffers
from partway.training import SelfSamplingTrainer

pytestmark = pytest.mark.slow

MLE = {"self_sampling": "none", "objective": "mle"}
SAMPLING = {"self_sampling": "fcs+pcs", "sampling_start_step": 4}


@pytest.fixture(scope="module")
def mle(tmp_path_factory) -> Run:
    """A finished run that never samples, with checkpoints after 4 and 8 steps."""
    directory = tmp_path_factory.mktemp("mle") / "run"
    small_trainer(directory, **MLE).train()
    return Run(directory)


def result(directory: Path) -> dict[str, bytes]:
    """What a run ends with; lines of metrics say which rules there are, also before they matter."""
    names = ["samples/00000001.jsonl", "final/model.safetensors", "final/buffer.jsonl"]
    names += ["checkpoint-8/optimizer.pt", "evaluations/step-4.jsonl", "evaluations/step-8.jsonl"]
    return {name: (directory / name).read_bytes() for name in names}


@pytest.mark.parametrize(
    "settings",
    [
        {"objective": "mle_aug"},
        {"objective": "mml", "self_sampling": "fcs"},
        {"objective": "beta_mml", "objective_args": {"beta": 0.5}, "dedup": "alpha", "state": "set"},
    ],
    ids=lambda settings: settings["objective"],
)
def test_a_branch_ends_as_if_it_had_made_all_steps_itself(mle, tmp_path, settings):
    settings = SAMPLING | settings
    small_trainer(tmp_path / "whole", **settings).train()
    small_trainer(tmp_path / "branch", **settings).train(branch=mle)
    assert result(tmp_path / "branch") == result(tmp_path / "whole")
    losses = [[line.get("loss") for line in Run(tmp_path / name).metrics()] for name in ("branch", "whole")]
    assert losses[0] == losses[1]
    assert Run(tmp_path / "branch").environment["branched"] == "run/checkpoint-4"
    assert "branched" not in Run(tmp_path / "whole").environment


def test_a_branch_that_is_killed_while_it_copies_ends_the_same(mle, tmp_path, monkeypatch):
    small_trainer(tmp_path / "whole", **SAMPLING).train()

    def killed(*_args, **_settings):
        raise KeyboardInterrupt

    trainer = small_trainer(tmp_path / "branch", **SAMPLING)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copytree", killed)
        with pytest.raises(KeyboardInterrupt):
            trainer.train(branch=mle)
    small_trainer(tmp_path / "branch", **SAMPLING).train(resume_from_checkpoint="auto", branch=mle)
    assert result(tmp_path / "branch") == result(tmp_path / "whole")


def test_the_best_checkpoint_of_the_shared_steps_may_become_the_final_model(tmp_path):
    def trainer(name: str, **settings) -> SelfSamplingTrainer:
        made = small_trainer(tmp_path / name, max_steps=12, **settings)
        made.compute_metrics = lambda _: {"pass@1": 1 / made.state.global_step}  # the first is the best
        return made

    later = SAMPLING | {"sampling_start_step": 8}
    trainer("mle", **MLE).train()
    trainer("whole", **later).train()
    trainer("branch", **later).train(branch=Run(tmp_path / "mle"))
    assert Run(tmp_path / "branch").final_step == Run(tmp_path / "whole").final_step == 4
    for name in ("branch", "whole"):
        assert list(Run(tmp_path / name).checkpoints()) == [4, 8, 12]
    assert (tmp_path / "branch/final/model.safetensors").read_bytes() == (
        tmp_path / "whole/final/model.safetensors"
    ).read_bytes()


def test_a_branch_that_was_begun_is_resumed_and_not_branched_again(mle, tmp_path):
    small_trainer(tmp_path / "branch", **SAMPLING).train(branch=mle)
    ended = result(tmp_path / "branch")
    small_trainer(tmp_path / "branch", **SAMPLING).train(resume_from_checkpoint="auto", branch=mle)
    assert result(tmp_path / "branch") == ended
    with pytest.raises(RunError, match="there is a run already"):
        small_trainer(tmp_path / "branch", **SAMPLING).train(branch=mle)


def test_runs_that_sample_have_their_first_steps_in_common(mle, tmp_path):
    small_trainer(tmp_path / "one", **SAMPLING).train(branch=mle)
    small_trainer(tmp_path / "other", **SAMPLING | {"temperature": 1.0}).train(branch=Run(tmp_path / "one"))
    small_trainer(tmp_path / "whole", **SAMPLING | {"temperature": 1.0}).train()
    assert result(tmp_path / "other") == result(tmp_path / "whole")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"learning_rate": 2e-3}, "learning_rate was 0.001, is 0.002"),
        ({"seed": 1}, "seed was 42, is 1"),
        ({"eval_samples": 3}, "eval_samples was 2, is 3"),
        ({"objective": "grpo", "self_sampling": "fcs"}, "objective was 'mle', is 'grpo'"),
        ({"sampling_start_step": 3}, r"first sample at step 4 \(there are checkpoint-4, checkpoint-8\)"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_other_first_steps_are_refused(mle, tmp_path, settings, reason):
    with pytest.raises(RunError, match=reason):
        small_trainer(tmp_path / "branch", **SAMPLING | settings).train(branch=mle)
    assert not Run(tmp_path / "branch").is_started


def test_with_solutions_to_begin_with_another_objective_has_other_first_steps(mle, tmp_path):
    known = tmp_path / "buffer.jsonl"
    save_buffers(tmp_path, mle.buffers().values())
    begun = {"buffer_file": str(known)}
    small_trainer(tmp_path / "mle", **MLE | begun).train()
    with pytest.raises(RunError, match="objective was 'mle', is 'mle_aug'"):
        small_trainer(tmp_path / "branch", **SAMPLING | begun).train(branch=Run(tmp_path / "mle"))


def test_other_problems_are_refused(mle, tmp_path):
    other = Run(tmp_path / "other")
    shutil.copytree(mle.directory, other.directory)
    environment = other.environment
    environment["data"]["train"]["sha256"] = "0" * 64
    other.write_environment(environment)
    with pytest.raises(RunError, match="the training problems are others"):
        small_trainer(tmp_path / "branch", **SAMPLING).train(branch=other)


def test_what_a_run_of_an_older_version_does_not_say_is_the_default(mle, tmp_path):
    older = Run(tmp_path / "older")
    shutil.copytree(mle.directory, older.directory)
    samples = {key: value for key, value in mle.config.items() if key not in ("self_sampling", "objective")}
    older.write_config(samples)  # so it samples from its first step on
    with pytest.raises(RunError, match="from before the first sample at step 1"):
        small_trainer(tmp_path / "branch", **SAMPLING).train(branch=older)


def test_a_damaged_checkpoint_is_not_branched_from(mle, tmp_path):
    damaged = Run(tmp_path / "damaged")
    shutil.copytree(mle.directory, damaged.directory)
    (damaged.checkpoint(4) / "optimizer.pt").unlink()
    with pytest.raises(RunError, match="no good checkpoint"):
        small_trainer(tmp_path / "branch", **SAMPLING).train(branch=damaged)


def test_lines_and_evaluations_of_shared_steps_are_there_once(mle, tmp_path):
    small_trainer(tmp_path / "branch", **SAMPLING).train(branch=mle)
    branch = Run(tmp_path / "branch")
    assert [line["step"] for line in branch.metrics()] == [line["step"] for line in mle.metrics()]
    assert branch.evaluated_steps() == [4, 8]
    assert min(sample.step for sample in branch.samples()) == 5

"""Runs that are stopped, damaged, refused or short of disk: a clear error, or the last good checkpoint."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from training_cases import apples, small_trainer, tiny_gpt_neo
from transformers import TrainerCallback

from partway.errors import ModelError, RunError
from partway.runs import Run, checkpoints
from partway.runs.checkpoints import writing_alone
from partway.training import SelfSamplingTrainer
from partway.training.callbacks import Interrupted, Watcher

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished run."""
    directory = tmp_path_factory.mktemp("finished") / "run"
    small_trainer(directory).train()
    return directory


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A copy of the finished run that was killed just before its end."""
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    shutil.rmtree(directory / "final")
    return directory


def result(directory: Path) -> dict[str, bytes]:
    names = ["metrics.jsonl", "samples/00000001.jsonl", "final/model.safetensors", "final/buffer.jsonl"]
    return {name: (directory / name).read_bytes() for name in names}


class Signaller(TrainerCallback):
    """Sends a signal to this process in the middle of a step."""

    def __init__(self, step: int, number: int, times: int = 1) -> None:
        self.step, self.number, self.times = step, number, times

    def on_step_begin(self, args, state, control, **_):
        if state.global_step == self.step - 1:
            for _time in range(self.times):
                os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(
    ("number", "step"), [(signal.SIGINT, 3), (signal.SIGTERM, 5)], ids=["end of an epoch", "within one"]
)
def test_a_signal_saves_first_and_the_resumed_run_ends_the_same(finished, tmp_path, number, step):
    directory = tmp_path / "run"
    trainer = small_trainer(directory)
    trainer.add_callback(Signaller(step, number))
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match=f"checkpoint-{step} is saved") as interrupted:
        trainer.train()
    assert interrupted.value.signal == number
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert checkpoints.flaw(directory / f"checkpoint-{step}") is None
    small_trainer(directory).train(resume_from_checkpoint=True)
    assert result(directory) == result(finished)


def test_a_signal_during_an_evaluation_is_answered_at_once_and_obeyed_after_it(tmp_path, capfd):
    trainer = small_trainer(tmp_path / "run")
    answers: list[str] = []

    class Interrupting(Watcher):
        def evaluating(self, progress):
            if not trainer.recorder.signals.received:
                os.kill(os.getpid(), signal.SIGINT)
                answers.append(capfd.readouterr().err)

    trainer.recorder.watchers.append(Interrupting())
    with pytest.raises(Interrupted):
        trainer.train()
    said = "\npartway: stops and saves after this step or evaluation; Ctrl-C again stops now\n"
    assert answers == [said], "before anything else is done"
    evaluated = [line["step"] for line in trainer.run.metrics() if "eval_pass@1" in line]
    assert evaluated == [4], "not cut short"


def test_without_watchers_remarks_go_to_standard_error(tmp_path, capsys):
    trainer = small_trainer(tmp_path / "run")
    trainer.recorder.watchers.clear()
    trainer.recorder.say("resuming from checkpoint-5")
    assert capsys.readouterr().err == "partway: resuming from checkpoint-5\n"


def test_a_second_interrupt_does_not_wait(tmp_path):
    trainer = small_trainer(tmp_path / "run")
    trainer.add_callback(Signaller(2, signal.SIGINT, times=2))
    with pytest.raises(KeyboardInterrupt) as interrupted:
        trainer.train()
    assert not isinstance(interrupted.value, Interrupted)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: os.truncate(path / "model.safetensors", 100), "model.safetensors has 100 bytes"),
        (lambda path: (path / "optimizer.pt").unlink(), "optimizer.pt is missing"),
        (lambda path: (path / "manifest.json").write_text("{"), "manifest.json cannot be read"),
        (lambda path: (path / "manifest.json").write_text("[1]"), "manifest.json cannot be read"),
        (lambda path: (path / "manifest.json").write_text("[" * 99_999), "manifest.json cannot be read"),
        (lambda path: (path / "manifest.json").write_text('{"a": 5}'), "manifest.json cannot be read"),
        (lambda path: flip_a_byte(path / "buffer.jsonl"), "buffer.jsonl is not as it was written"),
    ],
    ids=["truncated", "missing", "no manifest", "a list", "too deep", "no row", "flipped"],
)
def test_damage_is_noticed(copy, damage, reason):
    damage(copy / "checkpoint-8")
    assert reason in checkpoints.flaw(copy / "checkpoint-8")


def test_a_damaged_checkpoint_is_named_and_passed_over(copy, finished, capsys):
    flip_a_byte(copy / "checkpoint-8" / "buffer.jsonl")
    trainer = small_trainer(copy, disable_tqdm=False)
    trainer.train(resume_from_checkpoint=True)
    said = capsys.readouterr().err
    assert "checkpoint-8 is damaged: buffer.jsonl is not as it was written" in said
    assert "resuming from checkpoint-4" in said
    assert result(copy) == result(finished)
    assert checkpoints.flaw(copy / "checkpoint-8") is None


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def content(directory: Path) -> dict[Path, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != ".lock")
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: (path / "manifest.json").write_text("{"), r"manifest.json cannot be read \(JSON"),
        (lambda path: (path / "manifest.json").unlink(), r"manifest.json cannot be read \(FileNotFound"),
    ],
    ids=["garbled", "gone"],
)
def test_a_run_whose_manifests_are_all_lost_is_refused_untouched_unless_forced(
    copy, finished, damage, reason
):
    for path in copy.glob("checkpoint-*"):
        damage(path)
    before = content(copy)
    with pytest.raises(
        RunError,
        match=rf"no checkpoint is whole: checkpoint-8 is damaged: {reason}.*; checkpoint-4 .*"
        r"another output_dir, or --force to go on from checkpoint-8 as it is$",
    ):
        small_trainer(copy).train(resume_from_checkpoint=True)
    assert content(copy) == before
    small_trainer(copy).train(resume_from_checkpoint=True, force=True)
    assert result(copy) == result(finished)
    assert before.keys() <= content(copy).keys(), "the other one may be the best"
    assert checkpoints.flaw(copy / "checkpoint-8") is None


def test_a_run_whose_checkpoints_all_lost_weights_is_refused_untouched_also_by_force(copy):
    for path in copy.glob("checkpoint-*"):
        flip_a_byte(path / "model.safetensors")
    before = content(copy)
    for force in (False, True):
        with pytest.raises(RunError, match=r"put back what is lost, or start in another output_dir$"):
            small_trainer(copy).train(resume_from_checkpoint=True, force=force)
    assert content(copy) == before


def test_a_finished_run_without_checkpoints_is_not_made_again(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoint-*"))
    with pytest.raises(RunError, match="it has ended, and its checkpoints are gone"):
        small_trainer(tmp_path / "run").train(resume_from_checkpoint=True)
    assert (tmp_path / "run/final/model.safetensors").exists()


def test_killed_before_its_first_checkpoint_was_complete_it_starts_again(copy, finished, capsys):
    shutil.rmtree(copy / "checkpoint-8")
    (copy / "checkpoint-4/manifest.json").unlink()
    for name in ("metrics.jsonl", "timings.jsonl"):
        lines = (copy / name).read_text().splitlines(keepends=True)
        (copy / name).write_text("".join(line for line in lines if json.loads(line)["step"] <= 4))
    small_trainer(copy, disable_tqdm=False).train(resume_from_checkpoint=True)
    assert "no checkpoint yet, starting from step 0" in capsys.readouterr().err
    assert result(copy) == result(finished)


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "cut"])
def test_lost_logs_do_not_stop_a_run(copy, finished, capsys, is_gone):
    shutil.rmtree(copy / "checkpoint-8")
    logs = [copy / "samples/00000001.jsonl", copy / "timings.jsonl"]
    for path in logs:
        path.unlink() if is_gone else os.truncate(path, 50)
    trainer = small_trainer(copy, disable_tqdm=False)
    trainer.train(resume_from_checkpoint=True)
    said = capsys.readouterr().err
    assert "samples/00000001.jsonl has lost lines" in said
    assert "timings.jsonl has lost lines" in said
    for name in ("metrics.jsonl", "final/model.safetensors", "final/buffer.jsonl"):
        assert (copy / name).read_bytes() == (finished / name).read_bytes()
    late = [row for row in Run(finished).samples() if row.step > 4]
    assert list(trainer.run.samples()) == late
    assert {*trainer.run.environment["resumed"][-1]["lost"]} == {"samples/00000001.jsonl", "timings.jsonl"}


def test_resuming_what_never_started_starts_only_if_asked_to(tmp_path, finished):
    with pytest.raises(RunError, match=r"there is no run to resume; leave --resume out .* --resume auto"):
        small_trainer(tmp_path / "run").train(resume_from_checkpoint=True)
    small_trainer(tmp_path / "run").train(resume_from_checkpoint="auto")
    assert result(tmp_path / "run") == result(finished)


def test_resuming_with_other_settings_is_refused_by_name_unless_forced(copy):
    before = (copy / "metrics.jsonl").read_bytes()
    trainer = small_trainer(copy, learning_rate=5e-4, objective="mml")
    with pytest.raises(
        RunError, match=r"learning_rate was 0\.001, is 0\.0005; objective was 'mle_aug', is 'mml'"
    ):
        trainer.train(resume_from_checkpoint=True)
    assert (copy / "metrics.jsonl").read_bytes() == before, "a refused run is untouched"
    assert trainer.run.config["learning_rate"] == 1e-3


class Rates(TrainerCallback):
    """Notes the learning rate and the weight decay of every step."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[float, float]] = {}

    def on_step_end(self, args, state, control, optimizer=None, **_):
        group = optimizer.param_groups[0]
        self.seen[state.global_step] = (group["lr"], group["weight_decay"])


def rates_of(trainer, **options) -> dict[int, tuple[float, float]]:
    rates = Rates()
    trainer.add_callback(rates)
    trainer.train(**options)
    return rates.seen


def test_settings_forced_on_a_resumed_run_are_used_and_only_then_written(copy, tmp_path):
    shutil.rmtree(copy / "checkpoint-8")
    new = {"learning_rate": 5e-4, "weight_decay": 0.0, "logging_steps": 1}
    trainer = small_trainer(copy, **new)
    rates = rates_of(trainer, resume_from_checkpoint=True, force=True)
    expected = rates_of(small_trainer(tmp_path / "fresh", **new))
    assert rates == {step: rate for step, rate in expected.items() if step > 4}
    assert {key: trainer.run.config[key] for key in new} == new
    assert [line["step"] for line in trainer.run.metrics() if "loss" in line] == [3, 5, 6, 7, 8]
    (resumed,) = trainer.run.environment["resumed"]
    assert "learning_rate was 0.001, is 0.0005" in resumed["changed"]


def test_early_stopping_may_be_forced_on_a_resumed_run(copy):
    shutil.rmtree(copy / "checkpoint-8")
    small_trainer(copy, early_stopping_patience=5).train(resume_from_checkpoint=True, force=True)
    small_trainer(copy, early_stopping_patience=5).train(resume_from_checkpoint=True)


def test_settings_that_could_not_be_taken_up_are_not_written(copy, monkeypatch):
    trainer = small_trainer(copy, learning_rate=5e-4)
    monkeypatch.setattr(trainer, "_load_optimizer_and_scheduler", lambda checkpoint: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trainer.train(resume_from_checkpoint=True, force=True)
    assert trainer.run.config["learning_rate"] == 1e-3


def test_a_finished_run_can_be_extended_and_ends_as_if_it_had_been_that_long(finished, tmp_path):
    """With a constant learning rate, that is: other schedules depend on where the end is."""
    constant = {"lr_scheduler_type": "constant_with_warmup", "logging_steps": 4}
    long = small_trainer(tmp_path / "long", max_steps=12, **constant)
    long.train()
    extended = small_trainer(tmp_path / "run", **constant)
    extended.train()
    extended = small_trainer(tmp_path / "run", max_steps=12, **constant)
    extended.train(resume_from_checkpoint=True)
    assert result(tmp_path / "run") == result(tmp_path / "long")
    assert extended.run.config["max_steps"] == 12


def test_an_extended_run_follows_the_schedule_of_its_new_length(copy, tmp_path):
    shutil.copytree(copy / "checkpoint-8", copy / "final")
    rates = rates_of(small_trainer(copy, max_steps=12), resume_from_checkpoint=True)
    expected = rates_of(small_trainer(tmp_path / "fresh", max_steps=12))
    assert rates == {step: rate for step, rate in expected.items() if step > 8}


def test_a_shorter_run_is_another_one(copy):
    with pytest.raises(RunError, match="max_steps was 8, is 6"):
        small_trainer(copy, max_steps=6).train(resume_from_checkpoint=True)


def test_what_a_killed_process_left_is_removed_at_the_next_start(copy, finished):
    (copy / "evaluations" / ".step-8.json.0a1b2c3d.tmp").write_text("{")
    (copy / ".checkpoint-12.0a1b2c3d.tmp").mkdir()
    (copy / ".notes.tmp").write_text("not ours")
    shutil.copytree(copy / "checkpoint-4", copy / "checkpoint-2")
    small_trainer(copy, save_total_limit=2).train(resume_from_checkpoint=True)
    assert not list(copy.rglob(".*.????????.tmp"))
    assert (copy / ".notes.tmp").exists()
    assert sorted(path.name for path in copy.glob("checkpoint-*")) == ["checkpoint-4", "checkpoint-8"]
    assert result(copy) == result(finished)


def test_what_a_process_killed_at_its_start_left_is_removed_too(tmp_path):
    (tmp_path / "run" / "problems").mkdir(parents=True)
    (tmp_path / "run" / "problems" / ".train.jsonl.0a1b2c3d.tmp").write_text("{")
    small_trainer(tmp_path / "run", max_steps=1).train()
    assert not list(tmp_path.rglob(".*.tmp"))


def test_a_run_has_one_writer(copy, monkeypatch):
    with writing_alone(copy, pytest.fail), pytest.raises(RunError) as refused:
        small_trainer(copy).train(resume_from_checkpoint=True)
    assert f"another process is training in it (process {os.getpid()} on " in str(refused.value)
    small_trainer(copy).train(resume_from_checkpoint=True)
    assert not (copy / ".lock").exists()


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    hold = "import sys, time; from pathlib import Path; from partway.runs.checkpoints import writing_alone\n"
    hold += "with writing_alone(Path(sys.argv[1]), print): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match=f"process {holder.pid} on "), writing_alone(tmp_path, pytest.fail):
            pass
        holder.kill()
    assert (tmp_path / ".lock").exists(), "nobody tidied up"
    with writing_alone(tmp_path, pytest.fail):
        pass


def test_where_nothing_can_be_locked_it_is_said(tmp_path, monkeypatch):
    def unsupported(lock):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    said: list[str] = []
    monkeypatch.setattr(checkpoints.FileLock, "acquire", unsupported)
    with writing_alone(tmp_path, said.append):
        pass
    assert f"cannot be locked ([Errno {errno.ENOLCK}]" in said[0]


def test_broken_weights_are_one_clear_error(tmp_path):
    trainer = SelfSamplingTrainer(tiny_gpt_neo(apples(10)), small_trainer(tmp_path / "run").args, apples(10))
    torch.nn.init.constant_(trainer.model.lm_head.weight, math.nan)
    with pytest.raises(ModelError, match="outputs are not finite numbers"):
        trainer.train()


@pytest.mark.parametrize("content", ["{}", "[]", '{"problems_per_step": 4, "data": 5}'])
def test_an_environment_that_was_changed_is_one_clear_error(copy, content):
    (copy / "environment.json").write_text(content)
    with pytest.raises(
        RunError, match=r"its environment is not as it was|environment\.json: (expected names|data is 5)"
    ):
        small_trainer(copy).train(resume_from_checkpoint=True)


def test_resuming_with_another_batch_is_refused(copy):
    with pytest.raises(RunError, match="effective_batch_size was 4, is 5; problems per step was 4, is 5"):
        small_trainer(copy, effective_batch_size=5).train(resume_from_checkpoint=True)


def test_resuming_with_other_keys_of_keeping_is_allowed(copy):
    trainer = small_trainer(copy, save_total_limit=5, report_to="none", run_name="again")
    trainer.train(resume_from_checkpoint=True)
    assert trainer.run.is_finished


def test_resuming_with_other_problems_or_another_model_is_refused(copy, tmp_path):
    args = small_trainer(copy).args
    problems = apples(10)
    others = SelfSamplingTrainer(tiny_gpt_neo(problems), args, apples(10, seed=5), apples(3, seed=1))
    with pytest.raises(RunError, match=r"the training problems are others \(10 then, 10 now\)"):
        others.train(resume_from_checkpoint=True)
    other = SelfSamplingTrainer(tiny_gpt_neo(problems, seed=1), args, problems, apples(3, seed=1))
    with pytest.raises(RunError, match="the model before training is another"):
        other.train(resume_from_checkpoint=True)


@pytest.mark.parametrize("limit", [None, 1])
def test_a_full_disk_is_one_clear_error_and_the_last_checkpoint_stays(tmp_path, finished, monkeypatch, limit):
    directory = tmp_path / "run"
    trainer = small_trainer(directory, save_total_limit=limit)
    save = trainer.buffers.write

    def full(target):
        if trainer.state.global_step == 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(target)

    monkeypatch.setattr(trainer.buffers, "write", full)
    with pytest.raises(
        RunError, match=r"cannot write checkpoint-8 at step 8 \(No space left on device\); make room"
    ):
        trainer.train()
    assert [path.name for path in directory.glob("*checkpoint*")] == ["checkpoint-4"]
    monkeypatch.undo()
    small_trainer(directory).train(resume_from_checkpoint=True)
    assert result(directory) == result(finished)


def test_a_directory_that_cannot_be_written_is_named_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RunError, match=r"file/run: cannot be written \(Not a directory\); choose another output_dir"
    ):
        small_trainer(tmp_path / "file" / "run").train()


def test_old_checkpoints_go_but_the_best_stays(tmp_path, monkeypatch):
    from partway.evaluation import Evaluation

    trainer = small_trainer(tmp_path / "run", eval_steps=2, save_steps=2, save_total_limit=2)
    scores = {2: 0.9, 4: 0.1, 6: 0.2, 8: 0.3}
    monkeypatch.setattr(
        Evaluation, "scalars", lambda self, prefix: {"eval_pass@1": scores[trainer.state.global_step]}
    )
    trainer.train()
    assert list(trainer.run.checkpoints()) == [2, 8]

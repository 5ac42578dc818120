"""Writes the run directory during training: metrics, checkpoints that resume exactly, the final model.

`Recorder` is a callback of transformers' Trainer; where Trainer has no event, our trainer calls it. It does
not know what a step does: what it writes comes from the account.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import EarlyStoppingCallback, TrainerCallback
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import rotate_checkpoints

from partway import registry
from partway.errors import RunError
from partway.evaluation import EvaluationProgress
from partway.files import atomic_directory, remove_remains
from partway.models.loading import no_progress_bar
from partway.runs import Run, checkpoints
from partway.runs.checkpoints import RunProgress, writing_alone
from partway.runs.rows import now
from partway.training import resuming
from partway.training.account import Account, Clock
from partway.training.callbacks import RESUME, Interrupted, StopSignals, Turns, Watcher
from partway.training.distributed import from_first

if TYPE_CHECKING:
    from partway.training.trainer import SelfSamplingTrainer

AUTO = "auto"  # resume if there is a run, else start one


class Recorder(TrainerCallback):  # type: ignore[misc]
    """Keeps a run that can be killed at any moment and continued to the same end."""

    def __init__(self, trainer: SelfSamplingTrainer, account: Account, remarks: Sequence[str]) -> None:
        self.trainer = trainer
        self.args = args = trainer.args
        self.account = account
        self.run = account.run
        self.environment = resuming.environment_of(trainer)
        self.clock = Clock()
        self.signals = StopSignals(trainer.is_world_process_zero())
        self.stop_signal = 0  # agreed among processes
        self.resumed: RunProgress | None = None
        self.is_extended = self.has_surplus = False
        self.last_logged = 0
        self._random_state: Tensor | None = None  # as the last step left it
        self.group_settings: list[dict[str, Any]] = []  # the optimiser's, before a checkpoint is loaded

        self.watchers: list[Watcher] = [part.load()(trainer) for part in registry.parts("callbacks").values()]
        for callback in (self, *self.watchers, Turns(trainer)):
            trainer.add_callback(callback)
        if args.early_stopping_patience is not None:
            trainer.add_callback(EarlyStoppingCallback(args.early_stopping_patience))
        for remark in remarks:
            self.say(remark)

    @contextmanager
    def keeping(self, resume: bool | str | None, force: bool, branch: Run | None) -> Iterator[Path | None]:
        """While open, training goes on from the checkpoint this gives; then the final model is written."""
        with self._lock():
            # With the lock held: two processes that both begin would write over each other.
            checkpoint = self._begin(resume, force, branch)
            self.clock.start()
            with self._drawing(), self.signals, ExitStack() as watched:
                for watcher in self.watchers:
                    watched.enter_context(watcher)
                yield checkpoint
            self._write_final()

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """When training ends, what draws the samples rests; when it fails, it is closed."""
        try:
            yield
        except BaseException:
            self.trainer.explorer.close()
            raise
        self.trainer.explorer.rest()

    def _lock(self) -> AbstractContextManager[None]:
        """Only the first process writes, so only it holds the lock."""
        is_first = self.trainer.is_world_process_zero()
        return writing_alone(self.run.directory, self.say) if is_first else nullcontext()

    def _begin(self, resume: bool | str | None, force: bool, branch: Run | None) -> Path | None:
        """Write what a new run begins with, or find where to go on and cut what came after."""
        checkpoint, is_extended = None, False
        is_first = self.trainer.is_world_process_zero()
        if is_first:
            if not resume or (resume == AUTO and not self.run.is_started):
                checkpoint = self._start(branch)
            else:
                resuming.check_started(self.run.directory)
                is_extended = resuming.is_longer(self.run.config, self.args.settings)
                checkpoint = self._resume(force)
            model = self.trainer.accelerator.unwrap_model(self.trainer.model)
            if getattr(model, "peft_config", None):
                with self.writing("the base of the adapter"):
                    save_base = registry.part("adapters", "save_base")
                    save_base(model, self.trainer.processing_class, self.run.base)
        # Files decide, and only the first process looks: two could see different ones.
        checkpoint, self.is_extended = from_first(self.trainer.accelerator, (checkpoint, is_extended))
        if checkpoint is not None:
            self.resumed = RunProgress.read(checkpoint)
            self.last_logged = self.resumed.last_logged
            self.account.go_back_to(self.resumed, checkpoint, is_main=is_first)
        return checkpoint

    def _start(self, branch: Run | None) -> Path | None:
        resuming.check_free(self.run.directory)
        self._clean()
        take_over = None
        if branch is not None:
            shared, take_over = registry.part("replays", "branch")(branch, self.args, self.environment)
            self.environment["branched"] = "/".join(shared.resolve().parts[-2:])
            self.say(f"branching from {shared}")
        with self.writing("the settings"):
            self.run.write_environment(self.environment)
            self._write_settings()
            return take_over and take_over(self.run, self.account.buffers)

    def _clean(self) -> None:
        """Remove what a killed process left half-written."""
        remove_remains(self.run.directory)
        checkpoints.remove_unsealed(self.run)

    def _write_settings(self) -> None:
        self.run.write_problems("train", self.trainer.train_dataset)
        if self.trainer.eval_dataset:
            self.run.write_problems("dev", self.trainer.eval_dataset)
        self.run.write_config(self.args.settings)  # last: with it the run exists

    def _resume(self, force: bool) -> Path | None:
        if not force:
            resuming.check_same_run(self.run, self.args.settings, self.environment)
        checkpoint, remarks = checkpoints.last_good(self.run, force=force)
        progress = None if checkpoint is None else RunProgress.read(checkpoint)
        step, files = (0, {}) if progress is None else (progress.step, progress.files)
        self._clean()
        for remark in remarks:
            self.say(remark)
        self.say(
            f"resuming from {checkpoint.name}" if checkpoint else "no checkpoint yet, starting from step 0"
        )
        # What came after the checkpoint is made again, and would otherwise be there twice.
        lost = self.run.cut(step, files)
        for name in lost:
            self.say(f"{name} has lost lines since then; the run goes on without them")
        environment = self.run.environment
        resumed: dict[str, Any] = {"time": now(), "step": step}
        if lost:
            resumed["lost"] = lost
        if changed := list(resuming.changes(self.run.config, self.args.settings).values()):
            resumed["changed"] = changed
        self.environment = {
            **(self.environment if force else environment),
            "started": environment.get("started"),
            "resumed": [*environment.get("resumed", []), resumed],
        }
        self.has_surplus = not remarks  # what is damaged may be newer than what is good
        return checkpoint

    def is_over(self, max_steps: int) -> bool:
        """Whether the run had made all its steps when it stopped; then only the end is missing."""
        if self.resumed is None:
            return False
        # A run that came to its end may be asked for more steps: then it has not ended.
        return (self.resumed.ended and not self.is_extended) or self.resumed.step >= max_steps

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """All is loaded: settings take the place of a checkpoint's, and are written."""
        state.compute_steps(args, state.max_steps)
        if self.resumed is not None and not self.trainer.is_deepspeed_enabled:
            resuming.apply_settings(self.trainer.optimizer, self.trainer.lr_scheduler, self.group_settings)
        for callback in self.trainer.callback_handler.callbacks:
            if isinstance(callback, ExportableState):  # new to a run that was resumed by force
                state.stateful_callbacks.setdefault(type(callback).__name__, callback.state())
        if not self.trainer.is_world_process_zero() or not self.environment["resumed"]:
            return
        with self.writing("the settings"):
            self.run.write_environment(self.environment)
            self._write_settings()
            if not self.is_over(state.max_steps):
                shutil.rmtree(self.run.final, ignore_errors=True)  # there will be a new one
            if self.has_surplus:
                self._rotate()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Kept until the next step: a checkpoint made when servers fail must say what this one left.
        self._random_state = torch.get_rng_state()
        # The last line is due however few steps came since the one before.
        control.should_log |= state.global_step >= state.max_steps
        # At the end of an epoch there may be more to do before saving.
        if self.stop_signal and state.global_step % self.trainer.batches.order.steps_per_epoch:
            control.should_save = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.stop_signal:
            control.should_save = True

    def line(self, logs: dict[str, float]) -> dict[str, float]:
        """Complete a line and add it to the run; gives what trackers are told."""
        state, accelerator = self.trainer.state, self.trainer.accelerator
        step, steps = state.global_step, state.global_step - self.last_logged
        with self.writing("a line of metrics"):
            if "loss" in logs:  # a line of training; the account's own mean takes its place
                logs = {**logs, **self.account.line(accelerator, steps)}
                self.last_logged = step
            elif "train_runtime" in logs:
                logs = self.account.last_line(accelerator, step) | {"final_step": self.final_step}
        timings = self.clock.line(step, steps)
        timings |= self.trainer.engine.meter(timings["seconds"])
        if self.trainer.is_world_process_zero():
            with self.writing("a line of metrics"):
                self.run.append_metrics({"step": step, "epoch": state.epoch, **logs}, timings)
        return {**logs, **{key: value for key, value in timings.items() if key not in ("step", "time")}}

    @contextmanager
    def checkpoint(self) -> Iterator[None]:
        """Make a checkpoint of what transformers writes inside and all else that resuming needs.

        It is one when its manifest is there, which comes last. Then training stops, if it was asked to.
        """
        path, wait = self.run.checkpoint(self.trainer.state.global_step), self._wait
        is_first, limit = self.trainer.is_world_process_zero(), self.args.save_total_limit
        with self.clock.span("saving"), self.writing(path.name), no_progress_bar(), ExitStack() as undone:
            progress = self._progress()
            if is_first:
                shutil.rmtree(path, ignore_errors=True)  # damaged, or it would not be made again
                undone.callback(shutil.rmtree, path, ignore_errors=True)
            wait()
            self.args.save_total_limit = None  # older ones go when this one is complete, not before
            try:
                yield
            finally:
                self.args.save_total_limit = limit
            wait()
            if self.args.should_save:
                self.account.buffers.write(path)
                progress.write(path)
                checkpoints.seal(path)
                self._rotate()
            undone.pop_all()
            wait()
        # Here and nowhere else: whatever stops a run, what it has is saved by now.
        if self.stop_signal:
            raise Interrupted(self.stop_signal, path.name)

    def save_now(self) -> str:
        """Save a checkpoint, unless a part of the step was explored already; says how to go on."""
        trainer, step = self.trainer, self.trainer.state.global_step
        if trainer.explored_step == trainer.step or not step:
            return f"{RESUME} goes on from the last checkpoint"
        path = self.run.checkpoint(step)
        if step not in self.run.checkpoints():
            assert self._random_state is not None, "a step was made since the last checkpoint"
            torch.set_rng_state(self._random_state)  # a new epoch has drawn from it, and will again
            trainer._save_checkpoint(trainer.model, None)
        return f"{path.name} is saved, {RESUME} goes on from there"

    def _wait(self) -> None:
        self.trainer.accelerator.wait_for_everyone()

    def _rotate(self) -> None:
        best = self.trainer.state.best_model_checkpoint
        rotate_checkpoints(str(self.run.directory), self.args.save_total_limit, best)

    def _progress(self) -> RunProgress:
        """How far the run is."""
        step = self.trainer.state.global_step
        return RunProgress(
            step=step,
            ended=bool(self.trainer.control.should_training_stop),
            last_logged=self.last_logged,
            **self.account.sums(self.trainer.accelerator, step),
        )

    @property
    def final_step(self) -> int:
        """The step whose weights the final model has, or would have if training ended now."""
        state = self.trainer.state
        is_best = self.args.load_best_model_at_end and state.best_model_checkpoint is not None
        return int(state.best_global_step if is_best else state.global_step)

    def _write_final(self) -> None:
        """The final model, with its card and the last buffers, under its name only when complete."""
        is_first, accelerator = self.trainer.is_world_process_zero(), self.trainer.accelerator
        whole = atomic_directory(self.run.final) if is_first else nullcontext(self.run.final)
        with self.writing("the final model"), no_progress_bar():
            with whole as own:
                directory = from_first(accelerator, own)  # all write into one, which the first renames
                self.trainer.save_model(str(directory), _internal_call=True)
                if self.args.should_save:
                    self.account.buffers.write(directory)
                    for watcher in self.watchers:
                        watcher.finishing(directory, self.final_step)
                self._wait()
                if is_first:
                    checkpoints.seal(directory)
            self._wait()

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turn a failure to write into an error that says what to do."""
        try:
            yield
        except (OSError, SafetensorError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "inline_container" not in str(error):
                raise  # torch.save has no error of its own for a file that cannot be written
            torch_said = "is the disk full?" if isinstance(error, RuntimeError) else error
            reason = getattr(error, "strerror", None) or torch_said
            raise RunError(
                f"{self.run.directory}: cannot write {what} at step {self.trainer.state.global_step} "
                f"({reason}); make room or allow writing, then --resume"
            ) from error

    def say(self, line: str) -> None:
        """Tell whoever watches something that is not a metric."""
        if not self.watchers and self.args.process_index == 0:
            print(f"partway: {line}", file=sys.stderr, flush=True)
        for watcher in self.watchers:
            watcher.say(line)

    def watch(self, evaluation: EvaluationProgress) -> None:
        """Show how far an evaluation is."""
        for watcher in self.watchers:
            watcher.evaluating(evaluation)

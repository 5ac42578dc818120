"""A transformers Trainer that keeps a run directory: every line, atomic checkpoints, exact resume.

It knows nothing of what a step does; what there is to write it gets from the account that it holds.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from transformers import PrinterCallback, ProgressCallback, Trainer, TrainerCallback
from transformers.trainer_callback import ExportableState
from transformers.trainer_utils import rotate_checkpoints

from partway.errors import RunError
from partway.evaluation import EvaluationProgress
from partway.files import remove_remains
from partway.models.loading import no_progress_bar
from partway.runs import Run, checkpoints
from partway.runs.checkpoints import RunProgress
from partway.runs.locks import writing_alone
from partway.runs.rows import now
from partway.runs.run import TRAINER_STATE
from partway.training import resuming
from partway.training.account import Account, Clock
from partway.training.best import evaluation_at, wins_tie
from partway.training.branching import last_shared, take_over
from partway.training.cards import model_card
from partway.training.config import SelfSamplingConfig
from partway.training.display import display
from partway.training.distributed import from_first
from partway.training.output_directory import check_free, check_started, check_writable
from partway.training.signals import Interrupted, StopSignals
from partway.training.starting_model import save_nameless_base
from partway.training.uploading import reaching_hub, upload

AUTO = "auto"  # resume if there is a run, else start one


class SavingHooks(TrainerCallback):  # type: ignore[misc]
    """Tells the trainer when all is loaded, logs the last step, and saves if a signal came."""

    def __init__(self, trainer: RecordingTrainer, steps_per_epoch: int) -> None:
        self.trainer = trainer
        self.steps_per_epoch = steps_per_epoch

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.after_loading()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # The last line is due however few steps came since the one before.
        control.should_log |= state.global_step >= state.max_steps
        # At the end of an epoch there may be more to do before saving.
        if self.trainer.stop_signal and state.global_step % self.steps_per_epoch:
            control.should_save = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.trainer.stop_signal:
            control.should_save = True


class RecordingTrainer(Trainer):  # type: ignore[misc]
    """What is common to a run that can be killed at any moment and continued to the same end."""

    args: SelfSamplingConfig
    control: Any

    def __init__(
        self, account: Account, environment: Mapping[str, Any], *, steps_per_epoch: int, **kwargs: Any
    ) -> None:
        self.account = account
        self.run = run = account.run
        self.environment = dict(environment)
        self.clock = Clock()
        self.meter: Callable[[float], dict[str, float]] = lambda seconds: {}  # more timings of so long
        self.signals = StopSignals()
        self.stop_signal = 0  # agreed among processes
        args = kwargs["args"]
        self.display = display(quiet=bool(args.disable_tqdm) or args.process_index > 0)
        self.has_ended = self.has_surplus = False
        self.last_logged = 0
        check_writable(run.directory)
        super().__init__(**kwargs)
        self.remove_callback(PrinterCallback)  # `display` shows what these would
        self.remove_callback(ProgressCallback)
        self.add_callback(SavingHooks(self, steps_per_epoch))
        self.add_callback(self.display)

    def train(
        self,
        resume_from_checkpoint: bool | str | None = None,
        force: bool = False,
        branch: Run | None = None,
        **kwargs: Any,
    ) -> Any:
        """Train to the end, from the last good checkpoint of the run if `resume_from_checkpoint` is set.

        If it is "auto" and there is no run yet, one is started.
        `force` continues although settings, problems or the model differ from those of the run.
        A new run takes its steps before the first sample from `branch`, another run that has made the same.
        """
        with self._lock():
            # With the lock held: two processes that both begin would write over each other.
            checkpoint = self._begin(resume_from_checkpoint, force, branch)
            self.clock = Clock()
            with self.signals, self.display:
                result = super().train(resume_from_checkpoint=checkpoint and str(checkpoint), **kwargs)
            self._write_final()
        # Outside the lock: the run is finished, whatever becomes of the upload.
        if self.args.push_to_hub:
            self.push_to_hub()
        return result

    def _lock(self) -> AbstractContextManager[None]:
        """Only the first process writes, so only it holds the lock."""
        return writing_alone(self.run.directory, self.say) if self.is_world_process_zero() else nullcontext()

    def _begin(self, resume: bool | str | None, force: bool, branch: Run | None) -> Path | None:
        """Write what a new run begins with, or find where to go on and cut what came after."""
        checkpoint, is_longer = None, False
        if self.is_world_process_zero():
            remove_remains(self.run.directory)
            if not resume or (resume == AUTO and not self.run.is_started):
                checkpoint = self._start(branch)
            else:
                check_started(self.run.directory)
                is_longer = resuming.is_longer(self.run.config, self.args.settings)
                checkpoint = self._resume(force)
        # Files decide, and only the first process looks: two could see different ones.
        checkpoint, is_longer = from_first(self.accelerator, (checkpoint, is_longer))
        if checkpoint is not None:
            progress = RunProgress.read(checkpoint)
            # A run that came to its end may be asked for more steps: then it has not ended.
            self.has_ended, self.last_logged = progress.ended and not is_longer, progress.last_logged
            is_main = self.is_world_process_zero()
            self.account.go_back_to(progress, checkpoint, is_main=is_main)
        return checkpoint

    def _start(self, branch: Run | None) -> Path | None:
        check_free(self.run.directory)
        shared = None
        if branch is not None:
            shared = last_shared(branch, self.args, self.environment)
            self.environment["branched"] = "/".join(shared.resolve().parts[-2:])
            self.say(f"branching from {shared}")
        with self.writing("the settings"):
            self.run.write_environment(self.environment)
            save_nameless_base(
                self.accelerator.unwrap_model(self.model), self.processing_class, self.run.base
            )
            self._write_settings()
            return shared and take_over(shared, self.run, self.account.buffers)

    def _write_settings(self) -> None:
        self.run.write_problems("train", self.train_dataset)
        if self.eval_dataset:
            self.run.write_problems("dev", self.eval_dataset)
        self.run.write_config(self.args.settings)  # last: with it the run exists

    def _resume(self, force: bool) -> Path | None:
        if not force:
            resuming.check_same_run(self.run, self.args.settings, self.environment)
        checkpoint, remarks = checkpoints.last_good(self.run)
        step = RunProgress.read(checkpoint).step if checkpoint else 0
        for remark in remarks:
            self.say(remark)
        self.say(
            f"resuming from {checkpoint.name}" if checkpoint else "no checkpoint yet, starting from step 0"
        )
        # What came after the checkpoint is made again, and would otherwise be there twice.
        self.run.cut(step, RunProgress.read(checkpoint).files if checkpoint else {})
        environment = self.run.environment
        resumed: dict[str, Any] = {"time": now(), "step": step}
        if changed := list(resuming.changes(self.run.config, self.args.settings).values()):
            resumed["changed"] = changed
        self.environment = {
            **self.environment,  # with what a run of an older version does not name
            **({} if force else environment),
            "started": environment.get("started"),
            "resumed": [*environment.get("resumed", []), resumed],
        }
        self.has_surplus = not remarks  # what is damaged may be newer than what is good
        return checkpoint

    def after_loading(self) -> None:
        """Write down what a resumed run goes on with, now that it could be taken up."""
        if not self.is_world_process_zero() or not self.environment["resumed"]:
            return
        with self.writing("the settings"):
            self.run.write_environment(self.environment)
            self._write_settings()
            if not self.has_ended:
                shutil.rmtree(self.run.final, ignore_errors=True)  # there will be a new one
            if self.has_surplus:
                self._rotate()

    def _rotate(self) -> None:
        rotate_checkpoints(
            str(self.run.directory), self.args.save_total_limit, self.state.best_model_checkpoint
        )

    def _init_training_state(self, max_steps: int, *args: Any) -> Any:
        begun = super()._init_training_state(max_steps, *args)
        self.state.compute_steps(self.args, max_steps)  # a checkpoint brings those of its own settings
        return begun

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        settings = resuming.group_settings(self.optimizer)  # before the checkpoint's take their place
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and not self.is_deepspeed_enabled:
            resuming.apply_settings(self.optimizer, self.lr_scheduler, settings)

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        if self.has_ended or self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True  # the end was reached, only what follows it is missing
            return
        super()._run_epoch(*args, **kwargs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Complete the line, add it to the run, and hand it to the trackers."""
        step = self.state.global_step
        steps = step - self.last_logged
        with self.writing("a line of metrics"):
            if "loss" in logs:  # a line of training; the account's own mean takes its place
                logs = {**logs, **self.account.line(self.accelerator, steps)}
                self.last_logged = step
            elif "train_runtime" in logs:
                logs = self.account.last_line(self.accelerator, step) | {"final_step": self.final_step}
        timings = self.clock.line(step, steps)
        timings |= self.meter(timings["seconds"])
        if self.is_world_process_zero():
            with self.writing("a line of metrics"):
                self.run.append_metrics({"step": step, "epoch": self.state.epoch, **logs}, timings)
        super().log({**logs, **{key: value for key, value in timings.items() if key != "step"}})

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save everything that resuming needs, under its name only when complete; then stop if asked to."""
        step = self.state.global_step
        path = self.run.checkpoint(step)
        with self.clock.span("saving"), self.writing(path.name):
            progress = self._progress()
            with self._shared_directory(path) as directory:
                self._fill_checkpoint(directory, progress)
            if self.args.should_save:
                self._rotate()
        # Here and nowhere else: whatever stops a run, what it has is saved by now.
        if self.stop_signal:
            raise Interrupted(self.stop_signal, path.name)

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Decide ties too, which transformers leaves to the earliest checkpoint."""
        metric, step = self.state.best_metric, self.state.best_global_step
        if super()._determine_best_metric(metrics, trial):
            return True
        name = f"eval_{(self.args.metric_for_best_model or '').removeprefix('eval_')}"
        is_tie = step is not None and metrics.get(name) == metric
        if not is_tie or not wins_tie(metrics, evaluation_at(self.state.log_history, step)):
            return False
        self.state.best_global_step = self.state.global_step
        return True

    @property
    def final_step(self) -> int:
        """The step whose weights the final model has, or would have if training ended now."""
        is_best = self.args.load_best_model_at_end and self.state.best_model_checkpoint is not None
        return int(self.state.best_global_step if is_best else self.state.global_step)

    def _progress(self) -> RunProgress:
        """How far the run is."""
        return RunProgress(
            step=self.state.global_step,
            ended=bool(self.control.should_training_stop),
            last_logged=self.last_logged,
            **self.account.sums(self.accelerator),
        )

    def _fill_checkpoint(self, directory: Path, progress: RunProgress) -> None:
        self.save_model(str(directory), _internal_call=True)
        if not self.args.save_only_model:
            self._save_optimizer_and_scheduler(str(directory))
            self._save_scaler(str(directory))
            self._save_rng_state(str(directory))
        # By our own names: transformers' method, which ours replaces, would set this.
        if self.state.best_global_step:
            best = self.run.checkpoint(self.state.best_global_step)
            if best.is_dir() or self.state.best_global_step == self.state.global_step:
                self.state.best_model_checkpoint = str(best)
        if self.args.should_save:
            # As transformers does it in the method that ours replaces: early stopping counts on from here.
            for callback in (*self.callback_handler.callbacks, self.control):
                if isinstance(callback, ExportableState):
                    self.state.stateful_callbacks[type(callback).__name__] = callback.state()
            self.state.save_to_json(str(directory / TRAINER_STATE))
            self.account.buffers.write(directory)
            progress.write(directory)

    @contextmanager
    def _shared_directory(self, path: Path) -> Iterator[Path]:
        """One hidden directory for all processes, renamed to `path` by the first when all are done."""
        if self.is_world_process_zero():
            with checkpoints.new_checkpoint(path) as directory:
                from_first(self.accelerator, directory)
                yield directory
                self.accelerator.wait_for_everyone()  # all have written; leaving the block renames it
        else:
            yield from_first(self.accelerator, path)
            self.accelerator.wait_for_everyone()
        self.accelerator.wait_for_everyone()  # nobody goes on before it has its name

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model without a bar of its own."""
        with no_progress_bar():
            super().save_model(output_dir, _internal_call=_internal_call)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        # Tied weights are saved once; that the other name is missing is no news.
        tied = set(getattr(self.accelerator.unwrap_model(self.model), "_tied_weights_keys", None) or ())
        if not set(load_result.missing_keys) <= tied or load_result.unexpected_keys:
            super()._issue_warnings_after_load(load_result)

    def _write_final(self) -> None:
        with (
            self.writing("the final model"),
            self._shared_directory(self.run.final) as directory,
        ):
            self.save_model(str(directory), _internal_call=True)
            if self.args.should_save:
                self.account.buffers.write(directory)
                card = model_card(
                    self.args, self.run, self.final_step, is_chat=bool(self.environment.get("chat_template"))
                )
                (directory / "README.md").write_text(card, encoding="utf-8")

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turn a failure to write into an error that says what to do."""
        try:
            yield
        except (OSError, SafetensorError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "inline_container" not in str(error):
                raise  # torch.save has no error of its own for a file that cannot be written
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"{self.run.directory}: cannot write {what} at step {self.state.global_step} ({reason}); "
                "make room or allow writing, then --resume"
            ) from error

    def init_hf_repo(self, token: str | None = None) -> None:
        """Make the repository that the model is to go to; if it cannot be made, that is said at once."""
        with reaching_hub():
            super().init_hf_repo(token)

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Upload `final/`, and nothing else of the run: its card is the repository's page.

        `blocking` or not, it waits: there is nothing left to do meanwhile.
        """
        if not self.is_world_process_zero():
            return None
        if self.hub_model_id is None:
            self.init_hf_repo(token)
        commit = upload(
            self.run.final,
            self.hub_model_id,
            message=commit_message,
            token=token or self.args.hub_token,
            revision=revision or self.args.hub_revision,
        )
        self.say(f"uploaded {self.run.final} to {self.hub_model_id}")
        return commit

    def watch(self, evaluation: EvaluationProgress) -> None:
        """Show how far an evaluation is, and that a wish to stop waits for its end."""
        self.display.evaluating(evaluation)
        if self.signals.is_news():
            self.say("stops and saves after this evaluation; another Ctrl-C stops at once")

    def say(self, line: str) -> None:
        """Tell the user something that is no metric."""
        self.display.say(line)

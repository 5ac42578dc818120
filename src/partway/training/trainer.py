"""Algorithms 1 and 3 on transformers' Trainer: explore the batch, learn from the buffers.

Trainer does precision, accumulation, optimiser, schedule and distribution. `sample_solutions`, `losses` and
`trace_all` hide tokens, packing and execution; the recorder writes the run directory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer, TrainerCallback

from partway import registry
from partway.evaluation import Evaluation
from partway.language import Language, Trace
from partway.learning.scoring import Scorer
from partway.learning.token_tree import Targets
from partway.models.engine import Engine
from partway.models.loading import LanguageModel
from partway.problem import Problem
from partway.problems import ProblemSource
from partway.runs import Run
from partway.sample import Sample
from partway.sampling.drawing import step_seed
from partway.sampling.guided import Guide, sample_solutions
from partway.training.account import Account, Learned
from partway.training.config import SelfSamplingConfig
from partway.training.distributed import backward, maxima, placed, sampling_mode, stopping_together
from partway.training.evaluating import evaluated, settle_tie
from partway.training.order import Batches, ProblemLoader
from partway.training.preparation import engine_of, explorer_of, material
from partway.training.recording import Recorder
from partway.training.resuming import group_settings
from partway.training.shared_buffers import KeptTargets

if TYPE_CHECKING:
    from peft import PeftConfig


class SelfSamplingTrainer(Trainer):  # type: ignore[misc]
    """Fine-tune a model on its own correct and partially-correct solutions (Algorithm 3).

    The datasets are problems, or anything that `load_problems` reads. `engine` draws the samples, also those
    of evaluations; by default it is the sampling tree on the model that is trained. With `replay`, a run's
    recorded samples are learned from instead, and no server of the settings is asked. `peft_config` is an
    adapter to train, in place of the `lora_*` settings; `compute_metrics` adds metrics to an evaluation.
    """

    args: SelfSamplingConfig
    control: Any

    def __init__(
        self,
        model: str | PreTrainedModel | LanguageModel,
        args: SelfSamplingConfig,
        train_dataset: Sequence[Problem] | ProblemSource,
        eval_dataset: Sequence[Problem] | ProblemSource | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        language: Language | None = None,
        *,
        engine: Engine | None = None,
        replay: Run | None = None,
        peft_config: PeftConfig | None = None,
        optimizers: tuple[Optimizer | None, LRScheduler | None] = (None, None),
        compute_metrics: Callable[[Evaluation], dict[str, float]] | None = None,
    ) -> None:
        self.language = language or args.built_language
        data = train_dataset, eval_dataset
        given = material(model, processing_class, args, *data, self.language, peft_config)
        self.left_out, self.codec = given.left_out, given.language_model.codec
        self.language = self.language.fitted(given.language_model.context_length, self.codec.prompt)
        self.objective = args.built_objective
        self.kept_targets = KeptTargets(given.language_model, args, self.objective, self.language)
        self.buffers = given.buffers
        self.batches = Batches(args, given.problems, self.buffers)
        self.batch: list[Problem] = []  # of the step, over all processes
        self.explored: dict[str, list[tuple[Sample, Trace]]] = {}  # what was drawn last, by problem
        self.explored_step = 0
        self.run = Run(Path(args.output_dir or "run"))
        self.account = Account(self.run, self.buffers, self.codec, self.objective, self.batches.mixed)
        super().__init__(
            model=given.language_model.model,
            args=args,
            data_collator=list,
            train_dataset=given.problems,
            eval_dataset=given.dev or None,
            processing_class=self.codec.tokenizer,
            callbacks=callbacks,
            optimizers=optimizers,
            compute_metrics=compute_metrics,
        )
        self.sampling = args.sampling
        added = registry.parts("learning").get("smaller_passes")
        self.smaller_passes: Callable[..., Tensor] | None = None if added is None else added.load()
        self.replay = replay
        with placed(self.accelerator, self.model):  # where layout and sampler are checked
            pad, tokens = self.codec.pad_id, args.tokens_per_pass
            self.scorer = Scorer(self.model, pad, tokens_per_pass=tokens, learn_question=args.learn_question)
            self.recorder = Recorder(self, self.account, given.remarks)
            self.clock = self.recorder.clock
            guides = args.partial_solutions != "targets"
            self.guide = Guide(args.samples_per_problem, guides, self.kept_targets.has_room)
            self.engine = engine or engine_of(self, given.language_model)

    def training_step(self, model: Any, problems: list[Problem], num_items_in_batch: Any = None) -> Tensor:
        """Explore the problems, then learn from their buffers."""
        problems = self.batches.parts.pop(0)  # not those of the loader, which reads ahead of what is solved
        if self.explores:
            self.explore(problems)  # Algorithm 3, lines 1-9
        if self.smaller_passes is not None:  # `learn`, where memory may not suffice
            return self.smaller_passes(self, model, problems)
        return self.learn(model, problems)  # line 10

    @property
    def step(self) -> int:
        """The step being made, counted from 1."""
        return int(self.state.global_step) + 1

    @property
    def explores(self) -> bool:
        """Whether this step samples."""
        return self.args.self_sampling != "none" and self.step > self.args.sampling_start_step

    def explore(self, problems: Sequence[Problem]) -> None:
        """Sample solutions of each problem, run them, and keep what is right in them."""
        how = self.guide, self.sampling, step_seed(self.args.seed, self.step, "explore")
        with self.clock.span("exploring"), stopping_together(self), sampling_mode(self, self.explorer):
            samples = sample_solutions(self.explorer, problems, self.buffers, *how)  # Algorithm 2
        with self.clock.span("executing"):
            traces = self.language.trace_all([(problem, sample.text) for problem, sample in samples])
            self.explored_step, self.explored = self.step, {problem.id: [] for problem in problems}
            self.account.add_drawn(sample for _, sample in samples)
            for (problem, sample), trace in zip(samples, traces, strict=True):
                self.explored[problem.id].append((sample, trace))
                self.account.consider(sample, trace, self.step)  # lines 3-9

    def learn(self, model: Any, problems: Sequence[Problem]) -> Tensor:
        """Backpropagate the objective over each problem's buffer, pass by pass; returns the loss."""
        with self.clock.span("learning"):
            model.train()
            targets = {problem.id: found for problem in problems if (found := self.targets(problem))}
            plan = self.scorer.plan(list(targets.values()))
            # As many passes as the process that needs most; all of them also stop together.
            needed = [plan.weighing, max(1, plan.learning), self.recorder.signals.received]
            weighing, learning, self.recorder.stop_signal = maxima(self.accelerator, needed)
            plan = plan.padded(weighing, learning)
            losses_P = torch.zeros(len(targets))
            passes = self.scorer.losses(model, plan, self.objective, batch_size=len(self.batch))  # Table 1
            for part in backward(self.accelerator, model, passes, plan.learning):
                losses_P += part.problem_losses.to(losses_P)
            loss = float(losses_P.sum() / len(self.batch))
        self.learned = Learned(self.step, targets, dict(zip(targets, losses_P.tolist(), strict=True)))
        self.account.add_learned(self.learned, loss, len(problems))
        return torch.full((), loss * self.args.world_size, device=self.args.device)

    def targets(self, problem: Problem) -> Targets | None:
        """What is learned of a problem: its buffer or, if the objective says so, this step's samples."""
        explored = self.explored.get(problem.id, ())
        return self.kept_targets.of(problem, self.buffers[problem.id], explored, self.step)

    def before_step(self) -> None:
        """Take the step's batch, with buffers that are current for its problems."""
        self.batch = self.batches.take(self.state.global_step, self.share)
        self.guide = replace(self.guide, counts=self.batches.counts())

    def after_step(self) -> None:
        """Share findings when it is time."""
        if self.state.global_step % self.args.buffer_sync_steps == 0:
            self.share()

    def share(self) -> None:
        """Give every process what the others found."""
        with self.recorder.writing("self-samples"):
            self.account.share(self.accelerator)

    def train(
        self,
        resume_from_checkpoint: bool | str | None = None,
        force: bool = False,
        branch: Run | None = None,
        **kwargs: Any,
    ) -> Any:
        """Train to the end, from the last good checkpoint of the run if `resume_from_checkpoint` is set.

        If it is "auto" and there is no run yet, one is started. `force` continues although settings, problems
        or the model differ. A new run takes its steps before the first sample from `branch`, if it is given.
        """
        with self.recorder.keeping(resume_from_checkpoint, force, branch) as checkpoint:
            result = super().train(resume_from_checkpoint=checkpoint and str(checkpoint), **kwargs)
        # Outside the lock: the run is finished, even if the upload fails.
        if self.args.push_to_hub:
            self.push_to_hub()
        return result

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> Any:
        """pass@k and its kin on the evaluation problems, each process on its share of them."""
        metrics = evaluated(self, eval_dataset or self.eval_dataset, metric_key_prefix)
        self.log(metrics)
        is_due = self.control.should_evaluate  # else nobody asks whether it is the best
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if is_due:
            settle_tie(self.state, metrics, self.args.metric_for_best_model)
        return metrics

    @property
    def engine(self) -> Engine:
        """What draws the samples of evaluations and, as `explorer`, those of exploring."""
        return self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine, self.explorer = explorer_of(self, engine)

    def get_train_dataloader(self) -> ProblemLoader:
        """Problems in the run's order."""
        return ProblemLoader(self.train_dataset, self.batches.order)

    def set_initial_training_values(self, *args: Any) -> Any:
        """Number of epochs, ..., of steps; no epochs if the run had made all its steps when it stopped."""
        epochs, *others, max_steps = super().set_initial_training_values(*args)
        return (0 if self.recorder.is_over(max_steps) else epochs, *others, max_steps)

    def create_scheduler(self, *args: Any, **kwargs: Any) -> Any:
        """Make the schedule; what the settings say is noted before a checkpoint's take their place."""
        scheduler = super().create_scheduler(*args, **kwargs)
        self.recorder.group_settings = group_settings(self.optimizer)
        return scheduler

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Complete the line, add it to the run, and hand it to the trackers."""
        super().log(self.recorder.line(logs))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save all that resuming needs; if a signal came, stop."""
        with self.recorder.checkpoint():
            super()._save_checkpoint(model, trial)

    def init_hf_repo(self, token: str | None = None) -> None:
        """Make the repository that the model is to go to; if it cannot be made, that is said at once."""
        with registry.part("hub", "open")():
            super().init_hf_repo(token)

    def push_to_hub(self, commit_message: str | None = "End of training", **options: Any) -> Any:
        """Upload `final/`, and nothing else of the run: its card is the repository's page."""
        return registry.part("hub", "upload")(self, commit_message, **options)

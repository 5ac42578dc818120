"""Algorithms 1 and 3 on transformers' Trainer: explore the batch, learn from the buffers.

Precision, accumulation, optimiser, schedule and distribution are Trainer's. Tokens, packing and execution are
below `sample_solutions`, `losses` and `trace_all`; the run directory is the recorder's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Trainer, TrainerCallback

from partway import registry
from partway.evaluation import Evaluation, evaluate
from partway.language import Language, Trace
from partway.learning.passes import evaluating
from partway.learning.scoring import LearningPlan, Scorer
from partway.learning.token_tree import Targets
from partway.models.engine import Asked, Engine, Metered
from partway.models.loading import LanguageModel
from partway.problem import Problem
from partway.problems import ProblemSource
from partway.runs import Run
from partway.sample import Sample
from partway.sampling.guided import Guide, sample_solutions
from partway.training.account import Account, Learned
from partway.training.config import SelfSamplingConfig
from partway.training.distributed import gathered, maxima, reducing, whole_weights
from partway.training.kept_targets import KeptTargets
from partway.training.order import AddedOrder, BatchOrder, ProblemLoader, step_seed
from partway.training.preparation import engine_of, explorer_of, first_buffers, material
from partway.training.recording import Recorder, settle_tie
from partway.training.resuming import check_writable, environment_of, group_settings
from partway.training.shared_buffers import Buffers

if TYPE_CHECKING:
    from peft import PeftConfig


class SelfSamplingTrainer(Trainer):  # type: ignore[misc]
    """Fine-tune a model on its own correct and partially-correct solutions (Algorithm 3).

    The datasets are problems, or anything that `load_problems` reads.
    `engine` draws the samples, for exploring and for evaluations; by default it is the sampling tree on the
    model that is trained. With `replay`, a run's recorded samples are learned from instead, and no server of
    the settings is asked, not even in evaluations. `peft_config` is an adapter to train in place of the
    `lora_*` settings'; `compute_metrics` makes more metrics of an evaluation.
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
        args.settings |= self.language.settings()  # so that readers of the run have the same programs
        given = material(
            model, processing_class, args, train_dataset, eval_dataset, self.language, peft_config
        )
        language_model, problems, dev = given.language_model, given.problems, given.dev
        self.left_out = given.left_out
        if not dev:
            args.eval_strategy, args.load_best_model_at_end = "no", False
        self.codec = language_model.codec
        self.context_length = language_model.context_length
        self.objective = args.built_objective
        self.kept_targets = KeptTargets(language_model, args, self.objective, self.language)
        self.buffers = Buffers(problems, first_buffers(problems, args, self.language, given.traces))
        self.order = BatchOrder.of(args, len(problems))
        self.mixed: AddedOrder | None = None
        if args.solved_share is not None:
            self.mixed = registry.part("choices", "solved_share").of(args, problems, self.buffers.is_solved)
        self.batch: list[Problem] = []
        self._parts: list[list[Problem]] = []  # what this process has still to take of the batch
        self.explored: dict[str, list[tuple[Sample, Trace]]] = {}  # what was drawn last, by problem
        self.explored_step = 0
        self.run = Run(Path(args.output_dir or "run"))
        self.account = Account(self.run, self.buffers, mixed=self.mixed)
        check_writable(self.run.directory)
        super().__init__(
            model=language_model.model,
            args=args,
            data_collator=list,
            train_dataset=problems,
            eval_dataset=dev or None,
            processing_class=self.codec.tokenizer,
            callbacks=callbacks,
            optimizers=optimizers,
            compute_metrics=compute_metrics,
        )
        environment = environment_of(args, language_model.model, problems, dev)
        self.recorder = Recorder(self, self.account, environment)
        self.clock = self.recorder.clock
        for remark in given.remarks:
            self.say(remark)
        self.scorer = Scorer(
            self.model,
            self.codec.pad_id,
            tokens_per_pass=args.tokens_per_pass,
            learn_question=args.learn_question,
        )
        self.recorder.environment["layout"] = self.scorer.layout.name
        self.recorder.environment["chat_template"] = self.codec.question.is_markup
        self.guide = Guide(
            args.samples_per_problem,
            args.partial_solutions != "targets",
            self.kept_targets.has_room,
        )
        self.replay = replay
        self.engine = engine or engine_of(self, language_model, args.servers if replay is None else [])
        self.recorder.meter = self.engine.meter

    def training_step(self, model: Any, problems: list[Problem], num_items_in_batch: Any = None) -> Tensor:
        """Explore the problems, then learn from their buffers."""
        problems = self._parts.pop(0)  # not those of the loader, which reads ahead of what is solved
        if self.explores:
            self.explore(problems)  # Algorithm 3, lines 1-9
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
        how = self.guide, self.args.sampling, step_seed(self.args.seed, self.step, "explore")
        with self.clock.span("exploring"), self.recorder.in_good_order(), self.sampling_mode(self.explorer):
            samples = sample_solutions(self.explorer, problems, self.buffers, *how)  # Algorithm 2
        with self.clock.span("executing"):
            traces = self.language.trace_all([(problem, sample.text) for problem, sample in samples])
            self.explored_step, self.explored = self.step, {problem.id: [] for problem in problems}
            unsolved = {problem.id for problem in problems if not self.buffers.is_solved(problem.id)}
            self.account.ledger.unsolved += sum(s.count for p, s in samples if p.id in unsolved)
            for (problem, sample), trace in zip(samples, traces, strict=True):
                self.explored[problem.id].append((sample, trace))
                self.consider(sample, trace)  # lines 3-9

    def consider(self, sample: Sample, trace: Trace) -> None:
        """Let the problem's buffer judge a traced sample, and account for it."""
        # A run keeps the tokens that it learned; those of other samples would double its files.
        kept = sample if self.objective.least_samples else replace(sample, tokens=())
        tokens = sample.tokens or self.codec.encode(sample.completion)
        for judged in self.buffers.consider(kept, trace, self.step):
            self.account.ledger.add_sample(judged, len(tokens), executed=bool(trace.states))

    def learn(self, model: Any, problems: Sequence[Problem]) -> Tensor:
        """Backpropagate the objective over each problem's buffer, pass by pass; returns the loss."""
        with self.clock.span("learning"):
            model.train()
            targets = {problem.id: found for problem in problems if (found := self.targets(problem))}
            plan = self._agreed(self.scorer.plan(list(targets.values())))
            losses_P = torch.zeros(len(targets))
            passes = self.scorer.losses(model, plan, self.objective, batch_size=len(self.batch))
            for number in range(plan.learning):
                with reducing(self.accelerator, model, is_last=number == plan.learning - 1):
                    part = next(passes)
                    # Processes average their gradients; the loss is a mean over the problems of all.
                    self.accelerator.backward(part.loss * self.args.world_size, **self._backward_options())
                losses_P += part.problem_losses.to(losses_P)
            loss = float(losses_P.sum() / len(self.batch))
        self.learned = Learned(self.step, targets, dict(zip(targets, losses_P.tolist(), strict=True)))
        if not math.isfinite(loss):
            raise self.learned.no_number("loss", loss, self.run, self.codec)
        self.account.ledger.add_learned(loss, len(problems), targets.values())
        return torch.full((), loss * self.args.world_size, device=self.args.device)

    def targets(self, problem: Problem) -> Targets | None:
        """What is learned of a problem: its buffer or, if the objective says so, this step's samples."""
        if not self.objective.least_samples:
            return self.kept_targets.of(problem, self.buffers[problem.id], self.step)
        explored = self.explored.get(problem.id)
        if not explored:
            return None
        targets = self.objective.learned(problem, explored, self.language, self.codec)
        return self.kept_targets.drawn(problem, targets)

    def before_step(self) -> None:
        """Take the step's batch, with buffers that are current for its problems."""
        # Of all processes: losses are means over the whole batch, whoever computes them.
        if self.mixed is not None and self.buffers.are_due(self.batch):  # the last step's
            self.share()
        indices = (self.mixed or self.order).batch(self.state.global_step)
        self.batch = [self.train_dataset[index] for index in indices]
        if self.buffers.are_due(self.batch):
            self.share()
        self.buffers.will_explore(self.batch)
        self._parts = self.order.divided(self.batch)
        self.guide = replace(self.guide, counts=self._counts())

    def _counts(self) -> dict[str, int]:
        """How many samples each problem of the batch gets, where that is not the same for all."""
        if self.args.sample_budget == "equal":
            return {}
        ids = [problem.id for problem in self.batch]
        tried = [(self.buffers.is_solved(key), self.buffers.drawn[key]) for key in ids]
        divided = registry.part("choices", "sample_budget")
        return dict(zip(ids, divided(self.args.samples_per_problem * len(ids), tried), strict=True))

    def _asked(self, step: int) -> list[Asked]:
        """What this process will ask for in a step, part by part."""
        if step > max(self.state.max_steps, self.step):
            return []
        seed = step_seed(self.args.seed, step, "explore")
        parts = [[self.train_dataset[index] for index in part] for part in self.order.parts(step - 1)]
        return [(self.guide.requests(part, self.buffers, seed), self.args.sampling, seed) for part in parts]

    def after_step(self) -> None:
        """Share findings when it is time."""
        if self.state.global_step % self.args.buffer_sync_steps == 0:
            self.share()

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
        has_ended = False
        try:
            with self.recorder.keeping(resume_from_checkpoint, force, branch) as checkpoint:
                result = super().train(resume_from_checkpoint=checkpoint and str(checkpoint), **kwargs)
            has_ended = True
        finally:
            (self.explorer.rest if has_ended else self.explorer.close)()
        # Outside the lock: the run is finished, whatever becomes of the upload.
        if self.args.push_to_hub:
            self.push_to_hub()
        return result

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> Any:
        """pass@k and its kin on the evaluation problems, each process on its share of them."""
        problems: Sequence[Problem] = eval_dataset or self.eval_dataset
        plan = replace(self.args.evaluation, language=self.language)
        with self.clock.span("evaluating"), self.sampling_mode(self.engine):
            own = problems[self.args.process_index :: self.args.world_size]
            engine = Metered(self.engine)
            replay, step = self.replay if self.is_in_train else None, self.state.global_step
            results = registry.part("replays", "results")(replay, step, own) if replay is not None else None
            if results is None:
                watch, drafts = self.recorder.watch, self.buffers.drafts_for
                drawn = evaluate(engine, own, plan, on_progress=watch, drafts_for=drafts) if own else None
                results = drawn.results if drawn else ()
            parts = gathered(self.accelerator, (results, engine.tokens))
            # In the order of the problems, whichever process had which of them.
            everything = {r.task_id: r for of_process, _ in parts for r in of_process}
            evaluation = Evaluation.of(tuple(everything[problem.id] for problem in problems), plan)
        if self.is_world_process_zero() and self.is_in_train:
            with self.recorder.writing("an evaluation"):
                self.run.write_evaluation(self.state.global_step, evaluation)
        metrics = evaluation.scalars(f"{metric_key_prefix}_")
        if self.compute_metrics is not None:
            metrics |= {
                f"{metric_key_prefix}_{name}": value
                for name, value in self.compute_metrics(evaluation).items()
            }
        metrics[f"{metric_key_prefix}_tokens_drawn"] = sum(tokens for _, tokens in parts)
        self.log(metrics)
        is_due = self.control.should_evaluate  # else nobody asks whether it is the best
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        if is_due:
            settle_tie(self.state, metrics, self.args.metric_for_best_model)
        return metrics

    @contextmanager
    def sampling_mode(self, engine: Engine) -> Iterator[None]:
        """No dropout, no checkpointing of activations; all weights here, and told to the engine."""
        with evaluating(self.model), whole_weights(self.model):
            engine.update(self.model, self.state.global_step)
            yield

    @property
    def engine(self) -> Engine:
        """What draws the samples of evaluations and, as `explorer`, those of exploring."""
        return self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine = engine
        self.explorer = explorer_of(engine, self.args, self.replay, self._asked)

    def rehearse(self) -> str:
        """Explore and learn from the first batch without updating or writing anything; says what it found."""
        self.before_step()
        if self.args.self_sampling != "none":
            self.explore(self.batch)
        loss = self.learn(self.model, self.batch)
        self.model.zero_grad()
        return (
            f"{len(self.train_dataset)} problems, {self.args.problems_per_step} per step; "
            f"first batch: loss {loss.item():.3f}, {self.account.ledger.drawn} samples drawn, "
            f"{self.account.ledger.tokens} tokens learned from in layout {self.scorer.layout.name}"
        )

    def get_train_dataloader(self) -> ProblemLoader:
        """Problems in the run's order."""
        return ProblemLoader(self.train_dataset, self.order)

    def set_initial_training_values(self, *args: Any) -> Any:
        """Number of epochs, ..., of steps; no epochs if the run has made its steps in an earlier life."""
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

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        **_: Any,
    ) -> Any:
        """Upload `final/`, and nothing else of the run: its card is the repository's page.

        `blocking` or not, it waits: there is nothing left to do meanwhile.
        """
        if not self.is_world_process_zero():
            return None
        if self.hub_model_id is None:
            self.init_hf_repo(token)
        where = token or self.args.hub_token, revision or self.args.hub_revision
        commit = registry.part("hub", "upload")(self.run.final, self.hub_model_id, commit_message, *where)
        self.say(f"uploaded {self.run.final} to {self.hub_model_id}")
        return commit

    def say(self, line: str) -> None:
        """Tell the user something that is not a metric."""
        self.recorder.say(line)

    def _agreed(self, plan: LearningPlan) -> LearningPlan:
        """The plan with as many passes as the process that needs most; also agrees on a signal to stop."""
        recorder, needed = self.recorder, [plan.weighing, max(1, plan.learning)]
        weighing, learning, recorder.stop_signal = maxima(
            self.accelerator, [*needed, recorder.signals.received]
        )
        return plan.padded(weighing, learning)

    def _backward_options(self) -> dict[str, Any]:
        return {"scale_wrt_gas": False} if self.is_deepspeed_enabled else {}

    def share(self) -> None:
        """Give every process what the others found."""
        with self.recorder.writing("self-samples"):
            self.account.share(self.accelerator)

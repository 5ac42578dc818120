"""`SelfSamplingTrainer`: explore the batch, learn from the buffers (Algorithm 3), on transformers' Trainer.

From Trainer come precision, accumulation, the optimiser, its schedule, distribution and callbacks. Tokens,
packing and execution are below `sample_solutions`, `losses` and `trace_all`; files are in `recording`.
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
from transformers import EarlyStoppingCallback, PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback

from partway.datasets.sources import ProblemSource
from partway.evaluation import Evaluation, EvaluationPlan, ProblemResult, evaluate
from partway.execution import Programs
from partway.models.agreement import evaluating
from partway.models.engine import Draw, Engine, Metered, Request
from partway.models.loading import LanguageModel
from partway.models.local_engine import LocalEngine
from partway.models.scoring import LearningPlan, Scorer
from partway.models.servers.server_engine import ServerEngine, Together
from partway.models.targets import Targets
from partway.problem import Problem
from partway.runs import Run
from partway.sampling import drafts_of
from partway.solution import Solution
from partway.training.account import Account
from partway.training.config import SelfSamplingConfig
from partway.training.distributed import from_first, gathered, maxima, reducing, whole_weights
from partway.training.environment import environment_of
from partway.training.exploration import Exploration
from partway.training.failures import Learned
from partway.training.kept_targets import KeptTargets
from partway.training.order import BatchOrder, ProblemLoader
from partway.training.preparation import first_buffers, material
from partway.training.recording import RecordingTrainer
from partway.training.replay import Recording
from partway.training.rewarding import RewardedDraw, rewarded_draws, sample_targets
from partway.training.shared_buffers import Buffers
from partway.training.trackers import SampleTables

if TYPE_CHECKING:
    from peft import PeftConfig


class Turns(TrainerCallback):  # type: ignore[misc]
    """Tells the trainer when a step begins and ends."""

    def __init__(self, trainer: SelfSamplingTrainer) -> None:
        self.trainer = trainer

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.before_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.trainer.after_step()


class SelfSamplingTrainer(RecordingTrainer):
    """Fine-tune a model on its own correct and partially-correct solutions (Algorithm 3).

    The datasets are problems, or anything that `load_problems` reads.
    `engine` draws the samples, for exploring and for evaluations; by default it is the sampling tree on the
    model that is trained. With `replay`, a run's recorded samples are learned from instead, and no server of
    the settings is asked, not even in evaluations. `peft_config` is an adapter to train in place of the
    `lora_*` settings'; `compute_metrics` makes more metrics of an evaluation.
    """

    def __init__(
        self,
        model: str | PreTrainedModel | LanguageModel,
        args: SelfSamplingConfig,
        train_dataset: Sequence[Problem] | ProblemSource,
        eval_dataset: Sequence[Problem] | ProblemSource | None = None,
        processing_class: PreTrainedTokenizerBase | None = None,
        callbacks: list[TrainerCallback] | None = None,
        programs: Programs | None = None,
        *,
        engine: Engine | None = None,
        replay: Run | None = None,
        peft_config: PeftConfig | None = None,
        optimizers: tuple[Optimizer | None, LRScheduler | None] = (None, None),
        compute_metrics: Callable[[Evaluation], dict[str, float]] | None = None,
    ) -> None:
        self.programs = programs or args.language
        args.settings |= self.programs.settings()  # so that readers of the run have the same programs
        given = material(
            model, processing_class, args, train_dataset, eval_dataset, self.programs, peft_config
        )
        language_model, problems, dev = given.language_model, given.problems, given.dev
        self.left_out = given.left_out
        if not dev:
            args.eval_strategy, args.load_best_model_at_end = "no", False
        self.codec = language_model.codec
        self.context_length = language_model.context_length
        self.kept_targets = KeptTargets(language_model, args)
        self.buffers = Buffers(problems, first_buffers(problems, args, self.programs, given.traces))
        self.order = BatchOrder.of(args, len(problems))
        self.batch: list[Problem] = []
        self.rewarded: dict[str, list[RewardedDraw]] = {}  # this step's, for a policy gradient
        self._explored_step = 0
        self._random_state: Tensor | None = None  # as the last step left it
        super().__init__(
            Account(Run(Path(args.output_dir or "run")), self.buffers),
            environment_of(args, language_model.model, problems, dev),
            steps_per_epoch=self.order.steps_per_epoch,
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
        for remark in given.remarks:
            self.say(remark)
        self.add_callback(Turns(self))
        questions = {problem.id: problem.question for problem in (*dev, *problems)}
        self.add_callback(SampleTables(self.run, questions))
        if args.early_stopping_patience is not None:
            self.add_callback(EarlyStoppingCallback(args.early_stopping_patience))
        self.scorer = self._scorer()
        self.environment["layout"] = self.scorer.layout.name
        self.environment["chat_template"] = self.codec.tokenizer.chat_template is not None
        if engine is None:
            engine = self._own_engine(language_model, args.servers if replay is None else [])
        self.exploration = Exploration(
            engine,
            args,
            self.buffers,
            has_room=self.kept_targets.has_room,
            sampling_mode=self.sampling_mode,
            recording=None if replay is None else Recording(replay, self.programs),
        )
        if isinstance(engine, ServerEngine):
            self.meter = engine.meter

    @property
    def engine(self) -> Engine:
        """What draws the samples, for exploring and for evaluations."""
        return self.exploration.engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self.exploration.engine = engine

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train to the end; what servers needed for it is removed."""
        has_ended = False
        try:
            result = super().train(*args, **kwargs)
            has_ended = True
            return result
        finally:
            self.exploration.end(is_complete=has_ended)

    def training_step(self, model: Any, problems: list[Problem], num_items_in_batch: Any = None) -> Tensor:
        """Explore the problems, then learn from their buffers."""
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
        with self.clock.span("exploring"), self.exploration.in_good_order(self.accelerator, self._saved):
            drawn = self.exploration.drawn(self.step, problems)
        with self.clock.span("executing"):
            self.consider([(request, draw) for request, draws in drawn for draw in draws])

    def consider(self, draws: Sequence[tuple[Request, Draw]]) -> None:
        """Trace the draws, let the buffers judge them, and account for each."""
        self._explored_step = self.step
        traces = self.programs.trace_all([draw.text for _, draw in draws])
        if self.args.loss.advantages is not None:
            self.rewarded = rewarded_draws(draws, traces, self.args.reward, self.programs)
        places = {problem.id: place for place, problem in enumerate(self.batch)}
        for (request, draw), trace in zip(draws, traces, strict=True):
            for sample in self.buffers.consider(request, draw, trace, self.step, places[request.problem.id]):
                self.account.ledger.add_sample(
                    sample, draw.tokens, draw.drafted, executed=bool(trace.states), served=bool(draw.endpoint)
                )

    def learn(self, model: Any, problems: Sequence[Problem]) -> Tensor:
        """Backpropagate the objective over each problem's buffer, pass by pass; returns the loss."""
        with self.clock.span("learning"):
            model.train()
            targets = {problem.id: found for problem in problems if (found := self.targets(problem))}
            plan = self._agreed(self.scorer.plan(list(targets.values())))
            losses_P = torch.zeros(len(targets), device=self.args.device)
            passes = self.scorer.losses(model, plan, self.args.loss, batch_size=len(self.batch))
            for number in range(plan.learning):
                with reducing(self.accelerator, model, is_last=number == plan.learning - 1):
                    part = next(passes)
                    # Processes average their gradients; the loss is a mean over the problems of all.
                    self.accelerator.backward(part.loss * self.args.world_size, **self._backward_options())
                losses_P += part.problem_losses.to(losses_P)
            loss: Tensor = losses_P.sum() / len(self.batch)
        self.learned = Learned(self.step, targets, dict(zip(targets, losses_P.tolist(), strict=True)))
        if not math.isfinite(loss.item()):
            raise self.learned.no_number("loss", loss.item(), self.run, self.codec)
        self.account.ledger.add_learned(loss.item(), len(problems), targets.values())
        return loss * float(self.args.world_size)

    def targets(self, problem: Problem) -> Targets | None:
        """What is learned of a problem: its buffer or, by a policy gradient, this step's samples."""
        if self.args.loss.advantages is None:
            return self.kept_targets.of(problem, self.buffers[problem.id], self.step)
        prompt, samples = self.kept_targets.prompt_of(problem.question), self.rewarded.get(problem.id, ())
        return sample_targets(prompt, samples, self.args.loss.advantages, self.codec, self.programs)

    def before_step(self) -> None:
        """Take the step's batch, with buffers that are current for its problems."""
        # Of all processes: losses are means over the whole batch, whoever computes them.
        self.batch = [self.train_dataset[index] for index in self.order.batch(self.state.global_step)]
        if self.buffers.are_due(self.batch):
            self.share()
        self.buffers.will_explore(self.batch)
        if self.exploration.ahead is not None and self.args.self_sampling != "none":
            with self.clock.span("exploring"), self.exploration.in_good_order(self.accelerator, self._saved):
                self.exploration.send_ahead(self.step, self.state.max_steps or self.step, self._parts)

    def _parts(self, step: int) -> list[list[Problem]]:
        """What this process explores in a step, in the parts that it will be asked for."""
        return [[self.train_dataset[index] for index in part] for part in self.order.parts(step - 1)]

    def after_step(self) -> None:
        """Share findings when it is time."""
        # Kept until the next step: a checkpoint made when servers fail must say what this one left.
        self._random_state = torch.get_rng_state()
        if self.state.global_step % self.args.buffer_sync_steps == 0:
            self.share()

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> Any:
        """pass@k and its kin on the evaluation problems, each process on its share of them."""
        problems: Sequence[Problem] = eval_dataset or self.eval_dataset
        plan = replace(self.args.evaluation, programs=self.programs)
        with self.clock.span("evaluating"), self.sampling_mode():
            own = problems[self.args.process_index :: self.args.world_size]
            engine = Metered(self.engine)
            results = self._recorded_results(own)
            if results is None:
                results = self._results(engine, own, plan) if own else ()
            parts = gathered(self.accelerator, (results, engine.tokens))
            # In the order of the problems, whichever process had which of them.
            everything = {r.task_id: r for of_process, _ in parts for r in of_process}
            evaluation = Evaluation.of(tuple(everything[problem.id] for problem in problems), plan)
        if self.is_world_process_zero() and self.is_in_train:
            with self.writing("an evaluation"):
                self.run.write_evaluation(self.state.global_step, evaluation)
        metrics = evaluation.scalars(f"{metric_key_prefix}_")
        if self.compute_metrics is not None:
            metrics |= {
                f"{metric_key_prefix}_{name}": value
                for name, value in self.compute_metrics(evaluation).items()
            }
        metrics[f"{metric_key_prefix}_tokens_drawn"] = sum(tokens for _, tokens in parts)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _results(
        self, engine: Engine, problems: Sequence[Problem], plan: EvaluationPlan
    ) -> tuple[ProblemResult, ...]:
        """Those of an evaluation; what is kept of problems that are trained on too are their drafts."""

        def drafts_for(problem: Problem) -> tuple[Solution, ...]:
            buffer = self.buffers.get(problem.id)
            if buffer is None or buffer.problem.question != problem.question:
                return ()
            return drafts_of(buffer)

        return evaluate(engine, problems, plan, on_progress=self.watch, drafts_for=drafts_for).results

    def _recorded_results(self, problems: Sequence[Problem]) -> tuple[ProblemResult, ...] | None:
        """Those of a run that is replayed, if it was evaluated at this step."""
        recording = self.exploration.recording
        if recording is None or not self.is_in_train:
            return None
        recorded = recording.results(self.state.global_step)
        ids = {problem.id for problem in problems}
        return None if recorded is None else tuple(result for result in recorded if result.task_id in ids)

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

    @contextmanager
    def sampling_mode(self, *, is_due: bool = True) -> Iterator[None]:
        """No dropout, no checkpointing of activations; all weights here and, if it is due, in the engine."""
        with evaluating(self.model), whole_weights(self.accelerator, self.model):
            if is_due:
                self.engine.update(self.model, self.state.global_step)
            yield

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Load weights, and check on them again what was checked on others, if they are all here."""
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        if model is None:
            self.scorer = self._scorer()
            self.environment["layout"] = self.scorer.layout.name
            if isinstance(self.engine, LocalEngine):
                self.engine.check()

    def get_train_dataloader(self) -> ProblemLoader:
        """Problems in the run's order."""
        return ProblemLoader(self.train_dataset, self.order)

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        norm = super()._get_grad_norm(model, grad_norm)
        if self.accelerator.scaler is None and not math.isfinite(norm):  # a scaler skips such steps
            raise self.learned.no_number("gradient's norm", float(norm), self.run, self.codec)
        return norm

    def floating_point_ops(self, inputs: Any) -> int:
        """Not estimated: a step is many passes of different sizes."""
        return 0

    def _own_engine(self, language_model: LanguageModel, servers: Sequence[str]) -> Engine:
        """The servers, if there are any, else the sampling tree on the model that is trained."""
        if not servers:
            return LocalEngine(language_model, programs=self.programs, layout=self.scorer.layout)
        return ServerEngine(
            servers,
            language_model,
            programs=self.programs,
            directory_of=self.run.weights,
            weight_sync=self.args.weight_sync,
            patience=self.args.engine_timeout,
            say=self.say,
            together=Together(
                self.is_world_process_zero(), lambda value: from_first(self.accelerator, value)
            ),
        )

    def _saved(self) -> str:
        """Save a checkpoint, unless a part of the step was explored already; says how to go on."""
        step = self.state.global_step
        if self._explored_step == self.step or not step:
            return "--resume goes on from the last checkpoint"
        path = self.run.checkpoint(step)
        if step not in self.run.checkpoints():
            assert self._random_state is not None, "a step was made since the last checkpoint"
            torch.set_rng_state(self._random_state)  # a new epoch has drawn from it, and will again
            self._save_checkpoint(self.model, None)
        return f"{path.name} is saved, --resume goes on from there"

    def _scorer(self) -> Scorer:
        return Scorer(
            self.model,
            self.codec.pad_id,
            tokens_per_pass=self.args.tokens_per_pass,
            learn_question=self.args.learn_question,
        )

    def _agreed(self, plan: LearningPlan) -> LearningPlan:
        """The plan with as many passes as the process that needs most; also agrees on a signal to stop."""
        weighing, learning, self.stop_signal = maxima(
            self.accelerator, [plan.weighing, max(1, plan.learning), self.signals.received]
        )
        return plan.padded(weighing, learning)

    def _backward_options(self) -> dict[str, Any]:
        return {"scale_wrt_gas": False} if self.is_deepspeed_enabled else {}

    def share(self) -> None:
        """Give every process what the others found."""
        with self.writing("self-samples"):
            self.account.share(self.accelerator)

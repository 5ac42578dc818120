"""All settings of a training run: ours first, then those of transformers' TrainingArguments.

Defaults are the paper's (appendix, table of hyperparameters). Keys that TRL has are named as TRL names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum
from typing import Any, Literal, get_type_hints

import torch
from transformers import TrainingArguments

from partway.buffer import Rules
from partway.config_files import coerce
from partway.datasets.columns import parse_columns
from partway.errors import ConfigError
from partway.evaluation import EvaluationPlan
from partway.execution import Programs
from partway.execution.programs import programs_of
from partway.models.prompts import Asking
from partway.models.quantizing import Bits
from partway.models.settings import SamplingSettings
from partway.objectives import OBJECTIVES, Objective, objective
from partway.training.impossible import check_settings


def _key(default: Any, text: str, choices: Sequence[str] = ()) -> Any:
    return field(default=default, metadata={"help": text, "choices": choices})


@dataclass
class SelfSamplingConfig(TrainingArguments):  # type: ignore[misc]
    """Settings of `SelfSamplingTrainer`; every field is a key of `partway train`."""

    model_name_or_path: str = _key(
        "tiny",
        "What to train: a Hugging Face name or directory, a run directory, `smollm2`, or `tiny`, the "
        "built-in model made for the problems.",
    )
    config_overrides: str | None = _key(
        None, "Sizes of `tiny`, such as `hidden_size=192,num_hidden_layers=6,max_position_embeddings=1024`."
    )
    train_file: str | None = _key(
        None, "Problems to train on: a file, or a name on the Hub, in any layout of docs/data.md."
    )
    eval_file: str | None = _key(None, "Problems to evaluate on while training; none, no evaluation.")
    columns: str | None = _key(
        None,
        "Where the files have what: `question=prompt,answer=target`, also `solution` and `id`; by default "
        "their layout is recognised.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = _key("float32", "Type the weights are loaded in.")
    attn_implementation: str | None = _key(
        None, "How attention is computed, as transformers names it; by default PyTorch's (`sdpa`)."
    )
    load_in_4bit: bool = _key(False, "Load weights in 4 bits (bitsandbytes, NF4), to train an adapter on.")
    load_in_8bit: bool = _key(False, "Load weights in 8 bits (bitsandbytes), to train an adapter on.")

    self_sampling: Literal["none", "fcs", "fcs+pcs"] = _key(
        "fcs+pcs",
        "What the model's own samples are kept for: `none` (learn from references only), `fcs` "
        "(fully-correct solutions), `fcs+pcs` (also partially-correct ones, which guide sampling).",
    )
    partial_solutions: Literal["both", "guide", "targets"] = _key(
        "both",
        "What partially-correct solutions are for: to be continued and learned, as in the paper, or one of "
        "the two.",
    )
    num_generations: int = _key(1, "Samples per problem and step; 1 in the paper.")
    num_generations_unsolved: int | None = _key(
        None, "Samples for problems without any solution yet; by default `num_generations`."
    )
    temperature: float = _key(0.8, "Temperature of self-sampling.")
    top_p: float = _key(1.0, "Nucleus of self-sampling; 1 keeps the whole distribution.")
    top_k: int = _key(0, "Most likely tokens self-sampling is limited to; 0 is no limit.")
    max_completion_length: int = _key(256, "Longest completion, in tokens.")
    sampling_start_step: int = _key(
        0,
        "First step at which the model samples; a model trained from scratch writes nothing sensible before.",
    )

    engine: str | list[str] | None = field(
        default=None,
        metadata={
            "help": "Addresses of inference servers that draw the samples, as a list or with commas between "
            "them; by default, the model that is trained draws them itself."
        },
    )
    engine_timeout: float = _key(
        600.0, "Seconds to wait when no server answers; then training stops and can be resumed."
    )
    weight_sync: Literal["auto", "full", "lora", "none"] = _key(
        "auto",
        "How servers get the weights: whole, or only the adapter; auto is what all of them take; none leaves "
        "them their own.",
    )
    weight_sync_steps: int = _key(1, "Steps between updates of the servers' weights.")
    explore_ahead: int = _key(
        0, "Batches that servers work on ahead of learning; 0 explores a batch and then learns from it."
    )

    state: Literal["multiset", "set", "strict"] = _key(
        "multiset",
        "When two states are equal: as multisets or sets of values, or as the authors' code has it.",
    )
    dedup: Literal["ast", "alpha", "spelling"] = _key(
        "ast",
        "Which solutions are duplicates: equal syntax trees, also those equal up to renaming, or also those "
        "that spell numbers differently (2 and 2.0).",
    )
    length_tolerance: int = _key(0, "Steps a kept solution may be longer than what it is compared with.")
    max_solutions_per_problem: int | None = _key(
        None, "Most solutions kept per problem; the oldest go first."
    )
    chat_template: Literal["auto", "none"] = _key(
        "auto", "auto: ask through the tokenizer's chat template if it has one; none: `# question`."
    )
    system_prompt: str | None = _key(None, "What a chat model is told first; by default, to write a program.")
    prompt_template: str | None = _key(
        None, "A prompt of your own: Jinja text with {{ question }}, or a file that holds it."
    )
    equivalence: Literal["exact", "live"] = _key(
        "exact",
        "When a beginning is right: its values are those of a known solution, or it has all the values that "
        "the rest of a known solution still reads, so that it can be completed.",
    )
    stitch: bool = _key(
        False, "Whether a right beginning, completed by what is known, is kept as a solution of its own."
    )
    dead_ends: Literal["keep", "drop"] = _key(
        "keep",
        "Whether `exact` keeps beginnings that no known solution completes within the length limit, as the "
        "paper does.",
    )
    spurious: Literal["keep", "flag", "drop"] = _key(
        "keep",
        "What to do with solutions that are right by luck, which differ from the reference when the numbers "
        "of the question are changed: nothing, mark them, or not keep them.",
    )
    length_limit: int | None = _key(
        None,
        "Most steps of a solution of a problem without a reference, until three solutions of it are known; "
        "by default what nine in ten references keep to.",
    )
    reference_share: float = _key(
        1.0,
        "Share of the problems that keep their reference, a seeded choice; the others have the answer only.",
    )
    answer_variable: str = _key("answer", "The variable whose value is the answer.")
    solution_end: Literal["first_assignment", "end_of_text"] = _key(
        "first_assignment",
        "Where a solution ends: with the first step that assigns the answer variable, or with its text, so "
        "that a loop may add to it.",
    )
    program_forms: Literal["steps", "written"] = _key(
        "steps",
        "What programs look like: steps, or also as people write them: a function that returns, a last line "
        "that prints, a main guard.",
    )
    checker: str = _key(
        "default",
        "What makes an answer right: default, exact, close, tests, or a function as package.module:name.",
    )
    checker_rel_tol: float = _key(1e-9, "Relative tolerance of the checker `close`.")
    checker_abs_tol: float = _key(1e-4, "Absolute tolerance of the checker `close`.")
    programs: str | None = _key(
        None, "Another language or other rules: a Programs class as package.module:name."
    )
    buffer_file: str | None = _key(
        None,
        "Solutions to begin with beside the references: a buffer.jsonl, or what `partway buffer --import` "
        "wrote. Each is run again and kept only if it is right.",
    )

    objective: str = _key(
        "mle_aug",
        "The loss over a buffer: one of Table 1, or your own as `package.module:name`. grpo, rloo, maxrl and "
        "pkpo learn a step's own samples by their rewards instead.",
        choices=tuple(OBJECTIVES),
    )
    reward: Literal["answer", "trace"] = _key(
        "answer",
        "What those are rewarded for: a right answer, or half as much also for the share of the reference "
        "that a right beginning stands for.",
    )
    pkpo_k: int = _key(4, "The k of the pass@k that `pkpo` raises, from 2 to `num_generations`.")
    mml_beta: float = _key(0.25, "The beta of `beta_mml`, above 0 and up to 1.")
    loss_normalization: Literal["sum", "length", "solutions"] = _key(
        "sum", "Log-probs as they are, divided by target length, or averaged over the buffer."
    )
    learn_question: bool = _key(
        False, "Whether the question's tokens are learned too, as the authors' code does."
    )
    solutions_per_step: int | None = _key(
        None,
        "Most solutions of a problem learned from in one step, a seeded choice that has the reference.",
    )
    tokens_per_pass: int = _key(2048, "Most tokens in one forward and backward pass; bounds memory.")

    effective_batch_size: int | None = _key(
        None,
        "Problems per step over all processes and accumulation steps; sets `per_device_train_batch_size` "
        "so that a run means the same on any number of processes.",
    )
    buffer_sync_steps: int = _key(
        1,
        "Steps between exchanges of buffers among processes; earlier if a problem is due again.",
    )

    eval_samples: int = _key(100, "Samples per problem in an evaluation, n.")
    eval_k: list[int] | None = field(
        default=None, metadata={"help": "Which pass@k; by default 1, 5, 10, 20, 50 and `eval_samples`."}
    )
    eval_temperature: float = _key(0.8, "Temperature of those samples.")
    eval_pass1_samples: int = _key(
        1, "Samples per problem for pass@1 alone, as in the paper; 0 takes the others."
    )
    eval_pass1_temperature: float = _key(0.2, "Their temperature.")
    max_eval_problems: int | None = _key(None, "Evaluate on the first so many problems only.")
    early_stopping_patience: int | None = _key(
        None, "Stop after so many evaluations without a better `metric_for_best_model`."
    )

    use_peft: bool = _key(False, "Train a LoRA adapter instead of all weights.")
    lora_r: int = _key(16, "Rank of the adapter.")
    lora_alpha: int = _key(32, "Scale of the adapter.")
    lora_dropout: float = _key(0.05, "Dropout of the adapter.")
    lora_target_modules: str | list[str] | None = field(
        default=None, metadata={"help": "Modules to adapt; by default those usual for the model."}
    )

    output_dir: str | None = _key("run", "The run directory.")
    max_steps: int = _key(25_000, "Optimiser steps; -1 counts `num_train_epochs` instead.")
    per_device_train_batch_size: int = _key(32, "Problems per process in one forward step.")
    learning_rate: float = _key(1e-4, "Peak learning rate.")
    weight_decay: float = _key(0.1, "Weight decay of AdamW.")
    warmup_steps: float = _key(100, "Steps over which the learning rate rises, or a share of all steps.")
    logging_steps: float = _key(10, "Steps between lines of metrics.jsonl.")
    save_steps: float = _key(500, "Steps between checkpoints.")
    save_total_limit: int | None = _key(2, "Checkpoints kept; the best one is always among them.")
    eval_strategy: str = _key("steps", "`steps`, `epoch` or `no`; without evaluation problems it is `no`.")
    eval_steps: float | None = _key(None, "Steps between evaluations; by default those of `save_steps`.")
    load_best_model_at_end: bool = _key(True, "Whether `final/` is the best checkpoint rather than the last.")
    metric_for_best_model: str | None = _key(
        "eval_pass@1", "Which evaluation metric tells the best checkpoint."
    )
    restore_callback_states_from_checkpoint: bool = _key(
        True, "Whether resuming restores callbacks such as early stopping."
    )
    use_cpu: bool = _key(False, "Train on the CPU although there is something faster.")
    ddp_find_unused_parameters: bool | None = _key(
        False, "Whether DDP looks for weights a pass did not use; needed for mixtures of experts."
    )
    logging_nan_inf_filter: bool = _key(False, "Kept off: a loss that is not a number stops the run.")
    remove_unused_columns: bool = _key(False, "Kept off: problems have no columns.")

    def __post_init__(self) -> None:
        # Made in Python, a config was not read from a file, where values are checked: they are here.
        hints = get_type_hints(type(self))
        for f in own_fields():
            setattr(self, f.name, coerce(f.name, getattr(self, f.name), hints[f.name]))
        # As given, before anything below or transformers itself changes them: this is what a run saves.
        self.settings = {
            f.name: _plain(getattr(self, f.name)) for f in fields(self) if _is_worth_saving(self, f)
        }
        self.use_cpu = self.use_cpu or not torch.accelerator.is_available()
        check_settings(self)
        # Without evaluations or checkpoints there is no best one; transformers would refuse.
        if "no" in (self.eval_strategy, self.save_strategy):
            self.load_best_model_at_end = False
        if self.eval_steps is None:
            self.eval_steps = self.save_steps
        try:
            super().__post_init__()
        except ValueError as error:
            raise ConfigError(" ".join(str(error).split())) from error
        self._fit_batch_size()  # last: only now the number of processes is known

    @property
    def sampling(self) -> SamplingSettings:
        """How self-samples are drawn."""
        return SamplingSettings(self.temperature, self.top_p, self.top_k, self.max_completion_length)

    @property
    def evaluation(self) -> EvaluationPlan:
        """What an evaluation draws."""
        settings = SamplingSettings(self.eval_temperature, 1.0, 0, self.max_completion_length)
        return EvaluationPlan(
            samples=self.eval_samples,
            settings=settings,
            ks=tuple(self.eval_k or ()),
            pass1_samples=self.eval_pass1_samples,
            pass1_temperature=self.eval_pass1_temperature,
            seed=self.seed,
            programs=self.language,
        )

    @property
    def bits(self) -> Bits:
        """How many bits a weight is loaded in; None: as many as its type has."""
        return 4 if self.load_in_4bit else 8 if self.load_in_8bit else None

    @property
    def rules(self) -> Rules:
        """What buffers keep."""
        return Rules.of(vars(self))

    @property
    def named_columns(self) -> dict[str, str] | None:
        """Where question, answer, solution and id are found in files, if that was said."""
        return None if self.columns is None else parse_columns(self.columns)

    @property
    def asking(self) -> Asking:
        """How questions are put to the model."""
        return Asking(self.chat_template, self.system_prompt, self.prompt_template, self.language)

    @property
    def language(self) -> Programs:
        """The programs and their rules."""
        return programs_of(vars(self))

    @property
    def loss(self) -> Objective:
        """The objective with its settings."""
        return objective(self.objective, self.mml_beta, self.loss_normalization, self.pkpo_k)

    @property
    def servers(self) -> list[str]:
        """The addresses of the servers that draw samples, none if the model here does."""
        given = [self.engine] if isinstance(self.engine, str) else self.engine or []
        return [url for text in given for part in text.split(",") if (url := part.strip())]

    @property
    def problems_per_step(self) -> int:
        """The effective batch: problems of one step over all processes and accumulation steps."""
        shares: int = self.gradient_accumulation_steps * self.world_size
        return self.per_device_train_batch_size * shares

    def _fit_batch_size(self) -> None:
        if self.effective_batch_size is None:
            return
        shares = self.world_size * self.gradient_accumulation_steps
        if self.effective_batch_size % shares:
            raise ConfigError(
                f"effective_batch_size is {self.effective_batch_size}, expected a multiple of {shares} "
                f"({self.world_size} processes, {self.gradient_accumulation_steps} accumulation steps)"
            )
        self.per_device_train_batch_size = self.effective_batch_size // shares


def own_fields() -> list[Field[Any]]:
    """The fields this package adds or gives another default, in the order declared."""
    by_name = {f.name: f for f in fields(SelfSamplingConfig)}
    return [by_name[name] for name in SelfSamplingConfig.__annotations__]


def _is_worth_saving(config: SelfSamplingConfig, f: Field[Any]) -> bool:
    if not f.init or f.name == "hub_token":  # a secret does not belong in a run directory
        return False
    default = f.default if f.default is not MISSING else None
    return f.name in SelfSamplingConfig.__annotations__ or getattr(config, f.name) not in (default, [], None)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value

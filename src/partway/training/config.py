"""All settings of a training run: ours first, then those of transformers' TrainingArguments.

Defaults are what our experiments recommend, else the paper's (appendix, table of hyperparameters). Keys that
TRL has are named as TRL names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum
from typing import Any, Literal, get_type_hints

import torch
from transformers import TrainingArguments

from partway import registry
from partway.buffer import Rules
from partway.buffer.rules import SELF_SAMPLING
from partway.errors import ConfigError, one_line
from partway.evaluation import EvaluationPlan
from partway.language import Language
from partway.language.named import LANGUAGES, language_class, language_of, schema_of
from partway.models.engine import SamplingSettings
from partway.models.loading import Bits
from partway.models.prompts import Asking
from partway.objectives import Objective, objective, objective_class, objective_names
from partway.settings import checked, coerce
from partway.training.impossible import check_device, check_settings


def _key(default: Any, text: str, choices: Sequence[str] = (), least: float | None = None) -> Any:
    """A setting with its default, its help, the names that it knows, and its least number."""
    return field(default=default, metadata={"help": text, "choices": choices, "least": least})


# What docs/first_run.md recommends, and the letter of the paper.
PRESETS: dict[str, dict[str, Any]] = {
    "recommended": {"num_generations": 4, "dedup": "spelling", "dead_ends": "drop"},
    "paper": {"num_generations": 1, "dedup": "ast", "dead_ends": "keep"},
}


@dataclass
class SelfSamplingConfig(TrainingArguments):  # type: ignore[misc]
    """Settings of `SelfSamplingTrainer`; every field is a key of `partway train`."""

    model_name_or_path: str = _key(
        "tiny",
        "What to train: a Hugging Face name or directory, a run directory, a .gguf file, `smollm2`, or "
        "`tiny`, the built-in model made for the problems.",
    )
    config_overrides: str | None = _key(
        None, "Sizes of `tiny`, such as `hidden_size=192,num_hidden_layers=6,max_position_embeddings=1024`."
    )
    train_file: str | None = _key(
        None, "Problems to train on: a file, or a name on the Hub, in any layout of docs/first_run.md."
    )
    eval_file: str | None = _key(None, "Problems to evaluate on while training; without it, no evaluation.")
    columns: str | None = _key(
        None,
        "Which columns of the files to read: `question=prompt,answer=target`, also `solution`, `context` and "
        "`id`; by default the layout is recognised.",
    )
    reference_share: float = _key(
        1.0,
        "Share of problems that keep their reference, chosen by the seed; the others keep the answer only.",
    )
    buffer_file: str | None = _key(
        None,
        "Solutions to begin with besides the references: a buffer.jsonl, or what `partway buffer import` "
        "wrote. Each is run again and kept only if it is right.",
    )
    dtype: Literal["float32", "bfloat16", "float16"] = _key("float32", "Type of the loaded weights.")
    attn_implementation: str | None = _key(
        None, "How attention is computed, as transformers names it; by default PyTorch's (`sdpa`)."
    )
    load_in_4bit: bool = _key(False, "Load weights in 4 bits (bitsandbytes, NF4); an adapter is trained.")
    load_in_8bit: bool = _key(False, "Load weights in 8 bits (bitsandbytes); an adapter is trained.")

    preset: Literal["recommended", "paper"] = _key(
        "recommended",
        "Sets `num_generations`, `dedup` and `dead_ends` if not given: as we recommend, or as in the paper.",
    )

    language: str = _key(
        "python",
        "What solutions are written in: python, one that a folder adds, or a class as package.module:name.",
        choices=tuple(LANGUAGES | registry.parts("languages")),
    )
    language_args: dict[str, Any] | None = field(
        default=None,
        metadata={"help": "Settings of the language; in files and commands also keys of their own."},
    )
    chat_template: Literal["auto", "none"] = _key(
        "auto",
        "`auto` asks through the tokenizer's chat template, if it has one; `none` asks with `# question`.",
    )
    system_prompt: str | None = _key(None, "System message of a chat model; by default, to write a program.")
    prompt_template: str | None = _key(
        None, "A prompt of your own: Jinja text with {{ question }}, or a file with it."
    )

    self_sampling: Literal["none", "fcs", "fcs+pcs"] = _key(
        "fcs+pcs",
        "What the model learns from: "
        + "; ".join(f"`{name}`, {learned}" for name, (_, learned) in SELF_SAMPLING.items())
        + " (partial ones also guide sampling).",
    )
    partial_solutions: Literal["both", "guide", "targets"] = _key(
        "both",
        "What partially-correct solutions are for: samples continue them (`guide`), the model learns them "
        "(`targets`), or both, as in the paper.",
    )
    num_generations: int | None = _key(
        None, "Samples per problem and step; by default 4, with `preset: paper` 1.", least=0
    )
    sample_budget: Literal["equal", "success"] = _key(
        "equal",
        "How a step's samples are divided among its problems: equally, or (`success`) more for those without "
        "a solution, and fewer again after a hundred wrong samples.",
    )
    solved_share: float | None = _key(
        None,
        "Share of each batch that has a solution, given or found since; by default every epoch takes all "
        "problems in turn, also those from which nothing can be learned yet.",
    )
    temperature: float = _key(0.8, "Temperature of self-sampling.")
    top_p: float = _key(1.0, "Nucleus of self-sampling; 1 keeps the whole distribution.")
    top_k: int = _key(0, "How many of the likeliest tokens self-sampling draws from; 0 means all.")
    max_completion_length: int = _key(256, "Longest completion, in tokens.")
    sampling_memory: float | None = _key(
        None, "Memory for sampling, in GiB; by default 1, on a GPU a third of what is free.", least=0
    )
    sampling_start_step: int = _key(
        0,
        "Steps before the model begins to sample; an untrained model writes nothing sensible.",
        least=0,
    )

    engine: str | list[str] | None = field(
        default=None,
        metadata={
            "help": "Addresses of inference servers that draw the samples, as a list or separated by commas; "
            "by default the trained model draws them itself."
        },
    )
    engine_timeout: float = _key(
        600.0, "Seconds to wait when no server answers; then training stops and can be resumed.", least=0
    )
    weight_sync: Literal["auto", "full", "lora", "none"] = _key(
        "auto",
        "Which weights servers get: all (`full`), the adapter (`lora`), the adapter if there is one and all "
        "servers accept it, else all (`auto`), or nothing (`none`).",
    )
    weight_sync_steps: int = _key(1, "Steps between updates of the servers' weights.", least=1)
    explore_ahead: int = _key(
        0,
        "Batches that servers sample ahead of learning; with 0, each batch is sampled and then learned.",
        least=0,
    )

    dedup: Literal["ast", "alpha", "spelling"] | None = _key(
        None,
        "Which solutions are duplicates: those with equal syntax trees (`ast`, the default with `preset: "
        "paper`), also those equal up to renaming (`alpha`), or also those that spell numbers differently, "
        "as 2 and 2.0 (`spelling`, the default).",
    )
    length_tolerance: int = _key(
        0, "How many steps longer a kept solution may be than the one it is compared with.", least=0
    )
    max_solutions_per_problem: int | None = _key(
        None, "Most solutions kept per problem; the oldest are dropped first.", least=1
    )
    dead_ends: Literal["keep", "drop"] | None = _key(
        None,
        "What becomes of beginnings that no known solution continues: those with all values of a whole one, "
        "and those that lack an import or a definition. By default `drop`, with `preset: paper` `keep`.",
    )
    spurious: Literal["keep", "flag", "drop"] = _key(
        "keep",
        "What becomes of solutions that are right by luck: with other numbers in the question, they differ "
        "from the reference. They are kept, marked (`flag`) or dropped.",
    )
    added_rules: list[str] | None = field(
        default=None,
        metadata={"help": "Further rules for buffers: NAME or NAME=SETTING, or package.module:name."},
    )
    length_limit: int | None = _key(
        None,
        "Most steps of a solution to a problem without a reference, until three of its solutions are known; "
        "by default, enough for nine in ten references.",
        least=1,
    )

    objective: str = _key(
        "mle_aug",
        "The loss over a buffer: one of Table 1, one against overconfidence (`label_smoothing`, "
        "`entropy_bonus`, `gem`, `dco`), or your own as `package.module:name`. The others are policy "
        "gradients, which learn a step's own samples by their rewards instead.",
        choices=objective_names(),
    )
    objective_args: dict[str, Any] | None = field(
        default=None,
        metadata={
            "help": "Parameters of the objective: `beta` of beta_mml, above 0 and up to 1 (0.25); `k` of "
            "pkpo, from 2 to `num_generations` (4); `reward` of the policy gradients: `answer`; `trace`, "
            "which also gives a right beginning half of its share of the reference; or, as "
            "`package.module:name`, a function like TRL's. They may also be keys of their own."
        },
    )
    loss_normalization: Literal["sum", "length", "solutions"] = _key(
        "sum", "`sum`: as in the paper; `length`: log-probs per token; `solutions`: the mean over the buffer."
    )
    learn_question: bool = _key(False, "Learn the question's tokens too, as the authors' code does.")
    solutions_per_step: int | None = _key(
        None,
        "Most solutions of a problem that one step learns: the reference, and others chosen by the seed.",
        least=1,
    )
    tokens_per_pass: int = _key(2048, "Most tokens in one forward and backward pass; bounds memory.", least=1)

    effective_batch_size: int | None = _key(
        None,
        "Problems per step over all processes and accumulation steps; sets `per_device_train_batch_size`, so "
        "that a run means the same on any number of processes.",
        least=1,
    )
    buffer_sync_steps: int = _key(
        1,
        "Steps between exchanges of buffers among processes; earlier if a problem comes up again.",
        least=1,
    )

    eval_samples: int = _key(100, "Samples per problem in an evaluation: the n of pass@k.", least=0)
    eval_k: list[int] | None = field(
        default=None, metadata={"help": "Which k of pass@k; by default 1, 5, 10, 20, 50 and `eval_samples`."}
    )
    eval_temperature: float = _key(0.8, "Temperature of the samples of an evaluation.")
    eval_pass1_samples: int = _key(
        1, "Samples per problem for pass@1 alone, as in the paper; with 0, the others give pass@1 too."
    )
    eval_pass1_temperature: float = _key(0.2, "Temperature of the samples for pass@1 alone.")
    metrics: list[str] | None = field(
        default=None, metadata={"help": "Your own metrics, each as package.module:name (docs/extending.md)."}
    )
    max_eval_problems: int | None = _key(None, "Most problems to evaluate on: the first ones.", least=1)
    early_stopping_patience: int | None = _key(
        None, "Stop after this many evaluations without a better `metric_for_best_model`.", least=1
    )

    use_peft: bool = _key(False, "Train a LoRA adapter instead of all weights.")
    lora_r: int = _key(16, "Rank of the adapter.", least=1)
    lora_alpha: int = _key(32, "Scale of the adapter: what it adds is multiplied by `lora_alpha` / `lora_r`.")
    lora_target_modules: str | list[str] | None = field(
        default=None, metadata={"help": "Modules to adapt; by default the usual ones of the model."}
    )

    output_dir: str | None = _key("run", "The run directory.")
    max_steps: int = _key(25_000, "Optimiser steps; with -1, `num_train_epochs` says how many.")
    per_device_train_batch_size: int = _key(32, "Problems per process and accumulation step.", least=1)
    learning_rate: float = _key(1e-4, "Peak learning rate.", least=0)
    weight_decay: float = _key(0.1, "Weight decay of AdamW.", least=0)
    warmup_steps: float = _key(
        100, "Steps over which the learning rate rises; below 1, the share of all steps.", least=0
    )
    logging_steps: float = _key(10, "Steps between lines of metrics.jsonl.")
    save_steps: float = _key(500, "Steps between checkpoints.")
    save_total_limit: int | None = _key(2, "Checkpoints kept; the best one is always among them.")
    eval_strategy: str = _key("steps", "`steps`, `epoch` or `no`: when to evaluate, if there are problems.")
    eval_steps: float | None = _key(None, "Steps between evaluations; by default as many as `save_steps`.")
    load_best_model_at_end: bool = _key(True, "Whether `final/` is the best checkpoint, not the last one.")
    metric_for_best_model: str | None = _key(
        "eval_pass@1", "The metric of evaluations by which a checkpoint is the best."
    )
    restore_callback_states_from_checkpoint: bool = _key(
        True, "Whether resuming restores callbacks such as early stopping."
    )
    use_cpu: bool = _key(False, "Train on the CPU even if there is a GPU.")
    ddp_find_unused_parameters: bool | None = _key(
        False, "Whether DDP looks for weights that a pass did not use; mixtures of experts need it."
    )
    logging_nan_inf_filter: bool = _key(False, "Refused: a loss that is not a number stops the run.")
    remove_unused_columns: bool = _key(False, "Refused: problems have no columns.")

    def __post_init__(self) -> None:
        # Made in Python, a config was not read from a file, where values are checked: they are here.
        hints = get_type_hints(type(self))
        for f in own_fields():
            setattr(self, f.name, coerce(f.name, getattr(self, f.name), hints[f.name]))
        for key, value in PRESETS[self.preset].items():
            if getattr(self, key) is None:
                setattr(self, key, value)
        self.language_args = checked(self.language_args or {}, _language_schema(self.language))
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
        self.hub_strategy = "end"  # the trainer uploads final/ itself; transformers is to upload nothing
        try:
            super().__post_init__()
        except ValueError as error:
            raise ConfigError(one_line(error)) from error
        check_device(self)  # last: only now the device and the number of processes are known
        self._fit_batch_size()

    @property
    def n_gpu(self) -> int:
        """GPUs of this process, one at most: Trainer would divide passes among all and lose their masks."""
        return min(int(super().n_gpu), 1)

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
            language=self.built_language,
            own_metrics=tuple(self.metrics or ()),
        )

    @property
    def samples_per_problem(self) -> int:
        """`num_generations`, given or of the preset."""
        assert self.num_generations is not None, "every preset says how many"
        return self.num_generations

    @property
    def bits(self) -> Bits:
        """How many bits a weight is loaded in; None: as many as its type has."""
        return 4 if self.load_in_4bit else 8 if self.load_in_8bit else None

    @property
    def rules(self) -> Rules:
        """What buffers keep."""
        return Rules.of(vars(self))

    @property
    def asking(self) -> Asking:
        """How questions are put to the model."""
        return Asking(self.chat_template, self.system_prompt, self.prompt_template, self.built_language)

    @property
    def built_language(self) -> Language:
        """What solutions are written in, with its rules."""
        return language_of({"language": self.language, "language_args": self.language_args})

    @property
    def built_objective(self) -> Objective:
        """The objective with its parameters."""
        hints = get_type_hints(objective_class(self.objective))
        given = self.objective_args or {}
        parameters = {key: coerce(key, value, hints.get(key, Any)) for key, value in given.items()}
        return objective(self.objective, parameters, self.loss_normalization)

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


def config_of(
    settings: Mapping[str, Any],
    overrides: Mapping[str, str] | None = None,
    where: Callable[[str], str] = lambda key: "",
) -> SelfSamplingConfig:
    """The config that a file and `--key value` pairs describe, those for the language in `language_args`."""
    language = (overrides or {}).get("language") or settings.get("language") or "python"
    aim = (overrides or {}).get("objective") or settings.get("objective") or "mle_aug"
    nested = {"language_args": _language_schema(str(language)), "objective_args": objective_class(str(aim))}
    return SelfSamplingConfig(**checked(settings, SelfSamplingConfig, overrides, where, nested))


def _language_schema(name: str) -> type:
    schema: type = schema_of(language_class(name))
    return schema


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

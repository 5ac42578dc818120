"""What a run begins with: problems that can be learned from, a model to train, and what identifies both."""

from __future__ import annotations

import gc
import hashlib
import platform
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from partway.buffer import SolutionBuffer, reconsider, reference_traces, seed_buffers
from partway.datasets import load_problems
from partway.datasets.columns import without_references
from partway.datasets.sources import ProblemSource
from partway.datasets.spellings import without_number
from partway.errors import ConfigError, ModelError, ProblemError
from partway.execution import Programs, Trace
from partway.execution.programs import flaw_of
from partway.models.loading import LanguageModel, load_model, no_progress_bar
from partway.models.tiny import build_tiny_model, sizes_of
from partway.problem import Problem
from partway.runs import read_rows
from partway.runs.digests import problems_digest
from partway.runs.rows import now
from partway.training.config import SelfSamplingConfig

if TYPE_CHECKING:
    from peft import PeftConfig

SAMPLED_VALUES = 4096  # of each weight: to read all values of a large model takes minutes
MOST_TOKENS, SPARE_TOKENS = 2, 16  # no tokenizer makes more of an ASCII character, and at the ends of a text


@contextmanager
def collecting_later() -> Iterator[None]:
    """Make many objects that all stay; looking for garbage among them takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True)
class LeftOut:
    """A problem that cannot be trained on, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class Material:
    """What a training begins with; `traces` are those of the references, by problem id."""

    language_model: LanguageModel
    problems: list[Problem]
    dev: list[Problem]
    traces: Mapping[str, Trace]
    left_out: list[LeftOut]
    remarks: list[str]


def material(
    model: str | PreTrainedModel | LanguageModel,
    tokenizer: PreTrainedTokenizerBase | None,
    config: SelfSamplingConfig,
    train: Sequence[Problem] | ProblemSource,
    dev: Sequence[Problem] | ProblemSource | None,
    programs: Programs,
    peft_config: PeftConfig | None,
) -> Material:
    """The model, and the problems of the data sets that can be used with it."""
    given, remarks = given_problems(train, programs, config)
    language_model = prepared_model(model, tokenizer, config, given, peft_config)
    traces = traced_references(given, programs)
    problems, left_out = usable(given, programs, language_model, traces)
    return Material(
        language_model,
        with_references(problems, config.reference_share, config.seed),
        [] if dev is None else problems_of(dev, programs, config)[: config.max_eval_problems],
        traces,
        left_out,
        remarks,
    )


def problems_of(
    source: Sequence[Problem] | ProblemSource, programs: Programs, config: SelfSamplingConfig
) -> list[Problem]:
    """Problems as they are; anything else that holds rows is read."""
    if isinstance(source, list | tuple) and all(isinstance(problem, Problem) for problem in source):
        return list(source)
    return load_problems(cast(ProblemSource, source), programs=programs, columns=config.named_columns)


def given_problems(
    source: Sequence[Problem] | ProblemSource, programs: Programs, config: SelfSamplingConfig
) -> tuple[list[Problem], list[str]]:
    """The problems to train on, and what is odd about them as a whole."""
    problems = problems_of(source, programs, config)
    remark = without_references(problems) if problems and config.buffer_file is None else None
    if remark is not None and config.self_sampling == "none":
        raise ProblemError(f"self_sampling is none, but {remark}")
    return problems, [one for one in (remark, without_number(problems)) if one is not None]


@collecting_later()
def usable(
    problems: Sequence[Problem],
    programs: Programs,
    language_model: LanguageModel,
    traces: Mapping[str, Trace],
) -> tuple[list[Problem], list[LeftOut]]:
    """The problems that can be trained on, and those left out; `traces` are those of their references."""
    kept, left_out = [], []
    seen: set[str] = set()
    for problem in problems:
        reason = "an earlier problem has the same id" if problem.id in seen else None
        reason = reason or _flaw(problem, programs, traces) or _length_flaw(problem, language_model)
        seen.add(problem.id)
        if reason is None:
            kept.append(problem)
        else:
            left_out.append(LeftOut(problem.id, reason))
    if not kept:
        raise ProblemError(
            f"none of the {len(problems)} problems can be trained on; the first: problem {left_out[0].id}: "
            f"{left_out[0].reason}"
        )
    return kept, left_out


def with_references(problems: Sequence[Problem], share: float, seed: int) -> list[Problem]:
    """The problems, of which only a share keeps its reference; a larger share keeps those of a smaller."""
    if share >= 1:
        return list(problems)
    return [
        problem
        if random.Random(f"{seed}/{problem.id}").random() < share
        else Problem(problem.id, problem.question, problem.answer, None, problem.meta)
        for problem in problems
    ]


@collecting_later()
def first_buffers(
    problems: Sequence[Problem],
    config: SelfSamplingConfig,
    programs: Programs,
    traces: Mapping[str, Trace],
) -> dict[str, SolutionBuffer]:
    """What every problem begins with: its reference and, run again, the solutions in `buffer_file`."""
    buffers = seed_buffers(problems, config.rules, programs, traces)
    if config.buffer_file is not None:
        path = Path(config.buffer_file)
        if not path.is_file():
            raise ConfigError(
                f"buffer_file is {path}, expected a file; `partway buffer NEW --import RUN` makes one"
            )
        reconsider(buffers, read_rows(path))
    return buffers


@collecting_later()
def traced_references(problems: Sequence[Problem], programs: Programs) -> dict[str, Trace]:
    """The references that there are, each run once, by id; of problems with one id, the first one's."""
    if not problems:
        raise ProblemError("there are no problems to train on; set train_file to a file that has some")
    return reference_traces(reversed(problems), programs)  # by id the last one stays


def _flaw(problem: Problem, programs: Programs, traces: Mapping[str, Trace]) -> str | None:
    """What is wrong with a problem's reference or answer."""
    if problem.reference is None:
        return programs.answer_flaw(problem.answer)
    flaw = flaw_of(traces[problem.id], problem.answer, programs)
    return None if flaw is None else f"the reference {flaw}"


def _length_flaw(problem: Problem, language_model: LanguageModel) -> str | None:
    codec = language_model.codec
    if _surely_fits(problem, language_model):
        return None
    length = len(codec.prompt(problem.question)) + len(codec.closing)
    if problem.reference is not None:
        length += len(codec.steps(problem.reference))
    if length <= language_model.context_length:
        return None
    return f"{length} tokens, but the model reads at most {language_model.context_length}"


def _surely_fits(problem: Problem, language_model: LanguageModel) -> bool:
    """Whether a problem is so short that its tokens need not be counted, which takes long for a million."""
    codec = language_model.codec
    texts = codec.question.text(problem.question), "" if problem.reference is None else problem.reference.text
    most = MOST_TOKENS * sum(map(len, texts)) + SPARE_TOKENS
    # An anchored codec refuses some texts when it reads them: those are to be found before training.
    return most <= language_model.context_length and not codec.anchor and all(map(str.isascii, texts))


def prepared_model(
    model: str | PreTrainedModel | LanguageModel,
    tokenizer: PreTrainedTokenizerBase | None,
    config: SelfSamplingConfig,
    problems: Sequence[Problem],
    peft_config: PeftConfig | None = None,
) -> LanguageModel:
    """The model to train, from a name, a model with its tokenizer, or one already loaded."""
    if peft_config is None and config.use_peft:
        peft_config = lora_config(config)
    base_name = None
    if isinstance(model, str):
        if config.bits and peft_config is None:
            raise ConfigError(
                f"load_in_{config.bits}bit is true but use_peft is false: quantised weights cannot be "
                "trained; set use_peft to true"
            )
        base_name = None if model == "tiny" else model
        model = named_model(model, config, problems)
    elif not isinstance(model, LanguageModel):
        if tokenizer is None:
            raise ModelError("a model without its tokenizer cannot be trained; pass processing_class")
        model = LanguageModel.of(model, tokenizer, config.asking)
    if config.attn_implementation is not None:
        set_attention(model.model, config.attn_implementation)
    return model if peft_config is None else with_adapter(model, peft_config, config.seed, base_name)


def lasting_name(name: str) -> str:
    """The name under which a model is found again from any directory."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name


def set_attention(model: PreTrainedModel, name: str) -> None:
    """Have the model compute attention so; layouts and samplers that it is not right for are not used."""
    if name == "flex_attention" and model.device.type == "cpu":  # PyTorch 2.13 dies of it, without an error
        raise ConfigError(f"attn_implementation is {name}, which ends the process on a CPU; leave it out")
    try:
        model.set_attn_implementation(name)
    except (ValueError, ImportError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"attn_implementation is {name}, which cannot be used here: {reason}") from error


def named_model(name: str, config: SelfSamplingConfig, problems: Sequence[Problem]) -> LanguageModel:
    """The model that `name` stands for; `tiny` is made for the problems."""
    if name == "tiny":
        if config.bits:
            raise ConfigError(f"load_in_{config.bits}bit is true, but the tiny model has nothing to save")
        sizes = sizes_of(config.config_overrides) if config.config_overrides else {}
        return build_tiny_model(problems, seed=config.seed, directory=None, **sizes)
    dtype = getattr(torch, config.dtype)
    device = config.device if config.bits else "cpu"  # Trainer moves it, unless it is quantised
    return load_model(name, dtype=dtype, device=device, asking=config.asking, bits=config.bits)


def lora_config(config: SelfSamplingConfig) -> PeftConfig:
    """The adapter that the `lora_*` settings describe."""
    try:
        from peft import LoraConfig
    except ImportError:
        raise ConfigError("use_peft needs the package peft; pip install 'partway[peft]'") from None
    return LoraConfig(
        r=config.lora_r,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=config.lora_target_modules,
        task_type="CAUSAL_LM",
    )


def with_adapter(
    language_model: LanguageModel, peft_config: PeftConfig, seed: int, base_name: str | None = None
) -> LanguageModel:
    """The model with an adapter to train in place of its weights; `base_name` finds the model again."""
    from peft import get_peft_model, prepare_model_for_kbit_training

    base: Any = language_model.model
    if getattr(base, "is_quantized", False):
        base = prepare_model_for_kbit_training(base, use_gradient_checkpointing=False)
    # The adapter's first weights depend on the seed alone, and drawing them moves no other random number.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model = get_peft_model(base, peft_config)
        except ValueError as error:
            raise ConfigError(f"lora_target_modules: {' '.join(str(error).split())}") from error
    for adapter in model.peft_config.values():
        named = adapter.base_model_name_or_path
        if not named or not Path(named).is_dir():  # `smollm2` is loaded from a directory, which peft can read
            named = base_name or named
        adapter.base_model_name_or_path = lasting_name(named) if named else None
    return LanguageModel(model, language_model.codec, language_model.context_length)


def save_nameless_base(model: Any, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save what an adapter was put on, if no name leads to it, so that the adapter can be loaded again."""
    adapters = getattr(model, "peft_config", {}).values()
    if not adapters or any(adapter.base_model_name_or_path for adapter in adapters):
        return
    base = model.get_base_model()
    weights = {
        name.replace(".base_layer", ""): weight
        for name, weight in base.state_dict().items()
        if ".lora_" not in name
    }
    with no_progress_bar():
        base.save_pretrained(directory, state_dict=weights)
        tokenizer.save_pretrained(directory)


def model_digest(model: Any) -> str:
    """A fingerprint of names, shapes and a sample of the values of all weights."""
    hasher = hashlib.sha256()
    for name, weight in model.named_parameters():
        stride = max(1, weight.numel() // SAMPLED_VALUES)
        values = weight.detach().reshape(-1)[::stride].double().cpu().numpy()
        hasher.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        hasher.update(values.tobytes())
    return hasher.hexdigest()


def environment_of(
    config: SelfSamplingConfig, model: Any, train: Sequence[Problem], dev: Sequence[Problem]
) -> dict[str, Any]:
    """Versions, machine, seed and fingerprints: the content of environment.json."""
    packages = ("partway", "torch", "transformers", "accelerate")
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in packages},
        "platform": platform.platform(),
        "device": config.device.type,
        "processes": config.world_size,
        "problems_per_step": config.problems_per_step,
        "command": " ".join(sys.argv),
        "seed": config.seed,
        "started": now(),
        "resumed": [],
        "data": {"train": _data_identity(train), "dev": _data_identity(dev) if dev else None},
        "model": {
            "name": config.model_name_or_path,
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "sha256": model_digest(model),
        },
    }


def _data_identity(problems: Sequence[Problem]) -> dict[str, Any]:
    return {"problems": len(problems), "sha256": problems_digest(problems)}


def _version(package: str) -> str:
    if package == "partway":
        from partway import __version__

        return __version__
    return version(package)

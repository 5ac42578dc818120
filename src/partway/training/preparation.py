"""What a run begins with: its model, the problems it can learn from, their first buffers, and its engine."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from partway import registry
from partway.buffer import reconsider, reference_traces
from partway.errors import ConfigError, ModelError, ProblemError, one_line
from partway.language import Language, Trace
from partway.language.language import flaw_of
from partway.language.named import settings_of
from partway.models.engine import Engine
from partway.models.loading import LanguageModel, load_model
from partway.models.tiny import build_tiny_model, sizes_of
from partway.problem import Problem
from partway.problems import ProblemSource, collecting_later, load_problems
from partway.runs import read_rows
from partway.sampling.local_engine import LocalEngine
from partway.training.config import SelfSamplingConfig
from partway.training.resuming import check_writable
from partway.training.shared_buffers import Buffers

if TYPE_CHECKING:
    from peft import PeftConfig

    from partway.training.trainer import SelfSamplingTrainer

MOST_TOKENS, SPARE_TOKENS = 2, 16  # no tokenizer makes more of an ASCII character, and at the ends of a text


@dataclass(frozen=True)
class LeftOut:
    """A problem that cannot be trained on, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class Material:
    """What a training begins with."""

    language_model: LanguageModel
    problems: list[Problem]
    dev: list[Problem]
    buffers: Buffers
    left_out: list[LeftOut]
    remarks: list[str]


def material(
    model: str | PreTrainedModel | LanguageModel,
    tokenizer: PreTrainedTokenizerBase | None,
    config: SelfSamplingConfig,
    train: Sequence[Problem] | ProblemSource,
    dev: Sequence[Problem] | ProblemSource | None,
    language: Language,
    peft_config: PeftConfig | None,
) -> Material:
    """The model, the problems of the data sets that can be used with it, and their first buffers.

    The settings follow: readers of the run have the same language, and nothing is evaluated on no problems.
    """
    config.settings |= settings_of(language)
    check_writable(Path(config.output_dir or "run"))
    given, remarks = given_problems(train, language, config)
    language_model = prepared_model(model, tokenizer, config, given, peft_config)
    traces = traced_references(given, language)
    problems, left_out = usable(given, language, language_model, traces)
    problems = with_references(problems, config.reference_share, config.seed)
    asked = [] if dev is None else _dev_problems(dev, language, config, language_model)
    if not asked:
        config.eval_strategy, config.load_best_model_at_end = "no", False
    buffers = first_buffers(problems, config, language, traces)
    return Material(language_model, problems, asked, buffers, left_out, remarks)


def problems_of(
    source: Sequence[Problem] | ProblemSource, language: Language, config: SelfSamplingConfig
) -> list[Problem]:
    """Problems as they are; anything else that holds rows is read."""
    if isinstance(source, list | tuple) and all(isinstance(problem, Problem) for problem in source):
        return list(source)
    return load_problems(cast(ProblemSource, source), language=language, columns=config.columns)


def _dev_problems(
    source: Sequence[Problem] | ProblemSource,
    language: Language,
    config: SelfSamplingConfig,
    language_model: LanguageModel,
) -> list[Problem]:
    """The problems to look at on the way; one that cannot be asked is to be known before the first step."""
    problems = problems_of(source, language, config)[: config.max_eval_problems]
    for problem in problems:
        language_model.codec.question.text(problem.question)
    return problems


def given_problems(
    source: Sequence[Problem] | ProblemSource, language: Language, config: SelfSamplingConfig
) -> tuple[list[Problem], list[str]]:
    """The problems to train on, and what is odd about them as a whole."""
    problems = problems_of(source, language, config)
    has_solutions = config.buffer_file is not None or any(one.reference is not None for one in problems)
    added = registry.parts("problems").get("remarks")
    remarks: list[str] = [] if added is None else added.load()(problems, has_solutions=has_solutions)
    if problems and not has_solutions and config.self_sampling == "none":
        told = remarks[0] if remarks else "no problem has a reference: nothing would be learned"
        raise ProblemError(f"self_sampling is none, but {told}")
    return problems, remarks


@collecting_later()
def usable(
    problems: Sequence[Problem],
    language: Language,
    language_model: LanguageModel,
    traces: Mapping[str, Trace],
) -> tuple[list[Problem], list[LeftOut]]:
    """The problems that can be trained on, and those left out; `traces` are those of their references."""
    kept, left_out = [], []
    seen: set[str] = set()
    for problem in problems:
        reason = "an earlier problem has the same id" if problem.id in seen else None
        reason = (
            reason or _flaw(problem, language, traces) or _reading_flaw(problem, language, language_model)
        )
        seen.add(problem.id)
        if reason is None:
            kept.append(problem)
        else:
            left_out.append(LeftOut(problem.id, reason))
    if not kept:
        raise ProblemError(
            f"no problem can be trained on; the first: problem {left_out[0].id}: {left_out[0].reason}"
        )
    return kept, left_out


def with_references(problems: Sequence[Problem], share: float, seed: int) -> list[Problem]:
    """The problems, of which an exact share of the references is kept; a larger share holds a smaller one."""
    if share >= 1:
        return list(problems)
    given = [(random.Random(f"{seed}/{p.id}").random(), p.id) for p in problems if p.reference is not None]
    kept = {id for _, id in sorted(given)[: round(share * len(given))]}
    return [p if p.id in kept else replace(p, reference=None) for p in problems]


@collecting_later()
def first_buffers(
    problems: Sequence[Problem],
    config: SelfSamplingConfig,
    language: Language,
    traces: Mapping[str, Trace],
) -> Buffers:
    """What every problem begins with: its reference and, run again, the solutions in `buffer_file`."""
    buffers = Buffers.of(problems, config.rules, language, traces)
    if config.buffer_file is not None:
        path = Path(config.buffer_file)
        if not path.is_file():
            raise ConfigError(f"buffer_file is {path}, expected a file that `partway buffer import` makes")
        reconsider(buffers, read_rows(path))
        for key in buffers.made:
            buffers.measure(key)
    return buffers


@collecting_later()
def traced_references(problems: Sequence[Problem], language: Language) -> dict[str, Trace]:
    """The references that there are, each run once, by id; of problems with one id, the first one's."""
    if not problems:
        raise ProblemError("there are no problems to train on; set train_file to a file that has some")
    return reference_traces(reversed(problems), language)  # by id the last one stays


def _flaw(problem: Problem, language: Language, traces: Mapping[str, Trace]) -> str | None:
    """What is wrong with a problem's reference or answer."""
    if problem.reference is None:
        return language.flaw(problem)
    flaw = flaw_of(problem, traces[problem.id], language)
    return None if flaw is None else f"the reference {flaw}"


def _reading_flaw(problem: Problem, language: Language, language_model: LanguageModel) -> str | None:
    """Why the model cannot read a problem."""
    codec = language_model.codec
    try:
        question = language.fitted(language_model.context_length, codec.prompt).question(problem)
        if _surely_fits(question, problem, language_model):
            return None
    except ProblemError as error:  # its question cannot be asked
        return str(error)
    length = len(codec.prompt(question)) + len(codec.closing)
    if problem.reference is not None:
        length += len(codec.steps(problem.reference))
    if length <= language_model.context_length:
        return None
    return f"{length} tokens, but the model reads at most {language_model.context_length}"


def _surely_fits(question: str, problem: Problem, language_model: LanguageModel) -> bool:
    """Whether a problem is so short that its tokens need not be counted, which takes long for a million."""
    codec = language_model.codec
    texts = codec.question.text(question), "" if problem.reference is None else problem.reference.text
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
    has_adapter = config.use_peft or peft_config is not None
    base_name = None  # the name an adapter is to remember; a model made or given here has none
    if isinstance(model, str):
        if config.bits and not has_adapter:
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
        set_attention(model.model, config.attn_implementation, config.device)
    if has_adapter:
        model = registry.part("adapters", "add")(model, config, peft_config, base_name)
    return model


def set_attention(model: PreTrainedModel, name: str, device: torch.device) -> None:
    """Have the model compute attention so; layouts and samplers that it is not right for are not used."""
    if name == "flex_attention" and device.type == "cpu":  # PyTorch 2.13 dies of it, without an error
        raise ConfigError(f"attn_implementation is {name}, which ends the process on a CPU; leave it out")
    try:
        model.set_attn_implementation(name)
    except (ValueError, ImportError, KeyError) as error:
        raise ConfigError(f"attn_implementation is {name}, which fails here: {one_line(error)}") from error


def named_model(name: str, config: SelfSamplingConfig, problems: Sequence[Problem]) -> LanguageModel:
    """The model that `name` stands for; `tiny` is made for the problems."""
    if name == "tiny":
        if config.bits:
            raise ConfigError(f"load_in_{config.bits}bit is true, but the tiny model has nothing to save")
        sizes = sizes_of(config.config_overrides) if config.config_overrides else {}
        return build_tiny_model(problems, seed=config.seed, directory=None, asking=config.asking, **sizes)
    device = config.device if config.bits else "cpu"  # Trainer moves it, unless it is quantised
    return load_model(name, dtype=config.dtype, device=device, asking=config.asking, bits=config.bits)


def engine_of(trainer: SelfSamplingTrainer, language_model: LanguageModel) -> Engine:
    """The servers of the settings, if there are any, else the sampling tree on the model that is trained."""
    args, language = trainer.args, trainer.language
    if not args.servers or trainer.replay is not None:
        layout = trainer.scorer.layout
        return LocalEngine(language_model, language=language, layout=layout, memory=args.sampling_memory)
    engine: Engine = registry.part("engines", "training")(trainer, language_model)
    return engine


def explorer_of(trainer: SelfSamplingTrainer, engine: Engine) -> tuple[Engine, Engine]:
    """What evaluations ask, and what exploring asks: the same engine, unless the settings say more.

    A folder around the method gives it weights seldom, or asks ahead. With `replay` the samples of that run
    take the place of new ones.
    """
    pair = engine, engine
    if trainer.replay is not None:
        pair = registry.part("explorers", "recorded")(engine, trainer.replay)
    elif trainer.args.weight_sync_steps > 1 or trainer.args.explore_ahead:
        pair = engine, registry.part("explorers", "ahead")(trainer, engine)
    return pair

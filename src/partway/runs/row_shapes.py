"""What the rows of a run's files have to hold, so that a file somebody changed is one clear error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, get_args

from partway.buffer import Verdict
from partway.buffer.buffer import Kind
from partway.documents import is_whole
from partway.runs.evaluations import SUMMARY, samples_beside, summary_of

BUFFERS = "buffer.jsonl"  # beside the weights, in a checkpoint and in the final model
COUNT = range(1 << 53)  # what a JSON reader in any language holds exactly
LARGEST = 10**300  # beyond it an integer has no float, and Python may refuse to spell it

Keys = Mapping[Any, object]


class Text:
    """Stands for a text that a file can hold: without halves of characters."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """What a key holds if it is there; `null` says whether it may also be null."""

    shape: object
    null: bool = True


# A shape is a type, a range of integers, a set of texts, a list of one shape, or keys with shapes, where the
# key `str` stands for all others. A float is any finite number.
_SAMPLE: Keys = {
    "step": COUNT,
    "problem": Text,
    "prefix": Text,
    "completion": Text,
    "count": COUNT,
    "finished": bool,
    "verdict": frozenset(verdict.value for verdict in Verdict),
    "log_prob": Maybe(float),
    "weights": Maybe(COUNT),
}
_RULES: Keys = {key: Maybe(COUNT) for key in ("length_tolerance", "max_solutions", "length_limit")}
_WITNESS: Keys = {"solution": [Text], "position": COUNT, "completion": [Text]}
_KEPT: Keys = {
    "kind": frozenset(get_args(Kind)),
    "steps": [Text],
    "states": [Text],
    "found": COUNT,
    "seam": Maybe(COUNT, null=False),
    "flag": Maybe(Text, null=False),
    "witness": Maybe(_WITNESS, null=False),
}
_BUFFER: Keys = {
    "id": Text,
    "rules": {**_RULES, str: (Text, bool, int, None)},
    "max_length": Maybe(COUNT),
    "usual_length": Maybe(COUNT, null=False),
    "solutions": [_KEPT],
}
_PROBLEM: Keys = {
    "id": (Text, int),
    "question": Text,
    "answer": object,
    "solution": Maybe(Text),
    "meta": Maybe(dict),
}
_JUDGED: Keys = {
    "task_id": (Text, int),
    "completion": str,
    "passed": bool,
    "count": Maybe(COUNT, null=False),
    "answer": Maybe(Text),
    "failed_step": Maybe(COUNT),
    "result": Maybe(str),
    "failure": Maybe(str),
}
_LOGGED: Keys = {
    "step": COUNT,
    "final_step": Maybe(COUNT, null=False),
    str: (float, Text, bool, None, list, dict),
}
_TIMED: Keys = {"step": COUNT, str: float}
_ESTIMATE = {"value": float, "low": float, "high": float}
_SUMMARY: Keys = {
    **dict.fromkeys(("problems", "samples", "pass1_samples"), COUNT),
    "ks": [COUNT],
    "metrics": {str: _ESTIMATE},
}
_ENVIRONMENT: Keys = {
    **dict.fromkeys(("seed", "processes", "problems_per_step"), Maybe(COUNT)),
    "data": Maybe({str: Maybe({"problems": Maybe(COUNT)})}),
    "model": Maybe({"name": Maybe(Text), "parameters": Maybe(COUNT)}),
    "resumed": Maybe([dict], null=False),
}
_CONFIG: Keys = {
    **dict.fromkeys(("seed", "length_tolerance", "length_limit", "max_solutions_per_problem"), Maybe(COUNT)),
    **dict.fromkeys(("dedup", "equivalence", "dead_ends", "spurious", "checker", "programs"), Maybe(Text)),
    **dict.fromkeys(("answer_variable", "state", "solution_end", "program_forms"), Maybe(Text, null=False)),
    **dict.fromkeys(("objective", "self_sampling", "metric_for_best_model"), Maybe(Text)),
}
_PROGRESS: Keys = {
    **dict.fromkeys(("step", "last_logged", "num_tokens"), COUNT),
    "ended": bool,
    "total_loss": float,
    "files": Maybe({str: COUNT}, null=False),
    "ledger": {"verdicts": {str: COUNT}, str: float},
}
_FILES: dict[str, object] = {
    BUFFERS: _BUFFER,
    "metrics.jsonl": _LOGGED,
    "timings.jsonl": _TIMED,
    "environment.json": _ENVIRONMENT,
    "config.yaml": _CONFIG,
    "progress.json": _PROGRESS,
    "trainer_state.json": {"best_model_checkpoint": Maybe(Text)},
}


def flaw_of(row: Mapping[str, Any], path: Path) -> str | None:
    """What is wrong with a row of the file at `path`, None if nothing or if it may hold anything."""
    return _flaw("", row, _shape(path))


def summary_flaw(summary: Mapping[str, Any]) -> str | None:
    """What is wrong with the summary of an evaluation, wherever its file is."""
    return _flaw("", summary, _SUMMARY)


def _shape(path: Path) -> object:
    if path.parent.name == "evaluations":
        if path.suffix == SUMMARY:
            return _SUMMARY
        return _JUDGED if path in samples_beside(summary_of(path)) else object
    return _FILES.get(path.name) or {"samples": _SAMPLE, "problems": _PROBLEM}.get(path.parent.name, object)


def _flaw(name: str, value: Any, shape: Any) -> str | None:
    """The first difference between a value and the shape it should have."""
    if isinstance(shape, tuple):  # any of these; the first is the one to name in a message
        flaws = [_flaw(name, value, one) for one in shape]
        return None if None in flaws else flaws[0]
    if not _fits(value, shape):
        return f"{name or 'it'} is {_shown(value)}, expected {_expected(shape)}"
    if isinstance(shape, list):
        return next((flaw for one in value if (flaw := _flaw(name, one, shape[0]))), None)
    return _flaw_of_keys(value, shape) if isinstance(shape, dict) else None


def _flaw_of_keys(value: Mapping[str, Any], shape: Mapping[Any, Any]) -> str | None:
    for key in shape:
        # Keys that are missing are named before any that are wrong: they tell more about the file.
        if key is not str and key not in value and not isinstance(shape[key], Maybe):
            return f"no {key!r}"
    for key, content in value.items():
        if not _fits(key, Text):
            return f"{key!r} is no name"
        expected: Any = shape.get(key, shape.get(str, object))
        if isinstance(expected, Maybe):
            if content is None and expected.null:
                continue
            expected = expected.shape
        if flaw := _flaw(key, content, expected):
            return flaw
    # The one rule between two keys: a kept solution has a state behind every step.
    is_uneven = shape is _KEPT and len(value["steps"]) != len(value["states"])
    return "as many states as steps are needed" if is_uneven else None


def _fits(value: object, shape: Any) -> bool:
    """Whether a value is of the kind that a shape asks for, whatever it holds."""
    if isinstance(shape, frozenset):
        return isinstance(value, str) and value in shape
    if shape is None:
        return value is None
    if shape is Text:
        return isinstance(value, str) and (value.isascii() or is_whole(value))
    if shape is float:
        return _is_number(value) and math.isfinite(value)
    if isinstance(shape, range):  # `type`, not isinstance: True is no count
        return type(value) is int and value in shape
    if shape is int:
        return type(value) is int
    return isinstance(value, shape if isinstance(shape, type) else type(shape))


def _is_number(value: Any) -> TypeGuard[float]:
    return type(value) is float or (type(value) is int and abs(value) < LARGEST)


def _expected(shape: Any) -> str:
    if isinstance(shape, frozenset):
        return f"one of {', '.join(sorted(shape))}"
    if isinstance(shape, range):
        return f"an integer from 0 to {shape[-1]}"
    if shape in (float, Text):
        return "a number" if shape is float else "a text"
    return str((shape if isinstance(shape, type) else type(shape)).__name__)


def _shown(value: object) -> str:
    if type(value) is int and abs(value) >= LARGEST:
        return "an integer of hundreds of digits"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

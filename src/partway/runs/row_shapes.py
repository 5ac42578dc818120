"""What the rows of a run's files have to hold, so that a file somebody changed is one clear error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from partway.buffer import Verdict
from partway.buffer.buffer import Kind
from partway.runs.evaluations import PASS1, SAMPLES, summary_of

BUFFERS = "buffer.jsonl"  # beside the weights, in a checkpoint and in the final model

_SAMPLE: dict[str, object] = {"step": int, "problem": str, "prefix": str, "completion": str, "count": int}
_SAMPLE |= {"finished": bool, "verdict": frozenset(verdict.value for verdict in Verdict)}
_KEPT = {"kind": frozenset(get_args(Kind)), "steps": [str], "states": [str], "found": int}
_BUFFER = {"id": str, "rules": dict, "max_length": object, "solutions": [_KEPT]}
_PROBLEM = {"id": object, "question": str, "answer": object}
_JUDGED = {"task_id": object, "completion": str, "passed": bool}


def flaw_of(row: Mapping[str, Any], path: Path) -> str | None:
    """What is wrong with a row of the file at `path`, None if nothing or if it may hold anything."""
    return _flaw("", row, _shape(path))


def _shape(path: Path) -> object:
    if path.name == BUFFERS:
        return _BUFFER
    if path.parent.name == "evaluations" and path.name in _names_of_samples(path):
        return _JUDGED
    return {"samples": _SAMPLE, "problems": _PROBLEM}.get(path.parent.name, object)


def _names_of_samples(path: Path) -> set[str]:
    return {summary_of(path).with_suffix(suffix).name for suffix in (SAMPLES, PASS1)}


def _flaw(name: str, value: Any, shape: Any) -> str | None:
    """The first difference: a shape is a type, a set of texts, a list of one shape, or names with shapes."""
    if isinstance(shape, frozenset):
        is_known = isinstance(value, str) and value in shape
        return None if is_known else f"{name} is {_shown(value)}, expected one of {', '.join(sorted(shape))}"
    kind = shape if isinstance(shape, type) else type(shape)
    if not _is_a(kind, value):
        return f"{name} is {_shown(value)}, expected {kind.__name__}"
    if isinstance(shape, list):
        return next((flaw for one in value if (flaw := _flaw(name, one, shape[0]))), None)
    for key, expected in shape.items() if isinstance(shape, dict) else ():
        if key not in value:
            return f"no {key!r}"
        if flaw := _flaw(key, value[key], expected):
            return flaw
    return "as many states as steps are needed" if shape is _KEPT and _is_uneven(value) else None


def _is_a(kind: type, value: object) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _is_uneven(kept: Mapping[str, Any]) -> bool:
    return len(kept["steps"]) != len(kept["states"])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

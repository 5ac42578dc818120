"""GSM8K to problems: programs that follow, step by step, from the written solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mathdata.gsm8k.converting import convert_gsm8k

__all__ = ["convert_gsm8k", "reference_texts"]


def reference_texts(rows: Sequence[Mapping[str, str]]) -> list[str | None]:
    """The reference that can be made of each row in GSM8K's markup; None where none can be."""
    problems = convert_gsm8k([], list(rows)).splits["test"]
    return [None if problem.reference is None else problem.reference.text for problem in problems]

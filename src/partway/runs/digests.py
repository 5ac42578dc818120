"""What tells files and problems from others: SHA-256, the same on every machine and in every version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from partway.problem import Problem
from partway.runs.rows import json_line


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def problems_digest(problems: Iterable[Problem]) -> str:
    """The SHA-256 of problems, in order."""
    hasher = hashlib.sha256()
    for problem in problems:
        row = {"id": problem.id, "question": problem.question, "answer": problem.answer}
        row |= {"solution": problem.reference.text} if problem.reference is not None else {}
        row |= {"meta": dict(problem.meta)} if problem.meta else {}
        # What the first version hashed, which is not quite a row of today: its runs can be resumed.
        hasher.update(json_line(row).encode())
    return hasher.hexdigest()

"""The files of an evaluation: a summary, NAME.json, and beside it the samples it was made from."""

from __future__ import annotations

from pathlib import Path

SUMMARY, SAMPLES, PASS1, UNFINISHED = ".json", ".jsonl", ".pass1.jsonl", ".partial.jsonl"


def samples_beside(summary: Path) -> tuple[Path, Path]:
    """Where the samples behind a summary are, and those drawn apart for the paper's pass@1."""
    return summary.with_suffix(SAMPLES), summary.with_suffix(PASS1)


def journal_beside(summary: Path) -> Path:
    """What an unfinished evaluation has finished so far."""
    return summary.with_suffix(UNFINISHED)


def summary_of(path: Path) -> Path:
    """The summary that a file belongs to, whichever of an evaluation's it is.

    >>> summary_of(Path("test.pass1.jsonl")).name
    'test.json'
    """
    # `.pass1.jsonl` is two suffixes, of which `with_suffix` would take one.
    name = path.name.removesuffix(SAMPLES).removesuffix(".pass1").removesuffix(SUMMARY)
    return path.with_name(name + SUMMARY)

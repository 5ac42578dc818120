"""Placeholder: B, M and Verdict (Algorithm 3, lines 3-9)."""

from enum import StrEnum


class Verdict(StrEnum):
    """What became of a sampled solution."""

    NEW_FULLY_CORRECT = "new_fully_correct"
    KNOWN_FULLY_CORRECT = "known_fully_correct"
    NEW_PARTIALLY_CORRECT = "new_partially_correct"
    KNOWN_PARTIALLY_CORRECT = "known_partially_correct"
    TOO_LONG = "too_long"
    INCORRECT = "incorrect"
    NOT_EXECUTABLE = "not_executable"


class SolutionBuffer:
    """Placeholder."""

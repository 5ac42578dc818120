"""Question templates: texts with their numbers masked, near-copies among them, and what splits share.

Near-copies are found without comparing all pairs: if two token sequences are at most k edits apart and one
of them is cut into k + 1 pieces, then at least one piece occurs unchanged in the other, at most k tokens
from its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mathdata.mathqa.formulas import NUMBER

Template = tuple[str, ...]


def template_of(question: str) -> Template:
    """The tokens of a question, each number masked.

    >>> template_of("a car covers 1,200 km in 3.5 h")
    ('a', 'car', 'covers', '_', 'km', 'in', '_', 'h')
    """
    return tuple(NUMBER.sub("_", question).split())


def overlaps(splits: Mapping[str, Iterable[str]]) -> dict[str, dict[str, int]]:
    """For every ordered pair of splits, how many questions of the first have a template of the second.

    >>> overlaps({"train": ["1 car", "2 cars", "3 cars"], "test": ["9.5 cars"]})
    {'train': {'test': 2}, 'test': {'train': 1}}
    """
    templates = {
        split: [template_of(question) for question in questions] for split, questions in splits.items()
    }
    distinct = {split: set(found) for split, found in templates.items()}
    return {
        first: {
            second: sum(template in distinct[second] for template in templates[first])
            for second in splits
            if second != first
        }
        for first in splits
    }


def distinct_templates(
    templates: Sequence[Template],
    edits: int,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> list[int]:
    """Walk the templates in order and keep each that is more than `edits` token edits from all kept ones."""
    kept: list[int] = []
    by_piece: defaultdict[tuple[int, int, Template], list[int]] = defaultdict(list)
    for index, template in enumerate(templates):
        near = _candidates(template, by_piece, edits)
        if not any(within_edits(template, templates[other], edits) for other in near):
            kept.append(index)
            for piece, (start, size) in enumerate(_pieces(len(template), edits + 1)):
                by_piece[len(template), piece, template[start : start + size]].append(index)
        progress(index + 1, len(templates))
    return kept


def within_edits(first: Template, second: Template, edits: int) -> bool:
    """Whether at most `edits` insertions, deletions or replacements of tokens turn one into the other.

    >>> within_edits(("a", "b", "c"), ("b", "x"), 2), within_edits(("a", "b", "c"), ("b", "x"), 1)
    (True, False)
    """
    if first == second:
        return True
    if abs(len(first) - len(second)) > edits:
        return False
    too_many = edits + 1
    # Edit distance on a band: cells further than `edits` from the diagonal cannot matter.
    row = {column: column for column in range(edits + 1)}
    for line, token in enumerate(first, 1):
        above, row = row, {}
        for column in range(max(0, line - edits), min(len(second), line + edits) + 1):
            replaced = above.get(column - 1, too_many) + (column == 0 or token != second[column - 1])
            row[column] = min(replaced, above.get(column, too_many) + 1, row.get(column - 1, too_many) + 1)
        if min(row.values()) > edits:
            return False
    return row.get(len(second), too_many) <= edits


def _candidates(
    template: Template, by_piece: Mapping[tuple[int, int, Template], list[int]], edits: int
) -> Iterator[int]:
    """Every kept template that could be within `edits`, each once."""
    seen: set[int] = set()
    # By length too: pieces of a longer template begin elsewhere.
    for length in range(len(template) - edits, len(template) + edits + 1):
        for piece, (start, size) in enumerate(_pieces(length, edits + 1)):
            for shifted in range(max(0, start - edits), min(len(template) - size, start + edits) + 1):
                for index in by_piece.get((length, piece, template[shifted : shifted + size]), ()):
                    if index not in seen:
                        seen.add(index)
                        yield index


def _pieces(length: int, count: int) -> Iterator[tuple[int, int]]:
    """Start and size of `count` pieces of nearly equal size; a shorter sequence has empty ones."""
    for piece in range(count):
        start = length * piece // count
        yield start, length * (piece + 1) // count - start

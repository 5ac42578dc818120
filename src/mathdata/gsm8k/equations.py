"""Lines to claims: what a written solution says it computed, and the ways to read how.

A claim is a value with candidate expressions: the calculator's annotation, the equation written before it.
An equation counts only if it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mathdata.gsm8k.expressions import (
    Expression,
    close,
    has_operation,
    percents_in,
    points,
    readings,
    value_of,
)
from mathdata.gsm8k.reading import Phrase, parse, phrases, with_mixed_numbers, with_tight_fractions
from mathdata.gsm8k.tokens import MARK, Token, plain_spelling, tokens

ANNOTATION = re.compile(r"<<([^<>]*)>>")
MAX_WORDS_BEFORE_RESULT = 3


@dataclass(frozen=True, slots=True)
class Derivation:
    """One reading of how a value was computed, the rule that read it and the text it read."""

    expression: Expression
    rule: str
    source: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A value stated at a place in the text, with the readings of how it came about.

    `letter` names the unknown whose value this is. A claim that is an `aside` (a coefficient, say) may be
    used by later ones but is not itself a result.
    """

    place: tuple[int, int]  # line, position in the line
    written: Fraction
    candidates: tuple[Derivation, ...]
    letter: str | None = None
    aside: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a solution in plain spelling, cut at its equals signs, with the annotations it had."""

    index: int
    text: str
    segments: tuple[tuple[Token, ...], ...]
    annotations: Mapping[int, str]  # by the position where each stood

    @classmethod
    def read(cls, index: int, raw: str, unknowns: frozenset[str] = frozenset()) -> Line:
        """The line, with `unknowns` read as letters."""
        text = plain_spelling(marked(raw))
        segments: list[list[Token]] = [[]]
        marks: list[int] = []
        for token in with_mixed_numbers(list(tokens(text, unknowns))):
            if token.kind == "equals":
                segments.append([])
                continue
            segments[-1].append(token)
            if token.kind == "mark":
                marks.append(token.start)
        # Marks and annotations are in the same order: nothing moves them.
        annotations = dict(zip(marks, ANNOTATION.findall(raw), strict=True))
        return cls(index, text, tuple(map(tuple, segments)), annotations)

    def source(self, start: int, end: int) -> str:
        """The text from `start` to `end` as a reader sees it."""
        return self.text[start:end].replace(MARK, "").strip()


def marked(raw: str) -> str:
    """The line with a mark in place of each annotation."""
    return ANNOTATION.sub(MARK, raw.replace(MARK, " "))


_ANNOTATED_EQUALS = re.compile(rf"=\s*[$£€]?\s*{MARK}")


def annotated_claims(index: int, raw: str) -> list[Claim] | None:
    """The claims of a line whose every equals sign is annotated with a computation, None for another line."""
    annotations = ANNOTATION.findall(raw)
    text = marked(raw)
    # One equals sign without an annotation, and the line has to be read in full.
    if "=" in _ANNOTATED_EQUALS.sub("", text) or "equal" in text:
        return None
    claims = [_annotation_claim(index, position, text) for position, text in enumerate(annotations)]
    found = [claim for claim in claims if claim is not None and claim.candidates]
    return found if len(found) == len(annotations) else None


def claims_in(line: Line, known: Mapping[str, Fraction] | None = None) -> list[Claim]:
    """The claims of one line in order; `known` has the values of letters."""
    claims: list[Claim] = []
    joined: set[int] = set()
    for before, after in zip(line.segments, line.segments[1:], strict=False):
        mark = _leading_mark(after)
        claim = _claim(line, before, after, mark, known or {})
        if claim is None:
            continue
        joined.add(mark)
        # 3 * 4 = 12 = 10 + 2 states 12 once, with two ways to compute it; the calculator's comes first.
        if claims and _continues(before, claims[-1], claim):
            both = claims.pop().candidates + claim.candidates
            claim = replace(claim, candidates=tuple(sorted(both, key=lambda one: one.rule != "annotation")))
        claims.append(claim)
    # Annotations that stand after no equals sign are claims on their own.
    for mark in line.annotations.keys() - joined:
        claim = _annotation_claim(line.index, mark, line.annotations[mark])
        claims += [] if claim is None else [claim]
    return sorted(claims, key=lambda claim: claim.place)


def _continues(middle: Sequence[Token], earlier: Claim, later: Claim) -> bool:
    """Whether a = b = c is one claim: b is a single expression, and a is c."""
    both = bool(earlier.candidates and later.candidates)
    return both and len(phrases(middle)) == 1 and close(earlier.written, later.written)


def _annotation_claim(line: int, position: int, text: str) -> Claim | None:
    """The claim of `48/2=24`; one without candidates if nothing is computed, as in `24=24`."""
    left, _, right = text.partition("=")
    expression, result = parse(list(tokens(left))), parse(list(tokens(right)))
    value = None if result is None else value_of(result)
    if expression is None or value is None:
        return None
    candidate = Derivation(expression, "annotation", text)
    return Claim((line, position), value, (candidate,) if has_operation(expression) else ())


@dataclass(frozen=True, slots=True)
class _Result:
    """What stands right of an equals sign: a value, its decimals as written, a percent sign, a unit."""

    value: Fraction
    decimals: int = 0
    percent: bool = False
    unit: str = ""


def _claim(
    line: Line, before: Sequence[Token], after: Sequence[Token], mark: int, known: Mapping[str, Fraction]
) -> Claim | None:
    right = right_phrase(after)
    if right is None:
        return None
    head = next(token for token in right.tokens if token.kind == "number")
    text = line.annotations.get(mark)
    annotation = None if text is None else _annotation_claim(line.index, mark, text)
    results = list(_results(right, head, _unit_after(after, head)))
    if annotation is not None:
        # The calculator's value: what is written beside it may be rounded or misspelled.
        results = [replace(results[-1], value=annotation.written)]
    for result in results:
        candidates = tuple(_equations(line, before, right, result, known))
        if candidates or annotation is not None:
            candidates = (annotation.candidates if annotation else ()) + candidates
            return Claim((line.index, head.start), result.value, candidates)
    return None


def _results(right: Phrase, head: Token, unit: str) -> Iterator[_Result]:
    """The whole phrase first, then its first number alone."""
    expression = parse(right.tokens) if len(right.tokens) > 1 else None
    value = None if expression is None else value_of(points(expression))
    if expression is not None and value is not None:
        yield _Result(value, 0, bool(percents_in(expression)), unit)
    yield _Result(head.value, head.decimals, head.percent, unit)


def _equations(
    line: Line, before: Sequence[Token], right: Phrase, result: _Result, known: Mapping[str, Fraction]
) -> Iterator[Derivation]:
    """The readings of what stands before an equals sign that give what stands after it."""
    for reading in left_readings(before):
        expression = parse(reading)
        if expression is None:
            continue
        source = line.source(reading[0].start, right.tokens[-1].end)
        found = False
        for candidate, rule in readings(expression, _last_word(before), result.unit, result.percent):
            value = value_of(candidate, known)
            if value is not None and has_operation(candidate) and _gives(value, result):
                yield Derivation(candidate, rule, source)
                found = True
        if found:  # readings come in order of trust: the first that holds is the one
            return


def left_readings(segment: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What may stand left of an equals sign: the last phrase, or the last one that computes something."""
    heard = _heard(segment)
    computing = [phrase for phrase in heard if phrase.has_operator]
    # In `3 + 4 of the 9 = 7` the last phrase is `9`; the one that computes is meant.
    for phrase in dict.fromkeys(heard[-1:] + computing[-1:]):
        yield from _readings(phrase)


def last_readings(segment: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """What may stand left of an equals sign, if it is the last phrase."""
    for phrase in _heard(segment)[-1:]:
        yield from _readings(phrase)


def _heard(segment: Sequence[Token]) -> list[Phrase]:
    """The complete phrases after the last punctuation."""
    # `It costs 5. 3 + 4 = 7`: what a full stop separates from the equals sign is not its left side.
    stops = sum(token.kind == "stop" for token in segment)
    return [phrase for phrase in phrases(segment) if phrase.stops_before == stops and phrase.complete]


def _readings(phrase: Phrase) -> Iterator[Sequence[Token]]:
    """The phrase as it stands, with tight fractions, and from where words may hide a new beginning."""
    yield phrase.tokens
    tight = with_tight_fractions(phrase.tokens)
    if len(tight) > len(phrase.tokens):
        yield tight
    for restart in phrase.restarts:
        yield phrase.tokens[restart:]


def right_phrase(segment: Sequence[Token]) -> Phrase | None:
    """The first phrase, unless it has no number or too many words stand before it."""
    found = phrases(segment)
    if not found or found[0].words_before > MAX_WORDS_BEFORE_RESULT or found[0].stops_before:
        return None
    return found[0] if any(token.kind == "number" for token in found[0].tokens) else None


def _gives(value: Fraction, result: _Result) -> bool:
    """Equal, or equal to the decimals that were written."""
    if close(value, result.value):
        return True
    # 10 / 3 = 3.33: right to the decimals that are there, whether rounded or cut.
    return result.decimals > 0 and abs(value - result.value) < Fraction(1, 10**result.decimals)


def _leading_mark(segment: Sequence[Token]) -> int:
    # `= a total of <<...>>12`: a few words may stand before it.
    for token in segment[: MAX_WORDS_BEFORE_RESULT + 1]:
        if token.kind == "mark":
            return token.start
        if token.kind != "word":
            break
    return -1


def _unit_after(segment: Sequence[Token], head: Token) -> str:
    following = (token for token in segment if token.start >= head.end and token.kind != "close")
    token = next(following, None)
    return token.text.lower() if token is not None and token.kind == "word" else ""


def _last_word(segment: Sequence[Token]) -> str:
    return segment[-1].text.lower() if segment and segment[-1].kind == "word" else ""

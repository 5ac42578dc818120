"""Unknowns to claims: equations in letters are solved where the solution states what the letter is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from mathdata.gsm8k.equations import (
    ANNOTATION,
    MAX_WORDS_BEFORE_RESULT,
    Claim,
    Derivation,
    Line,
    claims_in,
    last_readings,
)
from mathdata.gsm8k.expressions import (
    Expression,
    Letter,
    Number,
    close,
    has_operation,
    hundredths,
    letters,
    value_of,
)
from mathdata.gsm8k.linear import Terms, linear_form, negated, solve, total
from mathdata.gsm8k.reading import parse, phrases
from mathdata.gsm8k.tokens import Token, tokens, unknowns_in

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LetterEquation:
    """Two equal sides, at least one with a letter."""

    place: Place
    left: Expression
    right: Expression
    source: str

    @property
    def letters(self) -> set[str]:
        return letters(self.left) | letters(self.right)

    def states(self) -> tuple[str, Fraction] | None:
        """The letter and its value if the equation is `x = 5` or `5 = x`."""
        for side, other in ((self.left, self.right), (self.right, self.left)):
            if isinstance(side, Letter) and not has_operation(other) and not letters(other):
                value = value_of(other)
                return None if value is None else (side.name, value)
        return None


@dataclass
class Unknowns:
    """The letters of one written solution, their equations, and the values found so far."""

    raw: Sequence[str]
    names: list[str]
    equations: list[LetterEquation]
    values: dict[str, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, raw: Sequence[str]) -> Unknowns:
        names = unknowns_in(ANNOTATION.sub("", "\n".join(raw)))
        lines = [Line.read(index, line, frozenset(names)) for index, line in enumerate(raw)] if names else []
        equations = [equation for line in lines for equation in _letter_equations(line)]
        return cls(raw, names, sorted(equations, key=lambda equation: equation.place))

    def claims(self, numeric: Sequence[Claim]) -> list[Claim]:
        """The claims with those of the letters among them: values, coefficients, and what uses them."""
        claims = list(numeric)
        # Three passes, the surest first: values that an equation confirms, values that solve one without
        # being named, then values that are only stated.
        for name, place, value in self._stated():
            if name not in self.values and self._satisfies(name, value):
                self._take(claims, name, value, place)
        for name in self.names:
            if name not in self.values:
                self._take_unnamed(claims, name)
        for name, place, value in self._stated():
            if name not in self.values:
                self._take(claims, name, value, place)
        # Only now is it known which letters are unknowns; before, `5A` was read as five of a unit.
        claims = [self._without_letters(claim) for claim in claims] if self.values else claims
        # What a line already says in numbers needs no second reading in letters.
        stated = {(claim.place[0], claim.written) for claim in claims if claim.candidates}
        more = [*self._asides(), *self._uses()]
        return claims + [claim for claim in more if (claim.place[0], claim.written) not in stated]

    def _stated(self) -> Iterator[tuple[str, Place, Fraction]]:
        for equation in self.equations:
            stated = equation.states()
            if stated is not None:
                yield stated[0], equation.place, stated[1]

    def _satisfies(self, name: str, value: Fraction) -> bool:
        """Whether an equation in this letter alone holds for `value`."""
        for equation in self.equations:
            if equation.letters == {name} and equation.states() is None:
                sides = [value_of(side, {name: value}) for side in (equation.left, equation.right)]
                if sides[0] is not None and sides[1] is not None and close(sides[0], sides[1]):
                    return True
        return False

    def _without_letters(self, claim: Claim) -> Claim:
        """The claim without readings that take a letter for a unit: 2A + 3A = 5A is not 2 + 3 = 5."""
        names = frozenset(self.values)
        kept = tuple(
            candidate
            for candidate in claim.candidates
            if candidate.rule != "equation"
            or all(token.kind != "letter" for token in tokens(candidate.source, names))
        )
        return claim if kept == claim.candidates else replace(claim, candidates=kept)

    def _take(self, claims: list[Claim], name: str, value: Fraction, place: Place) -> None:
        """The letter's value, joined to the claim beside it if there is one."""
        candidates = tuple(self._solutions(name, value, place))
        # Said before in numbers: then the letter only names it, and needs no way of its own.
        if any(claim.place < place and close(claim.written, value) for claim in claims):
            candidates = tuple(c for c in candidates if not letters(c.expression))
        self.values[name] = value
        for index, claim in enumerate(claims):
            # `x = 10 / 2 = 5` is one claim: the letter's value and how it was computed.
            same_line = claim.place[0] == place[0] and claim.place[1] >= place[1]
            if same_line and close(claim.written, value):
                claims[index] = replace(claim, candidates=claim.candidates + candidates, letter=name)
                return
        claims.append(Claim(place, value, candidates, letter=name))

    def _take_unnamed(self, claims: list[Claim], name: str) -> None:
        """A letter whose value is given without naming it, by another claim or in the last line."""
        given = [((claim.place[0], 0), claim.written) for claim in claims]
        if all(stated != name for stated, _, _ in self._stated()):
            given += _numbers_in_last_line(self.raw)
        for place, value in given:
            if any(self._solutions(name, value, place)):
                self._take(claims, name, value, place)
                return

    def _solutions(self, name: str, value: Fraction, place: Place) -> Iterator[Derivation]:
        """The equations before `place` whose solution is `value`."""
        for equation in self.equations:
            # Letters whose values come later cannot help to find this one.
            if equation.place > place or not name in equation.letters <= {name, *self.values}:
                continue
            solution = solve(equation.left, equation.right, name, self.values)
            if solution is not None and has_operation(solution):
                found = value_of(solution, self.values)
                if found is not None and close(found, value):
                    yield Derivation(solution, "linear", equation.source)

    def _asides(self) -> list[Claim]:
        """What like terms add up to, each sum as it is first written."""
        asides: dict[Fraction, Claim] = {}
        for equation in self.equations:
            for claim in _collected(equation):
                asides.setdefault(claim.written, claim)
        return list(asides.values())

    def _uses(self) -> Iterator[Claim]:
        """Equations that compute something from letters whose values are known."""
        if not self.values:
            return
        for index, raw in enumerate(self.raw):
            for claim in claims_in(Line.read(index, raw, frozenset(self.values)), self.values):
                uses = tuple(candidate for candidate in claim.candidates if letters(candidate.expression))
                if uses:
                    yield replace(claim, candidates=uses)

    def expressions(self) -> Iterator[Claim]:
        """Expressions in known letters whose value the last line gives: `The other costs x + 5. ... $14`."""
        stated = list(_numbers_in_last_line(self.raw))
        for index, raw in enumerate(self.raw if self.values else ()):
            for segment in Line.read(index, raw, frozenset(self.values)).segments:
                for phrase in phrases(segment):
                    expression = parse(phrase.tokens)
                    if expression is None or not letters(expression) or not has_operation(expression):
                        continue
                    value = value_of(expression, self.values)
                    source = " ".join(token.text for token in phrase.tokens)
                    for place, number in stated:
                        if value is not None and close(value, number):
                            yield Claim(place, number, (Derivation(expression, "letter", source),))


def _letter_equations(line: Line) -> Iterator[LetterEquation]:
    """Equations with letters, also across a chain: a = b = c says a = c too."""
    for first, segment in enumerate(line.segments[:-1]):
        for tokens_left in last_readings(segment):
            left = parse(tokens_left)
            if left is not None:
                start = tokens_left[0].start
                for right, end in _right_sides(line.segments[first + 1 :]):
                    if letters(left) | letters(right):
                        source = line.source(start, end)
                        place = (line.index, start)
                        yield LetterEquation(place, hundredths(left), hundredths(right), source)


def _right_sides(segments: Sequence[Sequence[Token]]) -> Iterator[tuple[Expression, int]]:
    """What the segments of a chain begin with, and where it ends."""
    for segment in segments:
        found = [phrase for phrase in phrases(segment) if not phrase.stops_before]
        if not found or found[0].words_before > MAX_WORDS_BEFORE_RESULT:
            return
        for length in (len(found[0].tokens), *found[0].restarts[:1]):
            expression = parse(found[0].tokens[:length])
            if expression is not None:
                yield expression, found[0].tokens[length - 1].end
        if len(found) > 1 or any(token.kind == "stop" for token in segment):
            return


def _collected(equation: LetterEquation) -> Iterator[Claim]:
    """What like terms add up to: 4(3 + 2x) = 12 + 8x says 12 = 4*3 and 8 = 4*2."""
    names = equation.letters
    if len(names) != 1:  # like terms of two letters: annotators solve one at a time
        return
    first, second = (linear_form(side, *names) for side in (equation.left, equation.right))
    if first is None or second is None:
        return
    pairs = [(first.slope, second.slope), (first.constant, second.constant)]
    if all(_same(a, b) for a, b in pairs):
        for a, b in [*pairs, *((b, a) for a, b in pairs)]:
            # Signs are turned on both sides, so that what is stated is a positive number.
            if b and b[0].sign < 0:
                a, b = negated(a), negated(b)
            summed, result = total(a), total(b)
            if has_operation(summed) and isinstance(result, Number):
                candidate = Derivation(summed, "linear", equation.source)
                yield Claim(equation.place, result.value, (candidate,), aside=True)


def _same(a: Terms, b: Terms) -> bool:
    first, second = value_of(total(a)), value_of(total(b))
    return first is not None and second is not None and close(first, second)


def _numbers_in_last_line(raw: Sequence[str]) -> Iterator[tuple[Place, Fraction]]:
    line = Line.read(len(raw) - 1, raw[-1])
    for token in tokens(line.text):
        if token.kind == "number":
            yield (line.index, token.start), token.value

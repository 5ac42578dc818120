"""Live values against the paper's equality, and stitching, on programs over few numbers."""

import ast
import random
from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from partway import PYTHON, Problem, Solution, SolutionBuffer, Trace, Verdict, is_correct, trace
from partway.buffer import Rules
from partway.execution.completion import Equivalence, Match, Route, Values, Ways, route_of, values_along
from partway.execution.liveness import effects_of
from properties.strategies import examples, small_programs
from properties.test_buffer_machine import REFERENCES

SHIFT = "v0 = 2\nv1 = 1\nanswer = v1 << v0"  # fails for 2.0, so that not everything can be completed
PROBLEMS = [Problem("p", "?", 4, reference) for reference in (*REFERENCES[:2], SHIFT)]
tolerances = st.sampled_from([0, 0, 1])
many = st.lists(small_programs(), max_size=8)
thorough = examples(150)


def judged(
    problem: Problem, texts: list[str], **rules: object
) -> tuple[SolutionBuffer, list[tuple[Verdict, Trace]]]:
    buffer = SolutionBuffer.seeded(problem, Rules(**rules))  # type: ignore[arg-type]
    return buffer, [(buffer.consider(sample), sample) for sample in map(trace, texts)]


def naive_matches(
    routes: Sequence[Route], sample: Trace, along: Sequence[Values], limit: int | None, equivalence: str
) -> Iterator[Match]:
    """What the index finds, found by looking at every position of every route."""
    for length in range(len(sample.states) - sample.has_answer, 0, -1):
        for position in range(max((len(route.needs) for route in routes), default=0), 0, -1):
            for route in routes:
                if position > len(route.needs):
                    continue
                needs, state = route.needs[position - 1], sample.states[length - 1]
                is_live = equivalence == "live" and needs and needs <= set(along[length - 1].values())
                fits = limit is None or length + len(route.solution) - position <= limit
                if fits and (is_live or (state and state == route.states[position - 1])):
                    yield Match(length, route, position)


@thorough
@given(many, small_programs(), st.sampled_from([None, 2, 3, 4, 5]), st.sampled_from(["exact", "live"]))
def test_the_index_finds_what_looking_everywhere_finds(
    texts: list[str], text: str, limit: int | None, equivalence: Equivalence
) -> None:
    traces = [found for found in map(trace, texts) if found.failure is None]
    routes = [route for found in traces if (route := route_of(found, PYTHON.spell)) is not None]
    ways = Ways(equivalence)
    for route in routes:
        ways.add(route, 0)
    sample = trace(text)
    along = values_along(sample, PYTHON.spell)
    expected = list(naive_matches(routes, sample, along, limit, equivalence))
    assert list(ways.matches(sample, along, limit)) == expected
    longer = [match for match in expected if match.length > 1]
    assert list(ways.matches(sample, along, limit, beyond=1)) == longer


@thorough
@given(st.sampled_from(PROBLEMS), many, tolerances, st.booleans())
def test_every_kept_beginning_has_a_completion_that_gives_the_answer(
    problem: Problem, texts: list[str], tolerance: int, stitch: bool
) -> None:
    buffer, _ = judged(problem, texts, equivalence="live", stitch=stitch, length_tolerance=tolerance)
    for beginning in buffer.partially_correct:
        whole = Solution(beginning.steps + buffer.witnesses[beginning].completion)
        assert is_correct(trace(whole).answer, 4)
        assert len(whole) <= len(problem.reference or ()) + tolerance
    assert set(buffer.witnesses) == set(buffer.partially_correct)


@thorough
@given(st.sampled_from(PROBLEMS), small_programs(), tolerances)
def test_exact_equality_with_a_completable_beginning_is_contained_in_live(
    problem: Problem, text: str, tolerance: int
) -> None:
    exact, [(exactly, _)] = judged(problem, [text], dead_ends="drop", length_tolerance=tolerance)
    live, [(verdict, _)] = judged(problem, [text], equivalence="live", length_tolerance=tolerance)
    if exactly is Verdict.NEW_PARTIALLY_CORRECT:
        assert verdict in (Verdict.NEW_PARTIALLY_CORRECT, Verdict.KNOWN_PARTIALLY_CORRECT)
        if verdict.is_new:
            assert len(live.partially_correct[0]) >= len(exact.partially_correct[0])


@thorough
@given(st.sampled_from(PROBLEMS[:2]), small_programs(), tolerances)
def test_what_the_papers_letter_keeps_and_the_reference_can_follow_is_right_under_live(
    problem: Problem, text: str, tolerance: int
) -> None:
    """Told without looking for a completion: sums of equal values are equal, whatever their names."""
    paper, [(by_letter, _)] = judged(problem, [text], length_tolerance=tolerance)
    if by_letter is not Verdict.NEW_PARTIALLY_CORRECT:
        return
    (beginning,) = paper.partially_correct
    known = trace(problem.reference or "").states
    places = [j for j, state in enumerate(known[:-1], 1) if state == trace(beginning).states[-1]]
    if any(len(beginning) + len(known) - j <= len(known) + tolerance for j in places):
        _, [(verdict, _)] = judged(problem, [text], equivalence="live", length_tolerance=tolerance)
        assert verdict in (Verdict.NEW_PARTIALLY_CORRECT, Verdict.KNOWN_PARTIALLY_CORRECT)


@thorough
@given(st.sampled_from(PROBLEMS), many, tolerances, st.sampled_from(["exact", "live"]))
def test_stitching_never_keeps_a_duplicate_or_an_overlong_one(
    problem: Problem, texts: list[str], tolerance: int, equivalence: str
) -> None:
    buffer, _ = judged(problem, texts, equivalence=equivalence, stitch=True, length_tolerance=tolerance)
    whole = [*buffer.fully_correct, *buffer.stitched]
    assert len(set(whole)) == len(whole)
    assert all(len(solution) <= len(problem.reference or ()) + tolerance for solution in whole)
    assert all(is_correct(trace(solution).answer, 4) for solution in whole)
    kept = [*whole, *buffer.partially_correct]
    assert not any(a != b and b.startswith(a) for a in kept for b in kept)


@thorough
@given(st.sampled_from(PROBLEMS), many, tolerances, st.booleans())
def test_considering_again_changes_nothing(
    problem: Problem, texts: list[str], tolerance: int, stitch: bool
) -> None:
    rules = Rules(equivalence="live", stitch=stitch, length_tolerance=tolerance)
    buffer = SolutionBuffer.seeded(problem, rules)
    for text in texts:
        buffer.consider(trace(text))
        before = buffer.to_json()
        assert not buffer.consider(trace(text)).is_new
        assert buffer.to_json() == before
        buffer = SolutionBuffer.from_json(problem, before)


def indexed(buffer: SolutionBuffer) -> set[Solution]:
    """Every way that samples can go on; a solution that went must not stay in the index."""
    ways = buffer._routes.indexed(buffer._kept)
    return {
        way[-1].solution
        for table in (ways._by_needs, ways._by_state)
        for several in table.values()
        for way in several
    }


@thorough
@given(st.sampled_from(PROBLEMS), many, tolerances, st.booleans(), st.sampled_from([None, 3]))
def test_a_buffer_that_is_saved_and_read_goes_on_as_one_that_is_not(
    problem: Problem, texts: list[str], tolerance: int, stitch: bool, cap: int | None
) -> None:
    rules = Rules(equivalence="live", stitch=stitch, length_tolerance=tolerance, max_solutions=cap)
    one, other = SolutionBuffer.seeded(problem, rules), SolutionBuffer.seeded(problem, rules)
    for text in texts:
        assert one.consider(trace(text)) is other.consider(trace(text))
        assert one.to_json() == other.to_json()
        assert indexed(one) == indexed(other)
        other = SolutionBuffer.from_json(problem, other.to_json())


@thorough
@given(st.sampled_from(PROBLEMS), small_programs())
def test_renaming_a_sample_does_not_change_its_verdict_under_live(problem: Problem, text: str) -> None:
    renamed = text
    for index in range(4):
        renamed = renamed.replace(f"v{index}", f"w{3 - index}")
    rules = Rules(equivalence="live", dedup="alpha")
    one, other = SolutionBuffer.seeded(problem, rules), SolutionBuffer.seeded(problem, rules)
    assert one.consider(trace(text)) is other.consider(trace(renamed))
    assert [len(p) for p in one.partially_correct] == [len(p) for p in other.partially_correct]


@thorough
@given(st.sampled_from(PROBLEMS), small_programs(), st.randoms(use_true_random=False))
def test_reordering_independent_steps_of_a_right_beginning_leaves_it_right(
    problem: Problem, text: str, rng: random.Random
) -> None:
    live, [(verdict, sample)] = judged(problem, [text], equivalence="live")
    if verdict is not Verdict.NEW_PARTIALLY_CORRECT:
        return
    length = len(live.partially_correct[0])
    steps = list(sample.solution.steps)
    for _ in range(4):
        place = rng.randrange(max(1, length - 1))
        if place + 1 < length and _independent(steps[place], steps[place + 1]):
            steps[place], steps[place + 1] = steps[place + 1], steps[place]
    again, [(verdict, _)] = judged(problem, ["\n".join(steps)], equivalence="live")
    assert verdict in (Verdict.NEW_PARTIALLY_CORRECT, Verdict.KNOWN_PARTIALLY_CORRECT)
    assert [len(p) for p in again.partially_correct] in ([length], [])


def _independent(first: str, second: str) -> bool:
    one, other = effects_of(first), effects_of(second)
    assert one is not None
    assert other is not None
    assert ast.parse(first)
    return not (one.binds & (other.reads | other.binds) or other.binds & one.reads)

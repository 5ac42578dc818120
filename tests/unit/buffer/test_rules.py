"""The rules one by one: their order, and where a rule from outside stands."""

import pytest

from partway import Problem, PythonLanguage, SolutionBuffer, Trace, Verdict, trace
from partway.buffer import Rules
from partway.buffer.rules import RULES, AddedRule, Candidate, example
from partway.errors import ConfigError
from partway.solution import Solution

OIL = Problem("oil", "10 barrels of 2 gallons?", 20, "n0 = 10\nn1 = 2\nanswer = n0 * n1")
DOUBLED = "n0 = 10\nanswer = n0 + n0"


def no_sums(candidate: Candidate, known: SolutionBuffer) -> Candidate:
    """Right solutions that add are marked."""
    adds = candidate.is_whole and "+" in candidate.trace.solution.text
    return candidate._replace(doubt="it adds") if adds else candidate


def sums_dropped(setting: str = "all") -> AddedRule:
    return AddedRule(no_sums, "known_state", learns_doubted=setting == "some")


def sums_outvoted() -> AddedRule:
    return AddedRule(
        lambda candidate, known: candidate,
        "new_whole",
        lambda known: dict.fromkeys(known.fully_correct[1:], "the last of two"),
        learns_doubted=False,
    )


def nowhere() -> AddedRule:
    return AddedRule(no_sums, "the_end")


def added(name: str) -> Rules:
    return Rules.of({"added_rules": [f"{__name__}:{name}"]})


def test_each_rule_alone_passes_a_new_solution():
    for rule in RULES:
        candidate, known = example("n0 = 2\nn1 = 10\nanswer = n0 * n1")
        assert rule(candidate, known) is candidate


def test_without_settings_the_rules_are_those_of_the_paper():
    assert Rules().sequence == RULES
    assert Rules.of({}) == Rules()


def test_a_rule_from_outside_stands_before_the_one_it_names():
    names = [rule.__name__ for rule in added("sums_dropped").sequence]
    assert names.index("no_sums") == names.index("known_state") - 1
    assert len(names) == len(RULES) + 1
    with pytest.raises(AssertionError, match="names no rule to go before"):
        _ = added("nowhere").sequence


@pytest.mark.parametrize(("setting", "learned"), [("", 1), ("=all", 1), ("=some", 2)])
def test_what_a_rule_does_not_trust_is_kept_with_the_reason_and_learned_if_it_says_so(setting, learned):
    buffer = SolutionBuffer.seeded(OIL, added(f"sums_dropped{setting}"))
    assert buffer.consider(trace(DOUBLED)) is Verdict.NEW_FULLY_CORRECT
    assert buffer.doubts == {Solution.parse(DOUBLED): "it adds"}
    assert len(buffer.learned) == learned
    restored = SolutionBuffer.from_json(OIL, buffer.to_json())
    assert (restored.doubts, restored.rules) == (buffer.doubts, buffer.rules)


def test_what_a_rule_does_not_trust_is_no_evidence_of_how_long_solutions_are():
    buffer = SolutionBuffer.seeded(Problem("weak", "?", 20), added("sums_dropped=some"))
    for doubted in ("answer = 10 + 10", "answer = 9 + 11", "answer = 8 + 12"):
        assert buffer.consider(trace(doubted)) is Verdict.NEW_FULLY_CORRECT
    assert buffer.limit is None
    for trusted in ("answer = 20", "answer = 2 * 10", "n0 = 40\nanswer = n0 / 2"):
        buffer.consider(trace(trusted))
    assert buffer.limit == 2


def test_a_review_is_made_again_when_something_new_is_kept():
    buffer = SolutionBuffer.seeded(OIL, added("sums_outvoted"))
    assert buffer.doubts == {}
    buffer.consider(trace(DOUBLED))
    assert list(buffer.doubts.values()) == ["the last of two"]
    assert buffer.learned == (OIL.reference,)


def test_a_rule_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match="'novelty' is not one of the rules"):
        _ = Rules.of({"added_rules": ["novelty=3"]}).sequence


class Unsure(PythonLanguage):
    """Python in which nothing is the same when it runs again."""

    def confirms(self, problem: Problem, trace: Trace) -> bool:
        return False


@pytest.mark.parametrize("text", [DOUBLED, "n0 = 2\nn1 = 10\nanswer = 5"])
def test_what_runs_differently_a_second_time_is_not_kept(text):
    known = SolutionBuffer.seeded(OIL)
    unsure = SolutionBuffer.from_json(OIL, known.to_json(), Unsure())
    assert known.consider(trace(text)).is_new
    assert unsure.consider(trace(text)) is Verdict.NOT_EXECUTABLE
    assert len(unsure) == 1

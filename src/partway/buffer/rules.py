"""The rules that judge a traced sample, one after the other (Algorithm 3, lines 3-7).

A rule looks at the candidate and at what the buffer knows. It passes the candidate on, whole or cut to a
beginning, or it ends the walk with a verdict. A candidate that passes all `RULES` is kept. A rule from
outside is one more entry, put before one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from partway import registry
from partway.language import State, Trace
from partway.language.language import Dedup
from partway.problem import Problem
from partway.registry import imported, is_refused, refused
from partway.solution import Solution

if TYPE_CHECKING:
    from partway.buffer.buffer import SolutionBuffer as Known  # what a rule may look at, and must not change

SELF_SAMPLING = {  # the setting: its name in tables, and what is learned from
    "none": ("references only", "the given solutions alone"),
    "fcs": ("FCS only", "the given solutions and its own fully-correct ones"),
    "fcs+pcs": ("FCS + PCS", "the given solutions and its own fully- and partially-correct ones"),
}


class Verdict(StrEnum):
    """What became of a sampled solution."""

    NEW_FULLY_CORRECT = "new_fully_correct"
    KNOWN_FULLY_CORRECT = "known_fully_correct"
    NEW_PARTIALLY_CORRECT = "new_partially_correct"
    KNOWN_PARTIALLY_CORRECT = "known_partially_correct"
    TOO_LONG = "too_long"
    SPURIOUS = "spurious"
    INCORRECT = "incorrect"
    NOT_EXECUTABLE = "not_executable"

    @property
    def words(self) -> str:
        """Its name in tables and pages."""
        return self.replace("_", " ")

    @property
    def is_new(self) -> bool:
        """Whether the buffer kept something."""
        return self.startswith("new_")

    @property
    def is_optional(self) -> bool:
        """Whether only rules from outside give this verdict; it is shown only where it occurs."""
        return self is Verdict.SPURIOUS


DeadEnds = Literal["keep", "drop"]
# Settings that ask for a rule from outside, which has the same name; with this value they ask for none.
NOT_ASKED = {"spurious": "keep"}


class Candidate(NamedTuple):
    """A traced sample on its way through the rules, as a whole or as one of its beginnings."""

    trace: Trace
    length: int  # of what would be kept: all steps, or those of a beginning
    is_whole: bool = True
    ends: tuple[State, ...] | None = None  # where a beginning may end, if not at every state; others are ""
    instead: Verdict | None = None  # of a right solution that is too long, if no beginning of it is kept
    doubt: str = ""  # why a rule that lets it pass does not trust it

    def beginnings(self, instead: Verdict | None = None) -> Candidate:
        """The same sample; only a beginning of it can be kept now."""
        return self._replace(is_whole=False, instead=instead)


Rule: TypeAlias = "Callable[[Candidate, Known], Candidate | Verdict]"


def executable(candidate: Candidate, known: Known) -> Candidate | Verdict:
    """At least one of its steps runs.

    >>> executable(*example("n0 = 10 /"))
    <Verdict.NOT_EXECUTABLE: 'not_executable'>
    """
    return candidate if candidate.trace.states else Verdict.NOT_EXECUTABLE


def answered(candidate: Candidate, known: Known) -> Candidate:
    """It gives the answer; if not, only its beginnings are left.

    >>> answered(*example("n0 = 2\\nn1 = 10\\nanswer = n0 * n1")).is_whole
    True
    >>> answered(*example("n0 = 2\\nn1 = 10\\nanswer = n0 + n1")).is_whole
    False
    """
    # Alg. 1, line 7: Algorithm 3 as printed leaves this check out, the authors' code has it.
    is_right = known.language.is_correct(known.problem, candidate.trace)
    return candidate if is_right else candidate.beginnings()


def new_whole(candidate: Candidate, known: Known) -> Candidate | Verdict:
    """No kept solution is the same.

    >>> new_whole(*example("n0=10; n1=2; answer=n0*n1"))
    <Verdict.KNOWN_FULLY_CORRECT: 'known_fully_correct'>
    """
    # Alg. 1, line 8.
    if candidate.is_whole and _is_duplicate(candidate, known):
        return Verdict.KNOWN_FULLY_CORRECT
    return candidate


def short_whole(candidate: Candidate, known: Known) -> Candidate:
    """It has at most as many steps as the reference; if not, it may still begin in a new way.

    >>> short_whole(*example("n0 = 2\\nn1 = 10\\nt0 = n0 * n1\\nanswer = t0")).instead
    <Verdict.TOO_LONG: 'too_long'>
    """
    # Section 3.1: so that no trivial steps are learned.
    if candidate.is_whole and known.limit is not None and candidate.length > known.limit:
        return candidate.beginnings(Verdict.TOO_LONG)
    return candidate


def no_dead_end(candidate: Candidate, known: Known) -> Candidate:
    """Its beginnings end where a known solution goes on, if `dead_ends: drop` asks for that.

    Not where a whole solution ends: all its values are there, and no step is left to give the answer. And not
    without what the known solution imported or defined, steps that leave the state as it was.

    >>> sample = "n0 = 2\\nn1 = 10\\nt0 = n0 * n1\\nanswer = 5"
    >>> no_dead_end(*example(sample, Rules(dead_ends="drop"), is_whole=False)).ends
    ('2', '10, 2', '', '10, 2, 20, 5')
    """
    if candidate.is_whole or known.rules.dead_ends == "keep":
        return candidate
    ends: list[State] = []
    silent: set[str] = set()
    before = ""
    for step, state in zip(candidate.trace.solution.steps, candidate.trace.states, strict=False):
        if state == before:
            silent.add(step.strip())
        there = known.prefixes.all_reaching(state)
        goes_on = not there or any(
            prefix.silent == silent and not known.ends_with(prefix) for prefix in there
        )
        ends.append(state if goes_on else "")
        before = state
    return candidate._replace(ends=tuple(ends))


def known_state(candidate: Candidate, known: Known) -> Candidate | Verdict:
    """One of its beginnings reaches a known state; it is cut to the longest.

    >>> known_state(*example("n0 = 2\\nn1 = 10\\nanswer = n0 + n1", is_whole=False)).length
    2
    >>> known_state(*example("n0 = 7\\nanswer = n0", is_whole=False))
    <Verdict.INCORRECT: 'incorrect'>
    """
    if candidate.is_whole:
        return candidate
    if not known.rules.keeps_partial:
        return Verdict.INCORRECT
    trace = candidate.trace if candidate.ends is None else candidate.trace._replace(states=candidate.ends)
    # Alg. 3, lines 3-5: backtrack to the first known state; the printed `continue` means stop.
    length = trace.longest_known_prefix(known.prefixes)
    return candidate._replace(length=length) if length else Verdict.INCORRECT


def new_beginning(candidate: Candidate, known: Known) -> Candidate | Verdict:
    """That beginning is not known itself.

    >>> new_beginning(*example("n0 = 10\\nanswer = 5", length=1, is_whole=False))
    <Verdict.KNOWN_PARTIALLY_CORRECT: 'known_partially_correct'>
    """
    # Alg. 3, lines 6-7.
    if not candidate.is_whole and _is_duplicate(candidate, known):
        return Verdict.KNOWN_PARTIALLY_CORRECT
    return candidate


def short_beginning(candidate: Candidate, known: Known) -> Candidate | Verdict:
    """No shorter beginning reaches the same state.

    >>> short_beginning(*example("n0 = 7\\nn0 = 10\\nanswer = 5", length=2, is_whole=False))
    <Verdict.TOO_LONG: 'too_long'>
    """
    if candidate.is_whole:
        return candidate
    # Section 3.3.2: compared with others that execute to the same state.
    shortest = known.prefixes.shortest(candidate.trace.states[candidate.length - 1])
    too_long = candidate.length > shortest + known.rules.length_tolerance
    return Verdict.TOO_LONG if too_long else candidate


def confirmed(candidate: Candidate, known: Known) -> Candidate | Verdict:
    """It does the same when it runs again; a program that knows it is run may lie about itself.

    >>> confirmed(*example("n0 = 2\\nn1 = 10\\nanswer = n0 * n1")).length
    3
    """
    is_real = known.language.confirms(known.problem, candidate.trace)
    return candidate if is_real else Verdict.NOT_EXECUTABLE


RULES: tuple[Rule, ...] = (
    executable,
    answered,
    new_whole,
    short_whole,
    no_dead_end,
    known_state,
    new_beginning,
    short_beginning,
    confirmed,
)


def _is_duplicate(candidate: Candidate, known: Known) -> bool:
    """Whether its first `length` steps are a known prefix, up to their spelling if the rules say so."""
    trace, length, dedup = candidate.trace, candidate.length, known.rules.dedup
    steps, state = trace.solution.steps[:length], trace.states[length - 1]
    if known.prefixes.has(steps, state):
        return True
    if dedup == "ast":
        return False
    # Spelling changes neither the state nor the number of steps: only such prefixes are compared.
    form_of = known.language.form
    form = form_of(Solution(steps), dedup)
    return any(form_of(p.solution, dedup) == form for p in known.prefixes.reaching(state, length))


@dataclass(frozen=True)
class AddedRule:
    """A rule from outside, put before the one of `RULES` that is named `before`; it must let references pass.

    `review` sees the kept solutions together and says which of them it does not trust, and why.
    """

    rule: Rule
    before: str
    review: Callable[[Known], Mapping[Solution, str]] = lambda known: {}
    learns_doubted: bool = True  # whether what it does not trust is learned all the same


def _made(name: str, setting: str) -> AddedRule:
    if ":" in name and is_refused(name, "added_rules"):
        raise refused(name, "added_rules")
    make = imported(name, "added_rules") if ":" in name else registry.part("rules", name)
    made: AddedRule = make(setting) if setting else make()
    return made


@dataclass(frozen=True)
class Rules:
    """The settings of the rules: what counts as a duplicate, as too long and as worth keeping."""

    dedup: Dedup = "ast"
    length_tolerance: int = 0
    keeps_partial: bool = True
    max_solutions: int | None = None
    dead_ends: DeadEnds = "keep"
    length_limit: int | None = None
    added: tuple[tuple[str, str], ...] = ()  # rules from outside and the setting of each

    @cached_property
    def added_rules(self) -> tuple[AddedRule, ...]:
        """The rules from outside; without a setting each has its default."""
        return tuple(_made(name, setting) for name, setting in self.added)

    @cached_property
    def sequence(self) -> tuple[Rule, ...]:
        """All rules in their order."""
        order: list[Rule] = []
        for rule in RULES:
            order += [one.rule for one in self.added_rules if one.before == rule.__name__]
            order.append(rule)
        assert len(order) == len(RULES) + len(self.added), "a rule from outside names no rule to go before"
        return tuple(order)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Rules:
        """The rules that the keys of a config describe; keys that are missing have defaults."""
        added = {key: settings[key] for key, none in NOT_ASKED.items() if settings.get(key, none) != none}
        added |= dict(one.partition("=")[::2] for one in settings.get("added_rules") or ())
        return cls(
            dedup=settings.get("dedup", "ast"),
            length_tolerance=settings.get("length_tolerance", 0),
            keeps_partial=settings.get("self_sampling", "fcs+pcs") == "fcs+pcs",
            max_solutions=settings.get("max_solutions_per_problem"),
            dead_ends=settings.get("dead_ends", "keep"),
            length_limit=settings.get("length_limit"),
            added=tuple(added.items()),
        )

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Rules:
        """The rules that a saved buffer names beside the settings of its programs."""
        said = {field.name: row[field.name] for field in fields(cls) if field.name in row}
        return shared_rules(**said | {"added": tuple(map(tuple, said.get("added", ())))})


shared_rules = lru_cache(maxsize=64)(Rules)  # a hundred thousand buffers, one set of rules


def example(
    text: str, rules: Rules | None = None, length: int | None = None, is_whole: bool = True
) -> tuple[Candidate, Known]:
    """The arguments of a rule in the examples above: a sample, and a buffer that knows one solution."""
    from partway.buffer.buffer import SolutionBuffer
    from partway.language import trace

    problem = Problem("oil", "10 barrels of 2 gallons?", 20, "n0 = 10\nn1 = 2\nanswer = n0 * n1")
    sample = trace(text)
    candidate = Candidate(sample, length or len(sample.solution), is_whole)
    return candidate, SolutionBuffer.seeded(problem, rules)

"""Algorithm 3, lines 3-9: B and M of one problem, which solutions are kept and which prefixes are known."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from partway import registry
from partway.buffer.prefixes import KnownPrefixes, Prefix
from partway.buffer.rules import Candidate, Rules, Verdict, shared_rules
from partway.errors import ConfigError, ProblemError
from partway.language import PYTHON, Language, State, Trace
from partway.language.language import flaw_of
from partway.language.named import language_of, settings_of
from partway.problem import Problem
from partway.solution import EMPTY, Solution

Kind = Literal["fully_correct", "partially_correct"]

KINDS: tuple[Kind, ...] = ("fully_correct", "partially_correct")
EVIDENCE = 3  # solutions that set the longest length, for a problem without a reference


class SolutionBuffer:
    """B and M of one problem; `consider` is the only thing that changes them."""

    __slots__ = (
        "_doubts",
        "_flags",
        "_fully_correct",
        "_partially_correct",
        "language",
        "max_length",
        "prefixes",
        "problem",
        "rules",
        "usual_length",
    )

    def __init__(self, problem: Problem, rules: Rules, language: Language) -> None:
        self.problem = problem
        self.rules = rules
        self.language = language
        self.max_length: int | None = None  # the reference's; without one, see `_revise_length`
        # Bounds solutions until `max_length` is known.
        self.usual_length = rules.length_limit if problem.reference is None else None
        # A kept solution is the leaf of its path in M, so B holds leaves and no steps of its own.
        self.prefixes = KnownPrefixes()  # M
        self._fully_correct: dict[Prefix, int] = {}  # B: leaf -> training step at which it was found
        self._partially_correct: dict[Prefix, int] = {}
        self._flags: dict[Prefix, str] = {}  # why a rule did not trust what it let pass
        self._doubts: Mapping[Solution, str] | None = None  # flags and reviews; None: ask again

    @classmethod
    def seeded(
        cls,
        problem: Problem,
        rules: Rules | None = None,
        language: Language = PYTHON,
        trace: Trace | None = None,
        usual_length: int | None = None,
    ) -> SolutionBuffer:
        """The buffer before training: B = {y0, y*}, or {y0} where there is no reference.

        `trace` is that of the reference, if it was run already, and `usual_length` that of other references.
        """
        buffer = cls(problem, rules or shared_rules(), language)
        if problem.reference is None:
            buffer.usual_length = buffer.usual_length or usual_length
            return buffer
        trace = trace or language.trace_all([(problem, problem.reference.text)])[0]
        flaw = flaw_of(problem, trace, language)
        if flaw is None and not buffer.consider(trace).is_new:
            flaw = "does not do the same when it runs again"
        if flaw is not None:
            raise ProblemError(
                f"problem {problem.id}: the reference {flaw}; correct it or leave the reference out"
            )
        return buffer

    def consider(self, trace: Trace, step: int = 0) -> Verdict:
        """Judge a traced sample and keep what is new in it; `step` is the training step it was sampled at."""
        candidate = Candidate(trace, len(trace.solution))
        for rule in self.rules.sequence:
            outcome = rule(candidate, self)
            if isinstance(outcome, Verdict):
                return candidate.instead or outcome
            candidate = outcome
        self._keep(candidate, step)
        return Verdict.NEW_FULLY_CORRECT if candidate.is_whole else Verdict.NEW_PARTIALLY_CORRECT

    def _keep(self, candidate: Candidate, step: int) -> None:
        """updateBuffer and updateMapping: add the path, drop the partial solutions it continues."""
        # Alg. 3, lines 8 and 9.
        leaf = self.prefixes.learn(candidate.trace.solution.steps[: candidate.length], candidate.trace.states)
        # Section 3.3.2: prune what is a prefix of the new one. A fully-correct prefix stays a solution.
        for prefix in leaf.path():
            self._partially_correct.pop(prefix, None)
        kept = self._fully_correct if candidate.is_whole else self._partially_correct
        kept[leaf] = step
        if candidate.doubt:
            self._flags[leaf] = candidate.doubt
        self._doubts = None  # the new solution may change what rules say about the others
        if self.rules.max_solutions is not None and len(self) > self.rules.max_solutions:
            self._forget_oldest()
        if candidate.is_whole:
            self._revise_length(candidate.length)

    def _forget_oldest(self) -> None:
        """Drop the oldest partial solution, else the oldest self-sampled one, and its states."""
        if self._partially_correct:
            del self._partially_correct[next(iter(self._partially_correct))]
        else:
            # The reference comes first and stays. Without one, the first may be right by luck, and goes.
            first = 0 if self.problem.reference is None else 1
            del self._fully_correct[list(self._fully_correct)[first]]
        leaves = [leaf for kept in self._kept for leaf in kept]
        self._flags = {leaf: self._flags[leaf] for leaf in leaves if leaf in self._flags}
        # M forgets too, or a prefix could match a state that no kept solution reaches any more.
        self.prefixes.keep_only(leaves)

    def _revise_length(self, length: int) -> None:
        """Set the longest length: the reference's; without one, that of the third-shortest solution."""
        if self.problem.reference is not None:
            if self.max_length is None:  # the reference is the first solution that a buffer considers
                self.max_length = length
            return
        # Not the shortest: two short programs that are right by luck would shut out ordinary ones.
        lengths = sorted(leaf.length for leaf in self._fully_correct if leaf not in self._flags)
        if len(lengths) >= EVIDENCE:
            self.max_length = min(lengths[EVIDENCE - 1], self.usual_length or lengths[EVIDENCE - 1])

    @property
    def limit(self) -> int | None:
        """The most steps a solution may have, None if nothing is known about that yet."""
        length = self.max_length if self.max_length is not None else self.usual_length
        return None if length is None else length + self.rules.length_tolerance

    def draw_prefix(
        self, rng: random.Random, has_room: Callable[[Solution], bool] = lambda prefix: True
    ) -> Solution:
        """A prefix to continue, uniform over y0 and the right beginnings (Algorithm 2, line 1).

        Those that fill the model's context already cannot be continued, and are not drawn.
        """
        # y0 is not stored in B: it is always there, and nothing ever removes it.
        prefixes = [EMPTY, *(prefix for prefix in self.partially_correct if has_room(prefix))]
        return prefixes[rng.randrange(len(prefixes))]

    @property
    def answer(self) -> Any:
        """What solutions should give: z*."""
        return self.problem.answer

    @property
    def fully_correct(self) -> tuple[Solution, ...]:
        """Kept solutions that execute to the answer; a reference comes first."""
        return tuple(leaf.solution for leaf in self._fully_correct)

    @property
    def partially_correct(self) -> tuple[Solution, ...]:
        """Kept beginnings of solutions, the empty one apart."""
        return tuple(leaf.solution for leaf in self._partially_correct)

    @property
    def doubts(self) -> Mapping[Solution, str]:
        """Kept solutions that a rule from outside does not trust, and why."""
        if self._doubts is None:  # kept, because every learning step asks and a review may take long
            found = {leaf.solution: reason for leaf, reason in self._flags.items()}
            with suppress(ConfigError):  # a rule that is missing, or must not run, only has its flags
                for one in self.rules.added_rules:
                    found.update(one.review(self))
            self._doubts = found
        return self._doubts

    @property
    def learned(self) -> tuple[Solution, ...]:
        """The fully-correct solutions worth learning: all, unless a rule from outside does not trust some."""
        if all(one.learns_doubted for one in self.rules.added_rules):
            return self.fully_correct
        doubts = self.doubts
        return tuple(solution for solution in self.fully_correct if solution not in doubts)

    @property
    def prefixes_by_state(self) -> dict[State, tuple[Solution, ...]]:
        """M: for each known state every known prefix that reaches it."""
        return {state: tuple(p.solution for p in prefixes) for state, prefixes in self.prefixes.items()}

    @property
    def found(self) -> dict[Solution, int]:
        """The training step at which each kept solution was found."""
        return {leaf.solution: step for kept in self._kept for leaf, step in kept.items()}

    def ends_with(self, prefix: Prefix) -> bool:
        """Whether a known prefix is a whole solution."""
        return prefix in self._fully_correct

    def __len__(self) -> int:
        return sum(map(len, self._kept))

    @property
    def _kept(self) -> tuple[dict[Prefix, int], ...]:
        """B without y0, by kind, in the order of `KINDS`."""
        return self._fully_correct, self._partially_correct

    def _repr_html_(self) -> str | None:
        """The buffer as a notebook shows it: the problem and its kept solutions side by side."""
        return registry.view("buffer", self)

    def to_json(self) -> dict[str, Any]:
        """Everything needed to restore the buffer without running a program."""
        solutions = [
            {
                "kind": kind,
                "steps": leaf.solution.steps,
                "states": leaf.states,
                "found": found,
                **({"flag": self._flags[leaf]} if leaf in self._flags else {}),
            }
            for kind, kept in zip(KINDS, self._kept, strict=True)
            for leaf, found in kept.items()
        ]
        rules = {**asdict(self.rules), **settings_of(self.language)}
        lengths = {"max_length": self.max_length, "usual_length": self.usual_length}
        return {"rules": rules, **lengths, "solutions": solutions}

    @classmethod
    def from_json(
        cls, problem: Problem, data: Mapping[str, Any], language: Language | None = None
    ) -> SolutionBuffer:
        """The buffer that `to_json` described, with the programs it names unless they are given."""
        rules = data["rules"]
        buffer = cls(problem, Rules.from_json(rules), language or language_of(rules))
        buffer.max_length = data["max_length"]
        buffer.usual_length = data.get("usual_length", buffer.usual_length)
        for entry in data["solutions"]:
            leaf = buffer.prefixes.learn(entry["steps"], entry["states"])
            getattr(buffer, f"_{entry['kind']}")[leaf] = entry["found"]
            if "flag" in entry:
                buffer._flags[leaf] = entry["flag"]
        return buffer

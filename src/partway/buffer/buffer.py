"""The solutions kept for a problem (B), the states known to lead somewhere (M), and the verdict on a sample.

This is Algorithm 3, lines 3-9, with the answer checked first as in Algorithm 1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Literal

from partway.buffer.doubts import audit_together, from_nowhere
from partway.buffer.prefixes import KnownPrefixes, Prefix, Witness
from partway.buffer.routes import Routes
from partway.buffer.verdicts import Rules, Verdict
from partway.execution import PYTHON, Programs, State, Trace
from partway.execution.completion import Match, values_along
from partway.execution.programs import programs_of
from partway.problem import Problem
from partway.solution import EMPTY, Solution

Kind = Literal["fully_correct", "stitched", "partially_correct"]

KINDS: tuple[Kind, ...] = ("fully_correct", "stitched", "partially_correct")
EVIDENCE = 3  # solutions that tell how long those of a problem without a reference are
MAX_COMPLETIONS = 8  # run in search of one that gives the answer; the first nearly always does


class SolutionBuffer:
    """B and M of one problem; `consider` is the only thing that changes them."""

    __slots__ = (
        "_doubts",
        "_flags",
        "_fully_correct",
        "_known",
        "_partially_correct",
        "_routes",
        "_seams",
        "_stitched",
        "max_length",
        "problem",
        "programs",
        "rules",
        "usual_length",
    )

    def __init__(self, problem: Problem, rules: Rules, programs: Programs) -> None:
        self.problem = problem
        self.rules = rules
        self.programs = programs
        self.max_length: int | None = None  # the reference's, or what evidence says
        self.usual_length = rules.length_limit  # of solutions, while there is no evidence
        # A kept solution is the leaf of its path in M, so B holds leaves and no steps of its own.
        self._known = KnownPrefixes()  # M
        self._fully_correct: dict[Prefix, int] = {}  # B: leaf -> training step at which it was found
        self._partially_correct: dict[Prefix, int] = {}
        self._stitched: dict[Prefix, int] = {}
        self._flags: dict[Prefix, str] = {}  # why a fully-correct one may be right by luck
        self._doubts: dict[Solution, str] | None = None  # where there is no reference; None when not known
        self._seams: dict[Prefix, Prefix] = {}  # the sampled part of a stitched solution -> the solution
        self._routes = Routes(rules.equivalence, programs, problem.answer)  # how kept ones reach the answer

    @classmethod
    def seeded(
        cls, problem: Problem, rules: Rules | None = None, programs: Programs = PYTHON
    ) -> SolutionBuffer:
        """The buffer before training: B = {y0, y*}, or {y0} where there is no reference."""
        from partway.buffer.seeding import seed_buffers

        return seed_buffers([problem], rules, programs)[problem.id]

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
    def stitched(self) -> tuple[Solution, ...]:
        """Kept solutions that nobody sampled: a sampled beginning and what is known to complete it."""
        return tuple(leaf.solution for leaf in self._stitched)

    @property
    def doubts(self) -> dict[Solution, str]:
        """Solutions that seem to have the right answer by luck, and why; empty if the rules do not ask.

        Without a reference those are believed that most agree with when the question's numbers are changed.
        """
        if self.rules.spurious == "keep" or self.problem.reference is not None:
            return {leaf.solution: reason for leaf, reason in self._flags.items()}
        if self._doubts is None:  # every learning step asks, and running them all again takes long
            audits = audit_together(
                self.fully_correct, self.problem.question, self.programs, derived=self.stitched
            )
            self._doubts = {s: one.reason for s, one in audits.items() if one.verdict == "spurious"}
        return self._doubts

    @property
    def learned(self) -> tuple[Solution, ...]:
        """The fully-correct solutions worth learning: all, or with `spurious: drop` those without a doubt."""
        return self._without_doubt(self.fully_correct)

    @property
    def learned_stitched(self) -> tuple[Solution, ...]:
        """The stitched solutions worth learning, by the same rule."""
        return self._without_doubt(self.stitched)

    def _without_doubt(self, solutions: tuple[Solution, ...]) -> tuple[Solution, ...]:
        if self.rules.spurious != "drop":
            return solutions
        doubts = self.doubts
        return tuple(solution for solution in solutions if solution not in doubts)

    @property
    def beginnings(self) -> tuple[Solution, ...]:
        """What may be continued: the partially-correct ones, and the sampled parts of stitched ones."""
        return tuple(leaf.solution for leaf in (*self._partially_correct, *self._seams))

    @property
    def witnesses(self) -> dict[Solution, Witness]:
        """Why partially-correct solutions are right, where the rules asked."""
        return {leaf.solution: witness for leaf, witness in self._routes.witnesses.items()}

    @property
    def prefixes_by_state(self) -> dict[State, tuple[Solution, ...]]:
        """M: for each known state every known prefix that reaches it."""
        return {state: tuple(p.solution for p in prefixes) for state, prefixes in self._known.items()}

    @property
    def found(self) -> dict[Solution, int]:
        """The training step at which each kept solution was found."""
        return {leaf.solution: step for kept in self._kept for leaf, step in kept.items()}

    def __len__(self) -> int:
        return sum(map(len, self._kept))

    @property
    def _kept(self) -> tuple[dict[Prefix, int], ...]:
        """B without y0, by kind, in the order of `KINDS`."""
        return self._fully_correct, self._stitched, self._partially_correct

    def draw_prefix(
        self, rng: random.Random, has_room: Callable[[Solution], bool] = lambda prefix: True
    ) -> Solution:
        """A prefix to continue, uniform over y0 and the right beginnings (Algorithm 2, line 1).

        Those that fill the model's context already cannot be continued, and are not drawn.
        """
        # y0 is not stored in B: it is always there, and nothing ever removes it.
        prefixes = [EMPTY, *(prefix for prefix in self.beginnings if has_room(prefix))]
        return prefixes[rng.randrange(len(prefixes))]

    def consider(self, trace: Trace, step: int = 0) -> Verdict:
        """Judge a traced sample and keep what is new in it; `step` is the training step it was sampled at.

        What would be kept but runs differently a second time counts as not executable.
        """
        trace = self.programs.entered(trace, self.answer)
        if not trace.states:
            return Verdict.NOT_EXECUTABLE
        # Alg. 1, line 7: Algorithm 3 as printed leaves this check out, the authors' code has it.
        is_right = self.programs.is_correct(trace, self.answer)
        whole = self._consider_whole(trace, step) if is_right else Verdict.INCORRECT
        if is_right and whole not in (Verdict.TOO_LONG, Verdict.SPURIOUS):
            return whole
        # A right solution that is too long may still begin in a new way.
        verdict = self._consider_beginnings(trace, step) if self.rules.keeps_partial else Verdict.INCORRECT
        return whole if is_right and not verdict.is_new else verdict

    def _consider_whole(self, trace: Trace, step: int) -> Verdict:
        length = len(trace.solution)
        if self._is_duplicate(trace, length):  # Alg. 1, line 8
            return Verdict.KNOWN_FULLY_CORRECT
        # Section 3.1: at most as many steps as y*, so that no trivial ones are learned.
        if self.limit is not None and length > self.limit:
            return Verdict.TOO_LONG
        # A program that knows it is run may lie about itself; what is kept is run twice, independently.
        if not self.programs.confirms(trace):
            return Verdict.NOT_EXECUTABLE
        doubt = self._doubt(trace.solution)
        if doubt and self.rules.spurious == "drop" and self.problem.reference is not None:
            return Verdict.SPURIOUS
        leaf = self._keep(self._fully_correct, trace.solution.steps, trace.states, step)  # line 9
        if doubt and leaf in self._fully_correct:  # a cap of one forgets it at once
            self._flags[leaf] = doubt
        self._revise_length(trace)
        if self.rules.completes:
            self._routes.learn(leaf, trace, self._kept)
        return Verdict.NEW_FULLY_CORRECT

    def _doubt(self, solution: Solution) -> str | None:
        """Why a right solution may be right by luck, None if nothing tells or the rules do not ask."""
        reference, question = self.problem.reference, self.problem.question
        if self.rules.spurious == "keep" or solution == reference:
            return None
        if reference is not None:
            found = self.programs.audit(reference, solution, question)
            return found.reason if found.verdict == "spurious" else None
        strange = self.programs.strange_literals(solution, question)
        return from_nowhere(strange) if strange else None

    def _revise_length(self, trace: Trace) -> None:
        """The length that solutions may have: the reference's; without one, never set by a single sample."""
        if self.problem.reference is not None:
            if self.max_length is None:  # the reference is the first solution that a buffer considers
                self.max_length = len(trace.solution)
            return
        # The third-shortest: two lucky short programs do not shut out the ordinary ones.
        lengths = sorted(leaf.length for leaf in self._fully_correct if leaf not in self._flags)
        if len(lengths) >= EVIDENCE:
            self.max_length = min(lengths[EVIDENCE - 1], self.usual_length or lengths[EVIDENCE - 1])

    @property
    def limit(self) -> int | None:
        """The most steps a solution may have, None if nothing is known about that yet."""
        length = self.max_length if self.max_length is not None else self.usual_length
        return None if length is None else length + self.rules.length_tolerance

    def _consider_beginnings(self, trace: Trace, step: int) -> Verdict:
        if self.rules.completes and not self.falls_back:
            return self._consider_completable(trace, step)
        # Alg. 3, lines 3-5: backtrack to the first known state; the printed `continue` means stop.
        length = self.programs.longest_known_prefix(trace, self._known)
        if length == 0:
            return Verdict.INCORRECT
        if self._is_duplicate(trace, length):
            return Verdict.KNOWN_PARTIALLY_CORRECT
        # The paper's rule for prefixes: compared with others that execute to the same state.
        if self._is_longer_than_known(trace, length):
            return Verdict.TOO_LONG
        if not self.programs.confirms(trace):
            return Verdict.NOT_EXECUTABLE
        self._keep(self._partially_correct, trace.solution.steps[:length], trace.states, step)
        return Verdict.NEW_PARTIALLY_CORRECT

    @property
    def falls_back(self) -> bool:
        """Whether the rules ask for completions, but what the reference still reads cannot be known."""
        first = next(iter(self._fully_correct), None)
        return self.rules.completes and first is not None and self._routes.of(first, self._kept) is None

    def _consider_completable(self, trace: Trace, step: int) -> Verdict:
        """Keep the longest beginning that a known solution completes; again if that leads further."""
        along = values_along(trace, self.programs.spell)
        verdict, length = self._keep_completable(trace, along, step)
        longest = min(len(trace.states) - trace.has_answer, len(along))
        while 0 < length < longest:  # what was kept may be the way for a longer beginning of the same sample
            _, length = self._keep_completable(trace, along, step, beyond=length)
        return verdict

    def _keep_completable(
        self, trace: Trace, along: Sequence[Mapping[str, str]], step: int, beyond: int = 0
    ) -> tuple[Verdict, int]:
        """The verdict on beginnings of more than `beyond` steps, and how many steps were kept."""
        ways = self._routes.indexed(self._kept)
        # Longest beginnings first, so the first that can be completed is the one to keep.
        for match in islice(ways.matches(trace, along, self.limit, beyond), MAX_COMPLETIONS):
            if self._is_duplicate(trace, match.length):
                return Verdict.KNOWN_PARTIALLY_CORRECT, 0
            if self.rules.equivalence == "exact" and self._is_longer_than_known(trace, match.length):
                return Verdict.TOO_LONG, 0
            whole = self.programs.completed(trace, along[match.length - 1], match)
            if whole is None:
                continue
            completed = self._routes.traced(whole.text)
            # Values that look alike may be read for different reasons: only running it tells.
            is_right = completed.solution == whole and self.programs.is_correct(completed, self.answer)
            if is_right and self.programs.confirms(completed):
                return self._keep_completed(match, completed, step), match.length
        # Nothing within the limit; a match without one says that length alone was the reason.
        anyhow = ways.matches(trace, along, None)
        return (Verdict.INCORRECT if next(anyhow, None) is None else Verdict.TOO_LONG), 0

    def _is_longer_than_known(self, trace: Trace, length: int) -> bool:
        """Whether a shorter beginning is known that reaches the same state."""
        return length > self._known.shortest(trace.states[length - 1]) + self.rules.length_tolerance

    def _keep_completed(self, match: Match, completed: Trace, step: int) -> Verdict:
        """Keep a beginning with its witness or, if the rules say so, the whole that it became."""
        steps, states = completed.solution.steps, completed.states
        is_new = self.rules.stitch and not self._is_duplicate(completed, len(steps))
        if is_new and not self._doubt(completed.solution):
            leaf = self._keep(self._stitched, steps, states, step)
            if leaf in self._stitched:  # a cap of one forgets it at once
                self._seams[leaf.beginning(match.length)] = leaf
            verdict = Verdict.NEW_STITCHED
        else:
            leaf = self._keep(self._partially_correct, steps[: match.length], states, step)
            witness = Witness(match.route.solution.steps, match.position, steps[match.length :])
            self._routes.witnesses[leaf] = witness
            verdict = Verdict.NEW_PARTIALLY_CORRECT
        self._routes.learn(leaf, completed, self._kept)
        return verdict

    def _is_duplicate(self, trace: Trace, length: int) -> bool:
        """Whether the first `length` steps are a known prefix, up to their spelling if the rules say so."""
        steps, state = trace.solution.steps[:length], trace.states[length - 1]
        if self._known.has(steps, state):
            return True
        if self.rules.dedup == "ast":
            return False
        form_of = self.programs.renamed if self.rules.dedup == "alpha" else self.programs.respelled
        # Spelling changes neither the state nor the number of steps: only such prefixes are compared.
        form = form_of(Solution(steps))
        return any(form_of(p.solution) == form for p in self._known.reaching(state, length))

    def _keep(
        self, kept: dict[Prefix, int], steps: Sequence[str], states: Sequence[State], found: int
    ) -> Prefix:
        """updateBuffer and updateMapping: add the path, drop the partial solutions it continues."""
        leaf = self._known.learn(steps, states)
        # Section 3.3.2: prune what is a prefix of the new one. A fully-correct prefix stays a solution.
        for prefix in leaf.path():
            self._partially_correct.pop(prefix, None)
            self._seams.pop(prefix, None)
            self._routes.drop(prefix)
        kept[leaf] = found
        self._doubts = None  # one more opinion may turn the vote
        if self.rules.max_solutions is not None and len(self) > self.rules.max_solutions:
            self._forget_oldest()
        return leaf

    def _forget_oldest(self) -> None:
        """Drop the oldest partial solution, else the oldest stitched or self-sampled one, and its states."""
        if self._partially_correct:
            del self._partially_correct[next(iter(self._partially_correct))]
        elif self._stitched:
            del self._stitched[next(iter(self._stitched))]
        else:
            # The first one is the reference, or the first solution where there is none: it stays.
            del self._fully_correct[list(self._fully_correct)[1]]
        leaves = [leaf for kept in self._kept for leaf in kept]
        self._seams = {seam: leaf for seam, leaf in self._seams.items() if leaf in self._stitched}
        self._flags = {leaf: self._flags[leaf] for leaf in leaves if leaf in self._flags}
        self._routes.keep_only(leaves)
        # M forgets too, or a prefix could match a state that no kept solution reaches any more.
        self._known.keep_only(leaves)

    def _repr_html_(self) -> str:
        """The buffer as a notebook shows it: the problem and its kept solutions side by side."""
        from partway.buffer.html import buffer_html

        return buffer_html(self)

    def to_json(self) -> dict[str, Any]:
        """Everything needed to restore the buffer without running a program."""
        seams = {leaf: seam.length for seam, leaf in self._seams.items()}
        witnesses = self._routes.witnesses
        solutions = [
            {
                "kind": kind,
                "steps": leaf.solution.steps,
                "states": leaf.states,
                "found": found,
                **({"seam": seams[leaf]} if leaf in seams else {}),
                **({"flag": self._flags[leaf]} if leaf in self._flags else {}),
                **({"witness": asdict(witnesses[leaf])} if leaf in witnesses else {}),
            }
            for kind, kept in zip(KINDS, self._kept, strict=True)
            for leaf, found in kept.items()
        ]
        rules = {**asdict(self.rules), **self.programs.settings()}
        # Older files lack the key, so it is written only where it says something.
        usual = {} if self.usual_length is None else {"usual_length": self.usual_length}
        return {"rules": rules, "max_length": self.max_length, **usual, "solutions": solutions}

    @classmethod
    def from_json(
        cls, problem: Problem, data: Mapping[str, Any], programs: Programs | None = None
    ) -> SolutionBuffer:
        """The buffer that `to_json` described, with the programs it names unless they are given."""
        rules = data["rules"]
        buffer = cls(problem, Rules.from_json(rules), programs or programs_of(rules))
        buffer.max_length = data["max_length"]
        buffer.usual_length = data.get("usual_length", buffer.usual_length)
        for entry in data["solutions"]:
            leaf = buffer._known.learn(entry["steps"], entry["states"])
            getattr(buffer, f"_{entry['kind']}")[leaf] = entry["found"]
            if "seam" in entry:
                buffer._seams[leaf.beginning(entry["seam"])] = leaf
            if "flag" in entry:
                buffer._flags[leaf] = entry["flag"]
            if "witness" in entry:
                buffer._routes.witnesses[leaf] = Witness.from_json(entry["witness"])
        return buffer

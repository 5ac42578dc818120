"""The solutions kept for a problem (B), the states known to lead somewhere (M), and the verdict on a sample.

This is Algorithm 3, lines 3-9, with the answer checked first as in Algorithm 1. Known prefixes form a tree:
a prefix is a node, its text the path to the root, so solutions share what they have in common.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, TextIO

from partway.errors import ProblemError
from partway.execution import PYTHON, Programs, State, Trace, trace_all
from partway.execution.programs import flaw_of, programs_of
from partway.problem import Problem
from partway.solution import EMPTY, Solution

Dedup = Literal["ast", "alpha"]
Kind = Literal["fully_correct", "partially_correct"]


class Verdict(StrEnum):
    """What became of a sampled solution."""

    NEW_FULLY_CORRECT = "new_fully_correct"
    KNOWN_FULLY_CORRECT = "known_fully_correct"
    NEW_PARTIALLY_CORRECT = "new_partially_correct"
    KNOWN_PARTIALLY_CORRECT = "known_partially_correct"
    TOO_LONG = "too_long"
    INCORRECT = "incorrect"
    NOT_EXECUTABLE = "not_executable"

    @property
    def is_new(self) -> bool:
        """Whether the buffer kept something."""
        return self in (Verdict.NEW_FULLY_CORRECT, Verdict.NEW_PARTIALLY_CORRECT)


@dataclass(frozen=True)
class Rules:
    """What a buffer counts as a duplicate, as too long and as worth keeping."""

    dedup: Dedup = "ast"
    length_tolerance: int = 0
    keeps_partial: bool = True
    max_solutions: int | None = None

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Rules:
        """The rules that a saved buffer names beside the settings of its programs."""
        return _shared_rules(**{field.name: row[field.name] for field in fields(cls) if field.name in row})


_shared_rules = lru_cache(maxsize=64)(Rules)  # a hundred thousand buffers, one set of rules


class _Prefix:
    """A known prefix: the prefix before it, one more step, and the state that step reaches."""

    __slots__ = ("length", "parent", "state", "step")

    def __init__(self, parent: _Prefix | None, step: str, state: State) -> None:
        self.parent = parent
        self.step = sys.intern(step)
        self.state = state
        self.length: int = 1 if parent is None else parent.length + 1

    def path(self) -> Iterator[_Prefix]:
        """This prefix and all its own prefixes, longest first."""
        prefix: _Prefix | None = self
        while prefix is not None:
            yield prefix
            prefix = prefix.parent

    def spells(self, steps: Sequence[str]) -> bool:
        """Whether this prefix consists of exactly the first `self.length` of `steps`."""
        return all(prefix.step == steps[prefix.length - 1] for prefix in self.path())

    @property
    def solution(self) -> Solution:
        return Solution(tuple(prefix.step for prefix in self.path())[::-1])

    @property
    def states(self) -> tuple[State, ...]:
        return tuple(prefix.state for prefix in self.path())[::-1]


class SolutionBuffer:
    """B and M of one problem; `consider` is the only thing that changes them."""

    __slots__ = (
        "_fully_correct",
        "_known",
        "_partially_correct",
        "answer",
        "max_length",
        "programs",
        "rules",
    )

    def __init__(self, answer: Any, rules: Rules, programs: Programs) -> None:
        self.answer = answer
        self.rules = rules
        self.programs = programs
        self.max_length: int | None = None  # the reference's, or the first correct sample's
        self._known: dict[State, tuple[_Prefix, ...]] = {}  # M
        self._fully_correct: dict[_Prefix, int] = {}  # B: leaf -> training step at which it was found
        self._partially_correct: dict[_Prefix, int] = {}

    @classmethod
    def seeded(
        cls, problem: Problem, rules: Rules | None = None, programs: Programs = PYTHON
    ) -> SolutionBuffer:
        """The buffer before training: B = {y0, y*}, or {y0} where there is no reference."""
        return seed_buffers([problem], rules, programs)[problem.id]

    @property
    def fully_correct(self) -> tuple[Solution, ...]:
        """Kept solutions that execute to the answer; a reference comes first."""
        return tuple(leaf.solution for leaf in self._fully_correct)

    @property
    def partially_correct(self) -> tuple[Solution, ...]:
        """Kept beginnings of solutions, the empty one apart."""
        return tuple(leaf.solution for leaf in self._partially_correct)

    @property
    def prefixes_by_state(self) -> dict[State, tuple[Solution, ...]]:
        """M: for each known state every known prefix that reaches it."""
        return {state: tuple(p.solution for p in prefixes) for state, prefixes in self._known.items()}

    @property
    def found(self) -> dict[Solution, int]:
        """The training step at which each kept solution was found."""
        kept = self._fully_correct | self._partially_correct
        return {leaf.solution: step for leaf, step in kept.items()}

    def __len__(self) -> int:
        return len(self._fully_correct) + len(self._partially_correct)

    def draw_prefix(
        self, rng: random.Random, has_room: Callable[[Solution], bool] = lambda prefix: True
    ) -> Solution:
        """A prefix to continue, uniform over y0 and the partially-correct ones (Algorithm 2, line 1).

        Those that fill the model's context already cannot be continued, and are not drawn.
        """
        prefixes = [EMPTY, *(prefix for prefix in self.partially_correct if has_room(prefix))]
        return prefixes[rng.randrange(len(prefixes))]

    def consider(self, trace: Trace, step: int = 0) -> Verdict:
        """Judge a traced sample and keep what is new in it; `step` is the training step it was sampled at.

        What would be kept but runs differently a second time counts as not executable.
        """
        if not trace.states:
            return Verdict.NOT_EXECUTABLE
        is_right = self.programs.is_correct(trace, self.answer)
        if is_right and (verdict := self._consider_whole(trace, step)) is not Verdict.TOO_LONG:
            return verdict
        verdict = self._consider_beginnings(trace, step) if self.rules.keeps_partial else Verdict.INCORRECT
        return Verdict.TOO_LONG if is_right and not verdict.is_new else verdict

    def _consider_whole(self, trace: Trace, step: int) -> Verdict:
        length = len(trace.solution)
        if self._is_duplicate(trace, length):
            return Verdict.KNOWN_FULLY_CORRECT
        if self.max_length is not None and length > self.max_length + self.rules.length_tolerance:
            return Verdict.TOO_LONG
        if not self.programs.confirms(trace):
            return Verdict.NOT_EXECUTABLE
        if self.max_length is None:
            self.max_length = length
        self._keep(self._fully_correct, trace.solution.steps, trace.states, step)
        return Verdict.NEW_FULLY_CORRECT

    def _consider_beginnings(self, trace: Trace, step: int) -> Verdict:
        length = self.programs.longest_known_prefix(trace, self._known)
        if length == 0:
            return Verdict.INCORRECT
        if self._is_duplicate(trace, length):
            return Verdict.KNOWN_PARTIALLY_CORRECT
        shortest = min(prefix.length for prefix in self._known[trace.states[length - 1]])
        if length > shortest + self.rules.length_tolerance:
            return Verdict.TOO_LONG
        if not self.programs.confirms(trace):
            return Verdict.NOT_EXECUTABLE
        self._keep(self._partially_correct, trace.solution.steps[:length], trace.states, step)
        return Verdict.NEW_PARTIALLY_CORRECT

    def _is_duplicate(self, trace: Trace, length: int) -> bool:
        """Whether the first `length` steps are a known prefix, up to renaming if the rules say so."""
        steps, state = trace.solution.steps[:length], trace.states[length - 1]
        if self._find(steps, state) is not None:
            return True
        if self.rules.dedup == "ast":
            return False
        form = self.programs.renamed(Solution(steps))
        peers = (prefix for prefix in self._known.get(state, ()) if prefix.length == length)
        return any(self.programs.renamed(peer.solution) == form for peer in peers)

    def _find(self, steps: Sequence[str], state: State) -> _Prefix | None:
        for prefix in self._known.get(state, ()):
            if prefix.length == len(steps) and prefix.spells(steps):
                return prefix
        return None

    def _keep(
        self, kept: dict[_Prefix, int], steps: Sequence[str], states: Sequence[State], found: int
    ) -> None:
        """updateBuffer and updateMapping: add the path, drop the partial solutions it continues."""
        leaf = self._learn_path(steps, states)
        for prefix in leaf.path():
            self._partially_correct.pop(prefix, None)
        kept[leaf] = found
        if self.rules.max_solutions is not None and len(self) > self.rules.max_solutions:
            self._forget_oldest()

    def _learn_path(self, steps: Sequence[str], states: Sequence[State]) -> _Prefix:
        leaf: _Prefix | None = None
        for step, state in zip(steps, states, strict=False):
            peers = self._known.get(state, ())
            known = next((peer for peer in peers if peer.parent is leaf and peer.step == step), None)
            if known is None:
                known = _Prefix(leaf, step, state)
                self._known[state] = (*peers, known)
            leaf = known
        assert leaf is not None, "only solutions of at least one step are kept"
        return leaf

    def _forget_oldest(self) -> None:
        """Drop the oldest partial solution, else the oldest self-sampled correct one, and its states."""
        if self._partially_correct:
            del self._partially_correct[next(iter(self._partially_correct))]
        else:
            del self._fully_correct[list(self._fully_correct)[1]]
        leaves = [*self._fully_correct, *self._partially_correct]
        alive = {prefix for leaf in leaves for prefix in leaf.path()}
        known = ((state, tuple(p for p in prefixes if p in alive)) for state, prefixes in self._known.items())
        self._known = {state: prefixes for state, prefixes in known if prefixes}

    def to_json(self) -> dict[str, Any]:
        """Everything needed to restore the buffer without running a program."""
        kinds: list[tuple[Kind, dict[_Prefix, int]]] = [
            ("fully_correct", self._fully_correct),
            ("partially_correct", self._partially_correct),
        ]
        solutions = [
            {"kind": kind, "steps": leaf.solution.steps, "states": leaf.states, "found": found}
            for kind, kept in kinds
            for leaf, found in kept.items()
        ]
        rules = {**asdict(self.rules), **self.programs.settings()}
        return {"rules": rules, "max_length": self.max_length, "solutions": solutions}

    @classmethod
    def from_json(
        cls, problem: Problem, data: Mapping[str, Any], programs: Programs | None = None
    ) -> SolutionBuffer:
        """The buffer that `to_json` described, with the programs it names unless they are given."""
        rules = data["rules"]
        buffer = cls(problem.answer, Rules.from_json(rules), programs or programs_of(rules))
        buffer.max_length = data["max_length"]
        for entry in data["solutions"]:
            leaf = buffer._learn_path(entry["steps"], entry["states"])
            getattr(buffer, f"_{entry['kind']}")[leaf] = entry["found"]
        return buffer


def seed_buffers(
    problems: Iterable[Problem],
    rules: Rules | None = None,
    programs: Programs = PYTHON,
    traces: Mapping[str, Trace] | None = None,
) -> dict[str, SolutionBuffer]:
    """A seeded buffer per problem, by id; `traces` of the references are made here unless there are some."""
    rules = rules or _shared_rules()
    problems = list(problems)
    if traces is None:
        traces = reference_traces(problems, programs)
    buffers = {problem.id: SolutionBuffer(problem.answer, rules, programs) for problem in problems}
    for problem in problems:
        if problem.reference is None:
            continue
        trace = traces[problem.id]
        if (flaw := flaw_of(trace, problem.answer, programs)) is not None:
            raise ProblemError(
                f"problem {problem.id}: the reference {flaw}; correct it or leave the reference out"
            )
        buffers[problem.id].consider(trace)
    return buffers


def reference_traces(problems: Iterable[Problem], programs: Programs = PYTHON) -> dict[str, Trace]:
    """The references that there are, run in one batch, by the ids of their problems."""
    references = {problem.id: problem.reference for problem in problems if problem.reference is not None}
    return dict(zip(references, trace_all(list(references.values()), programs), strict=True))


def reconsider(buffers: Mapping[str, SolutionBuffer], rows: Iterable[Mapping[str, Any]]) -> Counter[Verdict]:
    """Give saved solutions to `buffers` as if just sampled: each is run again and judged by their rules.

    `rows` are lines of a buffer.jsonl, perhaps of a run with other rules; problems without a buffer here are
    passed over. What makes a beginning right may come after it, so those judged incorrect are judged again
    for as long as something new is kept.
    """
    saved = [
        (solution.get("found", 0), row["id"], "\n".join(solution["steps"]))
        for row in map(_checked, rows)
        if row["id"] in buffers
        for solution in row["solutions"]
    ]
    saved.sort(key=lambda entry: entry[0])
    if not saved:
        return Counter()
    traces = buffers[saved[0][1]].programs.trace_all([text for *_, text in saved])
    verdicts: Counter[Verdict] = Counter()
    pending = [(id, trace) for (_, id, _), trace in zip(saved, traces, strict=True)]
    while pending:
        judged = [(buffers[id].consider(trace), id, trace) for id, trace in pending]
        is_progress = any(verdict.is_new for verdict, *_ in judged)
        again = [(id, trace) for verdict, id, trace in judged if verdict is Verdict.INCORRECT and is_progress]
        verdicts.update(verdict for verdict, *_ in judged)
        verdicts[Verdict.INCORRECT] -= len(again)
        pending = again
    return +verdicts


def _checked(row: Any) -> Mapping[str, Any]:
    """A row of saved solutions as it should be."""
    try:
        for solution in row["solutions"]:
            "\n".join(solution["steps"])
        return {"id": str(row["id"]), "solutions": row["solutions"]}
    except (KeyError, TypeError):
        raise ProblemError(
            f"{str(row)[:60]!r} has no saved solutions, expected a line of a buffer.jsonl"
        ) from None


def write_buffers(stream: TextIO, buffers: Mapping[str, SolutionBuffer]) -> None:
    """One JSON line per buffer, written as it is made."""
    for id, buffer in buffers.items():
        stream.write(json.dumps({"id": id, **buffer.to_json()}, ensure_ascii=False) + "\n")


def read_buffers(
    lines: Iterable[str], problems: Iterable[Problem], programs: Programs | None = None
) -> dict[str, SolutionBuffer]:
    """The buffers of `problems` that were written; the others' lines are passed over."""
    by_id = {problem.id: problem for problem in problems}
    buffers = {}
    for line in lines:
        data = json.loads(line)
        if data["id"] in by_id:
            buffers[data["id"]] = SolutionBuffer.from_json(by_id[data["id"]], data, programs)
    return buffers

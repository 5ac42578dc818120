"""A trace, the paper's T(y), is one state per executed step; here Python text is run to traces.

The package `straightline` runs straight-line arithmetic. Other programs go to another room, which a folder
around the method adds. Known programs are not run again: the memo from texts to traces is bounded in bytes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Protocol

import straightline
from partway import registry
from partway.errors import SandboxError
from partway.solution import Solution
from straightline import BoundedCache, Changed, Execution, Failure, OneEach, State, StateMode
from straightline.parsing import known_lines

MAX_BYTES = 128 << 20
MAX_TRACE_BYTES = 256 << 10  # a larger one is cheaper to make again than to keep
STEP_BYTES = 450  # the objects around one step's text, state and number


class Trace(NamedTuple):  # not a dataclass: a frozen one takes a microsecond longer to make
    """A solution with the state after each executed step and the failure, if any.

    `solution` holds every step that parsed, also those after the failure. `outcome` is `(answer,)` if the
    last step gave one.
    """

    solution: Solution
    states: tuple[State, ...]
    changes: Sequence[Changed]
    failure: Failure | None = None
    outcome: tuple[Any] | None = None
    isolated: bool = False  # run by an isolated worker; a program might have forged what it reports

    @property
    def variables(self) -> dict[str, Any]:
        """Names and values after the last executed step."""
        held = {name: value for changed in self.changes for name, value in changed.items()}
        return {name: value[0] for name, value in held.items() if value is not None}

    @property
    def has_answer(self) -> bool:
        """Whether the last executed step gave an answer and nothing failed."""
        return self.failure is None and self.outcome is not None

    @property
    def answer(self) -> Any:
        """What the solution answers, None if nothing."""
        return None if self.outcome is None else self.outcome[0]

    def prefixes(self) -> Iterator[tuple[Solution, State]]:
        """Every executed prefix with the state it reaches, shortest first."""
        for length, state in enumerate(self.states, 1):
            yield self.solution.prefix(length), state

    def _repr_html_(self) -> str | None:
        """The trace as a notebook shows it: each step with the state it reaches."""
        return registry.view("trace", self)


class Room(Protocol):
    """Runs programs, each a tuple of steps, whatever they do."""

    def __call__(
        self, programs: Sequence[tuple[str, ...]], *, until: str, second: bool = False
    ) -> list[Execution]:
        """One execution per program, which ends after its last step or the first that binds `until`.

        A second opinion comes from other processes with another layout of memory.
        """
        ...


def run_isolated(programs: Sequence[tuple[str, ...]], until: str = "") -> list[Execution]:
    """One execution per program, a tuple of steps each; none is remembered."""
    return _room()(programs, until=until, second=_is_second.get())


def _room() -> Room:
    """The room for programs that the interpreter does not cover."""
    found = registry.parts("rooms").get("isolated")
    if found is None:
        raise SandboxError(
            "a program with more than straight-line arithmetic needs the part 'sandbox'"
            + registry.missing_parts()
        )
    room: Room = found.load()
    return room


def trace_texts(texts: Sequence[str], state: StateMode, answer_variable: str) -> list[Trace]:
    """The traces of many texts, in order; what goes to the other room goes there in one batch."""
    memo = Memo() if _is_second.get() else _memos[state, answer_variable]
    known = list(map(memo.recall, texts))
    new = list(dict.fromkeys(text for text, found in zip(texts, known, strict=True) if found is None))
    elsewhere = partial(run_isolated, until=answer_variable)
    traces = straightline.trace_all(new, answer_variable, state, elsewhere)
    fresh = {text: Trace(Solution(one[0]), *one[1:]) for text, one in zip(new, traces, strict=True)}
    memo.remember(fresh)
    return [found or fresh[text] for text, found in zip(texts, known, strict=True)]


@contextmanager
def independently() -> Iterator[None]:
    """Whatever is traced inside is run anew, by the other room in processes of another layout than usual."""
    before = _is_second.set(True)
    try:
        yield
    finally:
        _is_second.reset(before)


def forget() -> None:
    """Drop what is remembered of earlier programs."""
    _memos.clear()


def forget_lines() -> None:
    """Drop what is remembered of earlier lines."""
    known_lines.clear()


class Memo:
    """Traces of earlier programs, by their text."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._traces = BoundedCache[str, Trace](max_bytes, size_of, MAX_TRACE_BYTES)
        self.recall = self._traces.get  # the trace of a program, if it is still known

    def remember(self, found: Mapping[str, Trace]) -> None:
        """Keep traces; not of what ran out of time or memory, or was killed: that may not happen again."""
        put = self._traces.put
        for text, trace in found.items():
            if trace.failure is None:
                put(text, trace)
                # A data set's spelling is read once; from then on its problem is known by its canonical text.
                if (spelled := "\n".join(trace.solution.steps)) != text.rstrip("\n"):
                    put(spelled, trace)
            elif trace.failure.kind in ("error", "forbidden") and trace.failure.is_own:
                put(text, trace)

    def __len__(self) -> int:
        return len(self._traces)


def size_of(text: str, found: Trace) -> int:
    """About how many bytes a trace holds; never much less than it does."""
    states = found.states
    if type(found.changes) is OneEach:  # the usual program, whose last state is its longest
        return 2 * (len(text) + len(states) * len(states[-1])) + STEP_BYTES * (1 + len(states))
    texts = len(text) + sum(map(len, states))
    if not found.isolated:
        return 2 * texts + STEP_BYTES * (1 + len(states))  # its values are plain numbers
    values = (value[0] for changed in found.changes for value in changed.values() if value is not None)
    return 4 * texts + STEP_BYTES * (1 + len(states)) + _bytes_of_all(values)


def _bytes_of_all(values: Iterable[Any]) -> int:
    """Of values and all they hold; counting ends where the sum is too large to be kept anyway."""
    total = 0
    waiting = list(values)
    while waiting and total <= MAX_TRACE_BYTES:
        value = waiting.pop()
        total += sys.getsizeof(value) + 8
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
    return total


_memos: defaultdict[tuple[StateMode, str], Memo] = defaultdict(Memo)  # what else decides a trace
_is_second: ContextVar[bool] = ContextVar("_is_second", default=False)  # within `independently`

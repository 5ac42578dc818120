"""A request and its samples: what an engine is asked, and what it drew.

A sample is one object from the engine that draws it to its row in `samples/`, which has its verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partway.buffer import Verdict
from partway.problem import Problem
from partway.solution import Solution


@dataclass(frozen=True, slots=True)
class Request:
    """`count` independent completions of `prefix`, a beginning of a solution (EMPTY: from scratch).

    `drafts` are solutions that completions may resemble. They can make an engine faster, and change nothing
    about what it draws.
    """

    problem: Problem
    prefix: Solution
    count: int
    drafts: tuple[Solution, ...] = ()

    def sample(
        self,
        completion: str,
        count: int = 1,
        *,
        finished: bool = True,
        tokens: Sequence[int] = (),
        log_prob: float | None = None,
        drafted: int = 0,
    ) -> Sample:
        """`count` equal completions that answer this request."""
        prefix = self.prefix.text
        return Sample(self.problem.id, prefix, completion, count, finished, tuple(tokens), log_prob, drafted)


@dataclass(frozen=True, slots=True)
class Sample:
    """`count` equal completions of `prefix`, a beginning of a solution of the problem with this id.

    `tokens` are those that were drawn, with the one that ended the completion if it was drawn too; they are
    empty if an engine gives text only. `log_prob` is theirs, at temperature 1 and unfiltered, and `drafted`
    is how many of them the drafts had right. `weights` is the training step whose weights drew it, None if
    unknown; `endpoint` is the address of the server that did, if one did. `step` is when a buffer considered
    it, and `verdict` what came of that; an engine knows neither.
    """

    problem: str
    prefix: str
    completion: str
    count: int
    finished: bool
    tokens: tuple[int, ...] = ()
    log_prob: float | None = None
    drafted: int = 0
    weights: int | None = None
    endpoint: str = ""
    step: int = 0
    verdict: Verdict | None = None

    @property
    def written(self) -> str:
        """The prefix, if any, and the completion after it."""
        return f"{self.prefix}\n{self.completion}" if self.prefix else self.completion

    @property
    def text(self) -> str:
        """The part of it that is run and judged."""
        return traced_text(self.prefix, self.completion, self.finished)

    @property
    def late(self) -> int | None:
        """How many steps older the weights that drew it were than those that learn from it first."""
        return None if self.weights is None else self.step - 1 - self.weights


def traced_text(prefix: str, completion: str, finished: bool) -> str:
    """The part of a sample that is run: prefix and completion, without a last line that was cut off.

    A line cut off by length may run all the same: `n0 = 12` was perhaps to become `n0 = 120`.

    >>> traced_text("n0 = 1", "n1 = 2\\nanswer = n0 +", finished=False)
    'n0 = 1\\nn1 = 2\\n'
    """
    kept = completion if finished else completion[: completion.rfind("\n") + 1]
    return f"{prefix}\n{kept}" if prefix else kept

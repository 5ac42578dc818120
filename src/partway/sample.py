"""A sample: one object from the engine that draws it to its row in `samples/`, which has its verdict."""

from __future__ import annotations

from dataclasses import dataclass

from partway.buffer import Verdict
from partway.solution import traced_text


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
        """The beginning it went on from, if any, and what was drawn after it."""
        return f"{self.prefix}\n{self.completion}" if self.prefix else self.completion

    @property
    def text(self) -> str:
        """What of it is run and judged."""
        return traced_text(self.prefix, self.completion, self.finished)

    @property
    def late(self) -> int | None:
        """How many steps older the weights that drew it were than those that learn from it first."""
        return None if self.weights is None else self.step - 1 - self.weights

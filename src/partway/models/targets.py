"""What is learned of a problem: targets that know what they are, hung on the problem's prompt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

TargetKind = Literal["reference", "fully_correct", "partially_correct", "stitched", "sample"]


@dataclass(frozen=True, slots=True)
class Target:
    """Tokens to learn, what they are, and how much they count.

    `stitched` is a right solution put together from several; `sample` is one of this step's samples, right or
    not, whose weight is its reward. A weight may be negative where the objective allows it.
    """

    tokens: tuple[int, ...]
    kind: TargetKind = "fully_correct"
    weight: float = 1.0

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Targets:
    """What is learned of one problem: a prompt and what should follow it; a reference comes first."""

    prompt: tuple[int, ...]
    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        assert self.prompt, "a prompt needs a token, or the first token of its targets has no probability"
        assert self.targets, "a problem without targets has no loss; leave it out of the step"
        assert all(map(len, self.targets)), "a target needs a token; the empty solution is not learned"

    @classmethod
    def of(cls, prompt: Iterable[int], sequences: Iterable[Iterable[int]]) -> Targets:
        """A reference, and other fully-correct solutions behind it."""
        targets = [
            Target(tuple(tokens), "fully_correct" if number else "reference")
            for number, tokens in enumerate(sequences)
        ]
        return cls(tuple(prompt), tuple(targets))

    @property
    def sequences(self) -> tuple[tuple[int, ...], ...]:
        """The tokens of each target."""
        return tuple(target.tokens for target in self.targets)

    def with_question(self) -> Targets:
        """The same problem with the prompt's tokens (but its first) learned as part of every target."""
        question = self.prompt[1:]
        longer = (replace(target, tokens=question + target.tokens) for target in self.targets)
        return Targets(self.prompt[:1], tuple(longer))

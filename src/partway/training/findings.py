"""What exploring found since processes last told each other: samples for the run, buffers for the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from partway.buffer import SolutionBuffer
from partway.runs import Sample


@dataclass
class Findings:
    """Samples with their place in the batch, and the problems whose buffers changed, of one process."""

    samples: list[tuple[int, int, Sample]] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)

    def add(self, sample: Sample, place: int) -> None:
        """Note a sample of the problem at `place` in its step's batch."""
        self.samples.append((sample.step, place, sample))
        if sample.verdict.is_new:
            self.changed.add(sample.problem)

    def message(self, buffers: dict[str, SolutionBuffer]) -> Message:
        """What the other processes have to know."""
        return Message(
            self.samples, {problem: buffers[problem].to_json() for problem in sorted(self.changed)}
        )


@dataclass(frozen=True)
class Message:
    """One process's findings. No problem is explored by two processes between two exchanges, so its buffer
    in one message is the buffer."""

    samples: list[tuple[int, int, Sample]]
    buffers: dict[str, dict[str, Any]]


def in_order(messages: Iterable[Message]) -> list[Sample]:
    """The samples of all processes, by step and place in the batch: the order one process would have."""
    placed = [sample for message in messages for sample in message.samples]
    return [sample for _, _, sample in sorted(placed, key=lambda entry: entry[:2])]

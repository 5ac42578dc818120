"""The buffers of all problems, the same in every process: what one process finds, the others are told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from partway.buffer import SolutionBuffer
from partway.buffer.seeding import SeededBuffers
from partway.execution import Trace
from partway.models.engine import Draw, Request
from partway.problem import Problem
from partway.runs import SelfSample
from partway.runs.run import save_buffers, saved_buffer_rows
from partway.training.distributed import gathered


@dataclass
class _Findings:
    """What one process found since the last exchange: samples by step and place in the batch, and buffers.

    No problem is explored by two processes between exchanges, so its buffer in one message is the buffer.
    """

    samples: list[tuple[int, int, SelfSample]] = field(default_factory=list)
    buffers: dict[str, dict[str, Any]] = field(default_factory=dict)


class Buffers(Mapping[str, SolutionBuffer]):
    """A buffer per problem id. Between exchanges a process is ahead of the others by its own findings."""

    def __init__(self, problems: Sequence[Problem], buffers: Mapping[str, SolutionBuffer]) -> None:
        self._problems = {problem.id: problem for problem in problems}
        self._buffers = buffers
        self._made: dict[str, SolutionBuffer]
        if isinstance(buffers, SeededBuffers):
            self._made = buffers.made
        else:
            self._buffers = self._made = dict(buffers)
        self._sizes = {key: _sizes(buffer) for key, buffer in self._made.items()}
        sizes = (self._sizes_of(key) for key in buffers)
        self._totals = [sum(column) for column in zip(*sizes, strict=True)]
        self._findings = _Findings()
        self._changed: set[str] = set()
        self._due: set[str] = set()  # explored by any process since the last exchange

    def __getitem__(self, key: str) -> SolutionBuffer:
        return self._buffers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._buffers)

    def __len__(self) -> int:
        return len(self._buffers)

    def consider(self, request: Request, draw: Draw, trace: Trace, step: int, place: int) -> list[SelfSample]:
        """Let the problem's buffer judge a traced draw: a sample per verdict, as drawn again it is known."""
        key, samples = request.problem.id, []
        log_prob = None if draw.log_prob is None else round(draw.log_prob, 4)
        is_known = draw.weights is not None or bool(draw.endpoint)  # else those trained here, as they are
        weights = draw.weights if is_known else step - 1
        # The first of equal draws may be new; the others are known by then, and are counted as known.
        for count in (1, draw.count - 1):
            if count:
                verdict = self._buffers[key].consider(trace, step)
                text = request.prefix.text, draw.completion
                samples.append(SelfSample(step, key, *text, count, draw.finished, verdict, log_prob, weights))
                if verdict.is_new:
                    self._changed.add(key)
                    self._measure(key)
        self._findings.samples += [(step, place, sample) for sample in samples]
        return samples

    def are_due(self, batch: Sequence[Problem]) -> bool:
        """Whether a problem of the batch was explored since the last exchange, maybe by another process."""
        return not self._due.isdisjoint(problem.id for problem in batch)

    def will_explore(self, batch: Sequence[Problem]) -> None:
        """Note that these problems are being explored, each by some process."""
        self._due.update(problem.id for problem in batch)

    def exchange(self, accelerator: Accelerator) -> list[SelfSample]:
        """Give every process every buffer; returns all samples in the order one process would have."""
        # A process alone has nobody to tell, and writing buffers out takes long.
        if accelerator.num_processes > 1:
            self._findings.buffers = {key: self._buffers[key].to_json() for key in sorted(self._changed)}
        messages = gathered(accelerator, self._findings)
        for number, message in enumerate(messages):
            if number != accelerator.process_index:
                self._take_over(message.buffers)
        self._findings = _Findings()
        self._changed.clear()
        self._due.clear()
        # As one process alone would have drawn them: by step, then by place in the batch.
        placed = [entry for message in messages for entry in message.samples]
        return [sample for _, _, sample in sorted(placed, key=lambda entry: entry[:2])]

    def metrics(self) -> dict[str, float]:
        """Solutions kept per problem by kind; of rules beyond the paper's what became of them."""
        full, stitched, partial = self._totals
        rules = next(iter(self.values())).rules
        line = {
            "buffer/fcs_per_problem": full / len(self),
            "buffer/pcs_per_problem": partial / len(self),
        }
        if rules.stitch:
            line["buffer/stitched_per_problem"] = stitched / len(self)
        if any(problem.reference is None for problem in self._problems.values()):
            line["buffer/problems_with_a_solution"] = sum(self._sizes_of(key)[0] > 0 for key in self)
        if rules.spurious == "flag":
            line["buffer/flagged"] = sum(len(buffer.doubts) for buffer in self._made.values())
        if rules.completes:
            line["buffer/exact_fallbacks"] = sum(buffer.falls_back for buffer in self._made.values())
        return line

    def write(self, directory: Path) -> None:
        """Save every buffer, one line each."""
        save_buffers(directory, self._buffers)

    def read(self, directory: Path) -> None:
        """Take up what `write` saved."""
        self._take_over({row.pop("id"): row for row in saved_buffer_rows(directory)})

    def _take_over(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        programs = next(iter(self.values())).programs
        for key, row in rows.items():
            self._made[key] = SolutionBuffer.from_json(self._problems[key], row, programs)
            self._measure(key)

    def _measure(self, key: str) -> None:
        """Count a buffer that changed again, and only that: there may be a million of them."""
        before, now = self._sizes_of(key), _sizes(self._buffers[key])
        self._sizes[key] = now
        self._totals = [total - old + new for total, old, new in zip(self._totals, before, now, strict=True)]

    def _sizes_of(self, key: str) -> tuple[int, int, int]:
        """How many solutions are kept; of a buffer that has not changed yet, its reference."""
        return self._sizes.get(key) or (int(self._problems[key].reference is not None), 0, 0)


def _sizes(buffer: SolutionBuffer) -> tuple[int, int, int]:
    """How many solutions are kept: fully correct, stitched, partially correct."""
    full, stitched = len(buffer.fully_correct), len(buffer.stitched)
    return full, stitched, len(buffer) - full - stitched

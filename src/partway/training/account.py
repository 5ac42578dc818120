"""The account of a run: the sums that its lines and checkpoints are made of, and the samples it found.

Each process counts what it does; what is written is the sum over all processes. A checkpoint keeps the sums
to the last bit. Times are counted apart, because they are never the same twice.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from partway.buffer import Verdict
from partway.errors import RunError
from partway.language import Trace
from partway.learning.token_tree import Targets
from partway.models.text import Codec
from partway.objectives import Objective
from partway.runs import Run
from partway.runs.checkpoints import RunProgress
from partway.sample import Sample
from partway.training.distributed import gathered
from partway.training.order import AddedOrder
from partway.training.shared_buffers import Buffers

SPANS = ("exploring", "executing", "learning", "evaluating", "saving")


@dataclass
class Ledger:
    """What happened since the last line of metrics.jsonl, in one process or, added up, in all."""

    loss: float = 0.0
    problems: int = 0
    targets: int = 0
    tokens: int = 0
    drawn: int = 0
    unsolved: int = 0  # of these, for problems without a solution
    guided: int = 0
    clipped: int = 0
    completion_tokens: int = 0
    drafted_tokens: int = 0
    refused: int = 0  # would have been kept, but ran differently a second time
    served: int = 0  # by servers, with weights of a known step
    late: int = 0  # steps between those weights and the samples' consideration, added up
    verdicts: Counter[str] = field(default_factory=Counter)

    def add_sample(self, sample: Sample, tokens: int, *, executed: bool = False) -> None:
        """Account for a judged sample of `tokens` tokens, `executed` if at least one of its steps ran."""
        assert sample.verdict is not None, "it was judged"
        self.drawn += sample.count
        self.guided += sample.count if sample.prefix else 0
        self.clipped += 0 if sample.finished else sample.count
        self.completion_tokens += sample.count * tokens
        self.drafted_tokens += sample.count * sample.drafted
        self.refused += sample.count if executed and sample.verdict is Verdict.NOT_EXECUTABLE else 0
        self.verdicts[sample.verdict] += sample.count
        if sample.endpoint and sample.late is not None:
            self.served += sample.count
            self.late += sample.count * sample.late

    @property
    def drafted_share(self) -> float:
        """The share of the drawn tokens that drafts had told."""
        return self.drafted_tokens / max(1, self.completion_tokens)

    def add_learned(self, loss: float, problems: int, targets: Collection[Targets]) -> None:
        """Account for a step's learning from the targets of so many problems."""
        self.loss += loss
        self.problems += problems
        self.targets += sum(len(found.targets) for found in targets)
        self.tokens += sum(len(target) for found in targets for target in found.targets)

    @classmethod
    def total(cls, parts: Sequence[Ledger]) -> Ledger:
        """The sum of the ledgers of all processes."""
        result = cls()
        for part in parts:
            for name, value in vars(part).items():  # numbers and a Counter: both add
                setattr(result, name, getattr(result, name) + value)
        return result

    def to_json(self) -> dict[str, Any]:
        """All sums."""
        return {**vars(self), "verdicts": dict(self.verdicts)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Ledger:
        """The ledger that `to_json` described."""
        return cls(**{**data, "verdicts": Counter(data["verdicts"])})

    def metrics(self, steps: int) -> dict[str, float]:
        """The line of metrics.jsonl that these sums of `steps` steps make."""
        line: dict[str, float] = {
            "loss": self.loss / steps,
            "targets_per_problem": self.targets / max(1, self.problems),
            "samples/drawn": self.drawn,
        }
        if self.drawn:
            # The paper's verdicts are in every line, also with 0; those of other rules where they occur.
            shown = [v for v in Verdict if self.verdicts[v] or not v.is_optional]
            line |= {f"samples/frac_{verdict}": self.verdicts[verdict] / self.drawn for verdict in shown}
            line["samples/frac_guided"] = self.guided / self.drawn
            line["samples/frac_drafted_tokens"] = self.drafted_share
            line["completions/mean_length"] = self.completion_tokens / self.drawn
            line["completions/clipped_ratio"] = self.clipped / self.drawn
        if self.served:
            line["samples/mean_steps_late"] = self.late / self.served
        if self.refused:
            line["samples/refused"] = self.refused
        return line


@dataclass
class Account:
    """The buffers, the sums since the last line, and those over all lines so far."""

    run: Run
    buffers: Buffers
    codec: Codec
    objective: Objective
    mixed: AddedOrder | None = None  # the order of problems, if it depends on what is solved
    ledger: Ledger = field(default_factory=Ledger)
    total_loss: float = 0.0
    num_tokens: int = 0

    def add_drawn(self, samples: Iterable[Sample]) -> None:
        """Account for a step's samples, before any of them is considered."""
        self.ledger.unsolved += sum(one.count for one in samples if not self.buffers.is_solved(one.problem))

    def consider(self, sample: Sample, trace: Trace, step: int) -> None:
        """Let the problem's buffer judge a traced sample, and account for it."""
        # A run keeps the tokens that it learned; those of other samples would double its files.
        kept = sample if self.objective.least_samples else replace(sample, tokens=())
        tokens = sample.tokens or self.codec.encode(sample.completion)
        for judged in self.buffers.consider(kept, trace, step):
            self.ledger.add_sample(judged, len(tokens), executed=bool(trace.states))

    def add_learned(self, learned: Learned, loss: float, problems: int) -> None:
        """Account for what a step learned from so many problems; a loss that is not a number is an error."""
        if not math.isfinite(loss):
            raise learned.no_number("loss", loss, self.run, self.codec)
        self.ledger.add_learned(loss, problems, learned.targets.values())

    def share(self, accelerator: Accelerator) -> None:
        """Give every process every buffer, and write what all of them sampled to the run."""
        samples = self.buffers.exchange(accelerator)
        if accelerator.is_main_process:
            self.run.append_samples(samples)

    def line(self, accelerator: Accelerator, steps: int) -> dict[str, float]:
        """What the last `steps` steps did, over all processes; the next line begins from nothing."""
        self.share(accelerator)
        total = Ledger.total(gathered(accelerator, self.ledger))  # in the order of processes, always
        self.ledger = Ledger()
        self.total_loss += total.loss
        self.num_tokens += total.tokens
        line = {**total.metrics(steps), "num_tokens": self.num_tokens, **self.buffers.metrics()}
        if self.buffers.lack_references:
            line |= {"samples/unsolved": total.unsolved, "samples/solved": total.drawn - total.unsolved}
        return line

    def last_line(self, accelerator: Accelerator, steps: int) -> dict[str, float]:
        """The mean loss of all `steps` steps, and that this was the end."""
        rest = Ledger.total(gathered(accelerator, self.ledger))
        return {"train_loss": (self.total_loss + rest.loss) / steps, "finished": True}

    def sums(self, accelerator: Accelerator, step: int) -> dict[str, Any]:
        """What a checkpoint after `step` says of the sums and of how far the run's files go."""
        self.share(accelerator)
        if self.mixed is not None:
            self.mixed.put_back(step)
        total = Ledger.total(gathered(accelerator, self.ledger))
        # A resumed run begins from this total. So must the one that goes on, or its sums would be added in
        # another order and differ in the last bit.
        self.ledger = total if accelerator.is_main_process else Ledger()
        return {
            "total_loss": self.total_loss,
            "num_tokens": self.num_tokens,
            "ledger": total.to_json(),
            "drawn": dict(self.buffers.drawn),
            "turns": [] if self.mixed is None else self.mixed.turns,
            "files": self.run.positions() if accelerator.is_main_process else {},
        }

    def go_back_to(self, progress: RunProgress, directory: Path, *, is_main: bool) -> None:
        """Take up sums and buffers where a checkpoint left them."""
        self.total_loss, self.num_tokens = progress.total_loss, progress.num_tokens
        if is_main:  # the saved sums are those of all processes: the others begin from nothing
            self.ledger = Ledger.from_json(progress.ledger)
        self.buffers.read(directory)
        self.buffers.drawn = Counter(progress.drawn)
        if self.mixed is not None:
            self.mixed.go_back_to(progress.turns)


class Clock:
    """Seconds spent in named spans since the last line of timings.jsonl."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Count from now on."""
        self.started = time.perf_counter()
        self.spent = dict.fromkeys(SPANS, 0.0)

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Count the time inside as spent on `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spent[name] += time.perf_counter() - start

    def line(self, step: int, steps: int) -> dict[str, float]:
        """The line of timings.jsonl for `steps` steps up to `step`; starts the next."""
        seconds = time.perf_counter() - self.started
        line = {"step": step, "time": time.time(), "seconds": seconds, "steps_per_second": steps / seconds}
        line |= {f"time/{name}": spent for name, spent in self.spent.items()}
        # What no span counts: data loading, the optimiser, transformers' own work.
        line["time/other"] = seconds - sum(self.spent.values())
        self.start()
        return line


@dataclass(frozen=True)
class Learned:
    """What a process learned from in a step: targets and loss by problem id."""

    step: int
    targets: Mapping[str, Targets]
    losses: Mapping[str, float]

    def no_number(self, what: str, value: float, run: Run, codec: Codec) -> RunError:
        """Write down what was learned from, as text, in a file of the run; the error to stop with."""
        path = run.nan_batch_file(self.step)
        problems = {
            key: {
                "loss": str(self.losses[key]),  # JSON has no nan
                "prompt": codec.decode(found.prompt),
                "targets": [codec.decode(target) for target in found.sequences],
            }
            for key, found in self.targets.items()
        }
        path.write_text(json.dumps({"step": self.step, "problems": problems}, indent=2), encoding="utf-8")
        return RunError(
            f"the {what} is {value} at step {self.step}; the batch is in {path}; "
            "try a lower learning_rate, or float32"
        )

"""The sums behind metrics.jsonl, kept through a checkpoint to the last bit, and where the time went."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from partway.buffer import Verdict
from partway.models.targets import Targets
from partway.runs import SelfSample

SPANS = ("exploring", "executing", "learning", "evaluating", "saving")


@dataclass
class Ledger:
    """What happened since the last line of metrics.jsonl, in one process or, added up, in all."""

    loss: float = 0.0
    problems: int = 0
    targets: int = 0
    tokens: int = 0
    drawn: int = 0
    guided: int = 0
    clipped: int = 0
    completion_tokens: int = 0
    drafted_tokens: int = 0
    refused: int = 0  # would have been kept, but ran differently a second time
    served: int = 0  # by servers, with weights of a known step
    late: int = 0  # steps between those weights and the samples' consideration, added up
    verdicts: Counter[str] = field(default_factory=Counter)

    def add_sample(
        self,
        sample: SelfSample,
        tokens: int,
        drafted: int = 0,
        *,
        executed: bool = False,
        served: bool = False,
    ) -> None:
        """Account for a self-sample of `tokens` tokens, of which drafts had told `drafted`.

        It is `executed` if at least one of its steps ran, `served` if another machine drew it.
        """
        self.drawn += sample.count
        self.guided += sample.count if sample.prefix else 0
        self.clipped += 0 if sample.finished else sample.count
        self.completion_tokens += sample.count * tokens
        self.drafted_tokens += sample.count * drafted
        self.refused += sample.count if executed and sample.verdict is Verdict.NOT_EXECUTABLE else 0
        self.verdicts[sample.verdict] += sample.count
        if served and sample.late is not None:
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

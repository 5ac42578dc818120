"""The account of a run: what it has found and added up, which its lines, samples and checkpoints are made of.

A process counts what it does itself; whatever is written is the sum over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from partway.runs import Run
from partway.runs.checkpoints import RunProgress
from partway.training.distributed import gathered
from partway.training.ledger import Ledger
from partway.training.shared_buffers import Buffers


@dataclass
class Account:
    """The buffers, the sums since the last line, and those over all lines so far."""

    run: Run
    buffers: Buffers
    ledger: Ledger = field(default_factory=Ledger)
    total_loss: float = 0.0
    num_tokens: int = 0

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
        return {**total.metrics(steps), "num_tokens": self.num_tokens, **self.buffers.metrics()}

    def last_line(self, accelerator: Accelerator, steps: int) -> dict[str, float]:
        """The mean loss of all `steps` steps, and that this was the end."""
        rest = Ledger.total(gathered(accelerator, self.ledger))
        return {"train_loss": (self.total_loss + rest.loss) / steps, "finished": True}

    def sums(self, accelerator: Accelerator) -> dict[str, Any]:
        """What a checkpoint says of the sums and of how far the run's files go."""
        self.share(accelerator)
        total = Ledger.total(gathered(accelerator, self.ledger))
        # A resumed run begins from this total. So must the one that goes on, or its sums would be added in
        # another order and differ in the last bit.
        self.ledger = total if accelerator.is_main_process else Ledger()
        return {
            "total_loss": self.total_loss,
            "num_tokens": self.num_tokens,
            "ledger": total.to_json(),
            "files": self.run.positions() if accelerator.is_main_process else {},
        }

    def go_back_to(self, progress: RunProgress, directory: Path, *, is_main: bool) -> None:
        """Take up sums and buffers where a checkpoint left them."""
        self.total_loss, self.num_tokens = progress.total_loss, progress.num_tokens
        if is_main:  # the saved sums are those of all processes: the others begin from nothing
            self.ledger = Ledger.from_json(progress.ledger)
        self.buffers.read(directory)

"""A loss or a gradient that is no number: what it was computed from, and an error that says where to look."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from partway.errors import RunError
from partway.models.targets import Targets
from partway.models.text import Codec
from partway.runs import Run


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

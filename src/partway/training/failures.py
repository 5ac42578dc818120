"""A loss or a gradient that is no number: what it was computed from is written down, and training stops."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

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

    def stop(self, what: str, value: float, run: Run, codec: Codec) -> NoReturn:
        """Write the batch to a file in the run and raise an error that says so."""
        path = run.nan_batch_file(self.step)
        problems = {
            key: {
                "loss": str(self.losses[key]),
                "prompt": codec.decode(found.prompt),
                "targets": [codec.decode(target) for target in found.sequences],
            }
            for key, found in self.targets.items()
        }
        path.write_text(json.dumps({"step": self.step, "problems": problems}, indent=2), encoding="utf-8")
        raise RunError(
            f"the {what} is {value} at step {self.step}; the batch is in {path}; "
            "try a lower learning_rate, or float32"
        )

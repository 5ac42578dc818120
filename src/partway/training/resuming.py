"""What a resumed run takes from its settings, where a checkpoint would bring back those of an earlier life.

Optimiser and schedule are saved with the learning rate and the weight decay they had. When these are changed
in between, the new ones hold from the resumed step on, on the schedule they have: as if they had held from
the first step. Nothing changes for a run whose settings are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch.optim.lr_scheduler import LambdaLR

GROUP_SETTINGS = ("initial_lr", "weight_decay", "betas", "eps")
LENGTHS = ("max_steps", "num_train_epochs")


def group_settings(optimizer: Any) -> list[dict[str, Any]]:
    """What the settings say about each group of weights, before a checkpoint is loaded."""
    return [{key: group[key] for key in GROUP_SETTINGS if key in group} for group in optimizer.param_groups]


def apply_settings(optimizer: Any, scheduler: Any, settings: Sequence[Mapping[str, Any]]) -> None:
    """Put `settings` in place of those that came with a checkpoint; the learning rate follows."""
    for group, wanted in zip(optimizer.param_groups, settings, strict=True):
        group.update(wanted)
    if isinstance(scheduler, LambdaLR):  # the schedules that follow a plan; others follow the losses
        scheduler.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        for group, factor in zip(optimizer.param_groups, scheduler.lr_lambdas, strict=True):
            group["lr"] = group["initial_lr"] * factor(scheduler.last_epoch)


def is_longer(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether `new` settings ask for more of the same run than `old` ones did."""
    pairs = [(old.get(key), new.get(key)) for key in LENGTHS]
    return any(_is_more(before, now) for before, now in pairs) and not any(
        before != now and not _is_more(before, now) for before, now in pairs
    )


def _is_more(before: Any, now: Any) -> bool:
    return all(isinstance(n, (int, float)) and n > 0 for n in (before, now)) and now > before

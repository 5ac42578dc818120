"""Mixes the weights of two models (WiSE-FT, Wortsman et al. 2022)."""

from __future__ import annotations

import torch

from partway.errors import ModelError
from partway.models.loading import LanguageModel


def mixed(first: LanguageModel, tuned: LanguageModel, share: float) -> LanguageModel:
    """The tuned model, changed in place: `share` of its own weights and the rest of the first one's."""
    weights, others = (dict(one.model.named_parameters()) for one in (tuned, first))  # tied ones once
    if {name: value.shape for name, value in weights.items()} != {n: v.shape for n, v in others.items()}:
        raise ModelError(
            "two models with different weights cannot be mixed; the second must be tuned from the first"
        )
    with torch.no_grad():
        for name, value in weights.items():
            value.copy_(torch.lerp(others[name].to(value), value, share))
    return tuned

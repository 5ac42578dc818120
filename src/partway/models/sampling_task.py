"""What a sampler is asked: prompts to complete as tokens, how, and what ends a completion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from partway.models.guessing import Guesser
from partway.models.settings import SamplingSettings
from partway.models.stopping import AnswerWatch


@dataclass(frozen=True)
class SamplingTask:
    """Of each prompt the streams of random numbers of its samples, and the longest completion.

    At most `budget` rows are held at a time, of at most `prompt_budget` prompts (None: of any). A completion
    ends with a token that `is_end`, or where `watch` sees the end of a solution. `guesser` tells what
    probably follows, to samplers that can use it. Prompts of at most `longest_packed` tokens may be read in
    one row, each attending to itself.
    """

    prompts: Sequence[Sequence[int]]
    streams: Sequence[NDArray[np.uint64]]
    limits: Sequence[int]
    settings: SamplingSettings
    budget: int
    is_end: NDArray[np.bool_]
    watch: AnswerWatch | None = None
    guesser: Guesser | None = None
    longest_packed: int = 0
    prompt_budget: int | None = None


def token_bytes(model: PreTrainedModel) -> int:
    """Keys and values of a token, as if every layer kept them."""
    config = model.config.get_text_config(decoder=True)
    all_heads = getattr(config, "num_attention_heads", None) or 1
    heads = getattr(config, "num_key_value_heads", None) or all_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // all_heads
    return int(2 * config.num_hidden_layers * heads * head_size * model.dtype.itemsize)

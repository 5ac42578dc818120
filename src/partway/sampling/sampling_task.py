"""A task for a sampler: which prompts to complete, how, and what ends a completion.

The language recognises the end of a solution. If it misses one, the row goes on to its end-of-text token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from partway.language import Language
from partway.models.engine import SamplingSettings
from partway.models.text import Codec

TOKEN = np.int32


class AnswerWatch:
    """Recognises finished rows by their tokens, and decodes each distinct line once."""

    def __init__(self, codec: Codec, vocabulary_size: int, language: Language) -> None:
        self.codec = codec
        self.language = language
        texts = codec.token_texts(vocabulary_size)
        self.newlines = frozenset(token for token, text in enumerate(texts) if "\n" in text)
        self.has_newline = np.array(["\n" in text for text in texts])
        self._line = lru_cache(maxsize=1 << 16)(codec.decode)

    def closes(self, tokens: Sequence[int]) -> bool:
        """Whether `tokens`, the last of which has a newline, end the solution."""
        # Lines are few and known, whole texts are many: each line is decoded once.
        text = "".join(map(self._line, self._lines(tokens)))
        return self.language.end(text) is not None or self.codec.end_of_answer(text) is not None

    def _lines(self, tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The tokens up to each newline, and those that follow the last."""
        start = 0
        for place, token in enumerate(tokens, 1):
            if token in self.newlines:
                yield tuple(tokens[start:place])
                start = place
        if start < len(tokens):
            yield tuple(tokens[start:])


@dataclass(frozen=True)
class SamplingTask:
    """Of each prompt the streams of random numbers of its samples, and the longest completion.

    At most `budget` rows are held at a time, of at most `prompt_budget` prompts (None: of any). A completion
    ends with a token that `is_end`, or where `watch` sees the end of a solution. Prompts of at most
    `longest_packed` tokens may be read in one row, each attending to itself.
    """

    prompts: Sequence[Sequence[int]]
    streams: Sequence[NDArray[np.uint64]]
    limits: Sequence[int]
    settings: SamplingSettings
    budget: int
    is_end: NDArray[np.bool_]
    watch: AnswerWatch | None = None
    longest_packed: int = 0
    prompt_budget: int | None = None
    on_drawn: Callable[[int], None] | None = None  # told how many samples have ended


def token_bytes(model: PreTrainedModel) -> int:
    """Keys and values of a token, as if every layer kept them."""
    config = model.config.get_text_config(decoder=True)
    all_heads = getattr(config, "num_attention_heads", None) or 1
    heads = getattr(config, "num_key_value_heads", None) or all_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // all_heads
    return int(2 * config.num_hidden_layers * heads * head_size * model.dtype.itemsize)

"""Watching rows of tokens for the end of a solution, which the language knows.

An end that is not recognised only lets a row go on to its end-of-text token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from partway.execution import Programs
from partway.models.text import Codec

TOKEN = np.int32


class AnswerWatch:
    """Tells finished rows from their tokens, decoding each distinct line once."""

    def __init__(self, codec: Codec, vocabulary_size: int, programs: Programs) -> None:
        self.codec = codec
        self.programs = programs
        texts = codec.token_texts(vocabulary_size)
        self.newlines = frozenset(token for token, text in enumerate(texts) if "\n" in text)
        self.line_ends = frozenset(token for token in self.newlines if texts[token].endswith("\n"))
        self.has_newline = np.array(["\n" in text for text in texts])
        self._may_end = lru_cache(maxsize=1 << 16)(self._line_may_end)
        self._ends = lru_cache(maxsize=1 << 14)(self._text_ends)

    def closes(self, tokens: Sequence[int]) -> bool:
        """Whether `tokens`, the last of which has a newline, end the solution."""
        # Lines are few and known, whole texts are many: those are looked at only if the line may be the end.
        return self._may_end(tuple(tokens[self._line_start(tokens) :])) and self._ends(tuple(tokens))

    def _line_may_end(self, line: Sequence[int]) -> bool:
        text = self.codec.decode(line)
        return any(map(self.programs.may_end, text.split("\n")[:-1])) or (
            self.codec.end_of_answer(text) is not None
        )

    def _text_ends(self, tokens: Sequence[int]) -> bool:
        text = self.codec.decode(tokens)
        return self.programs.end(text) is not None or self.codec.end_of_answer(text) is not None

    def _line_start(self, tokens: Sequence[int]) -> int:
        """Where the line starts that the last token closes.

        A token with text behind its newline belongs to both lines.
        """
        for place in range(len(tokens) - 2, -1, -1):
            if (token := tokens[place]) in self.newlines:
                return place + (token in self.line_ends)
        return 0

"""Watching rows of tokens for the end of a solution, which the language knows.

An end that is not recognised only lets a row go on to its end-of-text token.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from partway.execution import Programs
from partway.models.text import Codec

TOKEN = np.int32


class AnswerWatch:
    """Tells finished rows from their tokens, decoding each distinct line once."""

    def __init__(self, codec: Codec, vocabulary_size: int, programs: Programs) -> None:
        self.codec = codec
        self.programs = programs
        texts = codec.token_texts(vocabulary_size)
        self.has_newline = np.array(["\n" in text for text in texts])
        self.ends_line = np.array([text.endswith("\n") for text in texts])
        self._may_end = lru_cache(maxsize=1 << 16)(self._line_may_end)

    def closes(self, tokens: NDArray[np.int32], line_start: int) -> bool:
        """Whether `tokens` end the solution; the last one closes the line that starts at `line_start`."""
        return (
            self._may_end(tokens[line_start:].tobytes())
            and self.programs.end(self.codec.decode(tokens.tolist())) is not None
        )

    def _line_may_end(self, line: bytes) -> bool:
        text = self.codec.decode(np.frombuffer(line, TOKEN).tolist())
        return any(map(self.programs.may_end, text.split("\n")[:-1]))

    def line_starts(
        self, tokens_R: NDArray[np.int64], depths_R: NDArray[np.int64], starts_R: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Where each row's current line starts once the token at its depth is drawn.

        A token with text behind its newline belongs to both lines.
        """
        behind_R = np.where(self.ends_line[tokens_R], depths_R + 1, depths_R)
        return np.where(self.has_newline[tokens_R], behind_R, starts_R)

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
        self._ends = lru_cache(maxsize=1 << 14)(self._text_ends)

    def closes(self, tokens: NDArray[np.int32]) -> bool:
        """Whether `tokens`, the last of which has a newline, end the solution."""
        line = tokens[self._line_start(tokens[:-1]) :]
        return self._may_end(line.tobytes()) and self._ends(tokens.tobytes())

    def _line_may_end(self, line: bytes) -> bool:
        text = self.codec.decode(np.frombuffer(line, TOKEN).tolist())
        return any(map(self.programs.may_end, text.split("\n")[:-1])) or (
            self.codec.end_of_answer(text) is not None
        )

    def _text_ends(self, tokens: bytes) -> bool:
        text = self.codec.decode(np.frombuffer(tokens, TOKEN).tolist())
        return self.programs.end(text) is not None or self.codec.end_of_answer(text) is not None

    def _line_start(self, tokens: NDArray[np.int32]) -> int:
        """Where the line starts that `tokens` lead up to.

        A token with text behind its newline belongs to both lines.
        """
        newlines = np.flatnonzero(self.has_newline[tokens])
        return int(newlines[-1] + self.ends_line[tokens[newlines[-1]]]) if len(newlines) else 0

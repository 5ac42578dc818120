"""When a sampled solution is finished: the line that assigns the answer variable has been closed.

What the check does not recognise (`a, answer = 1, 2`, say) only goes on to its end-of-text token, so it
may miss a finished solution but never cuts an unfinished one.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from partway.models.text import Codec
from partway.solution import ANSWER_VARIABLE

TOKEN = np.int32


def closes_answer(text: str, variable: str = ANSWER_VARIABLE) -> bool:
    """Whether a whole line of `text` is a step that assigns `variable`.

    >>> closes_answer("n0 = 1\\nanswer = n0 * 2\\n"), closes_answer("answer = n0 * 2")
    (True, False)
    >>> closes_answer("answer = max(\\n"), closes_answer("if n0:\\n    answer = 1\\n")
    (False, False)
    """
    before = ""
    for line in text.split("\n")[:-1]:
        if _assigns(line, variable) and _is_whole(before) and _is_whole(line):
            return True
        before += line
    return False


def _assigns(line: str, variable: str) -> bool:
    return re.match(rf"{re.escape(variable)}\s*(?:[-+*/%]|\*\*|//)?=(?!=)", line) is not None


def _is_whole(text: str) -> bool:
    """Whether no bracket, string or joined line is left open, as far as counting can tell."""
    brackets = sum(text.count(c) for c in "([{") - sum(text.count(c) for c in ")]}")
    return brackets == 0 and '"""' not in text and "'''" not in text and not text.endswith("\\")


class AnswerWatch:
    """Tells finished rows from their tokens, decoding each distinct line once."""

    def __init__(self, codec: Codec, vocabulary_size: int, variable: str = ANSWER_VARIABLE) -> None:
        self.codec = codec
        self.variable = variable
        texts = codec.token_texts(vocabulary_size)
        self.has_newline = np.array(["\n" in text for text in texts])
        self.ends_line = np.array([text.endswith("\n") for text in texts])
        self._may_close = lru_cache(maxsize=1 << 16)(self._line_may_close)

    def closes(self, tokens: NDArray[np.int32], line_start: int) -> bool:
        """Whether `tokens` end the solution; the last one closes the line that starts at `line_start`."""
        return self._may_close(tokens[line_start:].tobytes()) and closes_answer(
            self.codec.decode(tokens.tolist()), self.variable
        )

    def _line_may_close(self, line: bytes) -> bool:
        text = self.codec.decode(np.frombuffer(line, TOKEN).tolist())
        return any(self.variable in part for part in text.split("\n")[:-1])

    def line_starts(
        self, tokens_R: NDArray[np.int64], depths_R: NDArray[np.int64], starts_R: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Where each row's current line starts once the token at its depth is drawn.

        A token with text behind its newline belongs to both lines.
        """
        behind_R = np.where(self.ends_line[tokens_R], depths_R + 1, depths_R)
        return np.where(self.has_newline[tokens_R], behind_R, starts_R)

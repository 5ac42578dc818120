"""What a server answers to a request for completions, believed only after it was checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partway.models.servers.calls import Trouble
from partway.parsing import MAX_CHARACTERS


@dataclass(frozen=True, slots=True)
class Written:
    """One completion as the server gave it; `finished` unless it was cut off by length.

    `tokens` and their `log_probs` are there if the server says them.
    """

    text: str
    finished: bool
    tokens: tuple[int, ...] | None = None
    log_probs: tuple[float, ...] | None = None


def completions(said: Any, asked: int, longest: int) -> list[Written]:
    """Between one and `asked` completions of at most `longest` tokens; a `Trouble` for anything else."""
    try:
        choices = said["choices"]
        read = [_written(choice, longest) for choice in choices[: asked + 1]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Trouble(f"expected choices with texts ({type(error).__name__}: {str(error)[:80]})") from None
    if not 1 <= len(read) <= asked:
        raise Trouble(f"{len(choices)} completions came and {asked} were asked for")
    return read


def _written(choice: Mapping[str, Any], longest: int) -> Written:
    text = choice["text"]
    if not isinstance(text, str):
        raise TypeError("a completion's text is no text")
    is_whole = choice.get("finish_reason") != "length" and len(text) <= MAX_CHARACTERS
    shown = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode()
    tokens = _tokens(choice.get("token_ids"), longest)
    return Written(shown, is_whole, tokens, _log_probs(choice.get("logprobs"), tokens))


def _tokens(said: Any, longest: int) -> tuple[int, ...] | None:
    if not isinstance(said, Sequence) or isinstance(said, str):
        return None
    if len(said) > longest + 1:
        raise ValueError(f"{len(said)} tokens came and {longest} were asked for")
    if not all(isinstance(token, int) and 0 <= token < 1 << 31 for token in said):
        raise ValueError("tokens are no numbers of tokens")
    return tuple(said)


def _log_probs(said: Any, tokens: tuple[int, ...] | None) -> tuple[float, ...] | None:
    """The log-prob of each token, if there is a usable one for each."""
    values = said.get("token_logprobs") if isinstance(said, Mapping) else None
    if tokens is None or not isinstance(values, Sequence) or len(values) != len(tokens):
        return None
    if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
        return None
    return tuple(map(float, values))

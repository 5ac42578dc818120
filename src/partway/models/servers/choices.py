"""What a server answers to a request for completions, believed only after it was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from partway.models.completions_client import Choice, read_choice
from partway.models.servers.calls import Trouble

LEAST_LOG_PROB, MOST_LOG_PROB = -1e5, 1e-3  # vLLM says -9999 for nothing; a rounded 0 may be above it


def completions(said: Any, asked: int, longest: int, vocabulary: int) -> list[Choice]:
    """Between one and `asked` completions of at most `longest` tokens; a `Trouble` for anything else.

    `vocabulary` is how many tokens the model has: a number beyond them would be lost in the text.
    """
    try:
        choices = said["choices"]
        read = [_with_tokens(choice, longest, vocabulary) for choice in choices[: asked + 1]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Trouble(f"expected choices with texts ({type(error).__name__}: {str(error)[:80]})") from None
    if not 1 <= len(read) <= asked:
        raise Trouble(f"{len(choices)} completions came and {asked} were asked for")
    return read


def _with_tokens(choice: Mapping[str, Any], longest: int, vocabulary: int) -> Choice:
    read = read_choice(choice)
    tokens = _tokens(choice.get("token_ids"), longest, vocabulary)
    tokens = None if read.text and not tokens else tokens  # it has a text, so these are not all
    return replace(read, tokens=tokens, log_probs=_log_probs(choice.get("logprobs"), tokens))


def _tokens(said: Any, longest: int, vocabulary: int) -> tuple[int, ...] | None:
    if not isinstance(said, list):
        return None
    if len(said) > longest + 1:
        raise ValueError(f"{len(said)} tokens came and {longest} were asked for")
    if not all(type(token) is int and 0 <= token < vocabulary for token in said):
        raise ValueError(f"tokens are no numbers of the model's {vocabulary} tokens")
    return tuple(said)


def _log_probs(said: Any, tokens: tuple[int, ...] | None) -> tuple[float, ...] | None:
    """The log-prob of each token, if there is a usable one for each."""
    values = said.get("token_logprobs") if isinstance(said, Mapping) else None
    if tokens is None or not isinstance(values, list) or len(values) != len(tokens):
        return None
    if not all(type(value) in (int, float) and LEAST_LOG_PROB <= value <= MOST_LOG_PROB for value in values):
        return None
    return tuple(map(float, values))

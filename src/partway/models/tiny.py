"""The built-in tiny model, made for given problems: its tokenizer knows their words and those of programs.

`tinymodel`, a package of its own, makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from transformers import PreTrainedTokenizerBase

import tinymodel
from partway.errors import ConfigError
from partway.models.loading import LanguageModel, no_progress_bar
from partway.models.prompts import AS_TRAINED, Asking
from partway.models.text import PLAIN
from partway.problem import Problem

# What `config_overrides` may change, by the names that a Hugging Face config has for them.
SIZES = {
    "hidden_size": "hidden_size",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "max_position_embeddings": "context_length",
    "vocab_size": "vocabulary_size",
}
NAMES = ["answer", *(f"{letter}{number}" for letter in "nt" for number in range(20))]
SYMBOLS = [*"0123456789+-*/%()=.,#", "**", "//"]


def build_tiny_model(
    problems: Iterable[Problem],
    *,
    seed: int = 0,
    vocabulary_size: int = 4096,
    directory: str | Path | None = None,
    asking: Asking | None = None,
    **sizes: int,
) -> LanguageModel:
    """A randomly initialised model for `problems`, saved in `directory` if one is given.

    `sizes` are those of `tinymodel.build`, by whose defaults it has a million weights.
    """
    tokenizer = train_tokenizer(problems, vocabulary_size, asking or AS_TRAINED)
    model = tinymodel.build(tokenizer, seed=seed, **sizes)
    if directory is not None:
        with no_progress_bar():
            model.save_pretrained(directory)
            tokenizer.save_pretrained(directory)
    return LanguageModel.of(model, tokenizer, asking)


def train_tokenizer(
    problems: Iterable[Problem], vocabulary_size: int = 4096, asking: Asking = AS_TRAINED
) -> PreTrainedTokenizerBase:
    """A tokenizer that knows the most frequent words of `problems` as one token each, and every byte."""
    return tinymodel.train_tokenizer(_texts(problems, asking), NAMES + SYMBOLS, vocabulary_size)


def _texts(problems: Iterable[Problem], asking: Asking) -> Iterator[str]:
    for problem in problems:
        yield PLAIN.text(asking.language.question(problem))
        if problem.reference is not None:
            yield f"{problem.reference.text}\n"


def sizes_of(overrides: str) -> dict[str, int]:
    """The sizes that `hidden_size=192,num_hidden_layers=6` asks for, as arguments of `build_tiny_model`."""
    sizes = {}
    for part in overrides.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        if name not in SIZES or not number.isdecimal() or not 0 < len(number) < 8 or int(number) == 0:
            raise ConfigError(
                f"config_overrides has {part.strip()!r:.60}, expected name=number with a name among "
                f"{', '.join(SIZES)}"
            )
        sizes[SIZES[name]] = int(number)
    width, heads = sizes.get("hidden_size", 128), sizes.get("heads", 4)
    # Rotary positions turn pairs of features, so each head needs an even number of them.
    if width % (2 * heads):
        raise ConfigError(
            f"config_overrides asks for hidden_size {width} and {heads} heads, expected a multiple of twice "
            "the heads"
        )
    return sizes

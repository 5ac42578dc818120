"""The built-in tiny model: a small Llama with a tokenizer made from the problems it is to solve.

Words of the problems, single digits, names such as `n0`, operators and the newline are one token each;
everything else is spelled in bytes, so nothing is out of vocabulary. Saved, it is an ordinary
Hugging Face directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from partway.errors import ConfigError
from partway.models.loading import LanguageModel, no_progress_bar
from partway.models.prompts import AS_TRAINED, PLAIN, Asking
from partway.problem import Problem

PAD, END = "<|pad|>", "<|endoftext|>"
# A newline, a name such as n0, a word, a digit or a sign, each with the space before it.
PIECES = r"\n| ?[A-Za-z]\d+(?![A-Za-z\d])| ?[A-Za-z]+| ?\d| ?(?:\*\*|//|[^\sA-Za-z\d])|\s"
MAX_WORDS = 1 << 20
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
    hidden_size: int = 128,
    layers: int = 4,
    heads: int = 4,
    context_length: int = 512,
    vocabulary_size: int = 4096,
    directory: str | Path | None = None,
    asking: Asking | None = None,
) -> LanguageModel:
    """A randomly initialised model for `problems`, saved in `directory` if one is given."""
    read = (asking or AS_TRAINED).language.question
    tokenizer = train_tokenizer([replace(one, question=read(one)) for one in problems], vocabulary_size)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        intermediate_size=3 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=context_length,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config).eval()
    if directory is not None:
        with no_progress_bar():
            model.save_pretrained(directory)
            tokenizer.save_pretrained(directory)
    return LanguageModel.of(model, tokenizer, asking)


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


def train_tokenizer(problems: Iterable[Problem], vocabulary_size: int = 4096) -> PreTrainedTokenizerBase:
    """A tokenizer that knows the most frequent words of `problems` as one token each, and every byte."""
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    fixed = dict.fromkeys([PAD, END, *sorted(pre_tokenizers.ByteLevel.alphabet()), *_fixed_words()])
    words = [word for word in _words_by_frequency(problems, split) if word not in fixed]
    vocabulary = [*fixed, *words[: max(vocabulary_size - len(fixed), 0)]]
    tokens = {token: number for number, token in enumerate(vocabulary)}
    # Without merges but with ignore_merges, BPE looks a whole word up first and spells the rest in bytes.
    tokenizer = Tokenizer(models.BPE(tokens, [], ignore_merges=True))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)


def _fixed_words() -> list[str]:
    words = NAMES + SYMBOLS
    return ["\u010a", *words, *(f"\u0120{word}" for word in words)]  # byte-level newline and space


def _words_by_frequency(problems: Iterable[Problem], split: pre_tokenizers.PreTokenizer) -> list[str]:
    counter = Tokenizer(models.WordLevel({}, unk_token=PAD))
    counter.pre_tokenizer = split
    trainer = trainers.WordLevelTrainer(vocab_size=MAX_WORDS, show_progress=False)
    counter.train_from_iterator(_texts(problems), trainer)
    ranks: dict[str, int] = counter.get_vocab()
    return sorted(ranks, key=lambda word: ranks[word])


def _texts(problems: Iterable[Problem]) -> Iterator[str]:
    for problem in problems:
        yield PLAIN.text(problem.question)
        if problem.reference is not None:
            yield f"{problem.reference.text}\n"

"""A tiny language model made for some texts: a small Llama, and a tokenizer that knows their words.

The most frequent words are one token each; everything else is spelled in bytes, so nothing is out of
vocabulary. Saved, it is an ordinary Hugging Face directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

__all__ = ["build", "train_tokenizer"]

PAD, END = "<|pad|>", "<|endoftext|>"
# A newline, a name such as n0, a word, a digit or a sign, each with the space before it.
PIECES = r"\n| ?[A-Za-z]\d+(?![A-Za-z\d])| ?[A-Za-z]+| ?\d| ?(?:\*\*|//|[^\sA-Za-z\d])|\s"
MAX_WORDS = 1 << 20


def build(
    tokenizer: PreTrainedTokenizerFast,
    *,
    seed: int = 0,
    hidden_size: int = 128,
    layers: int = 4,
    heads: int = 4,
    context_length: int = 512,
) -> LlamaForCausalLM:
    """A randomly initialised model for the tokens of a tokenizer; by default of about a million weights."""
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
        return LlamaForCausalLM(config).eval()


def train_tokenizer(
    texts: Iterable[str], known: Sequence[str] = (), vocabulary_size: int = 4096
) -> PreTrainedTokenizerFast:
    """A tokenizer that has the `known` words, the most frequent ones of `texts` and every byte."""
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    fixed = dict.fromkeys([PAD, END, *sorted(pre_tokenizers.ByteLevel.alphabet()), *_with_space(known)])
    words = [word for word in _words_by_frequency(texts, split) if word not in fixed]
    vocabulary = [*fixed, *words[: max(vocabulary_size - len(fixed), 0)]]
    tokens = {token: number for number, token in enumerate(vocabulary)}
    # Without merges but with ignore_merges, BPE looks a whole word up first and spells the rest in bytes.
    tokenizer = Tokenizer(models.BPE(tokens, [], ignore_merges=True))
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)


def _with_space(words: Sequence[str]) -> list[str]:
    return ["\u010a", *words, *(f"\u0120{word}" for word in words)]  # byte-level newline and space


def _words_by_frequency(texts: Iterable[str], split: pre_tokenizers.PreTokenizer) -> list[str]:
    counter = Tokenizer(models.WordLevel({}, unk_token=PAD))
    counter.pre_tokenizer = split
    trainer = trainers.WordLevelTrainer(vocab_size=MAX_WORDS, show_progress=False)
    counter.train_from_iterator(texts, trainer)
    ranks: dict[str, int] = counter.get_vocab()
    return sorted(ranks, key=lambda word: ranks[word])

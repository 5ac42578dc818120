"""Models for tests of sampling: the families with random weights, and one small enough to enumerate."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen3Config,
)

from partway.models.loading import LanguageModel
from partway.models.text import Codec
from partway.models.tiny import train_tokenizer
from partway.problem import Problem
from partway.sample import Request, Sample
from partway.solution import EMPTY, Solution

APPLES = Problem(
    "apples", "Anna has 12 apples and buys 3 more. How many?", 15, "n0 = 12\nn1 = 3\nanswer = n0 + n1"
)
CONTEXT = 96
END = 0


class SpelledCodec(Codec):
    """Texts are spelled as numbers of tokens: "5 6 7" is the tokens 5, 6 and 7."""

    def prompt(self, question: str) -> list[int]:
        return [int(token) for token in question.split()]

    def steps(self, solution: Solution) -> list[int]:
        return [int(token) for step in solution.steps for token in step.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))


def spelled(tokens: Sequence[int]) -> str:
    """What stands for these tokens in a question or a step."""
    return " ".join(map(str, tokens))


def request(
    prompt: Sequence[int],
    count: int,
    key: str,
    *,
    prefix: Sequence[int] = (),
    drafts: Sequence[Sequence[int]] = (),
) -> Request:
    """So many completions of a prompt given as tokens; the key names their randomness."""
    kept = tuple(Solution((spelled(tokens),)) for tokens in drafts)
    return Request(
        Problem(key, spelled(prompt), 0), Solution((spelled(prefix),)) if prefix else EMPTY, count, kept
    )


def tokens_of(draw: Sample) -> tuple[int, ...]:
    """The tokens of a completion without the one that ended it."""
    return tuple(int(token) for token in draw.completion.split())


def family(name: str) -> PreTrainedConfig:
    """A config of the family, with attention windows much shorter than the texts where it has any."""
    common = {"hidden_size": 32, "vocab_size": 512, "max_position_embeddings": CONTEXT, "bos_token_id": None}
    common |= {"pad_token_id": None, "eos_token_id": 1}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    grouped = {"num_key_value_heads": 2, "head_dim": 8}
    windows = {"attention_types": [[["global", "local"], 1]], "window_size": 7}
    configs = {
        "gpt2": lambda: GPT2Config(**common, n_layer=2, n_head=4),
        "gpt_neo": lambda: GPTNeoConfig(**common, **windows, num_layers=2, num_heads=4),
        "gpt_neox": lambda: GPTNeoXConfig(**common, **layers),
        "llama": lambda: LlamaConfig(**common, **layers, **grouped),
        "mistral": lambda: MistralConfig(**common, **layers, **grouped, sliding_window=7),
        "qwen3": lambda: Qwen3Config(**common, **layers, **grouped),
    }
    return configs[name]()


def random_model(config: PreTrainedConfig, scale: float = 0.2) -> LanguageModel:
    """A model with weights far from their usual start, so that what it reads makes a difference."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for weights in model.parameters():
                weights.add_(torch.randn_like(weights), alpha=scale)
    return LanguageModel(model, Codec.of(train_tokenizer([APPLES])), CONTEXT)


def spelled_model(config: PreTrainedConfig) -> LanguageModel:
    """A random model that is given and gives numbers of tokens."""
    return LanguageModel(
        random_model(config).model, SpelledCodec(tokenizer=None, eos_id=1, pad_id=1), CONTEXT
    )


def enumerable_model() -> LanguageModel:
    """Four tokens, of which END ends a text."""
    config = LlamaConfig(
        vocab_size=4,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=CONTEXT,
        bos_token_id=None,
        eos_token_id=END,
        tie_word_embeddings=False,
    )
    model = random_model(config, scale=0.12).model
    return LanguageModel(model, SpelledCodec(tokenizer=None, eos_id=END, pad_id=END), CONTEXT)


def plain_log_probs(model: torch.nn.Module, prompt: Sequence[int], completion: Sequence[int]) -> list[float]:
    """The log-probability of every token of the completion, from one forward of the whole text."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *completion]], device=model.device)).logits[0].float().cpu()
    rows = logits[len(prompt) - 1 : -1].log_softmax(-1)
    return rows.gather(1, torch.tensor(completion)[:, None]).flatten().tolist()


def exact_probabilities(
    language_model: LanguageModel, prompt: list[int], length: int, temperature: float
) -> dict[tuple[int, ...], float]:
    """Every completion of at most `length` tokens (END included) with its probability."""
    probabilities = {}
    for size in range(1, length + 1):
        for body in itertools.product(range(1, 4), repeat=size - 1):
            lasts = [END] if size < length else range(4)
            for last in lasts:
                completion = [*body, last]
                with torch.no_grad():
                    ids = torch.tensor([[*prompt, *completion]], device=language_model.model.device)
                    logits = language_model.model(ids).logits[0].cpu().double()
                rows = (logits[len(prompt) - 1 : -1] / temperature).log_softmax(-1)
                chosen = rows.gather(1, torch.tensor(completion)[:, None])
                probabilities[tuple(completion)] = float(chosen.sum().exp())
    return probabilities

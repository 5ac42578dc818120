"""`python -m benchmarks roof`: learning and sampling as shares of what matrix products reach here.

The roof of learning is arithmetic: large float32 products of the model's own shapes. That of sampling is
reading the weights: one product of each weight matrix with as many rows as are decoded at once.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT, print_table

if TYPE_CHECKING:
    from partway.models.loading import LanguageModel


@click.command()
@click.option("--hidden-size", type=COUNT, default=576, show_default=True, help="SmolLM2's by default.")
@click.option("--layers", type=COUNT, default=30, show_default=True, help="Of the model.")
@click.option("--vocabulary", type=click.IntRange(min=512), default=49_152, show_default=True, help="Tokens.")
@click.option("--batch", type=COUNT, default=16, show_default=True, help="Problems per step.")
@click.option("--prompt", type=COUNT, default=100, show_default=True, help="Tokens of a question.")
@click.option("--completion", type=COUNT, default=60, show_default=True, help="Tokens of a solution.")
@click.option("--rounds", type=COUNT, default=3, show_default=True, help="The best of each counts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    hidden_size: int,
    layers: int,
    vocabulary: int,
    batch: int,
    prompt: int,
    completion: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Tokens per second of learning and sampling beside what the machine's matrix products allow.

    A Llama-shaped model with random weights, one sample and one target per problem, no drafts.

    \b
    Examples:
      python -m benchmarks roof
      python -m benchmarks roof --hidden-size 128 --layers 4 --vocabulary 1095 --json
    """
    language_model = random_llama(hidden_size, layers, vocabulary, prompt + completion)
    result = measure(language_model, batch, prompt, completion, rounds)
    click.echo(json.dumps(result)) if as_json else show(result)


def random_llama(hidden_size: int, layers: int, vocabulary: int, context: int) -> LanguageModel:
    """A model of SmolLM2's shape, or as large as one likes."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from partway.models.loading import LanguageModel
    from partway.models.text import Codec
    from partway.models.tiny import train_tokenizer

    heads = max(1, hidden_size // 64)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden_size,
        intermediate_size=hidden_size * 8 // 3,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 3 if heads % 3 == 0 else heads,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
    )
    return LanguageModel(LlamaForCausalLM(config).eval(), Codec.of(train_tokenizer([])), context)


def measure(
    language_model: LanguageModel, batch: int, prompt: int, completion: int, rounds: int
) -> dict[str, Any]:
    """Seconds of a step's learning and sampling, and of the products in them alone."""
    import torch

    weights = [module.weight.detach() for module in language_model.model.modules() if is_linear(module)]
    head = language_model.model.get_output_embeddings().weight.numel()
    inside = sum(weight.numel() for weight in weights) - head
    learned = batch * (prompt + completion - 1)
    learning_work = 6 * (inside * learned + head * batch * completion)  # forward, and twice that backward
    compute = best(lambda: products(weights, 2048), rounds)
    reading = best(lambda: products(weights, batch), rounds)
    seconds = {
        "learning": best(learning_step(language_model, batch, prompt, completion), rounds),
        "sampling": best(sampling_step(language_model, batch, prompt, completion), rounds),
    }
    prefill = 2 * inside * batch * (prompt - 1)
    rate = 2 * 2048 * (inside + head) / compute
    roofs = {"learning": learning_work / rate, "sampling": prefill / rate + completion * reading}
    tokens = {"learning": learned, "sampling": batch * completion}
    return {
        "threads": torch.get_num_threads(),
        "parameters": language_model.model.num_parameters(),
        "gigaflops": round(rate / 1e9, 1),
        "tokens_per_second": {name: round(tokens[name] / seconds[name], 1) for name in tokens},
        "roof_tokens_per_second": {name: round(tokens[name] / roofs[name], 1) for name in tokens},
        "share_of_roof": {name: round(roofs[name] / seconds[name], 3) for name in tokens},
    }


def is_linear(module: Any) -> bool:
    from torch import nn

    return isinstance(module, nn.Linear)


def products(weights: list[Any], rows: int) -> None:
    """Each weight matrix times `rows` rows."""
    import torch

    with torch.no_grad():
        for weight in weights:
            torch.nn.functional.linear(torch.ones(rows, weight.shape[1]), weight)


def learning_step(
    language_model: LanguageModel, batch: int, prompt: int, completion: int
) -> Callable[[], None]:
    """Forward and backward over a target for each problem."""
    import torch

    from partway.learning.scoring import Scorer
    from partway.learning.token_tree import Targets
    from partway.objectives import objective

    rng, size = random.Random(0), language_model.model.config.vocab_size
    scorer = Scorer(language_model.model, language_model.codec.pad_id)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(rng.randrange(2, size) for _ in range(count))

    plan = scorer.plan([Targets.of(tokens(prompt), [tokens(completion)]) for _ in range(batch)])

    def step() -> None:
        for part in scorer.losses(language_model.model, plan, objective("mle")):
            torch.autograd.backward(part.loss)
        language_model.model.zero_grad()

    return step


def sampling_step(
    language_model: LanguageModel, batch: int, prompt: int, completion: int
) -> Callable[[], None]:
    """One sample of each problem, with the sampler that the engine takes, and nothing that ends one early."""
    import numpy as np
    import torch

    from partway.models.engine import SamplingSettings
    from partway.sampling.drawing import streams
    from partway.sampling.frontier import SamplingTask
    from partway.sampling.local_engine import fastest_sampler
    from partway.sampling.samplers import checked_sampler

    rng, size = random.Random(1), language_model.model.config.vocab_size
    prompts = [[rng.randrange(2, size) for _ in range(prompt)] for _ in range(batch)]
    task = SamplingTask(
        prompts,
        [streams(0, str(number), 1) for number in range(batch)],
        [completion] * batch,
        SamplingSettings(max_completion_length=completion),
        budget=batch,
        is_end=np.zeros(size, bool),
    )
    sampler = checked_sampler(language_model.model, fastest_sampler(language_model.model))

    def step() -> None:
        with torch.no_grad():
            list(sampler.complete(language_model.model, task))

    return step


def best(run: Callable[[], None], rounds: int) -> float:
    """The fewest seconds of several rounds, after one that warms up."""
    run()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def show(result: dict[str, Any]) -> None:
    """A row for learning and one for sampling."""
    print_table(
        f"{result['parameters'] / 1e6:.0f}M parameters, {result['threads']} threads, "
        f"{result['gigaflops']} GFLOP/s in large products; tokens per second",
        ["", "measured", "roof", "share"],
        [
            (
                name,
                f"{result['tokens_per_second'][name]:,.0f}",
                f"{result['roof_tokens_per_second'][name]:,.0f}",
                f"{result['share_of_roof'][name]:.0%}",
            )
            for name in ("learning", "sampling")
        ],
    )

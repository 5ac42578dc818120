"""`python -m benchmarks signed`: a policy gradient over 8 samples of a problem, the tree against flat rows.

Samples are the built-in model's own, their weights RLOO's. The tree learns a sample drawn twice once, with
the sum of its weights, and every shared beginning once; flat rows learn each sample behind its prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT, print_table

if TYPE_CHECKING:
    from benchmarks.learning_contenders import Measured
    from partway.learning.token_tree import Targets
    from partway.models.loading import LanguageModel


@click.command()
@click.option("--batch", type=COUNT, default=32, show_default=True, help="Problems per step.")
@click.option("--samples", type=COUNT, default=8, show_default=True, help="Samples of each.")
@click.option("--rows", type=COUNT, default=32, show_default=True, help="Flat rows at a time.")
@click.option("--rounds", type=COUNT, default=3, show_default=True, help="The best of so many counts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(batch: int, samples: int, rows: int, rounds: int, as_json: bool) -> None:
    """Forward and backward of one step with signed weights; the gradients of both ways are compared.

    Timed is float32. There, both gradients are rounded, so the same is learned once more in float64: what is
    left of the difference is the tree's own. Both are norms, relative to that of the flat rows' gradient.

    \b
    Examples:
      python -m benchmarks signed
      python -m benchmarks signed --samples 16 --json
    """
    result = measure(batch, samples, rows, rounds)
    if as_json:
        click.echo(json.dumps(result))
        return
    cells = [[key.replace("_", " "), f"{value:,.4g}"] for key, value in result.items()]
    print_table(f"{batch} problems, {samples} samples of each", ["", "measured"], cells)


def measure(batch: int, samples: int, rows: int, rounds: int) -> dict[str, float]:
    """Times, tokens and how far apart the gradients are."""
    from benchmarks.learning_contenders import race
    from partway.learning.scoring import Scorer
    from partway.models.loading import load_model

    loaded = load_model("tiny-storyproblems")
    step, counts = drawn(loaded, batch, samples)
    loaded.model.train()

    def raced(rounds: int) -> dict[str, Measured]:
        scorer = Scorer(loaded.model, loaded.codec.pad_id)
        contenders = {
            "flat": partial(learn_rows, loaded, step, counts, rows),
            "ours": partial(learn_tree, loaded, step, scorer),
        }
        return race(loaded.model, contenders, rounds)

    found = raced(rounds)
    loaded.model.double()
    exact = raced(1)
    flat, ours = found["flat"], found["ours"]
    return {
        "speedup": round(flat.seconds / ours.seconds, 2),
        "flat_seconds": flat.seconds,
        "ours_seconds": ours.seconds,
        "flat_tokens": flat.tokens,
        "ours_tokens": ours.tokens,
        "distinct_samples": sum(len(problem.targets) for problem in step) / sum(map(sum, counts)),
        "gradient_difference_float64": difference(exact["ours"], exact["flat"]),
        "gradient_difference_float32": difference(ours, flat),
    }


def difference(ours: Measured, flat: Measured) -> float:
    """Of two gradients, relative to the second."""
    return float((ours.gradient - flat.gradient).norm() / flat.gradient.norm())


def drawn(loaded: LanguageModel, batch: int, samples: int) -> tuple[list[Targets], list[list[int]]]:
    """The samples of each problem as targets with RLOO's weights, and how often each was drawn.

    Problems whose samples are all right or all wrong teach nothing and are passed over.
    """
    from partway.arms.policy_gradients import RLOO
    from partway.demo.storyproblems import generate_problems
    from partway.language import PYTHON, trace_all
    from partway.learning.token_tree import Targets
    from partway.models.engine import SamplingSettings
    from partway.sample import Request
    from partway.sampling.local_engine import LocalEngine
    from partway.solution import EMPTY

    problems = generate_problems(20 * batch, seed=7, difficulty="easy")
    requests = [Request(problem, EMPTY, samples) for problem in problems]
    settings = SamplingSettings(temperature=1.0, max_completion_length=120)
    answers = LocalEngine(loaded, language=PYTHON).complete(requests, settings, 0)
    found = [(p, sample) for p, of_problem in zip(problems, answers, strict=True) for sample in of_problem]
    traces = trace_all([sample.text for _, sample in found])
    step, counts = [], []
    for problem in problems:
        own = [(sample, trace) for (p, sample), trace in zip(found, traces, strict=True) if p is problem]
        targets = RLOO().learned(problem, own, PYTHON, loaded.codec)
        if all(target.weight for target in targets):
            step.append(Targets(tuple(loaded.codec.prompt(problem.question)), tuple(targets)))
            counts.append([sample.count for sample, _ in own])
    return step[:batch], counts[:batch]


def learn_tree(loaded: LanguageModel, step: Sequence[Targets], scorer: Any) -> int:
    """With our scorer; returns tokens computed."""
    import torch

    from partway.objectives import objective

    plan = scorer.plan(step)
    for one in scorer.losses(loaded.model, plan, objective("rloo")):
        torch.autograd.backward(one.loss)
    return int(plan.tokens_computed)


def learn_rows(
    loaded: LanguageModel, step: Sequence[Targets], counts: Sequence[Sequence[int]], rows_at_once: int
) -> int:
    """Every sample behind its prompt as a row of its own, padded; returns tokens computed."""
    import torch

    from benchmarks.batching import batches_by_length

    rows = [
        (problem.prompt, target.tokens, target.weight / count)
        for problem, of_problem in zip(step, counts, strict=True)
        for target, count in zip(problem.targets, of_problem, strict=True)
        for _ in range(count)
    ]
    tokens = 0
    for batch in batches_by_length([len(prompt) + len(target) for prompt, target, _ in rows], rows_at_once):
        chosen = [rows[place] for place in batch]
        width = max(len(prompt) + len(target) for prompt, target, _ in chosen)
        ids = torch.full((len(chosen), width), loaded.codec.pad_id)
        mask, weights = torch.zeros_like(ids), torch.zeros(len(chosen), width - 1, dtype=loaded.model.dtype)
        for row, (prompt, target, weight) in enumerate(chosen):
            end = len(prompt) + len(target)
            ids[row, :end], mask[row, :end] = torch.tensor(prompt + target), 1
            weights[row, len(prompt) - 1 : end - 1] = weight
        logits = loaded.model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        log_probs = logits.log_softmax(-1).gather(2, ids[:, 1:, None]).squeeze(2)
        torch.autograd.backward(-(weights * log_probs).sum() / len(step))
        tokens += ids.numel()
    return tokens

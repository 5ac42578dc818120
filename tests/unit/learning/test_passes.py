"""Log-probs of single tokens, and the packing of trees into passes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from scoring_cases import branching

from mathdata.gsm8k import convert_gsm8k
from partway.learning.layouts import Layout, Tree, TreeRows
from partway.learning.passes import ROWS_AT_ONCE, logits_at, token_scores
from partway.learning.token_tree import Targets, grow
from partway.models.tiny import build_tiny_model
from partway.problem import Problem
from partway.solution import Solution


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_token_log_probs_and_their_gradients_are_those_of_a_log_softmax(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    logits = (5 * torch.randn(2 * ROWS_AT_ONCE + 3, 17)).to(dtype).requires_grad_()
    pairs = torch.randperm(len(logits) * 17)[:300]
    rows, tokens = pairs // 17, pairs % 17  # some rows several times, some never
    weights = torch.randn(300)
    found = token_scores(logits.clone(), rows, tokens)  # written over, as what a head gives is
    (gradient,) = torch.autograd.grad((found * weights).sum(), logits)
    expected = logits.float().log_softmax(-1)[rows, tokens]
    (expected_gradient,) = torch.autograd.grad((expected * weights).sum(), logits)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, expected_gradient)


def test_certain_and_impossible_tokens_have_finite_gradients() -> None:
    logits = torch.tensor([[0.0, -2000.0], [0.0, 2000.0]], requires_grad=True)
    found = token_scores(logits, torch.tensor([0, 1]), torch.tensor([1, 1]))
    found.sum().backward()
    assert found.tolist() == [-2000.0, 0.0]
    assert logits.grad is not None
    assert logits.grad.tolist() == [[-1.0, 1.0], [0.0, 0.0]]


def test_a_second_backward_is_an_error_and_no_other_gradient() -> None:
    logits = torch.randn(3, 5, requires_grad=True)
    total = token_scores(logits.clone(), torch.tensor([0, 2]), torch.tensor([1, 4])).sum()
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_logits_stay_as_short_as_autocast_makes_them() -> None:
    language_model = build_tiny_model([Problem("one", "How many?", 1)], seed=0, directory=None)
    AcceleratorState._reset_state()
    model = Accelerator(mixed_precision="bf16", cpu=True).prepare(language_model.model)
    AcceleratorState._reset_state()
    ids = torch.tensor([[1, 2, 3]])
    assert logits_at(model, torch.tensor([2]), input_ids=ids).logits.dtype == torch.bfloat16
    assert model(input_ids=ids).logits.dtype == torch.float32  # afterwards as before


def test_one_row_holds_trees_without_padding() -> None:
    rng = random.Random(0)
    batch = [branching(rng, rng.randrange(5, 60), rng.randrange(1, 6), 20) for _ in range(40)]
    passes = Tree().bundles(batch, 512)
    assert sum(bundle.tokens_computed for bundle in passes) == sum(len(grow(problem)) for problem in batch)
    assert len(passes) <= 1.2 * sum(len(grow(problem)) for problem in batch) / 512 + 1


def test_what_all_prompts_begin_with_is_read_once_for_as_many_trees_as_may_stand_below_it() -> None:
    rng = random.Random(0)
    beginning = tuple(range(1, 41))
    batch = [Targets((*beginning, k + 50), branching(rng, 5, 2, 20).targets) for k in range(12)]
    alone = sum(len(grow(problem)) for problem in batch)
    (together,) = Tree().bundles(batch, 2048)
    assert together.tokens_computed == alone - 11 * len(beginning)
    second = together.trees[1].problem
    left = together.only(frozenset({second}))  # without the tree whose beginning it shared
    assert left is not None
    assert left.tokens_computed == len(grow(batch[second]))
    by_three = Tree(longest=40 + 3 * max(len(grow(problem)) - 40 for problem in batch)).bundles(batch, 2048)
    assert sum(bundle.tokens_computed for bundle in by_three) <= alone - 8 * len(beginning)
    for tree in (tree for bundle in by_three for tree in bundle.trees):
        assert tree.shared in (0, 40)
    short = [Targets((*beginning[:15], k + 50), problem.targets) for k, problem in enumerate(batch)]
    assert Tree().bundles(short, 2048)[0].tokens_computed == sum(len(grow(problem)) for problem in short)


def test_rows_of_one_pass_are_similar_in_length() -> None:
    rng = random.Random(0)
    batch = [branching(rng, rng.randrange(5, 60), rng.randrange(1, 6), 20) for _ in range(40)]
    passes = TreeRows().bundles(batch, 512)
    computed = sum(bundle.tokens_computed for bundle in passes)
    assert computed <= 1.15 * sum(len(grow(problem)) for problem in batch)


def reordered(steps: tuple[str, ...], rng: random.Random) -> tuple[str, ...]:
    """The steps in another order in which every name is assigned before it is read, the answer last."""
    left, done = list(steps), list[str]()
    while left:
        known = {step.split(" = ")[0] for step in done}
        ready = [step for step in left if set(re.findall(r"[a-z_]\w*", step.split(" = ")[1])) <= known]
        ready = [step for step in ready if not step.startswith("answer")] or ready
        done.append(rng.choice(ready) if rng.random() < 0.25 else ready[0])
        left.remove(done[-1])
    return tuple(done)


def buffer_of(problem: Problem, rng: random.Random, solutions: int) -> list[Solution]:
    """The reference, reorderings of it and beginnings of those, none a beginning of another."""
    assert isinstance(problem.reference, Solution)
    kept = [problem.reference]
    for _ in range(200):
        steps = reordered(problem.reference.steps, rng)
        solution = Solution(steps[: rng.randint(2, len(steps))])
        if len(kept) < solutions and not any(known.startswith(solution) for known in kept):
            kept = [known for known in kept if not solution.startswith(known)] + [solution]
    return kept


def real_problems(folder: Path) -> Iterator[Problem]:
    lines = (folder / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines[:300] if line]
    for problem in convert_gsm8k(rows, []).splits["train"]:
        if isinstance(problem.reference, Solution) and len(problem.reference) >= 4:
            yield problem


@pytest.mark.volume
@pytest.mark.parametrize("layout", [Tree(), TreeRows()], ids=lambda layout: layout.name)
def test_on_buffers_of_real_problems_hardly_more_than_the_distinct_tokens_are_computed(
    layout: Layout, real_data: Path
) -> None:
    problems = list(real_problems(real_data))
    codec, rng = build_tiny_model(problems).codec, random.Random(0)
    batch = []
    for problem in problems[:64]:
        kept = buffer_of(problem, rng, rng.choice([1, 2, 4, 8, 16]))
        targets = (tuple(codec.target(s, s.steps[-1].startswith("answer"))) for s in kept)
        batch.append(Targets.of(tuple(codec.prompt(problem.question)), tuple(targets)))
    distinct = sum(len(grow(problem)) for problem in batch)
    computed = sum(bundle.tokens_computed for bundle in layout.bundles(batch, 2048))
    assert len(batch) == 64
    assert computed <= 1.15 * distinct

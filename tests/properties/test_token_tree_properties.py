"""What holds for the tree of any targets, for its mask and for packing any trees."""

from __future__ import annotations

import random

import numpy as np
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scoring_cases import branching
from strategies import examples
from torch.nn.functional import scaled_dot_product_attention

from partway.learning.layouts import Flat, Layout, Tree, TreeRows
from partway.learning.token_tree import Targets, TokenTree, grow, split
from partway.learning.tree_attention import BLOCK, blocks, tree_mask

token = st.integers(0, 2)  # few, so that targets share beginnings
target = st.lists(token, min_size=1, max_size=9).map(tuple)
problems = st.builds(
    Targets.of,
    prompt=st.lists(token, min_size=1, max_size=5).map(tuple),
    sequences=st.lists(target, min_size=1, max_size=10).map(tuple),
)


def beginning(tree: TokenTree, node: int) -> tuple[int, ...]:
    """What the model has read up to a node: the tokens of its ancestors and its own."""
    return tuple(int(tree.tokens[i]) for i in range(node + 1) if node < tree.ends[i])


@examples(60)
@given(problems)
def test_nodes_are_the_distinct_beginnings_that_something_follows(problem: Targets) -> None:
    tree = grow(problem)
    expected = {problem.prompt[: i + 1] for i in range(len(problem.prompt))}
    expected |= {problem.prompt + t[:i] for t in problem.sequences for i in range(1, len(t))}
    found = [beginning(tree, node) for node in range(len(tree))]
    assert len(set(found)) == len(found)
    assert set(found) == expected
    assert [len(tokens) - 1 for tokens in found] == tree.depths.tolist()


@examples(60)
@given(problems)
def test_edges_are_the_distinct_tokens_to_score_and_paths_spell_the_targets(problem: Targets) -> None:
    tree = grow(problem)
    scored = [
        (*beginning(tree, source), wanted)
        for source, wanted in zip(tree.sources.tolist(), tree.wanted.tolist(), strict=True)
    ]
    assert len(set(scored)) == len(scored)
    for tokens, path in zip(problem.sequences, tree.paths, strict=True):
        assert [scored[edge] for edge in path] == [
            problem.prompt + tokens[: i + 1] for i in range(len(tokens))
        ]


@examples(60)
@given(problems, st.integers(1, 30))
def test_a_split_covers_every_target_once_within_the_limit(problem: Targets, limit: int) -> None:
    groups = split(problem, limit)
    assert sorted(k for group in groups for k in group) == list(range(len(problem.targets)))
    for group in groups:
        assert len(grow(problem, group)) <= limit or len({problem.sequences[k] for k in group}) == 1


@examples(60)
@given(
    st.lists(problems, min_size=1, max_size=6),
    st.one_of(
        st.builds(Tree, st.integers(4, 40)),
        st.builds(TreeRows, st.integers(4, 40)),
        st.just(Flat()),
    ),
    st.integers(1, 60),
)
@example(
    [Targets.of((0,), ((0,),)), Targets.of((0,), ((0,), (0, 0, 0, 0))), Targets.of((0,), ((0, 0, 0),))],
    Flat(),
    6,
)
def test_bundles_cover_every_target_once_within_the_budget(
    batch: list[Targets], layout: Layout, tokens_per_pass: int
) -> None:
    bundles = layout.bundles(batch, tokens_per_pass)
    covered = sorted((tree.problem, k) for bundle in bundles for tree in bundle.trees for k in tree.targets)
    assert covered == [(i, k) for i, problem in enumerate(batch) for k in range(len(problem.targets))]
    for bundle in bundles:
        distinct = {batch[tree.problem].sequences[k] for tree in bundle.trees for k in tree.targets}
        assert bundle.tokens_computed <= tokens_per_pass or len(distinct) == len(bundle.trees) == 1
        if isinstance(bundle.layout, Tree | TreeRows):
            assert all(len(tree) <= bundle.layout.longest for tree in bundle.trees)


@examples(60)
@given(st.randoms(use_true_random=True), st.integers(1, 30))
def test_blocks_see_exactly_the_ancestors(rng: random.Random, count: int) -> None:
    batch = [
        branching(rng, rng.randrange(1, 40), rng.randrange(1, 6), rng.randrange(1, 30)) for _ in range(count)
    ]
    ends = torch.from_numpy(ends_of(batch))
    nodes = torch.arange(len(ends))
    expected = (nodes[:, None] >= nodes) & (nodes[:, None] < ends)
    mask = tree_mask(len(ends), *map(torch.from_numpy, blocks(ends.numpy())))
    found = torch.zeros(-len(ends) // BLOCK * -BLOCK, len(ends), dtype=torch.int64)
    pairs = [pair for keys, allowed in mask.stretches for pair in zip(keys, allowed, strict=True)]
    for block, (keys, allowed) in enumerate(pairs):
        found[block * BLOCK : (block + 1) * BLOCK].index_add_(1, keys, allowed[0].long())
    assert torch.equal(found[: len(ends)], expected.long())


def ends_of(batch: list[Targets]) -> NDArray[np.int64]:
    """For every node of the trees in one row the place after its last descendant."""
    (bundle,) = Tree().bundles(batch, 100_000)
    offsets = np.cumsum([0, *map(len, bundle.trees)])
    return np.concatenate([tree.ends + at for tree, at in zip(bundle.trees, offsets, strict=False)])


def one_long_among_short() -> tuple[list[Targets], Targets]:
    rng = random.Random(0)
    return [branching(rng, 60, 4, 12) for _ in range(16)], branching(rng, 700, 4, 40)


def test_one_long_tree_does_not_pad_the_keys_of_all() -> None:
    short, long = one_long_among_short()
    without, together = (
        sum(keys.size for keys in blocks(ends_of(batch))[::2]) for batch in (short, [*short, long])
    )
    nodes = len(ends_of([long]))
    assert together <= without + (nodes // BLOCK + 2) * nodes, "more than what its own blocks see"


def test_attention_is_that_of_the_whole_mask_where_a_row_is_cut() -> None:
    short, long = one_long_among_short()
    ends = torch.from_numpy(ends_of([*short, long]))
    nodes = torch.arange(len(ends))
    whole = (nodes[:, None] >= nodes) & (nodes[:, None] < ends)
    mask = tree_mask(len(ends), *map(torch.from_numpy, blocks(ends.numpy())))
    assert len(mask.stretches) > 1
    torch.manual_seed(0)
    states = torch.randn(3, 1, 2, len(ends), 8, dtype=torch.float64, requires_grad=True)
    outputs, gradients = [], []
    for seen in (mask, whole):
        output = scaled_dot_product_attention(*states, attn_mask=seen)
        outputs.append(output)
        gradients += torch.autograd.grad((output * torch.arange(8)).sum(), states)
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*gradients)

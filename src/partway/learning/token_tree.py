"""The learning tree: all targets of one problem hang on its prompt, and shared beginnings are laid out once.

Nodes are in preorder, so everything below a node is one stretch of the row: node j is an ancestor of node i
(or i itself) exactly when j <= i < ends[j]. That comparison is the whole attention mask, also when several
trees stand in one row. The last token of a target is scored but not read, unless another target continues it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

TargetKind = Literal["reference", "fully_correct", "partially_correct", "sample"]


@dataclass(frozen=True, slots=True)
class Target:
    """Tokens to learn, what they are, and how much they count.

    `sample` is one of this step's samples, right or not, whose weight is its reward. A weight may be negative
    where the objective allows it. `credits` say how much each token counts within the target; empty: 1 each.
    """

    tokens: tuple[int, ...]
    kind: TargetKind = "fully_correct"
    weight: float = 1.0
    credits: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Targets:
    """What is learned of one problem: a prompt and what should follow it; a reference comes first."""

    prompt: tuple[int, ...]
    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        assert self.prompt, "a prompt needs a token, or the first token of its targets has no probability"
        assert self.targets, "a problem without targets has no loss; leave it out of the step"
        assert all(map(len, self.targets)), "a target needs a token; the empty solution is not learned"
        assert all(len(one.credits) in (0, len(one)) for one in self.targets), "a credit for each token"

    @classmethod
    def of(cls, prompt: Iterable[int], sequences: Iterable[Iterable[int]]) -> Targets:
        """A reference, and other fully-correct solutions after it."""
        targets = [
            Target(tuple(tokens), "fully_correct" if number else "reference")
            for number, tokens in enumerate(sequences)
        ]
        return cls(tuple(prompt), tuple(targets))

    @property
    def sequences(self) -> tuple[tuple[int, ...], ...]:
        """The tokens of each target."""
        return tuple(target.tokens for target in self.targets)

    def with_question(self) -> Targets:
        """The same problem with the prompt's tokens (but its first) learned as part of every target."""
        question = self.prompt[1:]
        longer = (
            replace(
                target,
                tokens=question + target.tokens,
                credits=target.credits and (1.0,) * len(question) + target.credits,
            )
            for target in self.targets
        )
        return Targets(self.prompt[:1], tuple(longer))


Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TokenTree:
    """Some targets of one problem as nodes (T, what the model reads) and edges (E, what it is scored on).

    Edge e is the token `wanted[e]` after node `sources[e]`; `paths` are the edges of each target, in order.
    `credits` has those of targets whose tokens do not all count the same. Its first `shared` nodes are not
    laid out again: they are those of the last tree before it in its row that shares none.
    """

    problem: int
    prompt_length: int
    targets: tuple[int, ...]
    tokens: Integers
    depths: Integers
    ends: Integers
    sources: Integers
    wanted: Integers
    paths: tuple[Integers, ...]
    credits: Mapping[int, NDArray[np.float64]]
    shared: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def added(self) -> int:
        """How many nodes it adds to its row."""
        return len(self) - self.shared


def grow(problem: Targets, chosen: Sequence[int] | None = None, *, index: int = 0) -> TokenTree:
    """The tree of the `chosen` targets (default: all) of `problem`, which is number `index` of its batch.

    >>> tree = grow(Targets.of((7, 8), [(1, 2, 3), (1, 4)]))
    >>> tree.tokens.tolist(), tree.depths.tolist(), tree.ends.tolist()
    ([7, 8, 1, 2], [0, 1, 2, 3], [4, 4, 4, 4])
    >>> tree.sources.tolist(), tree.wanted.tolist(), [path.tolist() for path in tree.paths]
    ([1, 2, 3, 2], [1, 2, 3, 4], [[0, 1, 2], [0, 3]])
    """
    chosen = range(len(problem.targets)) if chosen is None else chosen
    sequences = problem.sequences
    start = len(problem.prompt)
    tokens, depths = list(problem.prompt), list(range(start))
    sources, wanted = list[int](), list[int]()
    nodes, edges = [start - 1], list[int]()  # the way to the current target, from the prompt's last token
    paths: dict[tuple[int, ...], Integers] = {}
    # Sorted, targets that share a beginning are neighbours, and nodes come out in preorder by themselves.
    ordered = sorted({sequences[k] for k in chosen})
    for before, target, after in zip([(), *ordered], ordered, [*ordered[1:], ()], strict=False):
        shared = common_length(before, target)
        # The last token is read only if the next target goes on from it; else nothing comes after it.
        read = len(target) - (after[: len(target)] != target)
        # Back to where this target leaves the one before; what follows is new.
        del nodes[1 + shared :], edges[shared:]
        edges += range(len(wanted), len(wanted) + len(target) - shared)
        sources += [nodes[-1], *range(len(tokens), len(tokens) + len(target) - shared - 1)]
        nodes += range(len(tokens), len(tokens) + read - shared)
        wanted += target[shared:]
        tokens += target[shared:read]
        depths += range(start + shared, start + read)
        paths[target] = np.array(edges)
    return TokenTree(
        problem=index,
        prompt_length=start,
        targets=tuple(chosen),
        tokens=np.array(tokens),
        depths=np.array(depths),
        ends=np.array(_ends(depths)),
        sources=np.array(sources),
        wanted=np.array(wanted),
        paths=tuple(paths[sequences[k]] for k in chosen),
        credits={k: np.array(problem.targets[k].credits) for k in chosen if problem.targets[k].credits},
    )


def split(problem: Targets, limit: int) -> list[list[int]]:
    """Targets in groups whose trees have at most `limit` nodes; neighbours in the tree stay together.

    A target that is longer than the limit all by itself is a group of its own.

    >>> split(Targets.of((7, 8), [(1, 2, 3), (5, 6), (1, 2, 4)]), limit=4)
    [[0, 2], [1]]
    """
    groups: list[list[int]] = []
    size, before = 0, tuple[int, ...]()
    sequences = problem.sequences
    for k in sorted(range(len(sequences)), key=sequences.__getitem__):
        target = sequences[k]
        shared = common_length(before, target)
        # The new nodes; if the one before is a beginning of this, its last token is read after all.
        grown = size + len(target) - shared - 1 + (shared == len(before))
        if groups and grown <= limit:
            groups[-1].append(k)
            size = grown
        else:
            groups.append([k])
            size = len(problem.prompt) + len(target) - 1
        before = target
    return groups


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences have in common before they part."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _ends(depths: Sequence[int]) -> list[int]:
    """For every node the position after its last descendant: that of the next node no deeper than itself."""
    ends = [len(depths)] * len(depths)
    open_nodes: list[int] = []
    for node, depth in enumerate(depths):
        # A node that is no deeper ends every open one at its depth or below.
        while open_nodes and depths[open_nodes[-1]] >= depth:
            ends[open_nodes.pop()] = node
        open_nodes.append(node)
    return ends

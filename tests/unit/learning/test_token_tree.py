"""Token trees: what is laid out, who is whose ancestor, how large trees are split."""

from __future__ import annotations

import pytest

from partway.learning.token_tree import Targets, common_length, grow, split

PROMPT = (9, 8)


def paths(problem: Targets) -> list[list[int]]:
    tree = grow(problem)
    return [tree.wanted[path].tolist() for path in tree.paths]


def test_a_single_target_is_a_chain_without_its_last_token() -> None:
    tree = grow(Targets.of(PROMPT, ((1, 2, 3),)))
    assert tree.tokens.tolist() == [9, 8, 1, 2]
    assert tree.depths.tolist() == [0, 1, 2, 3]
    assert tree.sources.tolist() == [1, 2, 3]
    assert tree.wanted.tolist() == [1, 2, 3]


def test_targets_share_their_common_beginning() -> None:
    tree = grow(Targets.of(PROMPT, ((1, 2, 3, 4), (1, 2, 5, 6))))
    assert tree.tokens.tolist() == [9, 8, 1, 2, 3, 5]
    assert tree.depths.tolist() == [0, 1, 2, 3, 4, 4]
    assert tree.ends.tolist() == [6, 6, 6, 6, 5, 6]
    assert len(tree.wanted) == 6


def test_paths_spell_the_targets_in_their_own_order() -> None:
    problem = Targets.of(PROMPT, ((5, 1), (1, 2, 3), (1, 2), (5, 1, 7), (1, 2, 3)))
    assert paths(problem) == [list(target) for target in problem.sequences]


def test_equal_targets_are_laid_out_once() -> None:
    once, twice = grow(Targets.of(PROMPT, ((1, 2),))), grow(Targets.of(PROMPT, ((1, 2), (1, 2))))
    assert twice.tokens.tolist() == once.tokens.tolist()
    assert twice.wanted.tolist() == once.wanted.tolist()
    assert twice.targets == (0, 1)


def test_the_end_of_a_target_is_read_when_another_goes_on_from_it() -> None:
    tree = grow(Targets.of(PROMPT, ((1, 2), (1, 2, 3))))
    assert tree.tokens.tolist() == [9, 8, 1, 2]
    assert [path.tolist() for path in tree.paths] == [[0, 1], [0, 1, 2]]


def test_only_chosen_targets_are_laid_out() -> None:
    tree = grow(Targets.of(PROMPT, ((1, 2), (3, 4), (5, 6))), [2, 0], index=7)
    assert (tree.problem, tree.targets) == (7, (2, 0))
    assert [tree.wanted[path].tolist() for path in tree.paths] == [[5, 6], [1, 2]]


def test_learning_the_question_makes_it_part_of_every_target() -> None:
    problem = Targets.of((9, 8, 7), ((1, 2), (3,))).with_question()
    assert problem == Targets.of((9,), ((8, 7, 1, 2), (8, 7, 3)))
    assert grow(problem).tokens.tolist() == [9, 8, 7, 1]


def test_a_split_keeps_neighbours_together_and_loses_no_target() -> None:
    problem = Targets.of(PROMPT, ((1, 1, 1), (2, 1, 1), (1, 1, 2), (2, 1, 2), (1, 1, 1)))
    assert split(problem, limit=4) == [[0, 4, 2], [1, 3]]


def test_a_target_longer_than_the_limit_is_a_group_of_its_own() -> None:
    problem = Targets.of(PROMPT, ((1,), (2, 2, 2, 2, 2, 2), (3,)))
    assert split(problem, limit=4) == [[0], [1], [2]]


def test_a_limit_that_holds_everything_splits_nothing() -> None:
    problem = Targets.of(PROMPT, ((1, 2), (3, 4), (5, 6)))
    assert split(problem, limit=len(grow(problem))) == [[0, 1, 2]]


def test_common_length_ends_where_sequences_part() -> None:
    assert [common_length((1, 2, 3), other) for other in ((), (2,), (1,), (1, 2, 4), (1, 2, 3, 4))] == [
        0,
        0,
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(("prompt", "targets"), [((), ((1,),)), ((1,), ()), ((1,), ((),))])
def test_what_cannot_be_scored_is_refused(
    prompt: tuple[int, ...], targets: tuple[tuple[int, ...], ...]
) -> None:
    with pytest.raises(AssertionError):
        Targets.of(prompt, targets)

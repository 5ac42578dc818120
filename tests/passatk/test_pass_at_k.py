"""pass@k and maj@k against brute force over all subsets of the samples."""

from collections import Counter
from fractions import Fraction
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passatk import maj_at_k, pass_at_k


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, 10))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@given(counts())
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(n_c_k):
    n, c, k = n_c_k
    samples = [True] * c + [False] * (n - c)
    assert pass_at_k(n, c, k) == pytest.approx(fmean(any(s) for s in combinations(samples, k)), abs=1e-12)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_pass_at_k_never_falls_with_k_and_has_the_right_ends(n_c):
    n, c = n_c
    curve = [pass_at_k(n, c, k) for k in range(1, n + 1)]
    assert curve == sorted(curve)
    assert curve[0] == c / n
    assert curve[-1] == float(c > 0)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 0), (4, 1, 5), (4, 5, 1), (4, -1, 1), (0, 0, 1)])
def test_counts_that_cannot_be_are_refused(n, c, k):
    with pytest.raises(ValueError, match=f"^pass@{k} with {c} of {n} samples right, expected"):
        pass_at_k(n, c, k)


@st.composite
def ballots(draw: st.DrawFn) -> tuple[dict[str, int], frozenset[str], int]:
    votes = draw(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3), max_size=4))
    right = draw(st.frozensets(st.sampled_from("abcde"), max_size=2))
    return votes, right, draw(st.integers(0 if votes else 1, 2))


def majority_by_brute_force(votes, right, silent, k):
    samples = [answer for answer, count in votes.items() for _ in range(count)] + [None] * silent
    return fmean(share_of_right_winners(subset, right) for subset in combinations(samples, k))


def share_of_right_winners(subset, right):
    polled = Counter(answer for answer in subset if answer is not None)
    winners = [answer for answer in polled if polled[answer] == max(polled.values())]
    return float(Fraction(sum(answer in right for answer in winners), len(winners))) if winners else 0.0


@given(ballots())
def test_maj_at_k_is_the_share_of_subsets_whose_most_frequent_answer_is_right(ballot):
    votes, right, silent = ballot
    ks = range(1, silent + sum(votes.values()) + 1)
    expected = [majority_by_brute_force(votes, right, silent, k) for k in ks]
    assert maj_at_k(votes, right, silent, ks) == pytest.approx(expected, abs=1e-12)


@given(ballots())
def test_maj_at_1_is_pass_at_1(ballot):
    votes, right, silent = ballot
    n = silent + sum(votes.values())
    passed = sum(count for answer, count in votes.items() if answer in right)
    assert maj_at_k(votes, right, silent, [1]) == pytest.approx([pass_at_k(n, passed, 1)])

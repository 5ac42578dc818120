"""Intervals: against many resamples, over trainings, at the edges, in pairs."""

import random
from math import log

import numpy as np
import pytest

from passatk import Estimate, differences, estimates, pass_at_k
from passatk.intervals import student


def scores_of(count, seed=0):
    """Scores as pass@5 gives them: many problems at 0, some at 1, some between."""
    rng = random.Random(seed)
    return [pass_at_k(10, min(10, int(rng.expovariate(0.5))), 5) for _ in range(count)]


def drawn_ends(runs, places, draws=40_000):
    """The slow, obvious twin: problems are drawn again and again, for all runs that have them."""
    rng, count = np.random.default_rng(7), 1 + max(map(max, places))
    means = np.zeros(draws)
    for start in range(0, draws, 4_000):
        times = rng.multinomial(count, np.full(count, 1 / count), size=4_000)
        for scores, own in zip(runs, places, strict=True):
            means[start : start + 4_000] += times[:, own] @ scores / times[:, own].sum(axis=1) / len(runs)
    return np.quantile(means, [0.025, 0.975])


@pytest.mark.parametrize("shared", [0, 50, 100])
@pytest.mark.parametrize("count", [1, 2])
def test_the_ends_of_one_or_two_runs_are_those_of_many_resamples(count, shared):
    runs = [scores_of(100, seed) for seed in range(count)]
    places = [range(run * (100 - shared), run * (100 - shared) + 100) for run in range(count)]
    found = estimates([{"x": run} for run in runs], problems=[list(map(str, own)) for own in places])["x"]
    assert (found.low, found.high) == pytest.approx(drawn_ends(runs, places), abs=2e-3)
    assert found.value == pytest.approx(sum(map(sum, runs)) / 100 / count)


def test_few_and_lopsided_scores_have_the_ends_of_their_resamples():
    """Where Cornish and Fisher's terms beyond the normal distribution count."""
    scores = [-log(1 - (place + 0.5) / 20) for place in range(20)]
    found = estimates([{"x": scores}])["x"]
    assert (found.low, found.high) == pytest.approx(
        drawn_ends([scores], [range(20)], draws=200_000), abs=1.5e-3
    )


def test_the_ends_of_few_and_skewed_scores_are_those_of_many_resamples():
    scores = [random.Random(place).expovariate(1) for place in range(20)]
    found = estimates([{"x": scores}])["x"]
    deviation = np.std(scores) / len(scores) ** 0.5
    expected = drawn_ends([scores], [range(20)], draws=400_000)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.03 * deviation)


def test_no_digit_hangs_on_a_draw_or_on_the_order_of_problems():
    scores = scores_of(200)
    found = estimates([{"x": scores}])["x"]
    for seed in range(5):
        again = estimates([{"x": random.Random(seed).sample(scores, 200)}])["x"]
        assert (again.low, again.high) == pytest.approx((found.low, found.high), abs=1e-12)


def test_from_three_runs_up_an_interval_is_over_trainings_with_one_degree_of_freedom_less():
    runs = [[mean - 0.1, mean + 0.1] * 10 for mean in (0.4, 0.5, 0.6)]
    found = estimates([{"x": run} for run in runs])["x"]
    assert found.high - found.value == pytest.approx(4.302653 * 0.1 / 3**0.5)
    assert [student(n) for n in (2, 4, 5, 10, 30)] == pytest.approx(
        [4.302653, 2.776445, 2.570582, 2.228139, 2.042272], abs=1e-3
    )


def test_such_an_interval_holds_the_mean_of_all_trainings_as_often_as_it_says():
    rng = random.Random(3)
    held = 0
    for _ in range(400):
        found = estimates([{"x": [rng.gauss(0.5, 0.1)]} for _ in range(3)])["x"]
        held += found.low < 0.5 < found.high
    assert 0.92 < held / 400 < 0.98


def test_no_share_of_problems_is_below_none_or_above_all():
    runs = [[{"x": [abs(side - mean)] * 20} for mean in (0.0, 0.01, 0.1)] for side in (0, 1)]
    low, high = (estimates(of_side, shares={"x"})["x"] for of_side in runs)
    assert (low.low, high.high) == (0.0, 1.0)
    assert estimates(runs[0])["x"].low < 0, "a difference may be"


def test_two_runs_say_nothing_about_other_trainings():
    alike, unlike = ([{"x": [mean, mean + 0.2] * 20} for mean in means] for means in ((0.5, 0.5), (0.3, 0.7)))
    widths = [found.high - found.low for found in (estimates(runs)["x"] for runs in (alike, unlike))]
    assert widths[0] == pytest.approx(widths[1])


def test_what_runs_share_because_their_problems_are_the_same_is_not_averaged_away():
    run = {"x": [float(random.Random(n).random() < 0.3) for n in range(200)], "y": [0.1] * 200}
    ids = [str(n) for n in range(200)]
    five, one = (estimates(runs, problems=[ids] * len(runs))["x"] for runs in ([run] * 5, [run]))
    assert (five.low, five.high) == pytest.approx((one.low, one.high), abs=0.011)
    assert five.high - five.value == pytest.approx(1.959964 * np.std(run["x"]) / 200**0.5), "as of one run"
    assert five.high - five.value == pytest.approx(1.959964 * np.std(run["x"]) / 200**0.5)
    assert estimates([run], problems=[ids]) == estimates([run])
    own = estimates([run] * 5)["x"]
    assert own.high - own.low < 1e-9, "problems of their own, and the same mean every time"


def test_an_interval_holds_the_mean_and_narrows_with_problems():
    rng = random.Random(0)
    few, many = ([float(rng.random() < 0.3) for _ in range(count)] for count in (30, 1000))
    wide, narrow = (estimates([{"x": scores}])["x"] for scores in (few, many))
    assert wide.low < wide.value < wide.high
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 * (0.3 * 0.7 / 1000) ** 0.5, rel=0.1)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)
    assert estimates([{"x": many}]) == estimates([{"x": many}])


def test_the_same_problems_are_drawn_for_every_column():
    scores = [random.Random(1).random() for _ in range(40)]
    found = estimates([{"x": scores, "twice": [2 * score for score in scores]}] * 2)
    assert (2 * found["x"].low, 2 * found["x"].high) == pytest.approx(
        (found["twice"].low, found["twice"].high)
    )


def test_columns_that_a_run_lacks_are_left_out():
    assert estimates([{"x": [1.0], "y": [1.0]}, {"x": [0.0]}]).keys() == {"x"}
    assert estimates([{"x": []}]) == estimates([]) == {}


def test_none_or_all_of_the_problems_is_no_certainty():
    none, every = (estimates([{"x": [score] * 20}], shares={"x"})["x"] for score in (0.0, 1.0))
    assert (none.value, none.low) == (0.0, 0.0)
    assert none.high == pytest.approx(0.1611, abs=1e-4)  # Wilson, 0 of 20
    assert (every.value, every.high) == (1.0, 1.0)
    assert every.low == pytest.approx(1 - none.high)
    more = estimates([{"x": [0.0] * 2000}], shares={"x"})["x"]
    assert 0 < more.high < 0.002
    assert estimates([{"x": [0.0] * 20}] * 3, shares={"x"})["x"] == none  # the runs may share their problems


def test_an_interval_of_shares_ends_at_none_and_at_all():
    runs = [{"few": [low] * 20, "most": [1 - low] * 20} for low in (0.0, 0.01, 0.03)]
    shares, others = estimates(runs, shares={"few", "most"}), estimates(runs)
    assert (shares["few"].low, shares["most"].high) == (0.0, 1.0)
    assert others["few"].low < 0.0
    assert others["most"].high > 1.0
    assert shares["few"].high == pytest.approx(others["few"].high)


def test_only_shares_of_problems_are_widened():
    assert estimates([{"kept": [1.0] * 20}])["kept"] == Estimate(1.0, 1.0, 1.0)
    some = [0.0] * 19 + [1.0]
    assert estimates([{"x": some}], shares={"x"}) == estimates([{"x": some}])


def test_differences_are_taken_problem_by_problem_and_run_by_run():
    easy = [float(n % 2) for n in range(100)]
    better = [{"x": [min(1.0, score + (n < 5)) for n, score in enumerate(easy)]}] * 2
    (gain, _) = differences(better, [{"x": easy}] * 2)
    assert [n for n, more in enumerate(gain["x"]) if more] == [0, 2, 4]
    paired = estimates(differences(better, [{"x": easy}] * 2))["x"]
    alone = estimates(better)["x"]
    assert paired.value == pytest.approx(0.03)
    assert paired.high - paired.low < (alone.high - alone.low) / 2

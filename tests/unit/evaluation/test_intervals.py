"""The one bootstrap: against all resamples written out, at the edges, in pairs."""

import random
from itertools import product

import pytest

from partway.evaluation import Estimate, differences, estimates


def quantile_of_all_resamples(runs, share):
    """The slow, obvious twin: every choice of runs and, for each of them, every choice of problems."""
    means = []
    for chosen in product(runs, repeat=len(runs)):
        draws = list(product(*(list(product(run, repeat=len(run))) for run in chosen)))
        means += [(sum(sum(d) / len(d) for d in draw) / len(draw), 1 / len(draws)) for draw in draws]
    below, total = 0.0, sum(weight for _, weight in means)
    for mean, weight in sorted(means):
        below += weight
        if below >= share * total:
            return mean
    return mean


@pytest.mark.parametrize(
    "runs",
    [
        [[0.0, 0.25, 0.5, 0.75, 1.0]],
        [[0.0, 0.5, 1.0], [0.2, 0.2, 0.9]],
        [[0.1, 0.4], [0.9, 0.3], [0.5, 0.6]],
        [[0.0, 0.1, 0.8], [1.0, 0.7]],
    ],
)
def test_the_ends_are_those_of_all_resamples(runs):
    found = estimates([{"x": run} for run in runs])["x"]
    for end, share in ((found.low, 0.025), (found.high, 0.975)):
        # 2,000 resamples tell a quantile to about half a percent.
        low, high = (quantile_of_all_resamples(runs, share + slack) for slack in (-0.012, 0.012))
        assert low - 1e-9 <= end <= high + 1e-9
    assert found.value == pytest.approx(sum(sum(run) / len(run) for run in runs) / len(runs))


def test_runs_with_the_same_problems_draw_the_same_ones():
    runs = [[0.0, 0.5, 1.0], [0.2, 0.2, 0.9]]
    means = sorted(
        (runs[a][i] + runs[a][j] + runs[a][k] + runs[b][i] + runs[b][j] + runs[b][k]) / 6
        for a, b in product(range(2), repeat=2)
        for i, j, k in product(range(3), repeat=3)
    )
    found = estimates([{"x": run} for run in runs], problems=["abc"] * 2)["x"]
    for end, share in ((found.low, 0.025), (found.high, 0.975)):
        low, high = (means[round((share + slack) * (len(means) - 1))] for slack in (-0.02, 0.02))
        assert low - 1e-9 <= end <= high + 1e-9
    assert found.value == pytest.approx(2.8 / 6)


def test_a_run_seen_twice_is_no_second_witness():
    run = {"x": [float(random.Random(n).random() < 0.3) for n in range(200)], "y": [0.1] * 200}
    ids = [str(n) for n in range(200)]
    five, one = (estimates(runs, problems=[ids] * len(runs))["x"] for runs in ([run] * 5, [run]))
    assert (five.low, five.high) == pytest.approx((one.low, one.high), abs=0.011)
    assert estimates([run], problems=[ids]) == estimates([run])


def test_a_problem_that_some_runs_share_is_drawn_for_all_that_have_it():
    runs, problems = [[0.0, 0.5, 1.0], [1.0, 0.1, 0.3]], ["abc", "cde"]
    means = []
    for draw in product("abcde", repeat=5):
        drawn = [
            [run[ids.index(one)] for one in draw if one in ids] or run
            for run, ids in zip(runs, problems, strict=True)
        ]
        of_runs = [sum(scores) / len(scores) for scores in drawn]
        means += [(first + second) / 2 for first, second in product(of_runs, repeat=2)]
    found = estimates([{"x": run} for run in runs], problems=problems)["x"]
    for end, share in ((found.low, 0.025), (found.high, 0.975)):
        low, high = (sorted(means)[round((share + slack) * (len(means) - 1))] for slack in (-0.01, 0.01))
        assert low - 1e-9 <= end <= high + 1e-9
    assert found != estimates([{"x": run} for run in runs], problems=["abc", "def"])["x"]
    assert found == estimates([{"x": runs[0]}, {"x": [0.3, 1.0, 0.1]}], problems=["abc", "ecd"])["x"]


def test_an_interval_holds_the_mean_and_narrows_with_problems():
    rng = random.Random(0)
    few, many = ([float(rng.random() < 0.3) for _ in range(count)] for count in (30, 1000))
    wide, narrow = (estimates([{"x": scores}])["x"] for scores in (few, many))
    assert wide.low < wide.value < wide.high
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 * (0.3 * 0.7 / 1000) ** 0.5, rel=0.1)
    assert wide.high - wide.low > 3 * (narrow.high - narrow.low)
    assert estimates([{"x": many}]) == estimates([{"x": many}])


def test_several_runs_bring_their_own_chance():
    assert estimates([{"x": [0.5] * 50}, {"x": [0.5] * 20}]) == {"x": Estimate(0.5, 0.5, 0.5)}
    runs = estimates([{"x": [0.0] * 100}, {"x": [1.0] * 100}])["x"]
    assert (runs.value, runs.low, runs.high) == (0.5, 0.0, 1.0)


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

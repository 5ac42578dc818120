"""The tables of a report: which result is the best, which is worse than MLE, what was not measured."""

from dataclasses import replace

import pytest
from report_cases import write_run

from partway.errors import RunError
from partway.evaluation import Estimate
from runreports import write_report
from runreports.number_tables import to_html
from runreports.numbers import objectives_table, results_table, runs_table, settings_table, work_table
from runreports.page import page
from runreports.study import study_of
from runreports.summaries import Result, summarize

SCORES = {  # pass@1 and pass@6
    ("none", "mle"): (0.30, 0.50),
    ("fcs", "mml"): (0.20, 0.60),
    ("fcs", "mle_aug"): (0.40, 0.60),
    ("fcs+pcs", "mle_aug"): (0.25, 0.70),
}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A run of each arm with the results above."""
    summaries = []
    for number, ((strategy, objective), (one, six)) in enumerate(SCORES.items()):
        directory = tmp_path_factory.mktemp("runs") / f"run{number}"
        run = write_run(directory, self_sampling=strategy, objective=objective)
        metrics = {"pass@1": Estimate(one, one, one), "pass@6": Estimate(six, six, six)}
        summaries.append(replace(summarize(run), results={"dev": Result(40, 5, 6, metrics)}))
    return study_of(summaries)


def test_objectives_are_compared_in_the_papers_order_with_what_each_strategy_keeps(compared):
    table = objectives_table(compared)
    assert [row[:2] for row in table.rows] == [
        ["references only", "MLE"],
        ["FCS only", "MML"],
        ["FCS only", "MLE-Aug"],
        ["FCS + PCS", "MLE-Aug"],
    ]
    kept = [[cell is not None for cell in row[2:4]] for row in table.rows]
    assert kept == [[False, False], [True, False], [True, False], [True, True]]
    assert [[cell.value for cell in row[4:]] for row in table.rows] == [list(s) for s in SCORES.values()]


def test_the_best_of_a_strategy_and_those_below_mle_are_marked(compared):
    table = objectives_table(compared)
    assert table.marks == {
        (1, 4): "worse",
        (2, 4): "best",
        (3, 4): "worse",
        (1, 5): "best",
        (2, 5): "best",
    }
    shown = to_html(table)
    assert '<td class="number worse"><b>20.0</b>' in shown
    assert '<td class="number best"><b>40.0</b>' in shown


def test_chance_has_a_row_and_bold_is_the_best_that_is_above_it(compared):
    chance = Result(None, 5, 6, {"pass@1": Estimate(0.1, 0.1, 0.1), "pass@6": Estimate(0.65, 0.6, 0.7)})
    *others, last = compared.runs
    beside = study_of([*others, replace(last, chance=chance)])
    table = results_table(beside)
    names = [column.heading for column in table.columns]
    floor = dict(zip(names, table.rows[-1], strict=True))
    assert floor["setting"] == "chance, no model"
    assert [floor[name].value for name in ("pass@1", "pass@6")] == [0.1, 0.65]
    assert len(table.rows[-1]) == len(names), "differences to the baseline are left empty"
    assert table.marks == {(2, names.index("pass@1")): "best", (3, names.index("pass@6")): "best"}
    assert (1, 5) not in objectives_table(beside).marks, "0.60 at k=6 is not above 0.65"
    without = results_table(compared)
    assert (without.marks, len(without.rows)) == ({}, 4), "without chance nobody knows"


def test_one_objective_alone_is_no_comparison(tmp_path):
    alone = study_of([summarize(write_run(tmp_path / "run"))])
    assert objectives_table(alone) is None
    assert settings_table(alone) is None


def test_settings_that_differ_have_a_row_and_those_that_do_not_are_folded(compared):
    assert [row[0] for row in settings_table(compared).rows] == ["self_sampling", "objective"]
    many = {f"key_{number}": number for number in range(20)}
    runs = [replace(run, config={**run.config, **many}) for run in compared.runs]
    shown = page(study_of(runs), {}, "")
    assert "<summary>Settings that all runs share</summary>" in shown
    assert [row[0] for row in settings_table(study_of(runs)).rows] == ["self_sampling", "objective"]


def test_what_was_not_counted_is_a_dash(compared):
    cells = {tuple(row[:2]): row[2:] for row in work_table(compared).rows}
    assert cells["MLE", "saving"] == [12.0, None, None]
    assert cells["MLE", "evaluating"] == [12.0, 1400, 70]
    assert to_html(work_table(compared)).count('<span class="none">–</span>') == 4 * (2 + 2 + 1 + 1)


def test_a_run_without_its_environment_is_listed_all_the_same(tmp_path):
    run = write_run(tmp_path / "run")
    columns = [column.heading for column in runs_table(study_of([summarize(run)])).columns]
    (known,) = runs_table(study_of([summarize(run)])).rows
    (run.directory / "environment.json").unlink()
    (unknown,) = runs_table(study_of([summarize(run)])).rows
    assert dict(zip(columns, known, strict=True))["started (UTC)"] == "2026-01-01 00:00"
    assert dict(zip(columns, unknown, strict=True))["started (UTC)"] is None
    assert known[:5] == unknown[:5] == ["run", "FCS+PCS", 0, "finished", 40]


def test_runs_and_the_place_for_a_report_may_be_texts(tmp_path, unrendered):
    run = write_run(tmp_path / "run")
    page = write_report([str(run.directory), run.directory, run], str(tmp_path / "report"))
    assert page == tmp_path / "report" / "report.html"
    with pytest.raises(RunError, match="no run here"):
        write_report([str(tmp_path / "nowhere")], str(tmp_path / "report"))


def test_no_runs_are_an_error(tmp_path):
    with pytest.raises(RunError, match="no runs to report on"):
        write_report([], tmp_path / "report")


def test_a_test_result_is_of_the_final_step_also_without_looks_at_dev(tmp_path):
    run = write_run(tmp_path / "run", tested=True)
    for evaluation in run.evaluations_directory.glob("step-*"):
        evaluation.unlink()
    run.append_metrics({"step": 40, "finished": True, "final_step": 40}, {"step": 40, "seconds": 1.0})
    assert {name: result.step for name, result in summarize(run).results.items()} == {"test": 40}

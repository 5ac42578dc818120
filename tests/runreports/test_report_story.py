"""The report's story: what came out in words, one problem as in Figure 1, nothing that repeats itself."""

import re
import shutil
from dataclasses import replace

import pytest
from report_cases import write_run

from partway.buffer import Verdict, seed_buffers
from partway.evaluation import differences, estimates
from partway.evaluation.results import Evaluation, metric_estimates
from partway.language import trace
from partway.measuring.result_files import read_results
from partway.runs.run import save_buffers
from partway.sample import Sample
from runreports import figures
from runreports.example import example_of, when_learned
from runreports.numbers import results_table
from runreports.page import page
from runreports.story import headline, terms
from runreports.theme import LIGHT
from runreports.writing import read_study, write_explorer

MLE = {"self_sampling": "none", "objective": "mle"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = [write_run(folder / f"own-{seed}", seed=seed, tested=True) for seed in (4, 5)]
    runs += [write_run(folder / f"mle-{seed}", seed=seed, tested=True, **MLE) for seed in (4, 5)]
    return read_study(runs)


def test_the_difference_to_the_baseline_is_told_first_with_its_interval(study):
    own = study.settings[1]
    base = study.baseline
    assert base.label == "MLE"
    metrics = "pass@1", "pass@2", "pass@6"
    found = [study.gains[own.label][metric] for metric in metrics]
    scores = [[run.results["test"].scores for run in setting.runs] for setting in (own, base)]
    problems = [run.results["test"].task_ids for run in own.runs]
    shared, apart = (estimates(differences(*scores), problems=ids) for ids in (problems, ()))
    assert found == [shared[metric] for metric in metrics] != [apart[metric] for metric in metrics]
    found = found[-1]
    sentence = headline(study)[0]
    assert f"{abs(100 * found.value):.1f} points" in sentence
    assert f"(95% interval {100 * found.low:+.1f} to {100 * found.high:+.1f})" in sentence
    assert "of 8 test problems" in sentence
    assert sentence.startswith(
        "FCS+PCS, which learns from the given solutions and its own fully- and partially-correct"
    )
    assert "MLE, which learns from the given solutions alone, solves" in sentence


def test_words_tell_of_at_most_ten_samples(study, monkeypatch):
    told = headline(study)
    monkeypatch.setattr(type(study), "ks", property(lambda own: (1, 6, 20)))
    assert headline(study) == told


def test_intervals_know_which_runs_share_their_problems(study, tmp_path):
    own = study.settings[1]
    scores = [run.results["test"].scores for run in own.runs]
    problems = [run.results["test"].task_ids for run in own.runs]
    assert study.estimates[own.label] == metric_estimates(scores, problems)
    assert study.estimates[own.label] != metric_estimates(scores)
    kept = [{"x": run.kept.of_kind("fully_correct")} for run in own.runs]
    assert own.kept_per_problem[0] == estimates(kept)["x"]  # each seed learned other problems
    twice = read_study([write_run(tmp_path / name, problems=30) for name in ("one", "two")]).settings[0]
    [kept, same] = ({"x": run.kept.of_kind("fully_correct")} for run in twice.runs)
    assert kept == same
    assert (
        twice.kept_per_problem[0]
        == estimates([kept, same], problems=[run.kept.kinds for run in twice.runs])["x"]
    )


def test_the_table_has_the_same_differences_at_the_smallest_and_the_largest_k(study):
    own = study.settings[1]
    table = results_table(study)
    headings = [column.heading for column in table.columns]
    assert headings[-2:] == ["pass@1 - MLE", "pass@6 - MLE"]
    mle, other = (dict(zip(headings, row, strict=True)) for row in table.rows)
    for metric in ("pass@1", "pass@6"):
        assert mle[f"{metric} - MLE"] is None
        assert other[f"{metric} - MLE"] == study.gains[own.label][metric]
        assert other[f"{metric} - MLE"].value == pytest.approx(other[metric].value - mle[metric].value)
    alone = replace(study, settings=study.settings[:1])
    assert [column.heading for column in results_table(alone).columns] == headings[:-2]


def test_settings_on_other_problems_or_seeds_get_no_interval(tmp_path):
    runs = [write_run(tmp_path / "own", seed=3, tested=True), write_run(tmp_path / "mle", tested=True, **MLE)]
    study = read_study(runs)
    assert study.gains == {study.settings[1].label: {}}
    assert "no interval" in headline(study)[0]


def test_settings_that_solve_every_problem_equally_often_are_said_to(tmp_path):
    own, mle = (write_run(tmp_path / name, tested=True, **more) for name, more in (("own", {}), ("mle", MLE)))
    for path in (own.directory / "evaluations").glob("test*"):
        shutil.copy(path, mle.directory / "evaluations")
    sentence = headline(read_study([own, mle]))[0]
    assert "They solve every problem equally often" in sentence
    assert "interval" not in sentence


def test_of_many_settings_the_best_is_told_and_which_differ_from_the_baseline(tmp_path):
    runs = [write_run(tmp_path / "mle", tested=True, **MLE)]
    runs += [write_run(tmp_path / f"at-{i}", tested=True, temperature=i / 10) for i in range(1, 7)]
    for run, solved in zip(runs, [4, 4, 4, 8, 4, 0, 4], strict=True):
        solve(run.evaluation_file("test"), solved)
    study = read_study(runs)
    told, counted = headline(study)
    hot, cold = (f"FCS+PCS (temperature {temperature})" for temperature in (0.3, 0.5))
    assert told.startswith(f"The best of 6 settings: {hot}, which learns from")
    assert "solves 100.0% of 8 test problems" in told
    assert f"6 differences to MLE at pass@6, {hot} lies above 0 and {cold} lies below 0; the rest" in counted
    assert [name for name, _ in terms(study)] == [
        "MLE",
        f"{study.settings[1].label} and 5 others",
        "FCS",
        "PCS",
        "pass@k",
    ]


def solve(path, solved):
    """Rewrite an evaluation as if all samples of so many problems were right, and no others."""
    results, plan = read_results(path)
    judged = (
        replace(result, samples=tuple(replace(sample, passed=number < solved) for sample in result.samples))
        for number, result in enumerate(results)
    )
    Evaluation.of(tuple(judged), plan).write(path)


def test_every_name_is_explained_before_the_first_figure(study):
    meanings = dict(terms(study))
    assert meanings.keys() == {"MLE", "FCS+PCS", "FCS", "PCS", "pass@k"}
    assert "MLE-Aug adds up" in meanings["FCS+PCS"]
    text = page(study, {}, "title")
    assert text.index("maximum likelihood") < text.index("<section")


def test_one_problem_is_shown_with_its_solutions_and_when_it_was_learned(study):
    example = example_of(study)
    assert len(example.buffer.fully_correct) > 1
    shown = example.to_html()
    assert shown.count('class="card"') >= 2
    assert re.search(r"The model first solved it from scratch at step \d+", shown)
    assert page(study, {}, "title").index('id="example"') < page(study, {}, "title").index('id="pass_at_k"')


def test_of_solutions_that_are_spelled_otherwise_only_one_is_shown(tmp_path):
    run = write_run(tmp_path / "run", self_sampling="fcs", problems=2)
    spelled, solved = seed_buffers(run.problems()).values()
    for buffer, template in [
        (spelled, "m0 = {0}\nm1 = {1}\nm2 = {2}\nt0 = m0 + m1\nanswer = t0 - m2"),
        (spelled, "n0 = {0}.0\nn1 = {1}\nn2 = {2}\nt0 = n0 + n1\nanswer = t0 - n2"),
        (solved, "m0 = {0}\nn1 = {1}\nn2 = {2}\nt0 = m0 + n1\nanswer = t0 - n2"),
        (solved, "n0 = {0}\nn1 = {1}\nn2 = {2}\nt7 = n0 - n2\nanswer = t7 + n1"),
    ]:
        numbers = re.findall(r"n\d = (\d+)", buffer.problem.reference.text)
        assert buffer.consider(trace(template.format(*numbers)), 1) is Verdict.NEW_FULLY_CORRECT
    save_buffers(run.final, [spelled, solved])
    example = example_of(read_study([run]))
    assert example.buffer.problem == solved.problem
    shown = example.to_html()
    assert "t7" in shown
    assert "m0" not in shown


def test_when_a_problem_was_learned_is_what_its_samples_say(tmp_path):
    run = write_run(tmp_path / "run")
    for problem in run.problems():
        steps = [s.step for s in run.samples() if s.problem == problem.id and "fully_correct" in s.verdict]
        told = when_learned(run, problem.id)
        assert (f"at step {min(steps)}" in told) if steps else told.startswith("None of the 8 samples")


def test_a_run_that_keeps_nothing_of_its_own_has_no_example(tmp_path):
    assert example_of(read_study([write_run(tmp_path / "mle", **MLE)])) is None


def test_figures_of_one_setting_and_figures_that_repeat_another_are_left_out(study, tmp_path):
    alone = read_study([write_run(tmp_path / "run")])
    assert figures.pass_at_k(alone, LIGHT) is None
    assert figures.work(alone, LIGHT) is None
    assert figures.objectives(study, LIGHT) is None
    text = page(alone, {}, "title")
    assert "No run was evaluated yet" not in text
    assert 'id="objectives"' not in text


def test_without_the_explorer_a_report_has_no_copy_of_it(study, tmp_path, monkeypatch):
    monkeypatch.setattr("partway.registry.parts", lambda kind: {})
    assert not write_explorer(study, tmp_path / "explorer")


def test_of_problems_without_a_reference_one_that_was_continued_tells_how_it_was_solved(tmp_path):
    run = write_run(tmp_path / "run", problems=3)
    problems = [replace(problem, reference=None) for problem in run.problems()]
    texts = [problem.reference.text for problem in run.problems()]
    run.write_problems("train", problems)
    for path in run.sample_files():
        path.unlink()
    buffers = seed_buffers(problems)
    drawn = [(problem.id, "", text, 7) for problem, text in zip(problems, texts, strict=True)]
    beginning = "\n".join(texts[1].splitlines()[:2])
    rest = texts[1].removeprefix(beginning + "\n").replace("t0 = n0 + n1", "t0 = n1 + n0")
    drawn.append((problems[1].id, beginning, rest, 9))
    samples = []
    for id, prefix, completion, step in drawn:
        sample = Sample(id, prefix, completion, 1, True, step=step)
        verdict = buffers[id].consider(trace(sample.text), step)
        samples.append(replace(sample, verdict=verdict))
    run.append_samples(samples)
    save_buffers(run.final, buffers.values())
    study = read_study([run])
    example = example_of(study)
    assert example.buffer.problem.id == problems[1].id
    assert example.learned.startswith("Nobody wrote a solution of it: the model had the answer only.")
    assert "It first solved it at step 7, from nothing" in example.learned
    shown = "; ".join(beginning.splitlines())
    assert example.learned.endswith(f'At step 9 it went on from the beginning "{shown}" to another one.')
    assert "differs from the first solution" in page(study, {}, "title")

"""Run directories as numbers: one run, several seeds, several settings."""

import json
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from report_cases import write_run

from partway.buffer import Verdict
from partway.errors import RunError
from partway.runs import Run
from partway.tracking.display import describe
from runreports import theme
from runreports.averages import mean_band, pooled_shares, smoothed, thinned
from runreports.study import study_of
from runreports.summaries import chosen_step, summarize


def study(*runs):
    return study_of(summarize(run) for run in runs)


def labels(*runs):
    return [setting.label for setting in study(*runs).settings]


def test_a_run_is_read_from_its_directory_alone(tmp_path):
    run = write_run(tmp_path / "run", seed=3, tested=True)
    summary = summarize(run.directory)
    assert (summary.seed, summary.step, summary.is_finished, summary.missing) == (3, 40, True, ())
    assert summary.curves["num_tokens"] == {10: 1000.0, 20: 2000.0, 30: 3000.0, 40: 4000.0}
    assert list(summary.curves["eval_pass@6"]) == [20, 40]
    assert summary.results.keys() == {"dev", "test"}


def test_kept_solutions_are_those_of_the_buffers(tmp_path):
    run = write_run(tmp_path / "run")
    kept = summarize(run).kept
    buffers = run.buffers()
    assert kept.step == 40
    assert list(kept.kinds) == list(buffers)
    assert kept.of_kind("fully_correct") == [len(buffer.fully_correct) for buffer in buffers.values()]
    assert kept.of_kind("partially_correct") == [len(buffer.partially_correct) for buffer in buffers.values()]
    assert sum(kept.of_kind("fully_correct")) > len(buffers)
    assert sum(kept.of_kind("partially_correct")) > 0


def test_scores_of_problems_average_to_the_recorded_metrics(tmp_path):
    result = summarize(write_run(tmp_path / "run", tested=True)).results["test"]
    assert result.scores.keys() == result.metrics.keys() > {"pass@1", "pass@2", "pass@6", "maj@6", "unique"}
    for name, scores in result.scores.items():
        assert len(scores) == result.problems == 8
        assert fmean(scores) == pytest.approx(result.metrics[name].value)


def test_time_tokens_and_samples_are_summed_by_part(tmp_path):
    work = summarize(write_run(tmp_path / "run")).work
    assert {part.seconds for part in work.values()} == {12.0}  # six lines of 2 seconds each
    assert (work["exploring"].samples, work["exploring"].tokens) == (4 * 12, 4 * 12 * 20)
    assert (work["learning"].tokens, work["learning"].samples) == (4000, None)
    assert (work["evaluating"].samples, work["evaluating"].tokens) == (2 * 5 * (6 + 1), 2 * 700)


def test_tokens_of_evaluations_are_unknown_where_one_did_not_count_them(tmp_path):
    run = write_run(tmp_path / "run")
    path = run.directory / "metrics.jsonl"
    path.write_text(path.read_text().replace(', "eval_tokens_drawn": 700', "", 1))
    work = summarize(run).work["evaluating"]
    assert (work.samples, work.tokens) == (70, None)


def test_the_chosen_step_is_the_first_with_the_best_metric():
    values = {10: 0.2, 20: 0.5, 30: 0.5}
    rows = {step: {"metrics": {"pass@1": {"value": value}}} for step, value in values.items()}
    assert chosen_step(rows, {}) == 20
    assert chosen_step(rows, {"load_best_model_at_end": False}) == 30
    assert chosen_step(rows, {"metric_for_best_model": "eval_of_another_kind"}) == 30
    assert chosen_step({}, {}) is None


def test_a_run_that_only_has_settings_says_what_is_missing(tmp_path):
    run = Run(tmp_path / "young")
    run.write_config({"max_steps": 50})
    summary = summarize(run)
    assert summary.state == "step 0 of 50"
    told = " ".join(summary.missing)
    for word in ("environment.json", "no curves", "no pass@k", "no kept solutions", "no times"):
        assert word in told


def test_a_run_still_training_shows_what_it_has(tmp_path):
    run = write_run(tmp_path / "run", steps=20, finished=False)
    with (run.directory / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 30, "lo')  # being written just now
    summary = summarize(run)
    assert (summary.step, summary.state, summary.kept.step) == (20, "step 20 of 40", 20)
    assert study(run).notes == ("run: not finished (step 20 of 40)",)


def test_a_log_that_lost_lines_is_told(tmp_path):
    run = write_run(tmp_path / "run")
    run.write_environment(run.environment | {"resumed": [{"step": 2, "lost": ["samples/00000001.jsonl"]}]})
    (run.directory / "samples/00000001.jsonl").unlink()
    assert study(run).notes == ("run: samples/00000001.jsonl has lost lines",)


def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="no run here"):
        summarize(tmp_path)


def test_settings_have_the_names_of_the_paper_in_its_order(tmp_path):
    arms = [("fcs+pcs", "mle_aug"), ("fcs", "beta_mml"), ("none", "mle"), ("fcs", "mml")]
    runs = [write_run(tmp_path / f"r{n}", self_sampling=s, objective=o) for n, (s, o) in enumerate(arms)]
    assert labels(*runs) == ["MLE", "FCS, MML", "FCS, β-MML", "FCS+PCS"]


def test_seeds_of_one_setting_are_one_setting_and_other_settings_are_told_apart(tmp_path):
    seeds = [write_run(tmp_path / f"s{seed}", seed=seed, train_file=f"{seed}.jsonl") for seed in range(3)]
    assert [setting.seeds for setting in study(*seeds).settings] == [(0, 1, 2)]
    faster = write_run(tmp_path / "faster", learning_rate=1e-2)
    assert sorted(labels(*seeds, faster)) == [
        "FCS+PCS (learning_rate 0.001)",
        "FCS+PCS (learning_rate 0.01)",
    ]


def test_ablations_are_called_by_what_each_changes(tmp_path):
    changes = [{}, {"temperature": 1.2}, {"state": "set"}, {"num_generations": 8, "state": "set"}]
    runs = [write_run(tmp_path / f"r{n}", **change) for n, change in enumerate(changes)]
    plain = "FCS+PCS"
    assert set(labels(*runs, write_run(tmp_path / "r4", learning_rate=1e-2))) == {
        plain,
        f"{plain} (temperature 1.2)",
        f"{plain} (state set)",
        f"{plain} (num_generations 8, state set)",
        f"{plain} (learning_rate 0.01)",
    }


def test_a_setting_that_only_one_seed_records_has_its_default_in_the_other(tmp_path):
    older = write_run(tmp_path / "older", seed=0)
    newer = write_run(tmp_path / "newer", seed=1, length_tolerance=0, gradient_accumulation_steps=1)
    assert [setting.seeds for setting in study(older, newer).settings] == [(0, 1)]
    other = write_run(tmp_path / "other", seed=2, length_tolerance=1)
    assert sorted(labels(older, newer, other)) == [
        "FCS+PCS (length_tolerance 0)",
        "FCS+PCS (length_tolerance 1)",
    ]


def test_the_same_seed_on_other_problems_is_another_setting(tmp_path):
    runs = [write_run(tmp_path / name, train_file=f"{name}.jsonl") for name in ("gsm8k", "mathqa")]
    assert labels(*runs) == [
        "FCS+PCS (train_file gsm8k.jsonl)",
        "FCS+PCS (train_file mathqa.jsonl)",
    ]


def test_runs_of_one_name_are_named_by_their_folders(tmp_path):
    runs = [write_run(tmp_path / folder / "run", seed=seed) for seed, folder in enumerate("ab")]
    assert sorted(study(*runs).names.values()) == ["a/run", "b/run"]


def test_settings_are_compared_on_test_only_if_each_has_a_run_with_it(tmp_path):
    tested = write_run(tmp_path / "tested", tested=True)
    sibling = write_run(tmp_path / "sibling", seed=1, steps=20, finished=False)
    other = write_run(tmp_path / "other", objective="mml")
    both = study(tested, sibling)
    assert both.split == "test"
    assert "sibling: no evaluation on test" in both.notes
    assert [len(setting.results("test")) for setting in both.settings] == [1]
    all_three = study(tested, sibling, other)
    assert all_three.split == "dev"
    assert "compared on dev, because not evaluated on test: FCS+PCS, MML" in all_three.notes


def test_settings_evaluated_on_other_numbers_of_problems_are_pointed_out(tmp_path):
    runs = [write_run(tmp_path / objective, objective=objective) for objective in ("mml", "mle_aug")]
    assert study(*runs).notes == ()
    for path in (runs[0].directory / "evaluations").glob("step-*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "problems": 4}))
    told = "evaluated on different numbers of problems: FCS+PCS, MML on 4; FCS+PCS on 5"
    assert study(*runs).notes == (told,)


def test_one_run_keeps_its_interval_and_several_have_the_mean_with_a_new_one(tmp_path):
    runs = [write_run(tmp_path / f"s{seed}", seed=seed, tested=True) for seed in range(3)]
    (alone,) = study(runs[0]).estimates.values()
    assert alone == summarize(runs[0]).results["test"].metrics
    (together,) = study(*runs).estimates.values()
    for name in ("pass@1", "pass@6", "unique", "executable"):
        values = [summarize(run).results["test"].metrics[name].value for run in runs]
        assert together[name].value == pytest.approx(fmean(values))
        assert together[name].low <= together[name].value <= together[name].high


def test_a_figure_names_only_runs_that_it_shows(tmp_path):
    done = write_run(tmp_path / "done", seed=0)
    young = write_run(tmp_path / "young", seed=1)
    shutil.rmtree(young.directory / "evaluations")
    both = study(done, young)
    (setting,) = both.settings
    shown = [(run, run.results["dev"].step) for run in setting.runs if "dev" in run.results]
    step = shown[0][1]
    assert both.origin_at(setting, shown) == f"FCS+PCS: done · step {step} · seed 0"
    assert both.origin_over(setting, "buffer/") == ("FCS+PCS: done, young · steps 10 to 40 · seeds 0, 1")


def test_steps_that_differ_between_runs_are_told_in_the_order_of_the_runs(tmp_path):
    runs = [write_run(tmp_path / f"s{seed}", seed=seed) for seed in range(5)]
    all_five = study(*runs)
    (setting,) = all_five.settings
    pairs = list(zip(setting.runs, (30, 10, 30, 2000, 20), strict=True))
    assert all_five.origin_at(setting, pairs[:3]).endswith("s0, s1, s2 · steps 30, 10, 30 · seeds 0, 1, 2")
    told = "s0, s1, … 2 more …, s4 · steps 10 to 2,000 · seeds 0, 1, 2, 3, 4"
    assert all_five.origin_at(setting, pairs).endswith(told)
    assert all_five.origin_at(setting, pairs[::2][:2]).endswith("s0, s2 · step 30 · seeds 0, 2")


def test_a_band_is_the_mean_of_the_runs_that_have_the_step():
    band = mean_band([{1: 0.0, 2: 1.0}, {2: 3.0, 3: 5.0}])
    assert (band.steps, band.means) == ((1, 2, 3), (0.0, 2.0, 5.0))
    assert (band.lows[0], band.highs[0]) == (0.0, 0.0)
    assert (band.lows[1], band.highs[1]) == (2.0, 2.0), "two runs say nothing about others"
    three = mean_band([{1: 0.0}, {1: 1.0}, {1: 2.0}])
    assert three.highs[0] - three.means[0] == pytest.approx(4.302653 / 3**0.5)
    assert not mean_band([{1: 0.0, 2: 1.0}]).has_width


def test_smoothing_keeps_constants_and_dampens_jumps():
    assert smoothed([2.0, 2.0]) == pytest.approx((2.0, 2.0))
    assert smoothed([0.0, 1.0, 1.0]) == pytest.approx((0.0, 0.625, 40 / 49)), "a weight of 0.6"


def test_thinning_keeps_both_ends():
    steps = thinned(list(range(1, 5001)))
    assert (steps[0], steps[-1], len(steps)) == (1, 5000, 400)
    assert steps == sorted(set(steps))


def test_shares_of_verdicts_add_up_in_every_stretch(tmp_path):
    runs = [write_run(tmp_path / f"s{seed}", seed=seed) for seed in range(2)]
    shares = pooled_shares([summarize(run).curves for run in runs])
    assert shares.edges == (0, 10, 20, 30, 40)
    assert shares.drawn == sum(sample.count for run in runs for sample in run.samples())
    for stretch in zip(*shares.shares.values(), strict=True):
        assert sum(stretch) == pytest.approx(1)
    first = [sample.verdict for run in runs for sample in run.samples() if sample.step == 10]
    share = first.count(Verdict.NEW_FULLY_CORRECT) / len(first)
    assert shares.shares[Verdict.NEW_FULLY_CORRECT][0] == pytest.approx(share)


def test_an_evaluation_that_is_no_json_is_reported_by_its_path(tmp_path):
    run = write_run(tmp_path / "run")
    (Path(run.directory) / "evaluations" / "step-20.json").write_text(json.dumps([])[:1])
    with pytest.raises(RunError, match=r"step-20\.json: not JSON"):
        summarize(run)


def test_the_only_evaluation_under_another_name_stands_for_test(tmp_path):
    run = write_run(tmp_path / "run", tested=True)
    for file in run.evaluations_directory.glob("test*"):
        file.rename(file.with_name(file.name.replace("test", "svamp", 1)))
    assert summarize(run).results["test"].path.name == "svamp.json"
    shutil.copy(run.evaluation_file("svamp"), run.evaluation_file("asdiv"))
    assert "test" not in summarize(run).results, "nobody says which"


def test_verdicts_have_one_name_in_files_reports_explorer_and_progress():
    page = Path(pytest.importorskip("runexplorer").__file__).parent / "static" / "app.js"
    assert all(f'"{verdict}"' in page.read_text(encoding="utf-8") for verdict in Verdict)
    shown = theme.verdicts_of([dict.fromkeys(Verdict, 1.0)])
    assert {verdict: words for verdict, (_, words) in shown.items()} == {v: v.words for v in Verdict}
    line = describe({f"samples/frac_{verdict}": 0.125 for verdict in Verdict})
    assert line == "samples: " + ", ".join(f"{verdict.words} 12%" for verdict in Verdict)


def test_temperatures_and_chance_are_read_beside_the_result_and_not_as_it(tmp_path):
    run = write_run(tmp_path / "run", tested=True)
    for name in ("test-T0.4", "test-T1.2", "other-T0.4", "other-chance", "test-chance"):
        for path in run.evaluations_directory.glob("test.*"):
            shutil.copy(path, path.with_name(path.name.replace("test", name, 1)))
    summary = summarize(run)
    assert summary.results["test"].path.stem == "test"
    assert sorted(summary.temperatures) == [0.4, 1.2]
    assert {result.path.stem for result in summary.temperatures.values()} == {"test-T0.4", "test-T1.2"}
    assert summary.chance.path.stem == "test-chance"
    (run.evaluations_directory / "test.json").rename(run.evaluations_directory / "only.json")
    assert summarize(run).results["test"].path.stem == "only", "the only one that is neither"
    assert not summarize(run).missing
    shutil.copy(run.evaluation_file("only"), run.evaluation_file("again"))
    both = summarize(run)
    assert "test" not in both.results
    assert both.missing == ("of the evaluations again, only none is called test: none is shown",)


def test_the_frontier_has_a_point_for_each_step_and_temperature(tmp_path):
    pytest.importorskip("matplotlib")
    from runreports import figures

    runs = [
        write_run(tmp_path / "mle", self_sampling="none", tested=True),
        write_run(tmp_path / "run", tested=True),
    ]
    for name in ("test-T0.4", "test-T1.2"):
        for path in runs[1].evaluations_directory.glob("test.*"):
            shutil.copy(path, path.with_name(path.name.replace("test", name, 1)))
    over_training, over_temperatures = figures.frontier(study(*runs), theme.LIGHT).axes
    assert [len(line.get_xdata()) for line in over_training.lines] == [2, 2]  # steps 20 and 40 of both
    assert [len(line.get_xdata()) for line in over_temperatures.lines] == [2]
    summary = summarize(runs[1])
    metrics = summary.temperatures[0.4].metrics
    (line,) = over_temperatures.lines
    assert line.get_xdata()[0] == pytest.approx(100 * metrics["pass@1"].value)
    assert line.get_ydata()[0] == pytest.approx(100 * metrics["pass@6"].value)
    assert [text.get_text() for text in over_temperatures.texts] == ["T=0.4", "T=1.2"]
    assert {text.get_color() for text in over_temperatures.texts} == {line.get_color()}
    assert over_temperatures.get_title() == "over temperatures, on test (k = 6)"
    for run in runs:  # as if nothing had been evaluated in training
        log = run.directory / "metrics.jsonl"
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        rows = [{key: value for key, value in row.items() if not key.startswith("eval_")} for row in rows]
        log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (alone,) = figures.frontier(study(*runs), theme.LIGHT).axes
    assert [text.get_text() for text in alone.texts] == ["T=0.4", "T=1.2"]


def test_chance_is_a_line_beside_the_bars_and_in_the_frontier(tmp_path):
    pytest.importorskip("matplotlib")
    from runreports import figures

    runs = [
        write_run(tmp_path / "mle", self_sampling="none", tested=True),
        write_run(tmp_path / "run", tested=True),
    ]
    for path in runs[1].evaluations_directory.glob("test.*"):
        shutil.copy(path, path.with_name(path.name.replace("test", "test-chance", 1)))
    own = summarize(runs[1]).chance.metrics
    (bars,) = figures.pass_at_k(study(*runs), theme.LIGHT).axes
    heights = [line.get_segments()[0][0][1] for line in bars.collections if len(line.get_segments()) == 1]
    assert heights == pytest.approx([100 * own[f"pass@{k}"].value for k in (1, 2, 6)])
    (over_training,) = figures.frontier(study(*runs), theme.LIGHT).axes
    assert 100 * own["pass@6"].value in [line.get_ydata()[0] for line in over_training.lines]
    assert "chance, on test" in [text.get_text() for text in over_training.texts], "dev is another file"

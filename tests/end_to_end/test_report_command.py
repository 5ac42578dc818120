"""`partway report` as a user calls it, on runs that were really trained."""

import json

import pytest
from training_cases import small_trainer

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two runs of one setting, the second interrupted half-way."""
    folder = tmp_path_factory.mktemp("trained")
    small_trainer(folder / "first", seed=1).train()
    trainer = small_trainer(folder / "second", seed=2)
    trainer.add_callback(stop_after(4))
    trainer.train()
    (folder / "second" / "final").rename(folder / "moved")  # as if killed before the end
    return folder


def stop_after(steps):
    from transformers import TrainerCallback

    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = state.global_step >= steps

    return Stop()


def test_one_run_gets_its_report_inside_it(partway, trained):
    code, shown, remarks = partway("report", trained / "first")
    first = f"partway: drawing the figures of {trained / 'first'} (some seconds)\n"
    assert (code, remarks) == (0, f"{first}partway: next: partway explore {trained / 'first'}\n")
    page = trained / "first" / "report" / "report.html"
    assert shown == f"{page}\n"
    text = page.read_text(encoding="utf-8")
    assert "FCS+PCS" in text
    assert text.count("<svg") == 7  # all but the comparison of objectives
    assert len(list((page.parent / "figures").iterdir())) == 4 * 7  # of one setting, nothing is compared


def test_several_runs_give_one_report_here_and_json_says_where(
    partway, trained, tmp_path, monkeypatch, no_pngs
):
    monkeypatch.chdir(tmp_path)
    code, shown, _ = partway(
        "report", trained / "first", trained / "second", "--title", "Two seeds", "--json"
    )
    assert code == 0
    told = json.loads(shown)
    assert told["report"] == "report/report.html"
    assert [setting["seeds"] for setting in told["settings"]] == [[1, 2]]
    assert "second: not finished (step 4 of 8)" in told["notes"]
    metric = told["settings"][0]["metrics"]["pass@2"]
    assert 0 <= metric["low"] <= metric["value"] <= metric["high"] <= 1
    assert (tmp_path / "report" / "tables" / "pass_at_k.csv").exists()
    assert "<h1>Two seeds</h1>" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_a_directory_that_is_no_run_is_one_clear_line(partway, trained, tmp_path):
    code, shown, remarks = partway("report", trained / "first", tmp_path, "--out", tmp_path / "out")
    assert (code, shown) == (1, "")
    assert remarks.count("\n") == 1
    assert f"partway: error: {tmp_path}: no run here" in remarks
    assert not (tmp_path / "out").exists()
    _, _, remarks = partway("report", trained)
    assert f"{trained}: no run here (config.yaml is missing); runs inside: {trained / 'first'}, " in remarks

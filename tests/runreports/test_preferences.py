"""Samples as preferences: a pair parts where the wrong sample leaves what is known to be right."""

import json

import pytest
from report_cases import write_run

from partway.buffer import seed_buffers
from partway.errors import ConfigError
from partway.language import trace
from partway.problem import Problem
from partway.runs import Run
from partway.runs.run import save_buffers
from partway.sample import Sample
from runreports.preferences import Preference, export_preferences, preferences

OIL = Problem("oil", "10 ml for each of 2 wheels, and 5 ml more?", 25, "a = 10\nb = a * 2\nanswer = b + 5")


def run_with(directory, *texts: str, prefix: str = "", finished: bool = True) -> Run:
    """A run of one problem with these samples."""
    run = Run(directory)
    run.write_config({"self_sampling": "fcs+pcs"})
    run.write_problems("train", [OIL])
    buffers = seed_buffers([OIL])
    for text in texts:
        beginning = f"{prefix}\n" if prefix else ""
        verdict = buffers["oil"].consider(trace(beginning + text), 1)
        run.append_samples([Sample("oil", prefix, text, 1, finished, step=1, verdict=verdict)])
    run.final.mkdir(parents=True)
    save_buffers(run.final, buffers.values())
    return run


PROMPT = "# 10 ml for each of 2 wheels, and 5 ml more?\n"


def test_both_sides_go_on_from_the_last_step_they_share(tmp_path):
    run = run_with(tmp_path, "a = 10\nb = a + 2\nanswer = b + 5\n", "a = 10\nb = a + 2\nanswer = b + 5\n")
    assert list(preferences(run)) == [
        Preference(f"{PROMPT}a = 10\n", "b = a * 2\nanswer = b + 5\n", "b = a + 2\nanswer = b + 5\n", "oil")
    ]


def test_a_guided_sample_is_read_with_its_prefix(tmp_path):
    [pair] = preferences(run_with(tmp_path, "answer = b + 2\n", prefix="a = 10\nb = a * 2"))
    assert (pair.prompt, pair.rejected) == (f"{PROMPT}a = 10\nb = a * 2\n", "answer = b + 2\n")


@pytest.mark.parametrize(
    "text",
    [
        "a = 10\nb = a * 2\nanswer = b + 5\n",  # right
        "n = 10\nm = n * 3\nanswer = m + 5\n",  # its first step is right by another name
    ],
)
def test_a_step_that_is_not_known_to_be_wrong_is_not_rejected(tmp_path, text):
    assert list(preferences(run_with(tmp_path, text))) == []


def test_what_was_cut_off_is_no_example(tmp_path):
    assert list(preferences(run_with(tmp_path, "a = 11\nb =", finished=False))) == []


def test_no_rejected_step_reaches_a_known_state(tmp_path):
    run = write_run(tmp_path / "run", problems=8)
    pairs = list(preferences(run))
    assert pairs
    buffers = run.buffers()
    for pair in pairs:
        steps = pair.prompt.splitlines()[1:]
        known = buffers[pair.problem_id].prefixes_by_state
        rejected = trace("\n".join([*steps, pair.rejected.splitlines()[0]]))
        assert len(rejected.states) == len(steps) or rejected.states[-1] not in known
        chosen = trace("\n".join([*steps, pair.chosen]))
        assert run.language.is_correct(buffers[pair.problem_id].problem, chosen)


def test_the_sets_have_the_columns_that_trl_reads(tmp_path):
    run = run_with(tmp_path, "a = 10\nb = a + 2\nanswer = b\n", "a = 10\nb = a + 3\nanswer = b\n")
    assert export_preferences(run, tmp_path / "dpo.jsonl", "dpo") == {"pairs": 2}
    assert export_preferences(run, tmp_path / "kto.jsonl", "kto") == {"wanted": 1, "unwanted": 2}
    rows = [json.loads(line) for line in (tmp_path / "kto.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == [True, False, False]
    with pytest.raises(ConfigError, match="written as JSONL"):
        export_preferences(run, tmp_path / "dpo.parquet", "dpo")

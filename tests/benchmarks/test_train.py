"""`python -m benchmarks train` compares like with like."""

import json

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import app


def test_both_loops_have_the_same_loss_and_ours_is_faster():
    words = [
        "train",
        "--batch",
        "4",
        "--warm-up",
        "2",
        "--steps",
        "1",
        "--max-completion-length",
        "48",
        "--json",
    ]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output.splitlines()[-1])
    assert found["loss"]["partway"] == pytest.approx(found["loss"]["straightforward"], rel=1e-4)
    assert found["speedup"] > 1
    assert found["samples_per_step"] == 16
    assert 0 < found["frac_drafted_tokens"] < 1
    assert found["exploring_without_drafts"] > 0
    for seconds in found["seconds"].values():
        assert seconds["step"] == pytest.approx(sum(seconds[part] for part in seconds if part != "step"))

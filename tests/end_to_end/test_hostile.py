import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere"),
]

TESTS = Path(__file__).parent.parent
OWN = TESTS / "hostile.jsonl"
ELSEWHERE = Path(os.environ.get("PARTWAY_HOSTILE", TESTS.parent.parent / "shared" / "hostile"))
OTHERS = sorted(ELSEWHERE.glob("*.jsonl")) if ELSEWHERE.is_dir() else [ELSEWHERE]


def read(corpus: Path) -> Iterator[dict]:
    for line in corpus.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def run(corpus: Path, scratch: Path, *options: str) -> dict:
    done = subprocess.run(
        [sys.executable, TESTS / "cases" / "hostile_runner.py", corpus, *options],
        cwd=scratch,
        env={**os.environ, "HOME": str(scratch), "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict = json.loads(done.stdout)
    return report


def check(corpus: Path, report: dict, scratch: Path) -> None:
    wrong = {
        program["id"]: (report["outcomes"][program["id"]], report["messages"][program["id"]])
        for program in read(corpus)
        if report["outcomes"][program["id"]] not in program.get("accept", [program["expect"]])
    }
    assert wrong == {}
    assert report["broken_canaries"] == []
    assert report["broken_victims"] == []
    assert report["wrong_answers"] == []
    assert report["most_seconds_here"] < 0.5  # of an idle machine's 0.05
    assert report["events"] == []
    assert report["processes_left"] == []
    assert report["growth"] < 64 << 20
    assert report["seconds"] < 240
    assert list(scratch.iterdir()) == []


def test_our_own_hostile_programs_get_an_accepted_outcome_in_one_batch(tmp_path):
    check(OWN, run(OWN, tmp_path, "--quick"), tmp_path)


@pytest.mark.parametrize("corpus", OTHERS, ids=lambda path: path.name)
def test_hostile_programs_from_elsewhere_get_an_accepted_outcome_one_by_one(corpus, tmp_path):
    if not corpus.is_file():
        pytest.skip(f"no second corpus at {corpus}; set PARTWAY_HOSTILE to one")
    check(corpus, run(corpus, tmp_path), tmp_path)


def test_the_corpus_covers_every_kind_of_attack():
    groups = [program["group"] for program in read(OWN)]
    assert len(groups) >= 60
    assert set(groups) == {
        "contamination", "cost", "depth", "endless", "forgery", "int_bomb", "introspection", "mem_bomb",
        "numeric", "ownership", "source", "system",
    }  # fmt: skip

"""A run with a broken file is read as far as it goes, or refused in one line that names the file."""

import json
import random
import shutil

import pytest
import yaml
from click.testing import CliRunner
from report_cases import write_run

from partway.cli import app
from partway.errors import PartwayError, RunError
from partway.measuring.result_files import read_results
from partway.runs import Run


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "whole", tested=True).directory


def broken(file, rng):
    """Cut a line short, as half a copy does, or take a key away; what was done."""
    is_lines = file.suffix == ".jsonl"
    lines = file.read_text().splitlines(keepends=True) if is_lines else [file.read_text()]
    number = rng.randrange(len(lines))
    row = (yaml.safe_load if file.suffix == ".yaml" else json.loads)(lines[number])
    key = rng.choice(list(row))
    way = rng.choice(["cut", "gone"])
    if way == "gone":
        del row[key]
    text = json.dumps(row)
    lines[number] = f"{text[: len(text) // 2] if way == 'cut' else text}\n"
    file.write_text("".join(lines))
    return file.name, number + 1, way, key


def read(run):
    """Everything that a run's reader gives."""
    _ = run.config, run.environment, run.language, run.rules, run.final_step, run.evaluations()
    _ = run.metrics(), run.timings(), [*run.samples()], run.buffers(), run.model_directory()
    _ = run.problems("train"), run.problems("dev"), read_results(run.evaluation_file("test"))


def complaint_of(run):
    try:
        read(run)
    except PartwayError as error:
        return str(error)
    return None


@pytest.mark.volume
def test_a_broken_run_is_one_line(whole, tmp_path, unrendered):
    refused = 0
    for number in range(100):
        rng = random.Random(number)
        directory = shutil.copytree(whole, tmp_path / str(number))
        files = sorted(p for p in directory.rglob("*") if p.suffix in (".json", ".jsonl", ".yaml"))
        done = broken(file := rng.choice(files), rng)
        if (complaint := complaint_of(Run.at(directory))) is not None:
            refused += 1
            assert file.name in complaint, done
            assert "\n" not in complaint, done
        command = rng.choice([["report"], ["buffer"], ["explore", "--export", f"{tmp_path}/page{number}"]])
        ended = CliRunner().invoke(app, [command[0], str(directory), *command[1:]])
        assert ended.exception is None or isinstance(ended.exception, (SystemExit, PartwayError)), done
        shutil.rmtree(directory)
    assert refused > 30


@pytest.mark.parametrize("file", ["metrics.jsonl", "samples/00000001.jsonl", "final/buffer.jsonl"])
def test_a_line_that_was_cut_short_is_named(whole, tmp_path, file):
    directory = shutil.copytree(whole, tmp_path / "run")
    first, second, *others = (directory / file).read_text().splitlines(keepends=True)
    (directory / file).write_text("".join([first, second[:9] + "\n", *others]))
    with pytest.raises(RunError, match=rf"{file}, line 2: not JSON .*; was it changed\?"):
        read(Run.at(directory))

"""Every command and example of the documentation is run, or listed here with the reason why not."""

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from report_cases import leave_unpainted

from partway.cli import app

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = {  # pages whose blocks are run by other tests, or by nobody
    "api.md": "signatures, and examples of docstrings: tests/test_docs.py",
    "cli.md": "what --help prints: tests/test_docs.py",
    "extending.md": "tests/test_extending.py",
    "experiments.md": "hours, data sets that are not shipped; tests/runreports/test_shipped_runs.py",
}
NOT_RUN = {  # how a command or an example begins
    "git clone": "the network",
    "make install": "makes an environment",
    "source .venv": "makes an environment",
    "partway doctor\n": "says what the machine lacks: tests/end_to_end/test_command_line.py",
    "partway demo": "minutes: tests/end_to_end/test_demo_command.py",
    "partway data gsm8k": "a data set that is not shipped: tests/end_to_end/test_data_command.py",
    "partway evaluate --engine": "a server: tests/end_to_end/test_remote.py",
    "partway doctor --engine": "a server: tests/modelservers/test_http_engine.py",
    "partway train config.yaml --model_name_or_path Qwen": "a server: tests/end_to_end/test_servers.py",
    "partway train configs/modern": "a GPU",
    "#!/bin/bash\nmake install": "a GPU; on a simulated one: tests/end_to_end/test_device.py",
    "VLLM_SERVER_DEV_MODE=1 vllm": "a GPU",
    "python -m venv vllm-env": "the network",
    "export VLLM_SERVER_DEV_MODE": "a GPU",
    "CUDA_VISIBLE_DEVICES": "a GPU",
    "kill %1": "a GPU",
    "accelerate launch": "several processes: tests/end_to_end/test_distributed.py",
    "torchrun": "several processes: tests/end_to_end/test_distributed.py",
    "python -m benchmarks serve": "a server: tests/servers/test_vllm.py",
    "python llama.cpp": "the network",
    "partway compare --arms": "minutes: tests/end_to_end/test_compare_command.py",
    "partway compare arms.yaml": "minutes: tests/end_to_end/test_compare_command.py",
    "partway explore runs/first\n": "waits for a browser: tests/end_to_end/test_explore_command.py",
    "partway explore runs/first runs/few": "waits for a browser: tests/end_to_end/test_explore_command.py",
    "partway browse": "waits for keys: tests/runreports/test_browse.py",
    "partway data sql": "a data set that is not shipped: tests/end_to_end/test_sql_commands.py",
    "partway train configs/geoquery": "a data set that is not shipped: tests/end_to_end/test_sql_commands.py",
    "partway evaluate runs/geo_tiny": "a data set that is not shipped: tests/end_to_end/test_sql_commands.py",
    "partway report runs/geo_tiny": "a data set that is not shipped: tests/end_to_end/test_sql_commands.py",
    "partway evaluate smollm2 --language sql": "a data set that is not shipped",
    "partway trace query.sql": "a data set that is not shipped: tests/end_to_end/test_sql_commands.py",
    "from datasets import load_dataset": "TRL: tests/integrations/test_trl_sets.py",
}
SHORTER = {  # a reader has more patience than a test
    "--max_steps 20": "--max_steps 2",
    "max_steps=20, eval_steps=10, save_steps=10": "max_steps=2",
    "completion_length 64": "completion_length 16",
    "completion_length=64": "completion_length=16",
    "--samples 5": "--samples 5 --max-completion-length 16",
}
LANGUAGES = {"bash", "python", "yaml", "json", "text"}
PAGES = sorted(path.name for path in DOCS.glob("*.md") if path.name not in ELSEWHERE)
FIRST = ["first_run.md", "few_references.md"]  # the runs that other pages look at


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of every block of code."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.M | re.S)


def pieces(page: str) -> Iterator[tuple[str, str]]:
    """Single commands, without remarks, and whole Python examples."""
    for language, text in blocks(page):
        if language == "python" or text.startswith("#!"):
            yield language, text
        elif language == "bash":
            for line in re.sub(r" \\\n\s*", " ", text).splitlines():
                if command := re.sub(r"(^|\s+)# .*", "", line):
                    yield language, f"{command}\n"


def is_run(piece: str) -> bool:
    return not piece.startswith(tuple(NOT_RUN))


def run(language: str, piece: str) -> None:
    for told, done in SHORTER.items():
        piece = piece.replace(told, done)
    if language == "python":
        with contextlib.redirect_stdout(printed := io.StringIO()):
            exec(compile(piece, "example", "exec"), {"__name__": "__main__"})
        told = re.findall(r"^print\(.*\)  # (.+)$", piece, re.M)
        shown = printed.getvalue().splitlines()
        assert [line for line in told if "..." not in line and line not in shown] == []
        return
    program, *words = shlex.split(piece)
    assert program == "partway", f"{piece.strip()} is not ours: say in NOT_RUN why it is not run"
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, f"{piece}{result.output}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """Where somebody stands who has followed the first pages."""
    folder = tmp_path_factory.mktemp("reader")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        patch.setenv("PARTWAY_CACHE", str(folder / "cache"))
        leave_unpainted(patch)
        for page in FIRST:
            for language, piece in pieces(page):
                if is_run(piece):
                    run(language, piece)
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page not in FIRST])
def test_commands_and_examples_of_the_page_work(page: str, folder: Path):
    os.chdir(folder)
    for language, piece in pieces(page):
        if is_run(piece):
            run(language, piece)


@pytest.mark.slow
def test_the_first_pages_leave_runs_and_results(folder: Path):
    for name in ("runs/first/report/report.html", "runs/first/evaluations/test.json", "runs/few/final"):
        assert (folder / name).exists(), name


def test_what_is_not_run_is_in_the_documentation_and_most_is_run():
    told = [piece for page in PAGES for _, piece in pieces(page)]
    assert [start for start in NOT_RUN if not any(piece.startswith(start) for piece in told)] == []
    assert sum(map(is_run, told)) >= 30


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_its_language_and_data_can_be_read(page: str):
    assert {language for language, _ in blocks(page)} <= LANGUAGES
    for language, text in blocks(page):
        if language == "yaml":
            assert yaml.safe_load(text)
        if language == "json":
            assert json.loads(text)


def test_tests_that_are_named_as_a_reason_exist():
    named = re.findall(r"tests/[\w/]+\.py", " ".join([*NOT_RUN.values(), *ELSEWHERE.values()]))
    assert [name for name in named if not (DOCS.parent / name).exists()] == []

"""`partway evaluate` as a user calls it, on a tiny model and on a scripted server."""

import json
import signal
import subprocess
import sys
import threading

import pytest
from scripted_server import completions, scripted_server

from partway.problem import Problem
from partway.runs.rows import problems_digest
from partway.sampling.local_engine import LocalEngine

PROBLEMS = [Problem(f"p{n}", f"Tom has {n} apples. How many has he?", n, f"answer = {n}") for n in range(8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with problems and the directory of an untrained tiny model."""
    from partway.models.tiny import build_tiny_model

    folder = tmp_path_factory.mktemp("evaluate")
    write_problems(folder / "test.jsonl", PROBLEMS)
    build_tiny_model(
        PROBLEMS, hidden_size=16, layers=1, heads=2, context_length=64, directory=folder / "tiny"
    )
    return folder


def write_problems(path, problems):
    with path.open("w") as stream:
        for p in problems:
            row = {"id": p.id, "question": p.question, "answer": p.answer, "solution": p.reference.text}
            stream.write(json.dumps(row) + "\n")


def evaluate_tiny(partway, folder, out, *more):
    options = ("--samples", 6, "--max-completion-length", 12, "--out", out, *more)
    return partway("evaluate", folder / "tiny", "--problems", folder / "test.jsonl", *options)


def test_a_model_is_evaluated_into_a_table_and_files(partway, folder, tmp_path):
    code, shown, remarks = evaluate_tiny(partway, folder, tmp_path)
    assert code == 0, remarks
    assert "8 problems, 6 samples at temperature 0.8" in shown
    for metric in ("pass@1", "pass@1_at_temperature", "pass@6", "maj@5", "executable", "unique_alpha"):
        assert f"\n{metric} " in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tiny-test.json",
        "tiny-test.jsonl",
        "tiny-test.pass1.jsonl",
    ]
    rows = [json.loads(line) for line in (tmp_path / "tiny-test.jsonl").read_text().splitlines()]
    assert [row["task_id"] for row in rows] == [p.id for p in PROBLEMS for _ in range(6)]
    assert all(row.keys() >= {"completion", "passed", "result"} for row in rows)


def test_several_temperatures_are_drawn_with_a_result_and_a_row_each(partway, folder, tmp_path):
    several = ("--temperatures", "0.2,1.5", "--k", "1,6")
    code, shown, remarks = evaluate_tiny(partway, folder, tmp_path, *several)
    assert code == 0, remarks
    rows = [line.split() for line in shown.splitlines()]
    assert ["T", "pass@1", "pass@6", "maj@1", "maj@6", "unique"] in rows
    assert {"0.2", "1.5"} <= {row[0] for row in rows if row}
    code, alone, _ = evaluate_tiny(partway, folder, tmp_path / "alone", "--temperature", 1.5, "--json")
    found = json.loads((tmp_path / "tiny-test-T1.5.json").read_text())
    assert found["temperature"] == 1.5
    assert found["metrics"]["unique"] == json.loads(alone)["metrics"]["unique"]
    assert remarks.count("loading") <= 1
    code, _, remarks = evaluate_tiny(partway, folder, tmp_path, "--temperatures", "warm")
    assert (code, "try 0.4,0.8,1.2" in remarks) == (1, True)


def test_temperatures_stand_beside_chance_and_each_has_its_true_pass_at_k(partway, folder, tmp_path):
    options = ("--temperatures", "0.2,1.5", "--k", "1,6", "--chance", folder / "test.jsonl")
    code, shown, remarks = evaluate_tiny(partway, folder, tmp_path, *options)
    assert code == 0, remarks
    rows = [line.split("  ")[0].strip() or line.split()[0] for line in shown.splitlines() if line]
    assert [line for line in rows if line in {"0.2", "1.5", "chance", "without"}] == [
        one for row in ("0.2", "1.5", "chance") for one in (row, "without")
    ], shown
    floor = json.loads((tmp_path / "tiny-test-chance.json").read_text())
    assert (floor["model"], floor["chance"]) == (None, str(folder / "test.jsonl"))
    assert floor["metrics"]["pass@6"]["value"] == 1, "the only number of each question is its answer"
    assert f"{100 * floor['metrics']['true_pass@6']['value']:.1f}%" in shown
    code, shown, remarks = evaluate_tiny(partway, folder, tmp_path / "one", *options[2:], "--json")
    assert json.loads(shown)["chance"] is None, "the model's; that of chance is in its file"
    assert (tmp_path / "one" / "tiny-test-chance.json").exists()
    code, _, remarks = partway("evaluate", "--problems", folder / "test.jsonl", *options)
    assert (code, "chance has no temperature" in remarks) == (2, True)


def test_the_seed_decides_the_samples_and_json_is_one_object(partway, folder, tmp_path):
    printed = [
        evaluate_tiny(partway, folder, tmp_path / name, "--seed", seed, "--temperature", 2, "--json")[1]
        for name, seed in (("a", 5), ("b", 5), ("c", 6))
    ]
    files = [(tmp_path / name / "tiny-test.jsonl").read_text() for name in "abc"]
    assert json.loads(printed[0])["metrics"] == json.loads(printed[1])["metrics"]
    assert files[0] == files[1] != files[2]


def test_a_models_samples_do_not_depend_on_batches_or_order(folder, monkeypatch):
    from partway.evaluation import EvaluationPlan, evaluate
    from partway.models.engine import SamplingSettings
    from partway.models.loading import load_model
    from partway.sampling.local_engine import LocalEngine

    engine = LocalEngine(load_model(folder / "tiny"))
    plan = EvaluationPlan(samples=9, settings=SamplingSettings(temperature=2.0, max_completion_length=12))
    monkeypatch.setattr(sys.modules["partway.evaluation.evaluate"], "ROWS", 1)
    one = evaluate(engine, PROBLEMS, plan, batch_size=1)
    assert evaluate(engine, PROBLEMS, plan, batch_size=5) == one
    backwards = evaluate(engine, PROBLEMS[::-1], plan)
    assert (backwards.results[::-1], backwards.metrics) == (one.results, one.metrics)


def test_weights_are_of_the_type_that_is_asked_for(partway, folder, tmp_path, monkeypatch):
    types, stream = set(), LocalEngine.stream

    def seen(self, requests, settings, seed):
        types.add(str(self.model.dtype))
        return stream(self, requests, settings, seed)

    monkeypatch.setattr(LocalEngine, "stream", seen)
    code, _, remarks = evaluate_tiny(partway, folder, tmp_path, "--dtype", "bfloat16")
    assert code == 0, remarks
    assert types == {"torch.bfloat16"}
    assert json.loads((tmp_path / "tiny-test.json").read_text())["dtype"] == "bfloat16"


def test_finished_results_are_shown_again_and_others_are_not_overwritten(partway, folder, tmp_path):
    first = evaluate_tiny(partway, folder, tmp_path, "--json")
    written = (tmp_path / "tiny-test.jsonl").stat().st_mtime_ns
    again = evaluate_tiny(partway, folder, tmp_path, "--json")
    assert again[:2] == first[:2]
    assert (tmp_path / "tiny-test.jsonl").stat().st_mtime_ns == written
    code, _, error = evaluate_tiny(partway, folder, tmp_path, "--seed", 9)
    assert code == 1
    said = "results, seed is 0 there and 9 here; take another --name, or --overwrite them"
    assert said in error.splitlines()[-1]
    gone = (folder / "tiny").rename(folder / "away")  # nothing is loaded before that is said
    assert said in evaluate_tiny(partway, folder, tmp_path, "--seed", 9)[2].splitlines()[-1]
    gone.rename(folder / "tiny")
    assert evaluate_tiny(partway, folder, tmp_path, "--seed", 9, "--overwrite")[0] == 0


def test_the_results_of_a_run_go_into_the_run_and_use_its_problems(partway, folder, tmp_path):
    run = tmp_path / "run"
    (run / "problems").mkdir(parents=True)
    (run / "config.yaml").write_text("{}\n")
    write_problems(run / "problems" / "dev.jsonl", PROBLEMS[:2])
    (run / "final").symlink_to(folder / "tiny")
    code, shown, error = partway("evaluate", run, "--samples", 2, "--max-completion-length", 4, "--json")
    assert code == 0, error
    summary = json.loads(shown)
    assert summary["problems"] == 2
    assert summary["problems_file"] == str(run / "problems" / "dev.jsonl")
    assert summary["problems_sha256"] == problems_digest(PROBLEMS[:2])
    assert (run / "evaluations" / "dev.json").exists()


def test_the_problems_of_a_run_are_judged_as_in_training(partway, folder, tmp_path, monkeypatch):
    from partway.measuring import commands as command

    run = tmp_path / "run"
    (run / "problems").mkdir(parents=True)
    (run / "config.yaml").write_text("answer_variable: result\n")
    row = {"id": "bus", "question": "Which bus?", "answer": "72", "solution": "answer = 7\nresult = '72'"}
    (run / "problems" / "dev.jsonl").write_text(json.dumps(row) + "\n")
    (run / "final").symlink_to(folder / "tiny")
    asked = []
    monkeypatch.setattr(command, "opened_engine", lambda _, problems, say: asked.extend(problems) or 1 / 0)
    partway("evaluate", run, "--samples", 2)
    assert asked[0].answer == "72"
    assert asked[0].reference.steps == ("answer = 7", "result = '72'")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--k", "1,7"], "k is 7, expected 1 to 6, the number of samples"),
        (["--k", "1;5"], "--k is '1;5', expected numbers and commas"),
        (["--temperature", "-0.5"], "temperature is -0.5, expected a number of at least 0"),
        (["--top-p", "0"], "top_p is 0.0"),
        (["--samples", "-3"], "-3 is not in the range x>=1"),
        (["--samples", "0"], "0 is not in the range x>=1"),
        (["--extra-body", "{{}}"], "--extra-body needs --engine"),
        (["--tokenizer", "smollm2"], "--tokenizer needs --engine"),
        (["--concurrency", "2"], "--concurrency needs --engine"),
        (["--shots", "2"], "--shots needs --few-shot"),
        (
            ["--engine", "http://localhost:1/v1", "--device", "cpu"],
            "--device and --engine do not go together",
        ),
        (["--engine", "http://localhost:1/v1", "--tokenizer", "./none"], "./none: no such directory"),
        (["--few-shot", "x.jsonl"], "x.jsonl"),
        (["--problems", "{folder}/missing.jsonl"], "missing.jsonl"),
        (["--problems", "{folder}/tiny/model.safetensors"], "model.safetensors"),
        (["--engine", "localhost:1"], "localhost:1: not the address of a server"),
        (["--engine", "http://localhost:1/v1", "--extra-body", "[1]"], "--extra-body is '[1]'"),
        (["--engine", "http://localhost:1/v1", "--extra-body", '{{"min_p": NaN}}'], "--extra-body is"),
        (["--compare", "{folder}/test.jsonl", "{folder}/none"], "test.jsonl, line 1: not a sample"),
    ],
)
def test_bad_input_is_one_clear_line_before_any_work(partway, folder, tmp_path, arguments, complaint):
    arguments = [argument.format(folder=folder) for argument in arguments]
    code, shown, error = evaluate_tiny(partway, folder, tmp_path / "out", *arguments)
    assert (code in (1, 2), shown) == (True, "")
    error = error.removeprefix(f"partway: loading {folder / 'tiny'} (some seconds)\n")
    assert error.startswith("partway: error: ")
    assert error.count("\n") == 1
    assert complaint in error
    assert not (tmp_path / "out").exists()


def test_a_missing_model_a_directory_without_one_and_a_prompt_too_long_are_one_clear_line(
    partway, folder, tmp_path
):
    write_problems(tmp_path / "long.jsonl", [*PROBLEMS, Problem("long", "1 " * 64, 1, "answer = 1")])
    for model, problems, complaint in (
        (tmp_path / "nothing", folder / "test.jsonl", "nothing"),
        (tmp_path, folder / "test.jsonl", str(tmp_path)),
        (folder / "tiny", tmp_path / "long.jsonl", "problem long: a prompt of "),
    ):
        code, shown, error = partway("evaluate", model, "--problems", problems, "--out", tmp_path / "out")
        assert (code, shown) == (1, "")
        assert error.splitlines()[-1].startswith("partway: error: ")
        assert complaint in error.splitlines()[-1]
        assert not (tmp_path / "out").exists()


def test_no_model_or_no_problems_is_a_question_of_usage(partway, folder):
    assert partway("evaluate", "--problems", folder / "test.jsonl")[0] == 2
    assert partway("evaluate", folder / "tiny")[0] == 2


def test_two_results_are_compared(partway, folder, tmp_path):
    for name, right in (("a", "answer = 1\n"), ("b", "answer = 7\n")):
        with scripted_server(lambda number, payload, right=right: (200, completions(right))) as server:
            options = ("--samples", 2, "--out", tmp_path, "--name", name)
            words = ("--engine", server.url, "--problems", folder / "test.jsonl", *options)
            code, _, told = partway("evaluate", *words)
            assert code == 0
            result = tmp_path / f"{name}.json"
            assert told.splitlines()[-1] == f"partway: next: partway evaluate --compare {result} OTHER.json"
    code, shown, _ = partway("evaluate", "--compare", tmp_path / "a.json", tmp_path / "b.jsonl")
    assert code == 0
    assert "8 problems in common" in shown
    assert shown.split("pass@2")[1].split()[:3] == ["12.5%", "12.5%", "+0.0%"]
    assert shown.split("\nunique ")[1].splitlines()[0].split() == ["50.0%", "50.0%", "+0.0%", "-"]
    code, shown, _ = partway("evaluate", "--compare", tmp_path / "a.json", tmp_path / "b.json", "--json")
    assert json.loads(shown)["metrics"]["pass@2"]["difference"]["value"] == 0
    two = tmp_path / "two.jsonl"
    two.write_text("".join((folder / "test.jsonl").read_text().splitlines(keepends=True)[:2]))
    results = (tmp_path / "a.json", tmp_path / "b.json")
    assert "2 problems in common" in partway("evaluate", "--compare", *results, "--problems", two)[1]
    code, shown, _ = partway("evaluate", "--compare", *results, "--compare", *results[::-1])
    assert code == 0
    assert f"\nB: {results[1]}, {results[0]}\n" in shown
    assert shown.split("pass@2")[1].split()[:3] == ["12.5%", "12.5%", "+0.0%"]


def by_prompt_and_seed(payload):
    """The same request gets the same answers, some of them right."""
    number = int(payload["prompt"].split("has ")[1].split()[0])
    texts = (f"answer = {number * ((payload['seed'] + i) % 3)}\n" for i in range(payload["n"]))
    return 200, completions(*texts)


def remote_arguments(server, folder, out):
    return (
        *("evaluate", "some-model", "--engine", server.url, "--problems", folder / "test.jsonl"),
        *("--samples", 5, "--concurrency", 1, "--out", out, "--name", "test"),
    )


def files_in(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_server_that_fails_loses_no_finished_result(partway, folder, tmp_path):
    sorry = [12]  # the numbers of the requests that get no answer

    def script(number, payload):
        return (413, b"<html>Sorry</html>") if number in sorry else by_prompt_and_seed(payload)

    with scripted_server(script) as server:
        code, shown, error = partway(*remote_arguments(server, folder, tmp_path / "cut"))
        assert (code, shown) == (1, "")
        assert "the same command continues from there" in error
        assert "gave status 413: <html>Sorry</html>" in error.splitlines()[-1]
        assert partway(*remote_arguments(server, folder, tmp_path / "cut"))[0] == 0
        assert len(server.asked()) == 8 + 8 + 1  # every problem at both temperatures, and the failure
        assert partway(*remote_arguments(server, folder, tmp_path / "whole"))[0] == 0
    assert files_in(tmp_path / "cut") == files_in(tmp_path / "whole")


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_stopped_evaluation_continues_with_the_same_numbers(partway, folder, tmp_path, how, code):
    reached, go_on = threading.Event(), threading.Event()

    def script(number, payload):
        if number == 12:
            reached.set()
            go_on.wait(timeout=60)
        return by_prompt_and_seed(payload)

    with scripted_server(script) as server:
        arguments = remote_arguments(server, folder, tmp_path / "cut")
        process = subprocess.Popen([sys.executable, "-m", "partway", "-q", *map(str, arguments)])
        assert reached.wait(timeout=60)
        process.send_signal(how)
        assert process.wait(timeout=60) == code
        go_on.set()
        kept = len((tmp_path / "cut" / "test.partial.jsonl").read_text().splitlines())
        asked = len(server.asked())
        assert 1 <= kept < asked  # some answers may have come in that very moment, the one that waits had not
        assert partway(*arguments)[0] == 0
        assert len(server.asked()) == asked + 16 - kept
        assert partway(*remote_arguments(server, folder, tmp_path / "whole"))[0] == 0
    assert files_in(tmp_path / "cut") == files_in(tmp_path / "whole")


def test_a_server_that_does_not_sample_is_remarked_on(partway, folder, tmp_path):
    with scripted_server(lambda number, payload: (200, completions("answer = 1\n"))) as server:
        code, _, remarks = partway(*remote_arguments(server, folder, tmp_path))
    assert code == 0
    assert "does the server sample at all?" in remarks


def test_keys_are_written_nowhere(partway, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("PARTWAY_API_KEY", "sk-very-secret")
    with scripted_server(lambda number, payload: (200, completions("key = 'sk-very-secret'\n"))) as server:
        code, shown, remarks = partway(*remote_arguments(server, folder, tmp_path))
    assert code == 0
    assert set(server.authorizations) == {"Bearer sk-very-secret"}
    assert "secret" not in shown + remarks + "".join(files_in(tmp_path).values())


def test_a_killed_evaluation_keeps_every_problem_whose_samples_have_ended(
    partway, folder, tmp_path, monkeypatch
):
    stream, asked = LocalEngine.stream, []
    left = 3  # problems until it is killed

    def killed(self, requests, settings, seed):
        nonlocal left
        asked.append(len(requests))
        for index, samples in stream(self, requests, settings, seed):
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            yield index, samples

    monkeypatch.setattr(LocalEngine, "stream", killed)
    assert evaluate_tiny(partway, folder, tmp_path / "out")[0] == 130
    left = 100
    assert evaluate_tiny(partway, folder, tmp_path / "out")[0] == 0
    assert asked == [8, 5, 8], "the samples that were there are not drawn again; the others are of pass@1"
    evaluate_tiny(partway, folder, tmp_path / "whole")
    assert files_in(tmp_path / "out") == files_in(tmp_path / "whole")

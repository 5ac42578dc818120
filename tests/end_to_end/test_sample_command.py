"""`partway sample` as users call it, with a model that has learned one problem by heart."""

import io
import json
import os
from contextlib import nullcontext

import pytest
import torch
from sampling_cases import APPLES

from partway import trace
from partway.cli.trace_tables import Shown, show
from partway.language import PYTHON
from partway.models.tiny import build_tiny_model

QUESTION = APPLES.question


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The directory of a model that knows the apples' reference, but for an error now and then."""
    language_model = build_tiny_model([APPLES], hidden_size=32, layers=1)
    codec, network = language_model.codec, language_model.model
    prompt, target = codec.prompt(QUESTION), codec.target(APPLES.reference, finished=True)
    ids = torch.tensor([prompt + target])
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(40):
        logits = network(ids).logits[0, len(prompt) - 1 : -1]
        torch.nn.functional.cross_entropy(logits, torch.tensor(target)).backward()
        optimizer.step()
        optimizer.zero_grad()
    directory = tmp_path_factory.mktemp("models") / "apples"
    network.save_pretrained(directory)
    codec.tokenizer.save_pretrained(directory)
    return str(directory)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")


def test_solutions_are_shown_with_counts_traces_and_verdicts(model, partway):
    code, out, err = partway("sample", model, QUESTION, "--answer", "15", "-n", 40)
    loads, then = err.splitlines()
    assert (code, loads) == (0, f"partway: loading {model} (some seconds)")
    assert then == f"partway: next: partway train --model_name_or_path {model} --train_file PROBLEMS.jsonl"
    for shown in ("of 40, new fully correct", "answer = n0 + n1", "{3, 12, 15}", "answer 15"):
        assert shown in out


def test_a_sample_without_a_step_is_shown_as_it_was_written(capsys):
    text = "# three apples\n"
    show([Shown.of("1 of 1", text, trace(text), PYTHON)])
    shown = capsys.readouterr().out
    assert "# three apples" in shown
    assert "nothing to run" in shown


def test_a_sample_that_was_cut_off_in_its_first_line_says_so(capsys):
    show([Shown.of("1 of 1, cut off", "", trace(""), PYTHON)])
    assert "no whole step" in capsys.readouterr().out


def test_without_a_terminal_a_long_wait_for_samples_is_remarked_on(model, partway, monkeypatch):
    waits = []
    monkeypatch.setattr("partway.cli.sample.patience", lambda text: waits.append(text) or nullcontext())
    partway("sample", model, QUESTION, "-n", 1)
    assert waits == [f"sampling from {model}"]


def test_json_counts_every_sample_and_the_seed_repeats_them(model, partway):
    arguments = ["sample", model, QUESTION, "-n", 60, "--answer", "15", "--json"]
    code, out, _ = partway(*arguments)
    result = json.loads(out)
    assert code == 0
    assert (result["samples"], result["prefix"], result["question"]) == (60, [], QUESTION)
    counts = [solution["count"] for solution in result["solutions"]]
    assert sum(counts) == 60
    assert counts == sorted(counts, reverse=True)
    assert len(counts) > 1
    best = next(solution for solution in result["solutions"] if solution["answer"] == "15")
    assert best["verdict"] == "new_fully_correct"
    assert best["solution"] == APPLES.reference.text
    assert best["steps"][0] == {"step": "n0 = 12", "set": {"n0": "12"}, "state": "12"}
    assert partway(*arguments)[:2] == (0, out)
    assert partway(*arguments, "--seed", 1)[1] != out


def test_a_prefix_is_continued(model, partway):
    code, out, _ = partway("sample", model, QUESTION, "-n", 5, "--prefix", "n0=12;n1 = 3", "--json")
    result = json.loads(out)
    assert code == 0
    assert result["prefix"] == ["n0 = 12", "n1 = 3"]
    assert all(solution["solution"].startswith("n0 = 12\nn1 = 3") for solution in result["solutions"])
    assert {solution["verdict"] for solution in result["solutions"]} == {None}


def test_temperature_zero_gives_one_solution_and_lengths_are_kept(model, partway):
    _, out, _ = partway("sample", model, QUESTION, "--temperature", 0, "--json")
    [solution] = json.loads(out)["solutions"]
    assert (solution["count"], solution["finished"]) == (10, True)
    _, out, _ = partway("sample", model, QUESTION, "--temperature", 0, "--max-completion-length", 7)
    assert "10 of 10, cut off" in out
    assert "no answer" in out


def test_only_so_many_tables_are_shown(model, partway):
    _, out, _ = partway("sample", model, QUESTION, "--temperature", 3, "-n", 30, "--show", 2)
    assert out.count(" of 30") == 2
    assert "more, drawn" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./nowhere", "How many?"], "./nowhere: no such directory"),
        (["MODEL", " "], "the question is empty"),
        (["MODEL", "How many?", "--temperature", "-1"], "temperature is -1.0"),
        (["MODEL", "How many?", "--top-p", "0"], "top_p is 0.0"),
        (["MODEL", "How many?", "--max-completion-length", "0"], "max_completion_length is 0"),
        (["MODEL", "How many?", "--prefix", "n0 = ("], "--prefix, line 1, column"),
        (["MODEL", "How many?", "--prefix", "answer = 1"], "--prefix assigns 'answer' already"),
        (["MODEL", "many " * 600], "leaves no room in the context of 512 tokens"),
        ([os.path.dirname(__file__), "How many?"], "no model here (config.json is missing)"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_one(arguments, message, model, partway):
    code, out, err = partway(
        "sample", *(model if argument == "MODEL" else argument for argument in arguments)
    )
    assert (code, out) == (1, "")
    *before, last = err.splitlines()
    assert last.startswith("partway: error: ")
    assert message in last
    assert before in (
        [],
        [f"partway: loading {model} (some seconds)"],
        [f"partway: loading {arguments[0]} (some seconds)"],
    )


def asked(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_without_a_question_each_line_is_one_and_the_model_is_loaded_once(model, partway, monkeypatch):
    asked(monkeypatch, f"{QUESTION} = 15\n\n{QUESTION}\n")
    code, out, err = partway("sample", model, "-n", 40, "--json")
    first, second = map(json.loads, out.splitlines())
    assert (code, err) == (0, f"partway: loading {model} (some seconds)\n")
    assert (first["question"], second["question"]) == (QUESTION, QUESTION)
    assert first["solutions"][0]["verdict"] == "new_fully_correct"
    assert second["solutions"][0]["verdict"] is None, "nobody said what is right"


def test_on_a_terminal_there_is_a_prompt_and_the_end_of_input_ends_it(model, partway, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    prompts = []

    def typed(prompt):
        prompts.append(prompt)
        if len(prompts) > 2:
            raise EOFError
        return f"{QUESTION} = 15"

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("builtins.input", typed)
    code, out, _ = partway("sample", model, "-n", 10)
    assert code == 0
    assert prompts == ["question> "] * 3
    assert out.count("of 10, new fully correct") == 2

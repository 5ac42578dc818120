"""One problem as the page shows it: states that link solutions, where they deviate, the tree, the samples."""

import json
import math

import explorer_cases
import pytest
from explorer_cases import OTHER_WAY, PENS, WHEELS, Writer, finished_run

from partway.cli.trace_tables import values_by_step
from partway.evaluation import Evaluation, EvaluationPlan, ProblemResult
from partway.evaluation.samples import judge, whole
from partway.language import PYTHON, Failure, PythonLanguage, Trace, trace
from partway.language.named import language_of
from partway.measuring.journal import keep_problems
from partway.problem import Problem
from partway.solution import Solution
from runexplorer.explorer import Explorer
from runexplorer.problem_view import answer_of, tree_of
from runexplorer.run_parts import sampled_text
from runreports.trace_html import KnownStates
from straightline import canonical

TIMEOUT = Failure("timeout", "took more than 1 s", 1)


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    return Explorer(finished_run(tmp_path_factory.mktemp("run")))


@pytest.fixture(scope="module")
def wheels(explorer):
    return explorer.problem("train/1")


def texts(steps):
    return [step["text"] for step in steps]


def letters(view, steps):
    return [view["states"][step["state"]].get("letter", "") if "state" in step else None for step in steps]


def test_the_question_comes_with_its_answer_and_every_kept_solution(wheels):
    assert (wheels["question"], wheels["answer"]) == (WHEELS.question, "25")
    assert [solution["kind"] for solution in wheels["solutions"]] == [
        "reference",
        "fully_correct",
        "partially_correct",
    ]
    assert texts(wheels["solutions"][0]["steps"]) == list(WHEELS.reference.steps)


def test_tests_are_shown_as_tests_and_only_those_that_the_question_does_not_show():
    language = language_of({"language": "python-tests"})
    double = Problem("d", "Double it:\nassert double(2) == 4", ["import math", "assert double(2) == 4"])
    assert answer_of(double, language) == {"tests": ["import math"]}
    assert answer_of(Problem("n", "How many?", ["a"]), PYTHON) == {"answer": "['a']"}


def test_equal_states_have_the_same_letter_across_solutions(wheels):
    reference, swapped, partial = wheels["solutions"]
    assert letters(wheels, reference["steps"]) == ["A", "B", "C", "D", "E"]
    assert letters(wheels, swapped["steps"]) == ["A", "B", "C", "D", "E"]
    assert letters(wheels, partial["steps"]) == ["", "B"]


def test_a_state_says_where_it_is_reached(wheels):
    state = wheels["states"][wheels["solutions"][2]["steps"][1]["state"]]
    assert state["places"] == [(0, 2), (1, 2), (2, 2)]


def test_each_solution_is_marked_where_it_leaves_the_reference(wheels):
    assert [solution["deviates"] for solution in wheels["solutions"]] == [None, 3, 0]


def test_a_partial_solution_shows_how_its_sample_went_on(wheels):
    partial = wheels["solutions"][2]
    assert texts([*partial["steps"], *partial["rest"]["steps"]]) == OTHER_WAY.splitlines()
    assert partial["rest"]["failure"] is None


def test_the_probability_is_that_of_the_latest_sample_from_scratch(wheels):
    swapped = wheels["solutions"][1]
    assert swapped["drawn"] == 2
    assert swapped["probability"] == {
        "probability": math.exp(-0.5),
        "log_prob": -0.5,
        "step": 4,
        "is_guided": False,
    }


def test_without_log_probs_there_is_no_probability(explorer):
    assert explorer.problem("train/2")["solutions"][1]["probability"] is None


def test_the_tree_branches_where_steps_differ(wheels):
    shared, apart = wheels["tree"]
    assert (shared["solution"], shared["start"], shared["length"]) == (0, 0, 3)
    assert [(b["leaf"], b["start"], b["length"]) for b in shared["branches"]] == [(0, 3, 2), (1, 3, 2)]
    assert (apart["leaf"], apart["branches"]) == (2, [])


def test_a_tree_is_no_deeper_than_its_solutions_are_many():
    steps = tuple(f"n{i} = {i}" for i in range(3000))
    tree = tree_of([Solution(steps), Solution((*steps[:2000], "x = 1"))])
    assert [branch["length"] for branch in tree[0]["branches"]] == [1000, 1]


def test_self_samples_are_counted_by_verdict_and_grouped(wheels):
    samples = wheels["samples"]
    assert samples["drawn"] == 5
    assert samples["verdicts"] == {
        "new_fully_correct": 1,
        "known_fully_correct": 1,
        "new_partially_correct": 1,
        "incorrect": 1,
        "not_executable": 1,
    }
    first = samples["groups"][0]
    assert (first["count"], first["same_as"], first["first"], first["last"]) == (2, 1, 1, 4)
    broken = next(group for group in samples["groups"] if "written" in group)
    assert broken["written"] == "n0 = = 1\n"


def test_evaluation_samples_are_grouped_by_solution_with_verdicts(explorer):
    evaluation = explorer.problem("dev/1")["evaluation"]
    assert (evaluation["name"], evaluation["drawn"], evaluation["passed"]) == ("4", 6, 5)
    first, second = evaluation["groups"]
    assert (first["count"], first["is_right"], first["same_as"], first["pass1"]) == (5, True, 0, 1)
    assert (second["count"], second["is_right"], second["matching"]) == (1, False, 1)
    assert second["result"] == "failed: wrong answer 6"


def test_a_failing_sample_keeps_its_reason_and_its_text(explorer):
    groups = explorer.problem("dev/2")["evaluation"]["groups"]
    assert [group["failure"]["kind"] for group in groups] == ["error", "error"]
    assert "ZeroDivisionError" in groups[0]["failure"]["message"]
    assert groups[1]["written"] == "answer = ("


def rewritten(path, **changes):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, **changes}) + "\n" for row in rows))


def test_what_ran_out_of_time_is_known_from_the_data_and_not_run_again(tmp_path, monkeypatch):
    writer = Writer(tmp_path)
    loops = [("n0 = 5\nwhile True:\n    n0 = 1\n", 6)]
    with monkeypatch.context() as quick:
        quick.setattr(explorer_cases, "trace", lambda text: Trace(Solution(()), (), (), TIMEOUT))
        writer.evaluate(4, {"eggs": loops, "cats": loops})
    rewritten(tmp_path / "evaluations" / "step-4.jsonl", result="whatever it says")
    (tmp_path / "evaluations" / "step-4.pass1.jsonl").unlink()
    ran = []
    once = trace("n0 = 5")
    monkeypatch.setattr(
        "runexplorer.known.traced", lambda _, texts, __: ran.extend(texts) or [once] * len(texts)
    )
    (group,) = Explorer(writer.run).problem("dev/1")["evaluation"]["groups"]
    assert (ran, group["failure"]["kind"], group["failure"]["step"]) == ([], "timeout", 1)
    rewritten(tmp_path / "evaluations" / "step-4.jsonl", failure=None)
    Explorer(writer.run).problem("dev/1")
    assert ran == [loops[0][0]]


def test_another_evaluation_can_be_asked_for(tmp_path):
    writer = Writer(tmp_path)
    writer.evaluate(2, {"eggs": [("answer = 4\n", 6)], "cats": [("answer = 4\n", 6)]})
    writer.evaluate(4)
    explorer = Explorer(writer.run)
    assert explorer.problem("dev/1")["evaluation"]["name"] == "4"
    chosen = explorer.problem("dev/1", "2")["evaluation"]
    assert (chosen["name"], chosen["names"], chosen["passed"]) == ("2", ["2", "4"], 6)


def test_a_finished_run_shows_the_evaluation_of_the_step_its_final_model_is_from(tmp_path):
    writer = Writer(tmp_path)
    writer.evaluate(2, {"eggs": [("answer = 4\n", 6)], "cats": [("answer = 3\n", 6)]})
    writer.evaluate(4)
    writer.save("final")
    writer.run.append_metrics({"step": 4, "final_step": 2}, {"step": 4})
    explorer = Explorer(writer.run)
    assert explorer.facts()["final_step"] == 2
    assert explorer.problem("dev/1")["evaluation"]["name"] == "2"
    assert explorer.index.by_key["dev/2"].standing.score.passed == 6


def test_problems_of_other_splits_are_shown_with_their_evaluation(tmp_path):
    writer = Writer(tmp_path)
    writer.save("final")
    samples = (judge(PENS, whole("pens", "answer = 12", 3), trace("answer = 12")),)
    evaluation = Evaluation.of((ProblemResult("pens", samples),), EvaluationPlan(samples=3, ks=(1, 3)))
    summary = writer.run.evaluation_file("test")
    for name in ("test", "test-2"):  # the second of another checkpoint: the same problems, listed once
        keep_problems(writer.run.evaluation_file(name), [PENS])
    evaluation.write(summary, expand=False)
    explorer = Explorer(writer.run)
    assert explorer.facts()["splits"].keys() == {"train", "dev", "test"}
    assert explorer.facts()["splits"]["test"] == 1
    assert [(r["split"], r["solved"], r["of"]) for r in explorer.facts()["results"]] == [("test", 1, 1)]
    view = explorer.problem("test/1")["evaluation"]
    assert (view["name"], view["passed"]) == ("test", 3)


def test_without_a_reference_the_first_solution_found_takes_its_place(explorer):
    view = explorer.problem("train/3")
    assert (view["has_reference"], view["solutions"][0]["kind"]) == (False, "fully_correct")
    assert view["solutions"][0]["deviates"] is None


def test_nothing_kept_is_shown_as_nothing(tmp_path):
    view = Explorer(Writer(tmp_path).run).problem("train/3")
    assert (view["solutions"], view["states"], view["tree"]) == ([], [], [])


def test_a_typed_program_gets_states_a_verdict_and_its_longest_matching_prefix(explorer):
    view = explorer.trace("train/1", "n1 = 2\nn2 = 5\nn0 = 10\nanswer = n0 - n1")
    assert (view["verdict"], view["is_right"], view["answer"]) == ("new_partially_correct", False, "8")
    assert (view["matching"], view["places"], view["deviates"]) == (3, [(0, 3), (1, 3)], 0)
    assert [step["values"] for step in view["steps"]][1] == [("2", False), ("5", True)]


def test_typing_changes_no_buffer(explorer):
    for _ in range(2):
        assert explorer.trace("train/1", "answer = 25")["verdict"] == "new_fully_correct"


@pytest.mark.parametrize(
    ("text", "verdict", "message"),
    [
        ("n0 = 10\nanswer = n0 / 0", "known_partially_correct", "ZeroDivisionError"),
        ("n0 = (", "not_executable", "SyntaxError"),
        ("import os\nanswer = os.getpid()", "not_executable", "os"),
        ("", "not_executable", None),
    ],
)
def test_a_typed_program_that_fails_says_why(explorer, text, verdict, message):
    view = explorer.trace("train/1", text)
    assert view["verdict"] == verdict
    assert message is None or message in view["failure"]["message"]


def test_a_typed_loop_goes_through_the_workers(explorer):
    view = explorer.trace("train/1", "answer = 5\nfor i in range(2):\n    answer = answer + 10")
    assert view["steps"][0]["text"] == "answer = 5"
    view = explorer.trace("train/1", "t = 5\nfor i in range(2):\n    t += 10\nanswer = t")
    assert view["is_right"], view["failure"]


def values_at(length, found, language):
    return list(values_by_step(found, language))[length - 1]


def test_values_are_listed_by_size_and_the_new_ones_marked():
    found = trace("a = 10\nb = -3\nc = 10.5\nb = 10")
    assert values_at(4, found, PYTHON) == [("10", False), ("10", True), ("10.5", False)]
    as_set = PythonLanguage(state="set")
    assert values_at(2, trace("a = 10\nb = 10", as_set), as_set) == [("10", True)]


def test_values_of_other_kinds_come_after_numbers():
    found = trace("a = [1, 2]\nb = 'x'\nc = 3\nd = True")
    assert [text for text, _ in values_at(4, found, PYTHON)] == ["3", "'x'", "True", "[1, 2]"]


def test_values_set_and_removed_are_those_in_scope_after_each_step():
    found = trace("a = 1\nb = 2\ndel a\na = 3\nfor i in range(2):\n    b += i")
    for length in range(1, len(found.states) + 1):
        scope = found._replace(changes=found.changes[:length]).variables
        assert sorted(text for text, _ in values_at(length, found, PYTHON)) == sorted(
            map(canonical, scope.values())
        )


def test_of_long_values_and_of_many_only_so_much_is_shown():
    found = trace(f"n0 = 1 << 13000\n{', '.join(f'a{n}' for n in range(150))} = {', '.join('1' * 150)}")
    assert len(values_at(1, found, PYTHON)[0][0]) == 203
    assert values_at(2, found, PYTHON)[-1] == ("and 51 more", False)


def test_an_empty_state_links_nothing():
    known = KnownStates.of([("", "1"), ("", "2")])
    assert known.to_json() == [{"places": [(0, 2)], "letter": "A", "hue": 0}, {"places": [(1, 2)]}]


def test_another_answer_variable_ends_the_reference(tmp_path):
    problem = Problem("p", "q", 3, Solution(("n0 = 3", "result = n0")))
    writer = Writer(tmp_path, train=[], dev=[problem], config={"answer_variable": "result"})
    view = Explorer(writer.run).problem("dev/1")
    assert view["solutions"][0]["answer"] == "3"


def test_of_a_sample_that_was_cut_off_the_whole_lines_were_traced():
    row = {"prefix": "n0 = 3", "completion": "n1 = 4\nanswer = 1"}
    assert sampled_text({**row, "finished": False}) == "n0 = 3\nn1 = 4\n"
    assert sampled_text({**row, "finished": True}) == "n0 = 3\nn1 = 4\nanswer = 1"

"""What notebooks and the report show of traces, buffers and evaluations."""

import re
from html.parser import HTMLParser

from partway import Problem, SolutionBuffer, trace
from partway.buffer import Rules
from partway.evaluation import Evaluation, EvaluationPlan, ProblemResult
from partway.evaluation.samples import judge, whole
from partway.language.named import language_of
from runreports.trace_html import MAX_STEPS, KnownStates

HOSTILE = "<script>alert(1)</script>\"'&"
WHEELS = Problem("w", f"Oil {HOSTILE}", 25, "n0 = 10\nn1 = 2\nn2 = 5\nt0 = n0 * n1\nanswer = t0 + n2")
SWAPPED = "n0 = 10\nn1 = 2\nn2 = 5\nt0 = n1 * n0\nanswer = n2 + t0"
BEGINNING = "n1 = 2\nn0 = 10\nn2 = 5\nanswer = n0 - n2"


class Markup(HTMLParser):
    """The tags of some markup, which must close as they open, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data


def kept():
    buffer = SolutionBuffer.seeded(WHEELS)
    for step, text in enumerate([SWAPPED, BEGINNING], 1):
        buffer.consider(trace(text), step)
    return buffer


def test_a_trace_shows_each_step_with_its_state_and_where_it_failed():
    page = Markup(trace("a = 1\nb = a + 2\nc = b / 0\nd = 4")._repr_html_())
    assert "b = a + 2{1, 3}" in page.text
    assert "c = b / 0ZeroDivisionError: division by zero" in page.text
    assert page.text.endswith("d = 4not run")


def test_what_a_notebook_says_of_tables_does_not_win_over_the_looks_of_steps():
    style = trace("a = 1")._repr_html_().partition("</style>")[0]
    assert ".partway.partway {" in style
    assert ":where(.partway) {" not in style, "Jupyter's rules have the weight of two classes"
    assert "table-layout: auto" in style, "Jupyter's tables have columns of one width"


def test_a_buffer_does_not_repeat_tests_that_stand_in_the_question():
    tests = ["assert double(2) == 4", "assert double(3) == 6"]
    problem = Problem("d", f"Double it:\n{tests[0]}", tests, "def double(n):\n    return n * 2")
    buffer = SolutionBuffer.seeded(problem, language=language_of({"language": "python-tests"}))
    shown = Markup(buffer._repr_html_()).text
    assert [shown.count(test) for test in tests] == [1, 1]
    assert "answer [" not in shown, "the tests are not shown a second time, as an answer"


def test_text_that_does_not_parse_is_said_to_fail():
    assert "SyntaxError" in Markup(trace("a = 1\nb = =")._repr_html_()).text


def test_what_programs_write_and_compute_stays_text():
    shown = trace(f"a = {HOSTILE!r}\nb = 'x\u202ey'")._repr_html_() + kept()._repr_html_()
    page = Markup(shown)
    assert "script" not in {tag for tag, _ in page.tags}
    assert HOSTILE in page.text
    assert "\u202e" not in shown
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


def test_a_buffer_shows_its_solutions_side_by_side_with_the_letters_of_the_explorer():
    buffer = kept()
    page = Markup(buffer._repr_html_())
    names = [attributes["class"] for tag, attributes in page.tags if tag == "article"]
    assert names == ["card"] * 3
    solutions = buffer.to_json()["solutions"]
    letters = [row.get("letter") for row in KnownStates.of([s["states"] for s in solutions]).to_json()]
    shown = re.findall(r'class="letter">(\w+)<', buffer._repr_html_())
    assert set(shown) == {letter for letter in letters if letter}
    assert "ŷ2partially correctfound at step 2" in page.text


def test_a_solution_is_marked_where_it_leaves_the_reference():
    marked = re.findall(r'class="deviates"><td class="number">◆ (\d)', kept()._repr_html_())
    assert marked == ["4", "1"]


def test_a_solution_that_is_right_by_luck_says_why():
    problem = Problem("luck", "50 pens in 5 boxes. How many in one?", 10, "n0 = 50\nn1 = 5\nanswer = n0 / n1")
    buffer = SolutionBuffer.seeded(problem, Rules.of({"spurious": "flag"}))
    buffer.consider(trace("n0 = 5\nanswer = n0 + 5"), 1)
    text = Markup(buffer._repr_html_()).text
    assert re.search("Right answer by luck: with .* instead of .*, the reference", text)


def test_an_empty_buffer_and_a_long_program_are_shown_in_bounds():
    assert "No solution is kept yet" in SolutionBuffer.seeded(Problem("p", "q", 1))._repr_html_()
    long = trace("\n".join(f"x{n} = 1" for n in range(MAX_STEPS + 7)))._repr_html_()
    assert "and 7 more steps" in long
    assert long.count("<tr") == MAX_STEPS + 2


def test_an_evaluation_shows_metrics_with_intervals_and_the_hardest_problems_first():
    easy = ProblemResult("easy", (judge(WHEELS, whole("easy", SWAPPED, 4), trace(SWAPPED)),))
    hard = ProblemResult(HOSTILE, (judge(WHEELS, whole(HOSTILE, BEGINNING, 4), trace(BEGINNING)),))
    evaluation = Evaluation.of((easy, hard), EvaluationPlan(samples=4, ks=(1, 4)))
    page = Markup(evaluation._repr_html_())
    assert "pass@4" in page.text
    assert "50.0 0.0 to 100.0" in page.text
    assert page.text.index(HOSTILE) < page.text.index("easy")
    assert ("td", {"class": "number"}) in page.tags

"""What a run shows: a live bar on a terminal, plain lines elsewhere, nothing when quiet."""

import io
from types import SimpleNamespace

from rich.console import Console

from partway.evaluation import EvaluationProgress
from partway.tracking.display import Display, LiveDisplay, PlainDisplay, describe, display

LINE = {
    "loss": 12.3456,
    "samples/frac_new_fully_correct": 0.25,
    "samples/frac_incorrect": 0.75,
    "samples/frac_too_long": 0.0,
    "buffer/fcs_per_problem": 1.5,
    "buffer/pcs_per_problem": 0.25,
}


def state(step: int) -> SimpleNamespace:
    return SimpleNamespace(global_step=step, max_steps=100)


def shown_by(shows: Display) -> None:
    with shows:
        shows.on_train_begin(None, state(0), None)
        shows.on_step_end(None, state(10), None)
        shows.on_log(None, state(10), None, logs=LINE)
        shows.evaluating(EvaluationProgress(5, 20, 0))
        shows.on_log(None, state(10), None, logs={"eval_pass@1": 0.5, "eval_pass@1_at_temperature": 0.4})
        shows.say("resuming from checkpoint-5")


def test_a_line_has_loss_buffers_verdicts_and_pass_at_k():
    assert (
        describe(LINE) == "loss 12.346  kept 1.50 fully + 0.25 partially correct per problem  "
        "samples: new fully correct 25%, incorrect 75%"
    )
    assert describe({"eval_pass@1": 0.5, "eval_maj@5": 0.5}) == "pass@1 50.0%"
    solved = {"loss": 1.0, "buffer/problems_with_a_solution": 1234}
    assert describe(solved) == "loss 1.000  1,234 problems solved"


def test_plain_lines_go_to_standard_error(capsys):
    shown_by(display(quiet=False, console=Console(file=io.StringIO())))
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    assert lines[0].startswith("partway: training: step 10/100, ")
    assert lines[1].startswith("step 10/100  loss 12.346")
    assert lines[1].endswith("left)")
    assert lines[2:] == ["step 10/100  pass@1 50.0%", "partway: resuming from checkpoint-5"]


def test_a_plain_log_says_once_that_the_first_samples_are_drawn_and_then_after_every_silence(
    capsys, monkeypatch
):
    now = 1000.0
    monkeypatch.setattr("partway.tracking.display.time.monotonic", lambda: now)
    plain = display(quiet=False, console=Console(file=io.StringIO()))
    plain.trainer = SimpleNamespace(engine=SimpleNamespace(on_drawn=None))
    at = state(0)
    plain.on_train_begin(None, at, None)
    for drawn in (0, 5):
        plain.trainer.engine.on_drawn(drawn)
    assert capsys.readouterr().err == "partway: training: step 1/100, 0 samples drawn\n"
    now += 40
    at.global_step = 1
    plain.on_step_end(None, at, None)
    plain.trainer.engine.on_drawn(3)
    assert capsys.readouterr().err == "partway: training: step 1/100, 0.03 steps/s, 1:06:00 left\n"
    now += 40
    at.global_step = 2
    plain.on_log(None, at, None, logs={"loss": 1.0})
    plain.on_step_end(None, at, None)
    assert len(capsys.readouterr().err.splitlines()) == 1, "a line of metrics is enough"
    now += 40
    plain.evaluating(EvaluationProgress(10, 40, 0))
    now += 40
    plain.trainer.engine.on_drawn(7)
    plain.on_log(None, at, None, logs={"eval_pass@1": 0.5})
    now += 40
    plain.trainer.engine.on_drawn(1)
    assert capsys.readouterr().err.splitlines() == [
        "partway: evaluating: 10 of 40 samples drawn",
        "partway: evaluating: 17 of 40 samples drawn",
        "step 2/100  pass@1 50.0%",
        "partway: training: step 3/100, 1 sample drawn",
    ]


def test_a_terminal_gets_a_bar_that_leaves_it_as_it_was():
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    live = display(quiet=False, console=console)
    assert isinstance(live, LiveDisplay)
    shown_by(live)
    output = console.file.getvalue()
    assert "step 10/100" in output
    assert "pass@1 50.0%" in output
    assert output.count("\x1b[?25l") == output.count("\x1b[?25h") == 1, "the cursor is shown again"


def test_every_evaluation_leaves_a_line_above_the_bar_and_nothing_is_cut_at_80_columns():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    live = LiveDisplay(console)
    with live:
        live.on_train_begin(None, state(0), None)
        for step, share in ((10, 0.25), (20, 0.5)):
            live.on_log(None, state(step), None, logs=LINE)
            live.on_log(None, state(step), None, logs={"eval_pass@1": share, "eval_pass@100": 0.75})
        shown = live.bar.tasks[0].fields["text"]
        live.on_log(None, state(20), None, logs={"train_loss": 1.0, "final_step": 10})
    assert shown.startswith("step 20/100  ")
    assert " left  loss 12.346" in shown
    assert len(shown) <= 80 - len("training ") - 21
    output = console.file.getvalue()
    assert "step 10/100  loss 12.346  pass@1 25.0%, pass@100 75.0%" in output
    assert "step 20/100  loss 12.346  pass@1 50.0%, pass@100 75.0%" in output
    assert "step 20/100  finished; final/ is step 10\n" in output
    assert "\u2026" not in output, "nothing is cut"


def test_the_bar_says_how_far_an_evaluation_is():
    live = LiveDisplay(Console(file=io.StringIO(), force_terminal=True))
    live.evaluating(EvaluationProgress(5, 20, 0))
    assert (live.bar.tasks[0].description, live.bar.tasks[0].fields["text"]) == (
        "evaluating",
        "5 of 20 samples drawn",
    )


def test_quiet_shows_nothing(capsys):
    shows = display(quiet=True)
    assert not isinstance(shows, LiveDisplay | PlainDisplay)
    shown_by(shows)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_in_the_first_step_that_samples_are_drawn():
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    live = display(quiet=False, console=console)
    live.trainer = SimpleNamespace(engine=SimpleNamespace(on_drawn=None))
    with live:
        live.on_train_begin(None, state(0), None)
        assert live.bar.tasks[0].fields["text"] == "the first step"
        live.trainer.engine.on_drawn(12)
        assert live.bar.tasks[0].fields["text"] == "step 1/100, 12 samples drawn"
        live.on_step_end(None, state(1), None)
        live.trainer.engine.on_drawn(13)
        assert live.bar.tasks[0].fields["text"].startswith("step 1/100"), "later steps have more to say"

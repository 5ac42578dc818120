"""Progress: a bar on a terminal, a line now and then elsewhere, nothing when quiet."""

import io

from rich.console import Console

from partway.cli.progress import Bar


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def test_elsewhere_there_is_a_line_every_ten_seconds_and_one_at_the_end():
    clock, out = Clock(), console(terminal=False)
    with Bar("evaluating", "samples", console=out, clock=clock) as bar:
        for seconds, done in ((0, 100), (4, 140), (10, 200), (15, 250), (20, 300), (21, 1100)):
            clock.now = seconds
            bar.show(done, 1100, resumed=100)
    assert out.file.getvalue().splitlines() == [
        "evaluating: 200 of 1,100 samples, 10 per second, 0:01:30 left",
        "evaluating: 300 of 1,100 samples, 10 per second, 0:01:20 left",
        "evaluating: 1,100 of 1,100 samples, 47.6 per second, 0:00:00 left",
    ]


def test_a_terminal_has_a_bar_with_rate_and_time_left():
    clock, out = Clock(), console(terminal=True)
    with Bar("evaluating", "samples", console=out, clock=clock) as bar:
        clock.now = 10
        bar.show(50, 100)
    assert "50 of 100 samples, 5 per second, 0:00:10 left" in out.file.getvalue()


def test_quiet_is_quiet():
    for terminal in (True, False):
        out = console(terminal)
        with Bar("evaluating", "samples", console=out, quiet=True) as bar:
            bar.show(100, 100)
        assert out.file.getvalue() == ""

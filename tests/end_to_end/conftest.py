"""What end-to-end tests share: the command line in this process, training processes that start in no time."""

import sys
from collections.abc import Callable, Iterator
from threading import Timer

import pytest
from zygote import Zygote

from partway.cli import main


@pytest.fixture
def partway(monkeypatch, capfd) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: exit code, standard output, standard error.

    No wait is so long that it is remarked on, however busy the machine.
    """
    monkeypatch.setattr("partway.cli.options.Timer", lambda seconds, *what: Timer(3600.0, *what))

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["partway", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capfd.readouterr()

    return run


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """Starts training processes; imported once for all tests of a worker."""
    zygote = Zygote()
    with zygote.process:
        yield zygote

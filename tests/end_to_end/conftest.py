"""What end-to-end tests share: training processes that start in no time."""

from collections.abc import Iterator

import pytest

from zygote import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """Starts training processes; imported once for all tests of a worker."""
    zygote = Zygote()
    with zygote.process:
        yield zygote

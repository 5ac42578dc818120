"""The example of the README prints what the README says."""

import contextlib
import io
import re
import sys
from functools import partial
from pathlib import Path

import pytest

import stepbox


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls differ elsewhere")
def test_the_example_prints_what_it_says(monkeypatch):
    # Half a second of processor time may take long where others compute: the clock must not come first.
    monkeypatch.setattr(stepbox, "Limits", partial(stepbox.Limits, wall_seconds=300))
    text = (Path(stepbox.__file__).parent / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})
    assert printed.getvalue() == expected

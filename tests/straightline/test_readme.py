"""The example of the README prints what the README says."""

import contextlib
import io
import re
from pathlib import Path

import straightline


def test_the_example_prints_what_it_says():
    text = (Path(straightline.__file__).parent / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (expected,) = re.findall(r"```text\n(.*?)```", text, re.S)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(example, {})
    assert printed.getvalue() == expected

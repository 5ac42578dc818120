"""Trying what a model's files would have us do in a process of its own, which can be ended.

A chat template is a program, and a pattern can take longer than anybody lives to find nothing; where they
run, nothing can stop them. This process is for a first try: one that it does not survive is refused. What
waits for a certain question to go wrong is not found so.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.exceptions import TemplateRuntimeError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

CPU_SECONDS = 1.0  # however busy the machine is
SECONDS = 60.0  # where the system cannot limit the others
MEMORY = 1 << 30  # bytes, where the system can limit them


@lru_cache(maxsize=64)
def renders(template: str, special: tuple[tuple[str, str], ...]) -> bool:
    """Whether a chat template comes to an end, with a text or an error; `special` are the tokens it knows."""
    return _ends({"template": template, "special": dict(special)})


def matches(patterns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether it comes to an end to look for the patterns in the names."""
    return _ends({"patterns": list(patterns), "names": list(names)})


def _ends(task: dict[str, Any]) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-P", __file__],  # this file alone: the whole package takes longer to start
            input=json.dumps(task).encode(),
            timeout=SECONDS,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _main() -> None:
    with suppress(ImportError, AttributeError):  # as on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)  # its signal ends the process
    task = json.load(sys.stdin)
    try:
        if "template" in task:
            _render(**task)
        else:
            _match(**task)
    except (MemoryError, OverflowError):
        sys.exit(1)


def _match(patterns: list[str], names: list[str]) -> None:
    for pattern in patterns:
        with suppress(re.error):
            for name in names:
                re.fullmatch(pattern, name)
                re.match(rf"(.*\.)?({pattern})$", name)  # as peft looks for keys


class Generation(Extension):
    """Reads `{% generation %} ... {% endgeneration %}`, which marks what a model wrote."""

    def parse(self, parser: Any) -> Any:
        """What stands between the two."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


Generation.tags = {"generation"}


def refuse(message: str) -> NoReturn:
    """What a template calls to refuse a chat."""
    raise TemplateRuntimeError(message)


def _render(template: str, special: dict[str, str]) -> None:
    """Render the chats that are tried when a model is loaded, with what transformers gives a template."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = lambda value, **settings: json.dumps(value, **settings)
    environment.globals |= {"raise_exception": refuse, "strftime_now": datetime.now().strftime}
    turns = [{"role": role, "content": "?"} for role in ("system", "user", "assistant")]
    for chat in (turns[:2], turns[1:2], turns[1:]):
        with suppress(TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError):
            environment.from_string(template).render(
                messages=chat, add_generation_prompt=True, enable_thinking=False, **special
            )


if __name__ == "__main__":
    _main()

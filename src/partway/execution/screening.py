"""Screens short programs here, before they are sent: a process made for each would take far longer to do it.

Long ones are sent unscreened, and screened behind the walls: so screening keeps this process a few
milliseconds at most.
"""

from __future__ import annotations

from partway.caching import BoundedCache
from partway.execution.screen import Screened, refusals, screen
from partway.execution.sheets import NOTHING_REFUSED, UNSCREENED, Refusal
from partway.parsing import UNPARSABLE, parse_tree

MAX_CHARACTERS = 2_000  # of a program that is screened here
MAX_CACHED_BYTES = 16 << 20

_known = BoundedCache[str, Screened](MAX_CACHED_BYTES, lambda text, _: 1_000 + 8 * len(text))


def screened(steps: tuple[str, ...]) -> tuple[tuple[str, ...], Refusal]:
    """The steps that may run, and why the one behind them may not.

    >>> screened(("x = [1]", "y = x.__class__", "answer = 1"))
    (('x = [1]',), ('forbidden', "attribute '__class__' is not allowed"))
    """
    if sum(map(len, steps)) > MAX_CHARACTERS:
        return steps, UNSCREENED
    try:
        seen = [_screened(step) for step in steps]
    except UNPARSABLE:
        return steps, UNSCREENED  # the process made for it will say what is wrong
    for number, refusal in enumerate(refusals(seen)):
        if refusal is not None:
            return steps[:number], (refusal.kind, refusal.message)
    return steps, NOTHING_REFUSED


def _screened(step: str) -> Screened:
    """What the screen sees in the very text that will be compiled, not in the tree that it was made from."""
    seen = _known.get(step)
    if seen is None:
        seen = screen(parse_tree(step))
        _known.put(step, seen)
    return seen

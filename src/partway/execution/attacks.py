"""Attacks on the sandbox that a user can run on the own machine: `partway doctor` does.

Each sets `through` if it gets what it wants. Behind each runs a victim that must find its world unchanged.
"""

from __future__ import annotations

from partway.execution.programs import trace_all
from partway.execution.traces import Trace
from partway.execution.tracing import forget

ATTACKS = {
    "reach a real module through another super": "import math\n"
    "super = lambda: math\n"
    "z = super().__init__('os')\n"
    "from math import path\n"
    "through = path.os.getpid() > 0",
    "import a part that is not on the list": "from collections import abc\nthrough = True",
    "import what a module has imported": "from statistics import random\nthrough = True",
    "leave a changed class behind": "from fractions import Fraction\n"
    "match Fraction:\n    case object(register=r):\n        r(str)",
    "leave changed numbers behind": "from fractions import Fraction\n"
    "Fraction.numerator = property(lambda f: 42)",
    "leave another precision behind": "import decimal\ndecimal.getcontext().prec = 2",
    "take the memory of the next": "x = bytearray(180 << 20)",
    "take its process down": "x = iter([1])\n"
    "for i in range(10**5):\n    x = map(abs, x)\n"
    "y = next(x)\nthrough = True",
    "run for ever": "while True:\n    pass\nthrough = True",
    "keep the trainer busy with one product": "import math\nx = math.perm(1 << 13999, 1500)\nthrough = True",
    "keep the trainer busy with its values": "from decimal import Decimal\n"
    + "".join(f"x{n} = [Decimal('1E+3998')] * 1990\n" for n in range(5))
    + "through = True",
    "fill the trainer's memory with states": "".join(f"x{n} = 1 << 13999\n" for n in range(500))
    + "through = True",
    "lie about a value": "class N(int):\n    def __eq__(self, other):\n        return True\n"
    "    def __repr__(self):\n        return '42'\n"
    "through = N(1)",
    "make comparing fail": "from decimal import Decimal\nx = [Decimal('sNaN')]",
}
VICTIM = """
from fractions import Fraction
from decimal import Decimal
a = [Fraction(6, 4).numerator, str(Decimal(1) / 3), isinstance('a', Fraction), len(bytearray(90 << 20))]
answer = sum(i * i for i in range(10))
"""


def withstood() -> dict[str, bool]:
    """For every attack, whether it got nothing and left nothing behind."""
    forget()
    (alone,) = trace_all([VICTIM])
    assert alone.failure is None, f"the victim fails by itself: {alone.failure}"
    forget()
    texts = [
        text
        for number, attack in enumerate(ATTACKS.values())
        for text in (attack, f"{VICTIM}n = {number}")  # not the same text, which would be remembered
    ]
    traces = trace_all(texts)
    return {
        name: traces[2 * number].variables.get("through") is not True and _same(traces[2 * number + 1], alone)
        for number, name in enumerate(ATTACKS)
    }


def _same(found: Trace, alone: Trace) -> bool:
    return (found.states, found.failure, found.answer) == (alone.states, alone.failure, alone.answer)

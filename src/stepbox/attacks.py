"""Attacks on the walls around a worker, which anybody can try on their own machine.

Each sets `through` if it gets what it wants. After each runs a victim that must find its world unchanged.
"""

from __future__ import annotations

from stepbox.pool import run, steps

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
    "keep the caller busy with one product": "import math\nx = math.perm(1 << 13999, 1500)\nthrough = True",
    "keep the caller busy with its values": "from decimal import Decimal\n"
    + "".join(f"x{n} = [Decimal('1E+3998')] * 1990\n" for n in range(5))
    + "through = True",
    "fill the caller's memory with states": "".join(f"x{n} = 1 << 13999\n" for n in range(500))
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


def withstood(*, allow_weak: bool = False) -> dict[str, bool]:
    """For every attack, whether it got nothing and left nothing behind."""
    victim = steps(VICTIM)
    (alone,) = run([victim], allow_weak=allow_weak)
    assert alone.failure is None, f"the victim fails by itself: {alone.failure}"
    programs = [program for attack in ATTACKS.values() for program in (steps(attack), victim)]
    found = run(programs, allow_weak=allow_weak)
    return {
        name: attack.variables.get("through") is not True and after == alone
        for name, attack, after in zip(ATTACKS, found[::2], found[1::2], strict=True)
    }

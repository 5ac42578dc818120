"""MathQA's `linear_formula` as straight-line Python, by the rules of MathQA-Python (Austin et al., 2021).

One operation becomes one line `tK = ...`, the last one `answer = ...`, below the numbers of the problem.
Where the published code called scipy or a lambda, `math` and plain arithmetic compute the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

NUMBER = re.compile(r"[-+]?[.]?[\d]+(?:,\d\d\d)*[\.]?\d*(?:[eE][-+]?\d+)?")

_HALF_PERIMETER = "({0} + {1} + {2}) / 2"

# Bounds such as an exponent of 5 or the factorial of 15 at most are the published ones.
# The published code left out the brackets of speed_in_still_water and stream_speed, so that no problem with
# them passed its checks; they are left out here for the same selection.
OPERATIONS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "speed": "{0} / {1}",
    "inverse": "1 / {0}",
    "negate": "-{0}",
    "power": "{0}**min({1}, 5)",
    "sqrt": "math.sqrt(max(0, {0}))",
    "log": "math.log(max(1e-5, {0}), 2)",
    "floor": "math.floor({0})",
    "max": "max({0}, {1})",
    "reminder": "{0} % {1}",
    "factorial": "math.factorial(min(15, int({0})))",
    "gcd": "math.gcd(int({0}), int({1}))",
    "lcm": "math.lcm(int({0}), int({1}))",
    "choose": "math.comb(int({0}), int({1}))",
    "permutation": "math.factorial(int(max({0}, {1}))) / math.factorial(int(max({0}, {1}) - min({0}, {1})))",
    "count_interval": "{0} - {1} + 1",
    "percent": "{0} / 100 * {1}",
    "from_percent": "{0} / 100",
    "gain_percent": "100 + {0}",
    "loss_percent": "100 - {0}",
    "negate_percent": "100 - {0}",
    "price_after_gain": "(1 + {0} / 100) * {1}",
    "p_after_gain": "(1 + {0} / 100) * {1}",
    "price_after_loss": "(1 - {0} / 100) * {1}",
    "original_price_before_gain": "{1} * 100 / (100 + {0})",
    "original_price_before_loss": "{1} * 100 / (100 + 1e-5 - {0})",
    "negate_prob": "1 - {0}",
    "union_prob": "{0} + {1} - {2}",
    "combined_work": "1 / (min({0}, 1 / {0}) + min({1}, 1 / {1}))",
    "find_work": "1 / abs(min({0}, 1 / {0}) - min({1}, 1 / {1}))",
    "speed_ratio_steel_to_stream": "({0} + {1}) / ({0} - {1})",
    "circle_area": "math.pi * {0}**2",
    "circumface": "2 * math.pi * {0}",
    "circle_arc": "{0} / 360 * math.pi * 2 * {1}",
    "circle_sector_area": "{1} / 360 * math.pi * {0}**2",
    "semi_circle_perimiter": "math.pi * {0} + 2 * {0}",
    "square_area": "{0}**2",
    "square_perimeter": "4 * {0}",
    "rhombus_perimeter": "4 * {0}",
    "square_edge_by_perimeter": "{0} / 4",
    "square_edge_by_area": "math.sqrt({0})",
    "rectangle_area": "{0} * {1}",
    "rectangle_perimeter": "2 * ({0} + {1})",
    "rhombus_area": "{0} * {1} / 2",
    "triangle_area": "{0} * {1} / 2",
    "triangle_perimeter": "{0} + {1} + {2}",
    "triangle_area_three_edges": (
        f"math.sqrt(max(0, {_HALF_PERIMETER} * ({_HALF_PERIMETER} - {{0}})"
        f" * ({_HALF_PERIMETER} - {{1}}) * ({_HALF_PERIMETER} - {{2}})))"
    ),
    "quadrilateral_area": "{0} * ({1} + {2}) / 2",
    "trapezium_area": "{0} * ({1} + {2}) / 2",
    "diagonal": "math.sqrt({0}**2 + {1}**2)",
    "sine": "math.sin({0})",
    "cosine": "math.cos({0})",
    "volume_cube": "{0}**3",
    "cube_edge_by_volume": "{0}**(1 / 3)",
    "surface_cube": "6 * {0}**2",
    "volume_rectangular_prism": "{0} * {1} * {2}",
    "surface_rectangular_prism": "2 * ({0} * {1} + {0} * {2} + {1} * {2})",
    "volume_cylinder": "math.pi * {0}**2 * {1}",
    "volume_cone": "math.pi * {0}**2 * {1} / 3",
    "volume_sphere": "4 / 3 * math.pi * {0}**3",
    "surface_sphere": "4 * math.pi * {0}**2",
}


class NoFormula(Exception):
    """A formula that the rules do not turn into a program."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def numbers_in(problem: str) -> list[float]:
    """Every number of the problem's text, in order: n0, n1, ...

    >>> numbers_in("4,000 apples at $ .5 each")
    [4000.0, 0.5]
    """
    return [number_value(number) for number in NUMBER.findall(problem)]


def number_value(text: str) -> float:
    """The value of a match of NUMBER."""
    try:
        return float(text.replace(",", ""))
    except ValueError:  # .5.3 is matched, too
        raise NoFormula("number not readable", text) from None


def program_of(formula: str, numbers: Sequence[float]) -> str:
    """The program that computes `formula` from the problem's numbers.

    >>> print(program_of("add(n0,const_100)|divide(#0,n1)|", [5.0, 2.0]))
    n0 = 5.0
    n1 = 2.0
    t0 = n0 + 100.0
    answer = t0 / n1
    """
    calls = formula.removesuffix("|").split("|")
    lines = []
    for index, call in enumerate(calls):
        target = f"t{index}" if index < len(calls) - 1 else "answer"
        lines.append(f"{target} = {_expression(call, len(numbers), index)}")
    imports = ["import math"] if any("math." in line for line in lines) else []
    return "\n".join([*imports, *(f"n{index} = {number}" for index, number in enumerate(numbers)), *lines])


def _expression(call: str, numbers: int, results: int) -> str:
    name, _, rest = call.partition("(")
    if name not in OPERATIONS:
        raise NoFormula("operation not listed", name)
    arguments = [_argument(text.strip(), numbers, results) for text in rest.partition(")")[0].split(",")]
    try:
        return OPERATIONS[name].format(*arguments)
    except IndexError:
        raise NoFormula("formula not readable", f"too few arguments in {call}") from None


def _argument(text: str, numbers: int, results: int) -> str:
    """`#k` is result k, `nk` number k of the problem, `const_...` a constant."""
    reference = re.fullmatch(r"([#n])(\d+)", text)
    if reference:
        kind, index = reference[1], int(reference[2])
        if index >= (results if kind == "#" else numbers):  # a formula may point at what is not there yet
            raise NoFormula("formula not readable", f"there is no {text}")
        return f"t{index}" if kind == "#" else text
    return str(_constant(text))


def _constant(text: str) -> float:
    if text == "const_pi":
        return math.pi
    if text == "const_deg_to_rad":
        return math.pi / 180
    groups = NUMBER.findall(text)
    if not text.startswith("const_") or not groups:
        raise NoFormula("formula not readable", f"there is no {text!r}")
    # const_0_25 is 0.25, const_100 is 100.
    return float(groups[0]) + (float(f"0.{groups[1]}") if len(groups) > 1 else 0.0)

"""Raw files to problems: GSM8K, MathQA, files of your own, and problems written by a generator.

Names are imported when first used, so that reading a file of problems loads no converter.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partway.datasets.conversion import Conversion as Conversion
    from partway.datasets.conversion import Reject as Reject
    from partway.datasets.gsm8k import convert_gsm8k as convert_gsm8k
    from partway.datasets.mathqa import convert_mathqa as convert_mathqa
    from partway.datasets.mathqa import filter_mathqa as filter_mathqa
    from partway.datasets.problem_files import check_problems as check_problems
    from partway.datasets.problem_files import load_problems as load_problems
    from partway.datasets.problem_files import write_problems as write_problems
    from partway.datasets.storyproblems import generate_splits as generate_splits

_HOMES = {
    "Conversion": "conversion",
    "Reject": "conversion",
    "check_problems": "problem_files",
    "convert_gsm8k": "gsm8k",
    "convert_mathqa": "mathqa",
    "filter_mathqa": "mathqa",
    "generate_splits": "storyproblems",
    "load_problems": "problem_files",
    "write_problems": "problem_files",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"partway.datasets.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'partway.datasets' has no attribute {name!r}")

"""MathQA-Python (Austin et al., 2021) from the files of MathQA, and the paper's filtered version of it."""

from mathdata.mathqa.filtered import filter_mathqa, read_split_index
from mathdata.mathqa.selection import convert_mathqa

__all__ = ["convert_mathqa", "filter_mathqa", "read_split_index"]

"""GSM8K to problems: programs that follow, step by step, from the written solutions."""

from partway.datasets.gsm8k.converting import convert_gsm8k

__all__ = ["convert_gsm8k"]

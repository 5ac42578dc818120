"""Text to tokens and back, in one documented format: `# question`, then one step per line.

Solutions are tokenised step by step and concatenated, so the tokens of a prefix are a prefix of the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from partway.solution import Solution


@dataclass(frozen=True)
class Codec:
    """A Hugging Face tokenizer with the end-of-text and pad tokens it is used with.

    `bos_id` is set only if the tokenizer itself begins its texts with that token.
    """

    tokenizer: Any
    eos_id: int
    pad_id: int
    bos_id: int | None = None

    def prompt(self, question: str) -> list[int]:
        """The tokens of `# question` and a newline; runs of white space in the question become one space."""
        start = [] if self.bos_id is None else [self.bos_id]
        return start + self.encode(f"# {' '.join(question.split())}\n")

    def steps(self, solution: Solution) -> list[int]:
        """The tokens of every step with its newline, made step by step."""
        return [token for step in solution.steps for token in self.encode(f"{step}\n")]

    def target(self, solution: Solution, finished: bool) -> list[int]:
        """What the model learns: the steps and, behind a finished solution, the end-of-text token."""
        return [*self.steps(solution), self.eos_id] if finished else self.steps(solution)

    def encode(self, text: str) -> list[int]:
        """The tokens of `text` alone; the spelling of a special token inside it is ordinary text."""
        tokens: list[int] = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, to the letter."""
        text: str = self.tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
        return text

    def token_texts(self, size: int) -> list[str]:
        """The text of each of the tokens 0 .. size-1 by itself."""
        texts: list[str] = self.tokenizer.batch_decode([[token] for token in range(size)])
        return texts

    @classmethod
    def of(cls, tokenizer: Any) -> Codec:
        """The codec around `tokenizer`."""
        pad_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        starts = tokenizer("1")["input_ids"][0] == tokenizer.bos_token_id
        return cls(tokenizer, tokenizer.eos_token_id, pad_id, tokenizer.bos_token_id if starts else None)

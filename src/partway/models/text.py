"""Text to tokens and back, in one documented format: `# question`, then one step per line.

Solutions are tokenised step by step and concatenated, so the tokens of a prefix are a prefix of the tokens,
whatever a tokenizer would merge across lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from partway.errors import ModelError
from partway.solution import Solution

MAX_REMEMBERED = 1 << 16
PROBE = Solution(
    ("n0 = 10", "n1 = 2.5", "if n0 > 9:\n    n1 = n1 * 2", "t0 = (n0 - n1) ** 2 // 3", "answer = round(t0)")
)


def prompt_text(question: str) -> str:
    """What the model reads before it writes.

    >>> prompt_text("How many  wheels\\nhave 2 bicycles?")
    '# How many wheels have 2 bicycles?\\n'
    """
    return f"# {' '.join(question.split())}\n"


@dataclass(frozen=True)
class Codec:
    """A Hugging Face tokenizer with the end-of-text and pad tokens it is used with.

    `bos_id` is set only if the tokenizer itself begins its texts with that token. `anchor` is the tokens of a
    newline for tokenizers that put a space before every text: they are given texts behind a newline.
    """

    tokenizer: Any
    eos_id: int
    pad_id: int
    bos_id: int | None = None
    anchor: tuple[int, ...] = ()
    _remembered: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, tokenizer: Any, *, eos_id: int | None = None, vocabulary_size: int | None = None) -> Codec:
        """The codec around `tokenizer`, checked to give texts back to the letter.

        `eos_id` is used if the tokenizer has no end-of-text token of its own. Padding is never seen by a
        model, so any token will do for it.
        """
        end = eos_id if tokenizer.eos_token_id is None else tokenizer.eos_token_id
        if end is None:
            raise ModelError("its tokenizer has no end-of-text token; set eos_token in tokenizer_config.json")
        pad = end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        start = tokenizer.bos_token_id
        if start is not None and tokenizer("1")["input_ids"][:1] != [start]:
            start = None
        newline = tuple(tokenizer.encode("\n", add_special_tokens=False))
        for anchor in ((), newline):
            codec = cls(tokenizer, end, pad, start, anchor)
            if codec._gives_back(PROBE):
                codec._check_size(vocabulary_size)
                return codec
        raise ModelError(
            "its tokenizer does not give a solution back to the letter when steps are tokenised one by one; "
            "use a model whose tokenizer keeps case, spaces and newlines"
        )

    def prompt(self, question: str) -> list[int]:
        """The tokens of `# question` and a newline; runs of white space in the question become one space."""
        start = [] if self.bos_id is None else [self.bos_id]
        return start + self.encode(prompt_text(question))

    def steps(self, solution: Solution) -> list[int]:
        """The tokens of every step with its newline, made step by step."""
        return [token for step in solution.steps for token in self._remember(f"{step}\n")]

    def target(self, solution: Solution, finished: bool) -> list[int]:
        """What the model learns: the steps and, behind a finished solution, the end-of-text token."""
        return [*self.steps(solution), self.eos_id] if finished else self.steps(solution)

    def encode(self, text: str) -> list[int]:
        """The tokens of `text` alone; the spelling of a special token inside it is ordinary text."""
        tokens: list[int] = self.tokenizer.encode(
            "\n" + text if self.anchor else text,
            add_special_tokens=False,
            split_special_tokens=True,
            verbose=False,
        )
        start = len(self.anchor)
        if tuple(tokens[:start]) != self.anchor:
            raise ModelError(f"its tokenizer merges the newline before {text[:20]!r} with what follows")
        return tokens[start:]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, to the letter."""
        text: str = self.tokenizer.decode([*self.anchor, *tokens], clean_up_tokenization_spaces=False)
        return text[1:] if self.anchor else text

    def token_texts(self, size: int) -> list[str]:
        """The text of each of the tokens 0 .. size-1 by itself."""
        return [self.decode([token]) for token in range(size)]

    def _remember(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that will come again, such as a step."""
        if len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.clear()
        if text not in self._remembered:
            self._remembered[text] = tuple(self.encode(text))
        return self._remembered[text]

    def _gives_back(self, solution: Solution) -> bool:
        text = "".join(f"{step}\n" for step in solution.steps)
        prompt = self.encode("# How many?\n")
        return self.decode(self.steps(solution)) == text and self.decode(prompt + self.steps(solution)) == (
            f"# How many?\n{text}"
        )

    def _check_size(self, vocabulary_size: int | None) -> None:
        largest = max(self.eos_id, self.pad_id, self.bos_id or 0, *self.steps(PROBE))
        if vocabulary_size is not None and largest >= vocabulary_size:
            raise ModelError(
                f"its tokenizer makes token {largest}, but the model knows {vocabulary_size} tokens; "
                "use the tokenizer the model was trained with"
            )

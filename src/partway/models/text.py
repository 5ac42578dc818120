"""Turns text into tokens and back: a question as the prompt has it, then one step per line.

Solutions are tokenised step by step and concatenated, so the tokens of a prefix are a prefix of the tokens,
whatever a tokenizer would merge across lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol

import numpy as np
from jinja2 import TemplateError

from partway.errors import ModelError, ProblemError, shown
from partway.language import PYTHON, Language
from partway.solution import Solution

_ENCODING = Lock()  # a tokenizer keeps `split_special_tokens` of the last call; servers are asked in threads

MAX_REMEMBERED = 1 << 16
PROBE = Solution(
    ("n0 = 10", "n1 = 2.5", "if n0 > 9:\n    n1 = n1 * 2", "t0 = (n0 - n1) ** 2 // 3", "answer = round(t0)")
)
ANSWER = "Q6T1"  # stands for an answer while a template is tried; no template writes it itself
MARK = re.compile(r"\{#- partway: an answer closes with (\S*) -#\}")
COMMENT = re.compile(r"\{#- partway: a question is a comment, (.+?)-#\}")


class Prompt(Protocol):
    """How a question is put to a model."""

    @property
    def closing(self) -> str:
        """What stands between the last step and the end-of-text token of a finished answer."""

    @property
    def is_markup(self) -> bool:
        """Whether special tokens spelled in the text are meant as such."""

    def text(self, question: str) -> str:
        """What the model is to continue with a solution of `question`."""


@dataclass(frozen=True)
class PlainPrompt:
    """The question as a comment, after `beginning`: what a model without a chat template is trained on.

    >>> print(PlainPrompt().text("And  for\\n4?"), end="")
    # And for 4?
    """

    beginning: str = ""
    comment: str = PYTHON.instruction.comment
    closing: str = ""
    is_markup: bool = False

    def text(self, question: str) -> str:
        return f"{self.beginning}{self.comment}{' '.join(question.split())}\n"


PLAIN = PlainPrompt()


def plain_prompt(language: Language) -> PlainPrompt:
    """The question as a comment of the language, and nothing else."""
    return PlainPrompt(comment=language.instruction.comment)


@dataclass(frozen=True)
class TemplatePrompt:
    """A template that bears our mark, as the tokenizer renders it."""

    tokenizer: Any
    closing: str
    is_markup: bool = True

    def text(self, question: str) -> str:
        chat = [{"role": "user", "content": question.strip()}]
        try:
            rendered: str = self.tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # a template is a program, which can fail with anything
            raise ProblemError(f"the chat template fails for {shown(question)}: {error}") from error
        return rendered


def prompt_of(tokenizer: Any) -> Prompt:
    """How the model of this tokenizer is asked: through a template that bears our mark, else plainly."""
    template = getattr(tokenizer, "chat_template", None)
    template = template if isinstance(template, str) else ""
    if comment := COMMENT.search(template):
        return PlainPrompt(comment=comment.group(1))
    mark = MARK.search(template)
    return PLAIN if mark is None else TemplatePrompt(tokenizer, mark.group(1))


@dataclass(frozen=True)
class Codec:
    """A Hugging Face tokenizer with the prompt and the end-of-text and pad tokens it is used with.

    `bos_id` is set only if the tokenizer itself begins its texts with that token. `anchor` is the tokens of a
    newline for tokenizers that put a space before every text: they are given texts after a newline.
    """

    tokenizer: Any
    eos_id: int
    pad_id: int
    bos_id: int | None = None
    anchor: tuple[int, ...] = ()
    question: Prompt = PLAIN
    _remembered: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, tokenizer: Any, *, eos_id: int | None = None, vocabulary_size: int | None = None) -> Codec:
        """The codec around `tokenizer`, checked to give texts back to the letter.

        `eos_id` is used if the tokenizer has no end-of-text token of its own; in a chat, the token that ends
        a turn. Padding is never seen by a model, so any token will do for it.
        """
        end = eos_id if tokenizer.eos_token_id is None else tokenizer.eos_token_id
        end = end if (turn := end_of_turn(tokenizer)) is None else turn
        if end is None:
            raise ModelError("its tokenizer has no end-of-text token; set eos_token in tokenizer_config.json")
        pad = end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        start = tokenizer.bos_token_id
        # Many tokenizers name such a token and never write it.
        if start is not None and tokenizer("1")["input_ids"][:1] != [start]:
            start = None
        newline = tuple(tokenizer.encode("\n", add_special_tokens=False))
        for anchor in ((), newline):
            codec = cls(tokenizer, end, pad, start, anchor, prompt_of(tokenizer))
            if codec._gives_back(PROBE):
                codec._check_size(vocabulary_size)
                return codec
        raise ModelError(
            "its tokenizer does not give a solution back to the letter when steps are tokenised one by one; "
            "use a model whose tokenizer keeps case, spaces and newlines"
        )

    def prompt(self, question: str) -> list[int]:
        """The tokens that the model reads before it writes a solution."""
        text = self.question.text(question)
        if self.question.is_markup:
            return self._encode_markup(text, question)
        start = [] if self.bos_id is None else [self.bos_id]
        return start + self.encode(text)

    def _encode_markup(self, text: str, question: str) -> list[int]:
        """The tokens of a chat; a special token that the question itself spells is ordinary text."""
        spelled = any(token in question for token in self.tokenizer.all_special_tokens)
        pieces = text.partition(question.strip()) if spelled else (text, "", "")
        with _ENCODING:
            before, after = (
                self.tokenizer.encode(piece, add_special_tokens=False) if piece else []
                for piece in (pieces[0], pieces[2])
            )
        return [*before, *self.encode(pieces[1]), *after] if pieces[1] else [*before]

    def steps(self, solution: Solution) -> list[int]:
        """The tokens of every step with its newline, made step by step."""
        return [token for step in solution.steps for token in self._remember(f"{step}\n")]

    def target(self, solution: Solution, finished: bool) -> list[int]:
        """What the model learns: the steps and, after a finished solution, how an answer ends."""
        return [*self.steps(solution), *self.closing] if finished else self.steps(solution)

    @property
    def closing(self) -> tuple[int, ...]:
        """The tokens after a finished solution; the last one is the end-of-text token."""
        return (*self._remember(self.question.closing), self.eos_id)

    def solution_text(self, tokens: Sequence[int]) -> str:
        """The solution in what a model wrote: all of it, or up to the line that closes the answer."""
        text = self.decode(tokens)
        end = self.end_of_answer(text)
        return text if end is None else text[:end]

    def end_of_answer(self, text: str) -> int | None:
        """Where the line begins that closes the answer (a block of code, say); None if there is none."""
        closing = self.question.closing
        if not closing or closing not in text:
            return None
        return 0 if text.startswith(closing) else (text.find(f"\n{closing}") + 1 or None)

    def encode(self, text: str) -> list[int]:
        """The tokens of `text` alone; the spelling of a special token inside it is ordinary text."""
        if not text:
            return []
        given = "\n" + text if self.anchor else text
        with _ENCODING:
            tokens: list[int] = self.tokenizer.encode(
                given, add_special_tokens=False, split_special_tokens=True, verbose=False
            )
        start = len(self.anchor)
        if tuple(tokens[:start]) != self.anchor:
            raise ModelError(f"its tokenizer merges the newline before {shown(text, 20)} with what follows")
        return tokens[start:]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, to the letter."""
        text: str = self.tokenizer.decode([*self.anchor, *tokens], clean_up_tokenization_spaces=False)
        return text[1:] if self.anchor else text

    def _remember(self, text: str) -> tuple[int, ...]:
        """The tokens of a text that will come again, such as a step."""
        if len(self._remembered) >= MAX_REMEMBERED:
            # All at once, which is simple; what is needed comes again soon.
            self._remembered.clear()
        if text not in self._remembered:
            self._remembered[text] = tuple(self.encode(text))
        return self._remembered[text]

    def _gives_back(self, solution: Solution) -> bool:
        text = "".join(f"{step}\n" for step in solution.steps)
        steps, question = self.steps(solution), "# How many?\n"
        if (self.decode(steps), self.decode(self.encode(question))) != (text, question):
            return False
        # After a prompt too: some tokenizers drop the first space of whatever they decode.
        asked = self.prompt(question)
        return self.decode(asked + steps) == self.decode(asked) + text

    def _check_size(self, vocabulary_size: int | None) -> None:
        largest = max(self.eos_id, self.pad_id, self.bos_id or 0, *self.steps(PROBE))
        if vocabulary_size is not None and largest >= vocabulary_size:
            raise ModelError(
                f"its tokenizer makes token {largest}, but the model knows {vocabulary_size} tokens; "
                "use the tokenizer the model was trained with"
            )


def end_of_turn(tokenizer: Any) -> int | None:
    """The token that ends an answer in the tokenizer's template; None if it has none of its own."""
    if not isinstance(prompt_of(tokenizer), TemplatePrompt):
        return None
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    if (text := rendered(tokenizer, chat)) is None:
        return None
    after = tokenizer.encode(text.partition(ANSWER)[2], add_special_tokens=False)
    # Only a token that means nothing else can end a turn.
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return after[0] if after and after[0] in special else None


def rendered(tokenizer: Any, chat: list[dict[str, str]], **settings: Any) -> str | None:
    try:
        text: str = tokenizer.apply_chat_template(chat, tokenize=False, **settings)
    except (TemplateError, TypeError):  # templates refuse chats that they do not know
        return None
    return text


class AnswerWatch:
    """Recognises finished rows by their tokens; a row whose end it misses goes on to end-of-text."""

    def __init__(self, codec: Codec, vocabulary_size: int, language: Language) -> None:
        self.codec = codec
        self.language = language
        texts = [codec.decode([token]) for token in range(vocabulary_size)]
        self.newlines = frozenset(token for token, text in enumerate(texts) if "\n" in text)
        self.has_newline = np.array(["\n" in text for text in texts])
        self._line = lru_cache(maxsize=1 << 16)(codec.decode)

    def closes(self, tokens: Sequence[int]) -> bool:
        """Whether `tokens`, the last of which has a newline, end the solution."""
        # Lines are few and known, whole texts are many: each line is decoded once.
        text = "".join(map(self._line, self._lines(tokens)))
        return self.language.end(text) is not None or self.codec.end_of_answer(text) is not None

    def _lines(self, tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The tokens up to each newline, and those that follow the last."""
        start = 0
        for place, token in enumerate(tokens, 1):
            if token in self.newlines:
                yield tuple(tokens[start:place])
                start = place
        if start < len(tokens):
            yield tuple(tokens[start:])

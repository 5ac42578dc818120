"""What the model of a run read and wrote, as other trainers take it: as messages or as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from partway.models.prompts import FENCE
from partway.models.text import ANSWER, Prompt, plain_prompt
from partway.runs import Run

Said = str | list[dict[str, str]]  # text, or messages


@dataclass(frozen=True)
class Wording:
    """How a run asked, and what stands around the steps of an answer.

    `opening` is how the message of an answer begins, None where text says it better. `end` is what stands
    after the last step of a finished answer; trainers add the end-of-text token to plain text themselves.
    """

    prompt: Prompt
    tokenizer: Any = None  # of a run that asked through a template
    opening: str | None = None
    end: str = ""
    start: str = ""  # what the tokenizer writes before every text, so that no text is to begin with it

    @classmethod
    def of(cls, run: Run) -> Wording:
        """The wording of a run; that of one with a template is read from its tokenizer."""
        if not run.environment_file.is_file() or not run.environment.get("chat_template"):
            return cls(plain_prompt(run.language))
        from partway.models.loading import load_codec  # brings torch, which plain runs do without

        codec = load_codec(run.directory)
        closing = codec.question.closing
        end = closing and closing + codec.decode([codec.eos_id])
        start = "" if codec.bos_id is None else codec.decode([codec.bos_id])
        wording = cls(codec.question, codec.tokenizer, end=end, start=start)
        return replace(wording, opening=wording._found_opening())

    def _found_opening(self) -> str | None:
        """What a template writes before an answer only when asked for one: messages have to say it."""
        before, _, _ = self._rendered("?", ANSWER).partition(ANSWER)
        opening = self.prompt.text("?").removeprefix(before)
        # Your own template may know questions only, and would take an answer for one.
        is_said = self._rendered("!", f"{opening}{ANSWER}").startswith(f"{self.prompt.text('!')}{ANSWER}")
        return opening if is_said else None

    def _rendered(self, question: str, answer: str) -> str:
        chat = [*_turn("user", question), *_turn("assistant", answer)]
        rendered: str = self.tokenizer.apply_chat_template(chat, tokenize=False)
        return rendered

    def asked(self, question: str) -> Said:
        """What the model reads before a solution."""
        return self.text(question) if self.opening is None else _turn("user", question.strip())

    def answered(self, steps: Iterable[str], *, finished: bool) -> Said:
        """A solution as the model writes it; the turn of a message ends in any case."""
        if self.opening is None:
            return self.going_on(steps) if finished else lines(steps)
        closing = self.prompt.closing if finished else ""
        return _turn("assistant", f"{self.opening}{lines(steps)}{closing}")

    def text(self, question: str, steps: Iterable[str] = ()) -> str:
        """The text that the model reads: the question and the first steps of a solution."""
        return self.prompt.text(question).removeprefix(self.start) + lines(steps)

    def going_on(self, steps: Iterable[str]) -> str:
        """The text of a finished solution, or of the rest of one."""
        return f"{lines(steps)}{self.end}"


def _turn(role: str, content: str) -> list[dict[str, str]]:
    return [{"role": role, "content": content}]


def lines(steps: Iterable[str]) -> str:
    """Every step with its newline."""
    return "".join(f"{step}\n" for step in steps)


def program_in(said: Any) -> str | None:
    """The steps in what `Wording` made of them; None if it made something else."""
    if isinstance(said, list) and said and isinstance(said[-1], dict):
        said = said[-1].get("content")
    if not isinstance(said, str):
        return None
    text: str = said.partition("\n")[2] if said.startswith(FENCE) else said
    return text.partition(f"\n{FENCE}")[0].removesuffix("\n")

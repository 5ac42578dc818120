"""Prompts: what a model reads before a solution, and what it writes around one.

A chat model is asked through its tokenizer's chat template, which carries the whole format: to the original
we add what the system says, an answer that opens as a block of code, and a mark that says how it closes. A
run trains with that template and ships it, so transformers' pipelines, chat servers and partway ask alike.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from jinja2 import TemplateError

from partway.errors import ConfigError, ModelError, ProblemError, shown
from partway.language import PYTHON, Language

FENCE = "```"
ANSWER = "Q6T1"  # stands for an answer while a template is tried; no template writes it itself

ChatTemplate = Literal["auto", "none"]

_MARK = re.compile(r"\{#- partway: an answer closes with (\S*) -#\}")
_COMMENT = re.compile(r"\{#- partway: a question is a comment, (.+?)-#\}")


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
    if comment := _COMMENT.search(template):
        return PlainPrompt(comment=comment.group(1))
    mark = _MARK.search(template)
    return PLAIN if mark is None else TemplatePrompt(tokenizer, mark.group(1))


@dataclass(frozen=True)
class Asking:
    """How settings want questions to be put: `auto` asks through a chat template wherever there is one."""

    chat_template: ChatTemplate = "auto"
    system_prompt: str | None = None
    prompt_template: str | None = None
    language: Language = PYTHON

    @property
    def is_default(self) -> bool:
        """Whether nothing is said about it: a model that was trained here is then asked as it was trained."""
        return (self.chat_template, self.system_prompt, self.prompt_template) == ("auto", None, None)

    def prepared(self, tokenizer: Any) -> Any:
        """The tokenizer with the template that asks so, or without any."""
        if self.prompt_template is not None:
            return with_template(tokenizer, self.prompt_template)
        asked, original = self.language.instruction, _chat_template(tokenizer)
        if self.chat_template == "none" or original is None:
            return without_chat(tokenizer, asked.comment)
        if _MARK.search(original):  # it asks for a program already
            return tokenizer
        asks = _asking(tokenizer, original, self.system_prompt or asked.words, f"{FENCE}{asked.fence}\n")
        return _with_template(tokenizer, f"{_mark(FENCE)}{asks}")


AS_TRAINED = Asking()


def _chat_template(tokenizer: Any) -> str | None:
    """The template of a chat model, None if the tokenizer has none."""
    template = tokenizer.chat_template
    template = template.get("default") if isinstance(template, dict) else template
    return None if not template or _COMMENT.search(template) else str(template)


def with_template(tokenizer: Any, template: str) -> Any:
    """A copy of the tokenizer that asks with a template of one's own: text, or a file, with `question`."""
    text = _read(template)
    if not re.search(r"\{[{%][^}]*\bquestion\b", text):
        raise ConfigError(
            f"prompt_template is {shown(template)}, expected {{{{ question }}}} somewhere in it"
        )
    # Jinja drops the last newline of a template, so it is written as an expression.
    text = f"{text.removesuffix(chr(10))}{{{{ '\\n' }}}}" if text.endswith("\n") else text
    return _with_template(tokenizer, f"{_mark('')}{{%- set question = messages[-1]['content'] -%}}{text}")


def without_chat(tokenizer: Any, comment: str = PLAIN.comment) -> Any:
    """A copy of the tokenizer by which its model is asked plainly, also when loaded again.

    It has no template, unless comments begin otherwise than usual: then one that says so.
    """
    template = None
    if comment != PLAIN.comment:
        question = "{{ messages[-1]['content'].split() | join(' ') }}{{ '\\n' }}"
        template = f"{{#- partway: a question is a comment, {comment}-#}}{comment}{question}"
    return tokenizer if tokenizer.chat_template == template else _with_template(tokenizer, template)


def end_of_turn(tokenizer: Any) -> int | None:
    """The token that ends an answer in the tokenizer's template; None if it has none of its own."""
    if not isinstance(prompt_of(tokenizer), TemplatePrompt):
        return None
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ANSWER}]
    if (rendered := _rendered(tokenizer, chat)) is None:
        return None
    after = tokenizer.encode(rendered.partition(ANSWER)[2], add_special_tokens=False)
    # Only a token that means nothing else can end a turn.
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return after[0] if after and after[0] in special else None


def _mark(closing: str) -> str:
    return f"{{#- partway: an answer closes with {closing} -#}}"


def _asking(tokenizer: Any, original: str, system_prompt: str, opening: str) -> str:
    """The template with a system prompt before it and an opened block of code after it.

    Templates that refuse a system turn get its text at the head of the question.
    """
    said = json.dumps(system_prompt)
    as_turn = f"{{%- set messages = [{{'role': 'system', 'content': {said}}}] + messages -%}}"
    as_text = (
        f"{{%- set messages = [{{'role': 'user', 'content': {said} + '\\n\\n' + messages[0]['content']}}]"
        " + messages[1:] -%}"
    )
    # Models that think aloud would do so where the program is to begin.
    thinks_not = "{%- set enable_thinking = false -%}"
    opens = f"{{%- if add_generation_prompt -%}}{{{{- {json.dumps(opening)} -}}}}{{%- endif -%}}"
    for system in (as_turn, as_text):
        is_needed = "{%- if messages[0]['role'] != 'system' -%}"
        asks = f"{is_needed}{system}{{%- endif -%}}{thinks_not}{original.removesuffix(chr(10))}{opens}"
        question = [{"role": "user", "content": "?"}]
        rendered = _rendered(tokenizer, question, chat_template=asks, add_generation_prompt=True)
        if rendered is not None and system_prompt in rendered and rendered.endswith(opening):
            return asks
    raise ModelError(
        "its chat template cannot be given a system prompt and a question; set chat_template to none"
    )


def _rendered(tokenizer: Any, chat: list[dict[str, str]], **settings: Any) -> str | None:
    try:
        rendered: str = tokenizer.apply_chat_template(chat, tokenize=False, **settings)
    except (TemplateError, TypeError):  # templates refuse chats that they do not know
        return None
    return rendered


def _with_template(tokenizer: Any, template: str | None) -> Any:
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.chat_template = template
    return tokenizer


def _read(template: str) -> str:
    """The template, from a file if it names one."""
    # A question's place is in braces, so what has none can only be the name of a file.
    if "\n" in template or "{" in template:
        return template
    path = Path(template)
    if not path.is_file():
        raise ConfigError(
            f"prompt_template is {template!r}, expected Jinja text with {{{{ question }}}}, or a file of it"
        )
    return path.read_text(encoding="utf-8")

"""Prompts as the settings want them: a tokenizer gets the template that asks its model.

A chat model is asked through its tokenizer's chat template. To the original we add the system's words, the
opening of a block of code, and a mark that says how the block closes. A run trains with that template and
ships it, so transformers' pipelines, chat servers and partway ask alike.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from partway.errors import ConfigError, ModelError, shown
from partway.language import PYTHON, Language
from partway.models.text import COMMENT, MARK, PLAIN, rendered

FENCE = "```"

ChatTemplate = Literal["auto", "none"]


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
        if MARK.search(original):  # it asks for a program already
            return tokenizer
        asks = _asking(tokenizer, original, self.system_prompt or asked.words, f"{FENCE}{asked.fence}\n")
        return _with_template(tokenizer, f"{_mark(FENCE)}{asks}")


AS_TRAINED = Asking()


def _chat_template(tokenizer: Any) -> str | None:
    """The template of a chat model, None if the tokenizer has none."""
    template = tokenizer.chat_template
    template = template.get("default") if isinstance(template, dict) else template
    return None if not template or COMMENT.search(template) else str(template)


def with_template(tokenizer: Any, template: str) -> Any:
    """A copy of the tokenizer that asks with your own template: text, or a file, with `question`."""
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
        tried = rendered(tokenizer, question, chat_template=asks, add_generation_prompt=True)
        if tried is not None and system_prompt in tried and tried.endswith(opening):
            return asks
    raise ModelError(
        "its chat template cannot be given a system prompt and a question; set chat_template to none"
    )


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

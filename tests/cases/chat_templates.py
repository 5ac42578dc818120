"""Chat templates in the formats of well-known models, each with the features that make it special."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from report_cases import write_run
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from partway.models.loading import LanguageModel
from partway.models.prompts import Asking
from partway.models.text import Codec
from partway.models.tiny import train_tokenizer
from partway.problem import Problem
from partway.runs import Run

IM = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\\n' }}{% endif %}" + IM + "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
QWEN25 = (
    "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + "
    "'<|im_end|>\\n' }}{%- else %}{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You "
    "are a helpful assistant.<|im_end|>\\n' }}{%- endif %}{%- for message in messages %}"
    "{%- if message.role != 'system' or not loop.first %}" + IM + "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}\n"
)
QWEN3 = (
    "{%- for message in messages %}{%- if message.role == 'assistant' %}"
    "{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- else %}" + IM + "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"
)
LLAMA3 = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.first %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
GEMMA3 = (
    "{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}"
    "{%- set prefix = messages[0]['content'] + '\\n\\n' -%}{%- set rest = messages[1:] -%}{%- else -%}"
    "{%- set prefix = '' -%}{%- set rest = messages -%}{%- endif -%}{%- for message in rest -%}"
    "{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('Roles must alternate') }}{%- endif -%}"
    "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' + "
    "(prefix if loop.first else '') + message['content'] | trim + '<end_of_turn>\\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}"
)
GEMMA2 = GEMMA3.replace(
    "{%- set prefix = messages[0]['content'] + '\\n\\n' -%}{%- set rest = messages[1:] -%}",
    "{{ raise_exception('System role not supported') }}",
)
PHI = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"
)

# By name: the template, its special tokens, the one that ends a turn, what an answer stands behind.
TEMPLATES = {
    "SmolLM2": (SMOLLM2, ["<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|im_start|>assistant\n"),
    "Qwen2.5": (QWEN25, ["<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|im_start|>assistant\n"),
    "Qwen3": (
        QWEN3,
        ["<|im_start|>", "<|im_end|>", "<think>", "</think>"],
        "<|im_end|>",
        "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    ),
    "Llama 3": (
        LLAMA3,
        ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        "<|eot_id|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "Gemma 3": (
        GEMMA3,
        ["<start_of_turn>", "<end_of_turn>"],
        "<end_of_turn>",
        "<end_of_turn>\n<start_of_turn>model\n",
    ),
    "Gemma 2": (
        GEMMA2,
        ["<start_of_turn>", "<end_of_turn>"],
        "<end_of_turn>",
        "<end_of_turn>\n<start_of_turn>model\n",
    ),
    "Phi": (PHI, ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"], "<|end|>", "<|assistant|>"),
}


def chat_tokenizer(name: str, problems: Sequence[Problem]) -> PreTrainedTokenizerBase:
    """A tokenizer made for the problems, with the chat format of a well-known model."""
    template, special, _, _ = TEMPLATES[name]
    tokenizer = train_tokenizer(problems)
    tokenizer.add_special_tokens({"additional_special_tokens": special, "bos_token": "<s>"})
    tokenizer.add_tokens(["```"])  # one token, as in real vocabularies
    tokenizer.chat_template = template
    return tokenizer


def chat_model(name: str, problems: Sequence[Problem]) -> LanguageModel:
    """A small Llama with such a tokenizer, asked through its template."""
    tokenizer = chat_tokenizer(name, problems)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LanguageModel.of(LlamaForCausalLM(config).eval(), tokenizer, Asking())


def chat_run(directory: Path, template: str, **asking: Any) -> tuple[Run, Codec]:
    """A run whose model was asked through a chat template, without weights; and how it was asked."""
    run = write_run(directory / "run", problems=4)
    codec = Codec.of(Asking(**asking).prepared(chat_tokenizer(template, run.problems())))
    codec.tokenizer.save_pretrained(run.final)
    (run.final / "config.json").write_text('{"model_type": "llama"}')
    run.write_environment({**run.environment, "chat_template": True})
    return run, codec

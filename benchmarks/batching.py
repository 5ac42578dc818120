"""What a good user of transformers writes: rows of like length together, padded to the longest of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import GenerationConfig

    from partway.models.engine import SamplingSettings
    from partway.models.text import Codec

IGNORED = -100  # labels that are no targets, as transformers and cross_entropy have it
Pair = tuple[Sequence[int], Sequence[int]]  # a prompt and what is learned behind it


def batches_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """The places of rows with these lengths, `size` at a time, the shortest first.

    >>> list(batches_by_length([5, 2, 9, 2], 2))
    [[1, 3], [0, 2]]
    """
    places = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for start in range(0, len(places), size):
        yield places[start : start + size]


def right_padded(pairs: Sequence[Pair], pad_id: int) -> dict[str, Tensor]:
    """Rows to learn from, as a model takes them; only the targets are labels."""
    import torch

    width = max(len(prompt) + len(target) for prompt, target in pairs)
    ids = torch.full((len(pairs), width), pad_id)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for row, (prompt, target) in enumerate(pairs):
        end = len(prompt) + len(target)
        ids[row, :end] = torch.tensor([*prompt, *target])
        mask[row, :end] = 1
        labels[row, len(prompt) : end] = torch.tensor(target)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def left_padded(prompts: Sequence[Sequence[int]], pad_id: int) -> dict[str, Tensor]:
    """Prompts to generate from: all end at the same place, where their completions begin."""
    import torch

    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), pad_id)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    return {"input_ids": ids, "attention_mask": mask}


def generation_config(settings: SamplingSettings, codec: Codec, samples: int) -> GenerationConfig:
    """The settings as transformers spells them, nothing inherited from a model's own."""
    from transformers import GenerationConfig

    return GenerationConfig(
        do_sample=True,
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        max_new_tokens=settings.max_completion_length,
        num_return_sequences=samples,
        eos_token_id=codec.eos_id,
        pad_token_id=codec.pad_id,
        use_cache=True,
    )

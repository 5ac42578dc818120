"""The check at start: models for which a layout is wrong, on purpose or by their nature, get another."""

from __future__ import annotations

import logging
import random
from copy import deepcopy
from typing import Any

import pytest
import torch
from scoring_cases import CONFIGS, alone, branching, log_probs, tiny
from transformers import (
    GPTNeoConfig,
    GPTNeoForCausalLM,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from partway.learning import layout_check, passes
from partway.learning.layout_check import checked_layout, is_exact
from partway.learning.layouts import LONGEST, Tree, TreeRows
from partway.learning.scoring import Scorer


class IgnoresPositions(LlamaForCausalLM):
    """Counts by place in the row, whatever positions it is given: wrong on trees."""

    def forward(self, *args: Any, position_ids: Any = None, **inputs: Any) -> Any:
        return super().forward(*args, **inputs)


class IgnoresMasks(LlamaForCausalLM):
    """Sees everything before it in the row: wrong on trees."""

    def forward(self, *args: Any, attention_mask: Any = None, **inputs: Any) -> Any:
        return super().forward(*args, **inputs)


def made(kind: type[LlamaForCausalLM]) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return kind(deepcopy(CONFIGS["llama"])).eval()


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "gpt_neox"])
def test_trees_are_right_for_ordinary_models(family: str, caplog: pytest.LogCaptureFixture) -> None:
    assert checked_layout(tiny(family)) == Tree(LONGEST)
    assert not caplog.records


def test_other_attention_than_that_of_pytorch_gets_rows() -> None:
    assert checked_layout(tiny("llama", "eager")) == TreeRows(LONGEST)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (IgnoresPositions, "flat"),
        (IgnoresMasks, "flat"),
    ],
)
def test_a_model_wrong_on_purpose_gets_a_layout_that_is_right_and_says_so(
    kind: type[LlamaForCausalLM], expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = made(kind)
    assert checked_layout(model).name == expected
    (message,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    flaw = "scores differently than one sequence at a time"
    assert message == f"{kind.__name__} {flaw} with the layout tree; using {expected}"
    scorer = Scorer(model, 0, tokens_per_pass=512)
    problem = branching(random.Random(0), 12, 4, 10)
    (found,) = log_probs(scorer, model, [problem])
    expected_log_probs = [alone(model, problem.prompt, target) for target in problem.sequences]
    torch.testing.assert_close(found, torch.stack(expected_log_probs).detach())


@pytest.mark.parametrize(("family", "longest"), [("gpt_neo", 56), ("mistral", 56), ("gemma2", 56)])
def test_local_attention_limits_trees_to_its_window(
    family: str, longest: int, caplog: pytest.LogCaptureFixture
) -> None:
    layout = checked_layout(tiny(family))
    assert layout.name in ("tree", "tree_rows")
    assert layout.longest == longest
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert record.getMessage().endswith("using trees of at most 56 tokens")


def test_trees_are_checked_at_more_than_the_length_they_are_allowed() -> None:
    torch.manual_seed(0)
    config = GPTNeoConfig(**{**CONFIGS["gpt_neo"].to_dict(), "window_size": 58})
    assert checked_layout(GPTNeoForCausalLM(config).eval()).longest == 28, "56 would be right, but only just"


def test_the_window_of_gpt_neo_as_published_allows_trees_of_224_tokens() -> None:
    torch.manual_seed(0)
    config = GPTNeoConfig(
        vocab_size=61, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]]
    )
    assert config.window_size == 256
    assert checked_layout(GPTNeoForCausalLM(config).eval()) == TreeRows(224)


def test_a_model_that_cannot_take_a_mask_of_ours_is_scored_flat() -> None:
    assert checked_layout(tiny("bloom")).name == "flat"


def test_a_model_without_attention_is_scored_flat() -> None:
    assert checked_layout(tiny("mamba")).name == "flat"


def test_the_check_leaves_the_model_in_the_mode_it_found_it_in() -> None:
    model = tiny("llama").train()
    checked_layout(model)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_check_is_the_same_in_training_mode_with_dropout() -> None:
    torch.manual_seed(0)
    config = GPTNeoConfig(**{**CONFIGS["gpt_neo"].to_dict(), "resid_dropout": 0.5})
    assert checked_layout(GPTNeoForCausalLM(config).train()).longest == 56


def test_a_frozen_model_can_be_checked() -> None:
    assert checked_layout(tiny("llama").requires_grad_(False)).name == "tree"


def sliding(window: int | None, dtype: torch.dtype) -> MistralForCausalLM:
    """A model deep enough that rounding adds up, and whose attention ends after `window` tokens."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 100, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return MistralForCausalLM(MistralConfig(**sizes, **heads, sliding_window=window)).to(dtype).eval()


def test_in_bfloat16_a_layout_may_differ_by_what_rounding_does_to_plain_rows() -> None:
    assert checked_layout(sliding(None, torch.bfloat16)) == Tree(LONGEST)
    assert checked_layout(sliding(600, torch.bfloat16)) == Tree(LONGEST // 2)


@pytest.mark.parametrize("family", ["gpt_neo", "mistral", "gemma2"])
def test_in_bfloat16_local_attention_limits_trees_as_in_float32(family: str) -> None:
    assert checked_layout(tiny(family).bfloat16()) == checked_layout(tiny(family))


def test_in_float64_the_check_is_as_strict_as_in_float32() -> None:
    assert checked_layout(tiny("gpt_neo").double()) == checked_layout(tiny("gpt_neo"))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("Expected all tensors to be on the same device, but got mat2 is on cpu"),
        RuntimeError("cumsum_cuda_kernel does not have a deterministic implementation"),
    ],
    ids=str,
)
def test_what_is_not_about_masks_and_positions_does_not_choose_a_slower_layout(error: RuntimeError) -> None:
    model = tiny("llama")

    def failing(*_: object, **__: object) -> None:
        raise error

    model.forward = failing
    with pytest.raises(type(error), match=str(error)):
        checked_layout(model)


def test_layouts_with_masks_of_queries_are_not_tried_with_flash_attention() -> None:
    model = tiny("llama")
    model.config._attn_implementation = "flash_attention_2"
    assert Tree().hindrance(model) == "has the attention flash_attention_2"
    assert TreeRows().hindrance(model) == "has the attention flash_attention_2"


def test_shortened_products_are_known_however_they_were_asked_for() -> None:
    model = tiny("llama")
    assert is_exact(model)
    torch.backends.fp32_precision = "tf32"  # as transformers does
    assert not is_exact(model)
    torch.backends.fp32_precision = "none"
    torch.set_float32_matmul_precision("high")
    assert not is_exact(model)
    torch.set_float32_matmul_precision("highest")
    assert is_exact(model)


def test_an_error_of_ours_in_a_check_is_raised_and_not_taken_for_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes, "ROWS_AT_ONCE", -1)
    with pytest.raises(RuntimeError, match="split"):
        checked_layout(tiny("llama"))


class Sliced(LlamaForCausalLM):
    """Cuts the mask it is given."""

    def forward(self, *args: Any, attention_mask: Any = None, **inputs: Any) -> Any:
        return super().forward(*args, attention_mask=attention_mask[..., :], **inputs)


class OutOfBounds(LlamaForCausalLM):
    """Looks for a token that it does not have: on a GPU nothing would run after it."""

    def forward(self, input_ids: Any = None, **inputs: Any) -> Any:
        return super().forward(input_ids=input_ids + self.config.vocab_size, **inputs)


def test_a_mask_that_a_model_changes_is_a_reason_for_an_ordinary_one() -> None:
    assert checked_layout(made(Sliced)) == TreeRows(LONGEST)


def test_an_index_out_of_bounds_is_never_a_reason_for_another_layout() -> None:
    with pytest.raises(IndexError):
        checked_layout(made(OutOfBounds))


def test_the_reason_is_named(caplog: pytest.LogCaptureFixture) -> None:
    checked_layout(tiny("mamba"))
    (record,) = caplog.records
    assert "keeps a running state with the layout tree; using flat" in record.getMessage()


def test_of_several_processes_the_first_one_checks_and_tells_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def told(found: list[Any]) -> list[str]:
        assert found == [None], "another than the first has checked"
        return ["has gone wrong there"]

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(layout_check, "broadcast_object_list", told)
    assert checked_layout(tiny("llama")).name == "flat", "the first found a flaw in everything else"

"""Steps that are too large for a GPU's memory."""

import pytest
import torch
from training_cases import small_trainer

from partway.learning.layouts import Bundle
from partway.training.recording import Recorder


@pytest.fixture
def small_memory(monkeypatch):
    """Passes of more than 64 tokens are too large; some of their gradients may have been added before."""
    score = Bundle.score

    def limited(bundle, model, *settings):
        if bundle.tokens_computed > 64 and torch.is_grad_enabled() and model.training:
            next(model.parameters()).grad = torch.ones_like(next(model.parameters()))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return score(bundle, model, *settings)

    monkeypatch.setattr(Bundle, "score", limited)


def trained(folder):
    trainer = small_trainer(folder, dropout=0.0, max_steps=2, eval_strategy="no", tokens_per_pass=256)
    trainer.train()
    return trainer


def test_a_step_too_large_for_memory_is_learned_in_smaller_passes_to_the_same_result(
    tmp_path, request, monkeypatch
):
    plain = trained(tmp_path / "plain")
    request.getfixturevalue("small_memory")
    said = []
    monkeypatch.setattr(Recorder, "say", lambda _, line: said.append(line))
    again = trained(tmp_path / "again")
    assert again.scorer.tokens_per_pass == 64
    assert any("a pass of 256 tokens is too large for the GPU" in line for line in said)
    for weight, expected in zip(again.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-6)


def test_where_small_passes_do_not_fit_either_it_is_said(tmp_path, small_memory, monkeypatch):
    monkeypatch.setattr("partway.shortcuts.smaller_passes.LEAST", 200)
    with pytest.raises(torch.OutOfMemoryError):
        trained(tmp_path)

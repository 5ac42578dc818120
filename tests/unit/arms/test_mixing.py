"""Weights between those of two models."""

import pytest
import torch
from training_cases import apples, tiny_gpt_neo

from partway.arms.mixing import mixed
from partway.errors import ModelError

PROBLEMS = apples(4)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_every_weight_is_between_also_those_that_are_tied(share):
    first, tuned = (tiny_gpt_neo(PROBLEMS, seed=seed) for seed in (0, 1))
    pairs = zip(first.model.state_dict().values(), tuned.model.state_dict().values(), strict=True)
    expected = [(1 - share) * a + share * b for a, b in pairs]
    assert first.model.config.tie_word_embeddings
    found = mixed(first, tuned, share).model.state_dict().values()
    for value, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-7)


def test_models_of_different_shapes_are_not_mixed():
    larger = tiny_gpt_neo(PROBLEMS)
    larger.model.resize_token_embeddings(larger.model.config.vocab_size + 1, mean_resizing=False)
    with pytest.raises(ModelError, match="cannot be mixed"):
        mixed(tiny_gpt_neo(PROBLEMS), larger, 0.5)

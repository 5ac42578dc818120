"""What tests remember of a check never stands for another model."""

import logging

import torch
from known_models import remembered
from training_cases import apples, tiny_gpt_neo


def test_equal_tiny_models_are_checked_once_and_what_was_said_is_said_again(caplog):
    checked = []

    def check(model, wanted=None, *, pad_id=0):
        checked.append(model)
        logging.getLogger(check.__module__).warning("number %d", len(checked))
        return len(checked)

    recalled = remembered(check)
    first, equal, other = (tiny_gpt_neo(apples(2), seed=seed).model for seed in (0, 0, 1))
    assert [recalled(first), recalled(equal), recalled(other)] == [1, 1, 2]
    assert caplog.messages == ["number 1", "number 1", "number 2"]
    assert recalled(first, pad_id=1) == 3
    assert recalled(first.eval()) == 4
    with torch.no_grad():
        next(equal.parameters())[0, 0] += 1e-3
    assert recalled(equal) == 5
    larger = tiny_gpt_neo(apples(2)).model
    larger.config.hidden_size = 32
    assert [recalled(larger), recalled(larger)] == [6, 7]

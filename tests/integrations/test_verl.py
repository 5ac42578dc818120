"""verl itself finds and calls the trace reward, by the path and the name that its settings give."""

import pytest

import partway.rewards

reward = pytest.importorskip(
    "verl.trainer.ppo.reward", reason="verl is not installed; make test-integrations"
)


def test_verl_loads_the_function_from_its_file_and_scores_a_right_beginning():
    from omegaconf import OmegaConf

    named = {"path": partway.rewards.__file__, "name": "compute_score"}
    score = reward.get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": named}}))
    reference = "a = 4\nb = a * 2\nanswer = b + 1"
    asked = {"data_source": "gsm8k", "ground_truth": 9, "extra_info": {"solution": reference, "index": 3}}
    assert score(solution_str=f"```python\n{reference}\n```", **asked) == 1.0
    assert score(solution_str="n = 4\nm = n * 2\nanswer = m", **asked) == pytest.approx(1 / 3)

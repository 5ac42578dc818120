"""Policy gradients: weights and gradients against what their papers say, each written down directly."""

import math
import sys
from itertools import combinations, product

import pytest
import torch
from scoring_cases import alone, gradients, largest_error
from training_cases import SMALL, apples, tiny_gpt_neo, watched_trainer

from partway import trace
from partway.arms.policy_gradients import GRPO, PKPO, RLOO, MaxRL
from partway.errors import CodeError, ConfigError, EngineError
from partway.language import PYTHON, trace_all
from partway.objectives import label_of, objective
from partway.problem import Problem
from partway.sample import Sample
from partway.sampling.local_engine import LocalEngine
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.config import config_of

grpo, rloo, maxrl = GRPO().advantages, RLOO().advantages, MaxRL().advantages


def pkpo(rewards, k):
    return PKPO(k=k).advantages(rewards)


REWARDS = [
    [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
    [0.25, 1.0, 0.5, 0.0, 0.5, 0.125],
    [0.0, 0.0, 0.0, 1.0],
]


@pytest.mark.parametrize("rewards", REWARDS)
def test_grpo_weighs_by_standard_deviations_from_the_mean(rewards):
    group = torch.tensor(rewards, dtype=torch.float64)
    expected = (group - group.mean()) / (group.std() + 1e-4) / len(rewards)
    assert grpo(rewards) == pytest.approx(expected.tolist())


@pytest.mark.parametrize("rewards", REWARDS)
def test_rloo_weighs_by_what_a_sample_has_over_the_mean_of_the_others(rewards):
    expected = []
    for index, reward in enumerate(rewards):
        others = [other for place, other in enumerate(rewards) if place != index]
        expected.append((reward - sum(others) / len(others)) / len(rewards))
    assert rloo(rewards) == pytest.approx(expected)


@pytest.mark.parametrize("rewards", REWARDS)
def test_maxrl_weighs_by_the_distance_from_the_mean_over_the_mean(rewards):
    mean = sum(rewards) / len(rewards)
    expected = [(reward - mean) / mean / len(rewards) for reward in rewards]
    assert maxrl(rewards) == pytest.approx(expected)


@pytest.mark.parametrize("rewards", REWARDS)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_pkpo_weighs_by_what_a_sample_adds_to_every_set_of_k_that_has_it(rewards, k):
    expected = [0.0] * len(rewards)
    for chosen in combinations(range(len(rewards)), k):
        for index in chosen:
            others = [rewards[other] for other in chosen if other != index]
            expected[index] += max([rewards[index], *others]) - max(others)
    sets = math.comb(len(rewards), k)
    assert pkpo(rewards, k) == pytest.approx([gain / sets for gain in expected])


def expected_gradient(advantages, chance: float, n: int) -> float:
    """The mean over all outcomes of n samples of a policy that is right with a chance of sigmoid(theta)."""
    total = 0.0
    for outcome in product((0.0, 1.0), repeat=n):
        probability = math.prod(chance if right else 1 - chance for right in outcome)
        scores = [1 - chance if right else -chance for right in outcome]  # d log P / d theta
        total += probability * sum(w * s for w, s in zip(advantages(list(outcome)), scores, strict=True))
    return total


def gradient_of_pass(k: int, chance: float) -> float:
    return k * (1 - chance) ** (k - 1) * chance * (1 - chance)


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.8])
def test_what_each_of_them_raises_is_what_its_paper_says(chance):
    n = 6
    assert expected_gradient(rloo, chance, n) == pytest.approx(gradient_of_pass(1, chance))
    assert expected_gradient(lambda r: pkpo(r, 3), chance, n) == pytest.approx(gradient_of_pass(3, chance))
    series = sum(gradient_of_pass(k, chance) / k for k in range(1, n))
    assert expected_gradient(maxrl, chance, n) == pytest.approx(series), "log P(right) up to order n - 1"


def direct_loss(trainer, weigh, *, by_length: bool):
    """The mean over problems of -sum over samples of weight times log P, each sample in a row of its own."""
    [call] = trainer.engine.calls
    answers = trainer.engine.complete(call.requests, call.settings, call.seed)
    losses = []
    for request, draws in zip(call.requests, answers, strict=True):
        copies = [draw for draw in draws for _ in range(draw.count)]
        traces = trace_all([draw.text for draw in copies])
        rewards = [float(PYTHON.is_correct(request.problem, trace)) for trace in traces]
        prompt = tuple(trainer.codec.prompt(request.problem.question))
        for draw, weight in zip(copies, weigh(rewards), strict=True):
            log_prob = alone(trainer.model, prompt, draw.tokens)
            losses.append(-weight * log_prob / (len(draw.tokens) if by_length else 1))
    return torch.stack(losses).sum() / len(call.requests)


@pytest.mark.parametrize(
    ("objective", "weigh", "normalization"),
    [
        ("grpo", grpo, "length"),
        ("rloo", rloo, "sum"),
        ("maxrl", maxrl, "sum"),
        ("pkpo", lambda rewards: pkpo(rewards, 4), "sum"),
    ],
)
def test_a_step_has_the_gradient_of_its_samples_written_out(tmp_path, objective, weigh, normalization):
    trainer = watched_trainer(
        tmp_path,
        self_sampling="fcs",
        objective=objective,
        num_generations=8,
        loss_normalization=normalization,
    )
    trainer.before_step()
    trainer.explore(trainer.batch)
    loss = trainer.learn(trainer.model, trainer.batch)
    found = gradients(trainer.model)
    targets = [target for p in trainer.batch if (t := trainer.targets(p)) for target in t.targets]
    assert {target.kind for target in targets} == {"sample"}
    if objective != "pkpo":
        assert min(target.weight for target in targets) < 0 < max(target.weight for target in targets)
    trainer.model.zero_grad()
    expected = direct_loss(trainer, weigh, by_length=normalization == "length")
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-5)
    assert largest_error(found, gradients(trainer.model)) < 1e-4


def test_problems_whose_samples_all_earn_the_same_teach_nothing(tmp_path):
    trainer = watched_trainer(tmp_path, self_sampling="fcs", objective="rloo", num_generations=2)
    trainer.before_step()
    assert [trainer.targets(problem) for problem in trainer.batch] == [None] * len(trainer.batch)
    assert trainer.learn(trainer.model, trainer.batch).item() == 0


def test_with_trace_credit_a_right_beginning_earns_its_share(tmp_path):
    rewards = {}
    for reward in ("answer", "trace"):
        trainer = watched_trainer(
            tmp_path / reward,
            self_sampling="fcs",
            objective="grpo",
            num_generations=12,
            objective_args={"reward": reward},
        )
        trainer.before_step()
        trainer.explore(trainer.batch)
        rewards[reward] = {
            earned
            for problem in trainer.batch
            for earned in trainer.objective.rewards(problem, trainer.explored[problem.id], PYTHON)
        }
    assert rewards["answer"] == {0.0, 1.0}
    assert {0.3, 0.4} & rewards["trace"], "half of three or four of five steps"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"objective": "grpo", "self_sampling": "fcs", "num_generations": 1}, "with 1 samples per problem"),
        ({"objective": "rloo", "num_generations": 4}, "self_sampling fcs\\+pcs"),
        ({"objective": "pkpo", "self_sampling": "fcs", "num_generations": 3}, "num_generations to 4 or more"),
    ],
)
def test_samples_that_cannot_be_compared_are_refused(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        SelfSamplingConfig(use_cpu=True, **settings)


def test_what_is_learned_are_the_very_tokens_that_were_drawn(tmp_path):
    problems = apples(2)
    model = tiny_gpt_neo(problems, dropout=0.0)
    settings = {**SMALL, "self_sampling": "fcs", "objective": "grpo", "num_generations": 4}
    args = SelfSamplingConfig(output_dir=str(tmp_path), **settings)
    trainer = SelfSamplingTrainer(model, args, problems, engine=LocalEngine(model))
    trainer.before_step()
    trainer.explore(trainer.batch)
    samples = [sample for of_problem in trainer.explored.values() for sample, _ in of_problem]
    codec = trainer.codec
    drawn = [sample for sample in samples if not set(sample.tokens) & {codec.eos_id}]
    assert any(codec.encode(sample.completion) != list(sample.tokens) for sample in drawn), "another sequence"
    for problem in problems:
        own = trainer.explored[problem.id]
        own[0] = own[0][0], trace(problem.reference.text)  # as if it were right
        found = trainer.targets(problem)
        assert {target.tokens for target in found.targets} == {sample.tokens for sample, _ in own}
        for sample, _ in own:
            learned = alone(trainer.model, found.prompt, sample.tokens)
            assert learned.item() == pytest.approx(sample.log_prob, abs=1e-3)
    trainer.account.share(trainer.accelerator)
    assert {row.tokens for row in trainer.run.samples()} == {sample.tokens for sample in samples}


def test_an_engine_that_gives_text_only_is_refused(tmp_path):
    trainer = watched_trainer(tmp_path, self_sampling="fcs", objective="rloo", num_generations=2)
    trainer.before_step()
    sample = Sample(trainer.batch[0].id, "", "answer = 1\n", 2, True)
    trainer.explored = {sample.problem: [(sample, trace("answer = 1"))]}
    with pytest.raises(EngineError, match="the engine gives text without its tokens"):
        trainer.targets(trainer.batch[0])


@pytest.mark.parametrize("k", [2, 3])
def test_the_k_of_the_settings_is_that_of_pkpo(k):
    settings = {"self_sampling": "fcs", "objective": "pkpo", "num_generations": 4, "objective_args": {"k": k}}
    config = SelfSamplingConfig(use_cpu=True, **settings)
    assert config.built_objective.advantages([1.0, 0.0, 0.0, 0.0]) == pkpo([1.0, 0.0, 0.0, 0.0], k)


@pytest.mark.parametrize("name", ["grpo", "rloo", "maxrl", "pkpo"])
def test_policy_gradients_are_objectives_with_a_label(name):
    assert label_of(name).lower() == name
    assert objective(name).least_samples == (4 if name == "pkpo" else 2)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of a user's own, with rewards as TRL calls them."""
    (tmp_path / "mine_rewards.py").write_text(
        "seen = []\n"
        "def short(completions, answer, **columns):\n"
        "    seen.append((answer, columns))\n"
        "    return [1 / len(text.splitlines()) for text in completions]\n"
        "def unsure(completions, **columns):\n"
        "    return [None if 'skip' in text else float('good' in text) for text in completions]\n"
        "def too_few(completions, **columns):\n"
        "    return []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("mine_rewards", None)


def drawn(*texts):
    samples = [Sample("p", "", text, 1, finished=True) for text in texts]
    return list(zip(samples, trace_all(texts), strict=True))


def test_a_reward_of_ones_own_gets_what_trl_gives_it(mine):
    problem = Problem("p", "How many?", 3, "answer = 3", meta={"topic": "pens"})
    samples = drawn("answer = 1\n", "a = 1\nanswer = a\n")
    found = RLOO(reward="mine_rewards:short").weigh(problem, samples, PYTHON)
    assert found == pytest.approx(rloo([1.0, 0.5]))
    (answers, columns) = sys.modules["mine_rewards"].seen[0]
    assert answers == [3, 3]
    assert columns == {"prompts": ["How many?"] * 2, "solution": ["answer = 3"] * 2, "topic": ["pens"] * 2}


def test_a_sample_without_a_reward_is_not_learned_and_the_others_are_compared_without_it(mine):
    problem, own = Problem("p", "?", 3), RLOO(reward="mine_rewards:unsure")
    samples = drawn("good = 1", "skip = 1", "bad = 1")
    assert own.weigh(problem, samples, PYTHON) == [0.5, 0.0, -0.5]
    assert own.weigh(problem, samples[:2], PYTHON) == [0.0, 0.0], "one is compared with nobody"


def test_a_reward_that_is_not_there_or_gives_too_little_is_named(mine):
    with pytest.raises(ConfigError, match="reward is 'mine_rewards:shorty', but mine_rewards has no"):
        GRPO(reward="mine_rewards:shorty")
    with pytest.raises(ConfigError, match="reward is 'answr', expected answer, trace or"):
        PKPO(reward="answr")
    with pytest.raises(CodeError, match="gave 0 for 1 completion; expected as many"):
        GRPO(reward="mine_rewards:too_few").weigh(Problem("p", "?", 3), drawn("answer = 1"), PYTHON)


def test_parameters_of_an_objective_may_stand_beside_the_other_keys_and_are_recorded(mine):
    keys = {
        "objective": "grpo",
        "reward": "mine_rewards:short",
        "self_sampling": "fcs",
        "num_generations": "4",
    }
    config = config_of({}, keys)
    assert config.built_objective == GRPO(reward="mine_rewards:short")
    assert config.settings["objective_args"] == {"reward": "mine_rewards:short"}
    assert config_of({"objective": "beta_mml"}, {"beta": "0.5"}).built_objective.beta == 0.5
    with pytest.raises(ConfigError, match="unknown key 'beta'"):
        config_of({}, {"beta": "0.5"})

"""Credit for each step: against finite differences of P(right), and token by token in a training step."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations_with_replacement, product

import pytest
from training_cases import apples, watched_trainer

from partway import Problem, PythonLanguage, trace
from partway.arms.step_credit import GroupTree, KnownSteps, by_token
from partway.sample import Sample

PYTHON = PythonLanguage()
# A policy of two steps, whose second depends on the state after the first: x = 1 or 3, then an answer.
# A right program and a wrong one end with the same values, 1 and 3.
FIRST = ["x = 1", "x = 3"]
SECOND = [["answer = x + 2", "answer = 7"], ["answer = x - 2", "answer = x"]]
PROBLEM = Problem("p", "?", 3, "y = 1\nanswer = y + 2")


def chances(theta: list[float]) -> dict[str, float]:
    """The probability of each program; theta are the log-odds of the choices."""
    p = [1 / (1 + math.exp(-one)) for one in theta]
    return {
        f"{FIRST[a]}\n{SECOND[a][b]}": (p[0] if a == 0 else 1 - p[0]) * (p[1 + a] if b == 0 else 1 - p[1 + a])
        for a, b in product((0, 1), repeat=2)
    }


def scores(text: str, theta: list[float]) -> list[tuple[int, float]]:
    """For each step of a program the parameter that decides it, and d log P(step) / d that parameter."""
    first, second = text.split("\n")
    a = FIRST.index(first)
    b = SECOND[a].index(second)
    p = [1 / (1 + math.exp(-one)) for one in theta]
    return [(0, (a == 0) - p[0]), (1 + a, (b == 0) - p[1 + a])]


def right(theta: list[float]) -> float:
    return sum(p for text, p in chances(theta).items() if PYTHON.is_correct(PROBLEM, trace(text)))


@pytest.mark.parametrize("theta", [[0.3, -0.5, 1.0], [-1.2, 0.4, 0.2]])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_expected_gradient_of_the_tree_is_that_of_the_chance_to_be_right(theta: list[float], n: int):
    expected = [0.0] * 3
    for index in range(3):
        ups, downs = list(theta), list(theta)
        ups[index] += 1e-5
        downs[index] -= 1e-5
        expected[index] = (right(ups) - right(downs)) / 2e-5
    found = [0.0] * 3
    programs = chances(theta)
    for drawn in combinations_with_replacement(programs, n):
        counts = Counter(drawn)
        ways = math.factorial(n) / math.prod(map(math.factorial, counts.values()))
        probability = ways * math.prod(programs[text] for text in drawn)
        group = [(trace(text), count) for text, count in counts.items()]
        advantages = GroupTree().advantages(PROBLEM, group, PYTHON)
        for (text, count), of_sample in zip(counts.items(), advantages, strict=True):
            for (index, score), advantage in zip(scores(text, theta), of_sample, strict=False):
                found[index] += probability * count / n * score * advantage
    assert found == pytest.approx(expected, abs=1e-6)


def test_beginnings_that_reach_the_same_state_are_one_node():
    # b = 2 is reached in two ways; of the three samples through it two are right.
    texts = ["b = 2\nanswer = b + 1", "c = 2\nanswer = c + 1", "d = 2\nanswer = 9", "d = 5\nanswer = 9"]
    found = GroupTree().advantages(PROBLEM, [(trace(text), 1) for text in texts], PYTHON)
    assert [steps[0] for steps in found] == pytest.approx(
        [2 / 3 - 1 / 3, 2 / 3 - 1 / 3, 2 / 3 - 2 / 3, 0 - 2 / 3]
    )


def test_a_state_is_one_node_however_many_steps_lead_there():
    texts = ["b = 2\nanswer = b + 1", "c = 1\nc = c + 1\nanswer = 9"]
    found = GroupTree().advantages(PROBLEM, [(trace(text), 1) for text in texts], PYTHON)
    assert found == [[1 / 2 - 0, 1 - 0], [0 - 1, 1 / 2 - 1, 0 - 1]]


def test_a_known_step_is_praised_the_one_that_leaves_it_blamed_and_the_rest_is_left_alone():
    problem = Problem("p", "?", 9, "a = 4\nb = a * 2\nanswer = b + 1")
    texts = [
        "n = 4\nm = n * 2\nanswer = m + 1",  # right
        "n = 4\nm = n * 2\nanswer = m - 1",  # wrong at its third step
        "n = 4\nm = n * 3\nk = 7\nanswer = k",  # at its second
        "n = 5\nanswer = 1",  # at once
    ]
    found = KnownSteps().advantages(problem, [(trace(text), 1) for text in texts], PYTHON)
    assert found == [
        pytest.approx([1 - 2 / 3, 1 - 1 / 2, 1 - 0]),
        pytest.approx([1 - 2 / 3, 1 - 1 / 2, 0 - 1]),
        pytest.approx([1 - 2 / 3, 0 - 2 / 2]),
        pytest.approx([0 - 3 / 3]),
    ]


def test_copies_of_a_sample_are_compared_as_samples_of_their_own():
    problem = Problem("p", "?", 9, "a = 4\nanswer = a + 5")
    texts = ["a = 4\nanswer = a + 5", "a = 3\nanswer = a"]
    for objective in (KnownSteps(), GroupTree()):
        together = objective.advantages(problem, [(trace(texts[0]), 2), (trace(texts[1]), 1)], PYTHON)
        apart = objective.advantages(problem, [(trace(text), 1) for text in (texts[0], *texts)], PYTHON)
        assert [together[0], *together] == apart


@pytest.mark.parametrize("objective", ["grpo_steps", "grpo_tree"])
def test_in_a_training_step_tokens_after_a_mistake_count_exactly_nothing(tmp_path, objective):
    trainer = watched_trainer(tmp_path, self_sampling="fcs", objective=objective, num_generations=12)
    trainer.before_step()
    trainer.explore(trainer.batch)
    targets = [target for p in trainer.batch if (found := trainer.targets(p)) for target in found.targets]
    assert any(any(c > 0 for c in target.credits) for target in targets)
    assert any(any(c < 0 for c in target.credits) for target in targets)
    if objective == "grpo_steps":
        assert any(target.credits[-1] == 0 and any(target.credits) for target in targets)
    trainer.learn(trainer.model, trainer.batch)  # and it can be learned


def test_tokens_belong_to_the_step_they_are_in(tmp_path):
    trainer = watched_trainer(tmp_path, self_sampling="fcs", objective="grpo_steps", num_generations=2)
    codec = trainer.codec
    problem = apples(1)[0]
    text = f"{problem.reference.text}\n"
    tokens = (*codec.encode(text), codec.eos_id)
    sample = Sample(problem.id, "", text, 1, finished=True, tokens=tokens)
    steps = len(problem.reference)
    credits = by_token(sample, list(range(steps + 1)), PYTHON, codec)
    lines = dict.fromkeys(range(steps + 1), "")
    for token, credit in zip(tokens, credits, strict=True):
        lines[int(credit)] += codec.decode([token])
    assert [lines[step] for step in range(steps)] == [f"{step}\n" for step in problem.reference.steps]
    assert credits[-1] == steps, "the end is a part of its own"
    first = by_token(sample, [5.0], PYTHON, codec)
    assert first == tuple(5.0 if step == 0 else 0.0 for step in credits), (
        "what nothing is said of counts nothing"
    )
    drawn = [(Sample(problem.id, "", text, n, finished=True, tokens=tokens), trace(text)) for n in (2, 1)]
    found = KnownSteps().learned(problem, drawn, PYTHON, codec)
    assert [target.weight for target in found] == [2 / 3, 1 / 3], "copies count together"

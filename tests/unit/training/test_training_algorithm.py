"""What the printed algorithm fixes about a training step, seen in the steps of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from training_cases import apples, watched_trainer

from partway.cli.train import rehearsal
from partway.problem import Problem
from partway.training import SelfSamplingTrainer
from partway.training.distributed import gradient_norm

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")


class StepByStep(SelfSamplingTrainer):
    """Notes for every step which problems it takes, and what it learns of them."""

    def learn(self, model: Any, problems: Sequence[Problem]) -> Any:
        self.__dict__.setdefault("taken", []).append([problem.id for problem in problems])
        for problem in problems:
            found = self.buffers[problem.id].found.values()
            self.__dict__.setdefault("learned_new", []).append(self.step in found)
            assert len(self.targets(problem).targets) == len(found), "all that is kept is learned from"
        return super().learn(model, problems)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory) -> StepByStep:
    """Six epochs of six problems in two steps each."""
    trainer = watched_trainer(
        tmp_path_factory.mktemp("steps") / "run",
        kind=StepByStep,
        max_steps=12,
        effective_batch_size=3,
        eval_strategy="no",
        save_strategy="no",
    )
    trainer.train()
    return trainer


def test_a_step_learns_from_what_it_found_itself(trainer):
    assert sum(trainer.learned_new[:3]) >= 2, "the script finds something new for most problems at once"


def test_every_step_explores_with_a_seed_of_its_own(trainer):
    seeds = [call.seed for call in trainer.engine.calls]
    assert len(seeds) == len(set(seeds)) == 12


def test_another_seed_explores_otherwise(tmp_path, trainer):
    other = watched_trainer(tmp_path, seed=1, effective_batch_size=3)
    rehearsal(other)
    assert other.engine.calls[0].seed != trainer.engine.calls[0].seed


def test_every_epoch_takes_every_problem_once_and_in_an_order_of_its_own(trainer):
    taken = [problem for step in trainer.taken for problem in step]
    epochs = [tuple(taken[start : start + 6]) for start in range(0, len(taken), 6)]
    assert len(epochs) == 6
    assert {tuple(sorted(epoch)) for epoch in epochs} == {tuple(sorted(epochs[0]))}
    assert len(set(epochs)) >= 5, "two of six shuffles may be alike, not more"


def test_a_problem_without_a_solution_counts_in_the_mean_of_its_step(tmp_path):
    known, other = apples(2)
    unsolved = replace(other, reference=None)
    found = []
    for batch in ([known], [known, unsolved]):
        trainer = watched_trainer(tmp_path, [known, unsolved])
        trainer.batch = batch
        found.append((trainer.learn(trainer.model, batch).item(), gradient_norm(trainer.model)))
    assert found[1] == pytest.approx([one / 2 for one in found[0]], rel=1e-4)


def test_both_kinds_of_samples_of_an_evaluation_have_a_seed_of_their_own(tmp_path):
    trainer = watched_trainer(tmp_path)
    trainer.evaluate()
    low, high = trainer.engine.calls
    assert low.seed != high.seed

"""The bare answer of a problem without a reference, right by luck, before real solutions are found."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from training_cases import WatchedEngine, apples, watched_trainer

from partway.beyond.variation import strange_literals
from partway.problem import Problem
from partway.sample import Request
from partway.solution import Solution

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")


class LuckyFirst(WatchedEngine):
    """Writes the bare answer when it is asked for a problem for the first time, then the script."""

    def _completion(self, request: Request, rng: random.Random) -> str:
        asked = [one.problem.id for call in self.calls for one in call.requests]
        if asked.count(request.problem.id) == 1:
            return f"answer = {request.problem.answer}\n"
        return super()._completion(request, rng)


@pytest.mark.parametrize("spurious", ["keep", "drop"])
def test_a_bare_answer_that_is_found_first_is_not_learned_and_shuts_nothing_out(tmp_path, spurious):
    problems = [p for p in apples(12) if strange_literals(Solution((f"x = {p.answer}",)), p.question)][:6]
    settings = {"reference_share": 0.4, "effective_batch_size": 6, "eval_strategy": "no"}
    trainer = watched_trainer(
        tmp_path / "run",
        problems,
        spurious=spurious,
        solved_share=0.5,
        max_solutions_per_problem=4,
        **settings,
    )
    trainer.engine = LuckyFirst()
    given = {problem.id: problem.reference is not None for problem in trainer.train_dataset}
    assert 0 < sum(given.values()) < 6
    learned: list[dict[str, list[str]]] = []
    learn = trainer.learn

    def watched(model: Any, batch: Sequence[Problem]) -> Any:
        loss = learn(model, batch)
        texts = trainer.learned.targets.items()
        learned.append({key: [trainer.codec.decode(t.tokens) for t in found.targets] for key, found in texts})
        return loss

    trainer.learn = watched
    trainer.train()
    without = [key for key in given if not given[key]]
    bare = {problem.id: f"answer = {problem.answer}" for problem in problems}
    is_bare = [
        any(text.startswith(bare[key]) for text in step.get(key, [])) for step in learned for key in without
    ]
    assert any(is_bare) is (spurious == "keep"), "where nothing is dropped the test would see it"
    for key in without:
        assert (key in learned[0]) is (spurious == "keep"), "no solution yet, or a lucky one"
        assert any("answer = t0 - n2" in text for text in learned[-1][key])
    assert trainer.buffers.metrics()["buffer/problems_with_a_solution"] == 6

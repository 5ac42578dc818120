"""verifiers itself plugs the trace reward into a task and scores a trace with it."""

import asyncio

import pytest

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed; make test-integrations")

REFERENCE = "a = 4\nb = a * 2\nanswer = b + 1"


class StoryData(vf.TaskData):
    answer: int
    solution: str


class StoryTask(vf.Task[StoryData]):
    pass


class Stories(vf.Taskset[StoryTask]):
    def load(self):
        config = vf.TaskConfig(rewards={"trace_credit": {"fn": "partway.rewards:trace_credit"}})
        yield StoryTask(StoryData(prompt="How many?", answer=9, solution=REFERENCE), config)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("reply", "score"), [(f"```python\n{REFERENCE}\n```", 1.0), ("n = 4\nm = n * 2\nanswer = m", 1 / 3)]
)
def test_a_reply_is_scored_by_the_tasks_plugged_reward(reply, score):
    [task] = Stories(vf.TasksetConfig(id="stories"))
    trace = vf.Trace.model_construct(nodes=[], root_reply=reply, rewards={}, metrics={})
    asyncio.run(task.score(trace))
    assert trace.rewards["trace_credit"].score == pytest.approx(score)

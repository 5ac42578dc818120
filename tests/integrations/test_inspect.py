"""inspect_ai itself runs a task and scores it with trace credit."""

import pytest

from partway.rewards import trace_scorer

inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai is not installed; make test-integrations")

REFERENCE = "a = 4\nb = a * 2\nanswer = b + 1"


@pytest.mark.filterwarnings("default")
def test_a_task_is_scored_by_trace_credit(tmp_path, monkeypatch):
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.model import _model as models

    monkeypatch.setattr(models, "count_text_tokens", len)  # its own way asks the network for a vocabulary

    replies = [f"```python\n{REFERENCE}\n```", "n = 4\nm = n * 2\nanswer = m", "answer = 8"]
    known = {"answer": 9, "solution": REFERENCE}
    samples = [Sample(input="How many?", target="9", metadata=known) for _ in replies]
    model = get_model(
        "mockllm/model", custom_outputs=[ModelOutput.from_content("m", text) for text in replies]
    )
    task = inspect_ai.Task(dataset=MemoryDataset(samples), scorer=trace_scorer())
    [log] = inspect_ai.eval(task, model=model, log_dir=str(tmp_path), display="none", max_samples=1)
    assert log.status == "success", log.error
    assert log.results.scores[0].metrics["mean"].value == pytest.approx((1 + 1 / 3) / 3)

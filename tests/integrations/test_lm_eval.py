"""lm-eval itself reads a task that names our score, lets a model answer and averages."""

import json

import pytest

from partway.models.loading import load_model

lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is not installed; make test-integrations")

REFERENCE = "a = 4\nb = a * 2\nanswer = b + 1"
TASK = """
task: stories
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
generation_kwargs: {{until: ["answer = "], max_gen_toks: 4}}
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
process_results: !function scores.process_results
metric_list:
  - {{metric: trace_credit, aggregation: mean, higher_is_better: true}}
  - {{metric: correct, aggregation: mean, higher_is_better: true}}
"""


@pytest.mark.filterwarnings("default")
def test_a_task_reports_trace_credit_and_the_share_that_is_correct(tmp_path, monkeypatch):
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    rows = [{"question": q, "answer": 9, "solution": REFERENCE} for q in ("right?", "partway?", "wrong?")]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "stories.yaml").write_text(TASK.format(data=tmp_path / "test.jsonl"))
    (tmp_path / "scores.py").write_text("from partway.rewards import process_results\n")
    written = {"right?": REFERENCE, "partway?": "n = 4\nm = n * 2\nanswer = m", "wrong?": "answer = 8"}
    language_model = load_model("tiny-storyproblems")
    model = HFLM(pretrained=language_model.model, tokenizer=language_model.codec.tokenizer)
    monkeypatch.setattr(
        model, "generate_until", lambda requests, **_: [written[one.args[0]] for one in requests]
    )
    tasks = TaskManager(include_path=str(tmp_path), include_defaults=False)
    found = lm_eval.simple_evaluate(model, tasks=["stories"], task_manager=tasks, bootstrap_iters=0)
    assert found["results"]["stories"]["trace_credit,none"] == pytest.approx((1 + 1 / 3) / 3)
    assert found["results"]["stories"]["correct,none"] == pytest.approx(1 / 3)

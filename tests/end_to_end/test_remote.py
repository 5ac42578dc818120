"""A real server on loopback: `transformers serve` with a tiny model that has learned one answer."""

import json
import sys

import pytest

from benchmarks.serving import transformers_serve
from partway import cli
from partway.models.prompts import FewShotPrompt
from partway.problem import Problem

pytestmark = pytest.mark.slow

PROBLEMS = [Problem(f"p{n}", f"Tom has {n} apples. How many are five?", 5, "answer = 5") for n in range(8)]
SHOTS = FewShotPrompt.of(PROBLEMS[:4])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The directory of a model that continues every question with `answer = 5`."""
    import torch

    from partway.models.tiny import build_tiny_model

    language_model = build_tiny_model(PROBLEMS, hidden_size=32, layers=1, heads=2)
    network, codec = language_model.model, language_model.codec
    prompts = [prompt.text(p.question) for p in PROBLEMS for prompt in (FewShotPrompt(), SHOTS)]
    target = codec.target(PROBLEMS[0].reference, finished=True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for prompt in prompts * 6:
        tokens = torch.tensor([codec.encode(prompt) + target])
        labels = tokens.clone()
        labels[:, : -len(target)] = -100
        network(input_ids=tokens, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    directory = tmp_path_factory.mktemp("serve") / "model"
    network.generation_config.do_sample = True  # what the server goes by
    network.save_pretrained(directory)
    codec.tokenizer.save_pretrained(directory)
    return directory


def test_a_served_model_is_evaluated_with_the_few_shot_prompt(model, tmp_path, monkeypatch, capsys):
    from transformers.utils.import_utils import is_serve_available

    if not is_serve_available():
        pytest.skip("transformers serve is not installed; pip install 'transformers[serving]'")
    for name, problems in (("examples", PROBLEMS[:4]), ("test", PROBLEMS[4:])):
        rows = ({"question": p.question, "answer": 5, "solution": "answer = 5"} for p in problems)
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with transformers_serve(tmp_path / "serve.log", model) as (_, address):
        url = f"{address}/v1"
        for few_shot in ([], ["--few-shot", str(tmp_path / "examples.jsonl")]):
            options = ["--problems", str(tmp_path / "test.jsonl"), "--samples", "3", "--json"]
            limits = ["--max-completion-length", "16", "--out", str(tmp_path / f"out{len(few_shot)}")]
            command = ["partway", "evaluate", "--engine", url, *options, *limits, *few_shot]
            monkeypatch.setattr(sys, "argv", command)
            with pytest.raises(SystemExit) as exit:
                cli.main()
            shown, error = capsys.readouterr()
            assert exit.value.code == 0, error
            metrics = json.loads(shown)["metrics"]
            assert metrics["pass@1"]["value"] == 1
            assert metrics["pass@3"]["value"] == 1

"""A real server on loopback: `transformers serve` with a tiny model that has learned one answer."""

import json
import sys

import pytest
from chat_templates import chat_model, chat_tokenizer
from training_cases import apples
from transformers.utils.import_utils import is_serve_available

from benchmarks.serving import transformers_serve
from partway import cli
from partway.measuring.few_shot import few_shot_prompt
from partway.models.text import PlainPrompt
from partway.problem import Problem
from partway.training import SelfSamplingConfig, SelfSamplingTrainer

pytestmark = pytest.mark.slow

PROBLEMS = [Problem(f"p{n}", f"Tom has {n} apples. How many are five?", 5, "answer = 5") for n in range(8)]
SHOTS = few_shot_prompt(PROBLEMS[:4])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The directory of a model that continues every question with `answer = 5`."""
    import torch

    from partway.models.tiny import build_tiny_model

    language_model = build_tiny_model(PROBLEMS, hidden_size=32, layers=1, heads=2)
    network, codec = language_model.model, language_model.codec
    prompts = [prompt.text(p.question) for p in PROBLEMS for prompt in (PlainPrompt(), SHOTS)]
    target = codec.target(PROBLEMS[0].reference, finished=True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for prompt in prompts * 20:  # until it is sure: the server draws as it likes
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


@pytest.fixture
def evaluate(monkeypatch, capsys):
    """Evaluates on some problems; gives the metrics."""

    def run(problems, *options):
        command = ["partway", "evaluate", "--problems", problems, "--samples", 3, "--json", *options]
        monkeypatch.setattr(sys, "argv", [str(word) for word in (*command, "--max-completion-length", 64)])
        with pytest.raises(SystemExit) as exit:
            cli.main()
        shown, error = capsys.readouterr()
        assert exit.value.code == 0, error
        return {name: metric["value"] for name, metric in json.loads(shown)["metrics"].items()}

    return run


def write(path, problems):
    rows = ({"question": p.question, "answer": p.answer, "solution": str(p.reference)} for p in problems)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.skipif(not is_serve_available(), reason="pip install 'transformers[serving]'")
def test_a_served_model_is_evaluated_with_the_few_shot_prompt(model, tmp_path, evaluate):
    examples = write(tmp_path / "examples.jsonl", PROBLEMS[:4])
    test = write(tmp_path / "test.jsonl", PROBLEMS[4:])
    with transformers_serve(tmp_path / "serve.log", model) as (_, address):
        for few_shot in ([], ["--few-shot", examples]):
            out = ("--out", tmp_path / str(len(few_shot)))
            found = evaluate(test, "--engine", f"{address}/v1", *out, *few_shot)
            assert found["pass@1"] == found["pass@3"] == 1


@pytest.mark.skipif(not is_serve_available(), reason="pip install 'transformers[serving]'")
def test_a_chat_model_on_a_server_scores_as_it_does_here(tmp_path, evaluate):
    problems = apples(1)
    settings = {"max_steps": 200, "effective_batch_size": 1, "learning_rate": 1e-2, "warmup_steps": 2}
    quiet = {"disable_tqdm": True, "use_cpu": True, "report_to": "none"}
    config = SelfSamplingConfig(
        output_dir=str(tmp_path / "run"), self_sampling="none", objective="mle", **settings, **quiet
    )
    tokenizer = chat_tokenizer("Qwen2.5", problems)
    trainer = SelfSamplingTrainer(
        chat_model("Qwen2.5", problems).model, config, problems, processing_class=tokenizer
    )
    trainer.train()
    test, final = write(tmp_path / "test.jsonl", problems), tmp_path / "run" / "final"
    here = evaluate(test, final, "--out", tmp_path / "here")
    with transformers_serve(tmp_path / "serve.log", final) as (_, address):
        # By the tokenizer that is named, or by that of the model if the server calls it by its directory.
        as_the_run = ("--tokenizer", tmp_path / "run", "--out", tmp_path / "named")
        named = evaluate(test, "--engine", address, *as_the_run)
        own = evaluate(test, final, "--engine", address, "--out", tmp_path / "own")
        plain = evaluate(test, "--engine", address, "--out", tmp_path / "plain")
    for found in (here, named, own):
        assert found["executable"] == found["pass@1"] == found["pass@3"] == 1
    assert plain["pass@1"] == 0, "the test would see that it is asked plainly"

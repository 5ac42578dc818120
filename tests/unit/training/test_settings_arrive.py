"""Every key of the settings, set to something else than its default, is seen where it has its effect.

A test says by `@arriving(key=value, ...)` which keys it follows; the last test fails for a key without one.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from chat_templates import chat_tokenizer
from click.testing import CliRunner
from languages import Expressions
from scoring_cases import alone
from training_cases import apples, tiny_gpt_neo, watched_trainer, write_inputs
from transformers import EarlyStoppingCallback

from partway.buffer import SolutionBuffer
from partway.cli import app
from partway.cli.train import rehearsal
from partway.errors import ModelError
from partway.evaluation import Evaluation
from partway.language import trace
from partway.models import loading
from partway.objectives import objective
from partway.problem import Problem
from partway.runs import Run, json_line
from partway.sample import Request
from partway.solution import EMPTY, Solution
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.config import own_fields
from partway.training.impossible import REFUSED
from partway.training.preparation import named_model, prepared_model

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")

PROBLEM = apples(1)[0]
FOLLOWED: dict[str, Any] = {}


ELSEWHERE = {  # keys that a file of their own follows through the trainer
    "sample_budget": "buffer/test_weak_supervision.py",
    "solved_share": "buffer/test_weak_supervision.py",
    "reference_share": "buffer/test_weak_supervision.py",
    "engine": "../modelservers/test_server_training.py",
    "engine_timeout": "../modelservers/test_server_training.py",
    "weight_sync": "../modelservers/test_server_training.py",
    "weight_sync_steps": "../modelservers/test_server_training.py",
    "explore_ahead": "../modelservers/test_server_training.py",
}


def arriving(**settings: Any) -> pytest.MarkDecorator:
    """Gives the test these settings, and notes that it follows their keys."""
    FOLLOWED.update(settings)
    return pytest.mark.parametrize("settings", [settings], ids=["-".join(settings)])


def of_the_language(**settings: Any) -> pytest.MarkDecorator:
    """Gives the test these settings of the language, which stand beside the others."""
    return pytest.mark.parametrize("settings", [settings], ids=["-".join(settings)])


def verdict_on(trainer: SelfSamplingTrainer, text: str) -> str:
    """What the trainer makes of a sampled solution of the first problem."""
    trainer.batch = [PROBLEM]
    trainer.buffers.will_explore(trainer.batch)
    [trace] = trainer.language.trace_all([(PROBLEM, text)])
    trainer.account.consider(Request(PROBLEM, EMPTY, 1).sample(text), trace, trainer.step)
    (sample,) = trainer.buffers.exchange(trainer.accelerator)
    return str(sample.verdict)


def renamed(text: str) -> str:
    return text.replace("n", "m").replace("amswer", "answer")


# What is sampled


@arriving(num_generations=2, temperature=0.55, top_p=0.9, top_k=7, max_completion_length=11)
def test_the_engine_is_asked_as_the_settings_say(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    rehearsal(trainer)
    (call,) = trainer.engine.calls
    assert {request.count for request in call.requests} == {2}
    asked = call.settings
    assert (asked.temperature, asked.top_p, asked.top_k) == (0.55, 0.9, 7)
    assert asked.max_completion_length == 11


@arriving(preset="paper")
def test_a_preset_is_what_is_not_said_otherwise(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings, num_generations=None, dead_ends="drop")
    rehearsal(trainer)
    assert {request.count for request in trainer.engine.calls[0].requests} == {1}
    rules = trainer.buffers[PROBLEM.id].rules
    assert (rules.dedup, rules.dead_ends) == ("ast", "drop")
    assert trainer.args.settings["num_generations"] == 1  # what a run writes down


def test_what_is_recommended_is_the_default(tmp_path):
    trainer = watched_trainer(tmp_path, preset="recommended", num_generations=None)
    rehearsal(trainer)
    assert {request.count for request in trainer.engine.calls[0].requests} == {4}
    rules = trainer.buffers[PROBLEM.id].rules
    assert (rules.dedup, rules.dead_ends) == ("spelling", "drop")


def test_by_default_the_engine_samples_from_the_whole_distribution(tmp_path):
    trainer = watched_trainer(tmp_path)
    rehearsal(trainer)
    asked = trainer.engine.calls[0].settings
    assert (asked.temperature, asked.top_p, asked.top_k) == (0.8, 1.0, 0)


@arriving(
    eval_samples=6,
    eval_k=[2, 3],
    eval_temperature=0.65,
    eval_pass1_samples=4,
    eval_pass1_temperature=0.35,
    max_eval_problems=2,
)
def test_an_evaluation_draws_what_the_settings_say(tmp_path, settings):
    trainer = watched_trainer(tmp_path, temperature=0.55, top_k=7, max_completion_length=11, **settings)
    metrics = trainer.evaluate()
    low, high = trainer.engine.calls
    assert [request.count for request in low.requests] == [4, 4]
    assert [request.count for request in high.requests] == [6, 6]
    assert (low.settings.temperature, high.settings.temperature) == (0.35, 0.65)
    assert {low.settings.top_k, high.settings.top_k, low.settings.top_p, high.settings.top_p} == {0, 1.0}
    assert low.settings.max_completion_length == high.settings.max_completion_length == 11
    passes = {key for key in metrics if key.startswith("eval_pass@")}
    assert passes == {"eval_pass@1", "eval_pass@2", "eval_pass@3"}


def test_evaluations_do_not_take_the_temperature_of_self_sampling(tmp_path):
    trainer = watched_trainer(tmp_path, temperature=0.55)
    trainer.evaluate()
    assert [call.settings.temperature for call in trainer.engine.calls] == [0.2, 0.8]


def prompt_with(**settings: Any) -> str:
    """What a model with a chat template reads before it writes."""
    tokenizer = chat_tokenizer("SmolLM2", [PROBLEM])
    model = tiny_gpt_neo([PROBLEM]).model
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    codec = prepared_model(model, tokenizer, SelfSamplingConfig(use_cpu=True, **settings), [PROBLEM]).codec
    return codec.tokenizer.decode(codec.prompt(PROBLEM.question))


@arriving(sampling_memory=0.5)
def test_the_engine_may_hold_so_much_memory(tmp_path, settings):
    problems = apples(2)
    args = SelfSamplingConfig(output_dir=str(tmp_path), use_cpu=True, **settings)
    trainer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems)
    assert trainer.engine.bytes == 1 << 29


@pytest.mark.parametrize("engine", ["http://a, http://b", ["http://a", "http://b"]])
def test_servers_are_a_list_or_separated_by_commas(engine):
    assert SelfSamplingConfig(engine=engine, use_cpu=True).servers == ["http://a", "http://b"]


@arriving(chat_template="none")
def test_a_chat_template_is_left_aside_if_the_settings_say_so(settings):
    assert "<|im_start|>" in prompt_with()
    assert prompt_with(**settings) == f"# {PROBLEM.question}\n"


@arriving(system_prompt="Count with care.", prompt_template="Q: {{ question }}\nA:\n")
def test_questions_are_put_as_the_settings_say(settings):
    assert settings["system_prompt"] not in prompt_with()
    assert settings["system_prompt"] in prompt_with(system_prompt=settings["system_prompt"])
    own = prompt_with(prompt_template=settings["prompt_template"])
    assert own == f"Q: {PROBLEM.question}\nA:\n"


def test_a_model_that_is_loaded_by_its_name_is_asked_as_the_settings_say(tmp_path):
    write_inputs(tmp_path)
    config = SelfSamplingConfig(use_cpu=True, prompt_template="Q: {{ question }}\n")
    for name in ("tiny", str(tmp_path / "model")):
        codec = prepared_model(name, None, config, apples(1)).codec
        assert codec.decode(codec.prompt("How many?")) == "Q: How many?\n"


# What is kept


@arriving(self_sampling="fcs")
def test_without_partial_solutions_none_is_kept(tmp_path, settings):
    text = renamed(PROBLEM.reference.text).replace("answer = ", "answer = 1 + ")
    assert verdict_on(watched_trainer(tmp_path), text) == "new_partially_correct"
    assert verdict_on(watched_trainer(tmp_path, **settings), text) == "incorrect"


def test_without_self_sampling_nothing_is_drawn(tmp_path):
    trainer = watched_trainer(tmp_path, self_sampling="none")
    rehearsal(trainer)
    assert trainer.engine.calls == []


@arriving(dedup="alpha")
def test_renamed_solutions_are_duplicates_if_the_settings_say_so(tmp_path, settings):
    text = renamed(PROBLEM.reference.text)
    assert verdict_on(watched_trainer(tmp_path), text) == "new_fully_correct"
    assert verdict_on(watched_trainer(tmp_path, **settings), text) == "known_fully_correct"


@arriving(partial_solutions="guide")
def test_partial_solutions_guide_without_being_learned(tmp_path, settings):
    text = renamed(PROBLEM.reference.text).replace("answer = ", "answer = 1 + ")
    kinds = {}
    for name in ("both", "guide", "targets"):
        trainer = watched_trainer(tmp_path / name, partial_solutions=name)
        assert verdict_on(trainer, text) == "new_partially_correct"
        kinds[name] = {target.kind for target in trainer.targets(PROBLEM).targets}
        for trainer.state.global_step in range(12):
            trainer.explore([PROBLEM])
        is_guided = any(request.prefix for call in trainer.engine.calls for request in call.requests)
        assert is_guided == (name != "targets")
    assert kinds["guide"] == {"reference"}
    assert kinds["both"] == kinds["targets"] == {"reference", "partially_correct"}


@of_the_language(state="set")
def test_states_are_compared_as_the_settings_say(tmp_path, settings):
    first = PROBLEM.reference.steps[0]
    value = first.split(" = ")[1]
    text = f"a = {value}\nb = {value}\nanswer = 0"  # a set of one value, which the reference has too
    assert verdict_on(watched_trainer(tmp_path), text) == "new_partially_correct"
    buffer = (trainer := watched_trainer(tmp_path)).buffers[PROBLEM.id]
    assert verdict_on(trainer, text) == "new_partially_correct"
    assert buffer.partially_correct == (Solution((f"a = {value}",)),)
    assert verdict_on(watched_trainer(tmp_path, **settings), text) == "too_long"


@arriving(length_tolerance=1)
def test_kept_solutions_may_be_longer_by_the_tolerance(tmp_path, settings):
    text = f"{PROBLEM.reference.prefix(4).text}\nt1 = t0 + 0\nanswer = t1 - n2"
    assert verdict_on(watched_trainer(tmp_path), text) == "too_long"
    assert verdict_on(watched_trainer(tmp_path, **settings), text) == "new_fully_correct"


@arriving(max_solutions_per_problem=2)
def test_a_buffer_holds_at_most_what_the_settings_say(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    for name in "abcd":
        verdict_on(trainer, f"{name} = {PROBLEM.reference.steps[0].split(' = ')[1]}\nanswer = 0")
    assert len(trainer.buffers[PROBLEM.id]) == 2


@of_the_language(answer_variable="result")
def test_the_answer_variable_is_that_of_the_settings(tmp_path, settings):
    text = PROBLEM.reference.text.replace("answer", "result")
    problem = Problem(PROBLEM.id, PROBLEM.question, PROBLEM.answer, Solution.parse(text, "result"))
    trainer = watched_trainer(tmp_path, [problem], **settings)
    assert trainer.left_out == []
    assert verdict_on(trainer, renamed(text)) == "new_fully_correct"
    assert verdict_on(trainer, PROBLEM.reference.text) == "new_partially_correct", "no answer"


@of_the_language(checker="close", checker_rel_tol=0.25, checker_abs_tol=0.5)
def test_answers_are_checked_as_the_settings_say(tmp_path, settings):
    near = f"{PROBLEM.reference.prefix(4).text}\nanswer = (t0 - n2) * 1.2"
    trainer = watched_trainer(tmp_path, **settings)
    assert verdict_on(trainer, near) == "new_fully_correct"
    assert verdict_on(trainer, near.replace("* 1.2", "* 1.5")) == "known_partially_correct"
    assert verdict_on(watched_trainer(tmp_path), near) == "known_partially_correct"
    assert PROBLEM.answer > 2, "the relative tolerance is the larger one"
    absolute = watched_trainer(tmp_path, **settings | {"checker_rel_tol": 0.0})
    assert verdict_on(absolute, near.replace("* 1.2", "+ 0.4")) == "new_fully_correct"


@arriving(language="languages:Expressions")
def test_the_language_is_that_of_the_settings(tmp_path, settings):
    reference = "\n".join(["10 + 5", "_ - 3"])
    problem = Problem(PROBLEM.id, PROBLEM.question, 12, Expressions().parse(reference))
    trainer = watched_trainer(tmp_path, [problem], **settings)
    assert verdict_on(trainer, "5 + 10\n_ - 3\n") == "new_fully_correct"
    asked, judged = trainer.args.asking.language, trainer.args.evaluation.language
    assert type(asked) is type(judged) is Expressions


@arriving(dead_ends="drop", length_limit=9)
def test_buffers_have_the_rules_of_the_settings(tmp_path, settings):
    rules = watched_trainer(tmp_path, **settings).buffers[PROBLEM.id].rules
    assert {key: getattr(rules, key) for key in settings} == settings


@arriving(spurious="flag")
def test_a_setting_asks_for_its_rule_from_outside(tmp_path, settings):
    assert watched_trainer(tmp_path, **settings).buffers[PROBLEM.id].rules.added == (("spurious", "flag"),)


@arriving(added_rules=["spurious=drop"])
def test_buffers_have_the_rules_from_outside_that_the_settings_name(tmp_path, settings):
    assert watched_trainer(tmp_path, **settings).buffers[PROBLEM.id].rules.added == (("spurious", "drop"),)


@arriving(language_args={"checker": "exact", "state": "strict"})
def test_the_language_has_the_settings_given_for_it(tmp_path, settings):
    language = watched_trainer(tmp_path, **settings).language
    assert (language.checker, language.state) == ("exact", "strict")


@arriving(buffer_file="buffer.jsonl")
def test_buffers_begin_with_the_solutions_of_a_file(tmp_path, settings):
    buffer = SolutionBuffer.seeded(PROBLEM)
    buffer.consider(trace(renamed(PROBLEM.reference.text)))
    path = tmp_path / settings["buffer_file"]
    path.write_text(json_line({"id": PROBLEM.id, **buffer.to_json()}))
    trainer = watched_trainer(tmp_path / "run", buffer_file=str(path))
    assert trainer.buffers[PROBLEM.id].fully_correct == buffer.fully_correct
    assert len(buffer.fully_correct) == 2


# What is learned


def learned(trainer: SelfSamplingTrainer) -> float:
    """The loss of the first problem when it has two fully-correct solutions of different lengths."""
    shorter = f"{PROBLEM.reference.prefix(3).text}\nanswer = n0 + n1 - n2"
    assert verdict_on(trainer, shorter) == "new_fully_correct"
    return trainer.learn(trainer.model, [PROBLEM]).item()


def expected(trainer: SelfSamplingTrainer, loss: Callable[..., torch.Tensor]) -> float:
    """The same from the definition: each target scored alone."""
    problem = trainer.targets(PROBLEM)
    log_probs = torch.stack([alone(trainer.model.eval(), problem.prompt, t) for t in problem.sequences])
    return loss(log_probs, problem.targets).item()


@arriving(objective="beta_mml", objective_args={"beta": 0.6}, loss_normalization="length")
def test_the_loss_is_the_objective_of_the_settings(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    loss = learned(trainer)
    assert loss == pytest.approx(expected(trainer, objective("beta_mml", {"beta": 0.6}, "length")), rel=1e-4)
    for other in (
        ("mle_aug", None, "length"),
        ("beta_mml", {"beta": 0.25}, "length"),
        ("beta_mml", {"beta": 0.6}, "sum"),
    ):
        assert loss != pytest.approx(expected(trainer, objective(*other)), rel=1e-2)


@arriving(learn_question=True)
def test_the_question_is_learned_if_the_settings_say_so(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    loss = learned(trainer)
    problem = trainer.targets(PROBLEM)
    whole = [problem.prompt + target for target in problem.sequences]
    by_hand = -sum(alone(trainer.model.eval(), text[:1], text[1:]).item() for text in whole)
    assert loss == pytest.approx(by_hand, rel=1e-4)
    without = watched_trainer(tmp_path)
    assert learned(without) == pytest.approx(expected(without, objective("mle_aug")), rel=1e-4)


@arriving(solutions_per_step=2)
def test_a_step_learns_from_so_many_solutions_and_always_from_the_reference(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    for first in (
        "n2 = {2}\nn1 = {1}\nn0 = {0}",
        "n1 = {1}\nn2 = {2}\nn0 = {0}",
        "n0 = {0}\nn2 = {2}\nn1 = {1}",
    ):
        numbers = [step.split(" = ")[1] for step in PROBLEM.reference.steps[:3]]
        verdict_on(trainer, f"{first.format(*numbers)}\nanswer = n0 + n1 - n2")
    reference = (*trainer.codec.steps(PROBLEM.reference), trainer.codec.eos_id)
    chosen = set()
    for step in range(30):
        trainer.state.global_step = step
        targets = trainer.targets(PROBLEM).sequences
        assert len(targets) == 2
        assert targets[0] == reference
        chosen.add(targets[1])
    assert len(chosen) == 3, "the others take turns"


def test_what_is_chosen_evaluated_and_made_follows_the_seed(tmp_path):
    assert SelfSamplingConfig(seed=5, use_cpu=True).evaluation.seed == 5
    chosen, weights = [], []
    for seed in (0, 1):
        trainer = watched_trainer(tmp_path, solutions_per_step=2, seed=seed)
        for name in "abc":
            verdict_on(trainer, PROBLEM.reference.text.replace("n0", name))
        chosen.append(
            [trainer.kept_targets.of(PROBLEM, trainer.buffers[PROBLEM.id], (), n) for n in range(9)]
        )
        tiny = named_model(
            "tiny", SelfSamplingConfig(seed=seed, config_overrides="hidden_size=32"), [PROBLEM]
        )
        weights.append(next(tiny.model.parameters()))
    assert chosen[0] != chosen[1]
    assert not torch.equal(*weights)


@arriving(tokens_per_pass=60)
def test_a_pass_reads_at_most_the_tokens_of_the_settings(tmp_path, settings):
    def largest_pass(trainer: SelfSamplingTrainer) -> int:
        sizes = []
        hook = trainer.model.register_forward_pre_hook(
            lambda _, args, inputs: sizes.append(inputs["input_ids"].numel()), with_kwargs=True
        )
        rehearsal(trainer)
        hook.remove()
        return max(sizes)

    assert largest_pass(watched_trainer(tmp_path, **settings)) <= 60
    assert largest_pass(watched_trainer(tmp_path)) > 60


# How it is trained


@arriving(per_device_train_batch_size=3)
def test_a_process_takes_so_many_problems(tmp_path, settings):
    trainer = watched_trainer(tmp_path, effective_batch_size=None, gradient_accumulation_steps=2, **settings)
    trainer.before_step()
    assert len(trainer.batch) == 6


@arriving(effective_batch_size=5)
def test_a_step_takes_so_many_problems(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    trainer.before_step()
    assert len(trainer.batch) == 5


@arriving(buffer_sync_steps=3)
def test_buffers_are_exchanged_every_so_many_steps(tmp_path, settings, monkeypatch):
    trainer = watched_trainer(tmp_path, **settings)
    shared: list[int] = []
    monkeypatch.setattr(trainer, "share", lambda: shared.append(trainer.state.global_step))
    for step in range(1, 7):
        trainer.state.global_step = step
        trainer.after_step()
    assert shared == [3, 6]


@arriving(learning_rate=0.02, weight_decay=0.3, warmup_steps=4)
def test_the_optimiser_is_that_of_the_settings(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    trainer.create_optimizer_and_scheduler(num_training_steps=8)
    assert type(trainer.optimizer).__name__ == "AdamW"
    assert {group["weight_decay"] for group in trainer.optimizer.param_groups} == {0.3, 0.0}
    rates = []
    for _ in range(8):
        rates.append(trainer.lr_scheduler.get_last_lr()[0])
        trainer.optimizer.step()
        trainer.lr_scheduler.step()
    assert rates == pytest.approx([0, 0.005, 0.01, 0.015, 0.02, 0.015, 0.01, 0.005])


@arriving(use_peft=True, lora_r=3, lora_alpha=5, lora_target_modules=["q_proj", "out_proj"])
def test_an_adapter_is_made_as_the_settings_say(tmp_path, settings):
    trainer = watched_trainer(tmp_path, **settings)
    lora = trainer.model.peft_config["default"]
    assert (lora.r, lora.lora_alpha) == (3, 5)
    adapted = {
        name.split(".lora_A")[0].rsplit(".", 1)[1]
        for name, _ in trainer.model.named_modules()
        if ".lora_A." in name
    }
    assert adapted == {"q_proj", "out_proj"}


@arriving(
    config_overrides="hidden_size=24, num_hidden_layers=3,num_attention_heads=2,max_position_embeddings=99"
)
def test_tiny_has_the_sizes_of_the_settings(settings):
    config = SelfSamplingConfig(model_name_or_path="tiny", **settings)
    made = named_model("tiny", config, apples(2)).model.config
    sizes = (made.hidden_size, made.num_hidden_layers, made.num_attention_heads, made.max_position_embeddings)
    assert sizes == (24, 3, 2, 99)


@arriving(early_stopping_patience=7)
def test_patience_is_that_of_the_settings(tmp_path, settings):
    callbacks = watched_trainer(tmp_path, **settings).callback_handler.callbacks
    (stopping,) = [one for one in callbacks if isinstance(one, EarlyStoppingCallback)]
    assert stopping.early_stopping_patience == 7


RUN = {
    "model_name_or_path": "model",
    "train_file": "train.jsonl",
    "eval_file": "dev.jsonl",
    "output_dir": "somewhere",
    "max_steps": 4,
    "sampling_start_step": 1,
    "logging_steps": 2,
    "eval_steps": 1,
    "save_steps": 1,
    "save_total_limit": 1,
    "metric_for_best_model": "eval_pass@2",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """A run made by the command line from a file with the settings above."""
    folder = tmp_path_factory.mktemp("run")
    write_inputs(folder)
    paths = {key: str(folder / RUN[key]) for key in list(RUN)[:4]}
    settings = {**yaml.safe_load((folder / "config.yaml").read_text()), **RUN, **paths}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    with pytest.MonkeyPatch.context() as patch:
        scores = iter([(0.1, 0.8), (0.2, 0.9), (0.3, 0.7), (0.4, 0.6)])
        patch.setattr(
            Evaluation,
            "scalars",
            lambda _, prefix: dict(zip((f"{prefix}pass@1", f"{prefix}pass@2"), next(scores), strict=True)),
        )
        result = CliRunner().invoke(
            app, ["--quiet", "train", str(folder / "config.yaml")], catch_exceptions=False
        )
    assert result.exit_code == 0
    return Run(folder / "somewhere")


@arriving(**RUN)
def test_a_run_is_where_and_as_long_as_the_settings_say(run, settings):
    assert run.is_finished
    metrics = run.metrics()
    assert [line["step"] for line in metrics if "loss" in line] == [2, 4]
    assert [line["step"] for line in metrics if "eval_pass@1" in line] == [1, 2, 3, 4]
    assert {sample.step for sample in run.samples()} == {2, 3, 4}
    assert [problem.question for problem in run.problems("train")] == [p.question for p in apples(8)]
    assert [problem.question for problem in run.problems("dev")] == [p.question for p in apples(2, seed=1)]


def test_the_best_checkpoint_is_the_one_the_settings_mean(run):
    assert list(run.checkpoints()) == [2], "one is kept, the best"
    best = (run.directory / "checkpoint-2" / "model.safetensors").read_bytes()
    assert (run.directory / "final" / "model.safetensors").read_bytes() == best


@arriving(dtype="float16")
def test_weights_are_loaded_in_the_type_of_the_settings(tmp_path, settings):
    write_inputs(tmp_path)
    config = SelfSamplingConfig(output_dir=str(tmp_path), **settings)
    loaded = prepared_model(str(tmp_path / "model"), None, config, apples(1))
    assert {weight.dtype for weight in loaded.model.parameters()} == {torch.float16}


@arriving(attn_implementation="eager")
def test_attention_is_computed_as_the_settings_say(tmp_path, settings):
    config = SelfSamplingConfig(output_dir=str(tmp_path), **settings)
    loaded = prepared_model("tiny", None, config, apples(1))
    assert loaded.model.config._attn_implementation == "eager"


def quantised_with(tmp_path, monkeypatch, settings):
    """What transformers is asked for; bitsandbytes itself is played."""
    asked = {}

    def load(name, **options):
        asked.update(options)
        raise RuntimeError("that was all")

    write_inputs(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(loading.AutoModelForCausalLM, "from_pretrained", load)
    config = SelfSamplingConfig(output_dir=str(tmp_path), use_peft=True, use_cpu=True, **settings)
    with pytest.raises(ModelError, match="that was all"):
        prepared_model(str(tmp_path / "model"), None, config, apples(1))
    assert asked["device_map"] == {"": torch.device("cpu")}
    return asked["quantization_config"]


@arriving(load_in_4bit=True)
def test_weights_are_loaded_in_4_bits_if_the_settings_say_so(tmp_path, settings, monkeypatch):
    quantised = quantised_with(tmp_path, monkeypatch, settings)
    assert (quantised.load_in_4bit, quantised.load_in_8bit) == (True, False)
    assert quantised.bnb_4bit_quant_type == "nf4"


@arriving(load_in_8bit=True)
def test_weights_are_loaded_in_8_bits_if_the_settings_say_so(tmp_path, settings, monkeypatch):
    quantised = quantised_with(tmp_path, monkeypatch, settings)
    assert (quantised.load_in_4bit, quantised.load_in_8bit) == (False, True)


@arriving(eval_strategy="no", load_best_model_at_end=False)
def test_without_evaluations_the_last_model_is_final(tmp_path, settings):
    saving = {"save_steps": 1, "save_total_limit": 3}
    trainer = watched_trainer(tmp_path / "run", max_steps=4, eval_steps=1, **saving, **settings)
    trainer.train()
    assert trainer.run.evaluations() == {}
    assert list(trainer.run.checkpoints()) == [2, 3, 4]
    last = tmp_path / "run" / "checkpoint-4" / "model.safetensors"
    assert (tmp_path / "run" / "final" / "model.safetensors").read_bytes() == last.read_bytes()


@arriving(
    restore_callback_states_from_checkpoint=False,
    use_cpu=True,
    ddp_find_unused_parameters=True,
)
def test_what_only_transformers_reads_is_handed_on(tmp_path, settings):
    args = watched_trainer(tmp_path, **settings).args
    assert {key: getattr(args, key) for key in settings} == settings


@arriving(columns="question=asked,answer=goal,solution=program")
def test_rows_are_read_by_the_columns_that_are_named(tmp_path, settings):
    args = SelfSamplingConfig(output_dir=str(tmp_path), use_cpu=True, disable_tqdm=True, **settings)
    rows = [{"asked": "Six times seven?", "goal": "42", "program": "n0 = 6\nanswer = n0 * 7"}]
    trainer = SelfSamplingTrainer("tiny", args, rows, rows)
    (problem,) = trainer.train_dataset
    assert (problem.question, problem.answer) == ("Six times seven?", 42)
    assert trainer.eval_dataset == [problem]


@arriving(metrics="statistics:fmean")
def test_metrics_of_ones_own_are_those_of_every_evaluation(tmp_path, settings):
    assert watched_trainer(tmp_path, **settings).args.evaluation.own_metrics == ("statistics:fmean",)


def test_every_key_is_followed_with_a_value_that_is_not_its_default():
    defaults = {f.name: f.default for f in own_fields()}
    assert {key for key in defaults if key not in FOLLOWED | ELSEWHERE | REFUSED} == set(), (
        "a key needs a test here"
    )
    for key, name in ELSEWHERE.items():
        assert f"{key}=" in (Path(__file__).parents[1] / name).read_text(encoding="utf-8")
    assert {key for key in FOLLOWED if key not in defaults} == set(), "no such key"
    assert {key for key, value in FOLLOWED.items() if value == defaults[key]} == set()

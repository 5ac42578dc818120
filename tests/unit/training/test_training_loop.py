"""The trainer's loop: what is explored is accounted for, what is learned is what the buffers hold."""

import math
from collections import Counter
from dataclasses import replace
from typing import ClassVar

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from training_cases import SMALL, ScriptedEngine, apples, small_trainer, tiny_gpt_neo

from partway.buffer import Verdict
from partway.cli.train import rehearsal
from partway.errors import ConfigError, ModelError, ProblemError, RunError
from partway.language import PythonLanguage, trace
from partway.problem import Problem
from partway.runs import Run
from partway.sample import Request
from partway.solution import EMPTY
from partway.training import SelfSamplingConfig, SelfSamplingTrainer
from partway.training.distributed import sampling_mode

pytestmark = pytest.mark.filterwarnings("ignore:.*TypedStorage is deprecated:UserWarning")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> SelfSamplingTrainer:
    """A finished small run."""
    trainer = small_trainer(tmp_path_factory.mktemp("trained") / "run")
    trainer.train()
    return trainer


def test_every_sample_is_accounted_for(trained):
    samples = list(trained.run.samples())
    lines = [line for line in trained.run.metrics() if "loss" in line]
    assert [line["step"] for line in lines] == [3, 6, 8]
    steps_per_epoch = [4, 4, 2]  # problems per step: ten problems in steps of four
    drawn = sum(steps_per_epoch[step % 3] for step in range(8)) * SMALL["num_generations"]
    assert sum(sample.count for sample in samples) == drawn
    assert sum(line["samples/drawn"] for line in lines) == drawn
    counts = Counter()
    for sample in samples:
        counts[sample.verdict] += sample.count
    for verdict in Verdict:
        logged = sum(line.get(f"samples/frac_{verdict}", 0) * line["samples/drawn"] for line in lines)
        assert logged == pytest.approx(counts[verdict])
    assert len(counts) >= 6, "the script should bring up most verdicts"
    for line in lines:
        shares = [line.get(f"samples/frac_{verdict}", 0) for verdict in Verdict]
        assert sum(shares) == pytest.approx(1)


def test_buffers_in_the_metrics_are_the_buffers_that_are_saved(trained):
    buffers = trained.run.buffers().values()
    last = [line for line in trained.run.metrics() if "loss" in line][-1]
    assert last["buffer/fcs_per_problem"] == sum(len(b.fully_correct) for b in buffers) / 10
    assert last["buffer/pcs_per_problem"] == sum(len(b.partially_correct) for b in buffers) / 10
    assert last["buffer/fcs_per_problem"] > 1
    found = {step for buffer in buffers for step in buffer.found.values()}
    assert 0 in found
    assert max(found) in range(1, 9)


def test_a_finished_run_has_a_model_that_loads_and_a_last_line(trained):
    from transformers import AutoModelForCausalLM

    final = trained.run.directory / "final"
    model = AutoModelForCausalLM.from_pretrained(final)
    assert model.num_parameters() == trained.model.num_parameters()
    assert trained.run.metrics()[-1]["finished"] is True
    assert trained.run.is_finished


def test_the_clock_adds_up_and_stays_out_of_the_metrics(trained):
    metrics, timings = trained.run.metrics(), trained.run.timings()
    assert [line["step"] for line in metrics] == [line["step"] for line in timings]
    assert not [key for line in metrics for key in line if "time" in key or "second" in key]
    for line in timings:
        parts = [value for key, value in line.items() if key.startswith("time/")]
        assert sum(parts) == pytest.approx(line["seconds"])


def test_config_yaml_repeats_the_run(trained):
    config = SelfSamplingConfig(**trained.run.config)
    assert config.settings == trained.args.settings


@pytest.mark.parametrize("objective", ["mle", "mle_aug", "mml", "beta_mml"])
@pytest.mark.parametrize("self_sampling", ["none", "fcs", "fcs+pcs"])
def test_every_way_of_sampling_goes_with_every_objective(tmp_path, self_sampling, objective):
    trainer = small_trainer(tmp_path / "run", self_sampling=self_sampling, objective=objective, dropout=0.0)
    text = rehearsal(trainer)
    assert ("0 samples drawn" in text) == (self_sampling == "none")
    partial = [solution for buffer in trainer.buffers.values() for solution in buffer.partially_correct]
    assert bool(partial) == (self_sampling == "fcs+pcs")


def test_without_sampling_every_objective_is_mle(tmp_path):
    losses = {
        rehearsal(small_trainer(tmp_path, self_sampling="none", objective=objective, dropout=0.0))
        for objective in ("mle", "mle_aug", "mml", "beta_mml")
    }
    assert len(losses) == 1


def gradient(trainer: SelfSamplingTrainer) -> torch.Tensor:
    trainer.before_step()
    trainer.explore(trainer.batch)
    trainer.learn(trainer.model, trainer.batch)
    return torch.cat([weight.grad.flatten() for weight in trainer.model.parameters()])


def test_small_passes_give_the_gradient_of_one_large_pass(tmp_path):
    large = gradient(small_trainer(tmp_path, dropout=0.0, tokens_per_pass=4096))
    small = gradient(small_trainer(tmp_path, dropout=0.0, tokens_per_pass=48))
    torch.testing.assert_close(small, large, rtol=1e-4, atol=1e-6)


def test_fully_correct_targets_end_and_partial_ones_do_not(tmp_path):
    trainer = small_trainer(tmp_path, num_generations=20)
    trainer.before_step()
    trainer.explore(trainer.batch)
    problem = max(trainer.batch, key=lambda p: len(trainer.buffers[p.id].partially_correct))
    buffer, targets = trainer.buffers[problem.id], trainer.targets(problem).targets
    ends = [target.tokens[-1] == trainer.codec.eos_id for target in targets]
    assert ends == [True] * len(buffer.fully_correct) + [False] * len(buffer.partially_correct)
    assert trainer.codec.decode(targets[0].tokens[:-1]) == problem.reference.text + "\n"


def test_a_cap_on_solutions_keeps_the_reference_and_chooses_by_seed(tmp_path):
    trainer = small_trainer(tmp_path, num_generations=20, solutions_per_step=2)
    trainer.before_step()
    trainer.explore(trainer.batch)
    problem = max(trainer.batch, key=lambda p: len(trainer.buffers[p.id]))
    assert len(trainer.buffers[problem.id]) > 2
    chosen = trainer.targets(problem).targets
    assert len(chosen) == 2
    assert chosen == trainer.targets(problem).targets
    assert trainer.codec.decode(chosen[0].tokens[:-1]) == problem.reference.text + "\n"


def test_sampling_waits_for_its_first_step(tmp_path):
    trainer = small_trainer(tmp_path / "run", sampling_start_step=5, max_steps=6, eval_strategy="no")
    trainer.train()
    assert {sample.step for sample in trainer.run.samples()} == {6}


def test_sampling_is_without_dropout_also_under_gradient_checkpointing(tmp_path):
    modes = []

    class Watching(SelfSamplingTrainer):
        def explore(self, problems):
            with sampling_mode(self, self.engine):
                modes.append([module.training for module in self.model.modules()])
            super().explore(problems)
            modes.append([module.training for module in self.model.modules()])

    problems = apples(4)
    settings = {**SMALL, "max_steps": 2, "eval_strategy": "no", "gradient_checkpointing": True}
    args = SelfSamplingConfig(output_dir=str(tmp_path / "run"), **settings)
    Watching(tiny_gpt_neo(problems), args, problems).train()
    assert not any(modes[2])
    assert all(modes[3]), "training goes on with dropout"


def test_exploring_in_mixed_precision_casts_every_weight_once(tmp_path):
    class Casts(TorchDispatchMode):
        seen: ClassVar = Counter()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._to_copy.default:
                self.seen[args[0].data_ptr()] += 1
            return func(*args, **kwargs or {})

    class Watching(SelfSamplingTrainer):
        def explore(self, problems):
            with Casts():
                super().explore(problems)

    problems = apples(4)
    settings = {**SMALL, "max_steps": 1, "eval_strategy": "no", "bf16": True}
    trainer = Watching("tiny", SelfSamplingConfig(output_dir=str(tmp_path / "run"), **settings), problems)
    trainer.train()
    weights = {weight.data_ptr() for weight in trainer.model.parameters() if weight.dim() == 2}
    casts = [count for place, count in Casts.seen.items() if place in weights]
    assert casts
    assert max(casts) == 1


@pytest.mark.parametrize("settings", [{"bf16": True}, {"use_peft": True}, {"gradient_checkpointing": True}])
def test_the_real_engine_samples_and_evaluates_with(tmp_path, settings):
    problems = apples(4)
    args = SelfSamplingConfig(
        **{
            **SMALL,
            "output_dir": str(tmp_path / "run"),
            "max_steps": 2,
            "eval_steps": 2,
            "save_steps": 2,
            **settings,
        }
    )
    trainer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems, problems)
    trainer.train()
    assert [s.step for s in trainer.run.samples()][::3]
    assert trainer.run.evaluations()[2]["problems"] == 4
    assert all(math.isfinite(line["loss"]) for line in trainer.run.metrics() if "loss" in line)
    saved = {path.name for path in (tmp_path / "run" / "final").iterdir()}
    assert ("adapter_model.safetensors" in saved) == ("use_peft" in settings)


def test_an_evaluation_says_how_many_tokens_it_drew(tmp_path):
    trainer = small_trainer(tmp_path / "run")
    engine = trainer.engine = ScriptedEngine()
    drawn = 0
    for phase in trainer.args.evaluation.phases:
        requests = [Request(problem, EMPTY, phase.count) for problem in trainer.eval_dataset]
        draws = engine.complete(requests, phase.settings, phase.seed)
        drawn += sum(draw.count * len(draw.tokens) for of_problem in draws for draw in of_problem)
    assert trainer.evaluate()["eval_tokens_drawn"] == drawn > 0


def test_problems_that_are_trained_on_are_evaluated_with_drafts(tmp_path):
    class Noting(ScriptedEngine):
        def complete(self, requests, settings, seed):
            drafts.update({request.problem.question: request.drafts for request in requests})
            return super().complete(requests, settings, seed)

    drafts = {}
    trainer = small_trainer(tmp_path / "run")
    trainer.engine = Noting()
    known, other = trainer.train_dataset[0], trainer.eval_dataset[0]
    same_id = replace(known, question=f"{known.question} And now?")
    trainer.evaluate([known])
    trainer.evaluate([same_id, replace(other, id="other")])
    assert drafts == {known.question: (known.reference,), same_id.question: (), other.question: ()}


def test_problems_without_references_wait_for_their_first_solution(tmp_path):
    with_reference, *others = apples(4)
    problems = [with_reference, *(replace(problem, reference=None) for problem in others)]
    args = SelfSamplingConfig(**{**SMALL, "output_dir": str(tmp_path / "run")})
    trainer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems)
    assert trainer.targets(problems[1]) is None
    assert "loss" in rehearsal(trainer)


def test_early_stopping_ends_a_run_properly(tmp_path):
    trainer = small_trainer(
        tmp_path / "run", eval_steps=2, save_steps=2, early_stopping_patience=1, learning_rate=0.0
    )
    trainer.train()
    assert trainer.state.global_step == 4
    assert trainer.run.is_finished


def test_the_best_checkpoint_becomes_the_final_model(tmp_path, monkeypatch):
    scores = {4: 0.9, 8: 0.1}
    from partway.evaluation import Evaluation

    trainer = small_trainer(tmp_path / "run")
    monkeypatch.setattr(
        Evaluation, "scalars", lambda self, prefix: {"eval_pass@1": scores[trainer.state.global_step]}
    )
    trainer.train()
    best = (tmp_path / "run" / "checkpoint-4" / "model.safetensors").read_bytes()
    assert (tmp_path / "run" / "final" / "model.safetensors").read_bytes() == best


@pytest.mark.parametrize(
    ("at_two", "expected"), [({4: 0.7, 8: 0.6}, 4), ({4: 0.6, 8: 0.7}, 8), ({4: 0.7, 8: 0.7}, 8)]
)
def test_at_equal_pass_at_1_the_better_pass_at_k_wins_then_the_later_and_its_step_is_named(
    tmp_path, monkeypatch, at_two, expected
):
    from partway.evaluation import Evaluation

    trainer = small_trainer(tmp_path / "run")

    def scalars(self, prefix):
        return {"eval_pass@1": 0.5, "eval_pass@2": at_two[trainer.state.global_step]}

    monkeypatch.setattr(Evaluation, "scalars", scalars)
    trainer.train()
    run = trainer.run
    best = (run.checkpoint(expected) / "model.safetensors").read_bytes()
    assert (run.final / "model.safetensors").read_bytes() == best
    assert run.final_step == expected


def test_a_loss_that_is_not_a_number_stops_the_run_and_names_the_batch(tmp_path):
    trainer = small_trainer(tmp_path / "run", eval_strategy="no")
    with torch.no_grad():
        trainer.model.lm_head.weight[7] = float("nan")
    with pytest.raises(
        RunError, match=r"the loss is nan at step 1; the batch is in .*nan_batch_step-1\.json"
    ):
        trainer.train()
    import json

    batch = json.loads((tmp_path / "run" / "nan_batch_step-1.json").read_text())
    assert set(batch["problems"]) == {problem.id for problem in trainer.batch}
    assert "apples" in next(iter(batch["problems"].values()))["prompt"]


def test_problems_that_cannot_be_used_are_named(tmp_path):
    good, wrong, twin = apples(1)[0], apples(2)[1], apples(1)[0]
    wrong = replace(wrong, answer=-1)
    long = Problem("long", "apples " * 200, 1)
    args = SelfSamplingConfig(**{**SMALL, "output_dir": str(tmp_path)})
    trainer = SelfSamplingTrainer(tiny_gpt_neo([good]), args, [good, wrong, twin, long])
    assert [problem.id for problem in trainer.train_dataset] == [good.id]
    reasons = {one.id: one.reason for one in trainer.left_out}
    assert "the answer is -1" in reasons[wrong.id]
    assert "same id" in reasons[good.id]
    assert "the model reads at most 96" in reasons["long"]


def test_no_problem_at_all_is_an_error(tmp_path):
    args = SelfSamplingConfig(**{**SMALL, "output_dir": str(tmp_path)})
    with pytest.raises(ProblemError, match="no problems to train on"):
        SelfSamplingTrainer(tiny_gpt_neo(apples(1)), args, [])
    with pytest.raises(ProblemError, match="no problem can be trained on"):
        SelfSamplingTrainer(tiny_gpt_neo(apples(1)), args, [replace(apples(1)[0], answer=-1)])


def test_a_model_needs_its_tokenizer(tmp_path):
    args = SelfSamplingConfig(**{**SMALL, "output_dir": str(tmp_path)})
    with pytest.raises(ModelError, match="pass processing_class"):
        SelfSamplingTrainer(tiny_gpt_neo(apples(1)).model, args, apples(1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_generations": 0}, "nothing would be sampled"),
        ({"num_generations": -1}, "num_generations is -1, expected at least 0"),
        ({"self_sampling": "pcs"}, r"expected one of none, fcs, fcs\+pcs"),
        ({"objective": "mlm"}, "not one of the objectives: mle, mml, mle_aug, beta_mml"),
        ({"objective": "beta_mml", "objective_args": {"beta": 0.0}}, r"beta is 0\.0, expected a number"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"effective_batch_size": 3, "gradient_accumulation_steps": 2}, "expected a multiple of 2"),
        ({"eval_k": [200]}, "k is 200"),
        (
            {"eval_strategy": "epoch", "load_best_model_at_end": False},
            "eval_strategy is epoch but save_strategy",
        ),
        ({"save_steps": 700, "eval_steps": 500}, "round multiple"),
        ({"lora_r": 0}, "lora_r is 0, expected at least 1"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings, message):
    with pytest.raises(ConfigError, match=message):
        SelfSamplingConfig(**settings)


def test_a_run_in_the_way_is_not_overwritten(trained):
    with pytest.raises(RunError, match=r"there is a run already; --resume .* to go on with it"):
        small_trainer(trained.run.directory).train()


def test_resuming_a_finished_run_changes_nothing(trained):
    def content():
        run = Run(trained.run.directory)
        return (
            (run.directory / "final" / "model.safetensors").read_bytes(),
            run.metrics(),
            list(run.samples()),
        )

    before = content()
    small_trainer(trained.run.directory).train(resume_from_checkpoint=True)
    assert content() == before


def test_saving_steps_alone_decide_when_to_evaluate():
    assert SelfSamplingConfig(save_steps=100).eval_steps == 100
    assert SelfSamplingConfig(eval_strategy="no", save_steps=7).load_best_model_at_end is False


def test_a_gradient_that_is_not_a_number_stops_the_run_too(tmp_path):
    trainer = small_trainer(tmp_path / "run", eval_strategy="no")
    trainer.model.transformer.ln_f.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(
        RunError, match=r"the gradient's norm is (nan|inf) at step 1; the batch is in .*\.json"
    ):
        trainer.train()


def test_targets_know_what_they_are(trained):
    buffers = trained.run.buffers()
    problem = next(p for p in trained.train_dataset if buffers[p.id].partially_correct)
    buffer, targets = buffers[problem.id], trained.targets(problem).targets
    kinds = ["reference"] + ["fully_correct"] * (len(buffer.fully_correct) - 1)
    kinds += ["partially_correct"] * len(buffer.partially_correct)
    assert [target.kind for target in targets] == kinds
    solutions = [*buffer.fully_correct, *buffer.partially_correct]
    assert [
        trained.codec.decode(t.tokens).split("\n")[: len(s)] for t, s in zip(targets, solutions, strict=True)
    ] == [list(solution.steps) for solution in solutions]
    assert {target.weight for target in targets} == {1.0}


def test_without_a_reference_no_target_is_one(tmp_path):
    problems = [replace(problem, reference=None) for problem in apples(4)]
    args = SelfSamplingConfig(**SMALL | {"output_dir": str(tmp_path), "max_steps": 1, "eval_strategy": "no"})
    trainer = SelfSamplingTrainer(tiny_gpt_neo(apples(4)), args, problems)
    whole = trace("n0 = 1\nanswer = " + str(problems[0].answer))
    trainer.buffers[problems[0].id].consider(whole)
    assert [target.kind for target in trainer.targets(problems[0]).targets] == ["fully_correct"]


LESS_PARTIAL = """
from dataclasses import dataclass

from partway.objectives import Objective


@dataclass(frozen=True)
class LessPartial(Objective):
    label = "less"
    share: float = 0.9

    def loss(self, log_probs_S, targets):
        shares = [self.share if target.kind == "partially_correct" else 1.0 for target in targets]
        return -(log_probs_S.new_tensor(shares) * log_probs_S).sum()
"""


def test_partial_solutions_count_half_by_adding_one_file(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(LESS_PARTIAL)
    monkeypatch.syspath_prepend(tmp_path)
    settings = {"max_steps": 3, "eval_strategy": "no", "dropout": 0.0}
    half = small_trainer(
        tmp_path / "half", objective="mine:LessPartial", objective_args={"share": 0.5}, **settings
    )
    whole = small_trainer(tmp_path / "whole", objective="mle_aug", **settings)
    half.train()
    whole.train()
    assert half.run.config["objective"] == "mine:LessPartial"
    losses = [run.metrics()[0]["loss"] for run in (half.run, whole.run)]
    assert losses[0] < losses[1], "partial solutions were found and count less"


def test_a_beginning_without_room_does_not_end_the_exploring_of_its_problem(tmp_path):
    trainer = small_trainer(tmp_path / "run", max_steps=1, eval_strategy="no")
    problem = trainer.train_dataset[0]
    n0, n1 = problem.reference.steps[:2]
    many = "\n".join([n1, n0, *["n0 = n0"] * 30])  # reaches a known state the long way
    trainer.buffers[problem.id].rules = replace(trainer.buffers[problem.id].rules, length_tolerance=99)
    trainer.buffers[problem.id].consider(trace(many))
    (too_long,) = trainer.buffers[problem.id].partially_correct
    assert not trainer.kept_targets.has_room(problem, too_long)
    trainer.buffers.will_explore([problem])
    trainer.explore([problem])
    assert trainer.account.ledger.drawn == SMALL["num_generations"]
    assert trainer.account.ledger.guided == 0


def test_a_model_reads_as_many_tokens_as_it_can(tmp_path):
    trainer = small_trainer(tmp_path / "run", max_steps=1, eval_strategy="no")
    problem, kept = trainer.train_dataset[0], trainer.kept_targets
    buffer = trainer.buffers[problem.id]
    learned = len(kept.of(problem, buffer, [], 1).targets[0]) + len(kept.prompt_of(problem))
    begun = len(kept.prompt_of(problem)) + len(kept.tokens_of(problem.reference, False))
    for length, is_learned in ((learned, True), (learned - 1, False)):
        kept.context_length = length
        assert (kept.of(problem, buffer, [], 1) is not None) is is_learned
    for length, has_room in ((begun + 1, True), (begun, False)):  # room for one more token, or for none
        kept.context_length = length
        assert kept.has_room(problem, problem.reference) is has_room


def test_references_are_traced_once_on_the_way_into_a_run(tmp_path):
    asked = Counter()

    class Counting(PythonLanguage):
        def trace_all(self, pairs):
            asked.update(text for _, text in pairs)
            return super().trace_all(pairs)

    problems = apples(6, seed=7)
    args = SelfSamplingConfig(**SMALL | {"output_dir": str(tmp_path / "run"), "eval_strategy": "no"})
    trainer = SelfSamplingTrainer(tiny_gpt_neo(problems), args, problems, language=Counting())
    assert len(trainer.buffers) == 6
    assert asked == {problem.reference.text: 1 for problem in problems}


def test_of_problems_with_one_id_the_first_is_trained_on(tmp_path):
    first, second = apples(2)
    args = SelfSamplingConfig(**SMALL | {"output_dir": str(tmp_path / "run"), "eval_strategy": "no"})
    trainer = SelfSamplingTrainer(tiny_gpt_neo([first]), args, [first, replace(second, id=first.id)])
    assert trainer.buffers[first.id].fully_correct == (first.reference,)
    assert [left_out.reason for left_out in trainer.left_out] == ["an earlier problem has the same id"]

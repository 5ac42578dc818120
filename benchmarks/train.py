"""`python -m benchmarks train`: whole training steps against the straightforward loop, in one run."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from benchmarks.tables import COUNT, print_table

if TYPE_CHECKING:
    from partway.problem import Problem
    from partway.training import SelfSamplingTrainer

PARTS = ("exploring", "executing", "learning")


@click.command()
@click.option("--model", default="tiny-storyproblems", show_default=True, help="A fine-tuned model.")
@click.option("--problems", "path", metavar="FILE", help="Problems of that model; built-in ones if left out.")
@click.option("--batch", type=COUNT, default=32, show_default=True, help="Problems per step.")
@click.option(
    "-n", "--num-generations", type=COUNT, default=4, show_default=True, help="Samples per problem and step."
)
@click.option("--max-completion-length", default=96, show_default=True, help="Longest sample, in tokens.")
@click.option(
    "--warm-up", default=8, show_default=True, help="Rounds of exploring that fill the buffers first."
)
@click.option(
    "--steps", type=COUNT, default=5, show_default=True, help="Steps of each contender, interleaved."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    model: str,
    path: str | None,
    batch: int,
    num_generations: int,
    max_completion_length: int,
    warm_up: int,
    steps: int,
    as_json: bool,
) -> None:
    """Whole steps, explore and learn and update, against the loop one would write first.

    \b
    The straightforward loop, in the same run, with the same model, buffers, batches and loss:
      exploring   model.generate on left-padded prompts, sorted by length
      executing   a forked process for every program
      learning    a padded row for every target through the stock model, sorted by length, 32 at a time
    \b
    Beside it, where TRL is installed: a step of its GRPO with as many problems and samples.
    \b
    Examples:
      python -m benchmarks train
      python -m benchmarks train --model runs/gsm8k --problems data/gsm8k/train.jsonl -n 1 --json
    """
    from partway.problems import load_problems

    problems = load_problems(path) if path else built_in_problems(batch)
    with trainers(model, problems[:batch], batch, num_generations, max_completion_length) as contenders:
        warm(contenders, warm_up)
        result = measure(contenders, steps) | {"grpo": grpo(contenders["partway"], steps)}
    if as_json:
        click.echo(json.dumps(result))
    else:
        show(result)


def grpo(trainer: SelfSamplingTrainer, steps: int) -> dict[str, Any]:
    """Seconds of a step of TRL's GRPO and the share of drawing in it, or why there are none."""
    from benchmarks.grpo import seconds_per_step

    return seconds_per_step(trainer, steps)


def built_in_problems(count: int) -> list[Problem]:
    from partway.demo.storyproblems import generate_problems

    return generate_problems(count, seed=7)


@contextmanager
def trainers(
    model: str, problems: Sequence[Problem], batch: int, num_generations: int, max_completion_length: int
) -> Iterator[dict[str, SelfSamplingTrainer]]:
    """Two trainers that begin alike."""
    from benchmarks.plain_loop import PlainTrainer
    from partway.training import SelfSamplingConfig, SelfSamplingTrainer

    def trainer(kind: type[SelfSamplingTrainer], directory: str) -> SelfSamplingTrainer:
        args = SelfSamplingConfig(
            preset="paper",
            output_dir=directory,
            per_device_train_batch_size=batch,
            num_generations=num_generations,
            max_completion_length=max_completion_length,
            learning_rate=1e-5,
            eval_strategy="no",
            disable_tqdm=True,
        )
        made = kind(model, args, problems)
        made.create_optimizer()
        return made

    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as plain:
        yield {"partway": trainer(SelfSamplingTrainer, ours), "straightforward": trainer(PlainTrainer, plain)}


def warm(contenders: dict[str, SelfSamplingTrainer], rounds: int) -> None:
    """Fill the first one's buffers by exploring, and give the other one the same."""
    from partway.buffer import SolutionBuffer
    from partway.training.shared_buffers import Buffers

    first, second = contenders.values()
    for number in range(rounds):
        first.state.global_step = number
        first.before_step()
        first.explore(first.batch)
    copies = {
        key: SolutionBuffer.from_json(buffer.problem, buffer.to_json(), buffer.language)
        for key, buffer in first.buffers.items()
    }
    given = Buffers([buffer.problem for buffer in copies.values()], copies)
    second.buffers = second.account.buffers = second.batches.buffers = given


def measure(contenders: dict[str, SelfSamplingTrainer], steps: int) -> dict[str, Any]:
    """Seconds per step, whole and by part, as medians of interleaved steps; one step each is not counted."""
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    targets = kept(contenders["partway"])
    losses: dict[str, float] = {}
    undrafted: list[float] = []
    for number in range(steps + 1):
        for name, trainer in contenders.items():
            trainer.state.global_step = 1000 + number
            trainer.clock.start()
            started = time.perf_counter()
            loss = one_step(trainer)
            whole = time.perf_counter() - started
            losses.setdefault(name, loss)
            if number and name == "partway":
                undrafted.append(seconds_without_drafts(trainer))
            if number:
                parts = {part: trainer.clock.spent[part] for part in PARTS}
                seconds[name].append({**parts, "updating": whole - sum(parts.values()), "step": whole})
    medians = {
        name: {part: statistics.median(row[part] for row in rows) for part in rows[0]}
        for name, rows in seconds.items()
    }
    ours, plain = medians["partway"], medians["straightforward"]
    return {
        "speedup": round(plain["step"] / ours["step"], 2),
        "speedup_if_execution_were_free": round((plain["step"] - plain["executing"]) / ours["step"], 2),
        "speedups": {part: round(plain[part] / ours[part], 2) for part in PARTS},
        "seconds": medians,
        # What supervised fine-tuning on the same targets takes: the straightforward loop without exploring.
        "fine_tuning_seconds": plain["learning"] + plain["updating"],
        "exploring_without_drafts": statistics.median(undrafted),
        "frac_drafted_tokens": round(contenders["partway"].account.ledger.drafted_share, 3),
        "targets_per_problem": targets,
        "samples_per_step": contenders["partway"].args.samples_per_problem * len(contenders["partway"].batch),
        "loss": losses,
    }


def one_step(trainer: SelfSamplingTrainer) -> float:
    """Learn, update, explore; learning comes first so that both losses are of the same buffers at first."""
    trainer.before_step()
    loss = trainer.learn(trainer.model, trainer.batch).item()
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    trainer.explore(trainer.batch)
    return loss


def seconds_without_drafts(trainer: SelfSamplingTrainer) -> float:
    """The time it takes to draw as many samples of the same problems with an engine that does not guess."""
    from partway.models.loading import LanguageModel
    from partway.sampling.guided import sample_solutions
    from partway.sampling.local_engine import LocalEngine
    from partway.training.distributed import sampling_mode

    model = LanguageModel(trainer.model, trainer.codec, trainer.kept_targets.context_length)
    engine = LocalEngine(model, language=trainer.language)
    started = time.perf_counter()
    with sampling_mode(trainer, engine):
        sample_solutions(
            engine, trainer.batch, trainer.buffers, trainer.guide, trainer.args.sampling, trainer.step
        )
    return time.perf_counter() - started


def kept(trainer: SelfSamplingTrainer) -> float:
    return round(sum(map(len, trainer.buffers.values())) / len(trainer.buffers), 2)


def show(result: dict[str, Any]) -> None:
    ours, plain = result["seconds"]["partway"], result["seconds"]["straightforward"]
    rows = [
        (
            part,
            f"{plain[part]:.3f}",
            f"{ours[part]:.3f}",
            f"{plain[part] / ours[part]:.1f}x",
            f"{ours[part] / ours['step']:.0%}",
        )
        for part in (*PARTS, "updating", "step")
    ]
    work = f"{result['samples_per_step']} samples, {result['targets_per_problem']} targets per problem"
    print_table(
        f"Seconds per step: {work}",
        ["", "straightforward", "partway", "faster", "share of ours"],
        rows,
    )
    click.echo(f"Supervised fine-tuning on the same targets: {result['fine_tuning_seconds']:.3f} s a step")
    click.echo(f"TRL's GRPO: {grpo_line(result['grpo'], ours['step'])}")
    click.echo(
        f"{result['frac_drafted_tokens']:.0%} of tokens were drafted; exploring without drafts:"
        f" {result['exploring_without_drafts']:.3f} s"
    )


def grpo_line(grpo: dict[str, Any], ours: float) -> str:
    """How long it took beside our step, in words."""
    if "refused" in grpo:
        return str(grpo["refused"])
    return (
        f"{grpo['seconds']:.3f} s a step, {grpo['share_drawing']:.0%} of it drawing;"
        f" {grpo['seconds'] / ours:.1f} times ours"
    )

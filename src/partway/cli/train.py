"""`partway train`: fine-tune a model with the settings of a YAML file and of `--key value` pairs."""

from __future__ import annotations

import json
import logging
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from partway.cli.config_files import file_of, parse_overrides, read_settings
from partway.cli.options import AS_JSON, check_spoken, counted, declared, say_next
from partway.cli.training_keys import training_keys
from partway.errors import ConfigError, ProblemError, suggestion
from partway.settings import Settings

if TYPE_CHECKING:
    from partway.problem import Problem
    from partway.runs import Run
    from partway.training import SelfSamplingConfig, SelfSamplingTrainer

logger = logging.getLogger(__name__)
SWITCHES = ("--dry-run", "--force", "--strict")
MUCH = 0.3  # of a run's time, spent on running programs
NAMED = 5  # left-out problems that are named one by one


class Command(click.Command):
    """A command whose `--resume` takes a word only if it is `auto`: what follows may be the config.

    Its keys and their values are known to the shell's completion.
    """

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        keys = training_keys()
        found = [f"--{key}" for key in keys if f"--{key}".startswith(incomplete or "--")]
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, found)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words: list[str] = []
        for word in args:
            if word == "auto" and words[-1:] == ["--resume"]:
                words[-1] = "--resume=auto"
            elif word == "true" and words and words[-1].replace("_", "-") in SWITCHES:
                continue  # written as a key is, though it is a switch
            else:
                words.append(word)
        return super().parse_args(ctx, ["--resume=yes" if word == "--resume" else word for word in words])


def _values(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The words that the key before the cursor can take."""
    # What was read so far: as pairs, as other words, or a first word as the config.
    words = ctx.params.get("pairs") or ctx.args or [ctx.params.get("config") or ""]
    key = str(words[-1]).removeprefix("--").replace("-", "_") if words else ""
    return [CompletionItem(word) for word in training_keys().get(key, ()) if word.startswith(incomplete)]


def _print_schema(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:  # completion reads the command line too, and must not print
        from partway.cli.schema import config_schema

        click.echo(json.dumps(config_schema(), indent=2))
        ctx.exit()


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("config", metavar="[CONFIG.yaml]", required=False)
@click.argument("pairs", nargs=-1, type=click.UNPROCESSED, metavar="[--KEY VALUE]...", shell_complete=_values)
@declared(
    "--json-schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of CONFIG.yaml, for editors, and exit.",
)
@declared(
    "--resume",
    type=click.Choice(["yes", "auto"]),
    metavar="[auto]",
    help="Continue from the run's last good checkpoint; with auto, start a run if there is none.",
)
@declared(
    "--force",
    is_flag=True,
    help="Resume even if settings, problems or the model have changed, or no checkpoint can be checked.",
)
@declared("--strict", is_flag=True, help="Stop at a problem that cannot be used, instead of leaving it out.")
@declared(
    "--replay",
    metavar="RUN",
    help="Learn another run's recorded samples instead of new ones; buffers and weights become the same.",
)
@declared(
    "--branch",
    metavar="RUN",
    help="Begin with the steps that another run made before its first sample; they must be the same here.",
)
@declared("--dry-run", is_flag=True, help="Check everything, try one batch, write nothing.")
@AS_JSON
@click.pass_context
def command(
    ctx: click.Context,
    config: str | None,
    pairs: tuple[str, ...],
    resume: str | None,
    force: bool,
    strict: bool,
    replay: str | None,
    branch: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fine-tune a model on references and its own correct and partially-correct solutions.

    CONFIG.yaml and --KEY VALUE pairs set the keys of docs/keys.md. A pair overrides the file, and
    pairs alone are enough. The run is written to output_dir. Ctrl-C and SIGTERM save a
    checkpoint first; --resume continues from it to exactly the same end.

    \b
    Examples:
      partway train configs/storyproblems_tiny.yaml
      partway train a.yaml --output_dir mle --self_sampling none --objective mle
      partway train --model_name_or_path tiny --train_file a.jsonl --output_dir a
      partway train --output_dir mle --resume
      partway train a.yaml --output_dir fcs --self_sampling fcs --branch mle
      partway train --json-schema > partway.schema.json
      accelerate launch --num_processes 2 -m partway train a.yaml
    """
    if config is not None and config.startswith("--"):  # no file: it is the first of the pairs
        pairs, config = (config, *pairs), None
    if config is None and not pairs:
        raise click.UsageError("Give CONFIG.yaml, or at least --train_file and the file of problems.")
    overrides = parse_overrides(pairs)
    settings = _settings(config, overrides, resumes=resume is not None)
    # Before torch is imported, which takes seconds.
    logger.info("starting with %s (some seconds)", (settings | overrides).get("model_name_or_path", "tiny"))
    from partway.runs import Run
    from partway.training.callbacks import Interrupted
    from partway.training.config import SelfSamplingConfig, config_of
    from partway.training.recording import AUTO
    from partway.training.resuming import check_free, check_started

    if ctx.obj["quiet"]:
        overrides.setdefault("disable_tqdm", "true")
    if not {"eval_file", "eval_strategy"} & {*settings, *overrides}:
        overrides["eval_strategy"] = "no"  # nothing is evaluated, so its steps need not fit those of saving
    keys = settings | overrides
    ours = {one.name for one in fields(SelfSamplingConfig)}
    check_spoken(keys.keys() - ours, keys.get("language") or "python")
    args = config_of(settings, overrides, file_of(config))
    _check_reporting(args)
    trunk = None if branch is None else Run.at(branch)
    if dry_run:
        _rehearse(args, strict, as_json)
        return
    if resume is None:
        check_free(Path(args.output_dir or "run"))
    elif resume != AUTO:
        check_started(Path(args.output_dir or "run"))
    trainer = _trainer(args, strict, replay)
    if "MASTER_PORT" in os.environ and "RANK" not in os.environ:  # what accelerate sets for several processes
        trainer.recorder.say(
            "one process only: without GPUs, accelerate launch needs --multi_gpu to start several"
        )
    if remark := _unused_gpus(args):
        trainer.recorder.say(remark)
    try:
        trainer.train(resume_from_checkpoint=resume, force=force, branch=trunk)
    except Interrupted as interrupted:
        click.echo(f"partway: {interrupted}", err=True)
        raise SystemExit(128 + interrupted.signal) from None
    if trainer.is_world_process_zero():
        _conclude(trainer, as_json)
    trainer.accelerator.end_training()  # a process that ends with its group open aborts now and then


def _settings(config: str | None, overrides: dict[str, str], *, resumes: bool) -> Settings:
    """What CONFIG.yaml says; without it, what a run that is to go on was made with."""
    from partway.runs import Run

    if config is not None:
        return read_settings(config)
    run = Run(Path(overrides.get("output_dir") or "run"))
    return run.config if resumes and run.is_started else {}


def _unused_gpus(args: SelfSamplingConfig) -> str | None:
    """What to tell of the GPUs that are visible and not used, if there are any."""
    import torch

    visible = torch.cuda.device_count()
    if args.device.type != "cuda" or args.world_size > 1 or visible < 2:
        return None
    return (
        f"one of {visible} GPUs is used, {args.device}; to use all: accelerate launch -m partway train ... "
        "(docs/gpus.md); to choose one: CUDA_VISIBLE_DEVICES"
    )


def _check_reporting(args: SelfSamplingConfig) -> None:
    """Whoever is to be told of the metrics is known and installed."""
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for name in args.report_to:
        if name not in INTEGRATION_TO_CALLBACK:
            names = ", ".join(["none", *INTEGRATION_TO_CALLBACK])
            hint = suggestion(name, INTEGRATION_TO_CALLBACK)
            raise ConfigError(f"report_to is {name!r}, expected one of {names}{hint}")
        try:
            INTEGRATION_TO_CALLBACK[name]()  # what is missing is told now, not after the model is loaded
        except (ImportError, RuntimeError) as error:
            raise ConfigError(f"report_to is {name}: {error}") from error


def _rehearse(args: SelfSamplingConfig, strict: bool, as_json: bool) -> None:
    with tempfile.TemporaryDirectory() as nowhere:  # a trainer wants a directory even to try
        args.output_dir = nowhere
        trainer = _trainer(args, strict, writes=False)
        logger.info("trying the first batch")
        said = rehearsal(trainer)
    click.echo(json.dumps({"rehearsal": said}) if as_json else said)


def rehearsal(trainer: SelfSamplingTrainer) -> str:
    """Explore and learn from the first batch without updating or writing anything; says what it found."""
    trainer.before_step()
    if trainer.args.self_sampling != "none":
        trainer.explore(trainer.batch)
    loss = trainer.learn(trainer.model, trainer.batch)
    trainer.model.zero_grad()
    ledger = trainer.account.ledger
    return (
        f"first batch: {counted(len(trainer.batch), 'problem')}, loss {loss.item():.3f}, "
        f"{counted(ledger.drawn, 'sample')} drawn, {counted(ledger.tokens, 'token')} learned from "
        f"in layout {trainer.scorer.layout.name}"
    )


def _trainer(
    args: SelfSamplingConfig, strict: bool, replay: str | None = None, *, writes: bool = True
) -> SelfSamplingTrainer:
    """The trainer with all its problems; whatever is wrong with them comes before the model is loaded."""
    from partway.runs import Run
    from partway.training import SelfSamplingTrainer

    if args.train_file is None:
        raise ConfigError(
            "train_file is not set; make problems with `partway data`, then set it to their file"
        )
    train = _problems(args.train_file, args, strict)
    dev = _problems(args.eval_file, args, strict) if args.eval_file else None
    recorded = None if replay is None else Run.at(replay)
    logger.info("read %s; loading and checking the model (up to a minute)", counted(len(train), "problem"))
    trainer = SelfSamplingTrainer(args.model_name_or_path, args, train, dev, replay=recorded)
    if trainer.left_out:
        first = trainer.left_out[0]
        if strict:
            raise ProblemError(f"{args.train_file}: problem {first.id}: {first.reason}")
        trainer.recorder.say(f"left out {counted(len(trainer.left_out), 'problem')} that cannot be used:")
        for one in trainer.left_out[:NAMED]:
            trainer.recorder.say(f"  problem {one.id}: {one.reason}")
    for line in outline(trainer)[: None if writes else -1]:  # the last one says where results go
        trainer.recorder.say(line)
    return trainer


def _problems(path: str, args: SelfSamplingConfig, strict: bool) -> list[Problem]:
    from partway.problems import load_problems, read_problems

    if strict:
        return load_problems(path, language=args.built_language, columns=args.columns)
    result = read_problems(path, language=args.built_language, columns=args.columns)
    if not result.problems:
        raise ProblemError(f"{result.bad_rows[0]}; no row can be used")
    # Every process reads the file; one of them tells.
    if result.bad_rows and args.process_index == 0 and not args.disable_tqdm:
        left_out = counted(len(result.bad_rows), "row")
        click.echo(f"partway: left out {left_out} of {path} that cannot be used:", err=True)
        for row in result.bad_rows[:NAMED]:
            click.echo(f"partway:   {row}", err=True)
    return result.problems


def outline(trainer: SelfSamplingTrainer) -> list[str]:
    """What is about to happen: problems, model, steps, and where results go."""
    args, language = trainer.args, trainer.language
    sizes = [(weight.numel(), weight.requires_grad) for weight in trainer.model.parameters()]
    total, learned = sum(size for size, _ in sizes), sum(size for size, is_learned in sizes if is_learned)
    share = "all trained" if learned == total else f"{learned / total:.2%} trained"
    asked = "its chat template" if trainer.codec.question.is_markup else "the question as a comment"
    steps = args.max_steps
    if steps < 0:
        steps = math.ceil(args.num_train_epochs * trainer.batches.order.steps_per_epoch)
    batch = min(args.problems_per_step, len(trainer.train_dataset))
    return [
        good_for(trainer.train_dataset),
        f"{args.model_name_or_path}, {total:,} weights, {share}; asked by {asked} for "
        f"{language.instruction.name} that {language.instruction.ending}",
        f"{counted(steps, 'step')} of {counted(batch, 'problem')}; self_sampling {args.self_sampling}, "
        f"objective {args.objective}; {_evaluations(trainer, steps)}",
        f"everything goes to {trainer.run.directory}; Ctrl-C saves and stops, --resume goes on",
    ]


def _evaluations(trainer: SelfSamplingTrainer, steps: int) -> str:
    """On what and how often a run of so many steps evaluates, or why it does not."""
    args, problems = trainer.args, trainer.eval_dataset
    if not problems or args.eval_strategy == "no":
        return f"no evaluation ({'eval_strategy is no' if problems else 'eval_file is not set'})"
    asked = f"evaluation on {counted(len(problems), 'problem')}"
    if args.eval_strategy == "epoch":
        return f"{asked} after every epoch"
    each = args.eval_steps or args.save_steps
    return f"{asked} every {counted(math.ceil(each if each >= 1 else steps * each), 'step')}"  # or a share


def good_for(problems: Sequence[Problem]) -> str:
    """How many problems have a solution, and what can be learned from them.

    >>> from partway import Problem
    >>> good_for([Problem("sum", "1 and 1?", 2, "answer = 1 + 1"), Problem("more", "2 and 3?", 5)])
    '2 problems: 1 with a solution, 1 with the answer only; solved_share mixes them in each batch'
    """
    solved = sum(problem.reference is not None for problem in problems)
    all_of_them = counted(len(problems), "problem")
    if solved == len(problems):
        return f"{all_of_them}, all with a solution: to be learned, and to begin self-sampling from"
    if not solved:
        return f"{all_of_them}, all with the answer only: learned once the model samples a right solution"
    rest = f"{len(problems) - solved:,} with the answer only"
    return f"{all_of_them}: {solved:,} with a solution, {rest}; solved_share mixes them in each batch"


def _learned_nothing(run: Run) -> str | None:
    """Why, if no step changed a weight."""
    from partway.runs.run import saved_buffer_rows

    if any(line.get("loss") or line.get("grad_norm") for line in run.metrics()):
        return None
    if any(row["solutions"] for row in saved_buffer_rows(run.final)):
        return "the loss was 0 at every step"
    return "no problem has a solution, and no sample was right"


def _conclude(trainer: SelfSamplingTrainer, as_json: bool) -> None:
    run = trainer.run
    if why := _learned_nothing(run):
        trainer.recorder.say(
            f"NOTHING was learned: {why}; what was sampled is in {run.directory / 'samples'}"
        )
    spent = {key: sum(line.get(key, 0.0) for line in run.timings()) for key in ("seconds", "time/executing")}
    if spent["time/executing"] > MUCH * spent["seconds"]:
        share = spent["time/executing"] / spent["seconds"]
        which = f"partway buffer slowest {run.directory}"
        trainer.recorder.say(f"running programs took {share:.0%} of the time; to see which: {which}")
    if as_json:
        latest: dict[str, object] = {"run": str(run.directory)}
        for line in run.metrics():  # lines of training and of evaluation have different keys
            latest |= line
        click.echo(json.dumps(latest))
    else:
        click.echo(str(run.final))
        say_next(f"partway evaluate {run.directory} --problems TEST.jsonl", f"partway report {run.directory}")

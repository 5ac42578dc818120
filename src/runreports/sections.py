"""The sections of a report, each with its figure, its tables and the text around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runreports import figures, numbers
from runreports.averages import FEW_POINTS, SMOOTHING
from runreports.number_tables import Table
from runreports.study import Study

INTERVALS = (
    "Intervals are 95% intervals over problems and, where a setting has three runs or more, over trainings "
    "(Student's t); two runs say nothing about others."
)


@dataclass(frozen=True)
class Section:
    """A part of a report; `table` is on the page and in a CSV file, `series` in a CSV file only."""

    name: str
    title: str
    paper: str
    caption: str
    draw: figures.Draw
    table: Callable[[Study], Table | None] = lambda study: None
    series: Callable[[Study], Table | None] = lambda study: None
    absent: str = "No run has the numbers for this yet."
    is_optional: bool = False  # left out, instead of said to be absent, where there is nothing to draw


SECTIONS = (
    Section(
        "pass_at_k",
        "Problems solved",
        "main results",
        "The share of problems of which at least one of k samples is right. pass@1 is drawn apart, at a low "
        f"temperature, as in the paper. {INTERVALS}",
        figures.pass_at_k,
        numbers.results_table,
        absent="No run was evaluated yet.",
    ),
    Section(
        "objectives",
        "Objectives and self-sampling strategies",
        "comparison of loss functions, figure and full table",
        "The largest k, by what is kept of the self-samples and by the objective; the dashed line is MLE. "
        f"{INTERVALS}",
        figures.objectives,
        numbers.objectives_table,
        absent="This needs runs with at least two objectives.",
        is_optional=True,
    ),
    Section(
        "frontier",
        "More than temperature or stopping?",
        "",
        "Every evaluation as a point, pass@1 (the mean of samples as they were drawn) against the largest k: "
        "those of training in the order of their steps, and those of `partway evaluate RUN --temperatures "
        "T,T`. A setting is better than another where its points lie beyond all of the other's. "
        "Dotted: chance, as the same command draws it.",
        figures.frontier,
        absent="This needs evaluations at several steps or temperatures.",
        is_optional=True,
    ),
    Section(
        "loss",
        "Loss and learning rate",
        "",
        "As logged, mean over runs. The loss adds up over what is learned from, so it grows with the buffers "
        "and says nothing about which setting is better.",
        figures.loss,
        series=numbers.series("loss", "learning_rate", "grad_norm"),
        absent="No run has logged a loss yet.",
    ),
    Section(
        "solutions",
        "Kept solutions",
        "number of saved FCSs and PCSs per problem",
        "The share of problems with at least so many solutions in their buffers at the end, the reference "
        "counted.",
        figures.solutions,
        numbers.solutions_table,
        numbers.solutions_series,
        absent="No run that samples has written a checkpoint yet.",
    ),
    Section(
        "training_progress",
        "pass@k over training",
        "training progress",
        "On dev, mean over runs; shade: 95% interval over runs, where there are three or more. Of more "
        f"than {FEW_POINTS} points the exponential moving average (weight {SMOOTHING:g}) is bold, the curve "
        "itself faint.",
        figures.training_progress,
        numbers.peaks_table,
        numbers.series("eval_pass@"),
        absent="No run was evaluated while training.",
    ),
    Section(
        "buffer_growth",
        "Growth of the buffers",
        "growth of the number of saved FCS and PCS",
        "Solutions per problem and, where some have no reference, problems with a solution, mean over runs; "
        "shade: 95% interval over runs, where there are three or more.",
        figures.buffer_growth,
        series=numbers.series("buffer/"),
        absent="No run samples.",
    ),
    Section(
        "outcomes",
        "Outcome of self-samples",
        "distribution of the outcomes of self-sampled solutions",
        "What became of the self-samples of each stretch of training, all runs of a setting together.",
        figures.outcomes,
        numbers.outcomes_table,
        numbers.series("samples/"),
        absent="No run samples.",
    ),
    Section(
        "unique",
        "Distinct samples",
        "diversity, discussed with the training progress",
        "The share of distinct solutions among the samples of an evaluation on dev, over training. A model "
        "that becomes overconfident repeats itself. Intervals in the table are over runs where there are "
        "several, else over problems.",
        figures.unique,
        numbers.diversity_table,
        numbers.series("eval_unique", "eval_executable", "eval_maj@"),
        absent="No run was evaluated while training.",
    ),
    Section(
        "work",
        "Time and tokens",
        "",
        "Exploring draws self-samples, executing runs and judges them, learning is forward and backward on "
        "the buffers. Tokens are those of the completions sampled in exploring and evaluating, and those of "
        "the solutions learned from.",
        figures.work,
        numbers.work_table,
        numbers.series("num_tokens", "samples/drawn", "completions/", "eval_tokens_drawn"),
        absent="No run has timings.",
    ),
)

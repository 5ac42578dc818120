"""Solution paths: the many ways from the numbers of one story to its answer.

A path is written as an annotator would: decide which quantities to work out on their own, perhaps see a
shortcut, order the terms, break long expressions into steps, then name everything n0.., t0.., answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from storyproblems.dice import chance, pick, shuffled
from storyproblems.expressions import (
    Expression,
    Name,
    Number,
    Value,
    evaluate,
    names,
    nodes,
    operations,
    substitute,
)
from storyproblems.quantities import ANSWER, QuantityGraph
from storyproblems.rewriting import variants
from storyproblems.scribe import Scribe, is_sensible
from storyproblems.steps import Step, leaf_text, leaves, literal, render

Path = tuple[str, ...]  # one Python assignment each, the last one to `answer`

PATIENCE = 8
MAX_EXTRA_OPERATIONS = 2  # a shortcut that is longer than this is none
# Drawn uniformly, so that four annotators in six keep the order of the story.
CONSTANT_ORDERS = ("as told", "as told", "as told", "as told", "as used", "any")


@dataclass(frozen=True, slots=True)
class Style:
    """Habits of an annotator, each the probability of doing it where it can be done."""

    fusing: float  # substitute a quantity into the formula that uses it
    splitting: float  # give an inner expression a step of its own
    rewriting: float  # look for another expression
    swapping: float  # leave the order in which the story tells things
    declaring: float  # give n-names also to numbers the story implies


STYLES = (
    Style(fusing=0.1, splitting=0.95, rewriting=0.25, swapping=0.25, declaring=0.1),
    Style(fusing=0.2, splitting=0.9, rewriting=0.6, swapping=0.5, declaring=0.1),
    Style(fusing=0.3, splitting=0.6, rewriting=0.4, swapping=0.3, declaring=0.2),
    Style(fusing=0.7, splitting=0.2, rewriting=0.3, swapping=0.3, declaring=0.0),
)


def draw_path(graph: QuantityGraph, rng: Random) -> Path:
    """One way to the answer, at random."""
    style = pick(rng, STYLES)
    values = graph.values
    formulas = _fused(graph.formulas, style, rng)
    scribe = Scribe(rng, values, style.splitting, style.swapping)
    for name, formula in formulas.items():
        scribe.define(name, _rewritten(formula, values, style, rng))
    steps = _reordered(scribe.steps, rng) if chance(rng, style.swapping) else scribe.steps
    return _written(steps, graph.numbers, chance(rng, style.declaring), rng)


def draw_paths(graph: QuantityGraph, rng: Random, count: int) -> list[Path]:
    """Up to `count` different paths; fewer when PATIENCE draws per path found no more."""
    paths: dict[Path, None] = {}  # a set that keeps the order in which they were found
    for _ in range(count * PATIENCE):
        paths[draw_path(graph, rng)] = None
        if len(paths) == count:
            break
    return list(paths)


def _fused(formulas: Mapping[str, Expression], style: Style, rng: Random) -> dict[str, Expression]:
    """The formulas with some quantities written out where they are used."""
    uses = Counter(name for formula in formulas.values() for name in names(formula))
    fused: dict[str, Expression] = {}
    kept: dict[str, Expression] = {}
    for name, formula in formulas.items():
        formula = substitute(formula, fused)
        reluctance = 1 if uses[name] == 1 else 2 * operations(formula)  # writing things twice is work
        if name != ANSWER and chance(rng, style.fusing / reluctance):
            fused[name] = formula
        else:
            kept[name] = formula
    return kept


def _rewritten(formula: Expression, values: Mapping[str, Value], style: Style, rng: Random) -> Expression:
    """The formula or, if one comes to mind, another with the same value and no odd numbers on the way."""
    for _ in range(2):  # a rewriting may open the way to another
        if chance(rng, style.rewriting):
            others = list(variants(formula))
            other = pick(rng, others) if others else formula
            is_short = operations(other) <= operations(formula) + MAX_EXTRA_OPERATIONS
            if is_short and all(is_sensible(evaluate(node, values)) for node in nodes(other)):
                formula = other
    return formula


def _reordered(steps: Sequence[Step], rng: Random) -> list[Step]:
    """The steps in a random order in which each still comes after those it needs."""
    waiting = list(steps)
    ordered: list[Step] = []
    while waiting:
        pending = {step.name for step in waiting}
        ready = [
            step for step in waiting if pending.isdisjoint(leaf_text(leaf) for leaf in leaves(step.tree))
        ]
        ordered.append(pick(rng, ready))
        waiting.remove(ordered[-1])
    return ordered


def _written(steps: Sequence[Step], numbers: Mapping[str, Value], declares_all: bool, rng: Random) -> Path:
    """Constants first, then steps, as text in the paper's names."""
    used = list(dict.fromkeys(leaf for step in steps for leaf in leaves(step.tree)))
    told = [leaf for leaf in used if isinstance(leaf, Name) and leaf.name in numbers]
    implied = [leaf for leaf in used if isinstance(leaf, Number)] if declares_all else []
    constants = _ordered(told, implied, numbers, rng)
    spelled: dict[Name | Number, str] = {leaf: f"n{index}" for index, leaf in enumerate(constants)}
    spelled |= {Name(step.name): f"t{index}" for index, step in enumerate(steps[:-1])}
    lines = [
        f"{spelled[c]} = {literal(numbers[c.name] if isinstance(c, Name) else c.value)}" for c in constants
    ]
    for step in steps:
        text = render(step.tree, lambda leaf: spelled.get(leaf) or leaf_text(leaf))
        lines.append(f"{spelled.get(Name(step.name), ANSWER)} = {text}")
    return tuple(lines)


def _ordered(
    told: Sequence[Name], implied: Sequence[Number], numbers: Mapping[str, Value], rng: Random
) -> list[Name | Number]:
    """Constants mostly as the story tells them, sometimes as they are used, sometimes in no order."""
    match pick(rng, CONSTANT_ORDERS):
        case "as told":
            place = {name: index for index, name in enumerate(numbers)}
            return [*sorted(told, key=lambda name: place[name.name]), *implied]
        case "as used":
            return [*told, *implied]
    return shuffled(rng, [*told, *implied])

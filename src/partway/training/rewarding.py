"""A step's own samples as targets: each with its reward, and with what a policy gradient makes of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from partway.execution import Programs, Trace
from partway.models.engine import Draw, Request
from partway.models.targets import Target, Targets
from partway.models.text import Codec
from partway.objectives import Advantages
from partway.rewards import credit


@dataclass(frozen=True, slots=True)
class RewardedDraw:
    """A distinct sample of a problem, how often it was drawn, and what it earns each time."""

    draw: Draw
    reward: float


def rewarded_draws(
    draws: Sequence[tuple[Request, Draw]], traces: Sequence[Trace], reward: str, programs: Programs
) -> dict[str, list[RewardedDraw]]:
    """The draws of each problem by its id: 1 for a right answer, else 0 or, for `trace`, partial credit."""
    problems = {request.problem.id: request.problem for request, _ in draws}
    # Partial credit is measured against the reference alone; without one, only the answer counts.
    with_reference = [p for p in problems.values() if reward == "trace" and p.reference is not None]
    known = programs.trace_all([str(problem.reference) for problem in with_reference])
    solutions = {problem.id: [trace] for problem, trace in zip(with_reference, known, strict=True)}
    found: defaultdict[str, list[RewardedDraw]] = defaultdict(list)
    for (request, draw), trace in zip(draws, traces, strict=True):
        problem = request.problem
        earned = credit(trace, problem.answer, solutions.get(problem.id, []), programs=programs)
        found[problem.id].append(RewardedDraw(draw, earned))
    return dict(found)


def sample_targets(
    prompt: tuple[int, ...],
    samples: Sequence[RewardedDraw],
    advantages: Advantages,
    codec: Codec,
    programs: Programs,
) -> Targets | None:
    """The samples with the sum of the weights of all their copies; None where no weight is left.

    That is so if all earned the same, as groups of easy and of hard problems do.
    """
    # Advantages are over all n samples; equal ones are one target with the sum of their weights.
    weights = iter(advantages([sample.reward for sample in samples for _ in range(sample.draw.count)]))
    targets = [
        Target(
            written(sample.draw, codec, programs),
            "sample",
            sum(next(weights) for _ in range(sample.draw.count)),
        )
        for sample in samples
    ]
    kept = tuple(target for target in targets if target.weight and target.tokens)
    return Targets(prompt, kept) if kept else None


def written(draw: Draw, codec: Codec, programs: Programs) -> tuple[int, ...]:
    """The tokens that the model wrote. It is stopped behind the answer, so an end it wrote only elsewhere."""
    # Line by line, as steps are tokenised: these are the tokens that learning gives other targets too.
    lines = draw.completion.splitlines(keepends=True)
    tokens = tuple(token for line in lines for token in codec.encode(line))
    has_written_end = draw.finished and programs.end(draw.text) is None
    return (*tokens, *codec.closing) if has_written_end else tokens

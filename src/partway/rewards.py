"""Trace credit for other trainers: a score for a text that is right, or right partway.

A right answer scores 1. Otherwise the longest beginning that reaches a state of a known solution earns
`alpha` times the share of that solution it stands for. Where the sandbox cannot judge there is no score,
never a zero. To remove this file, delete it and its test; the folder `arms` needs it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from partway.buffer import SolutionBuffer
from partway.errors import ProblemError, SandboxError, SolutionError
from partway.language import PYTHON, Language, State, Trace, trace_all
from partway.language.named import language_of
from partway.problem import Problem
from partway.solution import Solution

ALPHA = 0.5

_BLOCK = re.compile(r"```\w*[ \t]*\n(.*?)(?:\n```|$)", re.S)


def trace_credits(
    texts: Sequence[str],
    problems: Sequence[Problem],
    known: Sequence[SolutionBuffer | Solution | str | None] | None = None,
    *,
    alpha: float = ALPHA,
    language: Language = PYTHON,
) -> list[float | None]:
    """The score of each text, given its problem and what is known: a buffer, or by default the reference.

    >>> problem = Problem("p", "?", 9, "a = 4\\nb = a * 2\\nanswer = b + 1")
    >>> trace_credits(["n0 = 4\\nt0 = n0 * 2\\nanswer = t0"], [problem])
    [0.3333333333333333]
    """
    known = [problem.reference for problem in problems] if known is None else known
    try:
        traces = language.trace_all([(p, code_in(text)) for p, text in zip(problems, texts, strict=True)])
        return [
            credit(trace, problem, _solutions(problem, one, language), alpha=alpha, language=language)
            for trace, problem, one in zip(traces, problems, known, strict=True)
        ]
    except SandboxError:
        # Zeros would teach the model that its programs are wrong; TRL leaves None out.
        return [None] * len(texts)


def credit(
    trace: Trace,
    problem: Problem,
    solutions: Sequence[Trace],
    *,
    alpha: float = ALPHA,
    language: Language = PYTHON,
) -> float:
    """The score of a traced program, given traces of what is known to be right."""
    return 1.0 if language.is_correct(problem, trace) else alpha * _share(trace, solutions, language)


def trace_reward(
    completions: Sequence[Any], answer: Sequence[Any], solution: Sequence[str | None] | None = None, **_: Any
) -> list[float | None]:
    """A reward function for TRL: `GRPOTrainer(..., reward_funcs=trace_reward)`.

    The dataset has a column `answer` and, for partial credit, `solution`; completions are texts or chats.
    """
    # In chats the last message is the model's.
    texts = [text if isinstance(text, str) else str(text[-1]["content"]) for text in completions]
    problems = [Problem("", "", one) for one in answer]
    return trace_credits(texts, problems, [None] * len(texts) if solution is None else solution)


def sql_trace_reward(
    completions: Sequence[Any],
    answer: Sequence[Any] | None = None,
    solution: Sequence[str | None] | None = None,
    database: Sequence[Any] | None = None,
    **_: Any,
) -> list[float | None]:
    """The same for queries: `database` is a file or the statements that make one, `answer` the rows.

    Rows may be JSON, since a column of a data set holds values of one type. Without a column of answers, the
    rows of each solution are the answer; there is no score where it gives none.
    """
    if database is None or (answer is None and solution is None):
        raise ProblemError("a query is scored with columns `database` and `answer` or `solution`, or both")
    texts = [text if isinstance(text, str) else str(text[-1]["content"]) for text in completions]
    known = [None] * len(texts) if solution is None else solution
    rows = _rows(known, database) if answer is None else answer
    problems = [_query_problem(*one) for one in zip(rows, known, database, strict=True)]
    scores = trace_credits(texts, problems, known, language=language_of({"language": "sql"}))
    return [None if given is None else score for given, score in zip(rows, scores, strict=True)]


def _rows(solutions: Sequence[str | None], databases: Sequence[Any]) -> list[Any]:
    """The rows of each reference."""
    pairs = [(_query_problem(None, None, one), text) for text, one in zip(solutions, databases, strict=True)]
    traces = language_of({"language": "sql"}).trace_all([(problem, text or "") for problem, text in pairs])
    return [trace.answer if trace.has_answer else None for trace in traces]


def _query_problem(answer: Any, solution: str | None, database: Any) -> Problem:
    language = language_of({"language": "sql"})
    if isinstance(answer, str):
        with suppress(ValueError):
            answer = json.loads(answer)
    problem = Problem("", "", answer, context=database)
    if (flaw := language.flaw(problem)) is not None:
        raise ProblemError(flaw)  # else every query would score 0
    if solution is not None:
        with suppress(SolutionError):  # whether rows have an order is for the reference to say
            return replace(problem, reference=language.parse(solution))
    return problem


async def trace_reward_async(
    completions: Sequence[Any], answer: Sequence[Any], solution: Sequence[str | None] | None = None, **_: Any
) -> list[float | None]:
    """The same, for TRL to run beside other asynchronous reward functions."""
    return await asyncio.to_thread(trace_reward, completions, answer, solution)


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None
) -> float:
    """A reward function for verl: `custom_reward_function.path` is this file, `.name` is compute_score.

    `extra_info["solution"]`, if there is one, is the reference; with `extra_info["database"]` it is a query.
    What cannot be judged is an error, for lack of a score that would say so.
    """
    extra = extra_info or {}
    return _score(solution_str, ground_truth, extra.get("solution"), extra.get("database"))


async def trace_credit(task: Any, trace: Any) -> float:
    """A reward for verifiers 0.4, plugged in by a task's config: `rewards.trace_credit.fn` is
    `partway.rewards:trace_credit`.

    The task's data has `answer`, for partial credit `solution`, and for queries `database`. What cannot be
    judged is an error.
    """
    known = getattr(task, "solution", None), getattr(task, "database", None)
    return _score(trace.last_reply, task.answer, *known)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """For a task of lm-eval: `process_results: !function FILE.process_results`, where FILE.py imports this.

    Its documents have `answer` and, for partial credit, `solution`. Its metrics are `trace_credit` and
    `correct`.
    """
    score = _score(results[0], doc["answer"], doc.get("solution"))
    return {"trace_credit": score, "correct": float(score == 1.0)}


def trace_scorer() -> Any:
    """A scorer for inspect_ai: `Task(..., scorer=trace_scorer())`.

    The metadata of its samples has `answer` and, for partial credit, `solution`.
    """
    from inspect_ai.scorer import Score, Target, mean, scorer
    from inspect_ai.solver import TaskState

    async def score(state: TaskState, target: Target) -> Score:
        text, known = state.output.completion, state.metadata
        return Score(value=await asyncio.to_thread(_score, text, known["answer"], known.get("solution")))

    return scorer(metrics=[mean()], name="trace_credit")(lambda: score)()


def _score(text: str, answer: Any, solution: str | None, database: Any = None) -> float:
    if database is None:
        [score] = trace_credits([text], [Problem("", "", answer)], [solution])
    else:
        rows = None if answer is None else [answer]
        [score] = sql_trace_reward([text], rows, [solution], [database])
    if score is None:
        raise SandboxError("the sandbox cannot run this program; `partway doctor` says what is missing")
    return score


def code_in(text: str) -> str:
    """The program in what a model wrote: its first block of code if it has one, else all of it.

    >>> code_in("It is simple:\\n```python\\nanswer = 2\\n```\\nSo 2.")
    'answer = 2'
    """
    block = _BLOCK.search(text)
    return text if block is None else block.group(1)


def _solutions(
    problem: Problem, known: SolutionBuffer | Solution | str | None, language: Language
) -> list[Trace]:
    if known is None:
        return []
    whole = known.fully_correct if isinstance(known, SolutionBuffer) else [known]
    return trace_all(whole, language, problem)


def _share(trace: Trace, solutions: Sequence[Trace], language: Language) -> float:
    """The largest share of a known solution that the longest known beginning stands for."""
    shares: dict[State, float] = {}
    for solution in solutions:
        for length, state in enumerate(solution.states, 1):
            # A state can be reached twice, by a step that changes nothing; the later one is further.
            shares[state] = max(shares.get(state, 0.0), length / len(solution.solution))
    # The rule by which a buffer finds partially-correct solutions (Alg. 3, lines 3-5).
    length = trace.longest_known_prefix(shares)
    return shares[trace.states[length - 1]] if length else 0.0

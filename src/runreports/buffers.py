"""Counts the buffers of a run, exports them for other trainers, and begins a new run with them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from partway.buffer import Rules, SolutionBuffer, Verdict, reconsider, seed_buffers, write_buffers
from partway.buffer.buffer import KINDS
from partway.errors import ConfigError, ProblemError, RunError
from partway.files import atomic_writer
from partway.language import PYTHON, Language
from partway.language.named import language_of
from partway.problem import Problem
from partway.runs import Row, Run, read_rows
from runreports.wording import Wording, program_in

COLUMNS = ("prompt", "completion", "problem_id", "kind")


@dataclass(frozen=True)
class Explored:
    """A problem and what sampling it has brought."""

    problem: str
    question: str
    samples: int
    fully_correct: int
    partially_correct: int


@dataclass(frozen=True)
class BufferSummary:
    """What the buffers of a run hold, and the verdicts on all its self-samples."""

    step: int
    references: int
    solutions: dict[str, int]
    lengths: dict[str, dict[int, int]]  # by kind, how many solutions have so many steps
    verdicts: dict[Verdict, int]
    problems: tuple[Explored, ...]  # those with most kept solutions, then most samples, first

    def to_json(self, top: int) -> Row:
        """All numbers, and of the problems the first and the last `top`."""
        return {
            "step": self.step,
            "problems": len(self.problems),
            "references": self.references,
            **self.solutions,
            "lengths": self.lengths,
            "samples": sum(self.verdicts.values()),
            "verdicts": self.verdicts,
            "most_explored": [asdict(problem) for problem in self.problems[:top]],
            "least_explored": [asdict(problem) for problem in self.problems[::-1][:top]],
        }


def summarize_buffers(run: Run) -> BufferSummary:
    """Count what a run has kept and drawn."""
    file = run.saved_buffers()
    kept: dict[str, Counter[str]] = {}
    lengths: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS}
    for row in read_rows(file):
        kept[row["id"]] = Counter(solution["kind"] for solution in row["solutions"])
        for solution in row["solutions"]:
            lengths[solution["kind"]][len(solution["steps"])] += 1
    drawn, verdicts = _drawn(run)
    problems = {row["id"]: row for row in read_rows(run.problems_file("train"))}
    explored = [
        Explored(id, problems.get(id, {}).get("question", ""), drawn[id], *(kinds[kind] for kind in KINDS))
        for id, kinds in kept.items()
    ]
    explored.sort(key=lambda p: (-p.fully_correct - p.partially_correct, -p.samples, p.problem))
    return BufferSummary(
        run.buffer_step(file) or run.last_step(),
        sum(row.get("solution") is not None for row in problems.values()),
        {kind: sum(counts.values()) for kind, counts in lengths.items()},
        {kind: dict(sorted(counts.items())) for kind, counts in lengths.items()},
        verdicts,
        tuple(explored),
    )


def _drawn(run: Run) -> tuple[Counter[str], dict[Verdict, int]]:
    """How often each problem was sampled, and how often each verdict was given."""
    drawn: Counter[str] = Counter()
    verdicts = dict.fromkeys(Verdict, 0)
    for sample in run.samples():
        drawn[sample.problem] += sample.count
        assert sample.verdict is not None, "a run keeps samples that were judged"
        verdicts[sample.verdict] += sample.count
    return drawn, verdicts


def export_buffers(run: Run, path: Path, kinds: Collection[str] = KINDS) -> Counter[str]:
    """Write the kept solutions as JSONL, which `datasets` loads; returns how many there are of each kind.

    A prompt is what the model reads, a completion what it writes: messages if the run asked through a chat
    template, else text without an end-of-text token.
    """
    return write_counted(path, export_rows(run, kinds), lambda row: str(row["kind"]))


def write_counted(path: Path, rows: Iterable[Row], kind_of: Callable[[Row], str]) -> Counter[str]:
    """Write rows as JSONL; returns how many there are of each kind."""
    if path.suffix != ".jsonl":
        raise ConfigError(f"{path}: rows are written as JSONL; take a name that ends in .jsonl")
    counts: Counter[str] = Counter()
    with atomic_writer(path) as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            counts[kind_of(row)] += 1
    return counts


def export_rows(run: Run, kinds: Collection[str] = KINDS) -> Iterator[Row]:
    """The kept solutions of every problem, in the order of the buffers."""
    problems = read_rows(run.problems_file("train"))
    wording = Wording.of(run)
    prompts = {row["id"]: wording.asked(row["question"]) for row in problems}
    for row in read_rows(run.saved_buffers()):
        for solution in row["solutions"]:
            if solution["kind"] in kinds:
                if row["id"] not in prompts:
                    raise RunError(f"{run.directory}: there is no problem {row['id']!r}; was a file changed?")
                is_finished = solution["kind"] == "fully_correct"
                completion = wording.answered(solution["steps"], finished=is_finished)
                values = (prompts[row["id"]], completion, row["id"], solution["kind"])
                yield dict(zip(COLUMNS, values, strict=True))


@dataclass(frozen=True)
class Import:
    """Buffers made from another's solutions, the verdicts on these, and how many problems are not ours."""

    buffers: dict[str, SolutionBuffer]
    verdicts: Counter[Verdict]
    unknown: int


def import_buffers(
    source: Path, problems: Iterable[Problem], rules: Rules, language: Language = PYTHON
) -> Import:
    """Buffers of `problems` that begin with the solutions in `source`, each of them run again.

    `source` is a run, a buffer.jsonl, or what `export_buffers` wrote. Nothing it says is believed: what a
    solution reaches is computed, and `rules` decide whether it is kept.
    """
    buffers = seed_buffers(problems, rules, language)
    rows = list(saved_rows(source))
    verdicts = reconsider(buffers, rows)
    return Import(buffers, verdicts, len({row["id"] for row in rows} - buffers.keys()))


def write_import(path: Path, imported: Import) -> None:
    """Write imported buffers as a buffer.jsonl."""
    with atomic_writer(path) as stream:
        write_buffers(stream, imported.buffers.values())


def saved_rows(source: Path) -> Iterator[Row]:
    """Lines of a buffer.jsonl, whatever `source` is: a run, such a file, or an exported data set."""
    if source.is_dir():
        source = Run.at(source).saved_buffers()
    if not source.is_file():
        raise RunError(f"{source}: no such file; expected a run, a buffer.jsonl or an exported data set")
    exported: defaultdict[str, list[Row]] = defaultdict(list)  # a row for each solution, not each problem
    for number, row in enumerate(read_rows(source), 1):
        is_object = isinstance(row, dict)
        if is_object and "solutions" in row:
            yield row
        elif is_object and "problem_id" in row and (text := program_in(row.get("completion"))) is not None:
            # All lines as one step: solutions are parsed again before they are run again.
            exported[str(row["problem_id"])].append({"steps": [text]})
        else:
            raise RunError(
                f"{source}, row {number}: no kept solutions, expected a row of a buffer.jsonl or one with "
                f"{', '.join(COLUMNS)}"
            )
    yield from ({"id": id, "solutions": solutions} for id, solutions in exported.items())


def rules_in(source: Path) -> tuple[Rules, Language]:
    """The rules and the programs of saved buffers, the usual ones if they do not say."""
    said = next(saved_rows(source), {}).get("rules", {})
    return Rules.from_json(said), language_of(said)


def problems_in(source: Path) -> list[Problem]:
    """The training problems of a run."""
    problems = Run.at(source).problems() if source.is_dir() else []
    if not problems:
        raise ProblemError(f"{source}: which problems are these solutions of? Add --problems FILE")
    return problems

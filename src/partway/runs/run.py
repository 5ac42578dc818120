"""A run directory: what it holds and where; no other module knows the names of its files.

`docs/runs.md` describes each file key by key. Files that grow are only appended to, so a
checkpoint stores their lengths, and resuming cuts off what was written later.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import yaml

from partway.buffer import Rules, SolutionBuffer, Verdict, write_buffers
from partway.errors import RunError
from partway.files import atomic_writer
from partway.language import Language
from partway.language.named import language_of, with_args
from partway.problem import Problem, problem_line, problem_of
from partway.runs.rows import (
    BUFFERS,
    PASS1,
    SAMPLES,
    SUMMARY,
    Row,
    append_rows,
    as_written,
    cut_rows,
    numbered,
    read_json,
    read_rows,
    read_yaml,
    samples_beside,
    synced_size,
)
from partway.sample import Sample

CHECKPOINTS = "checkpoint-*"
MANIFEST = "manifest.json"  # of a checkpoint, written last
TRAINER_STATE = "trainer_state.json"  # as transformers writes it, in a checkpoint
STEPS_PER_SAMPLE_FILE = 1000  # so that late steps are found, or cut off, without reading the early ones
# What a row of a self-sample has; tokens come after it, if there are any.
ROW = ("step", "problem", "prefix", "completion", "count", "finished", "verdict", "log_prob", "weights")
SPLITS = ("train", "dev")  # the problems every run has


class Writable(Protocol):
    """An evaluation, as far as a run is concerned."""

    def write(self, path: Path, *, expand: bool, about: Mapping[str, Any]) -> None:
        """Write the summary to `path`, the samples beside it."""


@dataclass(frozen=True)
class Run:
    """A run directory. Reading needs nothing but the files; writing is for one process only."""

    directory: Path

    @classmethod
    def at(cls, directory: str | os.PathLike[str]) -> Run:
        """The run in `directory`, which must hold one."""
        run = cls(Path(directory))
        if not run.is_started:
            inside = ", ".join(str(path.parent) for path in sorted(run.directory.glob("*/config.yaml"))[:5])
            expected = f"runs inside: {inside}" if inside else "expected an output_dir of partway train"
            raise RunError(f"{directory}: no run here (config.yaml is missing); {expected}")
        return run

    @classmethod
    def around(cls, model: str | Path | None) -> Run | None:
        """The run that `model` is, or in which it is a checkpoint or the final model; None for others."""
        folders = (Path(model), Path(model).parent) if model and Path(model).is_dir() else ()
        return next((run for run in map(cls, folders) if run.is_started), None)

    @property
    def is_started(self) -> bool:
        """Whether training was ever begun here."""
        return self._config_file.is_file()

    @property
    def is_finished(self) -> bool:
        """Whether training came to its end."""
        return self.final.is_dir()

    @property
    def final(self) -> Path:
        """The directory of the model to use, there once training has ended."""
        return self.directory / "final"

    @property
    def final_step(self) -> int | None:
        """The step whose weights the final model has; None before the end, and of runs that did not say."""
        # A run that went on after its end has said so more than once: the last time counts.
        named = [line["final_step"] for line in self.metrics() if "final_step" in line]
        return int(named[-1]) if named else None

    @property
    def base(self) -> Path:
        """The model that an adapter of this run was trained on, if that has no name to load it by."""
        return self.directory / "base"

    def checkpoint(self, step: int) -> Path:
        """The directory of the checkpoint at `step`."""
        return self.directory / f"checkpoint-{step}"

    def checkpoints(self) -> dict[int, Path]:
        """Checkpoint directories by step, those that are complete: what is half-written has no manifest."""
        found = numbered(self.directory, CHECKPOINTS)
        return {step: directory for step, directory in found if (directory / MANIFEST).is_file()}

    def weights(self, step: int) -> Path:
        """The directory of the weights that servers draw with, which is there while they may read it."""
        return self.directory / "weights" / f"step-{step}"

    def model_directory(self) -> Path | None:
        """The final model, else the best checkpoint, else the last one; None before the first."""
        if self.is_finished:
            return self.final
        # Only the last checkpoint knows which one was best by then.
        last = max(self.checkpoints().items(), default=(0, None))[1]
        return last and (self.best_checkpoint(last) or last)

    def best_checkpoint(self, last: Path) -> Path | None:
        """The checkpoint that was best when `last` was written, if it is there."""
        state = last / TRAINER_STATE
        best = read_json(state).get("best_model_checkpoint") if state.is_file() else None
        found = self.directory / Path(best).name if best else None  # the run may have been moved since
        return found if found is not None and found.is_dir() else None

    def write_config(self, settings: Mapping[str, Any]) -> None:
        """Save the resolved settings."""
        with atomic_writer(self._config_file) as stream:
            yaml.safe_dump(dict(settings), stream, sort_keys=False, allow_unicode=True)

    @property
    def config(self) -> Row:
        """The resolved settings."""
        return read_yaml(self._config_file)

    @property
    def _config_file(self) -> Path:
        return self.directory / "config.yaml"

    @cached_property
    def language(self) -> Language:
        """The language of the solutions and what is right in it."""
        settings = self.config if self.is_started else {}
        with as_written(self._config_file):
            return language_of(settings)

    def write_environment(self, environment: Mapping[str, Any]) -> None:
        """Save versions, seed and fingerprints."""
        with atomic_writer(self.environment_file) as stream:
            json.dump(environment, stream, indent=2, ensure_ascii=False)

    @property
    def environment_file(self) -> Path:
        """Where versions, seed and fingerprints are."""
        return self.directory / "environment.json"

    @property
    def environment(self) -> Row:
        """Versions, seed and fingerprints of problems and model."""
        return read_json(self.environment_file)

    def write_problems(self, split: str, problems: Sequence[Problem]) -> None:
        """Save the problems of `split` (train or dev) as they are used."""
        with atomic_writer(self.problems_file(split)) as stream:
            stream.writelines(map(problem_line, problems))

    def problems(self, split: str = "train") -> list[Problem]:
        """The problems of `split`, none if the run has none."""
        rows, parse = read_rows(file := self.problems_file(split)), self.language.parse
        with as_written(file):
            return [problem_of(row, parse) for row in rows]

    def problems_file(self, split: str) -> Path:
        """Where the problems of `split` are, if there are any."""
        return self._problems / f"{split}.jsonl"

    def splits(self) -> list[str]:
        """What problems the run has: those it trains on, those of its evaluations, then any others."""
        others = sorted({path.stem for path in self._problems.glob("*.jsonl")} - {*SPLITS})
        return [*SPLITS, *others]

    @property
    def _problems(self) -> Path:
        return self.directory / "problems"

    @cached_property
    def rules(self) -> Rules:
        """What the buffers keep; settings that are not there have defaults."""
        return Rules.of(self.config if self.is_started else {})

    def append_metrics(self, metrics: Mapping[str, Any], timings: Mapping[str, Any]) -> None:
        """Add a line to metrics.jsonl and its companion to timings.jsonl."""
        append_rows(self._metrics_file, [metrics])
        append_rows(self._timings_file, [timings])

    def append_samples(self, samples: Sequence[Sample]) -> None:
        """Add self-samples, in the order of their steps."""
        for first, group in groupby(samples, key=_first_step_of_file):
            append_rows(self._samples / f"{first:08d}.jsonl", map(_row_of, group))

    def metrics(self) -> list[Row]:
        """The lines of metrics.jsonl."""
        return list(read_rows(self._metrics_file))

    def timings(self) -> list[Row]:
        """The lines of timings.jsonl."""
        return list(read_rows(self._timings_file))

    @property
    def _metrics_file(self) -> Path:
        return self.directory / "metrics.jsonl"

    @property
    def _timings_file(self) -> Path:
        return self.directory / "timings.jsonl"

    def last_step(self) -> int:
        """The last step that left a line."""
        return max((int(line["step"]) for line in read_rows(self._metrics_file)), default=0)

    def samples(self, after: int = 0) -> Iterator[Sample]:
        """Every self-sample of the steps after one, in the order drawn."""
        for path in self.sample_files():
            if int(path.stem) + STEPS_PER_SAMPLE_FILE <= after + 1:  # all of its steps are before
                continue
            for row in read_rows(path):
                if row["step"] <= after:
                    continue
                with as_written(path):
                    sample = _sample_in(row)
                yield sample

    def sample_files(self) -> list[Path]:
        """The files of self-samples, in the order of their steps."""
        return sorted(self._samples.glob("*.jsonl"))

    @property
    def _samples(self) -> Path:
        return self.directory / "samples"

    def write_evaluation(self, step: int, evaluation: Writable) -> None:
        """Save the evaluation at a step: its samples, then its summary."""
        about = {"step": step, "problems_file": self._name(self.problems_file("dev"))}
        if self.environment_file.exists() and (dev := self.environment.get("data", {}).get("dev")):
            about["problems_sha256"] = dev.get("sha256")
        evaluation.write(self.evaluation_file(step), expand=False, about=about)

    def evaluation_file(self, name: int | str) -> Path:
        """The summary of the evaluation at a step, or of one with a name; its samples are beside it."""
        return self.evaluations_directory / f"{f'step-{name}' if isinstance(name, int) else name}{SUMMARY}"

    @property
    def evaluations_directory(self) -> Path:
        """Where the evaluations of this run are."""
        return self.directory / "evaluations"

    def evaluated_steps(self) -> list[int]:
        """The steps with a whole evaluation."""
        return [step for step, _ in numbered(self.evaluations_directory, f"step-*{SUMMARY}")]

    def evaluations(self) -> dict[int, Row]:
        """The summaries by step."""
        return {step: read_json(self.evaluation_file(step)) for step in self.evaluated_steps()}

    def evaluation_names(self) -> list[str]:
        """The names of evaluations apart from those of training: of the final model, on other problems."""
        names = (path.stem for path in sorted(self.evaluations_directory.glob(f"*{SUMMARY}")))
        others = (name for name in names if not name.removeprefix("step-").isdecimal())
        return [name for name in others if self.evaluation_file(name).exists()]

    def evaluation_rows(self, step: int) -> Iterator[Row]:
        """The samples of the evaluation at `step`."""
        return read_rows(samples_beside(self.evaluation_file(step))[0])

    def buffers(self, directory: Path | None = None) -> dict[str, SolutionBuffer]:
        """The buffers by problem id, from a checkpoint, else as they were at the end or last saved."""
        file = self.saved_buffers() if directory is None else directory / BUFFERS
        rows = {row["id"]: row for row in read_rows(file)}
        # In the order of the problems, whatever the order of the file.
        problems, language = self.problems(), self.language
        with as_written(file):
            return {p.id: SolutionBuffer.from_json(p, rows[p.id], language) for p in problems if p.id in rows}

    def buffer_file(self) -> Path | None:
        """The newest saved buffers: of the end, else of the last checkpoint that has them."""
        directories = [self.final, *reversed(self.checkpoints().values())]
        return next((file for d in directories if (file := d / BUFFERS).is_file()), None)

    def saved_buffers(self) -> Path:
        """The newest saved buffers of a run that must have some."""
        if (file := self.buffer_file()) is None:
            raise RunError(
                f"{self.directory}: no checkpoint was written yet; the buffers come with the first"
            )
        return file

    def buffer_step(self, file: Path) -> int | None:
        """The step at which a checkpoint's buffers were saved, None for those of the end."""
        return {directory: step for step, directory in self.checkpoints().items()}.get(file.parent)

    @property
    def imported_buffers(self) -> Path:
        """Where solutions of another run are put for this one to begin with."""
        return self.directory / "imported_buffer.jsonl"

    def nan_batch_file(self, step: int) -> Path:
        """Where the batch is written whose loss was not a number."""
        return self.directory / f"nan_batch_step-{step}.json"

    def positions(self) -> dict[str, int]:
        """How long each growing file is, once all of it is on disk."""
        return {self._name(path): synced_size(path) for path in self._growing()}

    def cut(self, step: int, positions: Mapping[str, int]) -> list[str]:
        """Forget everything after `step`, when the growing files had the lengths `positions`.

        Gives the names of files that have lost lines from before it. These are logs, which training does not
        need; what is left of them stays.
        """
        lost = []
        for path in self._growing():
            if (name := self._name(path)) not in positions:  # begun after the checkpoint
                path.unlink()
            elif not cut_rows(path, positions[name], step):
                lost.append(name)
        # Evaluations are whole files of their own, so late ones are removed, not cut.
        for number, path in self._evaluation_files():
            if number > step:
                path.unlink()
        return lost + [name for name in positions if not (self.directory / name).is_file()]

    def take_over(self, source: Run, step: int, positions: Mapping[str, int]) -> None:
        """Begin with what `source` had by `step`, when its growing files had the lengths `positions`."""
        for path in (*source._growing(), *(path for _, path in source._evaluation_files())):
            copy = self.directory / source._name(path)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
        self.cut(step, positions)

    def _growing(self) -> list[Path]:
        lines = [path for path in (self._metrics_file, self._timings_file) if path.exists()]
        return lines + self.sample_files()

    def _evaluation_files(self) -> list[tuple[int, Path]]:
        """The files of training's own evaluations, by step."""
        patterns = [f"step-*{ending}" for ending in (SUMMARY, SAMPLES, PASS1)]
        return [found for pattern in patterns for found in numbered(self.evaluations_directory, pattern)]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.directory).as_posix()


def save_buffers(directory: Path, buffers: Iterable[SolutionBuffer]) -> None:
    """Save buffers beside the weights in `directory`, one line each."""
    with (directory / BUFFERS).open("w", encoding="utf-8", newline="\n") as stream:
        write_buffers(stream, buffers)


def saved_buffer_rows(directory: Path) -> Iterator[Row]:
    """What `save_buffers` saved."""
    return read_rows(directory / BUFFERS)


def _row_of(sample: Sample) -> Row:
    row = {name: getattr(sample, name) for name in ROW}
    return row | {"tokens": sample.tokens} if sample.tokens else row


def _sample_in(row: Row) -> Sample:
    known = {name: row[name] for name in ROW}
    return Sample(**known | {"verdict": Verdict(row["verdict"]), "tokens": tuple(row.get("tokens", ()))})


def _first_step_of_file(sample: Sample) -> int:
    # Steps count from 1, so the first file holds 1 to 1000 and is called 00000001.
    return (sample.step - 1) // STEPS_PER_SAMPLE_FILE * STEPS_PER_SAMPLE_FILE + 1


def language_for(model: str | None, name: str | None = None, **given: Any) -> Language:
    """The language a model writes: that of its run if it names one, else `name`, with the settings given."""
    config = run.config if (run := Run.around(model)) else {}
    if name is not None and name != config.get("language"):
        config = {"language": name}
    return language_of(with_args(config, given))

"""The small parts of runs, in one archive that `partway report` and `partway explore` open.

    python docs/runs/ship.py pack gsm8k.tar.xz runs/short_mle runs/short_fcs_pcs mle fcs_pcs
    python docs/runs/ship.py fill runs/short_mle data/gsm8k

`pack` leaves out weights, checkpoints, the command line and the questions, which belong to their data set; of
a directory that is no run it takes the evaluations. `fill` puts the questions back from your own conversion.
"""

import io
import json
import sys
import tarfile
from pathlib import Path

KEPT = ["config.yaml", "metrics.jsonl", "timings.jsonl", "samples/*", "evaluations/*", "final/buffer.jsonl"]


def main(action: str, target: str, *others: str) -> None:
    {"pack": pack, "fill": fill}[action](Path(target), [Path(other) for other in others])


def pack(archive: Path, directories: list[Path]) -> None:
    with tarfile.open(archive, "w:xz") as tar:
        for directory in directories:
            for name, content in sorted(shipped(directory).items()):
                entry = tarfile.TarInfo(f"{directory}/{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))


def shipped(directory: Path) -> dict[str, bytes]:
    """The files to ship and what is in them."""
    is_run = (directory / "config.yaml").exists()
    paths = {path for pattern in (KEPT if is_run else ["*.json*"]) for path in directory.glob(pattern)}
    files = {str(path.relative_to(directory)): path.read_bytes() for path in paths}
    if is_run:
        environment = json.loads((directory / "environment.json").read_text(encoding="utf-8"))
        environment.pop("command", None)
        files["environment.json"] = json.dumps(environment, indent=2).encode()
        for path in directory.glob("problems/*.jsonl"):
            files[f"problems/{path.name}"] = rewritten(path, without_question)
    return files


def without_question(problem: dict) -> dict:
    return problem | {"question": f"(the question of {problem['id']})", "meta": {}}


def fill(run: Path, data: list[Path]) -> None:
    """Puts questions into a run's problems, from all problem files of the data directories."""
    files = [file for directory in data for file in sorted(directory.glob("*.jsonl"))]
    known = {problem["id"]: problem for file in files for problem in problems(file)}
    for path in run.glob("problems/*.jsonl"):
        path.write_bytes(rewritten(path, lambda problem: known.get(problem["id"], problem)))


def rewritten(path: Path, change) -> bytes:
    return "".join(
        json.dumps(change(problem), ensure_ascii=False) + "\n" for problem in problems(path)
    ).encode()


def problems(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


if __name__ == "__main__":
    main(*sys.argv[1:])

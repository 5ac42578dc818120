r"""Says how much of the test problems is solved, by whether training had a program like the reference.

    python configs/mathqa/templates.py data/mathqa data/quarter0 --found data/quarter0/found.jsonl \
        --arms quarter_mle quarter_fcs

A template is a program without its numbers: lines such as `n0 = 3.0` keep their name only.
"""

import argparse
import json
import re
from pathlib import Path

COUNTS = Path(__file__).parents[2] / "docs/runs/counts.json"
COPIED = re.compile(r"^(n\d+) = \S+$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("mathqa", type=Path, help="folder with train.jsonl and test.jsonl")
    parser.add_argument("few", type=Path, help="folder with labelled.jsonl, made by quarter.py")
    parser.add_argument(
        "--found", type=Path, help="problems with the solutions a run found, made by found.py"
    )
    parser.add_argument("--arms", nargs="*", default=(), help="names in docs/runs/counts.json")
    given = parser.parse_args()
    labelled = templates(given.few / "labelled.jsonl")
    everything = templates(given.mathqa / "train.jsonl")
    reference = templates(given.mathqa / "test.jsonl")
    test = list(reference.values())
    known, anywhere = set(labelled.values()), set(everything.values())
    print(f"test problems with a labelled template: {share(test, known)}, of all: {share(test, anywhere)}")
    if given.found:
        found = templates(given.found)
        print(
            f"test problems with a template of the labelled or found ones: {share(test, set(found.values()))}"
        )
        for name, ids in (("found", set(found) - set(labelled)), ("not found", set(everything) - set(found))):
            hidden = [everything[key] for key in ids]
            print(
                f"{name}: {len(hidden):,} problems, {share(hidden, known)} of them with a labelled template"
            )
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))
    for arm in given.arms:
        one = counts["evaluations"][arm]
        right = {
            key: right / one["samples"]
            for key, right in zip(counts["problems"][one["problems"]], one["right"], strict=True)
        }
        print(f"{arm}: {by_template(reference, right, known, anywhere)}")


def templates(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["id"]: COPIED.sub(r"\1", row["solution"]) for row in rows}


def share(those: list[str], known: set[str]) -> str:
    return f"{100 * sum(one in known for one in those) / len(those):.1f}%"


def by_template(
    reference: dict[str, str], right: dict[str, float], known: set[str], anywhere: set[str]
) -> str:
    said = []
    for name, group in (
        ("labelled template", known),
        ("template of the others", anywhere - known),
        ("new template", set(reference.values()) - anywhere),
    ):
        solved = [right[key] for key, template in reference.items() if template in group]
        said.append(f"{name} {100 * sum(solved) / len(solved):.1f}% of {len(solved):,}")
    return ", ".join(said)


if __name__ == "__main__":
    main()

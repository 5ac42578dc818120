"""SmolLM2-135M on GeoQuery: the arms of a seed, steps chosen on dev, test drawn once.

    partway data sql --source DIR --out data/geoquery                                   # unseen queries
    python configs/geoquery/smollm2.py 0
    partway data sql --source DIR --split question --out data/geoquery-question         # unseen questions
    python configs/geoquery/smollm2.py 0 data/geoquery-question

Two hours of one core that computes in bfloat16; one that has no instructions for it is several times faster
with --float32. What is done is not done again, so the same command goes on after an interruption. Runs go to
runs/, what was drawn to evaluations/.
"""

import argparse
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ON_DEV = "--temperatures 0.2 --k 1 --max-completion-length 120"
ON_TEST = "--samples 20 --k 1,5,10,20 --max-completion-length 120"
OF_ALL = "--learning_rate 1e-4 --tokens_per_pass 1024"  # arms that go on from M
OWN_SAMPLES = f"--objective mle_aug --num_generations 4 --spurious drop --dedup spelling {OF_ALL}"
PARTS = {  # share of the references, steps of MLE, after how many steps dev is asked
    "tenth": (0.1, 48, 16),
    "quarter": (0.25, 64, 16),
    "all": (1.0, 96, 32),
}


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("data", nargs="?", default="data/geoquery", help="by partway data sql")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="shares of references")
    parser.add_argument("--float32", action="store_true", help="compute in float32")
    given = parser.parse_args(words)
    study = Study(given.data, given.float32)
    for name in given.parts:
        study.part(name, given.seed)


@dataclass(frozen=True)
class Study:
    """The arms on the problems of a folder."""

    data: str
    float32: bool

    def part(self, name: str, seed: int) -> None:
        """All arms with a share of the references."""
        share, steps, every = PARTS[name]
        few = f"--reference_share {share}" if share < 1 else ""
        own = f"{OWN_SAMPLES} {few and f'{few} --solved_share 0.5 --sample_budget success'}"
        run = f"{Path(self.data).name.replace('geoquery', 'geo_smol').replace('-', '_')}_{name}"
        length = f"--max_steps {steps} --save_steps {every} --seed {seed}"
        learned = self.trained(f"{run}_mle_s{seed}", f"{length} {few and f'{few} --solved_share 1'}")
        length = f"--max_steps 64 --save_steps 32 --seed {seed} --model_name_or_path {learned}"
        again = f"{OF_ALL} {few and f'{few} --solved_share 1'}"
        self.trained(f"{run}_more_s{seed}", f"{length} {again}")  # MLE for as many steps again
        for arm in ("fcs", "fcs+pcs"):
            settings = f"{length} {own} --self_sampling {arm}"
            self.trained(f"{run}_{arm.replace('+', '_')}_s{seed}", settings)

    def trained(self, name: str, settings: str) -> Path:
        """The checkpoint of an arm that is best on dev, the earliest of equals; it has been drawn on test."""
        run = Path("runs") / name
        files = f"--train_file {self.data}/train.jsonl --eval_file {self.data}/dev.jsonl"
        bf16 = "--bf16 false" if self.float32 else ""
        train = f"partway train configs/geoquery/smollm2.yaml --output_dir {run} {files} {settings} {bf16}"
        carry_out(f"{train} --resume auto", leaves=run / "final")
        checkpoints = sorted(run.glob("checkpoint-*"), key=step_of)
        best = max(
            checkpoints, key=lambda one: (self.right_on_dev(one, f"{name}-{step_of(one)}"), -step_of(one))
        )
        evaluate = (
            f"partway evaluate {best} --out evaluations/{name} --name test {self.drawn('test')} {ON_TEST}"
        )
        carry_out(evaluate, leaves=Path("evaluations") / name / "test.json")
        return best

    def right_on_dev(self, model: Path, name: str) -> float:
        result = Path("evaluations") / "dev" / f"{name}-T0.2.json"
        samples = 4 if self.data.endswith("question") else 2  # 48 problems, or 151
        drawn = f"{self.drawn('dev')} --samples {samples} {ON_DEV}"
        carry_out(f"partway evaluate {model} --out {result.parent} --name {name} {drawn}", leaves=result)
        return json.loads(result.read_text(encoding="utf-8"))["metrics"]["pass@1"]["value"]

    def drawn(self, split: str) -> str:
        return f"--problems {self.data}/{split}.jsonl {'' if self.float32 else '--dtype bfloat16'}"


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.partition("-")[2])


def carry_out(command: str, leaves: Path) -> None:
    if not leaves.exists():
        print(command, flush=True)
        subprocess.run([sys.executable, "-m", *shlex.split(command)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])

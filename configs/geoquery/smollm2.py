"""SmolLM2-135M on GeoQuery: the arms of a seed, steps chosen on dev, test drawn once.

    partway data sql --source DIR --out data/geoquery                                   # unseen queries
    python configs/geoquery/smollm2.py 0
    partway data sql --source DIR --split question --out data/geoquery-question         # unseen questions
    python configs/geoquery/smollm2.py 0 data/geoquery-question

Two hours of one core that computes in bfloat16. What is done is not done again, so the same command
goes on after an interruption. Runs go to runs/, what was drawn to evaluations/.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

DRAWN = "--max-completion-length 120 --dtype bfloat16"
ON_DEV = f"--temperatures 0.2 --k 1 {DRAWN}"
ON_TEST = f"--samples 20 --k 1,5,10,20 {DRAWN}"
OF_ALL = "--learning_rate 1e-4 --tokens_per_pass 1024"  # arms that go on from M
OWN_SAMPLES = f"--objective mle_aug --num_generations 4 --spurious drop --dedup spelling {OF_ALL}"
PARTS = {  # share of the references, steps of MLE, after how many steps dev is asked
    "tenth": (0.1, 48, 16),
    "quarter": (0.25, 64, 16),
    "all": (1.0, 96, 32),
}


def main(seed: str, data: str = "data/geoquery") -> None:
    for name, (share, steps, every) in PARTS.items():
        few = f"--reference_share {share}" if share < 1 else ""
        own = f"{OWN_SAMPLES} {few and f'{few} --solved_share 0.5 --sample_budget success'}"
        run = f"{Path(data).name.replace('geoquery', 'geo_smol').replace('-', '_')}_{name}"
        length = f"--max_steps {steps} --save_steps {every} --seed {seed}"
        learned = trained(f"{run}_mle_s{seed}", data, f"{length} {few and f'{few} --solved_share 1'}")
        length = f"--max_steps 64 --save_steps 32 --seed {seed} --model_name_or_path {learned}"
        again = f"{OF_ALL} {few and f'{few} --solved_share 1'}"
        trained(f"{run}_more_s{seed}", data, f"{length} {again}")  # MLE for as many steps again
        for arm in ("fcs", "fcs+pcs"):
            settings = f"{length} {own} --self_sampling {arm}"
            trained(f"{run}_{arm.replace('+', '_')}_s{seed}", data, settings)


def trained(name: str, data: str, settings: str) -> Path:
    """The checkpoint of an arm that is best on dev, the earliest of equals; it has been drawn on test."""
    run = Path("runs") / name
    files = f"--train_file {data}/train.jsonl --eval_file {data}/dev.jsonl"
    train = f"partway train configs/geoquery/smollm2.yaml --output_dir {run} {files} {settings} --resume auto"
    carry_out(train, leaves=run / "final")
    checkpoints = sorted(run.glob("checkpoint-*"), key=step_of)
    best = max(
        checkpoints, key=lambda one: (right_on_dev(one, f"{name}-{step_of(one)}", data), -step_of(one))
    )
    drawn = f"--problems {data}/test.jsonl {ON_TEST}"
    evaluate = f"partway evaluate {best} --out evaluations/{name} --name test {drawn}"
    carry_out(evaluate, leaves=Path("evaluations") / name / "test.json")
    return best


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.partition("-")[2])


def right_on_dev(model: Path, name: str, data: str) -> float:
    result = Path("evaluations") / "dev" / f"{name}-T0.2.json"
    samples = 4 if data.endswith("question") else 2  # 48 problems, or 151
    drawn = f"--problems {data}/dev.jsonl --samples {samples} {ON_DEV}"
    carry_out(f"partway evaluate {model} --out {result.parent} --name {name} {drawn}", leaves=result)
    return json.loads(result.read_text(encoding="utf-8"))["metrics"]["pass@1"]["value"]


def carry_out(command: str, leaves: Path) -> None:
    if not leaves.exists():
        print(command, flush=True)
        subprocess.run([sys.executable, "-m", *shlex.split(command)], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

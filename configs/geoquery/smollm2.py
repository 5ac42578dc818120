"""SmolLM2-135M on unseen queries of GeoQuery: the arms of a seed, steps chosen on dev, test drawn once.

    partway data sql --source DIR --out data/geoquery
    python configs/geoquery/smollm2.py 0

An hour and a half of one core that computes in bfloat16. What is done is not done again, so the same command
goes on after an interruption. Runs go to runs/, what was drawn to evaluations/.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path

DRAWN = "--max-completion-length 120 --dtype bfloat16"
ON_DEV = f"--problems data/geoquery/dev.jsonl --samples 2 --temperatures 0.2 --k 1 {DRAWN}"
ON_TEST = f"--problems data/geoquery/test.jsonl --samples 20 --k 1,5,10,20 {DRAWN}"
OWN_SAMPLES = (
    "--objective mle_aug --num_generations 4 --spurious drop --dedup spelling --learning_rate 1e-4 "
    "--tokens_per_pass 1024"
)
PARTS = {  # share of the references, steps of MLE, after how many steps dev is asked
    "quarter": (0.25, 64, 16),
    "tenth": (0.1, 48, 16),
    "all": (1.0, 96, 32),
}


def main(seed: str) -> None:
    for name, (share, steps, every) in PARTS.items():
        few = f"--reference_share {share}" if share < 1 else ""
        own = f"{OWN_SAMPLES} {few and f'{few} --solved_share 0.5 --sample_budget success'}"
        run = f"geo_smol_{name}"
        learned = trained(f"{run}_mle_s{seed}", steps, every, seed, f"{few and f'{few} --solved_share 1'}")
        for arm in ("fcs", "fcs+pcs"):
            own_arm = f"{own} --self_sampling {arm} --model_name_or_path {learned}"
            trained(f"{run}_{arm.replace('+', '_')}_s{seed}", 64, 32, seed, own_arm)


def trained(name: str, steps: int, every: int, seed: str, settings: str) -> Path:
    """The checkpoint of an arm that is best on dev, the earliest of equals; it has been drawn on test."""
    run = Path("runs") / name
    length = f"--max_steps {steps} --save_steps {every} --seed {seed}"
    train = (
        f"partway train configs/geoquery/smollm2.yaml --output_dir {run} {length} {settings} --resume auto"
    )
    carry_out(train, leaves=run / "final")
    checkpoints = {step: run / f"checkpoint-{step}" for step in range(every, steps + 1, every)}
    best = max(checkpoints, key=lambda step: (right_on_dev(checkpoints[step], f"{name}-{step}"), -step))
    evaluate = f"partway evaluate {checkpoints[best]} --out evaluations/{name} --name test {ON_TEST}"
    carry_out(evaluate, leaves=Path("evaluations") / name / "test.json")
    return checkpoints[best]


def right_on_dev(model: Path, name: str) -> float:
    result = Path("evaluations") / "dev" / f"{name}-T0.2.json"
    carry_out(f"partway evaluate {model} --out {result.parent} --name {name} {ON_DEV}", leaves=result)
    return json.loads(result.read_text(encoding="utf-8"))["metrics"]["pass@1"]["value"]


def carry_out(command: str, leaves: Path) -> None:
    if not leaves.exists():
        print(command, flush=True)
        subprocess.run([sys.executable, "-m", *shlex.split(command)], check=True)


if __name__ == "__main__":
    main(sys.argv[1])

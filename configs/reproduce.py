"""Remakes the tables on real data, each in one command: `python configs/reproduce.py gsm8k SOURCE`.

SOURCE holds the data set as its authors publish it (for `filtered` also its row numbers as
filtered_split.json, see docs/first_run.md). Every arm is trained and measured with every seed, two at a time
with one thread each, and one report pools the seeds; data/, runs/ and the report are written where the
command is given, which is to be the directory above configs/. What is done is not done again, so the same
command goes on after an interruption.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MLE = "--self_sampling none --objective mle"
MATHQA = {
    "data/mathqa/test.jsonl": "partway data mathqa --source {source} --out data/mathqa",
    "data/mathqa/untrained": "python configs/mathqa/prepare.py data/mathqa",
}
FULL = "partway train configs/mathqa/full.yaml"
OTHER = {
    "data/mathqa/test.jsonl": MATHQA["data/mathqa/test.jsonl"],
    "data/mathqa/test_other.jsonl": "python configs/mathqa/unseen.py data/mathqa train",
    "runs/full_mle/final": f"{FULL} --output_dir runs/full_mle {MLE} --seed 0 --resume auto",
}
OF_80_SAMPLES = "--samples 80 --k 1,5,10,20,50,80 --max-completion-length 200"
ON_500_PROBLEMS = f"--problems data/mathqa/test.jsonl --limit 500 {OF_80_SAMPLES}"
FEW = "partway train configs/gsm8k/few.yaml"
FROM_FEW = "--model_name_or_path runs/few_m/checkpoint-45"  # the best of its checkpoints on dev
NOTHING_LEARNED = "--max_steps 1 --warmup_steps 0 --learning_rate 1e-12"
OWN_SAMPLES = (
    "--self_sampling fcs --objective mle_aug --spurious drop --dedup spelling --tokens_per_pass 1024"
)
ON_OTHER_PROBLEMS = f"--problems data/mathqa/test_other.jsonl {OF_80_SAMPLES}"


@dataclass(frozen=True)
class Study:
    """Arms that begin alike and differ in the settings named here, and how they are measured."""

    first: dict[str, str]  # what is done once, by the path that it leaves
    train: str
    arms: dict[str, str]
    evaluate: str
    trunk: str | None = None  # the arm from which the others branch when they begin to sample

    def runs(self, seed: int) -> dict[str, str]:
        """The settings of every arm with a seed, by its run."""
        suffix = f"_s{seed}" if seed else ""
        trunk = f" --branch runs/{self.trunk}{suffix}" if self.trunk else ""
        return {
            f"runs/{arm}{suffix}": f"{settings}{trunk if arm != self.trunk else ''} --seed {seed}"
            for arm, settings in self.arms.items()
        }

    def trial(self, run: str, settings: str) -> dict[str, str]:
        """An arm's training and its evaluation, by the paths that they leave."""
        return {
            f"{run}/final": f"{self.train} --output_dir {run} {settings} --resume auto",
            f"{run}/evaluations/test.json": f"partway evaluate {run} --name test {self.evaluate}",
        }

    def jobs(self, seeds: int) -> list[dict[str, str]]:
        """What can be done side by side: every arm with every seed or, where arms branch, every seed."""
        trials = [
            [self.trial(run, settings) for run, settings in self.runs(seed).items()] for seed in range(seeds)
        ]
        if self.trunk:  # in the order of the arms: the trunk comes first
            return [
                {left: command for trial in of_seed for left, command in trial.items()} for of_seed in trials
            ]
        return [trial for of_seed in trials for trial in of_seed]


def geoquery(split: str, name: str) -> Study:
    """The arms on GeoQuery, split by questions or by the queries that answer them."""
    data = f"data/geoquery-{split}"
    arms = {
        "untrained": f"{MLE} {NOTHING_LEARNED} --eval_strategy no",
        "mle": MLE,
        "fcs": "--self_sampling fcs",
        "fcs_pcs": "",
        "quarter_mle": f"--reference_share 0.25 --solved_share 1 {MLE}",
        "quarter_fcs": "--reference_share 0.25 --solved_share 0.5 --self_sampling fcs",
        "quarter_fcs_pcs": "--reference_share 0.25 --solved_share 0.5",
        "tenth_mle": f"--reference_share 0.1 --solved_share 1 {MLE}",
        "tenth_fcs": "--reference_share 0.1 --solved_share 0.5 --self_sampling fcs",
        "tenth_fcs_pcs": "--reference_share 0.1 --solved_share 0.5",
    }
    return Study(
        first={f"{data}/test.jsonl": f"partway data sql --source {{source}} --split {split} --out {data}"},
        train="partway train configs/geoquery/tiny.yaml "
        f"--train_file {data}/train.jsonl --eval_file {data}/dev.jsonl",
        arms={f"{name}_{arm}": settings for arm, settings in arms.items()},
        evaluate=f"--problems {data}/test.jsonl --samples 20 --k 1,5,10,20 --max-completion-length 72",
    )


STUDIES = {
    "gsm8k": Study(
        first={
            "data/gsm8k/test.jsonl": "partway data gsm8k --source {source} --out data/gsm8k",
            "data/gsm8k/test_short.jsonl": "python configs/gsm8k/prepare.py data/gsm8k",
        },
        train="partway train configs/gsm8k/short.yaml",
        arms={"short_mle": MLE, "short_fcs": "--self_sampling fcs", "short_fcs_pcs": ""},
        evaluate="--problems data/gsm8k/test_short.jsonl --samples 50 --k 1,5,10,20,50 "
        "--max-completion-length 80",
    ),
    "gsm8k-few": Study(
        first={
            "data/gsm8k/test.jsonl": "partway data gsm8k --source {source} --out data/gsm8k",
            "data/gsm8k/few_unsolved.jsonl": "python configs/gsm8k/prepare.py data/gsm8k",
            "runs/few_m/final": f"{FEW} --output_dir runs/few_m --save_total_limit 5 --resume auto",
            "runs/few_samples/final": f"{FEW} --output_dir runs/few_samples {FROM_FEW} {OWN_SAMPLES} "
            "--train_file data/gsm8k/few_unsolved.jsonl --num_generations 8 --length_limit 12 "
            f"{NOTHING_LEARNED} --max_steps 103 --resume auto",
            "data/gsm8k/few_solutions.jsonl": "partway buffer export runs/few_samples "
            "data/gsm8k/few_solutions.jsonl --kind fully-correct",
            "data/gsm8k/few_found.jsonl": "python configs/mathqa/found.py data/gsm8k/few.jsonl "
            "data/gsm8k/few_solutions.jsonl --out data/gsm8k/few_found.jsonl",
        },
        train=FEW,
        arms={
            "few_untrained": NOTHING_LEARNED,
            "few_mle": f"{FROM_FEW} {NOTHING_LEARNED}",
            "few_fcs": f"{FROM_FEW} {OWN_SAMPLES} --train_file data/gsm8k/few.jsonl --num_generations 4 "
            "--solved_share 0.5 --sample_budget success --learning_rate 1e-4 --max_steps 218 --save_steps 54",
            # MLE for as many steps as FCS: what of the gain is the steps'.
            "few_more": f"{FROM_FEW} --learning_rate 1e-4 --max_steps 218 --save_steps 54",
            "few_rft": "--train_file data/gsm8k/few_found.jsonl --max_steps 109 --save_steps 36",
            "few_all": "--train_file data/gsm8k/short.jsonl --max_steps 218 --save_steps 109",
        },
        evaluate="--problems data/gsm8k/test_short.jsonl --samples 20 --k 1,5,10,20 "
        "--max-completion-length 80 --dtype bfloat16",
    ),
    "geoquery": geoquery("question", "geo"),
    "geoquery-query": geoquery("query", "geo_query"),  # templates of test that training never had
    "filtered": Study(
        first={
            "data/mathqa-filtered/dev.jsonl": "partway data mathqa --source {source} "
            "--out data/mathqa-filtered --filtered --split-index {source}/filtered_split.json",
            "data/mathqa-filtered/dev_short.jsonl": "python configs/filtered/prepare.py data/mathqa-filtered",
        },
        train="partway train configs/filtered/short.yaml",
        arms={"filtered_mle": MLE, "filtered_fcs": "--self_sampling fcs", "filtered_fcs_pcs": ""},
        # The filtered version has no test problems of its own: the paper measures on its dev.
        evaluate="--problems data/mathqa-filtered/dev_short.jsonl --samples 50 --k 1,5,10,20,50 "
        "--max-completion-length 100",
    ),
    "mathqa": Study(
        first={
            **MATHQA,
            "runs/mathqa_base/final": "partway train configs/mathqa/base.yaml --max_steps 1000 --resume auto",
        },
        train="partway train configs/mathqa/arm.yaml --eval_strategy no",
        arms={
            "mathqa_mle": MLE,
            "mathqa_fcs": "--self_sampling fcs",
            "mathqa_fcs_pcs": "",
            "mathqa_drop": "--dead_ends drop",
            "mathqa_alpha_4": "--dead_ends drop --dedup alpha --num_generations 4 --temperature 1.0",
        },
        evaluate=ON_500_PROBLEMS,
    ),
    "mathqa-full": Study(
        first={"data/mathqa/test.jsonl": MATHQA["data/mathqa/test.jsonl"]},
        train=FULL,
        arms={"full_mle": MLE, "full_fcs": "--self_sampling fcs", "full_fcs_pcs": ""},
        evaluate=ON_500_PROBLEMS,
        trunk="full_mle",
    ),
    "mathqa-other": Study(
        first=OTHER,
        train="partway train configs/mathqa/other.yaml",
        arms={"other_mle": MLE, "other_fcs": "--self_sampling fcs", "other_fcs_pcs": ""},
        evaluate=ON_OTHER_PROBLEMS,
    ),
    "mathqa-again": Study(
        first=OTHER,
        train="partway train configs/mathqa/again.yaml",
        arms={
            "again_mle": MLE,
            "again_fcs_pcs": "",
            "again_fcs": "--self_sampling fcs",
            "again_set": "--state set",
            "again_guide": "--partial_solutions guide",
            "again_targets": "--partial_solutions targets",
            "again_1_sample": "--num_generations 1",
            "again_8_samples": "--num_generations 8",
            "again_cool": "--temperature 0.4",
            "again_hot": "--temperature 1.2",
            "again_mml": "--objective mml",
            "again_beta_mml": "--objective beta_mml",
            "again_spurious": "--spurious drop",
        },
        evaluate=ON_OTHER_PROBLEMS,
    ),
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("source", help="where the data set is")
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="seeds of every arm (2)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="arms at a time (2)")
    given = parser.parse_args(arguments)
    study = STUDIES[given.study]
    work_through(study.first.items(), given.source)
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(lambda job: work_through(job.items()), study.jobs(given.seeds)))
    runs = [run for seed in range(given.seeds) for run in study.runs(seed)]
    carry_out(f"partway report {' '.join(runs)} --out report-{given.study}")


def work_through(steps: Iterable[tuple[str, str]], source: str = "") -> None:
    for left, command in steps:
        if not Path(left).exists():
            carry_out(command.format(source=shlex.quote(source)))


def carry_out(command: str) -> None:
    print(command, flush=True)
    program, *arguments = shlex.split(command)
    own = [sys.executable] if program == "python" else [sys.executable, "-m", program]
    if subprocess.run([*own, *arguments], env=os.environ | {"OMP_NUM_THREADS": "1"}).returncode:
        sys.exit(f"this failed: {command}")


if __name__ == "__main__":
    main(sys.argv[1:])

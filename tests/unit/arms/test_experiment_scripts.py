"""The scripts beside the configurations of experiments part problems as they say."""

import json
import re
import runpy
from dataclasses import asdict
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from partway.arms.arms import load_arms
from partway.arms.experiment import read_experiment
from partway.cli import train
from partway.cli.config_files import file_of, parse_overrides, read_settings
from partway.data import commands as data
from partway.measuring import commands as evaluate
from partway.problem import Problem
from partway.problems import load_problems, write_problems
from partway.training import SelfSamplingConfig
from partway.training.config import config_of
from runreports.buffer_command import command as buffer
from runreports.commands import report

CONFIGS = Path(__file__).parents[3] / "configs"
NAMED_STUDY = r"(?:configs/reproduce\.py\s+|make reproduce-)([a-z0-9-]+)"
STUDIES = runpy.run_path(str(CONFIGS / "reproduce.py"))["STUDIES"]


def write(path: Path, *questions: str) -> None:
    write_problems(
        path, [Problem(f"{path.stem}/{n}", text, 1, "answer = 1") for n, text in enumerate(questions)]
    )


def main_of(script: str):
    return runpy.run_path(str(CONFIGS / script))["main"]


def test_unseen_problems_are_more_than_two_words_from_all_that_is_learned(tmp_path):
    write(tmp_path / "first.jsonl", "a car covers 12 km in 3 h ; how fast is it ?", "what is 5 % of 80 ?")
    write(tmp_path / "rest.jsonl", "a pipe fills a tank in 4 h ; how long do 2 take ?")
    write(
        tmp_path / "dev.jsonl",
        "a car covers 700 km in 9.5 h ; how fast is it ?",  # other numbers
        "a train covers 12 km in 3 h ; how fast was it ?",  # two words
        "a train covers 12 km in 3 h ; how slow was it ?",  # three
    )
    write(tmp_path / "test.jsonl", "the pipe fills a large tank in 4 h ; how long do 2 take ?", "who is it ?")
    main_of("mathqa/unseen.py")(tmp_path)
    assert [p.id for p in load_problems(tmp_path / "dev_unseen.jsonl")] == ["dev/2"]
    assert [p.id for p in load_problems(tmp_path / "test_unseen.jsonl")] == ["test/1"]


def test_problems_for_a_model_that_has_read_train_are_unlike_those_and_each_other(tmp_path):
    write(tmp_path / "train.jsonl", "a car covers 12 km in 3 h ; how fast is it ?")
    write(tmp_path / "dev.jsonl", "a car covers 7 km in 9 h ; how fast is it ?", "what is 5 % of 80 ?")
    write(
        tmp_path / "test.jsonl", "a car covers 2 km in 1 h ; how fast is it ?", "what is 6 % of 9 ?", "who ?"
    )
    main_of("mathqa/unseen.py")(tmp_path, "train")
    assert [p.id for p in load_problems(tmp_path / "dev_other.jsonl")] == ["dev/1"]
    assert [p.id for p in load_problems(tmp_path / "test_other.jsonl")] == ["test/2"]


def test_few_of_the_other_problems_are_learned_and_the_rest_are_watched(tmp_path):
    write(tmp_path / "train.jsonl", "what is 5 % of 80 ?")
    write(tmp_path / "dev.jsonl", *(f"problem {'again ' * n}?" for n in range(5, 305)))
    write(tmp_path / "test.jsonl", "what is 5 % of 80 ?")
    main_of("mathqa/unseen.py")(tmp_path, "train")
    few, rest = (load_problems(tmp_path / f"{name}_other.jsonl") for name in ("few", "rest"))
    assert [p.id for p in [*few, *rest]] == [f"dev/{n}" for n in range(300)]
    assert len(few) == 256, "eight steps of 32 are an epoch of configs/mathqa/again.yaml"


@pytest.mark.models
def test_mathqa_is_parted_into_what_is_read_first_and_what_the_arms_learn(tmp_path):
    write(tmp_path / "train.jsonl", *(f"what is {n} % of {n + 7} ?" for n in range(3_010)))
    main_of("mathqa/prepare.py")(tmp_path)
    first, rest = (load_problems(tmp_path / f"{name}.jsonl") for name in ("first", "rest"))
    assert (len(first), len(rest)) == (10, 2_000)
    assert not {p.id for p in first} & {p.id for p in rest}
    assert (tmp_path / "untrained" / "config.json").exists()


def test_gsm8k_problems_of_two_steps_are_parted_from_the_others(tmp_path):
    two, three = "n0 = 3\nt0 = n0 * 2\nanswer = t0 + 1", "n0 = 3\nt0 = n0 * 2\nt1 = t0 - 1\nanswer = t1 + 2"
    for split, size in [("train", 720), ("dev", 4), ("test", 6)]:
        programs = ([two, three, None] * size)[:size]
        problems = [Problem(f"{split}/{n}", "how many?", 7, program) for n, program in enumerate(programs)]
        write_problems(tmp_path / f"{split}.jsonl", problems)
    main_of("gsm8k/prepare.py")(tmp_path)
    learned, short, dev, test = (
        load_problems(tmp_path / f"{name}.jsonl")
        for name in ("train200", "short100", "dev_short", "test_short")
    )
    assert (len(learned), len(short), len(dev), len(test)) == (200, 100, 2, 2)
    assert {str(p.reference) for p in short + dev + test} == {two}
    assert {str(p.reference) for p in learned} == {two, three}


def test_filtered_problems_of_at_most_two_steps_are_parted_from_the_others(tmp_path):
    one, two = "n0 = 3.0\nanswer = n0 + 4.0", "n0 = 3.0\nt0 = n0 * 2.0\nanswer = t0 + 1.0"
    three = f"import math\n{two}"
    for split, size in [("train", 300), ("dev", 7)]:
        programs = ([one, two, three] * size)[:size]
        problems = [Problem(f"{split}/{n}", "how many ?", 7, program) for n, program in enumerate(programs)]
        write_problems(tmp_path / f"{split}.jsonl", problems)
    main_of("filtered/prepare.py")(tmp_path)
    learned, dev = (load_problems(tmp_path / f"{name}.jsonl") for name in ("short100", "dev_short"))
    assert {str(p.reference) for p in learned} == {one, two}
    assert (len(learned), [p.id for p in dev]) == (100, ["dev/0", "dev/1", "dev/3", "dev/4", "dev/6"])


def test_the_arms_beside_the_examples_can_be_compared():
    files = sorted((CONFIGS.parent / "examples" / "arms").glob("*.yaml"))
    labels = [arm.label for arm in load_arms([str(file) for file in files])]
    assert "FCS+PCS, states as sets" in labels
    assert len(set(labels)) == len(files)


def test_comparisons_beside_the_configs_can_be_read():
    files = [path for path in CONFIGS.rglob("*.yaml") if "\narms:" in path.read_text(encoding="utf-8")]
    found = {path.name: read_experiment(path, {}) for path in files}
    assert len(found) >= 2
    fifty = found["fifty.yaml"]
    assert fifty.samples == 64 * 10 * 4
    assert [arm.of for arm in fifty.arms if arm.name == "rft-of-mle"] == ["mle"]


@pytest.fixture
def reproduce(tmp_path, monkeypatch):
    """The script that remakes the tables on real data, with a stand-in for what it calls; and all calls."""
    monkeypatch.chdir(tmp_path)
    calls: list[list[str]] = []

    def carried_out(command: list[str], env: dict[str, str]) -> CompletedProcess[str]:
        assert env["OMP_NUM_THREADS"] == "1"
        calls.append(
            arguments := command[command.index("partway") + 1 :] if "partway" in command else command[1:]
        )
        for left in leaves(arguments):
            left.mkdir(parents=True)
        return CompletedProcess(command, returncode=int("fails" in arguments))

    monkeypatch.setattr("subprocess.run", carried_out)
    return main_of("reproduce.py"), calls


def leaves(arguments: list[str]) -> list[Path]:
    """What a command leaves behind."""
    match arguments:
        case ["data", *_, "--out", directory] | ["data", *_, "--out", directory, "--filtered", _, _]:
            return [Path(directory) / "dev.jsonl", Path(directory) / "test.jsonl"]
        case ["configs/gsm8k/prepare.py", _]:
            return [Path(f"data/gsm8k/{name}.jsonl") for name in ("test_short", "few_unsolved")]
        case ["configs/filtered/prepare.py", directory]:
            return [Path(directory) / "dev_short.jsonl"]
        case ["configs/mathqa/unseen.py", directory, "train"]:
            return [Path(directory) / "test_other.jsonl"]
        case ["configs/mathqa/prepare.py", _]:
            return [Path("data/mathqa/untrained")]
        case ["train", *_]:
            return [Path(train_settings(arguments).output_dir) / "final"]
        case ["evaluate", run, *_]:
            return [Path(run) / "evaluations" / "test.json"]
        case ["buffer", "export", _, file, *_] | ["configs/mathqa/found.py", *_, "--out", file]:
            return [Path(file)]
    return []


def train_settings(arguments: list[str]) -> SelfSamplingConfig:
    """The settings with which `partway train` would begin."""
    context = train.command.make_context("train", [str(CONFIGS.parent / arguments[1]), *arguments[2:]])
    overrides = parse_overrides(context.params["pairs"])
    config = context.params["config"]
    return config_of(read_settings(config), overrides, file_of(config))


def test_one_command_remakes_a_table_and_goes_on_where_it_stopped(reproduce):
    main, calls = reproduce
    main(["gsm8k", "my data", "--seeds", "2", "--jobs", "1"])
    assert calls[0] == ["data", "gsm8k", "--source", "my data", "--out", "data/gsm8k"]
    arms = [train_settings(call) for call in calls if call[0] == "train"]
    assert [(arm.output_dir, arm.seed, arm.self_sampling, arm.objective) for arm in arms] == [
        (f"runs/short_{name}{suffix}", seed, sampling, objective)
        for seed, suffix in [(0, ""), (1, "_s1")]
        for name, sampling, objective in [
            ("mle", "none", "mle"),
            ("fcs", "fcs", "mle_aug"),
            ("fcs_pcs", "fcs+pcs", "mle_aug"),
        ]
    ]
    assert {(arm.max_steps, arm.num_generations, arm.dedup, arm.dead_ends) for arm in arms} == {
        (160, 4, "alpha", "drop")
    }
    assert [call[1] for call in calls if call[0] == "evaluate"] == [arm.output_dir for arm in arms]
    reported = ["report", *(arm.output_dir for arm in arms), "--out", "report-gsm8k"]
    assert calls[-1] == reported
    calls.clear()
    main(["gsm8k", "my data"])
    assert calls == [reported]


def test_arms_that_share_their_first_steps_branch_from_the_one_that_made_them(reproduce):
    main, calls = reproduce
    main(["mathqa-full", "source", "--jobs", "1"])
    trained = [call for call in calls if call[0] == "train"]
    branches = [call[call.index("--branch") + 1] if "--branch" in call else None for call in trained]
    assert [
        (arm.output_dir, arm.seed, trunk)
        for arm, trunk in zip(map(train_settings, trained), branches, strict=True)
    ] == [
        (f"runs/full_{arm}{suffix}", seed, None if arm == "mle" else f"runs/full_mle{suffix}")
        for seed, suffix in [(0, ""), (1, "_s1")]
        for arm in ("mle", "fcs", "fcs_pcs")
    ]
    arms = {(arm.sampling_start_step, arm.save_steps) for arm in map(train_settings, trained)}
    assert arms == {(2408, 301)}
    assert 2408 % 301 == 0, "or there is no checkpoint to branch from"


def test_an_ablation_differs_from_fcs_pcs_in_what_it_is_named_after(reproduce):
    main, calls = reproduce
    main(["mathqa-again", "source", "--seeds", "1", "--jobs", "1"])
    arms = [asdict(train_settings(call)) for call in calls if call[0] == "train" and "again" in call[1]]
    ours = next(arm for arm in arms if arm["output_dir"] == "runs/again_fcs_pcs")
    changed = {
        Path(arm["output_dir"]).name.removeprefix("again_"): {
            key: value for key, value in arm.items() if value != ours[key] and key != "output_dir"
        }
        for arm in arms
    }
    assert changed == {
        "mle": {"self_sampling": "none", "objective": "mle"},
        "fcs_pcs": {},
        "fcs": {"self_sampling": "fcs"},
        "set": {"language_args": {"state": "set"}},
        "guide": {"partial_solutions": "guide"},
        "targets": {"partial_solutions": "targets"},
        "1_sample": {"num_generations": 1},
        "8_samples": {"num_generations": 8},
        "cool": {"temperature": 0.4},
        "hot": {"temperature": 1.2},
        "mml": {"objective": "mml"},
        "beta_mml": {"objective": "beta_mml"},
        "spurious": {"spurious": "drop"},
    }


def test_a_command_that_fails_ends_it_in_one_line(reproduce):
    main, calls = reproduce
    with pytest.raises(SystemExit, match="this failed: partway data gsm8k --source fails"):
        main(["gsm8k", "fails"])
    assert len(calls) == 1


def test_geoquery_is_learned_and_measured_on_the_split_that_is_named(reproduce):
    main, calls = reproduce
    for study, split, name in (("geoquery", "question", "geo"), ("geoquery-query", "query", "geo_query")):
        main([study, "source", "--seeds", "1", "--jobs", "1"])
        folder = f"data/geoquery-{split}"
        assert calls[0] == ["data", "sql", "--source", "source", "--split", split, "--out", folder]
        arms = [train_settings(call) for call in calls if call[0] == "train"]
        assert {Path(arm.train_file).parent.name for arm in arms} == {f"geoquery-{split}"}
        assert {Path(arm.eval_file).parent.name for arm in arms} == {f"geoquery-{split}"}
        assert f"runs/{name}_tenth_fcs_pcs" in {arm.output_dir for arm in arms}
        asked = [call for call in calls if call[0] == "evaluate"]
        assert {call[call.index("--problems") + 1] for call in asked} == {f"{folder}/test.jsonl"}
        assert len(arms) == len(asked) == 10
        calls.clear()


@pytest.mark.parametrize("folder", ["geoquery", "geoquery-question"])
def test_arms_on_geoquery_begin_from_the_step_of_mle_that_dev_chose(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("subprocess.run", calls := Drawn(better="-32-T0.2"))
    main_of("geoquery/smollm2.py")(["1", f"data/{folder}"])
    about = folder.replace("geoquery", "geo_smol").replace("-", "_")
    arms = {Path(arm.output_dir).name: arm for arm in map(train_settings, calls.of("train"))}
    assert [(arm.seed, arm.reference_share, arm.self_sampling) for arm in arms.values()] == [
        (1, share, sampling) for share in (0.1, 0.25, 1.0) for sampling in ("none", "none", "fcs", "fcs+pcs")
    ]
    for arm in (arms[f"{about}_tenth_more_s1"], arms[f"{about}_tenth_fcs_s1"]):
        assert arm.model_name_or_path == f"runs/{about}_tenth_mle_s1/checkpoint-32"
        assert (arm.max_steps, arm.learning_rate, arm.tokens_per_pass) == (64, 1e-4, 1024)
    assert {Path(arm.train_file).parent.name for arm in arms.values()} == {folder}
    for words in calls.of("evaluate"):
        evaluate.command.make_context("evaluate", words[1:])
    tests = [words for words in calls.of("evaluate") if f"data/{folder}/test.jsonl" in words]
    assert [words[1] for words in tests] == [f"runs/{name}/checkpoint-32" for name in arms]
    assert {words[words.index("--dtype") + 1] for words in calls.of("evaluate")} == {"bfloat16"}


def test_arms_on_geoquery_compute_in_float32_where_bfloat16_is_slow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("subprocess.run", calls := Drawn(better="-32-T0.2"))
    main_of("geoquery/smollm2.py")(["0", "--parts", "quarter", "--float32"])
    assert [train_settings(words).bf16 for words in calls.of("train")] == [False] * 4
    assert not any("--dtype" in words for words in calls.of("evaluate"))


class Drawn:
    """Commands not carried out: trainings leave checkpoints, evaluations a result, best as `better` says."""

    def __init__(self, better: str) -> None:
        self.better, self.calls = better, list[list[str]]()

    def __call__(self, command: list[str], check: bool) -> None:
        self.calls.append(words := command[command.index("partway") + 1 :])
        if words[0] == "train":
            arm = train_settings(words)
            for step in range(int(arm.save_steps), arm.max_steps + 1, int(arm.save_steps)):
                (Path(arm.output_dir) / f"checkpoint-{step}").mkdir(parents=True)
        if "--name" in words:
            out, name = (Path(words[words.index(key) + 1]) for key in ("--out", "--name"))
            stem = f"{name}-T0.2" if "--temperatures" in words else str(name)
            out.mkdir(parents=True, exist_ok=True)
            result = {"metrics": {"pass@1": {"value": 0.5 if self.better in stem else 0.25}}}
            (out / f"{stem}.json").write_text(json.dumps(result), encoding="utf-8")

    def of(self, name: str) -> list[list[str]]:
        return [words for words in self.calls if words[0] == name]


def test_the_docs_name_every_study_and_no_other():
    project = CONFIGS.parent
    pages = [project / "README.md", *(project / "docs").glob("*.md"), *CONFIGS.glob("*/*.yaml")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {name for text in texts for name in re.findall(NAMED_STUDY, text)}
    assert named == set(STUDIES)


@pytest.mark.parametrize("study", STUDIES)
def test_every_command_of_a_study_can_be_given(reproduce, study):
    main, calls = reproduce
    main([study, "source", "--seeds", "1"])
    commands = {"data": data.command, "evaluate": evaluate.command, "report": report, "buffer": buffer}
    for name, *arguments in calls:
        if name in commands:
            commands[name].make_context(name, arguments)
        elif name != "train":  # those were read when they were given
            assert (CONFIGS.parent / name).exists()
    assert len(calls) == len(set(map(tuple, calls))) > 7


def test_svamp_problems_are_drawn_and_asked_in_whole_sentences(tmp_path):
    rows = [
        {
            "ID": str(n),
            "Body": body,
            "Question": "How many are left?",
            "Equation": "( 6.0 - 2.0 )",
            "Answer": 4.0,
        }
        for n, body in enumerate(["He had 6. He ate 2.", "If he ate 2 of 6 "] * 75)
    ]
    (tmp_path / "SVAMP.json").write_text(json.dumps(rows), encoding="utf-8")
    main_of("gsm8k/svamp.py")(str(tmp_path / "SVAMP.json"), str(tmp_path / "new" / "test.jsonl"))
    problems = load_problems(tmp_path / "new" / "test.jsonl")
    assert {(p.question, p.answer) for p in problems} == {
        ("He had 6. He ate 2. How many are left?", 4),
        ("If he ate 2 of 6, how many are left?", 4),
    }
    assert len({p.id for p in problems}) == 150

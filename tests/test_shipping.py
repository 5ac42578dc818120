"""What is shipped beside the package: the image, the scripts for clusters, the pinned versions."""

import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CLUSTER = ROOT / "examples" / "cluster"
INSTRUCTIONS = {"ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as instructions and what follows them, lines joined and comments left out."""
    text = re.sub(r"(?m)^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8")).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def stages() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for word, rest in instructions():
        if word == "FROM":
            name = rest.split(" AS ")[1]
        found.setdefault(name, []).append((word, rest))
    return found


def test_the_image_has_a_stage_for_cpus_and_one_for_cuda_that_end_as_a_user_with_partway():
    assert {word for word, _ in instructions()} <= INSTRUCTIONS
    assert list(stages()) == ["", "base", "cpu", "cuda"]
    for name in ("cpu", "cuda"):
        words = dict(stages()[name])
        assert words["FROM"] == f"base AS {name}"
        assert words["USER"] == "1000", "not root, in a form that Kubernetes can check"
        assert words["ENTRYPOINT"] == '["partway"]'
        assert "--constraint constraints.txt" in words["RUN"]


def test_what_the_image_copies_is_there_and_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    for word, rest in instructions():
        if word == "COPY":
            for name in rest.split()[:-1]:
                assert (ROOT / name).exists()
                assert name not in ignored


def test_the_image_asks_for_extras_and_a_torch_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runs = " ".join(rest for word, rest in instructions() if word == "RUN")
    for extras in re.findall(r'"\.\[([\w,]+)\]"', runs):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    pinned = re.search(r"pip install (torch==\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert pinned is not None
    assert set(re.findall(r"torch==\S+", runs)) == {pinned[1]}


@pytest.mark.parametrize("name", ["servers.sbatch", "slurm.sbatch", "torchrun.sh"])
def test_scripts_for_clusters_parse(name: str):
    shell = shutil.which("bash")
    assert shell is not None
    result = subprocess.run([shell, "-n", str(CLUSTER / name)], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


TORCHRUN = """echo "$@" >> asked
trap "sleep 0.5; echo saved >> asked; exit 1" TERM
touch started
for _ in {1..99}; do sleep 0.3; done"""
FAKES = {
    "scontrol": 'case $1 in show) echo node1 ;; *) echo "$@" >> asked ;; esac',
    "srun": 'exec "$@"',
    "torchrun": TORCHRUN,
}


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_job_of_slurm_that_is_stopped_in_time_is_queued_again(tmp_path: Path, is_stopped: bool):
    for name, body in FAKES.items():
        body = body if is_stopped or name != "torchrun" else "exit 3"
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    slurm = {"SLURM_JOB_NODELIST": "n", "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "4", "SLURM_JOB_ID": "7"}
    environment = {**os.environ, **slurm, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", str(CLUSTER / "slurm.sbatch"), "train.yaml", "--seed", "1"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as job:
        if is_stopped:
            while not (tmp_path / "started").exists():
                time.sleep(0.05)
            job.send_signal(signal.SIGTERM)
        code = job.wait(timeout=60)
    asked = (tmp_path / "asked").read_text(encoding="utf-8") if (tmp_path / "asked").exists() else ""
    assert code == (0 if is_stopped else 3)
    assert ("requeue 7" in asked) == is_stopped
    if is_stopped:
        assert asked.endswith("saved\nrequeue 7\n"), "only what is saved is queued again"
        assert "--nnodes=2 --nproc_per_node=4" in asked
        assert "-m partway train train.yaml --resume auto --seed 1" in asked


def test_the_first_node_learns_from_a_server_for_each_gpu_of_the_others(tmp_path: Path):
    fakes = {
        "scontrol": "printf 'n0\\nn1\\nn2\\n'",
        "srun": 'case $* in *accelerate*) echo "$@" > asked ;; esac',
    }
    for name, body in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "SLURM_JOB_NODELIST": "n", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = ["bash", str(CLUSTER / "servers.sbatch"), "config.yaml", "--seed", "1"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert "--nodelist=n0 accelerate launch" in asked
    assert "-m partway train config.yaml --resume auto" in asked
    [engine] = re.findall(r"--engine (\S+)", asked)
    assert engine.split(",")[:-1] == [f"http://n{n}:{8000 + port}" for n in (1, 2) for port in range(4)]
    assert asked.endswith("--seed 1\n")


def test_the_options_of_the_scripts_exist():
    from partway.cli.train import command

    known = {option for parameter in command.params for option in parameter.opts}
    for path in CLUSTER.iterdir():
        assert "-m partway train" in path.read_text(encoding="utf-8")
        assert "--resume auto" in path.read_text(encoding="utf-8")
    assert "--resume" in known


def test_every_pin_is_one_version_of_one_package():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", pin) for pin in pins), "pip and uv read these alike"
    names = [re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins]
    assert len(set(names)) == len(names)


def test_every_package_is_in_the_wheel_and_says_that_it_is_typed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = sorted(path.parent for path in ROOT.glob("src/*/__init__.py"))
    shipped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(shipped) == [path.relative_to(ROOT).as_posix() for path in packages]
    assert [path.name for path in packages if not (path / "py.typed").exists()] == []


def test_the_version_is_said_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    said = (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    [version] = re.findall(r'^__version__ = "(.+)"$', said, re.M)
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_tag_publishes_what_was_tried_and_checked_without_a_token():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads the key `on` so
    assert [step["run"] for step in build["steps"] if "run" in step][:2] == ["make test", "make test-release"]
    assert (publish["needs"], publish["permissions"]) == ("build", {"id-token": "write"})
    assert publish["environment"] == "pypi"
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")


@pytest.mark.parametrize("name", ["release.yml", "test.yml"])
def test_workflows_may_only_read_and_take_actions_by_commit(name):
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []


def test_the_quick_tests_run_with_every_python_that_the_metadata_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["quick"]["strategy"]["matrix"]["python"] == named

"""Build wheel and sdist, look into them, and use the wheel in empty environments, far from the checkout.

    python tests/cases/release.py [3.11 3.12 3.13 lowest]

Without words: each of these Pythons that is found on the PATH (of pyenv, those that PYENV_VERSION names),
and 3.11 again with the oldest dependencies that pyproject.toml allows. An environment is deleted after it was
tried. Where there is no build of torch for CPUs, only what needs no torch is tried;
PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu has some.
The exit code is the number of those that failed.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13")
TORCH = "torch==2.13.0+cpu" if sys.platform == "linux" else "torch==2.13.0"
PROGRAM = "n0 = 2\nn1 = 10\nanswer = n0 * n1\n"
WITHOUT_TORCH = ["click", "rich", "pyyaml", "httpx", "jinja2", "numpy", "filelock", "huggingface_hub"]
TESTS = ["pytest", "pytest-rerunfailures", "pytest-xdist", "hypothesis", "gguf"]
QUICK = ["-q", "-n", "2", "-m", "not slow and not volume and not processes and not models"]
QUICK += ["--hypothesis-profile", "quick", "-p", "no:cacheprovider", "--dist", "loadfile"]
OLD = ["-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning"]  # old packages warn of new ones
NOT_FOUND = f"{'FAILED ' if 'CI' in os.environ else ''}not found here"  # a release needs all of them
TORCHLESS = ("straightline", "storyproblems", "mathdata", "unit/language", "unit/buffer")


class Failed(Exception):
    """A command that failed, and what it said."""


def main(words: list[str]) -> int:
    """How many of the tries failed."""
    build()
    said = {}
    for word in words or [*PYTHONS, "lowest"]:
        python = shutil.which(f"python{'3.11' if word == 'lowest' else word}")
        try:
            said[word] = tried(python, word == "lowest") if python and runs(python) else NOT_FOUND
        except Failed as failure:
            said[word] = f"FAILED {failure}"
        print(f"{word}: {said[word]}", flush=True)
    return sum(one.startswith("FAILED") for one in said.values())


def runs(python: str) -> bool:
    """Whether it is more than a name: some are programs that say which version they lack."""
    return subprocess.run([python, "-V"], capture_output=True).returncode == 0


def build() -> None:
    """Both files in dist/, complete and fit for PyPI."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--quiet", "--outdir", DIST, ROOT)
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())
    wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    with zipfile.ZipFile(wheel) as one, tarfile.open(sdist) as other:
        in_wheel, in_sdist = one.namelist(), other.getnames()
    known = run("git", "ls-files", "src", cwd=ROOT).split()
    packages = {path.split("/")[1] for path in known}
    wanted = {path.removeprefix("src/") for path in known} | {f"{package}/py.typed" for package in packages}
    stem = sdist.name.removesuffix(".tar.gz")
    lacking = wanted - set(in_wheel) | {path for path in known if f"{stem}/{path}" not in in_sdist}
    lacking |= {name for name in ("LICENSE", "README.md", "CHANGELOG.md") if f"{stem}/{name}" not in in_sdist}
    if lacking or f"{stem}.dist-info/licenses/LICENSE" not in in_wheel:
        raise SystemExit(f"{wheel.name} or {sdist.name} lacks {sorted(lacking) or 'the licence'}")
    print(f"{wheel.name}, {sdist.name}: complete, {', '.join(sorted(packages))}", flush=True)


def tried(python: str, lowest: bool) -> str:
    """The wheel in an environment of its own, without extras, then with them and the quick tests."""
    wheel = next(DIST.glob("*.whl"))
    with tempfile.TemporaryDirectory(prefix="partway-release-") as name:
        folder = Path(name)
        run(python, "-m", "venv", folder / "env")
        own = folder / "env" / "bin" / "python"

        def install(*what: object) -> None:
            run(own, "-m", "pip", "install", "--quiet", *what, *(oldest() if lowest else []))

        try:
            run(own, "-m", "pip", "install", "--quiet", TORCH)
        except Failed:
            install("--no-deps", wheel)
            install(*WITHOUT_TORCH, *TESTS)
            use(own, folder)
            return f"no {TORCH} for it; without torch {quick_tests(own, torchless())}"
        install(wheel)
        run(own, "-m", "pip", "check")
        use(own, folder)
        run(own, "-m", "partway", "doctor", cwd=folder)  # fails where a package is missing
        run(own, "-m", "partway", "--quiet", "demo", "--quick", "--jobs", "1", cwd=folder)
        install(f"{wheel}[plots,explore,sql]" if lowest else f"{wheel}[all]", *TESTS)
        run(own, "-m", "pip", "check")
        use(own, folder)
        return quick_tests(own, [*(OLD if lowest else ()), ROOT / "tests"])


def oldest() -> list[str]:
    """The lower bounds of pyproject.toml, as versions to install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [project["optional-dependencies"][name] for name in ("plots", "explore", "sql")]
    bounds = [re.match(r"([\w-]+)>=([\w.]+)", one) for one in sum(extras, project["dependencies"])]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound and bound[1] != "torch"]


def use(own: Path, folder: Path) -> None:
    """The first things that people do."""
    run(own, "-m", "partway", "--help", cwd=folder)
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    if "20" not in run(own, "-m", "partway", "trace", "program.py", cwd=folder):
        raise Failed("trace: its states are missing")


def torchless() -> list[Path]:
    """Tests of what needs no torch, those apart that train all the same."""
    files = [file for folder in TORCHLESS for file in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    return [file for file in files if not re.search("torch|training", file.read_text(encoding="utf-8"))]


def quick_tests(own: Path, words: Sequence[object]) -> str:
    """What the quick tests say of the wheel; nothing here leads to the checkout's own sources."""
    skipped = [f"--ignore=tests/{folder}" for folder in ("end_to_end", "benchmarks", "servers")]
    return run(own, "-m", "pytest", *QUICK, *skipped, *words, cwd=ROOT).strip().splitlines()[-1]


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()[-15:]
        raise Failed("\n  ".join([" ".join(map(str, command)), *said]))
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

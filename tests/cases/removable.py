"""Delete each folder around the method in turn, in a copy, and run the quick tests of what is left.

    python tests/cases/removable.py [--all] [FOLDER ...]

Packages beside partway are folders, too. With a folder go its tests, the tests of folders that need it, and
test files that import any of these. Of the other quick tests, those run that ask the registry for a kind of
thing that the folder adds; a first run of all tests finds out which. With --all, every quick test runs. A
test that fails because something says that it needs the missing part counts as skipped (tests/conftest.py).
`partway --help` must work, and a command that needs the folder must say in one line that it is missing.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AROUND: dict[str, set[str]] = runpy.run_path(str(ROOT / "tests" / "test_layers.py"))["AROUND"]
# Properties are tried twice only: whether they hold is the other tests' business.
IMPORTED = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins of pytest, before it began
QUICK = ["-m", "not slow and not volume and not processes and not models", "--hypothesis-profile", "twice"]
TRAIN = "train --model_name_or_path tiny --train_file problems.jsonl --output_dir run"
ASKS = {
    "adapters": f"{TRAIN} --use_peft true",
    "arms": "compare --list",
    "beyond": f"{TRAIN} --spurious drop",
    "confidence": f"{TRAIN} --objective gem",
    "data": "data check problems.jsonl",
    "demo": "demo --quick",
    "mathdata": "data gsm8k --out data",
    "measuring": "evaluate tiny --problems problems.jsonl",
    "modelservers": f"{TRAIN} --engine http://localhost:9/v1",
    "replay": f"{TRAIN} --replay other",
    "runexplorer": "explore run",
    "runreports": "report run",
    "sandbox": "trace program.py",
    "smollm2": "sample smollm2 '2 and 2?'",
    "sql": "trace program.py --language sql",
    "stepbox": "trace program.py",
    "storyproblems": "data storyproblems --out data",
    "tracking": "export run --merged out",
    "undertest": "trace program.py --language python-tests",
    "written": "trace program.py --language python-written",
}  # `rewards` is for Python only; without `shortcuts` everything works, if slower
FILES = {
    "problems.jsonl": '{"id": "p", "question": "2 and 2?", "answer": 4, "solution": "answer = 2 + 2"}\n',
    "other/config.yaml": "self_sampling: fcs\n",  # a run, as far as that is looked at
    "program.py": "for i in [1]:\n    answer = i\n",
}
Asked = dict[str, set[str]]  # by folder: the tests that ask for something of the kinds it adds to


class Recorder:
    """A plugin of pytest that notes which tests ask the registry for what."""

    def __init__(self, path: Path) -> None:
        self.path, self.test = path, ""
        self.asked: Asked = defaultdict(set)

    def pytest_sessionstart(self) -> None:
        from partway import registry

        folders = {entry.name: entry.load().PARTS for entry in registry.entry_points(group=registry.GROUP)}
        parts = registry.parts

        def noted(kind: registry.Kind) -> dict[str, registry.Part]:
            for folder, tables in folders.items():
                if kind in tables and self.test:
                    self.asked[folder].add(self.test)
            return parts(kind)

        registry.parts = noted

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid
        result = yield
        self.test = ""
        return result

    def pytest_sessionfinish(self) -> None:
        lines = [f"{folder} {test}\n" for folder, tests in self.asked.items() for test in sorted(tests)]
        self.path.write_text("".join(lines), encoding="utf-8")


class Chosen:
    """A plugin of pytest that runs these tests only."""

    def __init__(self, tests: set[str]) -> None:
        self.tests = tests

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        others = [item for item in items if item.nodeid not in self.tests]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.nodeid in self.tests]


class Copy:
    """A copy of the repository from which a folder is missing, perhaps; another takes its place later."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / ROOT.name
        self.said = directory / "said.txt"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
        )
        self.paths = [Path(name) for name in listed.stdout.splitlines() if (ROOT / name).is_file()]

    def lack(self, folder: str) -> None:
        """Everything is there but one folder and the tests that need it."""
        self.folder, gone = folder, with_dependants(folder)
        for path in self.paths:
            there = self.directory / path
            if belongs_to(path, gone):
                there.unlink(missing_ok=True)
            elif not there.exists() or there.stat().st_mtime != (ROOT / path).stat().st_mtime:
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, there)  # with its time: what was compiled of it is used again
        for name, text in FILES.items():
            (self.directory / name).parent.mkdir(exist_ok=True)
            (self.directory / name).write_text(text)
        for own in (folder, f"partway/{folder}") if folder else ():
            # What was compiled of it would be a package still, if an empty one.
            shutil.rmtree(self.directory / "src" / own, ignore_errors=True)
        # An editable installation would lend the folder of the original.
        (self.directory / "src" / "sitecustomize.py").write_text(
            f"import sys\nsys.path[:] = [path for path in sys.path if path != {str(ROOT / 'src')!r}]\n"
        )

    def call(self, function: Callable[[], int | None]) -> tuple[int, list[str]]:
        """Call a function in a process that is there already, and has imported what takes long."""
        if not (child := os.fork()):
            with self.said.open("wb") as stream:
                os.dup2(stream.fileno(), 1)
                os.dup2(stream.fileno(), 2)
            source = str(self.directory / "src")
            sys.path[:] = [source, *(path for path in sys.path if path != str(ROOT / "src"))]
            sys.dont_write_bytecode = False
            os.environ |= {"PYTHONPATH": source, "PARTWAY_WITHOUT": self.folder, "HF_HUB_OFFLINE": "1"}
            os.chdir(self.directory)
            try:
                code = function() or 0
            except SystemExit as exit:
                code = exit.code if isinstance(exit.code, int) else 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        status = os.waitpid(child, 0)[1]
        return os.waitstatus_to_exitcode(status), self.said.read_text(errors="replace").strip().splitlines()

    def partway(self, line: str) -> tuple[int, list[str]]:
        """What the command line says."""

        def command() -> None:
            from partway.cli import main

            sys.argv = ["partway", "--quiet", *shlex.split(line)]
            main()

        return self.call(command)

    def test(self, *plugins: object, files: Iterable[str] = ()) -> tuple[int, list[str]]:
        """What pytest says of all tests, or of those in some files."""
        return self.call(
            lambda: pytest.main(["-q", "-p", "no:cacheprovider", *IMPORTED, *QUICK, *files], plugins=plugins)
        )


def main(words: list[str]) -> int:
    """How many folders could not be taken away."""
    for name in ("torch", "transformers", "transformers.trainer", "hypothesis", "rich.console", "jinja2"):
        import_module(name)  # once for all the processes that are forked
    folders = [word for word in words if word != "--all"] or sorted(AROUND)
    with tempfile.TemporaryDirectory() as name:
        copy = Copy(Path(os.environ.get("PARTWAY_COPY", name)))
        asked = None if "--all" in words else tests_that_ask(copy)
        failed = [folder for folder in folders if not is_removable(folder, copy, asked)]
    print(f"{len(folders) - len(failed)} passed, {len(failed)} failed")
    return len(failed)


def tests_that_ask(copy: Copy) -> Asked:
    """By folder, the tests that ask for something of the kinds it adds to."""
    record = copy.directory.parent / "asked.txt"
    if not record.exists():
        copy.lack("")
        code, said = copy.test(Recorder(record))
        print(*said[-25 if code else -1 :], sep="\n", flush=True)
    asked: Asked = defaultdict(set)
    for line in record.read_text(encoding="utf-8").splitlines():
        folder, _, test = line.partition(" ")
        asked[folder].add(test)
    return asked


def is_removable(folder: str, copy: Copy, asked: Asked | None) -> bool:
    """Whether what is left passes its tests, with a command line that still helps."""
    start = time.monotonic()
    copy.lack(folder)
    helped, help_text = copy.partway("--help")
    refused, answer = copy.partway(ASKS[folder]) if folder in ASKS else (1, [])
    gone = with_dependants(folder)
    if asked is None:
        code, said = copy.test()
    else:
        tests = set().union(*(asked.get(one, set()) for one in gone))
        files = {test.partition("::")[0] for test in tests}
        files = {name for name in files if (copy.directory / name).exists()}
        code, said = (
            copy.test(Chosen(tests), files=sorted(files)) if files else (0, ["no other test asks for it"])
        )
    is_told = bool(refused) and len(answer) == 1 and says(answer[0], gone)
    wrong = {
        "partway --help": help_text if helped else [],
        f"partway {ASKS.get(folder)}": [] if is_told or folder not in ASKS else answer or ["nothing"],
        "a test": said[-40:] if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else [],
    }
    for what, lines in wrong.items():
        if lines:
            print(f"without {folder}: {what} fails", *lines, sep="\n  ", flush=True)
    if not any(wrong.values()):
        took = f"{said[-1]}, {time.monotonic() - start:.0f} s in all"
        print(f"without {folder}: {took}", *answer, sep="\n  ", flush=True)
    return not any(wrong.values())


def says(line: str, folders: list[str]) -> bool:
    """Whether a message names a missing folder."""
    names = "|".join(folders)
    return bool(re.search(rf"not here: .*\b({names})\b|no module (partway\.)?({names})\b", line))


def belongs_to(path: Path, gone: list[str]) -> bool:
    """Whether a file is of the folder that is first, a test of one of these, or a test that is not quick."""
    parts = path.parts
    if parts[0] != "tests":
        inside = parts[2:] if parts[:2] == ("src", "partway") else parts[1:] if parts[0] == "src" else ()
        return bool(inside) and inside[0].removesuffix(".py") in gone[:1]
    if {*parts[1:3]} & {"end_to_end", "benchmarks", "servers", "integrations", *gone}:
        return True
    names = "|".join(gone)
    imports = rf"(?:partway\.|from |import )({names})\b|from partway import .*\b({names})\b"
    is_test = path.name.startswith("test_") and path.suffix == ".py"
    return is_test and bool(gone and re.search(imports, (ROOT / path).read_text(encoding="utf-8")))


def with_dependants(folder: str) -> list[str]:
    """A folder, and those that need it."""
    return [folder, *(other for other in AROUND if folder in needs(other))] if folder else []


def needs(folder: str) -> set[str]:
    """The other folders around the method without which a folder cannot work."""
    own = AROUND[folder]
    return own | {further for other in own for further in needs(other)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Delete each folder around the method in turn, in a copy, and run the quick tests of what is left.

    python tests/cases/removable.py [FOLDER ...]

Packages beside partway that add to it are folders, too. With a folder go its tests, the tests of folders that
need it, and test files that import any of these. A test that fails because something says that it needs the
missing part counts as skipped (tests/conftest.py).
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
AROUND: dict[str, set[str]] = runpy.run_path(str(ROOT / "tests" / "test_layers.py"))["AROUND"]
QUICK = ["-m", "not slow and not volume and not processes and not models", "--hypothesis-profile", "quick"]


def main(folders: list[str]) -> int:
    """How many folders could not be taken away."""
    failed = [folder for folder in folders if not is_removable(folder)]
    print(f"{len(folders) - len(failed)} passed, {len(failed)} failed")
    return len(failed)


def is_removable(folder: str) -> bool:
    """Whether what is left passes its tests, with a command line that still helps."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / ROOT.name
        copy_without(folder, copy)
        # An editable installation would lend the folder of the original.
        (copy / "src" / "sitecustomize.py").write_text(
            f"import sys\nsys.path[:] = [path for path in sys.path if path != {str(ROOT / 'src')!r}]\n"
        )
        environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PARTWAY_WITHOUT": folder}
        tests = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", *QUICK]
        commands = {"tests": tests, "--help": [sys.executable, "-m", "partway", "--help"]}
        done = {
            what: subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
            for what, command in commands.items()
        }
    for what, result in done.items():
        said = result.stdout.strip().splitlines() or result.stderr.strip().splitlines() or ["nothing"]
        if result.returncode:
            print(f"without {folder}: {what} fails", *said[-25:], sep="\n")
            return False
    print(f"without {folder}: {done['tests'].stdout.strip().splitlines()[-1]}", flush=True)
    return True


def copy_without(folder: str, copy: Path) -> None:
    """The files that git knows, but for a folder and the tests that need it."""
    gone = {folder} | {other for other in AROUND if folder in needs(other)}
    names = "|".join(gone)
    imports = re.compile(rf"(?:partway\.|from |import )({names})\b|from partway import .*\b({names})\b")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    for path in map(Path, listed.stdout.splitlines()):
        parts = path.parts
        inside = parts[2:] if parts[:2] == ("src", "partway") else parts[1:] if parts[0] == "src" else ("",)
        is_of_folder = inside[0].removesuffix(".py") == folder
        is_quick_test = parts[0] == "tests" and parts[1] not in (
            "end_to_end",
            "benchmarks",
            "servers",
            "integrations",
        )
        if is_of_folder or (parts[0] == "tests" and not is_quick_test) or not (ROOT / path).is_file():
            continue
        is_test_of_gone = parts[0] == "tests" and bool({parts[1], parts[2 if len(parts) > 2 else 1]} & gone)
        is_test = path.name.startswith("test_") and path.suffix == ".py"
        if is_test_of_gone or (is_test and imports.search((ROOT / path).read_text(encoding="utf-8"))):
            continue
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, copy / path)


def needs(folder: str) -> set[str]:
    """The other folders around the method without which a folder cannot work."""
    own = AROUND[folder]
    return own | {further for other in own for further in needs(other)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or sorted(AROUND)))

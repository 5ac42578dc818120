"""Imports go one way down the method; what is around it uses it and is never used by it."""

import ast
import functools
import os
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "partway"
# The method, from what everything needs to what needs everything.
METHOD = [
    "errors", "files", "registry",
    "solution", "problem", "language", "problems", "buffer", "sample", "runs",
    "models", "learning", "sampling", "objectives", "evaluation",
    "settings", "training", "cli", "__main__", "__init__",
]  # fmt: skip
# Folders around the method, each of which can be deleted, with the others that it needs.
AROUND = {
    "adapters": set(),
    "stepbox": set(),  # a package of its own, as are the next two
    "storyproblems": set(),
    "undertest": set(),
    "sandbox": {"stepbox"},
    "beyond": set(),
    "confidence": set(),
    "data": set(),
    "rewards": set(),
    "mathdata": {"data"},  # a package of its own beside this one
    "modelservers": set(),  # a package of its own beside this one
    "tracking": set(),
    "shortcuts": set(),
    "smollm2": {"shortcuts"},
    "sql": {"data", "sandbox", "stepbox"},
    "written": {"undertest"},
    "measuring": set(),
    "replay": {"measuring"},
    "runreports": {"measuring"},  # a package of its own beside this one
    "runexplorer": {"runreports"},  # a package of its own beside this one
    "arms": {"measuring", "rewards", "runreports", "tracking"},
    "demo": {"arms", "data", "runreports", "storyproblems"},
}
# In a copy from which one was taken away (tests/cases/removable.py), the others.
HERE = {folder: needs for folder, needs in AROUND.items() if folder != os.environ.get("PARTWAY_WITHOUT")}
WITH_TORCH = {"models", "learning", "sampling", "objectives", "training"}
WITH_TORCH |= {"confidence", "modelservers", "tracking", "replay", "shortcuts", "smollm2", "arms", "adapters"}
BESIDE = ("mathdata", "modelservers", "runexplorer", "runreports")  # packages that add to this one, too
MODULES = sorted(path for one in (PACKAGE.name, *BESIDE) for path in (PACKAGE.parent / one).rglob("*.py"))


def layer(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).parts
    return parts[parts[0] == PACKAGE.name].removesuffix(".py")


def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def imported_and_spelled(path: Path) -> tuple[set[str], set[str]]:
    """What a file imports, and its texts."""
    names, texts = set(), set()
    for node in ast.walk(ast.parse(source(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "partway"}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    return names, texts


def imported(path: Path) -> set[str]:
    return imported_and_spelled(path)[0]


def needed(path: Path) -> set[str]:
    """The folders or files of this package and the packages around it that a file imports, its own apart."""
    names = {name.split(".")[1] for name in imported(path) if name.startswith("partway.")}
    names |= {name.split(".")[0] for name in imported(path)} & {*AROUND}
    return {name for name in names if name != "__version__"} - {layer(path)}


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) in METHOD], ids=str)
def test_the_method_imports_what_stands_before_it_and_nothing_around_it(path: Path):
    allowed = set(METHOD[: METHOD.index(layer(path))])
    assert needed(path) <= allowed


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) in AROUND], ids=str)
def test_what_is_around_the_method_needs_only_what_it_says(path: Path):
    allowed = set(METHOD) | AROUND[layer(path)]
    assert needed(path) <= allowed


def test_what_is_around_the_method_says_no_more_than_it_needs():
    used = {
        folder: {one for path in MODULES if layer(path) == folder for one in needed(path)} for folder in HERE
    }
    assert {folder: needs - used[folder] for folder, needs in HERE.items() if needs - used[folder]} == {}


@pytest.mark.parametrize("folder", sorted({*HERE} - {"rewards"}))
def test_a_folder_says_what_it_needs_who_needs_it_and_how_to_remove_it(folder: str):
    inside = PACKAGE / folder
    said = source((inside if inside.is_dir() else PACKAGE.parent / folder) / "README.md")
    others = AROUND[folder] | {other for other, needs in AROUND.items() if folder in needs}
    assert [other for other in sorted(others) if other not in said] == []
    assert "To remove it" in said


def test_every_folder_is_the_method_or_around_it():
    assert {layer(path) for path in MODULES} <= {*METHOD, *AROUND}


def test_the_method_is_small():
    """A reader with the paper reads it in an afternoon; these numbers may only fall."""
    files = [path for path in MODULES if layer(path) in METHOD and layer(path) != "cli"]
    lines = sum(len(source(path).splitlines()) for path in files)
    assert len(files) <= 61
    assert lines <= 9_996


def test_all_folders_together_stay_small():
    """With all that is around the method; what is added is paid for by what goes: this may only fall, too."""
    lines = sum(len(source(path).splitlines()) for path in PACKAGE.rglob("*.py"))
    assert lines <= 24_000


def test_no_two_files_share_a_name_but_parts_and_a_command_and_what_it_calls():
    usual = {"__init__", "parts", "commands"}
    others = [path for path in MODULES if layer(path) != "cli" and path.stem not in usual]
    names = [path.name for path in others]
    assert sorted(names) == sorted(set(names))
    commands = set(names) & {path.name for path in (PACKAGE / "cli").glob("[!_]*.py")}
    assert {name for name in commands if "def command(" not in source(PACKAGE / "cli" / name)} == set()


def test_no_two_classes_share_a_name():
    names = [
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(source(path)))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted(names) == sorted(set(names))


def test_only_runs_knows_the_names_of_a_run_directory():
    names = {"config.yaml", "environment.json", "metrics.jsonl", "timings.jsonl", "trainer_state.json"}
    names |= {"buffer.jsonl", "imported_buffer.jsonl", "checkpoint-", "final", "step-", "nan_batch_step-"}
    names |= {"manifest.json", "progress.json", ".lock"}
    spelled = {
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in MODULES
        if layer(path) != "runs"
        for text in imported_and_spelled(path)[1] & names
    }
    assert spelled == set()


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) not in WITH_TORCH | {"cli"}], ids=str)
def test_torch_lives_with_the_models(path: Path):
    assert not {name.split(".")[0] for name in imported(path)} & {"torch", "transformers", "accelerate"}


BESIDE_NEED: dict[str, set[str]] = {
    **{one: {"straightline"} for one in ("stepbox", "storyproblems", "straightline", "undertest")},
    "passatk": {"numpy"},
    "tinymodel": {"tokenizers", "torch", "transformers"},
}


@pytest.mark.parametrize("package", BESIDE_NEED)
def test_packages_beside_this_one_need_python_and_little_else(package: str):
    paths = list((PACKAGE.parent / package).rglob("*.py"))
    assert paths
    for path in paths:
        roots = {name.split(".")[0] for name in imported(path)}
        assert roots <= sys.stdlib_module_names | {package} | BESIDE_NEED[package], path
        assert "partway" not in source(path), path

"""Imports go one way down the list, and torch stays where it belongs."""

import ast
import functools
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "partway"
ORDER = [
    "errors", "files", "documents", "importing", "caching", "parsing", "solution", "problem", "execution",
    "buffer", "rewards", "datasets", "runs", "models", "sampling", "advantages", "objectives", "evaluation",
    "config_files", "training", "reports", "comparing", "demo", "cli", "__main__",
]  # fmt: skip
WITH_TORCH = {"models", "objectives", "training"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


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


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) != "__init__"], ids=str)
def test_imports_point_down_the_list(path: Path):
    here = ORDER.index(layer(path))
    for name in imported(path):
        if name.startswith("partway.") and not name.endswith("__version__"):
            assert ORDER.index(name.split(".")[1]) <= here, f"{path.name} imports {name}, which comes later"


def test_no_two_files_share_a_name_but_a_command_and_what_it_calls():
    names = [path.name for path in MODULES if layer(path) != "cli" and path.stem != "__init__"]
    assert sorted(names) == sorted(set(names))
    commands = set(names) & {path.name for path in (PACKAGE / "cli").glob("[!_]*.py")}
    assert {name for name in commands if "def command(" not in source(PACKAGE / "cli" / name)} == set()


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


def test_the_generator_of_stories_needs_nothing_but_python():
    paths = list((PACKAGE.parent / "storyproblems").rglob("*.py"))
    assert paths
    for path in paths:
        roots = {name.split(".")[0] for name in imported(path)}
        assert roots <= sys.stdlib_module_names | {"storyproblems"}, path

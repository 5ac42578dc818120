"""What the method uses of other packages' private side is listed in docs/keys.md, with the reason."""

import ast
import re
from pathlib import Path

from transformers import Trainer

import partway
from partway.training import SelfSamplingTrainer

ROOT = Path(__file__).parents[3]
PACKAGE = Path(partway.__file__).parent
WITH_MODELS = ("learning", "models", "sampling", "shortcuts", "training")  # what knows torch and transformers
PUBLIC = {"_replace"}  # of named tuples


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def documented() -> set[str]:
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    part = text.split("### What is private", 1)[1].split("\n#", 1)[0]
    return set(re.findall(r"^\| `\w+\.(_\w+)` \|", part, re.MULTILINE))


def overridden() -> set[str]:
    return {name for name in vars(SelfSamplingTrainer) if is_private(name) and hasattr(Trainer, name)}


def called() -> set[str]:
    """Private attributes of anything but an object of ours, and what `self` has from Trainer."""
    paths = [path for folder in WITH_MODELS for path in (PACKAGE / folder).glob("*.py")]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    ours = {
        node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name not in overridden()
    }
    found = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own or hasattr(Trainer, node.attr):
                found.add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            found |= {
                one.value for one in node.args[1:2] if isinstance(one, ast.Constant) and is_private(one.value)
            }
    return found - ours - PUBLIC


def test_private_names_of_other_packages_are_listed_with_their_reason():
    assert overridden() | called() == documented()


def test_one_private_method_of_transformers_is_overridden():
    assert overridden() == {"_save_checkpoint"}

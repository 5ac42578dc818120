"""What training uses of other packages' private side is listed in docs/keys.md, with the reason."""

import ast
import re
from pathlib import Path

from transformers import Trainer

import partway.training
from partway.training import SelfSamplingTrainer

ROOT = Path(__file__).parents[3]
FOLDER = Path(partway.training.__file__).parent


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def documented() -> set[str]:
    text = (ROOT / "docs" / "keys.md").read_text(encoding="utf-8")
    part = text.split("### What is private", 1)[1].split("\n#", 1)[0]
    return set(re.findall(r"^\| `\w+\.(_\w+)` \|", part, re.MULTILINE))


def overridden() -> set[str]:
    return {name for name in vars(SelfSamplingTrainer) if is_private(name) and hasattr(Trainer, name)}


def called() -> set[str]:
    """Private attributes of anything but the object itself, and what `self` has from Trainer."""
    nodes = [node for path in FOLDER.glob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    found = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own or hasattr(Trainer, node.attr):
                found.add(node.attr)
    return found


def test_private_names_of_other_packages_are_listed_with_their_reason():
    assert overridden() | called() == documented()


def test_one_private_method_of_transformers_is_overridden():
    assert overridden() == {"_save_checkpoint"}

"""JSON and YAML from outside: read whole and within bounds, or refused with a reason.

Nesting a thousand deep, a few lines of aliases that stand for a billion values, a key given twice, half a
character: what such a file would do further on is decided here, before it does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

LARGEST_JSON = 64 * 1024 * 1024  # bytes of a file
LARGEST_YAML = 256 * 1024  # its reader takes a second for as much
LONGEST_SCALAR = 100_000  # characters of one YAML value
MOST_LEVELS = 200  # of JSON
MOST_NODES = 100_000  # values of a YAML file, aliases written out


class Unreadable(ValueError):
    """Why a text cannot be taken as a value."""


def read_object(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """The object in a file: JSON's `{...}`, or YAML's lines of `key: value`, which may be none."""
    largest = LARGEST_YAML if parse is parse_yaml else LARGEST_JSON
    try:
        if path.stat().st_size > largest:
            raise Unreadable(f"more than {largest:,} bytes")
        content = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 (byte {error.start})") from None
    if content is None and parse is parse_yaml:
        return {}
    if not isinstance(content, dict):
        raise Unreadable(f"expected names with values, found a {type(content).__name__}")
    return {str(key): value for key, value in content.items()}


def parse_json(text: str) -> Any:
    """The value that JSON text stands for."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise Unreadable("not usable JSON: nested too deeply") from None
    except ValueError as error:  # also a number of more digits than Python reads
        raise Unreadable(f"not JSON: {error}") from None
    # Counting brackets is cheap and tells most texts apart; walking every value is not.
    if text.count("[") + text.count("{") > MOST_LEVELS and _is_deep(value):
        raise Unreadable("not usable JSON: nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    """Whether a value nests more than MOST_LEVELS; what writes it again takes a call for each."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [child for holder in level for child in _held(holder)]
        if not level:
            return False
    return True


def _held(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def parse_yaml(text: str) -> Any:
    """The value that YAML text stands for.

    >>> parse_yaml("seed: 1\\nseed: 2")
    Traceback (most recent call last):
    partway.documents.Unreadable: line 2 gives 'seed' again; keep one of the two
    """
    try:
        loader = yaml.SafeLoader(text)  # refuses characters that YAML does not have
        # Nodes first: aliases are shared there, and nothing is written out before it was measured.
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node)
        return loader.construct_document(node)
    except RecursionError:
        raise Unreadable("not usable YAML: nested too deeply") from None
    except yaml.YAMLError as error:
        raise Unreadable(f"not YAML ({' '.join(str(error).split())})") from None
    except Unreadable:
        raise
    except (ValueError, TypeError) as error:  # what looks like a date but is none, a list as a key
        raise Unreadable(f"not YAML ({error})") from None


def _check(root: yaml.Node) -> None:
    """Refuse repeated keys, half characters, and aliases that stand for themselves or for too much."""
    sizes: dict[int, int | None] = {}  # values below each node, aliases written out; None while inside it

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise Unreadable(f"line {node.start_mark.line + 1}: an alias that stands for itself")
            return known
        sizes[id(node)] = None
        total = 1 + sum(size(child) for child in _children(node))
        if total > MOST_NODES:
            raise Unreadable(f"its aliases stand for more than {MOST_NODES:,} values")
        sizes[id(node)] = total
        return total

    size(root)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        _check_keys([key for key, _ in node.value])
        return [child for pair in node.value for child in pair]
    if len(node.value) > LONGEST_SCALAR:
        raise Unreadable(
            f"line {node.start_mark.line + 1}: a value of more than {LONGEST_SCALAR:,} characters"
        )
    if not is_text(node.value):
        raise Unreadable(f"line {node.start_mark.line + 1}: characters that no text has")
    return []


def _check_keys(keys: list[yaml.Node]) -> None:
    seen = set()
    for key in keys:
        if isinstance(key, yaml.ScalarNode) and key.value != "<<":  # a merge may be given several times
            if (key.tag, key.value) in seen:
                line = key.start_mark.line + 1
                raise Unreadable(f"line {line} gives {key.value[:60]!r} again; keep one of the two")
            seen.add((key.tag, key.value))


def is_text(text: str) -> bool:
    """Whether a file can hold `text` and a path can be called so."""
    return "\0" not in text and is_whole(text)


def is_whole(text: str) -> bool:
    """Whether a file can hold `text`: it has no halves of characters. Models do write zeros."""
    return not any("\ud800" <= character <= "\udfff" for character in text)

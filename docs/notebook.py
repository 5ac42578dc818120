"""Makes a notebook of a script with `# %%` cells: runs it, and saves what each cell shows.

python docs/notebook.py examples/tour.py
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any


def cells_of(script: str) -> list[dict[str, Any]]:
    """The cells of a script as a notebook has them, without what they show."""
    cells = []
    for number, block in enumerate(f"\n{script}".split("\n# %%")[1:]):
        head, _, body = block.partition("\n")
        is_text = "[markdown]" in head
        lines = [re.sub("^# ?", "", line) if is_text else line for line in body.split("\n")]
        source = "\n".join(lines).strip("\n").splitlines(keepends=True)
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": source}
        code = {"cell_type": "code", "execution_count": None, "outputs": []}
        cells.append(cell | ({"cell_type": "markdown"} if is_text else code))
    return cells


def run(cells: list[dict[str, Any]]) -> None:
    """Run the cells in order, and put into them what they print and what their last line is worth."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = worth("".join(cell["source"]), names)
        cell["execution_count"] = count
        if printed.getvalue():
            text = printed.getvalue().splitlines(keepends=True)
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": text})
        if value is not None:
            data = looks(value)
            alt = {"image/png": {"alt": data["text/plain"][0]}} if "image/png" in data else {}
            shown = {"output_type": "execute_result", "execution_count": count, "metadata": alt}
            cell["outputs"].append(shown | {"data": data})


def worth(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; what its last line is worth, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def looks(value: Any) -> dict[str, Any]:
    """A value as a notebook shows it: a figure as a picture, its label as alternative text; what has a table
    as that, the rest as text.
    """
    data: dict[str, Any] = {"text/plain": [str(type(value))]}
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=100)
        data["text/plain"] = [value.get_label()]
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    else:
        data["text/plain"] = repr(value).splitlines(keepends=True)
    return data


def notebook(cells: list[dict[str, Any]]) -> str:
    """The file's text, as Jupyter writes it."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(script: str) -> None:
    path = Path(script)
    cells = cells_of(path.read_text(encoding="utf-8"))
    run(cells)
    path.with_suffix(".ipynb").write_text(notebook(cells), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs programs statement by statement in plain CPython; a child process, one JSON object per line.

The slow, obvious twin of the interpreter: `exec` in one namespace, values reported by type and repr.
"""

import ast
import json
import sys
import types


def run(text: str) -> dict[str, object]:
    scope: dict[str, object] = {"__builtins__": __builtins__}
    states = []
    for index, node in enumerate(ast.parse(text).body):
        try:
            exec(compile(ast.Module([node], []), "<program>", "exec"), scope)
        except Exception as error:
            return {"states": states, "error": type(error).__name__, "step": index}
        values = {
            name: [type(value).__name__, repr(value)]
            for name, value in scope.items()
            if name != "__builtins__" and not isinstance(value, types.ModuleType)
        }
        states.append(values)
        if "answer" in scope:
            break
    return {"states": states, "error": None, "step": None}


if __name__ == "__main__":
    sys.stdout, out = sys.stderr, sys.stdout
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=out, flush=True)

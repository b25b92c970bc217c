"""Default arguments of the JAX and Flax functions that definitions call, so that they need not be written.

``python -m rules.defaults`` writes ``defaults.json`` anew from the installed packages; the reader imports none.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("defaults.json")


@cache
def _table() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))
    return loaded


def target_defaults(target: str) -> dict[str, Any]:
    """Keyword → default of a function by its dotted name in rule files (``jnp.var``)."""
    return _table().get(target, {})


def _defaults(function: Any) -> dict[str, Any]:
    import inspect

    if isinstance(function, type):
        function = vars(function).get("__init__", function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    import jax.numpy as jnp

    found: dict[str, Any] = {}
    for p in signature.parameters.values():
        if p.default is None or isinstance(p.default, (bool, int, float, str)):
            found[p.name] = p.default
        elif p.default is jnp.float32:
            found[p.name] = "jnp.float32"  # compared with the source of the argument
    return found


def collect() -> dict[str, dict[str, Any]]:
    """The table for every dotted call in the rule files."""
    import ast

    import jax
    import jax.numpy as jnp
    from flax import nnx
    from jax import lax

    from rules.definitions import ROOT, read

    roots = {"jax": jax, "jnp": jnp, "lax": lax, "nnx": nnx}
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(ROOT.glob("*/*.py")):
        for node in ast.walk(read(path).tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            target = ast.unparse(node.func)
            head, *attributes = target.split(".")
            function: Any = roots.get(head)
            for attribute in attributes:
                function = getattr(function, attribute, None)
            if head in roots and function is not None:
                found[target] = _defaults(function)
        for node in ast.walk(read(path).tree):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    name = ast.unparse(base)
                    if name.startswith("nnx.") and name != "nnx.Module":
                        found[name] = _defaults(getattr(nnx, name[4:]))
        for node in ast.walk(read(path).tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if hasattr(jax.Array, node.func.attr):
                method = f"jax.Array.{node.func.attr}"
                found[method] = _defaults(getattr(jnp, node.func.attr, None))
    return {name: table for name, table in sorted(found.items()) if table}


if __name__ == "__main__":
    PATH.write_text(json.dumps(collect(), indent=1, sort_keys=True) + "\n", encoding="utf-8")

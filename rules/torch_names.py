"""The public names of torch by what they are, so that files can be read without importing torch.

``python -m rules.torch_names`` writes ``torch_names.json`` anew from the installed torch; the reader imports none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

VERSION = "2.13.0"
"""The torch whose names these are; what a program asks of ``torch.__version__``."""
PATH = Path(__file__).with_name("torch_names.json")
ROOTS = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.stateless",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.signal.windows",
    "torch.func",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.utils",
    "torch.utils.checkpoint",
    "torch.utils.data",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.amp",
    "torch.backends",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.distributed",
    "torch.distributions",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.jit",
    "torch.fx",
    "torch.onnx",
    "torch.random",
    "torch.sparse",
    "torch.nested",
    "torch.compiler",
    "torch.nn.attention",
    "torch.nn.parallel",
    "torch.overrides",
)
STARRED = (
    "torch.autograd",
    "torch.autograd.function",
    "torch.autograd.variable",
    "torch.distributions",
    "torch.nn.modules.*",
    "torch.nn.parameter",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.utils.data",
)
"""Modules of which people import everything; what that binds is noted."""


@cache
def table() -> dict[str, frozenset[str]]:
    """ "class", "function", "module", "dtype", "constant", "method", "attribute", "starred", "layer" → names."""
    loaded = json.loads(PATH.read_text(encoding="utf-8"))
    return {group: frozenset(names) for group, names in loaded.items()}


def collect() -> dict[str, list[str]]:
    """Classify every public name under ROOTS and every Tensor attribute."""
    import importlib
    import pkgutil
    import types

    import torch

    found: dict[str, set[str]] = {
        g: set()
        for g in (
            *("class", "function", "module", "dtype", "constant", "method", "attribute"),
            "starred",
        )
    }
    for root in ROOTS:
        module = importlib.import_module(root)
        found["module"].add(root)
        for name in dir(module):
            if name.startswith("_"):
                continue
            value = getattr(module, name)
            qualified = f"{root}.{name}"
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("torch"):
                    found["module"].add(qualified)
            elif isinstance(value, torch.dtype):
                found["dtype"].add(qualified)
            elif isinstance(value, type):
                if value.__module__.startswith("torch") or root == "torch":
                    found["class"].add(qualified)
            elif callable(value):
                found["function"].add(qualified)
            elif isinstance(value, (int, float)):
                found["constant"].add(qualified)
    for name in dir(torch.Tensor):
        kind = "method" if callable(getattr(torch.Tensor, name, None)) else "attribute"
        if not name.startswith("_"):
            found[kind].add(name)
    for starred in STARRED:
        head = starred.removesuffix(".*")
        package = importlib.import_module(head)
        files = (
            [one.name for one in pkgutil.iter_modules(package.__path__)]
            if head != starred
            else [""]
        )
        for file in files:
            path = f"{head}.{file}".rstrip(".")
            module = importlib.import_module(path)
            public = [name for name in dir(module) if not name.startswith("_")]
            found["starred"] |= {f"{path}.{name}" for name in getattr(module, "__all__", public)}
    found["layer"] = set(_of_layers())
    return {group: sorted(names) for group, names in found.items()}


def _of_layers() -> Iterator[str]:
    """``Linear.in_features``: what layers of torch.nn have beyond other modules, by what their constructors assign."""
    import ast
    import inspect
    import textwrap

    import torch

    def of(layer: type) -> set[str]:
        found = {one for one in dir(layer) if not one.startswith("__")}
        for base in layer.__mro__:
            if "__init__" not in vars(base) or not issubclass(base, torch.nn.Module):
                continue
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if ast.unparse(node.value) == "self":
                        found.add(node.attr)
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    registers = node.func.attr in ("register_parameter", "register_buffer")
                    if registers and isinstance(node.args[0], ast.Constant):
                        found.add(str(node.args[0].value))
        return found

    every = of(torch.nn.Module) | set(vars(torch.nn.Module()))
    yield from (f"Module.{one}" for one in every)
    for name, layer in vars(torch.nn).items():
        if isinstance(layer, type) and issubclass(layer, torch.nn.Module):
            yield f"{name}.forward"
            yield from (f"{name}.{one}" for one in of(layer) - every)


def has(layer: str, name: str) -> bool | None:
    """Whether a layer of torch.nn (``torch.nn.Linear``) has an attribute; None where that is not known.

    Some have parameters for each of their layers: ``weight_ih_l0``.
    """
    known, short = table()["layer"], layer.removeprefix("torch.nn.")
    if f"{short}.forward" not in known:
        return None
    if f"{short}.{name}" in known or f"Module.{name}" in known:
        return True
    return None if name.startswith(("weight_", "bias_")) else False


if __name__ == "__main__":
    PATH.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")

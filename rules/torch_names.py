"""The public names of torch by what they are, so that files can be read without importing torch.

``python -m rules.torch_names`` writes ``torch_names.json`` anew from the installed torch; the reader imports none.
"""

from __future__ import annotations

import json
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
    """ "class", "function", "module", "dtype", "constant", "method", "attribute", "starred" → names."""
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
    return {group: sorted(names) for group, names in found.items()}


if __name__ == "__main__":
    PATH.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")

"""Everything that can be imported of torch's modules, so that it is known what an import fails for.

``python -m rules.torch_members`` writes ``torch_members.json`` anew from the installed torch; the reader imports none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("torch_members.json")
_NAMES_OF = (
    "torch torch.amp torch.autograd torch.backends torch.compiler torch.cuda torch.distributed torch.distributions "
    "torch.export torch.fft torch.func torch.functional torch.futures torch.fx torch.hub torch.jit torch.library "
    "torch.linalg torch.masked torch.multiprocessing torch.nested torch.nn torch.onnx torch.optim torch.overrides "
    "torch.profiler torch.quantization torch.random torch.serialization torch.signal torch.sparse torch.special "
    "torch.storage torch.testing torch.torch_version torch.types torch.utils torch.version torch.xpu"
).split()
"""Modules whose names are listed; of the others it is only known that they are there."""
_WITH_ALL_BELOW = (
    "torch.backends",
    "torch.autograd",
    "torch.cuda",
    "torch.distributions",
    "torch.nn",
    "torch.optim",
    "torch.utils",
)


@cache
def members(module: str) -> frozenset[str] | None:
    """What a module has and which modules lie in it; None where that is not listed."""
    names = _listed().get(module)
    return None if names is None else frozenset(names.split())


@cache
def _listed() -> dict[str, str]:
    loaded: dict[str, str] = json.loads(PATH.read_text(encoding="utf-8"))
    return loaded


@cache
def importable(module: str, name: str = "") -> bool | None:
    """Whether ``import module``, or ``from module import name``, finds it in torch; None where that is not listed."""
    parts = [*module.split("."), *([name] if name else [])]
    if name.startswith("__"):
        return None
    for at in range(1, len(parts)):
        known = members(".".join(parts[:at]))
        if known is None:
            return None
        if parts[at] not in known:
            return False
    return True


def collect() -> dict[str, str]:
    """Module → its names, and those of the modules below it, in one string."""
    import importlib
    import pkgutil

    found = {}
    for module in _modules():
        try:
            made = importlib.import_module(module)
        except ImportError:  # it needs a library that is not installed
            continue
        names = {one for one in dir(made) if not (one.startswith("__") and one.endswith("__"))}
        names |= set(getattr(made, "_deprecated_attrs", ()))
        names |= {one.name for one in pkgutil.iter_modules(vars(made).get("__path__", ()))}
        found[module] = " ".join(sorted(names))
    return found


def _modules() -> Iterator[str]:
    import importlib
    import pkgutil

    waiting = list(_NAMES_OF)
    while waiting:
        module = waiting.pop(0)
        yield module
        if module in _WITH_ALL_BELOW or module.startswith(tuple(f"{m}." for m in _WITH_ALL_BELOW)):
            try:
                path = vars(importlib.import_module(module)).get("__path__", ())
            except ImportError:
                continue
            below = [one.name for one in pkgutil.iter_modules(path)]
            waiting += [f"{module}.{one}" for one in below if not one.startswith("_")]


if __name__ == "__main__":
    PATH.write_text(json.dumps(collect(), indent=1) + "\n", encoding="utf-8")

"""Every layer rule carries torch's state_dict to Flax and back, bit for bit."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from flax import nnx

from migrator import load_state_dict, to_state_dict
from rules import definitions
from rules.registry import LAYERS, Unsupported


def examples() -> Iterator[Any]:
    """(torch constructor source) of every example of every layer rule."""
    for name, rules in definitions.index("layer").items():
        for rule in rules:
            importlib.import_module(f"rules.layers.{rule.file.path.stem}")
            for source in rule.example:
                yield pytest.param(name, source, id=source)


def build(name: str, source: str) -> Any:
    """What the rule makes of a constructor call."""
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    scope = {"torch": torch, "nn": torch.nn}
    args = [eval(ast.unparse(a), scope) for a in call.args]
    kwargs = {str(k.arg): eval(ast.unparse(k.value), scope) for k in call.keywords}
    for definition in LAYERS[name]:
        signature = inspect.signature(definition.function)
        if "rngs" in signature.parameters:
            kwargs["rngs"] = nnx.Rngs(0)
        try:
            signature.bind(*args, **kwargs)
            return definition.function(*args, **kwargs)
        except (TypeError, Unsupported):
            continue
    raise AssertionError(f"no rule of {name} takes {source}")


@pytest.mark.parametrize(("name", "source"), list(examples()))
def test_state_goes_there_and_back(name: str, source: str) -> None:
    module = eval(source, {"torch": torch, "nn": torch.nn})
    state = {
        k: torch.rand_like(v) if v.is_floating_point() else v
        for k, v in module.state_dict().items()
    }
    flax_module = build(name, source)
    if not isinstance(flax_module, nnx.Module):
        assert not state, f"{source} has weights, but its rule makes a function"
        return
    load_state_dict(flax_module, state)
    found = to_state_dict(flax_module)
    assert set(found) == set(state)
    for key, tensor in state.items():
        assert found[key].dtype == tensor.numpy().dtype
        assert found[key].tobytes() == tensor.numpy().tobytes()

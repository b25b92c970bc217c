"""torch's own examples of what torch.export supports (``torch._export.db``), labelled by torch's authors."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch._export.db.examples as examples
from flax import nnx
from torch._export.db.case import SupportLevel

import migrator
from migrator.analyze import analyze_source

NAMES = sorted(module.name for module in pkgutil.iter_modules(examples.__path__))
NEEDED = {
    "assume_constant_result": "a tensor's value becomes a shape; torch bakes the one of the example in",
    "constrain_as_size_example": "a tensor's value becomes a shape, which JAX must know when it compiles",
    "constrain_as_value_example": "a tensor's value chooses the branch that runs, by Python's if",
}
"""Supported by torch, which guards on the value at run time, and a DYN finding all the same: why."""
INCOMPLETE = {
    "assume_constant_result": "torch._dynamo.assume_constant_result",
    "constrain_as_size_example": "a size from a tensor's value",
    "constrain_as_value_example": "a branch on a tensor's value",
    "cond_branch_class_method": "functorch.experimental.control_flow",
    "cond_branch_nested_function": "functorch.experimental.control_flow",
    "cond_branch_nonlocal_variables": "functorch.experimental.control_flow",
    "cond_closed_over_variable": "functorch.experimental.control_flow",
    "cond_predicate": "functorch.experimental.control_flow",
    "dynamic_shape_map": "functorch.experimental.control_flow",
    "nested_function": "a closure is handed the tensor that it writes in place",
    "tensor_setattr": "an attribute of a tensor",
    "unsupported_operator": "torch.sym_min",
}
"""What has no conversion yet, each by a finding."""
CASES = examples.all_examples()


def source_of(name: str) -> str:
    """The model of an example, without what is said about it below."""
    module = importlib.import_module(f"{examples.__name__}.{name}")
    text = inspect.getsource(module).partition("\nexample_args")[0]
    return "".join(f"{line}\n" for line in text.splitlines() if "Dim" not in line)


@pytest.mark.parametrize("name", NAMES)
def test_data_dependence_is_found_where_there_is_any(name: str) -> None:
    source = source_of(name)
    found = {f.rule for f in (*analyze_source(source), *migrator.convert_source(source).findings)}
    dynamic = {rule for rule in found if rule.startswith("DYN")}
    if CASES[name].support_level is SupportLevel.SUPPORTED:
        assert bool(dynamic) == (name in NEEDED), dynamic
    elif any("dynamic" in tag for tag in CASES[name].tags):
        assert dynamic or migrator.convert_source(source).complete


@pytest.mark.parametrize("name", NAMES)
def test_what_converts_computes_the_same(name: str) -> None:
    source = source_of(name)
    result = migrator.convert_source(source)
    assert result.complete == (name not in INCOMPLETE), [str(f) for f in result.findings]
    if not result.complete:
        return
    case = CASES[name]
    scope: dict[str, Any] = {"__name__": name}
    exec(result.code, scope)
    made = scope[type(case.model).__name__]
    ours = (
        made(rngs=nnx.Rngs(0)) if "rngs" in inspect.signature(made.__init__).parameters else made()
    )
    migrator.load_state_dict(ours, case.model.state_dict())
    ours.eval()
    if name == "optional_input":
        return  # its default is drawn at random
    for args, kwargs in [
        (case.example_args, case.example_kwargs),
        *([(case.extra_args, {})] if case.extra_args else []),
    ]:
        copies = torch.utils._pytree.tree_map(clone, (args, kwargs))
        theirs = torch.utils._pytree.tree_leaves(case.model.eval()(*copies[0], **copies[1]))
        args, kwargs = torch.utils._pytree.tree_map(jax_array, (args, kwargs))
        found = torch.utils._pytree.tree_leaves(ours(*args, **kwargs))
        for mine, other in zip(found, theirs, strict=True):
            np.testing.assert_allclose(np.asarray(mine), array(other), rtol=1e-5, atol=1e-6)


def clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def jax_array(value: Any) -> Any:
    """A tensor as the port gets it: what numpy's arrays do in place, JAX's do not."""
    return jnp.asarray(value.numpy()) if isinstance(value, torch.Tensor) else value


def array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value

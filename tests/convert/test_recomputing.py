"""Gradient checkpointing written by hand, and the parameters that are named for it."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrator.project import convert_path
from tests.convert.tools import HEADER, X, both, rules_of

CHECKPOINT = '''def checkpoint(func, inputs, params, flag):
    """Evaluate a function without caching intermediate activations."""
    if flag:
        args = tuple(inputs) + tuple(params)
        return CheckpointFunction.apply(func, len(inputs), *args)
    else:
        return func(*inputs)


class CheckpointFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run_function, length, *args):
        ctx.run_function = run_function
        ctx.input_tensors = list(args[:length])
        ctx.input_params = list(args[length:])
        with torch.no_grad():
            output_tensors = ctx.run_function(*ctx.input_tensors)
        return output_tensors

    @staticmethod
    def backward(ctx, *output_grads):
        ctx.input_tensors = [x.detach().requires_grad_(True) for x in ctx.input_tensors]
        with torch.enable_grad():
            # an operation that writes to its input needs a copy
            shallow_copies = [x.view_as(x) for x in ctx.input_tensors]
            output_tensors = ctx.run_function(*shallow_copies)
        input_grads = torch.autograd.grad(
            output_tensors,
            ctx.input_tensors + ctx.input_params,
            output_grads,
            allow_unused=True,
        )
        del ctx.input_tensors
        del ctx.input_params
        del output_tensors
        return (None, None) + input_grads

'''
BLOCK = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(self._forward, (x, x + 1), self.parameters(), True)

    def _forward(self, x, y):
        return torch.tanh(self.a(x)) * self.b(y)
"""


def test_the_function_runs_and_has_its_own_gradient() -> None:
    model, port, code = both(CHECKPOINT + BLOCK)
    assert "return run_function(*args[:length])" in code
    x = X.clone().requires_grad_()
    want = model(x)
    want.square().sum().backward()
    array = jnp.asarray(X.numpy())
    np.testing.assert_allclose(port(array), want.detach().numpy(), atol=1e-6)
    found, by_input = nnx.grad(lambda m, a: jnp.square(m(a)).sum(), argnums=(0, 1))(port, array)
    np.testing.assert_allclose(by_input, x.grad.numpy(), atol=1e-5)
    np.testing.assert_allclose(found["a"]["kernel"][...], model.a.weight.grad.numpy().T, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("list(args[:length])", "list(args[1:length])"),
        ("ctx.run_function(*shallow_copies)", "ctx.run_function(*ctx.input_tensors)[0]"),
        ("return output_tensors\n", "return output_tensors * 2\n"),
        ("(None, None) + input_grads", "(None, None) + input_grads[::-1]"),
        ("output_grads,\n            allow", "output_grads[0],\n            allow"),
        ("ctx.run_function = run_function", "ctx.run_function = wrap(run_function)"),
    ],
)
def test_what_does_anything_else_is_a_finding(old: str, new: str) -> None:
    assert old in CHECKPOINT
    assert "TRC009" in rules_of(CHECKPOINT.replace(old, new) + BLOCK)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tuple(inputs) + tuple(params)", "tuple(params) + tuple(inputs)"),
        ("len(inputs), *args", "len(inputs) + 1, *args"),
        ("return func(*inputs)", "return func(*inputs) * next(iter(params)).sum()"),
    ],
)
def test_parameters_that_are_read_for_more_are_a_finding(old: str, new: str) -> None:
    assert old in CHECKPOINT
    assert "API007" in rules_of(CHECKPOINT.replace(old, new) + BLOCK)


def test_the_two_may_stand_in_two_files(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "util.py").write_text("import torch\n\n" + CHECKPOINT)
    (package / "model.py").write_text(HEADER + "from .util import checkpoint\n\n" + BLOCK)
    result = convert_path([package], tmp_path / "out", jobs=1)
    assert all(file.complete for file in result.files), result.findings


def test_the_precision_may_be_kept_for_the_second_run() -> None:
    kept = """        ctx.gpu_autocast_kwargs = {"enabled": torch.is_autocast_enabled(),
                                   "cache_enabled": torch.is_autocast_cache_enabled()}
"""
    after, begin = "ctx.input_params = list(args[length:])\n", "with torch.enable_grad():"
    source = CHECKPOINT.replace(after, after + kept).replace(
        begin, "with torch.enable_grad(), torch.cuda.amp.autocast(**ctx.gpu_autocast_kwargs):"
    )
    assert not rules_of(source + BLOCK)

"""What the tests of the passes share."""

from __future__ import annotations

import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from migrator.convert import ConvertResult, convert_source

HEADER = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


"""


def convert(source: str) -> ConvertResult:
    """Convert a snippet under the usual imports."""
    return convert_source(HEADER + textwrap.dedent(source).strip("\n") + "\n")


def body(source: str, name: str) -> str:
    """The converted definition called ``name``, without what stands before it."""
    code = convert(source).code
    start = code.index(f"{name}(")
    start = code.rindex("\n", 0, start) + 1
    lines = code[start:].splitlines()
    kept = [lines[0]]
    for line in lines[1:]:
        if line and not line[0].isspace() and not line.startswith(")"):
            break
        kept.append(line)
    return "\n".join(kept).rstrip() + "\n"


def function(*lines: str) -> str:
    """The converted lines of a function of two tensors ``x`` and ``y``, an int ``n`` and a mask."""
    head = "def f(x: torch.Tensor, y: torch.Tensor, n: int, mask: torch.BoolTensor):\n"
    text = body(head + "".join(f"    {line}\n" for line in lines), "def f")
    return textwrap.dedent("\n".join(text.splitlines()[1:])).strip("\n")


def module(init: str, forward: str = "return x") -> str:
    """The converted class of a module with these lines in ``__init__`` and ``forward``."""
    source = "class M(nn.Module):\n    def __init__(self, dim: int):\n        super().__init__()\n"
    source += textwrap.indent(textwrap.dedent(init), " " * 8) + "\n"
    source += (
        "    def forward(self, x):\n" + textwrap.indent(textwrap.dedent(forward), " " * 8) + "\n"
    )
    return body(source, "class M")


def rules_of(source: str) -> list[str]:
    """The codes of what blocks a conversion."""
    return [f.rule for f in convert(source).findings if f.blocks]


X = torch.linspace(-1, 1, 12).reshape(3, 4)


def loaded(source: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What a source and its conversion, which is complete, define; and the converted code."""
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    theirs: dict[str, Any] = {}
    exec(HEADER + source, theirs)
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    return theirs, ours, result.code


def pair(theirs: dict[str, Any], ours: dict[str, Any], built: str) -> tuple[torch.nn.Module, Any]:
    """What ``Net(3, True)`` makes on either side, with the same weights."""
    torch.manual_seed(0)
    model = eval(built, theirs)
    comma = "" if built.endswith("()") else ", "
    port = eval(f"{built[:-1]}{comma}rngs=nnx.Rngs(0))", {**ours, "nnx": nnx})
    migrator.load_state_dict(port, model.state_dict())
    return model, port


def same(model: torch.nn.Module, port: Any, x: np.ndarray, jit: bool = False) -> None:
    """Compare what both give for an input, a tensor or a tuple of some."""
    run = nnx.jit(lambda module, x: module(x)) if jit else lambda module, x: module(x)
    want, got = model(torch.tensor(x)), run(port, jnp.asarray(x))
    pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
    for one, other in pairs:
        np.testing.assert_allclose(other, one.detach().numpy(), rtol=1e-4, atol=1e-5)


def both(source: str, *args: object) -> tuple[torch.nn.Module, Any, str]:
    """``M`` of the source and of its conversion with the same weights, and the converted code."""
    theirs, ours, code = loaded(source)
    torch.manual_seed(0)
    model, port = theirs["M"](*args), ours["M"](*args, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    return model, port, code


def check(source: str, *args: object) -> str:
    """Convert ``M``, carry the weights over, compare its output on ``X``; the converted code."""
    model, port, code = both(source, *args)
    port.eval()
    assert set(migrator.to_state_dict(port)) == set(model.state_dict())
    want = model.eval()(X).detach().numpy()
    run = nnx.jit(lambda m, x: m(x))
    np.testing.assert_allclose(run(port, jnp.asarray(X.numpy())), want, atol=1e-5)
    run(port, jnp.asarray(X.numpy()))  # a module that kept what was only traced fails here
    return code


REFUSED_BY_TORCH = (RuntimeError, TypeError, AttributeError, ValueError, IndexError, KeyError)
"""What a program raises that torch or Python does not take: a write to a leaf, an item given to a tuple."""


def ported(source: str) -> tuple[dict[str, Any], str] | None:
    """What the conversion of a whole source defines, and its code; None where it is refused."""
    result = convert_source(source)
    if any(one.blocks for one in result.findings):
        return None
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    return ours, result.code


def sides(source: str) -> tuple[list[int], dict[str, Any], dict[str, Any]]:
    """The lines of a source under HEADER that block its conversion, and what it and its conversion define."""
    result = convert_source(source)
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    exec(source, theirs)
    exec(result.code, ours)
    return [one.line for one in result.findings if one.blocks], theirs, ours


def under(head: str, lines: str) -> str:
    """A function of that first line, with statements that stand between semicolons."""
    return head + "".join(f"    {line.strip()}\n" for line in lines.split(";"))


def compare_gradients(source: str, x: torch.Tensor, *others: torch.Tensor) -> None:
    """``f(x, *others)`` of a source and of its conversion under jit: the same value, and the same gradient of x."""
    theirs, ours, _ = loaded(source)
    leaf = x.clone().requires_grad_()
    want = theirs["f"](leaf, *others)
    weight = torch.linspace(0.5, 1.5, want.numel()).reshape(want.shape)
    (want * weight).sum().backward()
    arrays = [jnp.asarray(one.numpy()) for one in (x, *others)]
    np.testing.assert_allclose(jax.jit(ours["f"])(*arrays), want.detach(), rtol=1e-5)
    slope = jax.jit(jax.grad(lambda *given: (ours["f"](*given) * weight.numpy()).sum()))
    assert leaf.grad is not None
    np.testing.assert_allclose(slope(*arrays), leaf.grad, rtol=1e-4, atol=1e-6)

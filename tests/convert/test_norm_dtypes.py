"""Normalisation in float32 of an input in half precision: the result has the input's dtype."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, convert, loaded

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = {norm}

    def forward(self, x):
        y = self.norm(x.to(torch.{dtype}))
        return y, y + torch.ones(8, dtype=y.dtype)
"""
NORMS = (
    "nn.LayerNorm(8)",
    "nn.LayerNorm(8, bias=False)",
    "nn.LayerNorm([8])",
    "nn.LayerNorm((6, 8))",
    "nn.LayerNorm(8, elementwise_affine=False)",
    "nn.RMSNorm(8)",
    "nn.RMSNorm(8, elementwise_affine=False)",
    "nn.GroupNorm(3, 6)",
    "nn.BatchNorm1d(6)",
    "nn.InstanceNorm1d(6, affine=True)",
)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("norm", NORMS)
def test_result_has_the_dtype_of_the_input(norm: str, dtype: str) -> None:
    theirs, ours, _ = loaded(MODEL.format(norm=norm, dtype=dtype))
    torch.manual_seed(0)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for value in model.parameters():
        torch.nn.init.normal_(value)
    migrator.load_state_dict(port, model.state_dict())
    x = torch.randn(4, 6, 8, requires_grad=True)
    given, along = jnp.asarray(x.detach().numpy()), torch.randn(4, 6, 8)
    for y, made in zip(model(x), port(given), strict=True):
        assert str(y.dtype) == f"torch.{made.dtype}"
        want = y.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(made, np.float32), want, rtol=2e-2, atol=2e-2)

    def loss(port: nnx.Module, x: jax.Array) -> jax.Array:
        return (port(x)[0].astype(jnp.float32) * along.numpy()).sum()

    of_port, of_x = nnx.grad(loss, argnums=(0, 1))(port, given)
    (model(x)[0].float() * along).sum().backward()
    np.testing.assert_allclose(of_x, x.grad, rtol=3e-2, atol=3e-2)
    grads = migrator.to_state_dict(of_port, like=port)
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(grads[name], parameter.grad, rtol=3e-2, atol=2e-1, err_msg=name)


def test_what_reads_the_layers_finds_them_the_same() -> None:
    """Attributes, and classes that are asked for, are those of the layer itself."""
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        for m in self.modules():
            if isinstance(m, nn.LayerNorm):
                nn.init.constant_(m.weight, 0.5)

    def forward(self, x):
        return F.layer_norm(x.half(), (8,), self.norm.weight, None, self.norm.eps), self.norm(x.half())
"""
    theirs, ours, _ = loaded(source)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    x = torch.randn(2, 8)
    for y, made in zip(model(x), port(jnp.asarray(x.numpy())), strict=True):
        assert str(y.dtype) == f"torch.{made.dtype}"
        want = y.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(made, np.float32), want, rtol=2e-3, atol=2e-3)


def test_a_file_of_one_float_type_keeps_flax_layers() -> None:
    source = MODEL.format(norm="nn.LayerNorm(8)", dtype="float32")
    assert "nnx.LayerNorm(8, epsilon=1e-5" in convert(source).code
    assert migrator.convert_source(HEADER + source).complete


CLASSES = """
class L(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x)


class Named(nn.LayerNorm):
    def __init__(self, n):
        super().__init__(n, eps=1e-6)


class R(nn.RMSNorm):
    pass


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = L(8), Named(8), R(8)

    def forward(self, x):
        x = x.bfloat16()
        return self.a(x), self.b(x), self.c(x)
"""


def test_classes_that_derive_from_a_norm() -> None:
    theirs, ours, _ = loaded(CLASSES)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for value in model.parameters():
        torch.nn.init.normal_(value)
    migrator.load_state_dict(port, model.state_dict())
    x = torch.randn(2, 8)
    for y, made in zip(model(x), port(jnp.asarray(x.numpy())), strict=True):
        assert str(y.dtype) == f"torch.{made.dtype}"
        want = y.detach().float().numpy()
        np.testing.assert_allclose(np.asarray(made, np.float32), want, rtol=2e-2, atol=2e-2)

"""Modules in another type: ``half()``, ``to(dtype)``, and ``to(device)``, which is nothing here."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, X, check, convert, loaded, rules_of

MODEL = """
class Part(nn.Module):
    def __init__(self, {params}):
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.fc = nn.Linear(4, 4){cast}
        self.norm = nn.LayerNorm(4)
        self.act = nn.ReLU(){cast}
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("steps", torch.arange(4))
        self.register_buffer("shift", torch.linspace(0, 1, 4))
        {line}

    def forward(self, x):
        y = self.emb(x).to(self.fc.weight.dtype)
        return self.act(self.norm(self.fc(y).to(self.norm.weight.dtype)) * self.scale + self.shift)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part({args}){whole}

    def forward(self, x):
        return self.part(x)
"""


def compare(source: str) -> str:
    """The port has torch's types and results; its code."""
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    theirs: dict[str, Any] = {}
    exec(HEADER + source, theirs)
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    torch.manual_seed(0)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    kept = [one for _, one in nnx.to_flat_state(nnx.state(port, nnx.Not(nnx.RngState)))]
    types = Counter(str(one[...].dtype) for one in kept)
    torchs = Counter(str(v.dtype).removeprefix("torch.") for v in model.state_dict().values())
    assert types["bfloat16"] == torchs["bfloat16"]
    assert types["float32"] == torchs["float32"]
    migrator.load_state_dict(port, model.state_dict())
    x = torch.tensor([[1, 2], [6, 0]])
    expected, found = model(x), port(jnp.asarray(x.numpy()))
    assert str(found.dtype) == str(expected.dtype).removeprefix("torch.")
    ours_as_float = np.asarray(found.astype(jnp.float32))
    np.testing.assert_allclose(ours_as_float, expected.detach().float().numpy(), atol=0.02)
    code: str = result.code
    return code


@pytest.mark.parametrize(
    "line",
    [
        "self.bfloat16()",
        "self.to(torch.bfloat16)",
        "self.to('cpu', torch.bfloat16)",
        "self.to(device='cpu', dtype=torch.bfloat16)",
        "self.half().float().bfloat16()",
    ],
)
def test_a_module_casts_itself(line: str) -> None:
    compare(MODEL.format(params="n=1", cast="", line=line, args="", whole=""))


@pytest.mark.parametrize("cast", [".bfloat16()", ".to(torch.bfloat16)", ".to(dtype=torch.float32)"])
def test_layers_are_cast(cast: str) -> None:
    compare(MODEL.format(params="n=1", cast=cast, line="", args="", whole=""))


@pytest.mark.parametrize(
    ("args", "whole"),
    [
        ("torch.bfloat16", ""),
        ("torch.float32", ".bfloat16()"),
        ("'cpu'", ".to(torch.zeros(1, dtype=torch.bfloat16))"),
    ],
)
def test_what_only_a_run_tells(args: str, whole: str) -> None:
    """A parameter may hold a type or a place."""
    kept = MODEL.format(params="kind", cast=".to(kind)", line="", args=args, whole=whole)
    assert "cast_module" in compare(kept)


def test_a_move_is_nothing() -> None:
    source = MODEL.format(params="device", cast=".to(device)", line="", args="'cpu'", whole="")
    source = source.replace("        \n", "        self.to(device)\n        self.cpu()\n")
    code = compare(source)
    assert "cast_module" not in code
    assert "        self\n" not in code


def test_what_torch_has_of_64_bits() -> None:
    assert rules_of(
        MODEL.format(params="n=1", cast="", line="self.double()", args="", whole="")
    ) == ["DTY002"]


def test_a_cast_to_integers_is_refused_as_in_torch() -> None:
    source = MODEL.format(params="n=1", cast="", line="self.to(torch.int32)", args="", whole="")
    names: dict[str, Any] = {}
    exec(convert(source).code, names)
    with pytest.raises(TypeError, match="floating point"):
        names["M"](rngs=nnx.Rngs(0))


def test_a_module_that_moves_itself_hands_the_type_on() -> None:
    own = """
    def to(self, *args, **kwargs):
        self = super().to(*args, **kwargs)
        self.moved = True
        return self

    def cuda(self, device=None):
        super().cuda(device)
        return self

    def forward(self, x):
        assert self.moved
"""
    source = MODEL.format(params="n=1", cast="", line="", args="", whole=".to(torch.bfloat16)")
    code = compare(source.replace("\n    def forward(self, x):\n", own, 1))
    assert "self = cast_module(self, *args, **kwargs)" in code


def test_a_distribution_that_the_forward_pass_keeps() -> None:
    """``self.q = None`` first: Flax is told that data follow."""
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.q = None

    def forward(self, x):
        if self.q is None:
            self.q = torch.distributions.Normal(self.l(x), 1.0)
        return self.q.log_prob(x)
"""
    theirs, ours, code = loaded(source)
    assert "self.q = nnx.data(None)" in code
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    out = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(out, model(X).detach(), rtol=1e-5, atol=1e-6)


def test_a_layer_of_complex_numbers() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 5).to(torch.cfloat)

    def forward(self, x):
        return torch.fft.irfft(self.l(torch.fft.rfft(x, dim=1)), dim=1)
"""
    )


DATA = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 3)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x


def cast(m: M):
    LINES
"""


@pytest.mark.parametrize(
    ("lines", "dtypes"),
    [
        ("m.l.weight.data = m.l.weight.data.half()", "16 32 32"),
        ("m.l.bias.data = m.l.bias.data.to(torch.float16)", "32 16 32"),
        ("for p in m.parameters():\n        p.data = p.data.half()", "16 16 16"),
        ("m.scale.data = m.scale.data.half().float()", "32 32 32"),
        ("m.scale.data = m.scale.data * 2", "32 32 32"),
        ("m.scale.data += torch.ones(4).half()", "32 32 32"),
        ("m.scale.data.copy_(torch.ones(4).half())", "32 32 32"),
    ],
)
def test_new_data_of_a_parameter_has_its_own_type(lines: str, dtypes: str) -> None:
    theirs, ours, _ = loaded(DATA.replace("LINES", lines))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    theirs["cast"](model)
    ours["cast"](port)
    state = migrator.to_state_dict(port)
    named = {name: one.detach().numpy() for name, one in model.named_parameters()}
    found = [str(named[name].dtype)[-2:] for name in ("l.weight", "l.bias", "scale")]
    assert found == dtypes.split()
    for name, one in named.items():
        assert state[name].dtype == one.dtype
        np.testing.assert_array_equal(state[name], one)


def test_new_data_of_a_tensor_has_its_own_type() -> None:
    source = """
def whole(x: torch.Tensor, y: torch.Tensor):
    h = x * 2
    h.data = y.half()
    return h


def part(x: torch.Tensor, y: torch.Tensor):
    h = x * 2
    h.data += y.half()
    return h
"""
    theirs, ours, _ = loaded(source)
    x, y = torch.linspace(0, 1, 4), torch.linspace(2, 3, 4)
    for name in ("whole", "part"):
        want = theirs[name](x, y).numpy()
        got = ours[name](jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-3)


@pytest.mark.parametrize(
    ("line", "dtype"),
    [
        ("l.weight.data = l.weight.data.half()", "float16"),
        ("l.weight.data = l.weight.data.to(torch.float16)", "float16"),
        ("l.weight.data = l.weight.data * 2", "float32"),
        ("l.weight.data.mul_(2)", "float32"),
    ],
)
def test_new_data_of_a_layer_of_any_class_has_its_own_type(line: str, dtype: str) -> None:
    lines = f"for l in m.modules():\n        if hasattr(l, 'weight'):\n            {line}"
    theirs, ours, _ = loaded(DATA.replace("m: M", "m: nn.Module").replace("LINES", lines))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    theirs["cast"](model)
    ours["cast"](port)
    state = migrator.to_state_dict(port)
    assert state["l.weight"].dtype == dtype
    for name, one in model.named_parameters():
        np.testing.assert_array_equal(state[name], one.detach().numpy())

"""In-place writes become rebindings where nobody else sees them, findings where somebody does."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source
from migrator.weights import to_state_dict
from tests.convert.tools import both, check, function, loaded, rules_of, same

HEAD = "def f(x: torch.Tensor, y: torch.Tensor, n: int, mask: torch.BoolTensor):\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["z = x + 1", "z.add_(y)", "return z"], "z = x + 1\nz = z + y\nreturn z", id="method"
        ),
        pytest.param(
            ["z = x * 2", "z[0] = y", "return z"],
            "z = x * 2\nz = z.at[0].set(y)\nreturn z",
            id="item",
        ),
        pytest.param(
            ["z = x * 2", "z[0] += 1", "return z"],
            "z = x * 2\nz = z.at[0].add(1)\nreturn z",
            id="augmented item",
        ),
        pytest.param(
            ["z = x * 2", "z[z > 0] = 1.0", "return z"],
            "z = x * 2\nz = jnp.where(z > 0, 1.0, z)\nreturn z",
            id="mask computed from the tensor itself",
        ),
        pytest.param(
            ["z = x + 1", "z += y", "return z"], "z = x + 1\nz += y\nreturn z", id="augmented name"
        ),
        pytest.param(
            ["z = x + 1", "y = F.relu(z, inplace=True)", "return y + z"],
            "z = x + 1\nz = jax.nn.relu(z)\ny = z\nreturn y + z",
            id="inplace=True, the tensor read later",
        ),
        pytest.param(
            ["z = x + 1", "F.elu(z, 0.5, True)", "torch.tanh_(z)", "return z"],
            "z = x + 1\nz = jax.nn.elu(z, 0.5)\nz = jnp.tanh(z)\nreturn z",
            id="functions that work in place",
        ),
        pytest.param(
            ["z = x + 1", "z.gt_(0)", "return z"],
            "z = x + 1\nz = (z > 0).astype(z.dtype)\nreturn z",
            id="a comparison in place keeps the dtype",
        ),
        pytest.param(
            ["z = torch.empty(3)", "torch.add(x, y, out=z)", "return z"],
            "z = jnp.empty((3,))\nz = x + y\nreturn z",
            id="out",
        ),
        pytest.param(["return (x + 1).mul_(y)"], "return (x + 1) * y", id="temporary"),
        pytest.param(
            ["return x[0].unsqueeze_(0).transpose_(0, 1) + y"],
            "return x[0][None].swapaxes(0, 1) + y",
            id="a part has a shape of its own",
        ),
        pytest.param(
            ["return x.transpose(0, 1).unsqueeze_(0) + y, x"],
            "return x.swapaxes(0, 1)[None] + y, x",
            id="a view has a shape of its own",
        ),
    ],
)
def test_rewrite(lines: list[str], expected: str) -> None:
    assert function(*lines) == expected


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        pytest.param(
            ["z = x + 1", "w = z[0]", "w += 1", "return z"],
            "MUT001",
            id="a view is written, its base is read",
        ),
        pytest.param(["z = x + 1", "w = z", "w.mul_(2)", "return z"], "MUT001", id="another name"),
        pytest.param(
            ["z = x + 1", "w = z.view(-1)", "z[0] = 1", "return w"],
            "MUT001",
            id="a view of the written",
        ),
        pytest.param(
            ["z = x + 1", "for row in z:", "    row.add_(1)", "return z"],
            "MUT001",
            id="rows in a loop",
        ),
        pytest.param(
            ["z = x.contiguous().unsqueeze_(0) + y", "return z, x"],
            "MUT001",
            id="what may be the tensor itself has another shape",
        ),
        pytest.param(
            ["z = x + 1", "y = F.dropout(z, 0.5, True, n > 1)", "return y + z"],
            "MUT002",
            id="perhaps in place, old value read",
        ),
        pytest.param(
            ["z = x + 1", "z[mask] = y", "return z"], "DYN001", id="values placed by a mask"
        ),
    ],
)
def test_somebody_else_sees_the_write(lines: list[str], rule: str) -> None:
    assert rule in rules_of(HEAD + "".join(f"    {line}\n" for line in lines))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["z = [x, y]", "z[0] = y", "return z[0]"], id="a list's item"),
        pytest.param(["z = {}", "z['a'] = x", "return z['a']"], id="a dict's item"),
        pytest.param(["n += 1", "return n"], id="a number"),
        pytest.param(["z = []", "z.append(x)", "return z"], id="a list's method"),
    ],
)
def test_not_a_tensor(lines: list[str]) -> None:
    assert function(*lines) == "\n".join(lines)


def test_an_argument_may_be_changed_when_no_caller_looks_again() -> None:
    safe = """
    class Add(nn.Module):
        def forward(self, x):
            x += 1
            return x

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.add = Add()

        def forward(self, x):
            x = x * 2
            x = self.add(x)
            return x
    """
    assert rules_of(safe) == []
    assert "MUT003" in rules_of(safe.replace("x = self.add(x)", "x = x + self.add(x) + x"))


def test_a_sequential_that_starts_with_an_in_place_layer() -> None:
    source = """
    class Residual(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.block = nn.Sequential(nn.ELU(inplace=True), nn.Linear(d, d))

        def forward(self, x):
            return x + self.block(x)
    """
    assert "MUT002" in rules_of(source.replace("ELU", "RReLU"))  # which draws
    assert rules_of(source) == []  # compared in test_front_in_place.py
    assert rules_of(source.replace("inplace=True", "inplace=False")) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = x + F.relu(x, inplace=True)", id="the same tensor left of the write"),
        pytest.param("x = x * x.add_(1)", id="a method in the middle"),
    ],
)
def test_the_written_tensor_stands_in_the_same_expression(line: str) -> None:
    assert rules_of(HEAD + f"    x = y + 1\n    {line}\n    return x\n") == ["MUT002"]


def test_an_attribute_that_holds_the_same_tensor() -> None:
    source = """
    class M(nn.Module):
        def forward(self, x: torch.Tensor):
            y = x * 1
            self.last = y
            y += 1
            return y * self.last
    """
    assert rules_of(source) == ["MUT001"]
    assert rules_of(source.replace("y += 1", "y = y + 1")) == []


def test_each_name_of_a_map_has_the_memory_of_its_own_argument() -> None:
    source = """
def f(x: torch.Tensor, y: torch.Tensor):
    x, y = x + 1, y + 1
    a, b = map(lambda t: t.view(-1), (x, {given}))
    b.mul_(2)
    return a
"""
    assert rules_of(source.format(given="y")) == []
    assert rules_of(source.format(given="x")) == ["MUT001"]
    assert rules_of(source.format(given="y").replace("t.view", "x.view")) == ["MUT001"]


def test_what_a_map_reckons_with_is_not_what_it_gives() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Linear(4, 4)
        self.heads = 2
        self.register_buffer("state", torch.ones(4))

    def forward(self, x):
        q, v = map(lambda t: {body}, (x, self.v(x)))
        v.mul_(2)
        return q + v + self.state
"""
    assert rules_of(source.format(body="t.reshape(-1, self.heads).view(-1, 4)")) == []
    assert rules_of(source.format(body="t if self.heads > 2 else self.state"))


@pytest.mark.parametrize("made", ["abs(x)", "pow(x, 2)", "round(x)"])
def test_what_functions_of_python_make_of_tensors_is_new(made: str) -> None:
    lines = function(f"y = {made}", "y[0] = 0", "return x + y")
    assert ".at[0]" in lines


@pytest.mark.parametrize(
    ("lines", "made"),
    [
        (
            ["x = x * 2", "z = torch.mul(x, y, out=x)", "return z + x"],
            "x = x * 2\nx = x * y\nz = x\nreturn z + x",
        ),
        (["x = x * 2", "x = torch.add(x, y, out=x)", "return x"], "x = x * 2\nx = x + y\nreturn x"),
    ],
)
def test_the_result_of_a_call_that_writes_elsewhere(lines: list[str], made: str) -> None:
    assert function(*lines) == made


@pytest.mark.parametrize(
    "lines",
    [
        "k = x\n    z = torch.add(x, y, out=x)\n    return z + k",
        "z = torch.add(x, y, out=x)\n    z += 1\n    return z + x",
    ],
)
def test_others_who_see_what_a_call_writes(lines: str) -> None:
    source = f"def f(x: torch.Tensor, y: torch.Tensor):\n    x = x * 2\n    {lines}\n"
    assert rules_of(source) == ["MUT001"]


@pytest.mark.parametrize(
    "line",
    ["return 1 / x.abs().max(-1).values.clamp_(min=1)", "return torch.sort(x)[0].mul_(2)"],
)
def test_a_part_of_what_the_expression_makes_is_nobodys(line: str) -> None:
    assert function(line) == function(line.replace("_(", "("))
    kept = (
        "def f(x: torch.Tensor):\n    found = x.max(-1)\n    y = found.values.mul_(2) + 1\n"
        "    return y, found.values\n"
    )
    assert rules_of(kept) == ["MUT002"]


def test_a_function_that_only_writes_to_its_arguments_needs_a_caller() -> None:
    several = "def f(x: torch.Tensor, y: torch.Tensor):\n    x[0] = 1\n    y[0] = 1\n"
    assert rules_of(several) == ["MUT003", "MUT003"]
    assert rules_of("def f(x, i):\n    x[:, 0] = 0\n    x[..., i] = 0\n") == ["MUT003", "MUT003"]
    assert rules_of("def f(x: torch.Tensor):\n    x.add_(1)\n") == []  # it returns x
    assert rules_of(several + "    return y\n") == []


@pytest.mark.parametrize(
    "lines",
    [
        "x = x.half()\n    x[:, 0].copy_(y)\n    return x",
        "x = x.half()\n    x[:, 1].add_(y).mul_(y.sum())\n    return x",
        "return (x.half() / 2).add_(y[:, None]).mul_(y[:, None])",
        "return (x.half() / 2).clamp_(y.min(), y.max()), (x.half() * 2).lerp_(x.half(), y.half()[:, None])",
    ],
)
def test_what_a_write_leaves_has_the_dtype_of_the_tensor(lines: str) -> None:
    source = f"import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor):\n    x = x.clone()\n    {lines}\n"
    theirs, ours, _ = loaded(source)
    x, y = np.linspace(-2, 2, 6, dtype=np.float32).reshape(3, 2), np.float32([0.5, -1, 1.5])
    expected, given = (
        theirs["f"](torch.tensor(x), torch.tensor(y)),
        ours["f"](jnp.asarray(x), jnp.asarray(y)),
    )
    for e, g in zip(*(v if isinstance(v, tuple) else (v,) for v in (expected, given)), strict=True):
        assert str(e.dtype).removeprefix("torch.") == str(g.dtype)
        np.testing.assert_allclose(np.asarray(g), e.numpy(), rtol=4e-3)
    in_a_list = f"{source}\ndef g(x, ys):\n    return [(x.half() * 2).add_(y) for y in ys]\n"
    assert [f.rule for f in convert_source(in_a_list).findings if f.blocks] == ["MUT002"]


def test_what_is_written_to_before_it_is_replaced() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)
        self.bn.weight.data = self.bn.weight.data.zero_().add(1.5)
        self.bn.bias.data = self.bn.bias.data.fill_(0.25)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen = self.seen.add_(1)
        return self.bn(x) + self.seen
"""
    model, port, _ = both(source)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(to_state_dict(port)[name], value)
    same(model, port, np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    read_too = "def f(m: nn.Linear):\n    m.weight.data = m.weight.data.zero_() + m.weight.data\n"
    assert rules_of(read_too) == ["MUT002"]


@pytest.mark.parametrize(
    "line",
    [
        "self.l.weight.data *= s",
        "self.l.weight *= torch.arange(3.0)",
        "self.l.weight += torch.arange(4.0)[:, None]",
        "self.l.weight.data /= torch.arange(1.0, 5.0)[:, None]",
        "self.l.weight -= torch.arange(12.0).view(4, 3); self.l.weight *= s; self.l.bias *= 2; self.l.bias += s",
        "self.c.weight *= s; self.c.weight.data *= torch.arange(3.0)[:, None]; self.c.bias += 1",
        "for m in self.modules():\n                if isinstance(m, nn.Linear):\n                    m.weight.data *= s",
    ],
)
def test_weights_of_layers_are_written_by_an_operator(line: str) -> None:
    source = f"""
class M(nn.Module):
    def __init__(self, s: float = 0.5):
        super().__init__()
        self.l = nn.Linear(3, 4)
        self.c = nn.Conv1d(3, 4, 1)
        with torch.no_grad():
            nn.init.constant_(self.l.weight, 0.3)
            nn.init.constant_(self.c.weight, 0.7)
            nn.init.zeros_(self.l.bias)
            nn.init.zeros_(self.c.bias)
            {line}

    def forward(self, x):
        return self.l(x) + self.c(x.mT).mT
"""
    theirs, ours, _ = loaded(source)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for name, want in model.state_dict().items():
        np.testing.assert_allclose(to_state_dict(port)[name], want, rtol=1e-6)


CHOSEN = """class Skip(nn.Module):
    def forward(self, x):
        return x.add_(1)


class M(nn.Module):
    def __init__(self, skip=True):
        super().__init__()
        self.skip = Skip() if skip else None

    def forward(self, x):
        x = x * 2
        y = x.abs()
        return {value}
"""


def test_what_is_read_where_nothing_was_written() -> None:
    check(CHOSEN.format(value="y + (self.skip(x) if self.skip is not None else x)"))


@pytest.mark.parametrize(
    "value",
    [
        "(self.skip(x) if self.skip is not None else x) + x",
        "(self.skip(x) + x if self.skip is not None else x)",
        "x * (self.skip(x) if self.skip is not None else y)",
    ],
)
def test_what_is_read_beside_what_is_written(value: str) -> None:
    assert "MUT003" in rules_of(CHOSEN.format(value=value))


@pytest.mark.parametrize("line", ["torch.fill_(x, 3.0)", "torch.zero_(x)"])
def test_functions_that_fill_a_tensor_write_to_it(line: str) -> None:
    """Their value alone would be dropped."""
    assert function(line, "return x").startswith("x = ")

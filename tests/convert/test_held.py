"""What a module's attributes hold: arrays in containers, a layer now and a function then, shapes of norms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, body, both, check, module, rules_of


def test_a_layer_takes_the_place_of_a_function() -> None:
    code = check("""
class B(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.act = nn.ReLU()
        self.gate = F.relu
        self.drop = False
        self.last = None
        self.norm = None
        if kind == "relu":
            self.norm = nn.Softmax(-1)
        elif kind == "prelu":
            self.norm = nn.LayerNorm(4)
        if kind == "prelu":
            self.act = nn.PReLU()
            self.gate = nn.PReLU()
            self.drop = nn.Dropout()
            self.last = nn.Tanh()

    def forward(self, x):
        x = self.gate(self.act(x))
        if self.drop:
            x = self.drop(x)
        x = self.norm(x)
        return x if self.last is None else self.last(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = B("relu")
        self.b = B("prelu")

    def forward(self, x):
        return self.a(x) + self.b(x)
""")
    assert "self.act = Stateless(jax.nn.relu)" in code
    assert "self.drop = nnx.data(None)" in code
    assert "self.last = None" in code


def test_a_layer_without_state_comes_later_where_modules_are_asked_for() -> None:
    """Then such a layer is a module too, which Flax takes in no attribute that held none."""
    code = check("""
def applied(layer, x):
    return layer(x) if isinstance(layer, nn.Module) else x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.pad = None
        self.act = None
        self.norm = False

    def setup(self):
        self.act = nn.Tanh()
        self.norm = nn.Softmax(-1)

    def forward(self, x):
        if self.pad is None:
            self.pad = nn.ZeroPad2d((0, x.shape[-1] % 3, 0, 1))
            self.setup()
        if self.norm:
            x = self.norm(x)
        return applied(self.act, self.pad(x))
""")
    assert "self.pad = nnx.data(None)" in code


def test_a_layer_and_a_function_in_two_branches() -> None:
    made = module("if dim:\n    self.l = nn.ReLU()\nelse:\n    self.l = nn.Linear(dim, 2)")
    assert "self.l = jax.nn.relu" in made


def test_false_that_is_compared_stays() -> None:
    made = module(
        "self.l = False\nif dim:\n    self.l = nn.Linear(dim, 2)\nself.k = self.l is False"
    )
    assert "self.l = False" in made


def test_arrays_in_containers() -> None:
    code = check("""
def tables(d):
    return torch.arange(d).float(), torch.ones(d)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = tables(4)
        self.steps = [(torch.ones(4), 2), (torch.zeros(4), 3)]
        self.named = {"mean": torch.full((4,), 0.5), "b": torch.ones(4)}

    def forward(self, x):
        a, b = self.pair
        x = (x - self.named["mean"]) * self.named["b"] * b + a
        for array, n in self.steps:
            x = x * n + array
        return x
""")
    assert "self.pair = nnx.data(tables(4))" in code
    assert "self.steps = nested_list([" in code
    assert "self.named = nnx.data({" in code


def test_a_dict_of_arrays_keeps_its_order() -> None:
    check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.named = {"b": torch.full((4,), 0.5), "a": torch.ones(4)}

    def forward(self, x):
        for value in self.named.values():
            x = torch.tanh(x * value) + value
        return x
""")


def test_arrays_in_a_dict_of_lists_are_a_finding() -> None:
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    assert rules_of(source + "        self.t = {'a': [torch.ones(2)]}\n") == ["API008"]


def test_a_list_of_registered_parameters() -> None:
    source = """
class M(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.kernels = []
        for i in range(n):
            w = nn.Parameter(torch.randn(4, 4))
            self.register_parameter(f"kernel_{i}", w)
            self.kernels.append(w)

    def forward(self, x):
        for i in range(2):
            x = x @ self.kernels[i]
        return x + sum(w.sum() for w in self.kernels)
"""
    assert "self.kernels = Unregistered([])" in check(source)
    forgotten = source.replace('            self.register_parameter(f"kernel_{i}", w)\n', "")
    assert rules_of(forgotten) == ["API008"]


def test_the_weight_of_a_layer_known_at_run_time() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4), nn.Embedding(3, 4)])
        self.scale = 2.0

    def forward(self, x):
        total = 0.0
        for m in self.blocks:
            total = total + (m.weight[:1] * x[:1]).sum()
        return x + total * self.scale
""")
    assert "weight_of(m)[:1]" in code


@pytest.mark.parametrize("affine", ["False", "aff"])
@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm"])
def test_a_norm_without_weight_over_axes_nobody_knows(kind: str, affine: str) -> None:
    source = f"""
class B(nn.Module):
    def __init__(self, shape, aff=False):
        super().__init__()
        self.norm = nn.{kind}(shape, elementwise_affine={affine})

    def forward(self, x):
        return self.norm(x)


class M(nn.Module):
    def __init__(self, *shapes):
        super().__init__()
        self.blocks = nn.ModuleList(B(s) for s in shapes)

    def forward(self, x):
        return sum(b(x) for b in self.blocks)
"""
    check(source, (3, 4), 4, [4])


def test_a_norm_over_a_shape_of_unknown_length() -> None:
    code = check(
        """
class M(nn.Module):
    def __init__(self, a: list[int], b=None):
        super().__init__()
        self.a = nn.LayerNorm(a, elementwise_affine=False)
        self.b = nn.LayerNorm(b or (3, 4))

    def forward(self, x):
        return self.b(self.a(x))
""",
        [3, 4],
    )
    assert "LayerNormNd(a, " in code


def test_in_place_keeps_a_narrow_dtype() -> None:
    source = """
def f(x: torch.Tensor, w: torch.Tensor):
    h = x.to(torch.bfloat16) * 1
    h += w
    h.mul_(w)
    h -= 2
    return h
"""
    made = body(source, "def f")
    assert "h = (h + w).astype(h.dtype)" in made
    assert "h = (h * w).astype(h.dtype)" in made
    assert "h -= 2" in made
    assert "h += w" in body(source.replace("bfloat16", "float32"), "def f")


def test_a_child_that_another_module_gives() -> None:
    code = check("""
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.extra = None

    def forward(self, x):
        return x if self.extra is None else self.extra(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Inner() for _ in range(2))
        self.blocks[0].extra = nn.Linear(4, 4)

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x
""")
    assert "self.extra = nnx.data(None)" in code


def test_a_layer_of_unknown_class_where_none_was() -> None:
    code = check("""
from typing import Optional


class B(nn.Module):
    def __init__(self, kinds, choice):
        super().__init__()
        self.last = None
        self.aux: Optional[nn.Module] = None
        make = kinds[choice]
        if choice:
            self.aux = make(4, 4)
        self.last = kinds[2]()

    def forward(self, x):
        return self.last(x if self.aux is None else self.aux(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        kinds = [nn.Identity, nn.Linear, nn.ReLU, nn.Bilinear]
        self.a = B(kinds, 0)
        self.b = B(kinds, 1)

    def forward(self, x):
        return self.b(self.a(x))
""")
    assert "self.aux = declared(" in code


@pytest.mark.parametrize("hint", ["", ": Optional[nn.Module]"])
def test_nobody_knows_what_takes_the_place_of_none(hint: str) -> None:
    code = check(f"""
from typing import Optional


class M(nn.Module):
    def __init__(self, block=None, act=None):
        super().__init__()
        self.aux{hint} = None
        self.act = None
        self.size = None
        block = block or nn.Linear
        act = act or F.relu
        if block is not None:
            self.aux = block(4, 4)
            self.act = act
        self.size = len([block])

    def forward(self, x):
        x = x if self.aux is None else self.aux(x)
        return (x if self.act is None else self.act(x)) * self.size
""")
    assert "self.aux = declared(build(block, 4, 4, rngs=rngs))" in code
    assert "self.size = len([block])" in code


def test_what_the_forward_pass_keeps_where_none_was() -> None:
    model, port, code = both("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = None
        self.last = None
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        y, self.attn = self.attention(self.linear(x))
        self.last = y
        return y

    def attention(self, q):
        return q + 1, q.softmax(-1)
""")
    assert "self.attn = nnx.data(None)" in code
    report = migrator.verify(model, port, inputs=[X])
    assert report.ok, report
    port(jnp.ones((2, 4)))
    assert port.attn.shape == port.last.shape == (2, 4)


def test_what_an_object_holds_for_a_layer_to_be_made_of() -> None:
    code = check("""
from dataclasses import dataclass
from typing import Callable, Optional


class Gate(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.l = nn.Linear(c, c)

    def forward(self, x):
        return x * self.l(x)


@dataclass
class Makers:
    layer: Callable = nn.Linear
    gate: Optional[Callable] = None

    def width(self, c):
        return 2 * c


class B(nn.Module):
    def __init__(self, c, makers: Makers = None):
        super().__init__()
        makers = makers or Makers()
        self.wide = makers.width(c)
        self.layer = makers.layer(c, c)
        self.gate = nn.Identity() if makers.gate is None else makers.gate(c)

    def forward(self, x):
        return self.gate(self.layer(x)) * self.wide


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = B(4), B(4, Makers(gate=Gate))

    def forward(self, x):
        return self.a(x) + self.b(x)
""")
    assert "else build(makers.gate, c, rngs=rngs)" in code
    assert "self.wide = makers.width(c)" in code


def test_sizes_that_a_constructor_hands_to_a_layer_are_not_written() -> None:
    code = check("""
class B(nn.Module):
    def __init__(self, c, norm=None, act=None):
        super().__init__()
        norm, act = norm or nn.BatchNorm1d, act or nn.ReLU
        self.norm = norm(c)
        self.last = nn.Linear(c, c)
        self.act = act(inplace=True)

    def forward(self, x):
        return self.last(self.norm(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = B(4)

    def forward(self, x):
        return self.b(x)
""")
    assert "self.last = Linear(c, c, rngs=rngs)" in code


@pytest.mark.parametrize(
    "line",
    [
        'setattr(self, "act1", nn.PReLU())',
        'for i in range(2):\n            setattr(self, f"act{i}", nn.PReLU())',
        'for i in range(2):\n            setattr(self, "act" + str(i), nn.PReLU())',
    ],
)
def test_a_layer_under_a_made_up_name_takes_the_place_of_a_function(line: str) -> None:
    check(f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Tanh()
        self.act1 = nn.ReLU()
        {line}

    def forward(self, x):
        return self.act1(self.act(x))
""")


DECLARED = """
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Base(nn.Module):
    enc: "Enc | None"
    late: Enc | None

    def __init__(self, make):
        super().__init__()
        self.enc = None
        self.late = None
        if make:
            self.enc = Enc()
            self.late = Enc()


class M(Base):
    def __init__(self):
        super().__init__(make=True)

    def forward(self, x):
        return self.enc(x) + self.late(x)
"""


def test_a_layer_that_comes_later_and_is_declared_by_its_class() -> None:
    """What a class says of its attributes: an own module there is a module."""
    assert check(DECLARED).count("nnx.data(None)") == 2


MAY_BE_NONE = """
class Encoder(nn.Module):
    def __init__(self, dim, groups=None):
        super().__init__()
        self.groups = groups
        self.last = groups
        if self.groups is None:
            self.groups = torch.eye(dim)
        self.l = nn.Linear(dim, dim)

    def forward(self, x):
        y = self.l(x)
        if self.last is None:
            self.last = y.mean(0)
        return y @ self.groups + self.last


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Encoder(4, torch.ones(4, 4))
        self.b = Encoder(4)

    def forward(self, x):
        return self.a(x[:, :4].repeat(2, 1)[:4]) + self.b(x[:, :4].repeat(2, 1)[:4])
"""


def test_a_tensor_where_an_argument_may_have_been_none() -> None:
    model, port, _ = both(MAY_BE_NONE)
    want = model.eval()(X).detach().numpy()
    port.eval()
    found = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(found, want, atol=1e-5)


def test_a_layer_takes_the_place_of_a_number() -> None:
    code = check(
        """
class M(nn.Module):
    def __init__(self, layers=2, norm: bool = True):
        super().__init__()
        self.layers = layers
        self.norm = norm
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(self.layers)])
        if self.norm:
            self.norm = nn.LayerNorm(4)
        self.last = 4
        self.last = nn.Linear(self.last, 4)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(self.norm(x))
"""
    )
    assert "self.last = nnx.data(Linear(" in code


def test_a_layer_or_a_function_takes_the_place_of_a_number() -> None:
    source = """
class M(nn.Module):
    def __init__(self, norm: bool = True):
        super().__init__()
        self.norm = norm
        self.norm = nn.LayerNorm(4) if self.norm else nn.Identity()

    def forward(self, x):
        return self.norm(x)
"""
    assert rules_of(source) == ["API001"]
    assert rules_of(source.replace("self.norm = norm\n", "self.normed = norm\n")) == []

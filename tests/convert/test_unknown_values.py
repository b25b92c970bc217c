"""Values of which nothing is known: casts of them, libraries that are given tensors, functions put into a class."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, convert, function, loaded, rules_of


def test_a_cast_of_a_tensor_or_a_number_is_one_of_a_tensor() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.arange(4).float())

    def scale(self, x, n=None):
        if n is not None:
            return self.steps[:n]
        scale = 1.
        if x.ndim > 2:
            scale = self.steps ** x
        return scale

    def forward(self, x):
        a = self.scale(x, n=4).to(x.dtype)
        return x * a + self.scale(x, n=4).double().type(x.dtype)
""")
    assert "self.scale(x, n=4).astype(x.dtype)" in code


def test_who_is_cast_is_a_finding_where_modules_are_built_or_nothing_is_used() -> None:
    assert rules_of("def f(thing):\n    thing.half()\n    return thing\n") == ["API005"]
    assert rules_of("def f(things):\n    return {one.add(2) for one in things}\n") == []
    source = "def build(make):\n    net = nn.Linear(2, 2)\n    other = make()\n"
    assert rules_of(source + "    return net, other.half()\n") == ["API005"]


def test_several_stars_in_the_sizes_of_a_call() -> None:
    made = function("return x.expand(*y.shape, *x.shape)")
    assert "enumerate((*y.shape, *x.shape))" in made
    assert function("return x.reshape(*y.shape, *x.shape)") == (
        "return x.reshape(*y.shape, *x.shape)"
    )


LIBRARY = """
import extlib
from extlib.layers import Attention


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Attention(4)
        self.names = extlib.Names("a")
        {made} = Attention.build(4)

    def forward(self, x):
        {line}
        return x
"""


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("x = self.attend(x)", "_"),
        ("x = self.attend.rotate(x)", "_"),
        ("x = extlib.rotate(x)", "_"),
        ("x = extlib.rotate(parts=(x, x))", "_"),
        ("x, y = map(self.attend.rotate, (x, x))", "_"),
        ("x, y = map(self.attend, (unknown(x), unknown(x)))", "_"),
        ("x = self.expand(x)", "self.expand, reduce"),
        ("y = self.names('a')", "self.expand, reduce"),
        ("y = 1 + self.attend(self.names)", "_"),
    ],
)
def test_a_library_that_is_given_tensors_is_a_finding(line: str, made: str) -> None:
    result = convert(LIBRARY.format(line=line, made=made))
    assert [f.rule for f in result.findings if f.blocks] == (
        ["API004"] if "names" not in line else []
    )


@pytest.mark.parametrize("library", ["einx", "jax", "tqdm"])
def test_a_library_that_takes_any_array_is_none(library: str) -> None:
    source = f"import {library}\n\n\ndef f(x: torch.Tensor):\n    return {library}.any(x)\n"
    assert rules_of(source) == []


def test_a_function_put_into_a_class_gets_the_generator_it_needs() -> None:
    code = check("""
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.proj(x)


def make(dim, depth):
    return [Block(dim) for _ in range(depth)]


Block.make = staticmethod(make)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block.make(4, 2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
""")
    assert "Block.make(4, 2, rngs=rngs)" in code


def test_a_parameter_that_is_a_number_by_default_and_a_tensor_here() -> None:
    check("""
def scaled(x, by=1):
    inverse = by ** -1
    if by.ndim == 2:
        by = by[-3:, :]
    return x * by + inverse


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("zero", torch.tensor(0.))

    def forward(self, x):
        loss = self.zero.requires_grad_()
        return scaled(x + 3, by=x.exp()) + loss
""")


def test_classes_that_are_mapped_over_their_arguments() -> None:
    code = check("""
from functools import partial
from itertools import starmap


class Block(nn.Module):
    def __init__(self, first, second=4):
        super().__init__()
        self.proj = nn.Linear(first, second)

    def forward(self, x):
        return self.proj(x)


def make(dim):
    return nn.Linear(dim, dim)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ModuleList(map(Block, (4, 4)))
        self.b, self.c = map(partial(Block, second=4), (4, 4))
        self.d = nn.Sequential(*starmap(Block, [(4, 3), (3, 4)]))
        self.e = nn.ModuleList([*map(nn.LayerNorm, (4, 4)), *map(make, (4,))])
        self.f = nn.ModuleList(map(lambda dim: nn.Linear(dim, 4), (4,)))

    def forward(self, x):
        for one in [*self.a, self.b, self.c, self.d, *self.e, *self.f]:
            x = one(x)
        return x
""")
    assert "map(lambda dim: Linear(dim, 4, rngs=rngs), (4,))" in code


@pytest.mark.parametrize("space", ["self.dims", "str(self.dims)"])
def test_layers_and_functions_whose_names_have_a_hole(space: str) -> None:
    code = check(f"""
class M(nn.Module):
    def __init__(self, dims=2):
        super().__init__()
        self.dims = dims
        conv = getattr(nn, f"Conv{{{space}}}d")
        self.conv = conv(1, 4, 1)
        self.norm = getattr(nn, f"BatchNorm{{dims}}d")(4)

    def forward(self, x):
        pool = getattr(F, f"adaptive_avg_pool{{self.dims}}d")
        return pool(self.norm(self.conv(x[None, None])), 2)
""")
    assert "ConvTranspose1d" not in code
    assert "}[f'BatchNorm{dims}d'](4, rngs=rngs)" in code.replace(
        '"BatchNorm{', "'BatchNorm{"
    ).replace('d"](4', "d'](4")


def test_a_name_of_which_little_is_written_is_a_finding() -> None:
    assert rules_of(
        "def f(x: torch.Tensor, name: str):\n    return getattr(F, f'{name}')(x)\n"
    ) == ["API001"]
    assert rules_of("def f(x: torch.Tensor, n):\n    return getattr(F, f'no_{n}')(x)\n") == [
        "API001"
    ]


def test_what_checkpoints_and_what_switches_precision_off_as_values() -> None:
    code = check("""
from contextlib import nullcontext
from functools import partial

from torch.amp import autocast
from torch.utils.checkpoint import checkpoint


class M(nn.Module):
    def __init__(self, whole=True):
        super().__init__()
        self.whole = whole
        self.proj = nn.Linear(4, 4)

    def twice(self, x, y):
        return self.proj(x) + y

    def forward(self, x):
        scope = partial(autocast, "cuda", enabled=False) if self.whole else nullcontext
        with scope():
            x = self.proj(x)
        block = partial(checkpoint, self.proj, use_reentrant=False) if self.training else self.proj
        both = partial(checkpoint, self.twice, x)
        return block(x) + both(x + 1)
""")
    assert "scope = contextlib.nullcontext if self.whole else nullcontext" in code
    assert "both = partial(self.twice, x)" in code


def test_a_class_that_is_chosen_is_mapped_over_modules() -> None:
    check("""
from functools import partial


class Norm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.fn(self.norm(x))


class Zero(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn
        self.gain = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.fn(x) * self.gain


class M(nn.Module):
    def __init__(self, rezero=False, last=Zero, number=None):
        super().__init__()
        wrap = Zero if rezero else partial(Norm, 4)
        self.a, self.b = map(wrap, (nn.Linear(4, 4), nn.Linear(4, 4)))
        self.c = nn.ModuleList(map(last, (nn.Linear(4, 4),)))
        parse = number or int
        self.sizes = list(map(parse, ("3", "4")))

    def forward(self, x):
        return self.c[0](self.b(self.a(x))) + self.sizes[0]
""")


def test_the_columns_of_rows_whose_number_is_not_known() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        found = []
        for a, b in zip(*map(lambda t: t.chunk(2, dim=-1), (x, x + 1))):
            found.append(a.cumsum(dim=0) + b.sum(dim=0, keepdim=True))
        return torch.cat(found, dim=-1)
""")
    assert "dim=" not in code


@pytest.mark.parametrize(
    ("check", "complete"),
    [
        ("assert 0 <= p <= 1", True),
        ("if p < 0.0 or p > 1.0:\n        raise ValueError(p)", True),
        ("if not 0 <= p < 1:\n        raise ValueError(p)", True),
        ("assert p >= 0 and 1 >= p, 'p lies in [0, 1]'", True),
        ("assert p >= 0 or p <= 1", False),
        ("assert p is not None", False),
        ("assert 0 <= p", False),
        ("if not 0 <= p < 1:\n        p = p * 2", False),
        ("if p < 0.0 or x > 1.0:\n        raise ValueError(p)", False),
        ("assert 0 <= p <= 1 and p.shape", False),
    ],
)
def test_what_must_lie_between_two_numbers_is_one(check: str, complete: bool) -> None:
    """A number in the name of a tensor to come: nothing else sees what is added to it."""
    source = (
        f"def drop(x: torch.Tensor, p):\n    {check}\n    keep = 1 - p\n    mask = keep\n"
        "    mask += torch.ones(x.shape[0], 1)\n    return x / keep * mask.floor()\n"
    )
    assert convert(source).complete == complete


def test_a_tensor_of_the_forward_pass_may_be_looked_at() -> None:
    source = (
        "class M(nn.Module):\n    def forward(self, x, t):\n        assert 0 <= t <= 1\n"
        "        return x * t\n"
    )
    assert "assert" not in convert(source).code


@pytest.mark.parametrize(
    "made",
    [
        "self.part = somelib.Attention(4) if deep else nn.Identity()",
        "self.part = part or Attention(4)",
        "self.part = layers.Attention(4)",
        "self.part = nn.Identity()\n        if deep:\n            self.part = Attention(4)",
        "self.part = Own()\n        if deep:\n            self.part = layers.Attention(4)",
    ],
)
def test_an_object_of_a_library_among_what_an_attribute_may_be(made: str) -> None:
    source = f"""
import somelib
from somelib import Attention, layers
import einops.layers.torch as other


class Own(nn.Module):
    def forward(self, x):
        return x + 1


class M(nn.Module):
    def __init__(self, deep: bool = False, part=None):
        super().__init__()
        {made}

    def forward(self, x):
        return self.part(x)
"""
    assert rules_of(source) == ["API004"]
    for own in ("somelib.Attention", "layers.Attention", "Attention"):
        source = source.replace(f" {own}(4)", " Own()")
    assert rules_of(source) == []


@pytest.mark.parametrize("method", ["mean", "sum", "prod", "argmax"])
def test_axes_kept_by_position(method: str) -> None:
    """The second argument of an array's reduction is a dtype or an output: a truth value there is torch's."""
    check(f"""
class Box:
    def __init__(self):
        self.held = {{}}

    def put(self, name, value):
        self.held[name] = value


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        box = Box()
        box.put("x", self.fc(x))
        return x - box.held["x"].{method}(1, True)
""")


def test_what_a_second_argument_means_is_not_known() -> None:
    source = "def f(value, flag):\n    return value.any(1, flag)\n"
    assert rules_of(source) == ["API005"]
    assert rules_of("import numpy as np\n" + source.replace("flag)\n", "np.bool_)\n", 1)) == []


def test_an_axis_of_another_size_stays_in_what_is_not_known() -> None:
    code = check("""
class Box:
    def __init__(self):
        self.held = {}

    def put(self, name, value):
        self.held[name] = value


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def forward(self, x):
        box = Box()
        box.put("x", self.fc(x))
        return box.held["x"].squeeze(-1) + box.held["x"].squeeze(0).sum()
""")
    assert 'squeeze(box.held["x"], -1)' in code
    assert convert("def f(value, dim):\n    return value.squeeze(dim)\n").code.count("squeeze") == 1


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("(a > b).float()", "(a > b).astype(jnp.float32)"),
        (
            "((a == b) & (a < 3)).int().sum(dim=1)",
            "((a == b) & (a < 3)).astype(jnp.int32).sum(axis=1)",
        ),
        ("((a > b) | (b > 2)).any(dim=1)", "((a > b) | (b > 2)).any(axis=1)"),
    ],
)
def test_what_is_compared_may_be_tensors(line: str, made: str) -> None:
    theirs, ours, code = loaded(f"def f(a, b):\n    return {line}\n")
    assert made in code
    x, y = torch.arange(6).view(2, 3), torch.tensor([3, 1, 2])
    want = theirs["f"](x, y)
    got = ours["f"](jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("call", "complete"),
    [
        ("p.split(os.path.sep)", True),
        ("p.split(os.sep, 1)", True),
        ("p.split(sep=mark)", True),
        ("p.split(mark, maxsplit=1)", True),
        ("p.split(f'{mark}/')", True),
        ("p.split(', ')", True),
        ("p.split(mark)", False),
        ("p.split(split_size=mark)", False),
    ],
)
def test_what_no_tensor_is_split_by(call: str, complete: bool) -> None:
    found = convert(f"import os\n\n\ndef f(p, mark):\n    return {call}[-1]\n")
    assert found.complete == complete, found.findings
    assert not complete or call in found.code

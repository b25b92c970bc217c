"""Idioms of single files: what each becomes computes the same, with torch's weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx
from torch import nn

import migrator
from tests.convert.tools import HEADER, X, body, both, check, compare_gradients, convert, rules_of


def test_children_of_a_sequential_by_assignment() -> None:
    code = check("""
class M(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 3), nn.Tanh())
        self.norm = nn.LayerNorm(3)
        self.width = 3
        self.add_module("act", nn.ReLU()),
""")
    assert 'self.add_module("norm",' in code
    assert "self.width = 3" in code


def test_a_child_that_may_be_none_is_a_finding() -> None:
    source = (
        "class M(nn.Sequential):\n    def __init__(self, act=None):\n        super().__init__()\n"
    )
    assert rules_of(source + "        self.act = act\n") == ["API007"]


def test_a_sequential_that_grows() -> None:
    check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        layers = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
        layers.add_module("last", nn.Linear(3, 2))
        self.layers = layers

    def forward(self, x):
        return self.layers(x)
""")


def test_constructors_of_the_base_by_name() -> None:
    code = check("""
class A(nn.Module):
    def __init__(self):
        nn.Module.__init__(self)
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x)


class B(nn.Linear):
    def __init__(self):
        nn.Linear.__init__(self, 4, 4)

    def forward(self, x):
        return nn.Linear.forward(self, x) + 1


class M(A):
    def __init__(self):
        A.__init__(self)
        self.b = B()

    def forward(self, x):
        return self.b(A.forward(self, x))
""")
    assert "A.__call__(self, x)" in code


def test_the_names_that_a_star_import_of_layers_binds() -> None:
    text = "from torch.nn import *\n\n\nclass N(Module):\n    def __init__(self):\n        super().__init__()\n"
    code = body(text + "        self.l = Linear(2, 2)\n", "class N")
    assert "class N(nnx.Module)" in code
    assert "Linear(2, 2, rngs=rngs)" in code
    assert rules_of("from torch import *\n") == ["API005"]


@pytest.mark.parametrize(
    "module",
    [
        "torch.autograd",
        "torch.optim",
        "torch.optim.lr_scheduler",
        "torch.nn.modules.loss",
        "torch.nn.utils",
    ],
)
def test_star_imports_of_what_is_not_used_go(module: str) -> None:
    result = convert(f"from {module} import *\n\n\ndef f(x: torch.Tensor):\n    return x.relu()\n")
    assert result.complete
    assert "torch" not in result.code


def test_what_a_star_import_binds_is_known() -> None:
    text = "from torch.nn.modules.loss import *\nfrom torch.autograd.variable import *\n"
    text += "\n\ndef f(x, y):\n    return Variable(MSELoss()(x, y))\n"
    assert "jnp" in convert(text).code
    assert rules_of("from torch.optim import *\n\n\ndef f(p):\n    return Adam(p)\n") == ["API001"]


@pytest.mark.parametrize(
    ("init", "inputs", "line", "expected"),
    [
        ("[8]", "[torch.rand(2, 8)]", "x.max(self.n)[0]", "max_along(x, self.n)"),
        ("{'n': -1}", "(torch.rand(2, 8),)", "x.max(self.n)[0]", "max_along(x, self.n)"),
    ],
)
def test_what_a_model_is_called_with(init: str, inputs: str, line: str, expected: str) -> None:
    source = f"""
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return {line}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return {init}
"""
    assert rules_of(source) == []
    assert expected in body(source, "class Model")
    assert rules_of(source.replace("get_", "other_"))


HEADS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        {0}

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=1)
"""


def heads(lines: str) -> str:
    return HEADS.replace("{0}", lines.replace("\n", "\n        "))


def test_modules_in_a_list_that_are_children_under_other_names() -> None:
    lines = (
        "self.heads = [nn.Linear(4, 2) for _ in range(3)]\nfor i, head in enumerate(self.heads):\n"
    )
    code = check(heads(lines + "    self.add_module('z_{}'.format(i), head)"))
    assert "self.heads = Unregistered([" in code


@pytest.mark.parametrize(
    "lines",
    [
        "self.heads = [nn.Linear(4, 2)]",
        "self.heads = []\nself.heads.append(nn.Linear(4, 2))",
        "self.heads = []\nfor i in range(3):\n    m = nn.Linear(4, 2)\n    self.heads.append(m)\n"
        "    if i > 1:\n        self.add_module(f'h{i}', m)",
        "self.heads = [nn.Linear(4, 2) for _ in range(3)]\nfor h in self.heads[1:]:\n"
        "    self.add_module(str(id(h)), h)",
    ],
)
def test_modules_in_a_list_that_may_be_no_children_are_a_finding(lines: str) -> None:
    assert "API008" in rules_of(heads(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "self.heads = []\nfor i in range(3):\n    m = nn.Linear(4, 2)\n    self.heads.append(m)\n"
        "    setattr(self, f'h{i}', m)",
        "self.heads = [nn.Linear(4, 2), nn.Linear(4, 2)]\nself.net = nn.Sequential(*self.heads)",
    ],
)
def test_other_ways_to_register_the_modules_of_a_list(lines: str) -> None:
    assert rules_of(heads(lines)) == []


def test_a_block_that_rectifies_its_input_in_place() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
        self.relu = nn.ReLU(True)

    def forward(self, x):
        x = torch.tanh(x)
        x = x + 2 * self.block(x)
        x = x - 1
        y = self.relu(x)
        return x - y / 2
""")
    assert code.count("x = jax.nn.relu(x)\n") == 2


def test_an_in_place_block_behind_a_read_of_the_old_value_is_a_finding() -> None:
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.block = nn.Sequential(nn.ReLU(True), nn.Linear(4, 4))\n"
    source += "    def forward(self, x):\n        return torch.tanh(x) + self.block(x)\n"
    assert rules_of(source) == ["MUT002"]


@pytest.mark.parametrize(
    ("init", "found"),
    [
        ("super().__init__(nn.ReLU(True), nn.Linear(4, 4))", ["MUT002"]),
        ("super().__init__()\n        self.add_module('a', nn.ReLU(True))", ["MUT002"]),
        ("super().__init__(nn.Linear(4, 4), nn.ReLU(True))", []),
        ("super().__init__(*[nn.Linear(4, 4), nn.ReLU(True)])", []),
        ("super().__init__(*[nn.ReLU(True), nn.Linear(4, 4)])", ["MUT002"]),
    ],
)
def test_a_sequential_class_that_begins_in_place(init: str, found: list[str]) -> None:
    source = f"class B(nn.Sequential):\n    def __init__(self):\n        {init}\n\n\n"
    source += "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += (
        "        self.b = B()\n\n    def forward(self, x):\n        return x.exp() + self.b(x)\n"
    )
    assert rules_of(source) == found


def test_a_class_that_bears_the_name_of_a_copied_one() -> None:
    code = check("""
class Conv1d(nn.Conv1d):
    def __init__(self, n):
        super().__init__(n, n, 1)
        Linear = nn.Linear
        self.l = Linear(4, 4)

    def forward(self, x):
        return self.l(super().forward(x[..., None])[..., 0])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Conv1d(4)
        self.b = nn.Conv1d(4, 4, 1)
        for m in self.modules():
            if isinstance(m, nn.Conv1d):
                nn.init.ones_(m.weight)

    def forward(self, x):
        return self.b(self.a(x)[..., None])[..., 0]
""")
    assert "isinstance(m, Conv1d_)" in code


def test_a_class_that_a_function_defines() -> None:
    check("""
def make(scale):
    class Head(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.fc = nn.Linear(n, 3)

        def forward(self, x):
            return self.fc(x) * scale if scale > 1 else x.mean(1, keepdim=True)

    return Head


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = make(2)(4)

    def forward(self, x):
        return self.a(x)
""")


def test_a_convolution_that_passes_its_arguments_on() -> None:
    code = check("""
class Same(nn.Conv1d):
    def __init__(self, n, m, kernel_size, gain=1.0, **kwargs):
        super().__init__(n, m, kernel_size, **kwargs)
        self.gain = gain

    def forward(self, x):
        return F.conv1d(x, self.weight * self.gain, self.bias, self.stride, self.padding, self.dilation)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Same(3, 2, 3, gain=2.0, padding=1, bias=False)

    def forward(self, x):
        return self.a(x[None])[0]
""")
    assert "super().__init__(n, m, kernel_size, rngs=rngs, **kwargs)" in code
    assert "self.bias[...] if self.bias is not None else None" in code


@pytest.mark.parametrize(
    ("method", "found"),
    [
        (
            "def train(self, mode=True):\n        self.training = mode\n        return self",
            "API010",
        ),
        ("def eval(self):\n        return self.train(False)", "API010"),
        ("def forward(self, x):\n        return self._modules.popitem()[1](x)", "API007"),
    ],
)
def test_what_torch_does_behind_a_module_is_a_finding(method: str, found: str) -> None:
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    assert found in rules_of(source + f"        self.l = nn.Linear(4, 4)\n\n    {method}\n")


def test_the_state_of_another_module() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
        self.b = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
        self.b.requires_grad_(False)
        self.b.load_state_dict(self.a.state_dict())
        assert bool((self.a[0].weight == self.b[0].weight).all())

    def forward(self, x):
        return self.b(x) - self.a(x)
""")
    assert "nnx.update(self.b, nnx.state(self.a, is_stored))" in code
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    assert rules_of(
        source + "        self.l = nn.EmbeddingBag(4, 4)\n        self.l.reset_parameters()\n"
    )


@pytest.mark.parametrize("classes", ["nn.Module", "(str, nn.Module)"])
@pytest.mark.parametrize("given", [nn.ReLU(), F.relu, True], ids=["layer", "function", "flag"])
def test_whether_something_is_a_module(classes: str, given: object) -> None:
    """In a file that asks, every layer is one, with or without state, and a function is none."""
    init = "    def __init__(self, act=True):\n        super().__init__()\n"
    source = f"class M(nn.Module):\n{init}        self.act = isinstance(act, {classes})\n"
    source += f"        self.own = isinstance(nn.ReLU(), {classes})\n"
    theirs: dict = {}
    exec(HEADER + source, theirs)
    ours: dict = {}
    exec(migrator.convert_source(HEADER + source).code, ours)
    layer = isinstance(given, nn.Module)
    port = ours["M"](nnx.Sequential() if layer else given, rngs=nnx.Rngs(0))
    assert (port.act, port.own) == (theirs["M"](given).act, True)
    assert "Stateless(jax.nn.relu)" in body(source, "class M")


def test_layers_by_the_table_of_a_sequential() -> None:
    check(
        "class Concat(nn.Sequential):\n    def forward(self, x):\n        out = []\n"
        "        for module in self._modules.values():\n            out.append(module(x))\n"
        "        return torch.cat(out, dim=1)\n\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = Concat()\n        self.a.add_module('one', nn.Linear(4, 4))\n"
        "        self.a.add_module('two', nn.ReLU())\n        self.b = Concat(nn.Linear(8, 2), nn.Tanh())\n\n"
        "    def forward(self, x):\n        return self.b(self.a(x))\n"
    )


def test_factories_of_layers_as_defaults() -> None:
    """A default runs where it stands: before the classes, and without an ``rngs`` of its own."""
    check(
        "def by_lambda(eps=1e-5):\n    return lambda c: nn.LayerNorm(c, eps=eps)\n\n\n"
        "def by_function(eps=1e-5):\n    def build(c):\n        return nn.Linear(c, c)\n    return build\n\n\n"
        "class M(nn.Module):\n    def __init__(self, a=by_lambda(), b=lambda c: nn.Linear(c, c)):\n"
        "        super().__init__()\n        self.a, self.b, self.c = a(4), b(4), by_function(1e-3)(4)\n"
        "        make = by_function()\n        self.d = make(4)\n\n"
        "    def forward(self, x):\n        return self.d(self.c(self.b(self.a(x))))\n"
    )


def test_sizes_that_keep_an_axis_in_a_helper() -> None:
    check(
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.l = nn.Linear(4, 4)\n\n    def forward(self, x):\n        shape = (2, -1, -1)\n"
        "        return self.l(x).unsqueeze(0).expand(shape)\n"
    )


def test_a_class_made_of_field_names_is_no_module() -> None:
    source = (
        "from collections import namedtuple\nimport typing\n\n\nPoint = namedtuple('Point', 'x y')\n\n\n"
        "class Sum(Point):\n    def total(self):\n        return self.x + self.y\n\n\n"
        "class Size(namedtuple('Size', ['h', 'w'])):\n    def __new__(cls, h, w=2):\n"
        "        return super().__new__(cls, h, w)\n\n\n"
        "def f(x: torch.Tensor):\n    return Sum(x.size(0), Size(3).w).total()\n"
    )
    result = convert(source)
    assert result.complete, result.findings
    found: dict = {}
    exec(result.code, found)
    assert found["f"](np.ones((4, 2))) == 6


def test_the_shape_of_what_is_made_on_the_spot_is_not_asked_of_it() -> None:
    code = convert("""
class M(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.w = nn.Parameter(torch.empty(n, 4).normal_(std=0.02))
        self.v = nn.Parameter(torch.zeros(2, 4, dtype=torch.float16).uniform_(-1, 1))

    def forward(self, x):
        return x @ self.w
""").code
    assert "0.02 * rngs.normal((n, 4), jnp.float32)" in code
    assert "rngs.uniform((2, 4), jnp.float16, minval=-1, maxval=1)" in code
    assert "jnp.empty" not in code


def test_sizes_that_stay_are_named_at_once() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, x):
        token = self.token.expand(x.shape[0], -1, -1)
        y = x[:, None].expand(-1, 3, -1)
        return torch.cat([token, token.expand(-1, -1, -1), y], dim=1)
""")
    assert "jnp.broadcast_to(self.token[...], (x.shape[0], *self.token.shape[-2:]))" in code
    assert "jnp.broadcast_to(token, token.shape[-3:])" in code


REGISTERED = """
class M(nn.Module):
    def __init__(self, wide=True):
        super().__init__()
        scale = self.scale = 2.0
        put = lambda name, value: self.register_buffer(name, value.to(torch.float32))
        rows = torch.arange(4)
        put("rows", rows)
        if wide:
            put("halves", (rows if wide else -rows) / scale - 1)  # below the rows

    def forward(self, x):
        return x.gather(-1, self.rows.long().expand(3, 4)) + self.halves.clamp(min=0)
"""


def test_a_lambda_that_registers_is_written_out() -> None:
    model, port, code = both(REGISTERED)
    np.testing.assert_allclose(port(X.numpy()), model(X).numpy())
    assert "lambda" not in code
    assert "# below the rows" in code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value.to(torch.float32)", "value * scale"),
        ("value.to(torch.float32)", "value + value"),
        ('put("rows", rows)', 'put(name="rows", value=rows)'),
        ('put("rows", rows)', 'self.put = put; put("rows", rows)'),
    ],
)
def test_a_lambda_that_may_do_something_else_stays(old: str, new: str) -> None:
    result = convert(REGISTERED.replace(old, new))
    assert "put = lambda" in result.code
    assert not result.complete


CAUGHT = """
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        skip = 0
        for layer in (x, y):
            try:
                skip = skip[:, -layer.size(1):]
            except:
                skip = 0
            skip = layer + skip
        try:
            return skip[..., :2, :, :]
        except IndexError:
            return skip.size(-1)
"""


def test_ranges_that_are_caught_raise_alike() -> None:
    model, port, _ = both(CAUGHT)
    for rows in ((3, 4), (2, 3, 4)):
        x, y = torch.randn(*rows), torch.randn(*rows)[..., :2, -4:]
        y = y[..., :1, :]
        ours, theirs = port(x.numpy(), y.numpy()), model(x, y)
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("code", ["[:, 5]", "[::n]", "[x]", "[:, 1:x[0].long()]", ".view(3)"])
def test_what_torch_may_raise_for_is_not_caught(code: str) -> None:
    source = f"def f(x: torch.Tensor, n: int):\n    try:\n        return x{code}\n    except Exception:\n        return x\n"
    assert "TRC014" in rules_of(source)


CUT = """
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, n: int, m: int):
        a = torch.linspace(0, m, n).long()
        t = torch.linspace(1, m, steps=n, device=x.device)
        t = t.flip(0)
        b = torch.floor(torch.linspace(0.0, m, n))
        c = torch.linspace(0, m, n).to(dtype=torch.long)
        return a, t.int(), b, c, x + torch.linspace(0, 1, 4).to(x.device)
"""


def test_a_range_that_is_cut_is_rounded_as_torch_rounds() -> None:
    model, port, code = both(CUT)
    assert code.count("jnp.asarray(exact_linspace(") == 4
    assert "exact_linspace(1, m, steps=n))" in code
    assert "x + jnp.linspace(0, 1, 4)" in code
    for n, m in ((50, 133), (43, 999), (1, 5), (7, 20)):
        for ours, theirs in zip(port(X.numpy(), n, m), model(X, n, m), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "return x.clone().addmm_(1, -2, y, y.t())",
        "return x.addmm(0.5, 2, y, y)",
        "return x.clone().mul_(0.9).add_(0.1, y)",
        "return x.sub(2, y).addcmul(0.5, y, y).addcdiv(3, y, y + 10)",
        "return x.addmm(y, y, beta=2, alpha=3) + x.add(y, alpha=2)",
    ],
)
def test_factors_before_the_tensors(line: str) -> None:
    compare_gradients(
        f"def f(x: torch.Tensor, y: torch.Tensor):\n    {line}\n",
        torch.arange(9.0).reshape(3, 3),
        torch.linspace(1, 2, 9).reshape(3, 3),
    )

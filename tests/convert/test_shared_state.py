"""Parameters and buffers made of one tensor share its memory in torch: a finding where one of them may be written."""

from __future__ import annotations

import textwrap
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both, check, convert, rules_of

HEAD = """
class M(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.w = nn.Parameter(torch.ones(4, 4))
        self.register_buffer("kept", torch.ones(4))
        v = torch.zeros(4)
INIT

    def forward(self, x):
        FORWARD
        return x
"""


def _rules(init: str, forward: str = "pass") -> list[str]:
    source = HEAD.replace("INIT", textwrap.indent(textwrap.dedent(init), " " * 8))
    return rules_of(source.replace("FORWARD", forward))


BUFFERS = 'self.register_buffer("a", v)\nself.register_buffer("b", v.view(2, 2))'


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        (BUFFERS, "self.a += 1"),
        (BUFFERS, "self.b[0] = 1"),
        (BUFFERS, "self.b.mul_(2)"),
        (BUFFERS, "b = self.b\n        b.mul_(2)"),
        ("self.a = nn.Parameter(v)\nself.b = nn.Parameter(v)", "pass"),
        ("self.a = nn.Parameter(given)\nself.b = nn.Parameter(given)", "pass"),
        ('self.a = nn.Parameter(v)\nself.register_buffer("b", v)', "pass"),
        ('self.register_buffer("a", self.w.data[0])', "pass"),
        ("self.a = nn.Parameter(self.fc.weight)", "pass"),
        ('for i in range(2):\n    self.register_parameter(f"a{i}", nn.Parameter(v))', "pass"),
        ("self.a = nn.ParameterList([nn.Parameter(v) for _ in range(2)])", "pass"),
        (
            "import skimage.util as la\np, q = la.qr(given)\nself.a = nn.Parameter(torch.from_numpy(p))\nself.b = nn.Parameter(torch.from_numpy(q))",
            "pass",
        ),
    ],
)
def test_made_of_one_tensor_and_written(init: str, forward: str) -> None:
    assert _rules(init, forward) == ["MUT001"]


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        (BUFFERS, "x = x + self.a"),
        (
            "import scipy.linalg as la\np, q = la.qr(given)\nself.a = nn.Parameter(torch.from_numpy(p.copy()))\n"
            "self.b = nn.Parameter(torch.from_numpy(q.copy()))",
            "pass",
        ),
        (BUFFERS.replace("v.view(2, 2)", "v.clone()"), "self.b[0] = 1"),
        ("self.a = nn.Parameter(v)\nself.b = nn.Parameter(v.clone())", "pass"),
        ("p = nn.Parameter(v)\nself.a = p\nself.b = p", "pass"),
        ("self.fc.bias = nn.Parameter(self.fc.bias.data)", "pass"),
        ('self.register_buffer("a", self.kept)', "x = x + self.a"),
        ('for i in range(2):\n    u = torch.ones(4)\n    self.register_buffer(f"a{i}", u)', "pass"),
        ("self.a = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])", "pass"),
        ("self.a = nn.ParameterList([nn.Parameter(u) for u in given])", "pass"),
    ],
)
def test_tensors_of_their_own(init: str, forward: str) -> None:
    assert _rules(init, forward) == []


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ('self.register_buffer("a", v)\nv[0] = 1', "pass"),
        ("self.row = self.w[0]", "x = x + self.row"),
        ("self.tied = self.w if given else nn.Parameter(torch.ones(4, 4))", "pass"),
        ("p = self.w\nself.again = p", "pass"),
        ("self.old = self.kept\nself.kept = torch.zeros(4)", "x = x + self.old"),
    ],
)
def test_another_name_for_what_is_there(init: str, forward: str) -> None:
    assert _rules(init, forward) == ["MUT001"]


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("self.kept = F.normalize(self.kept, dim=0)\nself.twin = self.kept", "x = x + self.twin"),
        ("self.tied = self.w", "x = x @ self.tied"),
        ("self.row = self.w[0].detach().clone()", "pass"),
        ("self.scale = self.w.shape[0] ** -0.5", "x = x * self.scale"),
    ],
)
def test_other_names_that_mean_the_same(init: str, forward: str) -> None:
    assert _rules(init, forward) == []


PART = """
class Part(nn.Module):
    def __init__(self, w):
        super().__init__()
        KEEP

    def forward(self, x):
        self.w += 1
        return x


"""


@pytest.mark.parametrize(
    ("keep", "init", "rules"),
    [
        ("self.w = w", "self.part = Part(self.w)", []),
        ("self.w = w", "self.part = Part(self.fc.weight)", ["MUT001"]),
        ("self.w = w[:]", "self.part = Part(self.w)", ["MUT001"]),
        ("self.w = nn.Parameter(w)", "self.part = Part(self.fc.weight)", ["MUT001"]),
        ("self.w = nn.Parameter(w)", "self.a = Part(v)\nself.b = Part(v)", ["MUT001"]),
        ('self.register_buffer("w", w)', "self.part = Part(self.kept)", ["MUT001"]),
        ('self.register_buffer("w", w)', "self.a = Part(v)\nself.b = Part(v)", ["MUT001"]),
        ('self.register_buffer("w", w)', "self.a = Part(v)\nself.b = Part(v.clone())", []),
        ('self.register_buffer("w", w * 2)', "self.part = Part(self.w)", []),
    ],
)
def test_what_a_constructor_keeps(keep: str, init: str, rules: list[str]) -> None:
    head = PART.replace("KEEP", keep) + HEAD.replace("INIT", textwrap.indent(init, " " * 8))
    assert rules_of(head.replace("FORWARD", "pass")) == rules


KEPT = """
class Part(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, x):
        return x * self.table


"""


@pytest.mark.parametrize(
    ("init", "rules"),
    [
        (
            "self.part = Part(self.kept)",
            ["MUT001"],
        ),  # a checkpoint may hold other values than a new module
        ("self.part = Part(self.kept[:2])", ["MUT001"]),
        ("self.parts = nn.ModuleList(Part(self.kept) for _ in range(2))", ["MUT001"]),
        ("self.part = Part(self.kept.clone())", []),
        ("self.part = Part(self.kept * 2)", []),
        ('self.register_buffer("own", v, persistent=False)\nself.part = Part(self.own)', []),
        ('self.register_buffer("own", v, True)\nself.part = Part(self.own)', ["MUT001"]),
    ],
)
def test_a_constructor_that_keeps_a_buffer_as_an_attribute(init: str, rules: list[str]) -> None:
    source = KEPT + HEAD.replace("INIT", textwrap.indent(init, " " * 8))
    assert rules_of(source.replace("FORWARD", "x = x + self.kept")) == rules


OTHERS = """
class Holds(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x):
        return x * self.table

    def get(self):
        return self.table

    def copied(self):
        return self.table.clone()


class Hides(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("hidden", table, persistent=False)

    def forward(self, x):
        return x * self.hidden


class Registers(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.p = nn.Parameter(table)

    def forward(self, x):
        return x * self.p


"""


@pytest.mark.parametrize(
    ("init", "rules"),
    [
        # of two that share memory only one is in a state_dict: loading that changes the other
        (
            'self.register_buffer("a", v)\nself.register_buffer("b", v, persistent=False)',
            ["MUT001"],
        ),
        ('self.register_buffer("a", v, False)\nself.register_buffer("b", self.a)', ["MUT001"]),
        ('self.register_buffer("a", v, False)\nself.register_buffer("b", self.a, False)', []),
        ('self.register_buffer("a", v)\nself.register_buffer("b", self.a)', []),
        ("self.a = Holds(v)\nself.b = Hides(v)", ["MUT001"]),
        ("self.a = Holds(v)\nself.b = Holds(v)", []),
        ("self.a = Hides(v)\nself.b = Hides(v)", []),
        ('self.a = Holds(v)\nself.register_buffer("b", v, persistent=False)', ["MUT001"]),
        # what one module registers another keeps as an attribute
        ("self.a = Holds(v)\nself.c = v", ["MUT001"]),
        ("self.c = v\nself.a = Holds(v)", ["MUT001"]),
        ("self.a = Registers(v)\nself.c = v", ["MUT001"]),
        ("self.a = Holds(v.clone())\nself.c = v", []),
        ("self.a = Hides(v)\nself.c = v", []),
        ("self.a = Holds(v)\nself.b = Hides(v.clone())\nself.b.other = self.a.table", ["MUT001"]),
        ("self.a = Hides(v)\nself.a.hidden = self.kept", ["MUT001"]),
        ("self.a = Holds(v)\nself.a.table = self.kept", []),
        # a method gives the buffer of another module
        ("self.a = Holds(v)\nself.c = self.a.get()", ["MUT001"]),
        ("self.a = Holds(v)\nself.c = self.a.copied()", []),
    ],
)
def test_what_loading_a_state_dict_changes(init: str, rules: list[str]) -> None:
    source = OTHERS + HEAD.replace("INIT", textwrap.indent(init, " " * 8))
    assert rules_of(source.replace("FORWARD", "x = x + self.kept")) == rules


COUNTS = """
class Counts(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.total = t

    def forward(self, x):
        self.total.add_(1)
        return x * self.total


class Reads(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.seen = t

    def forward(self, x):
        return x * self.seen


"""


@pytest.mark.parametrize(
    ("init", "forward", "rules"),
    [
        ("self.a = Counts(v)\nself.c = v", "x = x + self.c", ["MUT001"]),
        ("self.c = v\nself.a = Counts(v)", "x = x + self.c", ["MUT001"]),
        ("self.c = v\nself.a = Reads(v)", "self.c.add_(1)", ["MUT001"]),
        ("self.c = v\nself.a = Reads(v)", "x = x + self.c", []),
        ("self.c = v\nself.a = Counts(v.clone())", "x = x + self.c", []),
    ],
)
def test_what_another_module_keeps_and_one_of_the_two_writes_to(
    init: str, forward: str, rules: list[str]
) -> None:
    counts, reads = COUNTS.split("\n\n\n")[:2]
    source = (counts if "Counts(" in init else reads) + "\n\n"
    source += HEAD.replace("INIT", textwrap.indent(init, " " * 8)).replace("FORWARD", forward)
    assert sorted(set(rules_of(source))) == rules


@pytest.mark.parametrize("name", ["t", "T", "values", "indices", "data", "real", "dropout", "view"])
def test_buffers_that_are_called_like_views(name: str) -> None:
    init = f'self.register_buffer("{name}", v)\nself.register_buffer("other", self.{name})'
    assert _rules(init, f"self.{name}.add_(1)") == ["MUT001"]
    assert _rules(init, f"self.{name}[0] = 1") == ["MUT001"]
    assert _rules(init, f"self.{name}[0].clone()") == []


SECOND = """
class Masked(nn.Linear):
    def __init__(self, n, random=False):
        super().__init__(n, n)
        degrees = torch.arange(n)
        self.register_buffer("mask", (degrees[:, None] >= degrees).float())
        self.register_buffer("degrees", degrees)

    def forward(self, x):
        return F.linear(x, self.weight * self.mask, self.bias)


class Feedforward(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = Masked(n)
        self.degrees = self.linear.degrees

    def forward(self, x):
        return self.linear(x)


class Residual(Feedforward):
    def __init__(self, n):
        super().__init__(n)
        linear = Masked(n)
        self.layers = nn.ModuleList([self.linear, linear])
        self.masked = linear.mask

    def forward(self, x):
        return x + self.layers[1](self.layers[0](x)) * self.degrees + self.masked.sum()


class Other(nn.Module):
    def __init__(self, n):
        super().__init__()
        layer = Masked(n)
        self.degrees = layer.degrees
        self.layer = layer

    def forward(self, x):
        return self.layer(x) * self.degrees


class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.blocks = nn.ModuleList([Feedforward(n), Residual(n), Other(n)])
        assert self.blocks[-1].degrees.shape[0] == n

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""


def test_a_second_name_of_a_buffer_is_not_saved() -> None:
    model, port, code = both(SECOND)
    state = model.state_dict()
    assert set(migrator.to_state_dict(port)) == set(state)
    given = {name: value + 1 for name, value in state.items()}
    model.load_state_dict(given)
    migrator.load_state_dict(port, given)
    np.testing.assert_allclose(port(X.numpy()), model(X).detach(), rtol=1e-5, atol=1e-4)
    assert '(*getattr(self, "_second_names", ()), "masked")' in code


def test_a_second_name_of_what_its_own_class_gives_anew_is_a_finding() -> None:
    source = SECOND.replace(
        "    def forward(self, x):\n        return self.linear(x)\n",
        "    def grow(self):\n        self.degrees = self.degrees + 1\n\n"
        "    def forward(self, x):\n        return self.linear(x)\n",
    )
    assert source != SECOND
    assert "MUT001" in rules_of(source)


GIVES_ANEW = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("t", torch.zeros(4))

    def forward(self, x):
        NEW
        return x * self.t


class Apart(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = 1

    def forward(self, x):
        self.t = self.t + 1
        return x * self.t


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.apart = Part(), Apart()
        self.register_buffer("b", torch.ones(4))
        LINE

    def forward(self, x):
        return self.part(x) + self.b
"""


@pytest.mark.parametrize("line", ["self.part.t = self.b", "self.d = self.part.t"])
@pytest.mark.parametrize(("new", "rules"), [("self.t = self.t + 1", ["MUT001"]), ("pass", [])])
def test_a_second_name_of_what_a_part_gives_anew(line: str, new: str, rules: list[str]) -> None:
    assert rules_of(GIVES_ANEW.replace("LINE", line).replace("NEW", new)) == rules


CALLED_LIKE_VIEWS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("data", torch.zeros(4))
        self.register_buffer("T", torch.ones(4))
        self.values = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.data.add_(1)
        self.data[0] = 5
        self.data *= 2
        self.data = self.data + 1
        self.T[1] += 1
        self.T.data.mul_(1.5)
        self.data.data[1] = 2
        return x + self.data * self.values.view(4) - self.T
"""


def test_writes_to_buffers_that_are_called_like_views() -> None:
    model, port, _ = both(CALLED_LIKE_VIEWS)
    for _ in range(2):
        want = model(X).detach().numpy()
        np.testing.assert_allclose(port(X.numpy()), want, rtol=1e-6)
    for name, value in migrator.to_state_dict(port).items():
        np.testing.assert_array_equal(value, model.state_dict()[name].detach().numpy())


SCHEDULE = """
from functools import partial


class M(nn.Module):
    def __init__(self):
        super().__init__()
        betas = np.linspace(0.1, 0.4, 4)
        made = partial(torch.FUNCTION, dtype=torch.float32)
        for name, value in {"betas": betas, "alphas": np.cumprod(1 - betas)}.items():
            self.register_buffer(name, made(value))
        self.register_buffer("kept", made(betas))

    def forward(self, x):
        return x * self.betas + self.alphas + self.kept
"""


def test_a_function_with_bound_arguments_that_copies() -> None:
    model, port, _ = both("import numpy as np\n" + SCHEDULE.replace("FUNCTION", "tensor"))
    np.testing.assert_allclose(port(X.numpy()), model(X).numpy(), rtol=1e-6)


def test_a_function_with_bound_arguments_that_may_share() -> None:
    source = "import numpy as np\n" + SCHEDULE.replace("FUNCTION", "as_tensor")
    assert "MUT001" in rules_of(source)


EITHER = """
class Either(nn.Module):
    def __init__(self, fixed: bool, w: torch.Tensor):
        super().__init__()
        if fixed:
            self.register_buffer("w", w)
        else:
            self.w = nn.Parameter(w)

    def forward(self, x):
        return x + self.w


class M(nn.Module):
    def __init__(self, w: torch.Tensor):
        super().__init__()
        INIT

    def forward(self, x):
        return self.a(x)
"""


@pytest.mark.parametrize(
    ("init", "rules"),
    [
        ("self.a = Either(False, w)", []),
        ("self.a, self.b = Either(False, w), Either(True, w)", ["MUT001"]),
    ],
)
def test_a_buffer_or_else_a_parameter_is_one(init: str, rules: list[str]) -> None:
    assert rules_of(EITHER.replace("INIT", init)) == rules


SIZED = """
class M(nn.Module):
    def __init__(self, n, k=(), m=2):
        super().__init__()
        self.a = nn.Parameter(torch.Tensor(SIZE))
        self.b = nn.Parameter(torch.Tensor(SIZE))
        for p in self.parameters():
            nn.init.ones_(p)

    def forward(self, x):
        return x * self.a.sum() + self.b.sum()
"""


@pytest.mark.parametrize("name", ["Tensor", "FloatTensor"])
@pytest.mark.parametrize("size", ["n, m", "n", "n, 2, *k", "*k", "m, *k"])
def test_what_is_made_of_sizes_shares_nothing(size: str, name: str) -> None:
    source = SIZED.replace("SIZE", size).replace("torch.Tensor", f"torch.{name}")
    model, port, _ = both(source, 4, (4, 3))
    np.testing.assert_allclose(port(X.numpy()), model(X).detach().numpy(), rtol=1e-6)


def test_what_is_made_of_one_tensor_raises() -> None:
    """A run tells that it is no size."""
    namespace: dict[str, Any] = {}
    exec(convert(SIZED.replace("SIZE", "n")).code, namespace)
    with pytest.raises(TypeError, match="share its memory"):
        namespace["M"](jnp.ones(4), rngs=nnx.Rngs(0))


@pytest.mark.parametrize("name", ["Tensor", "FloatTensor", "DoubleTensor", "LongTensor"])
def test_an_old_class_takes_a_tensor_as_it_is(name: str) -> None:
    source = f"def f(x: torch.Tensor):\n    y = torch.{name}(x)\n    y += 1\n    return x + y\n"
    assert rules_of(source) == ["MUT001"]


def test_sizes_with_a_star_are_no_tensor() -> None:
    """As MTGNN's LayerNorm has them, which another class makes of a tuple."""
    check("""
class Norm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(*shape))
        self.bias = nn.Parameter(torch.Tensor(*shape))
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return x * self.weight + self.bias


class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.norm = nn.ModuleList()
        for i in range(2):
            self.norm.append(Norm((n,)))

    def forward(self, x):
        for one in self.norm:
            x = one(x)
        return x
""")

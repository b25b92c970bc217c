"""Calls that say how a tensor lies in memory, how many pieces it is cut into, or nothing that JAX has to do."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator.infer.symbols import takes_nothing
from rules.torch_names import table
from tests.convert.tools import HEADER, body, both, convert, function, rules_of


def run(source: str, converted: bool = False) -> dict[str, Any]:
    """What a snippet defines, as it stands or converted."""
    found: dict[str, Any] = {}
    result = convert(source)
    assert result.complete, result.findings
    exec(result.code if converted else HEADER + source, found)
    return found


@pytest.mark.parametrize(
    "call",
    [
        "x.contiguous(memory_format=torch.channels_last)",
        "x.contiguous(torch.channels_last)",
        "x.to(memory_format=torch.channels_last)",
        'x.to("cuda", memory_format=torch.preserve_format)',
        "x.clone(memory_format=torch.contiguous_format)",
    ],
)
def test_memory_formats_go_away(call: str) -> None:
    assert function(f"return {call}") == "return x"


def test_a_memory_format_as_a_value_is_a_word() -> None:
    lines = (
        "form = torch.channels_last if n else torch.contiguous_format",
        "return x.to(memory_format=form)",
    )
    assert function(*lines) == ('form = "channels_last" if n else "contiguous_format"\nreturn x')


def test_layouts() -> None:
    assert function("return torch.zeros(n, layout=torch.strided)") == "return jnp.zeros((n,))"
    source = "def f(n: int):\n    return torch.zeros(n, layout=torch.sparse_coo)\n"
    assert rules_of(source) == ["API001"]


def test_an_assignment_that_says_nothing_goes_away() -> None:
    assert function("# dense", "x = x.contiguous()  # now", "return x") == (
        "# dense\n# now\nreturn x"
    )
    assert function("# dense", "x = x.cpu()", "if n:", "    x = x.cpu()", "return x") == (
        "# dense\nif n:\n    pass\nreturn x"
    )


def test_a_state_that_is_given_its_own_value_is_left_alone() -> None:
    """``self.h = self.h.to(x.device)`` moves a tensor: JAX computes where the arrays are."""
    model, port, code = both("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.linspace(0, 1, 4))
        self.kept = torch.linspace(1, 2, 4)

    def forward(self, x):
        self.h = self.h.to(x.device)
        self.kept = self.kept.cpu()
        self.h = self.h * x.mean()
        return x + self.h + self.kept
""")
    assert code.count("set_value") == 1
    assert "self.h.set_value(self.h[...] * x.mean())" in code
    x = torch.linspace(-1, 3, 12).reshape(3, 4)
    for _ in range(2):
        np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x (torch.Tensor): of shape (N, C).", "x (jax.Array): of shape (N, C)."),
        (":param x: a :class:`torch.LongTensor`.", ":param x: a :class:`jax.Array`."),
        ("list[th.Tensor]", "list[jax.Array]"),
        (">>> f(torch.Tensor(3, 4))", ">>> f(torch.Tensor(3, 4))"),
        ("As torch.Tensor.view does.", "As torch.Tensor.view does."),
        ("a pytorch.Tensor or torch.SparseTensor", "a pytorch.Tensor or torch.SparseTensor"),
    ],
)
def test_types_that_a_docstring_names(text: str, expected: str) -> None:
    """They are those of the hints; code in a docstring is no type."""
    assert function(f'"""{text}"""', "return x + 1") == f'"""{expected}"""\nreturn x + 1'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a, b = x.chunk(2)", "a, b = jnp.array_split(x, 2)"),
        ("a, *b = x.chunk(3)", "a, *b = chunk(x, 3)"),
        ("a = x.chunk(3, dim=-1)", "a = chunk(x, 3, axis=-1)"),
        ("a, b = x.chunk(3, -1)", "a, b = chunk(x, 3, axis=-1)"),
        ("p = x.chunk(2, 1); a, b = map(torch.sin, p)", "p = jnp.array_split(x, 2, axis=1)"),
        ("p = x.chunk(2, 1); a, b = (t + 1 for t in p)", "p = jnp.array_split(x, 2, axis=1)"),
        ("p = x.chunk(2, 1); a, b = p[0], p[1]", "p = chunk(x, 2, axis=1)"),
        ("p = x.chunk(2, 1); a, b = p; c = p[0]", "p = chunk(x, 2, axis=1)"),
        ("a = x.chunk(3)", "a = chunk(x, 3)"),
        ("a = x.chunk(2, dim=n)", "a = chunk(x, 2, axis=n)"),
    ],
)
def test_pieces_that_need_not_be_equal(line: str, expected: str) -> None:
    assert function(line, "return a").splitlines()[0] == expected


def test_pieces_that_do_not_divide_are_torchs() -> None:
    source = (
        "def f(x: torch.Tensor):\n    p = x.chunk(3, dim=1)\n    a, b = x.chunk(2, 1)\n"
        "    return [*p, x.chunk(2, 1)[0], len(p), a, b]\n"
    )
    for n in (4, 5, 6, 7):
        x = torch.arange(2.0 * n).reshape(2, n)
        ours = run(source, converted=True)["f"](jnp.asarray(x.numpy()))
        for mine, theirs in zip(ours, run(source)["f"](x), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_sums_of_narrow_integers_are_wide() -> None:
    source = (
        "def f(x: torch.Tensor):\n    m = (x > 0).byte()\n    u = torch.full((300,), 2, dtype=torch.uint8)\n"
        "    i = torch.full((300,), 2, dtype=torch.int8)\n"
        "    return m.sum() - 5, m.cumsum(0) - 2, u.cumsum(0), i.cumsum(0), u[:20].prod(), u[:20].cumprod(0)\n"
    )
    x = torch.tensor([-1.0, 1.0, 2.0])
    ours = run(source, converted=True)["f"](jnp.asarray(x.numpy()))
    for mine, theirs in zip(ours, run(source)["f"](x), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    "line",
    [
        "return x.expand(2, *x.shape)",
        "return x[:1].expand(*y.shape[:-1], -1)",
        "return x[:, :1].expand(*x.shape[:1], n)",
        "return x.flip(*range(n))",
    ],
)
def test_sizes_of_which_some_are_unpacked(line: str) -> None:
    source = f"def f(x: torch.Tensor, y: torch.Tensor, n: int):\n    {line}\n"
    x = torch.arange(12.0).reshape(3, 4)
    expected = run(source)["f"](x, torch.ones(3, 2), 2).numpy()
    found = run(source, converted=True)["f"](jnp.asarray(x.numpy()), jnp.ones((3, 2)), 2)
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_a_size_is_a_tuple() -> None:
    assert function("return x.shape == torch.Size([])") == "return x.shape == ()"
    source = "Size = torch.Size\n\n\ndef f(x: torch.Tensor) -> Size:\n    return Size(x.shape)\n"
    assert "Size = tuple\n" in convert(source).code
    assert rules_of("def f(x: torch.Tensor):\n    return torch.Size(x)\n") == ["API002"]


def test_a_path_has_an_absolute_too() -> None:
    line = "root = pathlib.Path(__file__).expanduser().absolute().parent\n"
    assert line in convert(f"import pathlib\n\n{line}\n\ndef f():\n    return root\n").code


@pytest.mark.parametrize("call", ["inverse(x)", "log(20, 'step')", "t(x)", "square(input=x)"])
def test_a_method_that_takes_more_than_the_tensors_is_another_one(call: str) -> None:
    lines = f"def f(x: torch.Tensor, flow):\n    return flow.{call}\n"
    result = convert(lines)
    assert result.complete, result.findings
    assert f"flow.{call}" in result.code


def test_methods_of_tensors_without_parameters() -> None:
    names = [n for n in sorted(table()["method"]) if takes_nothing(n)]
    assert len(names) > 90
    for name in names:
        with pytest.raises(TypeError):
            getattr(torch.ones(2, 2), name)(object())


GIVEN = """
def f(x: torch.Tensor, a, b=None):
    return x.to(a), x.to(a, b) if b else x, x.to(dtype=b), x.to(device=None, dtype=b)
"""


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ((torch.float16,), (jnp.float16,)),
        ((torch.device("cpu"), torch.bool), (None, jnp.bool_)),
        (("cpu", torch.int32), ("cpu", np.dtype("int32"))),
        ((torch.ones(2, dtype=torch.int32),), (jnp.ones(2, jnp.int32),)),
        (("cpu",), (jax.devices("cpu")[0],)),
    ],
)
def test_to_what_is_known_when_it_runs(theirs: tuple[Any, ...], ours: tuple[Any, ...]) -> None:
    x = torch.arange(4.0)
    expected = run(GIVEN)["f"](x, *theirs)
    found = run(GIVEN, converted=True)["f"](jnp.asarray(x.numpy()), *ours)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.numpy().dtype
        np.testing.assert_array_equal(np.asarray(a), b.numpy())


def test_a_view_of_what_is_known_when_it_runs() -> None:
    source = "def f(x: torch.Tensor, a):\n    return x.view(a)\n"
    theirs, ours = run(source)["f"], run(source, converted=True)["f"]
    x = torch.arange(6.0)
    for given, ported in ((6, 6), ((2, -1), (2, -1)), (torch.int32, jnp.int32)):
        found = ours(jnp.asarray(x.numpy()), ported)
        np.testing.assert_array_equal(np.asarray(found), theirs(x, given).numpy())


def test_a_dtype_of_what_is_drawn() -> None:
    line = "def f(n: int, dtype=None):\n    return torch.rand(n, dtype=dtype)\n"
    made = run(line, converted=True)["f"](3, jnp.float16, rngs=nnx.Rngs(0))
    assert (made.dtype, made.shape) == (jnp.float16, (3,))


def test_a_variable_of_a_tensor_has_no_history() -> None:
    """``Variable(h)`` is a detached h in every torch since 0.4, whatever requires_grad says."""
    made = body(
        "from torch.autograd import Variable\n"
        "def f(x: torch.Tensor):\n"
        "    h = x * 2\n"
        "    a, b = Variable(h), Variable(h.data, requires_grad=True)\n"
        "    c = Variable(torch.zeros(3).cuda(), requires_grad=False)\n"
        "    return a + b + c + Variable(h.argmax())\n",
        "def f",
    )
    assert "a, b = lax.stop_gradient(h), lax.stop_gradient(h)" in made
    assert "c = jnp.zeros((3,))\n" in made
    assert "+ h.argmax()" in made
    written = "    y = Variable(x)\n    y += 1\n    return x + y\n"
    source = f"from torch.autograd import Variable\ndef f(x: torch.Tensor):\n{written}"
    assert rules_of(source) == ["MUT001"]


def test_functions_of_integers_are_functions_of_floats() -> None:
    """``arange`` of integers counts in them, which lax.rsqrt and the logistic function refuse."""
    source = (
        "def f(n: int):\n    i = torch.arange(1, n)\n    x = torch.arange(1.0, n)\n"
        "    return i.sigmoid(), i.rsqrt(), torch.special.ndtr(i), x.sigmoid(), torch.special.log_ndtr(i)\n"
    )
    ours = run(source, converted=True)["f"](5)
    for mine, theirs in zip(ours, run(source)["f"](5), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("lines", "equal"),
    [
        ("return self.a(x).chunk(3, -1)", None),
        ("p, q, r = self.a(x).chunk(3, -1)\n        return p, q, r", True),
        (
            "y = self.a(x) + self.b(x).float()\n        p, q, r = y.chunk(3, dim=-1)\n        return p, q, r",
            True,
        ),
        ("p, q, r = torch.chunk(self.c(x), 3, 1)\n        return p, q, r", True),
        ("p, q, r = self.odd(x).chunk(3, -1)\n        return p, q, r", False),
        ("p, q, r = self.later(x).chunk(3, -1)\n        return p, q, r", False),
        ("p, q, r = self.odd(x).transpose(1, 2).chunk(3, 1)\n        return p, q, r", False),
    ],
)
def test_pieces_of_what_a_layer_gives(lines: str, equal: bool | None) -> None:
    """Where they are equal for certain, JAX's own function makes them; else torch's sizes are kept."""
    source = f"""
class M(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.a = nn.Linear(d, 3 * d)
        self.b = nn.Linear(d, d * 3, bias=False)
        self.c = nn.Conv1d(5, out_channels=12, kernel_size=1)
        self.odd = nn.Linear(d, 10)
        self.later = nn.Linear(d, 3 * d)
        self.later = nn.Linear(d, 10)

    def forward(self, x: torch.Tensor):
        {lines}
"""
    model, port, code = both(source)
    x = torch.linspace(-1, 1, 40).reshape(2, 5, 4)
    for want, got in zip(model(x), port(jnp.asarray(x.numpy())), strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), atol=1e-5)
    if equal is not None:
        assert ("p, q, r = jnp.split(" in code) == equal


def test_no_tensor_to_write_to_is_what_torch_takes_without_one() -> None:
    lines = ("z = torch.mean(x, dim=-1, out=None)", "return z + torch.add(x, y, out=None).sum()")
    plain = [line.replace(", out=None", "") for line in lines]
    assert function(*lines) == function(*plain)


NESTED = """class M(nn.Module):
    def forward(self, x):
        made = D.Independent(D.Normal(torch.cat([x, x])[:, :, None].expand(-1, -1, 4), 1.0), 1)
        return made.mean
"""


def test_what_nested_calls_name_is_named_once() -> None:
    source = "import torch\nimport torch.nn as nn\nimport torch.distributions as D\n\n\n" + NESTED
    code = convert(source).code
    assert code.count("jnp.concatenate([x, x])") == 1

"""Helpers that a file carries have what the file uses of them, and do the same."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrator.convert.trim import trimmed as of_file
from migrator.convert.trim.walking import parsed
from tests.convert.tools import both, convert


def trimmed(own: ast.Module, helpers: list[str]) -> str:
    return of_file(own, helpers).helpers


def definition(code: str, name: str) -> str:
    """The text of a top-level definition; empty when there is none."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return ast.unparse(node)
    return ""


def model(init: str, forward: str = "return self.layer(x)") -> str:
    return (
        "class M(nn.Module):\n    def __init__(self, n: int = 2):\n        super().__init__()\n"
        f"{textwrap.indent(init, ' ' * 8)}\n\n    def forward(self, x: torch.Tensor):\n        {forward}\n"
    )


def test_options_that_nobody_passes_go() -> None:
    code = convert(model("self.layer = nn.Conv2d(3, 4, 3, padding=1)")).code
    layer = definition(code, "Conv2d")
    for word in ("groups", "dilation", "dtype", "spatial", "in_channels //"):
        assert word not in layer
    assert "padding" in layer
    assert "stride" in layer  # numbers stay options with their defaults
    assert not definition(code, "ConvNd")


@pytest.mark.parametrize(
    ("init", "kept"),
    [
        ("self.layer = nn.Conv2d(4, 4, 3, groups=n)", "groups"),
        ("self.layer = nn.Conv2d(4, 4, 3, **{'groups': 2})", "dilation"),
        ("make = nn.Conv2d\nself.layer = make(4, 4, 3)", "dilation"),
        (
            "self.layer = nn.Conv2d(4, 4, 3)\nself.other = type(self.layer)(4, 4, 1, groups=2)",
            "groups",
        ),
        (
            "self.layer = nn.Conv2d(4, 4, 3)\nself.n = self.layer.groups + self.layer.in_channels",
            "groups",
        ),
        ("self.layer = nn.Conv2d(4, 4, 3)\nself.other = eval(str(n))()", "groups"),
        ("self.layer = nn.BatchNorm2d(4, affine=False)", "affine"),
    ],
)
def test_what_may_be_asked_for_stays(init: str, kept: str) -> None:
    result = convert(model(init))
    code = "\n".join(
        definition(result.code, name) for name in ("ConvNd", "Conv2d", "BatchNorm", "BatchNorm2d")
    )
    assert kept in code


def test_a_subclass_of_the_file_may_ask_for_anything() -> None:
    source = (
        "class Conv(nn.Conv2d):\n    def forward(self, x):\n        return super().forward(x) * 2\n"
    )
    code = convert(source).code
    assert "groups" in definition(code, "ConvNd") + definition(code, "Conv2d")


def test_what_is_only_asked_for_is_not_written_out() -> None:
    source = model(
        "self.layer = nn.Linear(2, 2)\nfor m in self.modules():\n"
        "    if isinstance(m, nn.GroupNorm):\n        nn.init.zeros_(m.bias)"
    )
    assert definition(convert(source).code, "GroupNorm").count("\n") == 1


def test_the_rule_of_a_gradient_stays_with_its_function() -> None:
    code = convert(
        "def f(x: torch.Tensor, y: torch.Tensor):\n    return F.binary_cross_entropy(x, y)\n"
    ).code
    assert "defjvp" in code


def test_imports_of_what_is_gone_go_too() -> None:
    code = convert(model("self.layer = nn.BatchNorm2d(3)")).code
    assert "import math" not in code
    assert "import numpy" not in code


LAYERS = [
    ("self.layer = nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False)", (2, 4, 8, 8)),
    ("self.layer = nn.Conv2d(4, 6, 3, padding='same', dilation=2)", (2, 4, 8, 8)),
    ("self.layer = nn.Conv2d(4, 6, (3, 1), groups=2, padding=(1, 0))", (2, 4, 8, 8)),
    (
        "self.layer = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.Conv2d(6, 4, (3, 1), padding='same'))",
        (2, 4, 8, 8),
    ),
    (
        "k = (3, 1) if n == 2 else 3\nself.layer = nn.Conv2d(4, 6, k, stride=n, padding=n)",
        (2, 4, 8, 8),
    ),
    ("self.layer = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, (1, n)))", (2, 4, 8, 8)),
    ("self.layer = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 1, groups=4))", (2, 4, 8, 8)),
    ("self.layer = nn.Sequential(nn.Conv1d(4, 4, 3), nn.BatchNorm1d(4, momentum=None))", (2, 4, 8)),
    ("self.layer = nn.ConvTranspose2d(4, 3, 2, stride=2)", (2, 4, 5, 5)),
    ("self.layer = nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, groups=2, bias=False)", (2, 4, 5, 5)),
    ("self.layer = nn.BatchNorm2d(4, affine=False)", (3, 4, 5, 5)),
    ("self.layer = nn.BatchNorm2d(4, track_running_stats=False, eps=0.1)", (3, 4, 5, 5)),
    ("self.layer = nn.GroupNorm(2, 4)", (3, 4, 5)),
    ("self.layer = nn.InstanceNorm2d(4, affine=True)", (3, 4, 5, 5)),
    ("self.layer = nn.MaxPool2d(2)", (2, 3, 6, 6)),
    ("self.layer = nn.MaxPool2d(3, 2, 1, ceil_mode=True)", (2, 3, 6, 6)),
    ("self.layer = nn.AvgPool2d(3, 2, 1, count_include_pad=False)", (2, 3, 6, 6)),
    ("self.layer = nn.AdaptiveAvgPool2d((None, 3))", (2, 3, 6, 7)),
    ("self.layer = nn.PReLU(3)", (2, 3, 4)),
    ("self.layer = nn.Embedding(5, 3, padding_idx=0, max_norm=1.0)", None),
    ("self.layer = nn.LocalResponseNorm(2)", (2, 3, 4, 4)),
    ("self.layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)", (2, 3, 4)),
    ("self.layer = nn.GRU(4, 3, 2, bidirectional=True)", (5, 2, 4)),
]


@pytest.mark.parametrize(("init", "shape"), LAYERS)
def test_layers_do_as_torchs(init: str, shape: tuple[int, ...] | None) -> None:
    module, port, _ = both(
        model(init, "y = self.layer(x)\n        return y[0] if type(y) is tuple else y")
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(np.float32) if shape else rng.integers(0, 5, (3, 2))
    for train in (True, False):
        module.train(train)
        port.train() if train else port.eval()
        theirs = module(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(port(jnp.asarray(x)), theirs, rtol=1e-4, atol=1e-5)


CALLS = [
    "F.cross_entropy(x, y)",
    "F.cross_entropy(x, y, label_smoothing=0.1)",
    "F.cross_entropy(x, y, weight=x.mean(0).abs(), reduction='sum', ignore_index=1)",
    "F.nll_loss(x, y, reduction='none')",
    "F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)",
    "F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=x @ x.T > 0, scale=0.3)",
    "F.smooth_l1_loss(x, x * 2, beta=0.5) + F.huber_loss(x, x * 3)",
    "F.interpolate(x[None, None], scale_factor=2, mode='bilinear')",
    "F.interpolate(x[None, None], size=(5, 7), mode='bicubic', align_corners=True)",
    "F.pad(x, (1, 2), mode='constant', value=3.0)",
    "F.unfold(x[None, None], 2, stride=1, padding=1)",
    "F.grid_sample(x[None, None], torch.tanh(x[None, :, :4].reshape(1, 2, -1, 2)), align_corners=False)",
    "torch.cdist(x, x * 2) + F.cosine_similarity(x[:, None], x[None], dim=-1)",
    "F.max_pool1d(x, 2) + F.avg_pool1d(x, 2)",
]


@pytest.mark.parametrize("call", CALLS)
def test_functions_do_as_torchs(call: str) -> None:
    source = f"def f(x: torch.Tensor, y: torch.LongTensor):\n    return {call}\n"
    result = convert(source)
    assert result.complete, result.findings
    theirs, ours = {}, {}
    exec("import torch\nimport torch.nn.functional as F\n" + source, theirs)
    exec(result.code, ours)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 6)).astype(np.float32), rng.integers(0, 6, 4)
    np.testing.assert_allclose(
        ours["f"](jnp.asarray(x), jnp.asarray(y)),
        theirs["f"](torch.tensor(x), torch.tensor(y)).numpy(),
        rtol=1e-4,
        atol=1e-5,
    )


def test_text_that_is_not_touched_stays_as_it_is() -> None:
    helpers = 'def f(x):\n    """Doc."""\n    return x  # why\n'
    assert trimmed(ast.parse("f(1)"), [helpers]) == helpers


def test_comments_and_blank_lines_stay_with_their_statements() -> None:
    helpers = (
        "def f(x, scale=None):\n    # first\n    y = x + 1\n\n    # second\n    if scale is not None:\n"
        "        y = y * scale\n    # third\n    return y\n"
    )
    assert trimmed(ast.parse("f(1)"), [helpers]) == (
        "def f(x):\n    # first\n    y = x + 1\n    # third\n    return y\n"
    )


@pytest.mark.parametrize(
    ("own", "helpers", "expected"),
    [
        ("f(1)", "def f(x, p=0.5):\n    return x * p\n", "def f(x, p=0.5):\n    return x * p\n"),
        (
            "f(1)",
            "def f(x, p=0):\n    if p:\n        x = x * p\n    return x\n",
            "def f(x):\n    return x\n",
        ),
        ("f(1, q=None)", "def f(x, q=None):\n    return x if q is None else q\n", None),
        (
            "f(1, q=2)",
            "def f(x, q=None):\n    if q is not None:\n        x = x * q\n    return x\n",
            None,  # the default that the signature shows must still do
        ),
        ("f(1)\ng = f", "def f(x, q=None):\n    return x if q is None else q\n", None),
        ("f(*a)", "def f(x, q=None):\n    return x if q is None else q\n", None),
        ("h = {'f': 1}\nf(2)", "def f(x, q=None):\n    return x if q is None else q\n", None),
        (
            "f(1)",
            "def f(x, q=None):\n    for i in range(3):\n        x = x + 1 if q is None else q\n        q = x\n    return x\n",
            None,
        ),
        (
            "f(1)",
            "def f(x, q=None):\n    def g():\n        return q\n    q = x\n    return g()\n",
            None,
        ),
        (
            "f(1)",
            "def g(x, kind='a'):\n    if kind == 'a':\n        return -x\n    return x\n\n\ndef f(x, kind='a'):\n    return g(x, kind)\n",
            "def f(x):\n    return -x\n",
        ),
    ],
)
def test_folding(own: str, helpers: str, expected: str | None) -> None:
    assert trimmed(ast.parse(own), [helpers]) == (helpers if expected is None else expected)


HANDS_ON = """
class A(nnx.Module):
    def __init__(self, n, *, rngs):
        self.w = nnx.Param(jnp.ones(n))

    def __call__(self, x):
        scale = 2 * x.ndim
        return self._forward(x, self.w[...], scale)

    def _forward(self, x, w, scale):
        batched = x[None]
        batched = batched * scale
        return batched + w
"""


def test_a_method_that_only_hands_on_is_one_with_the_other() -> None:
    code = trimmed(ast.parse("A(2, rngs=r)"), [HANDS_ON.lstrip()])
    assert "_forward" not in code
    assert "        return x[None] * scale + self.w[...]\n" in code


@pytest.mark.parametrize(
    ("own", "changes"),
    [
        ("class B(A):\n    def _forward(self, x, w, scale):\n        return w", ()),
        ("A(2, rngs=r)._forward(1, 2, 3)", ()),
        ("getattr(A(2, rngs=r), '_forward')", ()),
        (
            "A(2, rngs=r)",
            ("batched + w", "batched + w + w"),
        ),  # the argument would be computed twice
        ("A(2, rngs=r)", ("x[None]", "[w for _ in x]")),
        ("A(2, rngs=r)", ("batched + w", "lambda: batched + w")),
        ("A(2, rngs=r)", ("batched = x[None]", "w = x[None]")),
        (
            "A(2, rngs=r)",
            ("return self._forward", "self._forward(1, 2, 3)\n        return self._forward"),
        ),
    ],
)
def test_methods_that_stay_apart(own: str, changes: tuple[str, str] | tuple[()]) -> None:
    helper = HANDS_ON.lstrip()
    helper = helper.replace(*changes) if changes else helper
    assert "def _forward" in trimmed(ast.parse(own), [helper])


@pytest.mark.parametrize(
    ("second", "merged"),
    [
        ("y = y + 1", "y = x * 2 + 1"),
        ("y = (y + 1).sum()", "y = (x * 2 + 1).sum()"),
        ("return y[0]", "return (x * 2)[0]"),
        ("y = [z for z in y]", "y = [z for z in x * 2]"),
        ("y = y + y", None),
        ("y = 1 + y", None),
        ("x = y + 1", None),
        ("# why\n    y = y + 1", None),
        ("y = y + (" + "x + " * 20 + "1)", None),
        ("y = f(y)", None),
    ],
)
def test_short_steps_merge_in_what_is_no_longer_as_written(second: str, merged: str | None) -> None:
    helper = f"def f(x, q=None):\n    if q is not None:\n        x = q\n    y = x * 2\n    {second}\n    return y, x\n"
    code = trimmed(ast.parse("f(1)"), [helper])
    assert ("y = x * 2\n" in code) is (merged is None)
    assert merged is None or f"    {merged}\n" in code
    every = trimmed(ast.parse("g = f"), [helper])
    assert every == helper


@pytest.mark.parametrize("later", ["if x:\n        z = y", "z = [z for _ in y]"])
@pytest.mark.parametrize("second", ["z = y", "z, w = y[0]"])
def test_what_is_read_again_keeps_its_name(second: str, later: str) -> None:
    helper = f"def f(x, q=None):\n    if q is not None:\n        x = q\n    y = x * 2\n    {second}\n    {later}\n    return z\n"
    assert f"y = x * 2\n    {second}" in trimmed(ast.parse("f(1)"), [helper])


def test_functions_of_one_line_are_written_out_where_they_are_short() -> None:
    per = "def per(v, n):\n    return (v,) * n if hasattr(v, '__index__') else tuple(v)\n"
    layer = (
        "class A(nnx.Module):\n    def __init__(self, k, s=1, d=1, *, rngs):\n        self.k, self.s = per(k, 2), per(s, 2)\n"
        "        self.d = per(d, 2)\n\n    def __call__(self, x):\n        k = self.k\n"
        "        k = k.upper() if isinstance(k, str) else [(p, p) for p in k]\n"
        "        return f(x, k, self.s, self.d)\n"
    )
    ints = trimmed(ast.parse("A(3, n, rngs=r)\nA(5, rngs=r)"), [per, layer])
    assert "self.k, self.s = (k,) * 2, per(s)\n" in ints
    assert "k = [(p, p) for p in self.k]\n" in ints
    tuples = trimmed(ast.parse("A((3, 1), rngs=r)"), [per, layer])
    assert "self.k, self.s = per(k), (s,) * 2\n" in tuples
    assert "isinstance(k, str)" in tuples


def test_what_one_file_leaves_out_is_there_for_the_next() -> None:
    """The helpers are read once for all files."""
    helpers = (
        "class A(nnx.Module):\n    def __init__(self, n, scale=None, *, rngs):\n        self.n = n\n"
        "        self.scale = scale\n\n    def __call__(self, x):\n        if self.scale is not None:\n"
        "            x = x * self.scale\n        return x * self.n\n",
        "def f(x, p=None):\n    return x if p is None else g(x, p)\n",
        "def g(x, p):\n    return x**p\n",
    )
    texts = ("A(2, rngs=r)\nf(1)", "A(2, 3.0, rngs=r)\nf(1, 2)", "A(2, rngs=r)\nf(1, 2)")
    files = tuple(map(ast.parse, texts))
    alone = []
    for own in files:
        parsed.cache_clear()
        alone.append(trimmed(own, helpers))
    assert len(set(alone)) == 3
    assert [trimmed(own, helpers) for own in (*files, *reversed(files))] == [*alone, *alone[::-1]]


def test_what_a_decorator_hands_over_stays() -> None:
    helper = (
        "def f(x):\n    @jax.custom_jvp\n    def g(x):\n        return abs(x)\n\n"
        "    @g.defjvp\n    def rule(primals, tangents):\n        return g(*primals), 2 * tangents[0]\n\n"
        "    def unread():\n        return 1\n\n    return g(x)\n"
    )
    text = trimmed(ast.parse("f(1)"), [helper])
    assert "def rule" in text
    assert "unread" not in text
    code = convert("def f(x: torch.Tensor):\n    return x.median()\n").code
    made: dict[str, Any] = {}
    exec(code, made)
    assert made["f"](jnp.array([3.0, 1.0, 2.0, 2.0])) == 2
    assert jax.grad(made["f"])(jnp.array([3.0, 1.0, 2.0, 2.0])).tolist() == [0, 0, 0.5, 0.5]

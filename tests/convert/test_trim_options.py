"""What a file's own code says to its helpers decides what they need: features nobody wants, integers, partial calls."""

from __future__ import annotations

import ast

import numpy as np
import pytest
import torch

from migrator.convert.trim import trimmed
from migrator.convert.trim.own import edited
from tests.convert.tools import both, convert, same


def net(init: str, forward: str = "x", more: str = "", head: str = "self") -> str:
    lines = "".join(f"        {line}\n" for line in init.split("\n"))
    start = f"class M(nn.Module):\n    def __init__({head}):\n        super().__init__()\n"
    return f"{more}{start}{lines}\n    def forward(self, x):\n        return {forward}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A(1, bias=False)\n", "A(1)\n"),
        ("A(1, bias=False, rngs=r)\n", "A(1, rngs=r)\n"),
        ("A(n=1, bias=False)\n", "A(n=1)\n"),
        ("é = A('é', bias=False)  # é\n", "é = A('é')  # é\n"),
        ("A(A(1, bias=False), bias=False)\n", "A(A(1))\n"),
        ("A(\n    1,\n    bias=False,\n)\n", "A(\n    1,\n)\n"),
        ("A(\n    1,  # in\n    bias=False,\n    c=2,\n)\n", "A(\n    1,  # in\n    c=2,\n)\n"),
        ("A(\n    1,  # in\n    bias=False\n)\n", "A(\n    1,  # in\n    \n)\n"),
        ("B(1, bias=False)\n", "B(1, bias=False)\n"),
        ("A((1), bias=False, rngs=r)\n", "A((1), rngs=r)\n"),
        ("A((\n    1\n), bias=(False))\n", "A((\n    1\n))\n"),
        ("A(1 , bias = False , c=2)\n", "A(1  , c=2)\n"),
        ("isinstance(m, (A, C))\n", "isinstance(m, A)\n"),
        ("f'{isinstance(m, (A, C))}'\n", "f'{isinstance(m, (A, C))}'\n"),
        ("isinstance(m, (A, C, nn.B))\n", "isinstance(m, (A, nn.B))\n"),
    ],
)
def test_the_files_own_text_without_what_it_need_not_say(text: str, expected: str) -> None:
    made = edited(text, {"A": {"bias"}}, {"C"})
    assert made == expected
    ast.parse(made)


def test_layers_that_are_all_without_a_bias_have_none() -> None:
    init = "self.a = nn.Conv2d(3, 4, 3, bias=False)\nself.b = nn.Conv2d(4, 2, 3, padding=1, bias=False)"
    model, port, code = both(net(init, "self.b(self.a(x))"))
    assert "bias" not in code.replace("here with ``bias=False``", "")
    assert "here with ``bias=False``." in code
    same(model, port, np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))


@pytest.mark.parametrize(
    "other",
    [
        "self.b = nn.Conv2d(4, 2, 3)",
        "self.b = nn.Conv2d(4, 2, 3, bias=flag)",
        "conv = functools.partial(nn.Conv2d, bias=False)\nself.b = conv(4, 2, 3)",
        "options = {'bias': False}\nself.b = nn.Conv2d(4, 2, 3, **options)",
    ],
)
def test_a_layer_that_says_it_otherwise_keeps_the_option(other: str) -> None:
    init = f"self.a = nn.Conv2d(3, 4, 3, bias=False)\n{other}"
    more = "import functools\n\n\n"
    source = net(init, "self.b(self.a(x))", more, head="self, flag: bool = True")
    model, port, code = both(source)
    assert "bias=True" in code
    assert "here with" not in code
    same(model, port, np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))


def test_what_is_built_in_an_f_string_keeps_its_options() -> None:
    init = "self.a = nn.Conv2d(3, 4, 3, bias=False)\nprint(f'{nn.Conv2d(4, 2, (1), bias=False)}')"
    model, port, code = both(net(init, "self.a(x)"))
    assert "here with" not in code
    same(model, port, np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32))


CONV = "def conv(n: int, stride: int = 1) -> nn.Conv2d:\n    return nn.Conv2d(n, 4, 3, stride=stride)\n\n\n"


@pytest.mark.parametrize(
    ("more", "init", "known"),
    [
        (CONV, "self.a = conv(3)\nself.b = conv(4, stride=2)", True),
        (CONV, "self.a = conv(3)\nself.b = conv(4, stride=(2, 1))", False),
        (CONV, "self.a = conv(3)\nself.b = conv(4, (2, 1))", False),
        (CONV, "s = 4 // 2\nself.a = conv(3)\nself.b = conv(4, s if True else s + 1)", True),
        (CONV, "self.a = conv(3)\nfor s in range(1, 2):\n    self.b = conv(4, s)", True),
        (CONV, "s = (2, 1)\nself.a = conv(3)\nself.b = conv(4, s)", False),
        (CONV, "self.a = conv(3)\nself.b = conv(4, *[(2, 1)])", False),
        (CONV, "kw = {'stride': (2, 1)}\nself.a = conv(3)\nself.b = conv(4, **kw)", False),
        (CONV, "self.a = conv(3)\nmake = conv\nself.b = make(4, (2, 1))", False),
        (CONV, "self.a = conv(3)\nself.b = [conv][0](4, (2, 1))", False),
        (CONV, "self.a = conv(3)\nself.b = functools.partial(conv, stride=(2, 1))(4)", False),
        (CONV, "self.a = conv(3)\nself.b = conv(4, [c for c in [1, (2, 1)]][1])", False),
        (
            CONV + "def both(n: int, s: int):\n    return conv(n, s)\n\n\n",
            "self.a = both(3, 1)\nself.b = both(4, s=2)",
            True,
        ),
        (
            CONV + "def both(n: int, s: int):\n    return conv(n, s)\n\n\n",
            "self.a = both(3, 1)\nself.b = both(4, s=(2, 1))",
            False,
        ),
        (CONV.replace("stride: int", "stride"), "self.a = conv(3)\nself.b = conv(4)", False),
        (CONV.replace("= 1)", "= (1, 1))"), "self.a = conv(3)\nself.b = conv(4)", False),
        (
            CONV.replace("    return", "    stride = (stride, 1)\n    return"),
            "self.a = conv(3)\nself.b = conv(4)",
            False,
        ),
    ],
)
def test_an_integer_by_its_hint_is_one_unless_the_file_says_otherwise(
    more: str, init: str, known: bool
) -> None:
    model, port, code = both(net(init, "self.b(self.a(x))", f"import functools\n\n\n{more}"))
    assert ("self.stride = (stride,) * 2" in code) is known
    assert ("per_axis(stride, 2)" in code) is not known
    same(model, port, np.random.default_rng(0).normal(size=(2, 3, 9, 9)).astype(np.float32))


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("[2]", True),
        ("[(2, 1)]", False),
        ("[[], {'stride': 2}]", True),
        ("[[], {'stride': (2, 1)}]", False),
    ],
)
def test_what_a_file_says_of_its_own_models_arguments_counts(given: str, known: bool) -> None:
    source = net(
        "self.a = nn.Conv2d(3, 4, 3, stride=stride)", "self.a(x)", head="self, stride: int"
    )
    code = convert(f"{source}\n\ndef get_init_inputs():\n    return {given}\n").code
    assert ("self.stride = (stride,) * 2" in code) is known


@pytest.mark.parametrize(("size", "known"), [("3, stride=2", True), ("(3, 2), padding=1", False)])
def test_what_is_handed_to_partial_is_known(size: str, known: bool) -> None:
    model, port, code = both(net(f"self.pool = nn.MaxPool2d({size})", "self.pool(x)"))
    assert ("def per_axis" in code) is not known
    same(model, port, np.random.default_rng(0).normal(size=(2, 3, 9, 9)).astype(np.float32))


def test_what_partial_leaves_open_stays_open() -> None:
    helper = "def f(x, a=1, b=2):\n    if a == 1:\n        return x\n    return x * b\n"
    made = trimmed(ast.parse("functools.partial(f, b=2)"), [helper])
    assert made.helpers == helper


@pytest.mark.parametrize("more", ["affine=False", "track_running_stats=False", "**options"])
def test_a_class_that_partial_leaves_open(more: str) -> None:
    init = f"""options = {{"affine": False, "momentum": 0.5}}
norm = functools.partial(nn.BatchNorm2d, eps=1e-3)
self.a = norm(3)
self.b = norm(3, {more})"""
    model, port, _ = both(net(init, "self.b(self.a(x))", "import functools\n\n\n"))
    model.train()
    x = np.random.default_rng(0).normal(2, 3, size=(2, 3, 8, 8)).astype(np.float32)
    same(model, port, x)
    model.eval(), port.eval()
    same(model, port, x)


UPDATED = """\
class A(nnx.Module):
    def __init__(self, n, *, rngs):
        self.mean = nnx.BatchStat(jnp.zeros(n))
        self.use_running_average = False

    def __call__(self, x):
        if not self.use_running_average:
            mean = x.mean()
            self.update(mean, x.size)
        return x

    def update(self, mean, count):
        for stat in (self.mean,) if count else ():
            stat[...] = mean * count
"""


def test_steps_in_between_stand_where_they_are_called() -> None:
    made = trimmed(ast.parse("A(3, rngs=r)"), [UPDATED]).helpers
    assert "def update" not in made
    assert (
        "            count = x.size\n            for stat in (self.mean,) if count else ():\n"
        in made
    )


@pytest.mark.parametrize(
    ("own", "changes"),
    [
        ("A(3, rngs=r).update(1, 2)", ()),
        ("class B(A):\n    def update(self, mean, count):\n        pass", ()),
        ("A(3, rngs=r)", ("return x", "return count")),  # a name of the other's
        ("A(3, rngs=r)", ("        for stat", "        count = 2\n        for stat")),
        (
            "A(3, rngs=r)",
            ("            stat[...] =", "            return\n            stat[...] ="),
        ),
        ("A(3, rngs=r)", ("self.update(mean, x.size)", "self.update(mean, *x)")),
    ],
)
def test_steps_that_stay_a_method(own: str, changes: tuple[str, str] | tuple[()]) -> None:
    helper = UPDATED.replace(*changes) if changes else UPDATED
    assert "def update" in trimmed(ast.parse(own), [helper]).helpers


OPEN = """\
class L(nnx.Linear):
    def __init__(self, n, m, *, rngs, **options):
        init = g
        options = {"kernel_init": init, **options}
        super().__init__(n, m, rngs=rngs, **options)
"""


@pytest.mark.parametrize(
    ("own", "closed"),
    [
        ("L(1, 2, rngs=r)", True),
        ("L(1, 2, use_bias=False, rngs=r)", False),
        ("L(1, 2, rngs=r, **more)", False),
        ("functools.partial(L, rngs=r)", False),
        ("layer = L", False),
        ("class A(L): pass", False),
    ],
)
def test_options_that_nobody_gives(own: str, closed: bool) -> None:
    made = trimmed(ast.parse(own), [OPEN]).helpers
    assert ("super().__init__(n, m, kernel_init=init, rngs=rngs)" in made) is closed
    assert ("**options" in made) is not closed


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("isinstance(m, (nn.Conv2d, nn.GroupNorm))", "isinstance(m, Conv2d)"),
        (
            "isinstance(m, (nn.Conv2d, nn.GroupNorm, nn.InstanceNorm2d))",
            "isinstance(m, Conv2d)",
        ),
        ("isinstance(m, nn.GroupNorm)", "isinstance(m, GroupNorm)"),
        (
            "isinstance(m, (nn.InstanceNorm2d, nn.GroupNorm))",
            "isinstance(m, (InstanceNorm2d, GroupNorm))",
        ),
        (
            "f'{isinstance(m, (nn.Conv2d, nn.GroupNorm))}' == 'True'",
            "f'{isinstance(m, (Conv2d, GroupNorm))}' == 'True'",
        ),
        (
            "isinstance(m, (nn.Conv2d, nn.GroupNorm)) or isinstance(m, nn.GroupNorm)",
            "isinstance(m, (Conv2d, GroupNorm)) or isinstance(m, GroupNorm)",
        ),
    ],
)
def test_a_class_that_nothing_builds_is_not_asked_for_beside_others(
    test: str, expected: str
) -> None:
    init = f"self.a = nn.Conv2d(3, 4, 3)\nfor m in self.modules():\n    if {test}:\n        nn.init.constant_(m.weight, 2.0)"
    code = convert(net(init, "self.a(x)")).code
    assert f"if {expected}:" in code
    assert ("class GroupNorm" in code) is ("GroupNorm" in expected)
    model, port, _ = both(net(init, "self.a(x)"))
    same(model, port, torch.ones(1, 3, 5, 5).numpy())

"""Dtypes as keys, as members, by identity and as text; dicts whose keys Flax cannot sort."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
import torch

from tests.convert.tools import check, convert, loaded, rules_of

M = """import enum


class Kind(enum.Enum):
    A = 1
    B = 2


EPS = {{torch.float16: 1e-3, torch.float32: 1e-2}}
NAMED = {{"fp16": torch.float16, "fp32": torch.float32}}
BACK = {{v: k for k, v in NAMED.items()}}


def default(dtype):
    return torch.get_default_dtype() if dtype is None else dtype


class M(nn.Module):
    def __init__(self, dtype=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {init}

    def forward(self, x):
        {line}
        return self.fc(x)
"""


@pytest.mark.parametrize(
    "line",
    [
        "x = x * 2 if x.dtype in {torch.float16, torch.float32} else x",
        "x = x * 2 if x.dtype in frozenset([torch.float32]) else x",
        "x = x * EPS[x.dtype]",
        "x = x * EPS.get(x.dtype, 1.0)",
        "x = x * EPS[torch.float32]",
        'x = x * {("a", torch.float32): 2.0}[("a", x.dtype)]',
        'x = x * 2 if BACK[x.dtype] == "fp32" else x',
        "x = x * 2 if x.dtype is torch.float32 else x",
        "x = x * 2 if x.dtype is not torch.float16 else x",
        'x = x * 2 if str(x.dtype) == "torch.float32" else x',
        'x = x * 2 if f"{x.dtype}" == "torch.float32" else x',
        "x = x * torch.float16.itemsize",
    ],
)
def test_a_dtype_is_found(line: str) -> None:
    check(M.format(init="self.kind = repr(torch.float32)", line=line))


@pytest.mark.parametrize(
    ("init", "line"),
    [
        ("self.k = {Kind.A: 1.0, Kind.B: 2.0}", "x = x * self.k[Kind.B]"),
        ('self.k = {None: 1.0, "a": 2.0}', "x = x * self.k[None]"),
        ('self.k = {0: 1.0, "a": 2.0}', 'x = x * self.k["a"]'),
        ("self.k = {(1, None): 1.0, (1, 2): 3.0}", "x = x * self.k[1, 2]"),
        ("self.k = {int: 1.0, str: 2.0}", "x = x * self.k[str]"),
        ("self.k = EPS", "x = x * self.k[x.dtype]"),
        ("self.k = EPS[default(dtype)]", "x = x * self.k"),
    ],
)
def test_a_dict_with_keys_that_do_not_sort(init: str, line: str) -> None:
    check(M.format(init=init, line=line))


def test_a_dict_of_strings_stays_one() -> None:
    code = convert(M.format(init='self.k = {"a": 1, "b": 2}', line='x = x * self.k["a"]')).code
    assert 'self.k = {"a": 1, "b": 2}' in code


def test_tensors_under_such_keys() -> None:
    source = M.format(init='self.k = {None: torch.ones(4), "a": torch.ones(4)}', line="pass")
    assert "API008" in rules_of(source)


def test_what_is_told_to_people_stays() -> None:
    source = 'def f(x: torch.Tensor):\n    raise ValueError(f"not {x.dtype}")\n'
    assert 'f"not {x.dtype}"' in convert(source).code


def test_a_text_is_no_dtype_among_keys() -> None:
    check(
        """TABLE = {torch.float32: 2.0, "float32": 3.0}


def named(text):
    return TABLE[text]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) * named("float32") * TABLE[x.dtype]
"""
    )


def test_a_device_and_a_dtype_in_one_text() -> None:
    source = 'def f(x: torch.Tensor):\n    return f"{x.device.type} {x.dtype}"\n'
    theirs, ours, _ = loaded(source)
    assert ours["f"](jnp.ones(2)) == theirs["f"](torch.ones(2)) == "cpu torch.float32"


@pytest.mark.parametrize(
    "text",
    [
        "str(x.shape)",
        "repr(x.size())",
        'f"{x.shape}"',
        'f"{x.shape!r} {x.dtype!r} {str(x.shape)}"',
        "f'{x.shape[:1]}'",
        """f"{str(x.dtype).replace('torch.', ''):>9}\"""",
        "sorted(map(str, set(one.dtype for one in [x])))[0][-7:]",
        '"%s" % x.dtype',
        '"%s-%s" % (x.shape[1:], x.dtype)',
        '"{} {a}".format(x.dtype, a=x.shape)',
        'str(tuple(x.shape)) + "%d" % x.shape[0]',
        # an f-string within one has other quotes, three of them where it holds a text itself
        """f"{str(x.dtype).replace('torch.', ''):>9}{f'{len(x)}'}" """,
        """f'{str(x.dtype) + "a"}'""",
        """f"{str(x.dtype) + f'b{x.ndim}'}" """,
    ],
)
def test_texts_that_something_goes_by(text: str) -> None:
    theirs, ours, _ = loaded(f"def f(x: torch.Tensor):\n    return {text}\n")
    assert ours["f"](jnp.ones((2, 3))) == theirs["f"](torch.ones(2, 3))


def test_shapes_that_are_told_to_people_stay() -> None:
    source = (
        'def f(x: torch.Tensor):\n    print("got " + str(x.shape), f"{x.shape}", "%s" % x.dtype)\n'
    )
    code = convert(source).code
    assert 'print("got " + str(x.shape), f"{x.shape}", "%s" % x.dtype)' in code


@pytest.mark.parametrize(
    "value",
    [
        "len(set([x.dtype, y.dtype, torch.float32]))",
        "len(set(some))",
        "len(frozenset(some))",
        "x.dtype in set(some)",
        "dict([(torch.float32, 2), (torch.float16, 3)])[x.dtype]",
        "dict(zip([torch.float32, torch.float16], [2, 3]))[x.dtype]",
        "dict(zip(some, [2, 2]))[x.dtype]",
        "dict((d, 2) for d in some)[x.dtype]",
    ],
)
def test_members_and_keys_of_lists(value: str) -> None:
    lines = "y = x.half()\n    some = [x.dtype, torch.float32]\n"
    theirs, ours, _ = loaded(f"def f(x: torch.Tensor):\n    {lines}    return {value}\n")
    assert ours["f"](jnp.ones(2)) == theirs["f"](torch.ones(2))


def test_a_type_of_which_nothing_is_known_may_have_a_name_at_the_top() -> None:
    made = convert(
        "KIND = torch.ones(3).dtype\n\n\ndef f(x: torch.Tensor):\n    return x.to(KIND)\n"
    )
    assert made.complete

"""``x[i] = v`` of an argument that may be an array or a list."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, convert, loaded, rules_of

WRITES = {
    "index": "x[0] = 2 * v",
    "name": "x[i] = v",
    "mask": "x[x > 0.5] = v",
    "slice": "x[1:] = v",
    "augmented": "x[:-1] *= v + 1",
    "loop": "for j in range(2):\n        x[j] = x[j + 1] + v",
}


def run(write: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return loaded(f"def f(x, i, v):\n    {write}\n    return x\n")[:2]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_an_argument_of_which_nothing_is_known_is_written_as_what_it_is(write: str) -> None:
    theirs, ours = run(write)
    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    expected = theirs["f"](torch.from_numpy(x.copy()), 1, 3.0).numpy()
    np.testing.assert_array_equal(ours["f"](jnp.asarray(x), 1, 3.0), expected)
    np.testing.assert_array_equal(ours["f"](host := x.copy(), 1, 3.0), expected)
    np.testing.assert_array_equal(host, expected)  # the caller's numpy array is written to


def test_a_list_gets_its_item() -> None:
    theirs, ours = run(WRITES["name"])
    given = [1, 2, 3]
    assert ours["f"](given, 1, 9) is given
    assert given == theirs["f"]([1, 2, 3], 1, 9)


def test_what_another_name_still_reads_is_a_finding() -> None:
    source = "def f(x, i, v):\n    y = x\n    x[i] = v\n    return x, y\n"
    assert [found.rule for found in convert(source).findings if found.blocks] == ["MUT001"]


@pytest.mark.parametrize(
    "source",
    [
        "def f(x, v):\n    x['a'] = v\n    return x\n",
        "def f(x, i, v):\n    x[i] = v\n    return x.items()\n",
        "def f(x, i, v):\n    x[i] = v\n",
        "def f(x, i):\n    x[i] += (1,)\n    return x\n",
        "class A:\n    def f(self, i, v):\n        self[i] = v\n        return self\n",
    ],
)
def test_what_is_a_dict_or_an_own_class_stays(source: str) -> None:
    assert "with_item" not in convert(source).code


def test_an_index_that_is_computed_once_is_not_computed_twice() -> None:
    source = "def f(x, it, v):\n    x[next(it)] += v\n    return x\n"
    assert [found.rule for found in convert(source).findings if found.blocks] == ["MUT002"]
    assert convert(source.replace("+= v", "= v")).complete


BOXES = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    @staticmethod
    def corners(x):
        y = x.clone() if isinstance(x, torch.Tensor) else x.copy()
        y[..., 0] = x[..., 0] - x[..., 2] / 2
        y[..., 1:3] += x[..., 1:3]
        return y + x

    def forward(self, x):
        return self.corners(self.l(x))
"""


def test_a_copy_of_an_array_of_either_kind() -> None:
    code = check(BOXES)
    assert "y = with_item(y, (..., 0), x[..., 0] - x[..., 2] / 2)" in code
    assert rules_of(BOXES.replace("x.copy()", "x[:]"))


def test_a_number_of_a_larger_dtype_is_cast_where_it_is_written() -> None:
    source = """
    def f(x: torch.Tensor):
        m = x > 0
        m[..., 0] = 0
        m[0] = 1
        m[1, 1] = x[0, 0]
        n = torch.zeros(3, dtype=torch.long)
        n[0] = 2.7
        n[1] = x.float()[0, 0]
        return m, n
    """
    theirs, ours, _ = loaded(textwrap.dedent(source))
    x = torch.tensor([[1.0, -2.0, 3.7], [0.5, 0, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = ours["f"](jnp.asarray(x.numpy()))
    for mine, other in zip(theirs["f"](x), got, strict=True):
        np.testing.assert_array_equal(mine.numpy(), other)
        assert other.dtype in (bool, "int32")

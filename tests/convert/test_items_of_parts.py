"""``y[:, 0] = v`` of what is computed of a dict's entries, of a list's items, of what is gone through elsewhere."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, loaded, rules_of

FORWARD = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x):
{}
"""
OF_A_DICT = (
    "y = x['a'] * 2; y[:, 0] = 1.0; return y",
    "y = -x['a']; y[0] = 2; return y",
    "y = x['a'] / 2; y[y > 0.1] = 0.5; return y",
    "y = x['a'] - x['b']; y[:, 1:] += 2; return y",
    "y = x.get('a') ** 2; y[..., 1] *= 3; y[1:] = 0; return y",
    "y = (x['a'] > 0.1) * 1.0; y[0, 1] = 7.0; return y",
    "x['c'] = x['a'] * 2; x['c'][:, 0] = 1.0; return x['c']",
    "y = (x['a'] - x['b']).abs(); y[y > 0.5] = 0.5; return y * 2",
    "a, b = x['a'], x['b']; y = a * 2; y[..., 2:] = y[..., 2:] + b[..., 2:]; return y",
    "y = x['a'] * 1; y[0] = y[1]; y[2] += 1; return y",
)
OF_A_LIST = (
    "y = x[0] * 2; y[0] = 1.0; return sum(y + one for one in x)",
    "h, c = x; h = h * 0.5; h[0, 0] = 0.0; return h + c",
    "out = []\nfor one in x:\n    y = one * 2; y[:, 1] = 3; out.append(y)\nreturn out[0] + out[1]",
    "n = len(x); y = x[0] + x[1]; y[:, :2] = n; return y",
)


def forward(lines: str) -> str:
    return FORWARD.format("\n".join(" " * 8 + line for line in lines.split("\n")))


def compare(source: str, x: Any) -> None:
    model, port, _ = both(source)
    arrays = jax.tree.map(lambda one: jnp.asarray(one.numpy()), x)
    want = model(list(x) if isinstance(x, tuple) else x)
    np.testing.assert_allclose(port(arrays), want, rtol=1e-6)
    np.testing.assert_allclose(nnx.jit(lambda m, a: m(a))(port, arrays), want, rtol=1e-6)


@pytest.mark.parametrize("lines", OF_A_DICT)
def test_what_is_computed_of_the_entries_of_a_dict(lines: str) -> None:
    a, b = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(0, 3, 12).reshape(3, 4)
    compare(forward(lines), {"a": a, "b": b})


@pytest.mark.parametrize("lines", OF_A_LIST)
def test_what_is_computed_of_the_items_of_a_list(lines: str) -> None:
    compare(forward(lines), (torch.linspace(-1, 1, 12).reshape(3, 4), torch.ones(3, 4)))


@pytest.mark.parametrize(
    "lines",
    [
        "y = x * 0\nfor i, row in enumerate(x):\n    y[i] = row * 2\nreturn y",
        "n = len(x); y = x + x; y[0] = 1.0; return y * n",
        "y = x\nfor f in (torch.relu, lambda v: v * 2):\n    y = f(y)\ny[0] = 1.0\nreturn y",
    ],
)
def test_what_is_computed_of_an_argument_that_is_gone_through(lines: str) -> None:
    compare(forward(lines), torch.linspace(-1, 1, 12).reshape(3, 4))


def test_what_another_name_still_reads() -> None:
    assert rules_of(forward("y = x['a']; y[:, 0] = 1.0; return y + x['a']")) == ["MUT001"]
    assert rules_of(forward("y = x['a'] * 2; z = y[0]; y[:, 0] = 1.0; return y + z")) == ["MUT001"]


SHARED = (
    "a, b = x; y = a * 2; z = y; z += 1; return y + z",
    "a, b = x; y = a - b; v = y[0]; v += 1; return y",
    "a, b = x; y = a * 2; held = [y]; y += 1; return held",
    "y = x['a'] - 0.5; c = y[:, :2]; c -= 1; return y",
    "out = []\nfor one in x:\n    h = one * 2; out.append(h); h += 1\nreturn out",
    "y = x['a']; y += 1; return y + x['a']",
    "for one in x:\n    one *= 2\nreturn x",
    "h, c = x; h += 1; return h, x[0]",
    "n = len(x); y = x * 2; z = y; z += n; return y",
    "a, b = x; y = a * 2; self.kept = y; y += 1; return self.kept",
    "a, b = x; y = a * 2; p, q = y.chunk(2, 1); p += q; return y",
)


@pytest.mark.parametrize("lines", SHARED)
def test_what_is_added_to_what_may_be_a_tensor_under_another_name(lines: str) -> None:
    assert "MUT001" in rules_of(forward(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "total = 0\nfor one in x:\n    total += one * 2\nreturn total",
        "a, b = x; y = a * 2; y += b; return y + a",
        "h, c = x; h = h * 2; h += c; return h",
        "n = x[0].shape[0]; m = n; m += 1; return x[0] * m + n",
        "y = x[0]; y = y - 1; y *= 2; return y + x[0]",
    ],
)
def test_what_nothing_else_holds_is_added_to(lines: str) -> None:
    compare(forward(lines), (torch.linspace(-1, 1, 12).reshape(3, 4), torch.ones(3, 4)))


@pytest.mark.parametrize(
    "lines",
    [
        "y = x.get('a'); y['b'] = 1; return y['b'] + x['c']",
        "y = dict(x); y['b'] = 1; return y['b']",
        "seen = {}\nfor key in x:\n    seen[key] = 1\nreturn seen",
    ],
)
def test_dicts_stay_as_they_are(lines: str) -> None:
    model, port, code = both(forward(lines))
    assert "with_item" not in code
    assert model({"a": {}, "c": 2}) == port({"a": {}, "c": 2})


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("y = x['a'] * 2; return y[y > 0.5].sum()", "DYN001"),
        ("y = x['a'] * 2; m = (y > 0.5) & (y < 0.9); return y[~m].mean()", "DYN001"),
        ("y = x['a'] * 2\nif y.sum() > 2:\n    y = -y\nreturn y", "DYN002"),
        (
            "out = 0\nfor one in x:\n    if one.max() > 0.5:\n        out = out + one\nreturn out",
            "DYN002",
        ),
        ("while x['a'].norm() < 3:\n    x['a'] = x['a'] + 1\nreturn x['a']", "DYN002"),
    ],
)
def test_what_hangs_on_the_numbers_in_an_argument(lines: str, rule: str) -> None:
    assert rule in rules_of(forward(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "h, w = x['size']\nif h > w:\n    return x['a'] * h\nreturn x['a'] * w",
        "y = x['a'] * 2; return y.sum() + y.abs().mean(), y.exp().max()",
        "chosen = [one for one in x['list'] if len(one) > 2]; return x['a'] * len(chosen)",
    ],
)
def test_what_hangs_on_sizes_and_lists_in_an_argument(lines: str) -> None:
    model, port, _ = both(forward(lines))
    given = {"size": (3, 4), "list": ["abc", "d"]}
    a = torch.linspace(-1, 1, 12).reshape(3, 4)
    want = model({**given, "a": a})
    got = port({**given, "a": jnp.asarray(a.numpy())})
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-6), got, want)


def test_a_place_that_a_call_finds_is_looked_for_once() -> None:
    assert "MUT002" in rules_of(forward("x[next(iter('a'))][:, 0] = 1.0; return x['a']"))


class Logger:
    """What has a method of the name of one of tensors."""

    def log(self, *args: Any) -> float:
        return float(len(args))


def test_a_method_of_an_item_that_is_handed_a_text() -> None:
    model, port, code = both(forward("return x['a'] * x['logger'].log('loss', 1)"))
    assert "x['logger'].log('loss', 1)" in code
    a = torch.ones(3, 4)
    given = {"logger": Logger(), "a": jnp.asarray(a.numpy())}
    np.testing.assert_array_equal(port(given), model({**given, "a": a}))


CARTESIAN = """
import numpy as np

def cartesian(arrays, out=None):
    n = int(np.prod([len(one) for one in arrays]))
    if out is None:
        out = np.zeros([n, len(arrays)])
    m = n // len(arrays[0])
    out[:, 0] = np.repeat(arrays[0], m)
    if arrays[1:]:
        cartesian(arrays[1:], out=out[0:m, 1:])
        for j in range(1, len(arrays[0])):
            out[j * m : (j + 1) * m, 1:] = out[0:m, 1:]
    return out
"""


def test_arrays_of_numpy_are_written_as_they_are() -> None:
    theirs, ours, code = loaded(CARTESIAN)
    assert "with_item" not in code
    given = [np.arange(2.0), np.arange(3.0), np.ones(2)]
    np.testing.assert_array_equal(ours["cartesian"](given), theirs["cartesian"](given))

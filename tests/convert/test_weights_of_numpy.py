"""``torch.from_numpy(w.transpose([3, 2, 0, 1]))``: what is handed there is an array of numpy's, and its methods are."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from tests.convert.tools import convert, loaded, rules_of

SOURCE = """
import numpy as np


def read(w, conv=False, place=None):
    '''HWIO to OIHW'''
    if place is not None:
        w = w[place]
    if conv:
        w = w.transpose([3, 2, 0, 1])
    elif w.ndim == 3:
        w = w.transpose(2, 0, 1).flatten()
    return torch.from_numpy(w)
"""


@pytest.mark.parametrize(
    ("shape", "conv", "place"),
    [((2, 3, 4, 5), True, None), ((2, 3, 4), False, None), ((2, 2, 3, 4, 5), True, 1)],
)
def test_axes_of_numpy(shape: tuple[int, ...], conv: bool, place: int | None) -> None:
    theirs, ours, text = loaded(SOURCE)
    assert "w.transpose([3, 2, 0, 1])" in text
    w = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got, want = ours["read"](w, conv, place), theirs["read"](w, conv, place)
    assert isinstance(got, jnp.ndarray)
    np.testing.assert_array_equal(got, want.numpy())


def test_a_tensor_keeps_its_own_methods() -> None:
    """What is asked whether it is an array, or made one before, is not taken for numpy's."""
    made = SOURCE.replace("    if conv:", "    w = torch.as_tensor(w)\n    if conv:")
    assert "API002" in rules_of(made.replace("return torch.from_numpy(w)", "return w"))
    _, ours, text = loaded(
        "def f(w):\n    if isinstance(w, torch.Tensor):\n        return w.transpose(0, 1)\n"
        "    return torch.from_numpy(w)\n"
    )
    assert "swapaxes" in text or ".T" in text or "transpose" in text
    np.testing.assert_array_equal(ours["f"](jnp.ones((2, 3))), np.ones((3, 2)))


def test_what_becomes_an_array_of_numpy_later_may_be_a_tensor() -> None:
    """``x.max(1)`` of a tensor is two tensors, of an array one."""
    source = """
def host(x):
    return x.numpy()


def f(x):
    y = x.max(1)
    x = host(x)
    return y, torch.from_numpy(x)
"""
    found = convert(source)
    assert not found.complete or "x.max(1)" not in found.code

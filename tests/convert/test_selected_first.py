"""Integers beside tensors in an index, which torch takes before the tensors."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded, rules_of

READ = [
    "a[i, :, idx]",
    "a[:, i, idx]",
    "a[i, idx]",
    "a[idx, :, i]",
    "a[:, idx, :, 0]",
    "a[0, :, idx, None]",
    "a[None, 0, :, idx]",
    "a[..., 0, :, idx]",
    "a[0, ..., idx]",
    "a[:, 0, :, idx]",
    "a[0, :, idx, idx]",
    "a[idx, :, idx, 1]",
    "a[-1, 1:, [0, 2]]",
    "a[torch.tensor(1), :, idx]",
]
HEAD = "def f(a: torch.Tensor, idx: torch.LongTensor, v: torch.Tensor):\n    i = 1\n"


@pytest.mark.parametrize("read", READ)
def test_the_axes_of_what_is_read(read: str) -> None:
    _same(f"    return {read}\n")


@pytest.mark.parametrize(
    "place", ["a[i, :, idx]", "a[:, idx, :, 0]", "a[0, 1:, idx]", "a[idx, :, i]"]
)
def test_where_it_is_written(place: str) -> None:
    _same(
        f"    a = a.clone()\n    {place} = {place.replace('a[', 'a.flip(0)[')} * 2\n    return a\n"
    )


def _same(lines: str) -> None:
    theirs, ours, _ = loaded(HEAD + lines)
    a, idx, v = torch.randn(3, 3, 3, 4), torch.tensor([0, 2]), torch.randn(2)
    want = theirs["f"](a, idx, v)
    got = ours["f"](*(jnp.asarray(x.numpy()) for x in (a, idx, v)))
    np.testing.assert_allclose(got, want.numpy())


def test_what_may_be_an_integer_and_what_is_added_to() -> None:
    source = "def f(a: torch.Tensor, idx: list, i):\n    a = a + 1\n    a[i, :, [0, 1]] = 2 * a[0, :, [0, 1]]\n    return a\n"
    assert rules_of(source) == ["API005"]
    assert rules_of(HEAD + "    a = a + 1\n    a[0, :, idx] += 1\n    return a\n") == ["MUT002"]


@pytest.mark.parametrize(
    "read", ["a[i, :, idx]", "a[:, idx, :, i]", "a[i, ..., idx]", "a[None, i, :, idx]"]
)
@pytest.mark.parametrize("given", [1, torch.tensor(1), torch.tensor([1, 0])])
def test_what_only_a_run_tells(read: str, given: object) -> None:
    head = "def f(a: torch.Tensor, idx: torch.LongTensor, i):\n"
    theirs, ours, code = loaded(head + f"    return {read}\n")
    assert "item(a, jnp.s_[" in code
    a, idx = torch.randn(3, 3, 3, 4), torch.tensor([0, 2])
    place = jnp.asarray(given.numpy()) if isinstance(given, torch.Tensor) else given
    got = ours["f"](jnp.asarray(a.numpy()), jnp.asarray(idx.numpy()), place)
    np.testing.assert_allclose(got, theirs["f"](a, idx, given).numpy())

"""Whole numbers beyond 32 bits: JAX raises when one meets an array, of floats as well; torch does not."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import X, both, convert, function, rules_of

HEAD = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.one = nn.Linear(1, 1)\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("return x.float() * 10**10", "x.astype(jnp.float32) * float(10**10)"),
        ("return torch.sigmoid(x) + (-2**32 + 1)", "jax.nn.sigmoid(x) + float(-2**32 + 1)"),
        ("return torch.sigmoid(x) > 3000000000", "jax.nn.sigmoid(x) > float(3000000000)"),
        ("return 2**40 - x.float()", "float(2**40) - x.astype(jnp.float32)"),
        ("return torch.where(mask, x, 2**40)", "jnp.where(mask, x, as_element(2**40, x))"),
        ("return x.float().clamp(max=2**33)", "clamp(x.astype(jnp.float32), max=float(2**33))"),
        ("return mask.long() / 2**32", "mask.astype(jnp.int32) / float(2**32)"),
        ("return x * int(1e12)", "x * as_element(int(1e12), x)"),
        (
            "return torch.sigmoid(x) + (-999999999 - 999999999 - 999999999)",
            "jax.nn.sigmoid(x) + float(-999999999 - 999999999 - 999999999)",
        ),
        ("return torch.ones_like(x) * -2**33", "jnp.ones_like(x) * as_element(-2**33, x)"),
    ],
)
def test_beside_floats_it_is_a_float(line: str, text: str) -> None:
    assert function(line).endswith(f"return {text}")


@pytest.mark.parametrize(
    "line",
    [
        "return x * (2**31 - 1)",
        "return x.view(x.size(0) % 2**40, -1)",
        "return x if n < 2**40 else y",
        "return x * float(2**40) + 1e12",
        "return x * (2**40 >> 20)",
    ],
)
def test_what_is_no_such_number_beside_a_tensor_stays(line: str) -> None:
    made = function(line)
    assert "as_element" not in made
    assert made.count("float(") == line.count("float(")


@pytest.mark.parametrize(
    "line",
    [
        "return x.long() * 2654435761",
        "return x.long() ^ (1 << 40)",
        "return x.long() & 0xFFFFFFFF",
        "return x.argmax() > 2**40",
        "return torch.tanh(x) * 2**40",
        "return x.long().clamp(max=2**40)",
        "return torch.tensor([1, 2**40])",
        "return torch.full((3,), 2**40)",
        "h = x.long()\n    h *= 2**33\n    return h",
    ],
)
def test_beside_whole_numbers_it_is_a_finding(line: str) -> None:
    assert rules_of(f"def f(x: torch.Tensor):\n    {line}\n") == ["DTY004"]


HELD = """
PRIMES = (1, 2654435761)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.primes = [1, 805459861, 3674653429]
        self.most = 2**33
    def forward(self, x):
        {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "return x.long() * self.primes[2]",
        "return x.long() * PRIMES[1]",
        "return x.long() + self.most",
        "return sum(x.long() * p for p in self.primes)",
        "return self.mixed(x.long(), self.most)\n\n    def mixed(self, h: torch.LongTensor, by):\n        return h ^ by",
    ],
)
def test_what_lists_names_and_arguments_hold_is_known(body: str) -> None:
    assert rules_of(HELD.format(body=body)) == ["DTY004"]


def test_masks_of_large_numbers_compute_what_torch_computes() -> None:
    source = HEAD + (
        "    most = -2**32 + 1\n"
        "    def forward(self, x):\n"
        "        padding = torch.ones_like(x) * (-2**32 + 1)\n"
        "        rest = torch.full_like(x.float(), 2**34) + torch.where(x > 0, x.float(), 2**35)\n"
        "        low = torch.softmax(x, -1) * self.most\n"
        "        return torch.where(x > 0, x, padding), rest, low, x.masked_fill(x > 0, -10**12)\n"
    )
    model, port, _ = both(source)
    for theirs, ours in zip(model(X), port(jnp.asarray(X.numpy())), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6)
        assert ours.dtype == theirs.numpy().dtype


def test_a_seed_or_a_size_is_no_element() -> None:
    source = (
        "def f(x: torch.Tensor, n: int):\n    seed = n % 2**32\n    return x * (n < 2**40) + seed\n"
    )
    assert convert(source).complete


def test_integers_that_are_not_known_to_be_any_raise_as_jax_does() -> None:
    model, port, _ = both(HEAD + "    def forward(self, x):\n        return x * 2**40\n")
    assert float(model(torch.ones(1))[0]) == float(port(jnp.ones(1))[0])
    with pytest.raises(OverflowError):
        port(jnp.ones(1, jnp.int32))

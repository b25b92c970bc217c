"""What a test says of what it asks, where it does not hold, and what casts say of dtypes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, loaded, rules_of

TRIM = """
def trim(x, size):
    if ASKED:
        size = size.size(-1)
    left = x.size(-1) - size
    if left < 0:
        raise ValueError("too small")
    if left:
        x = x[..., left // 2:-(left - left // 2)]
    return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        y = self.fc(x)
        return y + trim(x, y) + trim(x, 2)
"""


@pytest.mark.parametrize(
    "asked",
    ["hasattr(size, 'size')", "isinstance(size, torch.Tensor)", "torch.is_tensor(size)"],
)
def test_a_size_or_a_tensor_that_has_it(asked: str) -> None:
    check(TRIM.replace("ASKED", asked))


@pytest.mark.parametrize(
    "cast", ["torch.bool", "torch.BoolTensor", "'torch.BoolTensor'", "torch.BoolTensor(1).dtype"]
)
def test_a_mask_that_type_makes_is_one(cast: str) -> None:
    source = f"def f(x: torch.Tensor):\n    mask = x.type({cast})\n    return x[mask]\n"
    assert rules_of(source)


MASKED = """
import numpy as np


class M(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.n = n
        self.mask = self.negatives().type(torch.bool)

    def negatives(self):
        one = np.eye(2 * self.n)
        two = np.eye(2 * self.n, 2 * self.n, k=-self.n)
        return (1 - torch.from_numpy(one + two)).type(torch.bool)

    def forward(self, x):
        y = x.t() @ x
        return y[self.mask].view(2 * self.n, -1).sum(0)
"""


def test_a_mask_of_sizes_that_a_method_makes() -> None:
    source = MASKED.replace("y[self.mask].view(2 * self.n, -1).sum(0)", "y[self.mask]")
    check(source)


@pytest.mark.parametrize("name", ["BoolTensor", "DoubleTensor", "LongTensor", "Tensor"])
@pytest.mark.parametrize("size", ["x.size()", "x.shape", "2, 3", "*x.shape"])
def test_old_constructors_of_sizes(name: str, size: str) -> None:
    source = f"def f(x: torch.Tensor):\n    return torch.{name}({size}).fill_(1)\n"
    theirs, ours, _ = loaded(source)
    x = torch.ones(2, 3)
    want, got = theirs["f"](x), ours["f"](jnp.asarray(x.numpy()))
    assert got.shape == tuple(want.shape)
    np.testing.assert_array_equal(got, want.numpy())


MASK = """
def sequence_mask(length, max_length=None):
    if max_length is None:
        max_length = length.max()
    x = torch.arange(max_length, dtype=length.dtype, device=length.device)
    return x.unsqueeze(0) < length.unsqueeze(1)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        lengths = torch.tensor([1, 2, 4])
        return self.fc(x) * sequence_mask(CALL).to(x.dtype)
"""


def test_a_length_that_every_call_gives() -> None:
    check(MASK.replace("CALL", "lengths, x.size(1)"))


@pytest.mark.parametrize("call", ["lengths", "lengths, lengths.sum()", "lengths, None"])
def test_a_length_that_a_call_leaves_to_the_values(call: str) -> None:
    assert "DYN003" in rules_of(MASK.replace("CALL", call))


def test_a_length_of_a_forward_pass_may_be_left_out() -> None:
    source = """
        class Inner(nn.Module):
            def forward(self, length, most=None):
                if most is None:
                    most = length.max()
                return torch.arange(most).unsqueeze(0) < length.unsqueeze(1)


        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()

            def forward(self, length):
                return self.inner(length, length.size(0))
        """
    assert "DYN003" in rules_of(source)

"""torch run more exactly (float64 throughout) and less exactly (random rounding)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from numerics.rounding import Float64, RoundingNoise

torch.set_num_threads(1)
X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
EPS = 2.0**-23


def noisy(function: Callable[[torch.Tensor], torch.Tensor], seed: int = 0) -> torch.Tensor:
    with RoundingNoise(seed):
        return function(X.clone())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1.1,
        lambda x: x @ x.T,
        lambda x: x.sum(1),
        lambda x: x.mean(0),
        torch.exp,
        lambda x: torch.softmax(x, -1),
        lambda x: torch.log_softmax(x, -1),
        lambda x: torch.log_softmax(x.masked_fill(torch.eye(6, 8) > 0, -9e15), -1)[:, 6:],
        lambda x: torch.nn.functional.cross_entropy(
            x.masked_fill(torch.eye(6, 8) > 0, -9e15), torch.tensor([7, 6, 5, 4, 3, 2])
        ),
        lambda x: torch.nn.functional.layer_norm(x, (8,)),
        lambda x: torch.nn.functional.group_norm(x, 2),
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
        lambda x: torch.nn.functional.conv1d(x[None], torch.ones(2, 6, 3)),
    ],
)
def test_inexact_operations_move_by_an_ulp_or_a_few(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    plain = function(X)
    moved = [noisy(function, seed) for seed in range(4)]  # a single number may stay by chance
    step = max((plain - one).abs().max() for one in moved) / plain.abs().max()
    assert 0 < step < 32 * EPS
    assert not all(torch.equal(moved[0], one) for one in moved[1:])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.relu().t().reshape(-1)[3:],
        lambda x: torch.cat([x, -x]).abs().sort(0).values,
        lambda x: torch.where(x > 0, x, 0),
        lambda x: x.argmax(1),
        lambda x: (x > 0).float().sum(1),  # counts are exact
        lambda x: torch.arange(10.0),
        lambda x: x.double() * 1.1,
        lambda x: torch.full((3, 3), -torch.inf).triu(1) + torch.ones(3, 3),
        lambda x: torch.log(torch.zeros(3)),
        lambda x: x[:, :1].mean(1),  # of one term
        lambda x: x[:, None].sum(1),
    ],
)
def test_exact_operations_stay(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert torch.equal(function(X), noisy(function))


def test_equal_numbers_move_alike() -> None:
    moved = noisy(lambda x: torch.full((4,), 0.3) * 1.7)
    assert len(moved.unique()) == 1


def test_gradients_are_noisy_too() -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x.requires_grad_()
        (x.sigmoid() @ x.T).sum().backward()
        assert x.grad is not None
        return x.grad

    assert 0 < (noisy(gradient) - gradient(X.clone())).abs().max() < 1e-4


def test_float64_reaches_what_the_program_writes_as_float32() -> None:
    with Float64():
        assert torch.zeros(2).dtype == torch.float64
        assert X.double().float().dtype == torch.float64
        assert X.double().to(torch.float32).dtype == torch.float64
        assert torch.ones(2, dtype=torch.float32).dtype == torch.float64
        assert torch.ones(2, dtype=torch.int32).dtype == torch.int32
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.topk(2),
        lambda x: x.topk(2, dim=0),
        lambda x: x.kthvalue(2),
        lambda x: x.median(1),
        lambda x: x.mode(0),
        lambda x: x.sort(1),
        lambda x: x.sort(0, descending=True),
    ],
)
def test_any_of_equal_values_may_be_meant(function: Callable[[torch.Tensor], Any]) -> None:
    equal = torch.zeros(6, 6)
    with RoundingNoise(0):
        other, settled = function(equal).indices, function(X)
    assert not torch.equal(other, function(equal).indices)
    assert 0 <= int(other.min()) <= int(other.max()) < 6
    assert torch.equal(settled.indices, function(X).indices)
    assert torch.equal(settled.values, function(X).values)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.zeros(3, 8).scatter_reduce(0, INDEX, x[:4], "amax", include_self=False),
        lambda x: torch.zeros(3, 8).index_reduce(0, INDEX[:, 0], x[:4], "amin"),
        lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1),
        lambda x: torch.nn.functional.adaptive_max_pool2d(x[None], 2),
        lambda x: torch.cat([*torch.aminmax(x, dim=0), x.cummax(0).values[0]]),
    ],
)
def test_what_is_chosen_is_exact_and_so_is_its_gradient(
    function: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        out = function(x)
        return torch.autograd.grad(out, x, torch.ones_like(out))[0]

    assert torch.equal(function(X), noisy(function))
    with RoundingNoise(0):
        moved = gradient(X)
    assert (gradient(X) - moved).abs().max() < 4 * EPS


def test_a_stable_sort_keeps_the_order_of_equal_values() -> None:
    equal = torch.zeros(4, 6)
    with RoundingNoise(0):
        moved = equal.sort(dim=1, stable=True).indices
    assert torch.equal(moved, equal.sort(dim=1, stable=True).indices)


INDEX = torch.tensor([0, 0, 1, 2])[:, None].expand(-1, 8)


@pytest.mark.parametrize("name", ["mean", "sum"])
def test_a_sum_of_equal_terms_moves_by_what_adding_them_in_their_order_loses(name: str) -> None:
    equal = torch.full((1, 343), 0.75)  # its mean is exact in any order of torch's own
    exact = getattr(equal, name)(1)
    moved = []
    for seed in range(8):
        with RoundingNoise(seed):
            moved.append(float((getattr(equal, name)(1) / exact - 1).abs()))
    assert EPS < max(moved) < 8 * EPS


@pytest.mark.parametrize(
    "turn", [lambda x: x.to(torch.int8), lambda x: x.int(), lambda x: x.long()]
)
def test_a_float_that_is_no_such_integer_becomes_any(turn: Any) -> None:
    x = torch.tensor([1.7, -3.0, 1e20, torch.nan, -torch.inf, 100.0])
    runs = []
    for seed in range(3):
        with RoundingNoise(seed):
            runs.append(turn(x))
    settled = torch.stack([run == runs[0] for run in runs]).all(0)
    assert settled.tolist() == [True, True, False, False, False, True]
    assert torch.equal(runs[0][settled], turn(x)[settled])
    with RoundingNoise(0):
        into = torch.zeros(6, dtype=torch.uint8)
        into[:] = x
    assert into.tolist()[:1] == [1]


def test_what_a_softmax_loses_shows_where_nothing_is_left() -> None:
    """One key has all of the weight: its gradient is the difference of two equal numbers."""

    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = (100 * x).requires_grad_()
        out = torch.nn.functional.scaled_dot_product_attention(x[:2], x, x)
        (out * X[2:4]).sum().backward()
        assert x.grad is not None
        return x.grad

    plain, moved = gradient(X.clone()), noisy(gradient)
    assert 0 < (plain - moved).abs().max() < 1e-2  # of products of about 10,000
    weights = noisy(lambda x: torch.autograd.functional.vjp(_masked, x, X)[1])
    assert not weights[:, :3].any(), "what is masked gets no gradient at all"


def _masked(x: torch.Tensor) -> torch.Tensor:
    mask = torch.arange(8) < 3
    return x.masked_fill(mask, -torch.inf).softmax(-1)

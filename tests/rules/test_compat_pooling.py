"""Pooling helpers compute torch's values, indices and gradients for every window geometry."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.compat import pooling
from tests.rules.agree import agree, array, traces

few = settings(max_examples=6, deadline=None)


@st.composite
def windows(draw: st.DrawFn, dilated: bool = False) -> dict[str, object]:
    kernel = draw(st.integers(1, 3))
    options = {
        "kernel_size": kernel,
        "stride": draw(st.sampled_from([None, 1, 2, 3])),
        "padding": draw(st.integers(0, kernel // 2)),
        "ceil_mode": draw(st.booleans()),
    }
    return {**options, "dilation": draw(st.integers(1, 2))} if dilated else options


def sizes(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(st.integers(1, 2), st.integers(1, 2), *[st.integers(5, 7)] * rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(data=st.data())
def test_max_pool(rank: int, data: st.DataObject) -> None:
    options = data.draw(windows())
    x = array(data.draw(sizes(rank)), grain=0.5)
    name = f"max_pool{rank}d"
    reference = functools.partial(getattr(F, name), **options)
    ceil = functools.partial(pooling.ceil_max_pool, rank)
    function = ceil if options.pop("ceil_mode") else getattr(pooling, name)
    agree(reference, functools.partial(function, **options), x)


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(data=st.data())
def test_max_pool_indices_and_dilation(rank: int, data: st.DataObject) -> None:
    options = data.draw(windows(dilated=True))
    x = array(data.draw(sizes(rank)), grain=0.5)
    reference = functools.partial(getattr(F, f"max_pool{rank}d"), **options, return_indices=True)
    agree(reference, functools.partial(pooling.max_pool_with_indices, rank, **options), x)


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(data=st.data(), include=st.booleans(), divisor=st.sampled_from([None, 3]))
def test_avg_pool(rank: int, data: st.DataObject, include: bool, divisor: int | None) -> None:
    options = {**data.draw(windows()), "count_include_pad": include}
    if rank > 1:
        options["divisor_override"] = divisor
    x = array(data.draw(sizes(rank)))
    name = f"avg_pool{rank}d"
    reference = functools.partial(getattr(F, name), **options)
    agree(reference, functools.partial(getattr(pooling, name), **options), x)


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(data=st.data())
def test_adaptive_pools(rank: int, data: st.DataObject) -> None:
    x = array(data.draw(sizes(rank)), grain=0.5)
    out = data.draw(st.one_of(st.integers(1, 8), st.tuples(*[st.integers(1, 8)] * rank)))
    for name in (f"adaptive_avg_pool{rank}d", f"adaptive_max_pool{rank}d"):
        reference = functools.partial(getattr(F, name), output_size=out)
        agree(reference, functools.partial(getattr(pooling, name), output_size=out), x)


def test_adaptive_pool_keeps_the_size_of_none() -> None:
    x = array((1, 2, 5, 6))
    for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
        agree(
            lambda t, n=name: getattr(F, n)(t, (None, 3)),
            lambda a, n=name: getattr(pooling, n)(a, (None, 3)),
            x,
        )


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(data=st.data(), p=st.sampled_from([1, 2, 3, 2.5]))
def test_lp_pool(rank: int, data: st.DataObject, p: float) -> None:
    x = np.abs(array(data.draw(sizes(rank)))) + 0.1
    options = {"norm_type": p, "kernel_size": 2, "stride": data.draw(st.sampled_from([None, 1]))}
    reference = functools.partial(getattr(F, f"lp_pool{rank}d"), **options)
    agree(reference, functools.partial(pooling.lp_pool, rank, **options), x)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("grow", [0, 1])
def test_max_unpool_undoes_max_pool(rank: int, grow: int) -> None:
    x = array((2, 3, *[6] * rank))
    pool, unpool = getattr(F, f"max_pool{rank}d"), getattr(F, f"max_unpool{rank}d")
    size = [6 + grow] * rank if grow else None

    def reference(t):
        values, indices = pool(t, 2, return_indices=True)
        return unpool(values, indices, 2, output_size=size)

    def function(a):
        values, indices = pooling.max_pool_with_indices(rank, a, 2)
        return pooling.max_unpool(rank, values, indices, 2, output_size=size)

    agree(reference, function, x)


@pytest.mark.parametrize("rank", [2, 3])
@few
@given(seed=st.integers(0, 99), kernel=st.integers(1, 3), out=st.integers(1, 4))
def test_fractional_max_pool(rank: int, seed: int, kernel: int, out: int) -> None:
    x = array((2, 3, *[7] * rank), seed, grain=0.5)
    samples = np.random.default_rng(seed).random((2, 3, rank), np.float32)
    reference = getattr(F, f"fractional_max_pool{rank}d_with_indices")
    agree(
        lambda t, s: reference(t, kernel, out, _random_samples=s.detach().to(t.dtype)),
        lambda a, s: pooling.fractional_max_pool(rank, a, kernel, out, samples=s),
        x,
        samples,
        gradients=False,
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: pooling.max_pool2d(x, 3, 2, 1),
        lambda x: pooling.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda x: pooling.adaptive_avg_pool2d(x, (3, 2)),
        lambda x: pooling.adaptive_max_pool2d(x, (3, 2)),
        lambda x: pooling.max_pool_with_indices(2, x, 2),
        lambda x: pooling.lp_pool(2, x, 2, 2),
    ],
)
def test_compiles_once(function) -> None:
    assert traces(function, np.abs(array((1, 2, 7, 7)))) == 1


def test_whole_numbers() -> None:
    x = np.arange(16).reshape(1, 1, 4, 4)
    agree(lambda t: F.max_pool2d(t, 2), lambda a: pooling.max_pool2d(a, 2), x)
    agree(lambda t: F.avg_pool2d(t, 3), lambda a: pooling.avg_pool2d(a, 3), x)

"""Convolution and padding helpers compute torch's values and gradients for every geometry."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import pytest
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.compat import conv_functional as conv
from rules.compat.padding import pad_axes
from tests.rules.agree import agree, array, traces

few = settings(max_examples=6, deadline=None)


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(
    groups=st.sampled_from([1, 2, 4]),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    padding=st.sampled_from([0, 1, "same", "valid"]),
    dilation=st.integers(1, 2),
    batched=st.booleans(),
)
def test_convolution(rank, groups, kernel, stride, padding, dilation, batched) -> None:
    options = {"stride": 1 if padding == "same" else stride, "padding": padding}
    options |= {"dilation": dilation, "groups": groups}
    x = array((2, 4, *[6] * rank)) if batched else array((4, *[6] * rank))
    weight, bias = array((8, 4 // groups, *[kernel] * rank), 1), array((8,), 2)
    name = f"conv{rank}d"
    agree(
        functools.partial(getattr(F, name), **options),
        functools.partial(getattr(conv, name), **options),
        x,
        weight,
        bias,
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(
    groups=st.sampled_from([1, 2]),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    extra=st.integers(0, 2),
    dilation=st.integers(1, 2),
    batched=st.booleans(),
)
def test_transposed(rank, groups, kernel, stride, padding, extra, dilation, batched) -> None:
    options = {"stride": stride, "padding": padding, "groups": groups, "dilation": dilation}
    options["output_padding"] = min(extra, max(stride, dilation) - 1)
    x = array((2, 4, *[4] * rank)) if batched else array((4, *[4] * rank))
    weight, bias = array((4, 6 // groups, *[kernel] * rank), 1), array((6,), 2)
    if (4 - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 < 1:
        return
    name = f"conv_transpose{rank}d"
    agree(
        functools.partial(getattr(F, name), **options),
        functools.partial(getattr(conv, name), **options),
        x,
        weight,
        bias,
    )


def test_sizes_that_differ_by_axis() -> None:
    x, weight = array((1, 2, 7, 9)), array((3, 2, 3, 2), 1)
    options = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 3)}
    agree(
        lambda t, w: F.conv2d(t, w, **options), lambda a, w: conv.conv2d(a, w, **options), x, weight
    )


@pytest.mark.parametrize("pad", [0, 2])
def test_conv_tbc(pad) -> None:
    arrays = array((7, 2, 3)), array((3, 3, 4), 1), array((4,), 2)
    agree(lambda *t: F.conv_tbc(*t, pad), lambda *a: conv.conv_tbc(*a, pad), *arrays)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@settings(max_examples=12, deadline=None)
@given(amounts=st.lists(st.integers(-2, 3), min_size=6, max_size=6), axes=st.integers(1, 3))
def test_pad(mode, amounts, axes) -> None:
    pad, rank = tuple(amounts[: 2 * axes]), axes + 2
    agree(
        lambda t: F.pad(t, pad, mode),
        lambda a: pad_axes(a, pad, mode),
        array((1, 2, 5, 5, 5)[:rank]),
    )


def test_pad_with_a_value_and_whole_numbers() -> None:
    agree(
        lambda t: F.pad(t, (1, -1), value=2.5),
        lambda a: pad_axes(a, (1, -1), value=2.5),
        array((2, 3)),
    )
    assert pad_axes(jnp.arange(3), (1, 0), value=7).tolist() == [7, 0, 1, 2]
    assert pad_axes(jnp.array([False]), (1, 0), value=True).tolist() == [True, False]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: conv.conv2d(x, jnp.ones((2, 2, 3, 3)), padding="same"),
        lambda x: conv.conv_transpose2d(x, jnp.ones((2, 2, 3, 3)), stride=2),
        lambda x: pad_axes(x, (1, 2), "reflect"),
        lambda x: pad_axes(x, (1, -1)),
    ],
)
def test_compiles_once(function) -> None:
    assert traces(function, array((1, 2, 6, 6))) == 1

"""Resizing, grid sampling, pixel shuffling and folding helpers compute torch's values and gradients."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rules.compat import vision
from rules.compat.interpolate import interpolate
from tests.rules.agree import agree, array, traces

few = settings(max_examples=8, deadline=None)
MODES = {1: "linear", 2: "bilinear", 3: "trilinear"}


@st.composite
def targets(draw: st.DrawFn, rank: int) -> dict[str, object]:
    if draw(st.booleans()):
        return {"size": draw(st.tuples(*[st.integers(1, 11)] * rank))}
    factors = st.sampled_from([0.3, 0.5, 1.0, 1.7, 2.0, 3.0])
    return {
        "scale_factor": draw(st.tuples(*[factors] * rank)),
        "recompute_scale_factor": draw(st.sampled_from([None, True, False])),
    }


@pytest.mark.parametrize("rank", [1, 2, 3])
@few
@given(data=st.data(), mode=st.sampled_from(["nearest", "nearest-exact", "linear", "area"]))
def test_interpolate(rank, data, mode) -> None:
    options = data.draw(targets(rank)) | {"mode": MODES[rank] if mode == "linear" else mode}
    if mode == "linear":
        options["align_corners"] = data.draw(st.booleans())
    x = array((1, 2, *(5, 4, 6)[:rank]))
    agree(functools.partial(F.interpolate, **options), functools.partial(interpolate, **options), x)


@few
@given(
    options=targets(2),
    mode=st.sampled_from(["bilinear", "bicubic"]),
    align_corners=st.booleans(),
    antialias=st.booleans(),
)
def test_interpolate_cubic_and_antialias(options, mode, align_corners, antialias) -> None:
    options |= {"mode": mode, "align_corners": align_corners, "antialias": antialias}
    x = array((1, 2, 7, 5))
    if antialias:  # of an output of one column ATen gives the first row again and again
        assume(F.interpolate(torch.tensor(x), **options).shape[-1] > 1)
    agree(functools.partial(F.interpolate, **options), functools.partial(interpolate, **options), x)


def test_antialiasing_leaves_an_axis_that_keeps_its_size() -> None:
    """``scale_factor=1.3`` of three pixels is three pixels, which ATen does not resample; its gradient does."""
    options: dict[str, Any] = {"scale_factor": 1.3, "mode": "bilinear", "antialias": True}
    both = (functools.partial(function, **options) for function in (F.interpolate, interpolate))
    agree(*both, array((1, 2, 3, 5)), gradients=False)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@few
@given(
    mode=st.sampled_from(["bilinear", "nearest", "bicubic"]),
    align_corners=st.booleans(),
    seed=st.integers(0, 99),
)
def test_grid_sample(rank, padding_mode, mode, align_corners, seed) -> None:
    if mode == "bicubic" and rank == 3:
        return
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    agree(
        functools.partial(F.grid_sample, **options),
        functools.partial(vision.grid_sample, **options),
        array((2, 3, *(5, 4, 3)[:rank]), seed),
        1.2 * array((2, *(3, 2, 4)[:rank], rank), seed + 1),
    )


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 3, 2, 4, 5)])
def test_affine_grid(size, align_corners) -> None:
    rank = len(size) - 2
    agree(
        lambda t: F.affine_grid(t, size, align_corners),
        lambda a: vision.affine_grid(a, size, align_corners),
        array((2, rank, rank + 1)),
    )


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_pixel_shuffle_and_back(lead, factor) -> None:
    x = array((*lead, 2 * factor**2, 3, 4))
    agree(lambda t: F.pixel_shuffle(t, factor), lambda a: vision.pixel_shuffle(a, factor), x)
    y = array((*lead, 2, 3 * factor, 4 * factor))
    agree(lambda t: F.pixel_unshuffle(t, factor), lambda a: vision.pixel_unshuffle(a, factor), y)


@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 6, 3, 4)])
def test_channel_shuffle(shape) -> None:
    agree(lambda t: F.channel_shuffle(t, 3), lambda a: vision.channel_shuffle(a, 3), array(shape))


@few
@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    padding=st.integers(0, 2),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    batched=st.booleans(),
)
def test_unfold_and_fold(kernel, dilation, padding, stride, batched) -> None:
    options = {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    x = array((2, 3, 7, 6)) if batched else array((3, 7, 6))
    unfold = functools.partial(vision.unfold, **options)
    agree(functools.partial(F.unfold, **options), unfold, x)
    agree(
        functools.partial(F.fold, output_size=(7, 6), **options),
        functools.partial(vision.fold, output_size=(7, 6), **options),
        array(unfold(x).shape, 1),
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: interpolate(x, scale_factor=2),
        lambda x: interpolate(x, (3, 5), mode="bilinear"),
        lambda x: interpolate(x, (3, 5), mode="bicubic", antialias=True),
        lambda x: vision.pixel_shuffle(x, 2),
        lambda x: vision.unfold(x, 2),
        lambda x: vision.grid_sample(x, x[:, :2].transpose(0, 2, 3, 1)),
    ],
)
def test_compiles_once(function) -> None:
    assert traces(function, array((1, 4, 6, 6))) == 1

"""What is drawn: shapes from few sizes, values of each profile, always inside their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from numerics.inputs import PROFILES, Example, alike, draw_array, examples, jittered, materialise
from numerics.spec import (
    Array,
    Choice,
    Constant,
    Group,
    InputSpec,
    SpecError,
    evaluate,
    size_choices,
)

SIZES = {"B": 3, "T": 5}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "array",
    [
        Array(("B", "T")),
        Array(("B", "2*T+1"), low=0.0, high=1.0),
        Array(("B",), low=2.0),
        Array(("T", "B"), "int64", 0, "T"),
        Array(("T", "B"), "int32", -3, 4, sorted=True),
        Array(("B", "T"), "bool", density=0.1),
        Array((2,), "bfloat16"),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 999))
def test_arrays_have_their_shape_dtype_and_bounds(array: Array, profile: str, seed: int) -> None:
    value = draw_array(array, SIZES, profile, np.random.default_rng(seed))
    assert value.shape == tuple(evaluate(size, SIZES) for size in array.shape)
    assert value.dtype.name == array.dtype
    if array.low is not None:
        assert (value >= array.low).all()
    if array.high is not None:
        high = evaluate(array.high, SIZES)
        assert (value < high).all() if "int" in array.dtype else (value <= high).all()
    if array.dtype == "bool":
        assert value.any(axis=-1).all()
    if array.sorted:
        assert (np.diff(value, axis=-1) >= 0).all()


def test_profiles_are_what_they_say() -> None:
    drawn = {p: draw_array(Array((400,)), {}, p, np.random.default_rng(0)) for p in PROFILES}
    assert not drawn["zeros"].any()
    assert len(np.unique(drawn["ties"])) <= 6
    assert drawn["tiny"].std() < 2e-3
    assert drawn["large"].std() > 5
    assert drawn["offset"].mean() > 50 * drawn["offset"].std()
    assert np.ptp(np.log10(np.abs(drawn["mixed"]))) > 4


def test_nested_arguments_keywords_and_constants() -> None:
    spec = InputSpec(
        (
            Group("tuple", (Array(("B",)), Group("dict", (Array((2,), name="a"),)))),
            Constant(None),
            Array((1,), name="mask"),
        )
    )
    (pair, nothing), kwargs = materialise(spec, Example((("B", 4),)))
    assert pair[0].shape == (4,)
    assert pair[1]["a"].shape == (2,)
    assert nothing is None
    assert set(kwargs) == {"mask"}


def test_the_same_example_is_the_same_numbers() -> None:
    spec, example = InputSpec((Array((8,)),)), Example(seed=3)
    np.testing.assert_array_equal(
        materialise(spec, example)[0][0], materialise(spec, example)[0][0]
    )


def test_jitter_keeps_zeros_and_ties() -> None:
    value = np.array([0, 1.5, 1.5, -2, np.inf, np.nan], np.float32)
    moved = jittered(value, 1)
    assert moved[0] == 0
    assert moved[1] == moved[2] != 1.5
    assert abs(moved[3] + 2) < 1e-4
    np.testing.assert_array_equal(moved[4:], value[4:])
    np.testing.assert_array_equal(jittered(np.arange(3), 1), np.arange(3))


def test_shrinking_leads_to_small_sizes_and_plain_values() -> None:
    sizes = size_choices(InputSpec((Array(("B",)),), {"B": range(1, 9)}))
    smallest = find(examples(sizes, PROFILES, ("fresh", "small")), lambda example: True)
    assert smallest == Example((("B", 1),))


@pytest.mark.parametrize("size", ["X", "T**2", "T.real", "f(T)", "T +", "[1]"])
def test_a_size_that_cannot_be_read_is_an_error(size: str) -> None:
    with pytest.raises(SpecError, match="dimensions declared: B, T"):
        evaluate(size, SIZES)


def test_an_integer_input_needs_a_range() -> None:
    with pytest.raises(SpecError, match="range"):
        draw_array(Array((2,), "int64"), {}, "normal", np.random.default_rng(0))
    with pytest.raises(SpecError, match="empty"):
        draw_array(Array((2,), "int64", 3, 3), {}, "normal", np.random.default_rng(0))


def made(*items: Any, profile: str = "normal", seed: int = 1, **sizes: int) -> Any:
    return materialise(InputSpec(items), Example(tuple(sizes.items()), profile, seed))


@pytest.mark.parametrize("profile", PROFILES)
def test_ragged_rows_are_ones_then_zeros_and_one_is_full(profile: str) -> None:
    (mask,), _ = made(Array(("B", "T"), "bool", ragged=True), profile=profile, B=5, T=7)
    lengths = mask.sum(-1)
    assert lengths.min() >= 1
    assert lengths.max() == 7
    assert (mask == (np.arange(7) < lengths[:, None])).all()


def test_a_row_is_all_false_only_when_asked_for() -> None:
    shape = (50, 4)
    (mask,), _ = made(Array(shape, "bool", density=0.1), profile="zeros")
    assert mask.any(-1).all()
    (mask,), _ = made(Array(shape, "bool", density=0.1, empty=True), profile="zeros")
    assert not mask.any()


def test_optional_arguments_come_in_every_other_example() -> None:
    items = (Array((2,)), Array((2,), name="mask", optional=True), Array((3,), optional=True))
    args, kwargs = made(*items, seed=1)
    assert (len(args), args[1].shape, list(kwargs)) == (2, (3,), ["mask"])
    args, kwargs = made(*items, seed=2)
    assert args[1] is None
    assert kwargs == {}


def test_parts_of_nested_arguments_are_optional_too() -> None:
    parts = (Array((2,), name="a"), Constant(3, name="b", optional=True))
    items = (Group("dict", parts), Group("tuple", (Array((2,), optional=True),), optional=False))
    (whole, (some,)), _ = made(*items, seed=1)
    assert (list(whole), some.shape) == (["a", "b"], (2,))
    (whole, (none,)), _ = made(*items, seed=2)
    assert (list(whole), none) == (["a"], None)


@pytest.mark.parametrize("profile", PROFILES)
def test_shapes_of_distributions(profile: str) -> None:
    def drawn(distribution: str, **bounds: float) -> np.ndarray:
        array = Array((50, 8), distribution=distribution, **bounds)
        return draw_array(array, {}, profile, np.random.default_rng(0)).astype(np.float64)

    assert np.allclose(drawn("probabilities").sum(-1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(drawn("unit"), axis=-1), 1, atol=1e-5)
    assert (drawn("lognormal") > 0).all()
    assert np.isfinite(drawn("lognormal")).all()
    inside = drawn("normal", low=2.0, high=8.0)
    assert inside.min() >= 2
    assert inside.max() <= 8
    assert profile != "normal" or abs(inside.mean() - 5) < 0.2 < inside.std() < 1.5
    flat = drawn("uniform", low=2.0, high=8.0)
    assert profile != "normal" or flat.std() > 1.5


def test_calls_that_are_alike_differ_in_numbers_only() -> None:
    items = (Array((2,)), Choice((1, 2, 3)), Array((2,), optional=True))
    for seed in range(8):
        calls = alike(InputSpec(items), Example(seed=seed), 5)
        assert len({(call[0][1], call[0][2] is None) for call in calls}) == 1
        assert len({call[0][0].tobytes() for call in calls}) == 5

    def hook(rng: np.random.Generator, sizes: Any, profile: str) -> Any:
        return (float(rng.random()),)  # another plain value each time

    assert len(alike(InputSpec(hook=hook), Example(), 3)) == 3


def test_a_choice_among_plain_values() -> None:
    seen = {made(Choice((1, "a", None)), seed=seed)[0][0] for seed in range(20)}
    assert seen == {1, "a", None}


@pytest.mark.parametrize(
    ("profile", "special"),
    [
        ("nan", np.isnan),
        ("infinite", np.isinf),
        ("denormal", lambda x: (x != 0) & (abs(x) < np.finfo(np.float32).tiny)),
    ],
)
def test_special_values_when_asked_for(profile: str, special: Any) -> None:
    (x,), _ = made(Array((400,)), profile=profile)
    assert 0.05 < special(x).mean() < 0.4
    assert profile not in PROFILES


def test_sizes_that_depend_on_each_other() -> None:
    dims = {"T": range(1, 9), "L": range(1, 9), "H": range(8, 40)}
    spec = InputSpec((Array(("T", "L", "H")),), dims, where=("T <= L", "H % 8 == 0", "L != 8"))
    found = size_choices(spec, 3)
    assert len(found) == 3
    for sizes in found:
        assert sizes["T"] <= sizes["L"] < 8
        assert sizes["H"] % 8 == 0
    assert found[0] == {"T": 1, "L": 1, "H": 8}
    with pytest.raises(SpecError, match="no sizes fulfil T > L and L > T"):
        size_choices(InputSpec((), dims, where=("T > L", "L > T")))

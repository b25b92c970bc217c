"""The measure: what counts as equal, tensor by tensor."""

from __future__ import annotations

import numpy as np
import pytest

from numerics.compare import compare, compare_all

EPS = 2.0**-23
BASE = np.linspace(-2, 2, 41)


def own(error: float) -> list[np.ndarray]:
    """Two float32 runs of torch that are off by ``error`` somewhere."""
    second = BASE.copy()
    second[3] += error
    return [BASE.astype(np.float32).astype(np.float64), second]


@pytest.mark.parametrize(
    ("torch_error", "port_error", "ok"),
    [
        (1e-6, 0.9e-5, True),
        (1e-6, 1.1e-5, False),
        (1e-3, 0.9e-2, True),
        (0.0, 7 * EPS, True),  # the floor: 4 ulp of the largest value, which is 2
        (0.0, 9 * EPS, False),
    ],
)
def test_ten_times_torchs_own_error_or_a_few_ulp(
    torch_error: float, port_error: float, ok: bool
) -> None:
    port = BASE.copy()
    port[-1] += port_error
    exact = [BASE, own(torch_error)[1]]
    assert compare("x", BASE, exact, port).ok is ok


def test_errors_are_relative_to_the_largest_value_and_placed() -> None:
    port = BASE.copy()
    port[7] += 0.2
    found = compare("x", BASE, own(1e-6), port)
    assert found.error == pytest.approx(0.1)
    assert found.where == (7,)
    assert found.expected == pytest.approx(BASE[7])
    assert "expected" in str(found)


def test_a_tensor_torch_itself_gets_wrong_is_ill_conditioned() -> None:
    assert compare("x", BASE, own(0.5), BASE).ill_conditioned
    assert not compare("x", BASE, own(1e-4), BASE).ill_conditioned


@pytest.mark.parametrize(
    ("torch_value", "port_value", "ok"),
    [
        (np.nan, np.nan, True),
        (np.nan, 0.0, False),
        (0.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.inf, 1e38, False),
    ],
)
def test_nan_and_infinity_stand_in_the_same_places(
    torch_value: float, port_value: float, ok: bool
) -> None:
    expected, port = BASE.copy(), BASE.copy()
    expected[5], port[5] = torch_value, port_value
    assert compare("x", expected, [expected, expected], port).ok is ok


def test_where_torchs_runs_disagree_about_infinity_nothing_is_asked() -> None:
    first, second, port = BASE.copy(), BASE.copy(), BASE.copy()
    second[5] = np.inf
    port[5] = np.nan
    assert compare("x", BASE, [first, second], port).ok


def test_integers_are_equal_where_torch_is_sure() -> None:
    first, second = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert compare("i", first, [first, first], np.array([1, 2, 3])).ok
    assert not compare("i", first, [first, first], np.array([1, 2, 4])).ok
    assert compare("i", first, [first, second], np.array([1, 2, 4])).ok


def test_a_constant_that_depends_on_the_dtype_makes_float32_the_reference() -> None:
    float64, float32 = BASE, BASE * 1.5
    runs = [float32, float32 + 1e-7]
    assert compare("x", float64, runs, float32 + 2e-7).ok
    assert not compare("x", float64, runs, BASE * 1.2).ok


@pytest.mark.parametrize("flipped", [1, 2, 3, 4])
def test_a_decision_that_falls_otherwise_in_some_runs_does_not_excuse_other_differences(
    flipped: int,
) -> None:
    step = 1e-7 * np.sin(np.arange(41))
    other = BASE + 0.1 * (np.arange(41) == 30)
    noise = [(other if i < flipped else BASE) + (i + 1) * step for i in range(4)]
    runs = [BASE + step, *noise]
    assert compare("x", BASE, runs, BASE - 3 * step).ok
    assert compare("x", BASE, runs, other - 3 * step).ok, "the other outcome is as good"
    assert not compare("x", BASE, runs, BASE + 0.01 * (np.arange(41) == 7)).ok
    assert not compare("x", BASE, runs, other + 0.01 * (np.arange(41) == 7)).ok


def test_a_result_exact_by_luck_has_the_error_of_the_other_runs() -> None:
    noise = [BASE + 1e-3 * np.sin(np.arange(41) + seed) for seed in range(2)]
    assert compare("x", BASE, [BASE, *noise], BASE + 5e-3).ok
    assert not compare("x", BASE, [BASE, *noise], BASE + 2e-2).ok


def test_lower_precision_has_a_wider_floor() -> None:
    port = BASE + 2.0**-7
    assert compare("x", BASE, [BASE], port, dtype="bfloat16").ok
    assert not compare("x", BASE, [BASE], port, dtype="float32").ok


def test_names_on_one_side_only() -> None:
    found = compare_all({"a": BASE, "b": BASE}, [{"a": BASE, "b": BASE}], {"a": BASE, "c": BASE})
    problems = {difference.name: difference.problem for difference in found}
    assert problems == {
        "a": "",
        "b": "torch has it, the port does not",
        "c": "the port has it, torch does not",
    }


def test_an_exact_zero_may_be_noise_far_below_its_neighbours() -> None:
    zero = np.zeros(4)
    runs = [{"a": BASE, "z": zero}]
    assert all(d.ok for d in compare_all(runs[0], runs, {"a": BASE, "z": zero + 1e-11}))
    assert not all(d.ok for d in compare_all(runs[0], runs, {"a": BASE, "z": zero + 1e-6}))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mask", [-1e9, -1e4, float(np.finfo(np.float32).min)])
def test_a_masks_large_values_excuse_no_other(mask: float) -> None:
    scores = np.where(np.arange(41) % 3 == 0, mask, BASE)
    port = np.where(np.arange(41) % 3 == 0, mask, BASE * 1.001)
    assert not compare("x", scores, [scores, scores], port).ok
    assert compare("x", scores, [scores, scores], scores * (1 + EPS)).ok
    others = {"scores": scores, "x": BASE}
    found = compare_all(others, [others, others], {"scores": scores, "x": BASE * 1.001})
    assert [difference.ok for difference in found] == [True, False]


def test_values_of_mixed_magnitude_carry_the_rounding_of_the_large_ones() -> None:
    values = np.concatenate([BASE, 1e-7 * BASE])
    assert compare("x", values, [values, values], values + 3e-8).ok
    wide = np.concatenate([BASE, 1e6 * BASE[:5]])
    assert compare("x", wide, [wide, wide], wide + 0.3).ok


def test_a_few_values_near_zero_are_no_group_of_their_own() -> None:
    values = np.array([1.0, 2.0, 3.0, 1e-5])
    assert compare("x", values, [values, values], values + np.array([0, 0, 0, 1e-7])).ok


def test_where_torch_has_no_gradient_a_port_may_have_one() -> None:
    nowhere = np.where(np.arange(41) == 3, np.nan, BASE)
    assert compare("x", nowhere, [nowhere], BASE, undefined=True).ok
    assert not compare("x", nowhere, [nowhere], BASE).ok
    assert not compare("x", BASE, [BASE], nowhere, undefined=True).ok


@pytest.mark.parametrize(
    ("reference", "torch", "port", "ok"),
    [
        (1e85, np.nan, 0.1, True),
        (1e85, np.inf, np.nan, True),
        (1e20, np.nan, 0.1, False),
        (np.nan, np.nan, 0.1, False),
        (np.inf, np.inf, 0.1, False),
        (2.0, 2.0, np.nan, False),
    ],
)
def test_what_float32_cannot_hold_is_not_asked_for(
    reference: float, torch: float, port: float, ok: bool
) -> None:
    runs = [np.where(np.arange(41) == 5, value, BASE) for value in (reference, torch, torch, port)]
    found = compare("y", runs[0], runs[1:3], runs[3])
    assert found.ok is ok
    if ok:
        assert found.values == 40


def test_what_is_the_same_everywhere_is_not_measured() -> None:
    state = {"a": BASE, "b": BASE * 1e3}
    found = compare_all(state, [state, state], {"a": BASE, "b": BASE * 1e3 + 1})
    assert [d.ok for d in found] == [True, False]
    assert [d.values for d in found] == [41, 41]
    assert found[0].ratio == 0


@pytest.mark.parametrize(("kind", "eps"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_float32_numbers_that_have_passed_half_precision_have_its_digits(
    kind: str, eps: float
) -> None:
    base = np.array([1.0 + 2 * eps, -1.0 - 5 * eps])
    moved = base + [0, eps]
    runs = [base, moved, base]
    assert compare("x", base, runs, base - [3 * eps, 0]).ok, kind
    assert not compare("x", base, runs, base - [12 * eps, 0]).ok
    # whole numbers do not move, and numbers with more digits are float32's own
    assert not compare("x", base, [base, base], base - [3 * eps, 0]).ok
    fine = base + 2.0**-20
    assert not compare("x", fine, [fine, fine + 2.0**-22], fine - [3 * eps, 0]).ok


@pytest.mark.parametrize(
    ("factor", "dtype", "ok"),
    [
        (1.0, "bfloat16", True),
        (1.004, "bfloat16", True),
        (0.9, "bfloat16", False),
        (0.9, "float32", True),
    ],
)
def test_a_factor_that_all_numbers_have_shows_in_half_precision(
    factor: float, dtype: str, ok: bool
) -> None:
    """The largest of torch's errors, ten times, would hide it; float32 has no such errors to begin with."""
    rng = np.random.default_rng(0)
    reference = rng.standard_normal(400)

    def half() -> np.ndarray:
        return reference * (1 + 0.004 * rng.standard_normal(400)) + 0.01 * rng.standard_normal(400)

    runs = [half() for _ in range(3)]
    assert compare("x", reference, runs, factor * half(), dtype).ok is ok


@pytest.mark.parametrize(("steps", "ok"), [(1, True), (4, True), (30, False)])
def test_the_smallest_numbers_of_float16_are_steps(steps: int, ok: bool) -> None:
    reference = 2.0**-24 * np.round(np.linspace(-40, 40, 101))
    port = reference.copy()
    port[3] += steps * 2.0**-24
    assert compare("x", reference, [reference, reference], port, dtype="float16").ok is ok
    assert not compare("x", reference, [reference, reference], port, dtype="float32").ok

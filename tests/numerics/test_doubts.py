"""What cannot be compared is said, and a port of which nothing was compared is not called equal."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator.report.verification import lines
from numerics.compare import Difference
from numerics.inputs import Example
from numerics.pair import Outcome, Pair
from numerics.report import Report
from numerics.spec import Array, InputSpec
from numerics.verify import Settings, _Verification, verify, verify_pair
from tests.numerics.models import Carrier

FEW = Settings(examples=3, shrink_seconds=0)
EMPTY = Carrier({})
SCALE = Carrier({"scale": "scale"})


class TorchCall(torch.nn.Module):
    """A function as a module with one parameter."""

    def __init__(self, function: Any, weights: bool = True) -> None:
        super().__init__()
        self.function = function
        if weights:
            self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(self, x)


class FlaxCall(nnx.Module):
    """Its port."""

    def __init__(self, function: Any, weights: bool = True) -> None:
        self.function = function
        if weights:
            self.scale = nnx.Param(jnp.ones(3))

    def __call__(self, x: jax.Array) -> Any:
        return self.function(self, x)


def run(torch_function: Any, port: Any, weights: bool = True, **options: Any) -> Report:
    carrier = SCALE if weights else EMPTY
    options.setdefault("settings", FEW)
    return verify(
        TorchCall(torch_function, weights),
        FlaxCall(port, weights),
        options.pop("inputs", InputSpec((Array((2, 3)),))),
        load=carrier.load,
        dump=carrier.dump,
        **options,
    )


def through_numpy(self: Any, x: torch.Tensor) -> torch.Tensor:
    """Refuses an input that requires a gradient."""
    return torch.from_numpy(np.tanh(x.numpy())) * self.scale


def test_gradients_for_inputs_that_torch_cannot_take_are_left_out() -> None:
    report = run(through_numpy, lambda self, x: jnp.tanh(x) * self.scale[...])
    assert report.verdict == "equal", str(report)
    assert any("gradients for inputs: not compared" in note for note in report.notes)
    assert "train gradients" in {check.name for check in report.checks}
    report = run(
        through_numpy, lambda self, x: jnp.tanh(x) * jax.lax.stop_gradient(self.scale[...])
    )
    assert report.failure is not None
    assert report.failure.check.endswith("gradients")


def test_outputs_are_compared_where_torch_cannot_differentiate_at_all() -> None:
    def torch_call(self: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy((x * self.scale).numpy())

    report = run(torch_call, lambda self, x: x * self.scale[...])
    assert any("gradients: not compared" in note for note in report.notes)
    assert report.verdict == "equal", str(report)
    wrong = run(torch_call, lambda self, x: x * self.scale[...] * 1.001)
    assert wrong.verdict == "different"


def test_an_output_that_torch_detaches_has_no_gradient_in_the_port_either() -> None:
    def detached(self: Any, x: torch.Tensor) -> Any:
        return x * self.scale, (x * self.scale).detach()

    right = run(
        detached, lambda self, x: (x * self.scale[...], jax.lax.stop_gradient(x * self.scale[...]))
    )
    assert right.verdict == "equal", str(right)
    wrong = run(detached, lambda self, x: (x * self.scale[...], x * self.scale[...]))
    assert wrong.failure is not None
    assert wrong.failure.check.endswith("gradients")


@pytest.mark.parametrize(
    ("torch_function", "port"),
    [
        (lambda self, x: x[:0], lambda self, x: x[:0]),
        (lambda self, x: x * float("nan"), lambda self, x: x * jnp.nan),
        (lambda self, x: None, lambda self, x: None),
    ],
    ids=["no values", "NaN everywhere", "None"],
)
def test_no_number_compared_is_not_equal(torch_function: Any, port: Any) -> None:
    report = run(torch_function, port, weights=False)
    assert report.verdict == "not compared"
    assert any("no number" in note for note in report.notes)


def test_a_check_that_agrees_in_no_example_is_not_equal() -> None:
    """A difference that hides from every neighbour is taken for one on a boundary, but not in all examples."""

    whole = [np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)]
    report = run(
        lambda self, x: x * 2,
        lambda self, x: jnp.where(jnp.all(x == jnp.round(x)), 3 * x, 2 * x),
        weights=False,
        inputs=whole,
    )
    assert report.verdict == "not compared", str(report)


def test_a_neighbour_that_torch_refuses_does_not_excuse_a_difference() -> None:
    def within(self: Any, x: torch.Tensor) -> torch.Tensor:
        if float(x.detach().max()) > 1:
            raise ValueError("a probability is at most one")
        return x * 2

    report = run(
        within,
        lambda self, x: x * 3,
        weights=False,
        inputs=[np.array([[1.0, 1.0, 0.5]], np.float32)],
    )
    assert report.verdict == "different", str(report)


def test_an_argument_that_torch_writes_to_is_mentioned() -> None:
    words = "changes an argument in place"
    report = run(lambda self, x: x.mul_(2), lambda self, x: x * 2, weights=False)
    assert report.verdict == "equal", str(report)
    assert any(words in note for note in report.notes)
    report = run(lambda self, x: x.clone().mul_(2), lambda self, x: x * 2, weights=False)
    assert not any(words in note for note in report.notes)


def test_a_budget_that_is_used_up_is_said_so() -> None:
    settings = Settings(examples=8, budget=1e-9)
    report = run(
        lambda self, x: x * self.scale, lambda self, x: x * self.scale[...], settings=settings
    )
    assert report.verdict == "not compared"
    assert any("only 0 of " in note for note in report.notes)


def test_a_difference_on_a_boundary_is_not_the_last_word_when_time_is_up() -> None:
    """One example that hides from its neighbours says nothing yet; two more decide."""
    whole = Example(sizes=(), profile="ties", seed=0)
    slept: list[int] = []

    def slow(self: Any, x: torch.Tensor) -> torch.Tensor:
        if not slept:
            time.sleep(3.1)
        slept.append(1)
        return x * 2

    def wrong(self: Any, x: jax.Array) -> jax.Array:
        return jnp.where(jnp.all(x * 2 == jnp.round(x * 2)), 3 * x, 2 * x)

    settings = Settings(examples=8, budget=3.0, first=(whole,), train=False)
    report = run(slow, wrong, weights=False, settings=settings)
    assert report.verdict == "equal", str(report)
    assert any("boundary" in note for note in report.notes)
    assert any("only 2 of 8" in note for note in report.notes), report.notes


def spectrum(self: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.fft.rfft(x * self.scale)


def test_gradients_through_complex_outputs() -> None:
    settings = Settings(examples=2, shrink_seconds=0, train_steps=2, second_order=True)
    right = run(spectrum, lambda self, x: jnp.fft.rfft(x * self.scale[...]), settings=settings)
    assert right.verdict == "equal", str(right)
    assert {"train gradients", "training with Adam"} <= {check.name for check in right.checks}

    def without(self: Any, x: jax.Array) -> jax.Array:
        return jnp.fft.rfft(x * jax.lax.stop_gradient(self.scale[...]))

    wrong = run(spectrum, without)
    assert wrong.failure is not None
    assert wrong.failure.check.endswith("gradients")


class TorchScaled(torch.nn.Module):
    """Has arguments that may be left out, and refuses a row of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor, mask: Any = None, *, power: int = 2, **more: Any) -> Any:
        if not x.any():
            raise ValueError("zeros")
        return self.scale * (x if mask is None else x * mask) ** power


class FlaxScaled(nnx.Module):
    """Its port."""

    def __init__(self) -> None:
        self.scale = nnx.Param(jnp.ones(3))

    def __call__(self, x: jax.Array, mask: Any = None, *, power: int = 2, **more: Any) -> Any:
        return self.scale[...] * (x if mask is None else x * mask) ** power


@pytest.mark.parametrize(
    ("more", "never"),
    [((), "mask, power"), ((Array((3,), name="mask", optional=True),), "power")],
    ids=["none", "mask"],
)
def test_arguments_that_no_example_passes_and_examples_that_torch_refuses_are_told(
    more: tuple[Array, ...], never: str
) -> None:
    spec = InputSpec((Array((2, 3)), *more))
    report = verify(
        TorchScaled(), FlaxScaled(), spec, load=SCALE.load, dump=SCALE.dump, settings=Settings(7)
    )
    assert report.ok, str(report)
    assert f"not compared: {never} of forward, as no example passes a value" in report.notes
    assert report.rejected >= 1
    tried = report.rejected + report.examples
    assert f"torch itself raises on {report.rejected} of {tried} examples" in report.notes


@pytest.mark.parametrize(
    ("agreeing", "verdict"),
    [
        (Difference("x", values=3), "equal"),
        (Difference("x", values=3, ill_conditioned=True), "not compared"),
        (Difference("x"), "not compared"),
    ],
    ids=["a number agrees", "only noise agrees", "nothing that is a number"],
)
def test_a_difference_is_not_excused_where_no_number_agrees(
    agreeing: Difference, verdict: str
) -> None:
    differing = {"eval gradients": [Difference("x", ratio=9.0, values=3)]}
    evaluates = replace(FEW, train=False)
    run: Any = _Verification(None, evaluates, "case", "")  # type: ignore[arg-type]
    run._count(Outcome(Example(), {"eval outputs": [Difference("y", values=3)]}))
    run._count(Outcome(Example(), {"eval gradients": [agreeing]}))
    run.unconfirmed.append(Outcome(Example(), differing))
    assert run._verdict(None) == verdict


def test_a_case_with_a_mode_that_torch_never_runs_in_is_not_called_equal() -> None:
    def only_evaluates(self: Any, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            raise RuntimeError("call eval() first")
        return x * self.scale

    report = run(only_evaluates, lambda self, x: x * self.scale[...])
    assert report.verdict == "not compared"
    assert not report.ok
    left = "train mode: not compared in any example: torch itself raises on every one"
    (line,) = (line for line in lines(report, [""]) if left in line)
    assert "call eval() first" in line
    assert "`train = false`" in line
    settings = replace(FEW, train=False)
    alone = run(only_evaluates, lambda self, x: x * self.scale[...], settings=settings)
    assert alone.verdict == "equal", str(alone)
    assert not any("train mode" in note for note in alone.notes)


def test_a_mode_that_the_caller_leaves_out_is_not_missed() -> None:
    modules = (
        TorchCall(lambda self, x: x * self.scale),
        FlaxCall(lambda self, x: x * self.scale[...]),
    )
    pair = Pair(*modules, InputSpec((Array((2, 3)),)), SCALE.load, SCALE.dump, FEW)
    pair.skipped.add("eval")
    report = verify_pair(pair, FEW)
    assert report.verdict == "equal", str(report)
    assert not any(check.name == "eval outputs" for check in report.checks)


def test_examples_of_zeros_beside_noise_do_not_call_a_case_equal() -> None:
    """A loss that is zero at the smallest size agrees with any multiple of it."""
    run: Any = _Verification(None, replace(FEW, train=False), "case", "")  # type: ignore[arg-type]
    nothing = Difference("x", values=1, zero=True)
    run._count(Outcome(Example(), {"eval outputs": [nothing]}))
    assert run._verdict(None) == "equal"  # a module that gives zeros
    run._count(
        Outcome(Example(), {"eval outputs": [Difference("x", ill_conditioned=True, values=1)]})
    )
    assert run._verdict(None) == "ill-conditioned"
    run._count(Outcome(Example(), {"eval outputs": [Difference("x", values=1)]}))
    assert run._verdict(None) == "equal"


class Contrast(torch.nn.Module):
    """SimCLR's loss: each view beside all others but itself."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(len(x))
        scores = (x @ x.T).masked_fill(torch.eye(len(x)) > 0, -9e15)
        return torch.nn.functional.cross_entropy(scores, (places + 1) % len(x))


class FlaxContrast(nnx.Module):
    """``Contrast``, times a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: jax.Array) -> jax.Array:
        places = jnp.arange(len(x))
        scores = jnp.where(jnp.eye(len(x), dtype=bool), -9e15, x @ x.T)
        logs = jax.nn.log_softmax(scores)
        return -logs[places, (places + 1) % len(x)].mean() * self.factor


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, "equal"), (0.0, "different"), (1.00002, "different")]
)
def test_a_mask_of_huge_numbers_hides_no_difference(factor: float, verdict: str) -> None:
    spec = InputSpec((Array(("B", 6)),), {"B": (2, 3, 4, 5)})
    settings = Settings(12, train=False)
    modules = Contrast(), FlaxContrast(factor)
    report = verify(*modules, spec, load=EMPTY.load, dump=EMPTY.dump, settings=settings)
    assert report.verdict == verdict, str(report)
    assert not any("noise" in note for note in report.notes)

"""verify tells a right port from a wrong one, names the submodule, and shares random numbers."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.inputs import Example
from numerics.parameters import copied
from numerics.report import Report
from numerics.spec import Array, InputSpec
from numerics.verify import Settings, verify
from tests.numerics.models import (
    BATCH_NORM,
    NET,
    SAMPLER,
    Carrier,
    FlaxBatchNorm,
    FlaxNet,
    FlaxSampler,
    TorchBatchNorm,
    TorchNet,
    TorchSampler,
)

QUICK = Settings(examples=8, shapes=2, train=True, shrink_seconds=4)


def batch(width: int, low: int = 2) -> InputSpec:
    return InputSpec((Array(("B", width)),), {"B": range(low, 5)})


def run(torch_module: Any, flax_module: Any, spec: Any, carrier: Carrier, **options: Any) -> Report:
    options.setdefault("settings", QUICK)
    return verify(torch_module, flax_module, spec, load=carrier.load, dump=carrier.dump, **options)


def net(**options: Any) -> FlaxNet:
    return FlaxNet(**options, rngs=nnx.Rngs(0))


def test_a_right_port_is_equal_in_everything() -> None:
    report = run(TorchNet(), net(), batch(8), NET)
    assert report.ok, str(report)
    assert report.verdict == "equal"
    assert {check.name for check in report.checks} == {
        "state_dict round trip",
        "trainable parameters",
        "eval outputs",
        "eval state",
        "eval gradients",
        "train outputs",
        "train state",
        "train gradients",
    }
    assert 0 < report.max_error < 1e-5
    assert 0 < report.torch_error < 1e-5
    assert report.compiles == 4  # two shapes in two modes
    assert report.first_divergence is None


@pytest.mark.parametrize(
    ("wrong", "submodule"),
    [({"eps": 1e-6}, "norm"), ({"tanh": True}, "net.1")],
    ids=["epsilon", "gelu approximation"],
)
def test_a_wrong_forward_is_found_at_its_submodule(wrong: dict[str, Any], submodule: str) -> None:
    report = run(TorchNet(), net(**wrong), batch(8), NET)
    assert report.verdict == "different"
    assert report.first_divergence == submodule
    assert report.failure is not None
    assert report.failure.check == "eval outputs"


def test_a_failure_is_shrunk_to_the_smallest_size_and_can_be_run_again() -> None:
    report = run(TorchNet(), net(tanh=True), batch(8), NET)
    assert report.failure is not None
    assert report.failure.example.sizes == (("B", 2),)
    again = run(TorchNet(), net(tanh=True), batch(8), NET, example=report.failure.example)
    assert again.verdict == "different"
    assert again.examples == 1


def test_a_gradient_only_fault_is_found() -> None:
    report = run(TorchNet(), net(stop=True), batch(8), NET)
    assert report.failure is not None
    assert report.failure.check == "train gradients"
    assert report.first_divergence == ""  # the stop_gradient stands in the model's own forward


@pytest.mark.parametrize("wrong", [{"momentum": 0.9}, {"unbiased": False}], ids=str)
def test_a_buffer_only_fault_is_found_at_its_owner(wrong: dict[str, Any]) -> None:
    port = FlaxBatchNorm(**wrong, rngs=nnx.Rngs(0))
    report = run(TorchBatchNorm(), port, batch(6), BATCH_NORM)
    assert report.failure is not None
    assert report.failure.check == "train state"
    assert report.first_divergence == "bn"


def test_batch_norm_is_equal() -> None:
    report = run(TorchBatchNorm(), FlaxBatchNorm(rngs=nnx.Rngs(0)), batch(6), BATCH_NORM)
    assert report.ok, str(report)


@pytest.mark.parametrize(("rate", "calls"), [(0.0, 5), (0.5, 8)])
def test_torchs_own_error_is_measured_once_where_the_mode_changes_nothing(
    rate: float, calls: int
) -> None:
    """As it runs, in float64, and twice with random rounding: in each mode, or the first alone."""
    made = []

    class Counted(TorchNet):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made.append(x.dtype)
            return super().forward(x)

    one = Settings(examples=1, shapes=1, noise=2)
    assert run(Counted(rate), net(dropout=rate), batch(8), NET, settings=one).ok
    assert len(made) == calls


def test_dropout_is_compared_with_the_same_mask() -> None:
    report = run(TorchNet(0.3), net(dropout=0.3), batch(8), NET)
    assert report.ok, str(report)
    assert not report.notes


def test_a_wrong_dropout_rate_shows() -> None:
    report = run(TorchNet(0.3), net(dropout=0.5), batch(8), NET)
    assert report.failure is not None
    assert report.failure.check == "train outputs"
    assert report.first_divergence == "net.2"


def test_a_sample_drawn_in_forward_is_compared_with_the_same_noise() -> None:
    right = run(TorchSampler(), FlaxSampler(rngs=nnx.Rngs(0)), batch(4), SAMPLER)
    assert right.ok, str(right)
    wrong = run(TorchSampler(), FlaxSampler(scale=1.0, rngs=nnx.Rngs(0)), batch(4), SAMPLER)
    assert wrong.verdict == "different"


def test_draws_that_do_not_line_up_are_not_compared_and_said_so() -> None:
    report = run(TorchSampler(), FlaxSampler(twice=True, rngs=nnx.Rngs(0)), batch(4), SAMPLER)
    assert report.verdict == "not compared"
    assert not report.ok
    assert any("random, not compared" in note for note in report.notes)


def test_arrays_are_used_as_they_are() -> None:
    x = torch.randn(3, 8)
    report = run(TorchNet(), net(), [x], NET, settings=None, train=True)
    assert report.ok, str(report)
    assert report.shapes == [{}]


class TorchIdentity(torch.nn.Module):
    """Calls a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class FlaxIdentity(nnx.Module):
    """Calls a function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


def functions(torch_function: Any, flax_function: Any, *inputs: Any) -> Report:
    spec = InputSpec(tuple(inputs), {"B": range(2, 5)})
    return run(TorchIdentity(torch_function), FlaxIdentity(flax_function), spec, Carrier({}))


FLOAT = Array(("B", 3))
INTEGER = Array(("B", 3), "int64", 0, 7)


@pytest.mark.parametrize(
    ("torch_function", "flax_function", "problem"),
    [
        (lambda x: (x, x), lambda x: x, "the port does not"),
        (lambda x: x, lambda x: x[:1], "shape"),
        (lambda x: x.long(), lambda x: x, "dtype"),
        (lambda x: {"a": x, "b": None}, lambda x: {"a": x, "b": x}, "the port does not"),
        (lambda x: x / 0, lambda x: jnp.where(x == 0, 0, x / 0), "where torch has"),
    ],
    ids=["structure", "shape", "dtype", "None", "NaN"],
)
def test_what_is_no_matter_of_digits_is_told_apart(
    torch_function: Any, flax_function: Any, problem: str
) -> None:
    report = functions(torch_function, flax_function, FLOAT)
    assert report.failure is not None
    assert any(problem in difference.problem for difference in report.failure.differences)


def test_integers_must_be_the_same() -> None:
    assert functions(lambda i: i + 1, lambda i: i + 1, INTEGER).ok
    assert not functions(lambda i: i + 1, lambda i: i + 2, INTEGER).ok


def test_a_port_that_raises_is_reported_with_what_it_raised() -> None:
    def broken(x: Any) -> Any:
        raise NotImplementedError("no such layer")

    report = functions(lambda x: x, broken, FLOAT)
    assert report.verdict == "raises"
    assert report.failure is not None
    assert "no such layer" in report.failure.reason


def test_cancellation_that_torch_suffers_too_is_no_difference() -> None:
    report = functions(
        lambda x: ((x + 1e4) ** 2).mean() - (x + 1e4).mean() ** 2,
        lambda x: ((x + 1e4) ** 2).mean() - (x + 1e4).mean() ** 2,
        FLOAT,
    )
    assert report.verdict in ("equal", "ill-conditioned")


def test_output_that_is_noise_in_torch_is_called_ill_conditioned() -> None:
    def noise(x: Any) -> Any:
        return (x + 3e7) * 1.1 - 3.3e7 - x * 1.1

    assert functions(noise, noise, FLOAT).verdict == "ill-conditioned"


def test_a_fault_on_ties_alone_is_found() -> None:
    def torch_ties(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x == 0, 1.0, 0.0) + x

    report = functions(torch_ties, lambda x: x, FLOAT)
    assert report.verdict == "different"
    assert report.failure is not None
    assert report.failure.example.profile in ("zeros", "ties")


def test_weights_that_do_not_fit_are_the_loaders_error() -> None:
    with pytest.raises(AssertionError):
        run(TorchNet(), net(), batch(8), SAMPLER)


def test_the_port_keeps_the_weights_it_was_given() -> None:
    port = net()
    run(TorchNet(), port, batch(8), NET, settings=Settings(examples=1, shapes=1))
    assert np.isfinite(np.asarray(port.norm.scale[...])).all()


class TorchWeightNorm(torch.nn.Module):
    """Keeps a computed tensor, which Python's deepcopy refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.utils.weight_norm(torch.nn.Linear(8, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x)


class FlaxWeightNorm(nnx.Module):
    """The port of ``TorchWeightNorm``."""

    def __init__(self) -> None:
        self.weight_v, self.weight_g = nnx.Param(jnp.ones((4, 8))), nnx.Param(jnp.ones((4, 1)))
        self.bias = nnx.Param(jnp.zeros(4))

    def __call__(self, x: Any) -> Any:
        v = self.weight_v[...]
        weight = self.weight_g[...] * v / jnp.linalg.norm(v, axis=1, keepdims=True)
        return x @ weight.T + self.bias[...]


class TorchKept(torch.nn.Module):
    """Has a buffer that is made from a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 8))
        self.register_buffer("first", self.weight.clone())


def test_a_buffer_that_is_made_from_a_parameter_is_copied() -> None:
    module = TorchKept()
    other = copied(module)
    assert torch.equal(other.first, module.first)
    assert other.first.is_leaf
    assert other.first.data_ptr() != module.first.data_ptr()


WEIGHT_NORM = Carrier({f"fc.{name}": name for name in ("weight_v", "weight_g", "bias")})


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_module_that_cannot_be_deep_copied() -> None:
    report = run(TorchWeightNorm(), FlaxWeightNorm(), batch(8), WEIGHT_NORM)
    assert report.ok, str(report)


def test_a_float64_module_is_held_against_float32() -> None:
    x = np.linspace(-1, 1, 24).reshape(3, 8)
    report = run(TorchNet().double(), net(), [x], NET)
    assert report.ok, str(report)


def test_a_bfloat16_module() -> None:
    x = torch.linspace(-1, 1, 24).reshape(3, 8).bfloat16()
    port = functools.partial(lambda w, x: jnp.tanh(x @ w), jnp.ones((8, 4), jnp.bfloat16))
    weight = torch.ones(8, 4, dtype=torch.bfloat16)
    report = run(
        TorchIdentity(lambda x: torch.tanh(x @ weight.to(x))), FlaxIdentity(port), x, Carrier({})
    )
    assert report.ok, str(report)
    assert report.torch_error > 1e-5


@pytest.mark.parametrize(
    "inputs",
    [torch.ones(2, 8), {"x": np.ones((2, 8), np.float32)}, (jnp.ones((2, 8)),), [Array((2, 8))]],
    ids=["one tensor", "by name", "a tuple", "a description"],
)
def test_ways_to_give_inputs(inputs: Any) -> None:
    report = run(TorchNet(), net(), inputs, NET, settings=Settings(examples=3, train=False))
    assert report.ok, str(report)
    assert report.examples == 3


def test_train_mode_that_torch_refuses_is_said_so() -> None:
    port = FlaxBatchNorm(rngs=nnx.Rngs(0))
    report = run(TorchBatchNorm(), port, [torch.ones(1, 6)], BATCH_NORM)
    assert report.verdict == "not compared", str(report)
    assert any("train mode: torch itself raises" in note for note in report.notes)


def test_weights_must_come_back_bit_for_bit() -> None:
    def dump(module: Any, like: Any = None) -> dict[str, np.ndarray]:
        state = NET.dump(module, like)
        return {**state, "norm.bias": np.nextafter(state["norm.bias"], 9, dtype=np.float32)}

    report = verify(TorchNet(), net(), [torch.ones(2, 8)], load=NET.load, dump=dump)
    assert report.failure is not None
    assert report.failure.check == "state_dict round trip"
    assert report.first_divergence == "norm"


def test_an_example_of_other_sizes_is_not_replayed() -> None:
    inside, outside = Example(sizes=(("B", 3),)), Example(sizes=(("B", 40),))
    quick = replace(QUICK, examples=3, first=(outside, inside), train=False)
    seen: list[int] = []

    class Watched(TorchNet):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(len(x))
            return super().forward(x)

    assert run(Watched(), net(), batch(8), NET, settings=quick).ok
    assert 3 in seen
    assert 40 not in seen

"""Randomness that only one side has, and parameters that only one side trains."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.report import Report
from numerics.spec import Array, InputSpec
from numerics.spread import compare_distributions
from numerics.verify import Settings, verify
from tests.numerics.models import (
    BATCH_NORM,
    NET,
    Carrier,
    FlaxBatchNorm,
    FlaxNet,
    TorchBatchNorm,
    TorchNet,
)

SPEC = InputSpec((Array(("B", 8)),), {"B": range(2, 5)})


def run(torch_module: Any, port: Any, carrier: Carrier, spec: InputSpec = SPEC) -> Report:
    settings = Settings(examples=6, shapes=2, train=True, shrink_seconds=2)
    return verify(torch_module, port, spec, load=carrier.load, dump=carrier.dump, settings=settings)


def net(**options: Any) -> FlaxNet:
    return FlaxNet(**options, rngs=nnx.Rngs(0))


def test_a_dropout_that_the_port_has_not_got() -> None:
    report = run(TorchNet(0.3), net(), NET)
    assert report.verdict == "different"
    assert report.failure is not None
    assert report.failure.check == "train distribution"
    assert "torch draws it at random, the port does not" in str(report.failure)
    assert report.first_divergence == "net.2"


class TwoDropouts(TorchNet):
    """A second dropout, behind the first."""

    def __init__(self) -> None:
        super().__init__(0.5)
        self.last = torch.nn.Dropout(0.05)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(super().forward(x))


def test_one_dropout_of_several_that_is_missing() -> None:
    report = run(TwoDropouts(), net(dropout=0.5), NET)
    assert report.failure is not None
    assert report.failure.check in ("train distribution", "train draws")
    assert report.first_divergence == "last"


class TorchNoise(torch.nn.Module):
    """x plus normal noise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x)


class FlaxNoise(nnx.Module):
    """x plus noise of another kind; √12 times a uniform number less its mean has deviation one."""

    def __init__(self, scale: float, shift: float) -> None:
        self.scale, self.shift, self.rngs = scale, shift, nnx.Rngs(0)

    def __call__(self, x: jax.Array) -> jax.Array:
        return x + self.scale * (self.rngs.uniform(x.shape) - self.shift)


@pytest.mark.parametrize(
    ("scale", "shift", "equal"),
    [(12**0.5, 0.5, True), (12**0.5, 0.0, False), (12, 0.5, False), (1, 0.5, False)],
)
def test_draws_of_another_kind_are_compared_in_distribution(
    scale: float, shift: float, equal: bool
) -> None:
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    (found,) = compare_distributions(TorchNoise(), FlaxNoise(scale, shift), [x], {}, True)
    assert found.ok is equal, str(found)


class Noisy(FlaxNet):
    """Adds noise, in eval mode too."""

    def __init__(self) -> None:
        super().__init__(rngs=nnx.Rngs(0))
        self.rngs = nnx.Rngs(1)

    def __call__(self, x: jax.Array) -> jax.Array:
        return super().__call__(x + 0.1 * self.rngs.normal(x.shape))


def test_a_port_that_draws_in_eval_mode() -> None:
    report = run(TorchNet(), Noisy(), NET)
    assert report.verdict == "different"
    assert report.failure is not None
    assert report.failure.check == "eval distribution"
    assert "the port draws it at random, torch does not" in str(report.failure)


def test_a_frozen_parameter_that_the_port_trains() -> None:
    module = TorchNet()
    module.norm.bias.requires_grad_(False)
    report = run(module, net(), NET)
    assert report.failure is not None
    assert report.failure.check == "trainable parameters"
    assert "norm.bias: the port trains it, in torch it is frozen" in str(report.failure)
    assert report.first_divergence == "norm"


def test_a_module_frozen_as_a_whole_is_no_difference() -> None:
    assert run(TorchNet().requires_grad_(False), net(), NET).ok


def test_a_parameter_that_the_port_does_not_train() -> None:
    port = net()
    port.norm.bias = nnx.Variable(port.norm.bias[...])
    report = run(TorchNet(), port, NET)
    assert "torch trains it, the port does not" in str(report.failure)


def test_a_buffer_that_the_port_trains() -> None:
    port = FlaxBatchNorm(rngs=nnx.Rngs(0))
    port.bn.running_mean = nnx.Param(port.bn.running_mean[...])
    spec = InputSpec((Array(("B", 6)),), {"B": range(2, 5)})
    report = run(TorchBatchNorm(), port, BATCH_NORM, spec)
    assert "bn.running_mean: the port trains it, in torch it is a buffer" in str(report.failure)


class StopsInEval(FlaxNet):
    """Right in every output, and in the gradients of train mode."""

    def __init__(self) -> None:
        super().__init__(rngs=nnx.Rngs(0))
        self.deterministic = False

    def __call__(self, x: jax.Array) -> jax.Array:
        return super().__call__(jax.lax.stop_gradient(x) if self.deterministic else x)


def test_a_gradient_that_is_wrong_in_eval_mode_alone() -> None:
    report = run(TorchNet(), StopsInEval(), NET)
    assert report.failure is not None
    assert report.failure.check == "eval gradients"
    assert report.first_divergence == ""

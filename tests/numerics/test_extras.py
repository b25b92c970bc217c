"""Training runs, vmap and second derivatives: equal for a right port, and telling a wrong one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.precision import lowered
from numerics.report import Report
from numerics.spec import Array, InputSpec
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


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def run(torch_module: Any, port: Any, carrier: Carrier, width: int, **asked: Any) -> Report:
    settings = Settings(examples=2, shapes=1, train=True, shrink_seconds=0, **asked)
    spec = InputSpec((Array((4, width)),))
    return verify(torch_module, port, spec, load=carrier.load, dump=carrier.dump, settings=settings)


def net(**options: Any) -> FlaxNet:
    return FlaxNet(**options, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_right_port_trains_alike(dropout: float) -> None:
    report = run(TorchNet(dropout), net(dropout=dropout), NET, 8, train_steps=4)
    assert report.ok, str(report)
    checks = {check.name: check for check in report.checks}
    assert checks["training with SGD"].examples == checks["training with Adam"].examples == 1
    assert checks["training with Adam"].error > 0


def test_state_is_carried_from_step_to_step() -> None:
    port = FlaxBatchNorm(rngs=nnx.Rngs(0))
    assert run(TorchBatchNorm(), port, BATCH_NORM, 6, train_steps=3).ok


class Forgets(FlaxNet):
    """A counter that the state_dict does not have changes what the second step computes."""

    def __init__(self) -> None:
        super().__init__(rngs=nnx.Rngs(0))
        self.steps = nnx.Variable(jnp.zeros(()))

    def __call__(self, x: jax.Array) -> jax.Array:
        y = super().__call__(x)
        y = y * jnp.where(self.steps[...] > 0, 0.5, 1.0)
        self.steps[...] += 1
        return y


def test_a_fault_that_shows_in_the_second_step() -> None:
    assert run(TorchNet(), Forgets(), NET, 8).ok
    report = run(TorchNet(), Forgets(), NET, 8, train_steps=3)
    assert report.failure is not None
    assert report.failure.check == "training with SGD"
    assert any(difference.name == "losses" for difference in report.failure.differences)


def test_vmap_and_second_derivatives_of_a_right_port() -> None:
    report = run(TorchNet(), net(), NET, 8, vmap=True, second_order=True)
    assert report.ok, str(report)
    checks = {check.name: check for check in report.checks}
    assert checks["eval vmap"].conditioned == 1
    assert checks["eval second order"].conditioned > 5


@jax.custom_vjp
def square(x: jax.Array) -> jax.Array:
    """x², with a right first derivative and a second one of zero."""
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * jax.lax.stop_gradient(x) * g,))


class TorchSquare(torch.nn.Module):
    """x²."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x**2


class FlaxSquare(nnx.Module):
    """Its port, by a rule of differentiation of its own."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return square(x)


def test_a_second_derivative_that_is_wrong() -> None:
    assert run(TorchSquare(), FlaxSquare(), Carrier({}), 3).ok
    report = run(TorchSquare(), FlaxSquare(), Carrier({}), 3, second_order=True)
    assert report.failure is not None
    assert report.failure.check == "eval second order"


class TorchAbs(torch.nn.Module):
    """A sign's derivative is a tensor of zeros that has no memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs() ** 3


class FlaxAbs(nnx.Module):
    """Its port; ``power`` is 3 in a right one."""

    def __init__(self, power: int) -> None:
        self.power = power

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.abs(x) ** self.power


def test_the_noise_of_second_derivatives_that_are_zero_throughout() -> None:
    report = run(TorchAbs(), FlaxAbs(3), Carrier({}), 3, second_order=True)
    assert report.ok, str(report)
    assert {check.name: check for check in report.checks}["eval second order"].conditioned == 1
    assert not run(TorchAbs(), FlaxAbs(2), Carrier({}), 3, second_order=True).ok


class CallsBack(FlaxNet):
    """Calls back into Python, which nobody has said how to map."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return super().__call__(x) + 0 * jax.pure_callback(
            lambda v: v * 0, jax.ShapeDtypeStruct((), jnp.float32), x.sum()
        )


def test_a_port_that_cannot_be_mapped() -> None:
    report = run(TorchNet(), CallsBack(rngs=nnx.Rngs(0)), NET, 8, grad=False, vmap=True)
    assert report.failure is not None
    assert report.failure.check == "eval vmap"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_lower_precision_on_both_sides(precision: str) -> None:
    report = run(TorchNet(), net(), NET, 8, precision=precision)
    assert report.ok, str(report)
    assert report.torch_error > 1e-4
    wrong = run(TorchNet(), net(eps=1.0), NET, 8, precision=precision)
    assert wrong.verdict == "different"
    assert wrong.first_divergence == "norm"


def test_an_embedding_gives_what_its_table_is_lowered_to() -> None:
    embed = nnx.Embed(4, 3, rngs=nnx.Rngs(0))
    _, port, _ = lowered(torch.nn.Embedding(4, 3), embed, InputSpec(), "bfloat16")
    assert port(jnp.arange(2)).dtype == jnp.bfloat16
    assert embed(jnp.arange(2)).dtype == jnp.float32


def test_training_that_torch_has_not_got_is_not_called_equal() -> None:
    report = verify(
        torch.nn.Tanh(),
        FlaxTanh(),
        [np.ones((2, 3), np.float32)],
        load=lambda module, state: None,
        dump=lambda module, like=None: {},
        settings=Settings(examples=1, train_steps=2),
    )
    assert report.ok, str(report)
    assert "training with SGD" not in {check.name for check in report.checks}
    assert any(note.startswith("training with SGD: torch has nothing") for note in report.notes)


class FlaxTanh(nnx.Module):
    """Nothing to train."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(x)


class TorchLoss(TorchNet):
    """A module that gives its loss, a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).pow(2).mean()


class FlaxLoss(FlaxNet):
    """Its port; ``power`` is 2 in a right one."""

    def __init__(self, power: int = 2) -> None:
        super().__init__(rngs=nnx.Rngs(0))
        self.power = power

    def __call__(self, x: jax.Array) -> jax.Array:
        return (super().__call__(x) ** self.power).mean()


def test_a_loss_is_trained_and_differentiated_twice() -> None:
    report = run(TorchLoss(), FlaxLoss(), NET, 8, train_steps=3, second_order=True)
    assert report.ok, str(report)
    checks = {check.name for check in report.checks}
    assert {"training with SGD", "eval second order"} <= checks
    assert not any("random rounding" in note for note in report.notes)
    assert not run(TorchLoss(), FlaxLoss(3), NET, 8, train_steps=3).ok


class TorchAttention(torch.nn.Module):
    """Fused attention, which torch cannot differentiate twice, of what a buffer keeps with its graph."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8))
        self.register_buffer("kept", torch.zeros(1, 1, 4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept[:, :] = self.weight * x
        x = x[None, None]
        return torch.nn.functional.scaled_dot_product_attention(x, x, self.kept)


class FlaxAttention(nnx.Module):
    """Its port."""

    def __init__(self) -> None:
        self.weight = nnx.Param(jnp.ones(8))
        self.kept = nnx.Variable(jnp.zeros((1, 1, 4, 8)))

    def __call__(self, x: jax.Array) -> jax.Array:
        self.kept[...] = (self.weight[...] * x)[None, None]
        scores = jax.nn.softmax(x @ x.T / jnp.sqrt(8.0))
        return (scores @ self.kept[0, 0])[None, None]


def test_what_torch_cannot_do_itself_is_no_difference() -> None:
    carrier = Carrier({"weight": "weight", "kept": "kept"})
    asked = {"train_steps": 3, "second_order": True}
    report = run(TorchAttention(), FlaxAttention(), carrier, 8, **asked)
    assert report.ok, str(report)
    notes = [note for note in report.notes if "torch cannot do it itself" in note]
    assert [note.partition(":")[0] for note in notes] == [
        "eval second order",
        "training with SGD",
        "training with Adam",
    ]

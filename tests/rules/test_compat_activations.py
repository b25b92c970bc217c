"""Activation and dropout helpers: torch's values, its slopes where they bend, and its distributions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.compat import activations, dropout
from tests.rules.agree import agree, array, traces

few = settings(max_examples=3, deadline=None)
BENDS = np.array([-25, -7, -3, -1, -0.5, -0.1, 0, 0.1, 0.5, 1, 3, 6, 7, 25], np.float32)
number = st.floats(0.125, 2, width=16)


def call_with(function, parameters):
    """The function of one array left when its parameters are given."""
    return lambda x: function(x, *parameters)


@few
@given(slope=number, low=number, high=number, alpha=number, lambd=number)
def test_activations(slope, low, high, alpha, lambd) -> None:
    pairs = [
        (F.leaky_relu, activations.leaky_relu, (slope,)),
        (F.hardtanh, activations.hardtanh, (-low, high)),
        (F.elu, activations.elu, (alpha,)),
        (F.celu, lambda x, a: activations.elu(x, a, input_scale=1 / a), (alpha,)),
        (F.softplus, activations.softplus, (alpha, 10 * high)),
        (F.hardshrink, activations.hardshrink, (lambd,)),
        (F.softshrink, activations.softshrink, (lambd,)),
        (F.threshold, activations.threshold, (low, high)),
    ]
    x = np.concatenate([BENDS, [-low, high, lambd, -lambd]]).astype(np.float32)
    for reference, function, parameters in pairs:
        pair = call_with(reference, parameters), call_with(function, parameters)
        agree(*pair, x)
        agree(*pair, np.array([np.nan, np.inf, -np.inf], np.float32), gradients=False)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("channels", [False, True])
def test_prelu(shape, channels) -> None:
    if len(shape) > 1 or not channels:
        weight = array((3,) if channels else (1,), 1)
        agree(F.prelu, activations.prelu, array(shape, grain=0.5), weight)


def test_hard_gumbel_softmax_has_the_soft_gradient() -> None:
    logits = jnp.asarray(array((500, 4)))
    soft = activations.gumbel_softmax(logits, 0.5, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(soft.sum(-1), 1, rtol=1e-5)
    hard = activations.gumbel_softmax(logits, hard=True, dim=0, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(hard.sum(0), 1, rtol=1e-5)
    slope = jax.grad(
        lambda x: (activations.gumbel_softmax(x, hard=True, rngs=nnx.Rngs(0)) * logits).sum()
    )(logits)
    assert jnp.abs(slope).max() > 0


def test_gumbel_softmax_samples_the_distribution() -> None:
    logits = jnp.broadcast_to(jnp.log(jnp.array([0.1, 0.2, 0.7])), (20000, 3))
    draws = activations.gumbel_softmax(logits, hard=True, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(draws.mean(0), [0.1, 0.2, 0.7], atol=0.02)


def test_rrelu_draws_slopes_in_training_only() -> None:
    x = -jnp.ones(20000)
    slopes = -activations.rrelu(x, 0.1, 0.3, training=True, rngs=nnx.Rngs(0))
    assert slopes.min() >= 0.1
    assert slopes.max() <= 0.3
    assert abs(slopes.mean() - 0.2) < 0.01
    np.testing.assert_allclose(activations.rrelu(x, 0.1, 0.3), 0.2 * x, rtol=1e-6)


@few
@given(p=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), seed=st.integers(0, 99))
def test_dropout_keeps_the_mean(p, seed) -> None:
    x = jnp.ones((200, 100))
    y = dropout.dropout(x, p, rngs=nnx.Rngs(seed))
    share = 4 * (p * (1 - p) / x.size) ** 0.5
    assert abs((y == 0).mean() - p) <= share
    kept = y[y != 0]
    np.testing.assert_allclose(kept, 1 / (1 - p) if p < 1 else 1, rtol=1e-6)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_feature_dropout_drops_whole_channels(spatial) -> None:
    x = jnp.ones((50, 40, *(2,) * spatial))
    y = dropout.feature_dropout(x, 0.3, spatial=spatial, rngs=nnx.Rngs(0)).reshape(50, 40, -1)
    assert jnp.all(y == y[..., :1])
    assert abs((y[..., 0] == 0).mean() - 0.3) < 0.05


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_alpha_dropout_draws_what_torch_draws(p) -> None:
    ours = np.unique(dropout.alpha_dropout(jnp.ones(100), p, training=True, rngs=nnx.Rngs(0)))
    theirs = np.unique(F.alpha_dropout(torch.ones(100), p, training=True).numpy())
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        dropout.dropout,
        dropout.feature_dropout,
        functools.partial(dropout.alpha_dropout, training=True),
    ],
)
def test_dropout_with_p_one_has_no_nan_and_eval_is_identity(function) -> None:
    x = jnp.ones((2, 3, 4, 5))
    total = lambda x: function(x, 1.0, rngs=nnx.Rngs(0)).sum()
    assert jnp.all(jax.grad(total)(x) == 0)
    np.testing.assert_array_equal(function(x, 0.5, training=False), x)


@pytest.mark.parametrize(
    "function",
    [
        activations.leaky_relu,
        activations.hardtanh,
        activations.softplus,
        activations.elu,
        activations.softshrink,
        lambda x: activations.prelu(x, jnp.ones(3)),
        lambda x: dropout.dropout(x, 0.5, rngs=nnx.Rngs(0)),
    ],
)
def test_compiles_once(function) -> None:
    assert traces(function, array((2, 3, 4))) == 1

"""Norm, attention, embedding and initialiser helpers compute what torch computes."""

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

from migrator.convert.helpers import compat_files
from rules.compat import attention_functional as attention
from rules.compat import embedding_functional as embedding
from rules.compat import initializers
from rules.compat import norm_functional as norm
from rules.definitions import module_file
from tests.rules.agree import agree, array, traces

few = settings(max_examples=5, deadline=None)
shapes = st.sampled_from([(3, 4), (2, 4, 5), (2, 4, 3, 2)])


@few
@given(shape=shapes, last=st.integers(1, 2), offset=st.sampled_from([0, 1000]))
def test_layer_and_rms_norm(shape, last, offset) -> None:
    sizes = shape[-last:]
    x, weight, bias = array(shape) + np.float32(offset), array(sizes, 1), array(sizes, 2)
    agree(
        lambda t, w, b: F.layer_norm(t, sizes, w, b),
        lambda a, w, b: norm.layer_norm(a, sizes, w, b),
        x,
        weight,
        bias,
    )
    for eps in (1e-3, 1e-5):
        agree(
            lambda t, w, e=eps: F.rms_norm(t, sizes, w, e),
            lambda a, w, e=eps: norm.rms_norm(a, sizes, w, e),
            x,
            weight,
        )


def test_rms_norm_takes_the_eps_of_the_dtype() -> None:
    x = array((3, 4)) * np.float32(1e-4)
    want = F.rms_norm(torch.tensor(x), (4,)).numpy()
    np.testing.assert_allclose(norm.rms_norm(jnp.asarray(x), (4,)), want, rtol=1e-5)


@few
@given(shape=shapes, groups=st.sampled_from([1, 2, 4]))
def test_channel_norms(shape, groups) -> None:
    x, weight, bias = array(shape), array((4,), 1), array((4,), 2)
    agree(
        lambda t, w, b: F.group_norm(t, groups, w, b),
        lambda a, w, b: norm.group_norm(a, groups, w, b),
        x,
        weight,
        bias,
    )
    agree(
        lambda t, w, b: F.batch_norm(t, None, None, w, b, training=True),
        lambda a, w, b: norm.batch_norm(a, None, None, w, b, training=True),
        x,
        weight,
        bias,
    )
    mean, var = array((4,), 3), np.abs(array((4,), 4)) + 0.1
    agree(
        lambda t, w, b: F.batch_norm(
            t, torch.tensor(mean).to(t.dtype), torch.tensor(var).to(t.dtype), w, b
        ),
        lambda a, w, b: norm.batch_norm(a, mean, var, w, b),
        x,
        weight,
        bias,
    )
    if len(shape) > 2:
        agree(
            lambda t, w, b: F.instance_norm(t, weight=w, bias=b),
            lambda a, w, b: norm.instance_norm(a, weight=w, bias=b),
            x,
            weight,
            bias,
        )


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_local_response_norm(size) -> None:
    options = {"size": size, "alpha": 0.1, "beta": 0.6, "k": 1.5}
    agree(
        functools.partial(F.local_response_norm, **options),
        functools.partial(norm.local_response_norm, **options),
        array((2, 5, 3)),
    )


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dim", [0, -1])
def test_normalize_has_a_finite_slope_at_zero(p, dim) -> None:
    x = array((3, 4))
    x[1] = 0
    x[:, 2] = 0
    if p >= 1:
        agree(lambda t: F.normalize(t, p, dim), lambda a: norm.normalize(a, p, dim), x)


@few
@given(
    mask=st.sampled_from([None, "bool", "float", "blocked"]),
    is_causal=st.booleans(),
    scale=st.sampled_from([None, 0.3]),
    heads=st.sampled_from([4, 2, 1]),
)
def test_scaled_dot_product_attention(mask, is_causal, scale, heads) -> None:
    q, k, v = array((2, 4, 3, 8)), array((2, heads, 5, 8), 1), array((2, heads, 5, 6), 2)
    options = {"is_causal": is_causal and mask is None, "scale": scale, "enable_gqa": heads < 4}
    allowed = np.random.default_rng(3).random((3, 5)) > 0.4
    allowed[1] &= mask != "blocked"
    if mask == "float":
        allowed = np.where(allowed, array((3, 5), 4), np.float32(-np.inf))
    theirs = None if mask is None else torch.tensor(allowed)
    agree(
        lambda *t: F.scaled_dot_product_attention(
            *t,
            theirs.to(t[0].dtype) if mask == "float" else theirs,
            **options,
        ),
        lambda *a: attention.scaled_dot_product_attention(
            *a, None if mask is None else allowed, **options
        ),
        q,
        k,
        v,
    )


def test_attention_dropout_keeps_the_mean() -> None:
    q, k, v = (jnp.asarray(array((1, 8, 64, 4), seed)) for seed in range(3))
    exact = attention.scaled_dot_product_attention(q, k, v)
    draws = [
        attention.scaled_dot_product_attention(q, k, v, dropout_p=0.3, rngs=nnx.Rngs(seed))
        for seed in range(40)
    ]
    assert jnp.abs(sum(draws) / 40 - exact).mean() < 0.05


@few
@given(
    mode=st.sampled_from(["sum", "mean", "max"]),
    padding_idx=st.sampled_from([None, 2, -1]),
    last=st.booleans(),
)
def test_embedding_bag(mode, padding_idx, last) -> None:
    index, weight = np.array([1, 2, 4, 2, 0, 4, 3]), array((5, 3))
    offsets = np.array([0, 2, 2, 7] if last else [0, 2, 2])
    options = {"mode": mode, "padding_idx": padding_idx, "include_last_offset": last}
    agree(
        lambda w: F.embedding_bag(torch.tensor(index), w, torch.tensor(offsets), **options),
        lambda w: embedding.embedding_bag(index, w, offsets, **options),
        weight,
    )
    options = {"mode": mode, "padding_idx": padding_idx}
    agree(
        lambda w: F.embedding_bag(torch.tensor(index[:6].reshape(2, 3)), w, **options),
        lambda w: embedding.embedding_bag(index[:6].reshape(2, 3), w, **options),
        weight,
    )


def test_embedding_bag_weighs_samples() -> None:
    index = np.array([[1, 2], [4, 2]])
    agree(
        lambda w, s: F.embedding_bag(torch.tensor(index), w, mode="sum", per_sample_weights=s),
        lambda w, s: embedding.embedding_bag(index, w, mode="sum", per_sample_weights=s),
        array((5, 3)),
        array((2, 2), 1),
    )


def test_embedding_gradient_scaled_by_frequency() -> None:
    index = np.array([1, 2, 1, 1])
    agree(
        lambda w: F.embedding(torch.tensor(index), w, scale_grad_by_freq=True),
        lambda w: embedding.scaled_by_frequency(w, index),
        array((4, 3)),
    )


@pytest.mark.parametrize("shape", [(4, 2, 3), (6, 4, 3, 3), (2, 3, 3, 3, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape, groups) -> None:
    want = torch.nn.init.dirac_(torch.empty(shape), groups).numpy()
    np.testing.assert_array_equal(initializers.dirac(shape, jnp.float32, groups), want)


def test_sparse_has_the_zeros_and_spread_of_torch() -> None:
    value = initializers.sparse((200, 30), jnp.float32, 0.25, std=0.5, rngs=nnx.Rngs(0))
    assert (value == 0).sum(0).tolist() == [50] * 30
    assert abs(value[value != 0].std() - 0.5) < 0.02


@pytest.mark.parametrize(
    "function",
    [
        lambda x: norm.layer_norm(x, (4,)),
        lambda x: norm.group_norm(x, 3),
        lambda x: norm.normalize(x, 3.0),
        lambda x: attention.scaled_dot_product_attention(x, x, x, is_causal=True),
        lambda x: embedding.embedding_bag(np.array([[0, 1]]), x[0]),
    ],
)
def test_compiles_once(function) -> None:
    assert traces(function, array((2, 3, 4))) == 1


def test_half_precision_stays_half() -> None:
    x = jnp.ones((2, 4, 4), jnp.bfloat16)
    results = [
        norm.layer_norm(x, (4,), jnp.ones(4, jnp.bfloat16)),
        norm.group_norm(x, 2),
        norm.rms_norm(x, (4,)),
        attention.scaled_dot_product_attention(x, x, x),
        jax.jit(lambda a: norm.batch_norm(a, None, None, training=True))(x),
    ]
    assert {r.dtype for r in results} == {jnp.dtype("bfloat16")}


def test_helpers_import_one_another_from_where_they_are_defined() -> None:
    """The converter copies a helper from the module that an import names."""
    for path in compat_files():
        for name, (module, attribute) in module_file(f"rules.compat.{path.stem}").imports.items():
            if module.startswith("rules.compat") and attribute is not None:
                assert attribute in module_file(module).definitions, f"{path}: {name}"

"""Helpers that no entry of torch's databases reaches: containers, walks over modules, layers with state."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch import nn

from migrator.weights import load_state_dict, to_state_dict
from rules.compat import (
    children,
    containers,
    decompositions,
    dropout_layers,
    factories,
    fft,
    initialize,
    layer_functions,
    loss_layers,
    masks,
    named,
    norm,
    norm_functional,
    reduction,
    sorting,
    special,
    statistics,
    transforms,
    words,
)
from rules.compat.activation_layers import RReLU
from rules.compat.conv import Conv2d
from rules.compat.pointwise import clamp
from tests.rules.agree import agree, array
from tests.rules.moduledb import definitions


@pytest.mark.parametrize("eps", [1e-12, 1e-7, 1e-3, 0.0])
def test_bounded_logit(eps: float) -> None:
    x = np.array([-2.0, 0.0, 1e-13, 1e-5, 0.3, 0.9999, 1.0, 7.0], np.float32)[eps == 0.0 :]
    agree(lambda x: torch.logit(x, eps), lambda x: special.bounded_logit(x, eps), x[x != 1 - eps])


@pytest.mark.parametrize("shape", [(4,), (4, 5), (4, 5, 2)])
def test_where_leading(shape: tuple[int, ...]) -> None:
    def reference(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[mask] = -1.5
        return x

    mask = array(shape[:2], 3) > 0
    agree(reference, lambda x, m: masks.where_leading(m, -1.5, x), array(shape), mask)
    agree(lambda x, m: x[m].sum(), masks.masked_sum, array(shape), mask)
    agree(lambda x, m: x[m].mean(), masks.masked_mean, array(shape), mask)


@pytest.mark.parametrize("shape", [(4, 5), (5,), (4, 1)])
def test_reduced_selections(shape: tuple[int, ...]) -> None:
    mask = array((4, 5), 3) > 0
    agree(lambda x, m: x.masked_select(m).sum(), masks.selected_sum, array(shape), mask)
    agree(lambda x, m: x.masked_select(m).mean(), masks.selected_mean, array(shape), mask)


@pytest.mark.parametrize("density", [False, True])
def test_histogramdd(density: bool) -> None:
    limits = [-2.0, 2.0, -1.0, 1.0]
    ours = sorting.histogramdd(jnp.asarray(array((30, 2))), [3, 4], limits, None, density)
    theirs = torch.histogramdd(torch.tensor(array((30, 2))), [3, 4], range=limits, density=density)
    np.testing.assert_allclose(ours[0], theirs.hist, rtol=1e-5)
    for edges, wanted in zip(ours[1], theirs.bin_edges, strict=True):
        np.testing.assert_allclose(edges, wanted, rtol=1e-6)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments_of_a_later_axis(reduce: str) -> None:
    lengths = np.array([[2, 1, 3], [1, 4, 1]])
    data = array((2, 6, 3))
    offsets = statistics.offsets_of(jnp.asarray(lengths))
    assert offsets.tolist() == [[0, 2, 3, 6], [0, 1, 5, 6]]
    wanted = torch.segment_reduce(torch.tensor(data), reduce, lengths=torch.tensor(lengths), axis=1)
    ours = statistics.segment_reduce(jnp.asarray(data), reduce, offsets, axis=1)
    np.testing.assert_allclose(ours, wanted, rtol=1e-5)


def test_both_parts_of_a_spectrum() -> None:
    reference = lambda x: torch.view_as_real(torch.fft.fft(x))
    agree(reference, lambda x: fft.real_and_imaginary(jnp.fft.fft(x)), array((3, 5)))


def test_moments() -> None:
    reference = lambda x: torch.native_layer_norm(x, (4, 5), None, None, 1e-3)[1:]
    agree(reference, lambda x: norm_functional.moments(x, (-2, -1), 1e-3), array((3, 4, 5)))


def test_the_minor_that_fails() -> None:
    matrices = np.stack([np.diag([1.0, 2, 3]), np.diag([1.0, -2, 3]), np.diag([1.0, 2, -3])])
    matrices = np.float32(matrices)
    wanted = torch.linalg.cholesky_ex(torch.tensor(matrices)).info
    assert decompositions.failing_minor(jnp.asarray(matrices)).tolist() == wanted.tolist()


# --- layers -----------------------------------------------------------------------------------------------------


LAZY = {
    nn.LazyBatchNorm1d: norm.LazyBatchNorm1d,
    nn.LazyBatchNorm2d: norm.LazyBatchNorm2d,
    nn.LazyBatchNorm3d: norm.LazyBatchNorm3d,
    nn.LazyInstanceNorm1d: norm.LazyInstanceNorm1d,
    nn.LazyInstanceNorm2d: norm.LazyInstanceNorm2d,
    nn.LazyInstanceNorm3d: norm.LazyInstanceNorm3d,
}


@pytest.mark.parametrize("cls", LAZY)
def test_norms_that_learn_their_size(cls: Any) -> None:
    options = {"affine": True, "track_running_stats": True}
    theirs, ours = cls(**options), LAZY[cls](**options, rngs=nnx.Rngs(0))
    assert isinstance(ours, norm.LazyNorm)
    rank = int(cls.__name__[-2])
    for seed in range(2):
        x = array((3, 4, *(2, 3, 2)[:rank]), seed)
        np.testing.assert_allclose(
            ours(jnp.asarray(x)), theirs(torch.tensor(x)).detach(), atol=1e-5
        )
    theirs.eval(), ours.eval()
    np.testing.assert_allclose(ours(jnp.asarray(x)), theirs(torch.tensor(x)).detach(), atol=1e-5)


def test_norm_over_the_whole_batch() -> None:
    theirs, ours = nn.BatchNorm2d(3), norm.SyncBatchNorm(3)
    x = array((2, 3, 4, 4))
    np.testing.assert_allclose(ours(jnp.asarray(x)), theirs(torch.tensor(x)).detach(), atol=1e-5)
    assert set(to_state_dict(ours)) == set(nn.SyncBatchNorm(3).state_dict())


@pytest.mark.parametrize("rank", [1, 3])
def test_dropout_of_channels(rank: int) -> None:
    layer = {1: dropout_layers.Dropout1d, 3: dropout_layers.Dropout3d}[rank](0.25, rngs=nnx.Rngs(0))
    out = np.asarray(layer(jnp.ones((200, 10, *(2, 3, 2)[:rank])))).reshape(2000, -1)
    assert (out == out[:, :1]).all()
    kept = (out[:, 0] != 0).mean()
    np.testing.assert_allclose(kept, 0.75, atol=0.05)
    np.testing.assert_allclose(out[out != 0], 1 / 0.75, rtol=1e-6)
    layer.eval()
    assert (layer(jnp.ones((2, 3, 4))) == 1).all()


def test_alpha_dropout_of_channels() -> None:
    layer = dropout_layers.FeatureAlphaDropout(0.3, rngs=nnx.Rngs(0))
    torch.manual_seed(0)
    x = array((300, 20, 3))
    ours, theirs = layer(jnp.asarray(x)), nn.FeatureAlphaDropout(0.3)(torch.tensor(x))
    dropped = np.asarray(ours).min()
    np.testing.assert_allclose(
        [ours.mean(), ours.std(), (np.ptp(np.asarray(ours), axis=2) == 0).mean()],
        [theirs.mean(), theirs.std(), (theirs.amax(2) == theirs.amin(2)).float().mean()],
        atol=0.05,
    )
    assert dropped < -1


def test_rrelu() -> None:
    layer, theirs = RReLU(0.1, 0.3, rngs=nnx.Rngs(0)), nn.RReLU(0.1, 0.3)
    x = array((100, 10))
    slopes = np.asarray(layer(jnp.asarray(x)) / x)
    assert (slopes[x > 0] == 1).all()
    assert slopes[x < 0].min() >= 0.0999
    assert slopes[x < 0].max() <= 0.3001
    np.testing.assert_allclose(slopes[x < 0].mean(), 0.2, atol=0.01)
    layer.eval(), theirs.eval()
    np.testing.assert_allclose(layer(jnp.asarray(x)), theirs(torch.tensor(x)), rtol=1e-6)


def test_a_loss_keeps_its_reduction() -> None:
    assert loss_layers.Loss(reduction="sum").reduction == "sum"
    for old in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
        assert loss_layers.Loss(**old).reduction == nn.modules.loss._Loss(**old).reduction


def test_cross_entropy_of_a_linear_map() -> None:
    torch.manual_seed(0)
    theirs = nn.LinearCrossEntropyLoss(5, 4)
    ours = definitions()["torch.nn.LinearCrossEntropyLoss"](5, 4, rngs=nnx.Rngs(0))
    assert isinstance(ours, loss_layers.LinearCrossEntropyLoss)
    load_state_dict(ours, theirs.state_dict())
    x, target = array((6, 5)), np.arange(6) % 4
    wanted = theirs(torch.tensor(x), torch.tensor(target)).detach()
    np.testing.assert_allclose(ours(jnp.asarray(x), jnp.asarray(target)), wanted, rtol=1e-5)


def test_layers_that_only_reshape() -> None:
    x = array((2, 3, 4, 5))
    agree(nn.Identity(), layer_functions.identity, x)
    agree(nn.Flatten(1, 2), lambda a: layer_functions.flatten(a, 1, 2), x)
    agree(nn.Unflatten(-1, (5, 1)), lambda a: layer_functions.unflatten(a, -1, (5, 1)), x)


# --- modules ----------------------------------------------------------------------------------------------------


class Ours(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.second = nnx.Linear(3, 3, rngs=rngs)
        self.first = containers.Sequential(Conv2d(1, 2, 1, rngs=rngs), jax.nn.relu)
        self.tied = self.second
        self.scale = nnx.Param(jnp.ones(3))


class Theirs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Linear(3, 3)
        self.first = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU())
        self.tied = self.second
        self.scale = nn.Parameter(torch.ones(3))


def test_walks_over_modules() -> None:
    ours, theirs = Ours(nnx.Rngs(0)), Theirs()
    names = [n for n, _ in named.named_children(ours)]
    assert names == [n for n, _ in theirs.named_children()] == ["second", "first"]
    assert [n for n, _ in named.named_modules(ours)] == [n for n, _ in theirs.named_modules()]
    assert len(list(named.modules(ours))) == len(list(theirs.modules()))
    assert list(named.children(ours)) == [ours.second, ours.first]
    wanted = {n: tuple(p.shape) for n, p in theirs.named_parameters()}
    found = dict(named.named_parameters(ours))
    assert set(found) == set(wanted)
    assert len(list(named.parameters(ours))) == len(list(theirs.parameters()))


def test_walks_where_functions_are_no_layers() -> None:
    act = children.stateless(lambda: jax.nn.relu)()
    assert isinstance(act, children.Stateless)
    assert act(jnp.asarray(-1.0)) == 0
    model = containers.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), act, jax.nn.silu)
    wanted = ["", "0", "1"]
    assert [n for n, _ in children.named_submodules(model)] == wanted
    assert len(list(children.submodules(model))) == 3
    assert [n for n, _ in children.named_child_modules(model)] == ["0", "1"]
    assert list(children.child_modules(model)) == [model[0], act]


def test_what_is_trained() -> None:
    model = Ours(nnx.Rngs(0))
    named.set_trainable(model.second, False)
    assert isinstance(model.second.kernel, named.Frozen)
    trained = jax.tree.leaves(nnx.state(model, nnx.Param))
    assert len(trained) == 3
    assert named.set_trainable(model, True) is model
    assert len(jax.tree.leaves(nnx.state(model, nnx.Param))) == 5


def test_weights_of_any_layer() -> None:
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    conv = Conv2d(1, 2, 3, rngs=nnx.Rngs(0))
    assert named.weight_of(linear, "weight") is linear.kernel
    assert named.weight_of(conv, "weight") is conv.weight
    assert named.weight_of(conv, "bias") is conv.bias
    rows = jnp.arange(6.0).reshape(3, 2)
    initialize.initialize(linear, "weight", lambda like: rows + 0 * like)
    np.testing.assert_array_equal(linear.kernel[...], rows.T)
    initialize.initialize(conv, "bias", jnp.ones_like)
    assert (conv.bias[...] == 1).all()


@pytest.mark.parametrize(
    "make",
    [
        nnx.Linear,
        functools.partial(nnx.Linear, use_bias=False),
        lambda *sizes, rngs: nnx.Linear(*sizes, rngs=rngs),
    ],
)
def test_layers_that_take_a_generator(make: Callable[..., Any]) -> None:
    assert factories.build(make, 2, 3, rngs=nnx.Rngs(0)).kernel.shape == (2, 3)


def test_functions_that_take_none() -> None:
    assert factories.build(lambda n: n + 1, 2, rngs=None) == 3
    assert factories.build(max, 2, 3, rngs=None) == 3


def test_containers_with_names() -> None:
    layers = {"b": nnx.Linear(2, 3, rngs=nnx.Rngs(0)), "a": jax.nn.relu}
    model = containers.NamedSequential(layers)
    model.append(jnp.sum)
    assert model.names == ("b", "a", "2")
    x = jnp.ones((1, 2))
    assert model(x) == jax.nn.relu(layers["b"](x)).sum()
    table = containers.ModuleDict(layers)
    assert list(table.keys()) == ["b", "a"]
    assert "a" in table
    assert len(table) == 2
    assert nnx.jit(lambda t, x: t["b"](x))(table, x).shape == (1, 3)
    assert [n for n, _ in table.items()] == list(table)
    assert table.values()[1] is jax.nn.relu


def test_a_list_of_modules_that_are_children_elsewhere() -> None:
    linear = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    model = containers.Sequential(linear)
    model.extra = containers.Unregistered([linear])
    assert [n for n, _ in named.named_modules(model)] == ["", "0"]


# --- functions of functions and of types ------------------------------------------------------------------------


def test_gradient_before_value() -> None:
    cube = lambda x: (x**3).sum()
    x = array((4,))
    grad, value = transforms.grad_and_value(cube)(jnp.asarray(x))
    wanted_grad, wanted = torch.func.grad_and_value(cube)(torch.tensor(x))
    np.testing.assert_allclose(grad, wanted_grad, rtol=1e-6)
    np.testing.assert_allclose(value, wanted, rtol=1e-6)


def test_while_loop() -> None:
    count, total = jax.jit(
        lambda: transforms.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (0, 0))
    )()
    assert (count, total) == (5, 10)


def test_words_at_run_time() -> None:
    x, n, flag = jnp.ones((2, 2)), jnp.arange(2), jnp.array(True)
    assert words.sizes((2, 3)) == words.sizes(((2, 3),)) == (2, 3)
    assert words.axes([0, 1], x) == (0, 1)
    assert words.axes([], x) is None
    assert words.axes(0, x) == 0
    assert words.axes(0, x[0, 0]) is None
    assert words.surely(1) is True
    assert not words.surely(0)
    assert words.is_tensor(x)
    assert not words.is_tensor(1.0)
    assert [words.is_float(v) for v in (x, n, flag, 1.0, 1)] == [True, False, False, True, False]
    assert [words.is_integer(v) for v in (x, n, flag, 1)] == [False, True, False, True]
    assert [words.is_bool(v) for v in (x, flag, True)] == [False, True, True]
    assert [words.is_complex(v) for v in (x, x * 1j)] == [False, True]


def test_lists_of_lists_of_modules() -> None:
    linear = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    model = containers.nested_list([[linear], (linear, 3)])
    assert isinstance(model[1], nnx.List)
    assert model[1][1] == 3
    assert len(jax.tree.leaves(nnx.state(model, nnx.Param))) == 2


def test_the_weight_of_a_layer_as_torch_lays_it_out() -> None:
    linear = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
    conv = Conv2d(1, 2, 3, rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(initialize.weight_of(linear), linear.kernel[...].T)
    np.testing.assert_array_equal(initialize.weight_of(conv), conv.weight[...])


@pytest.mark.parametrize("nan", [False, True], ids=["median", "nanmedian"])
@pytest.mark.parametrize(
    "values", [(1, 2, 2, 3, 2), (1, np.nan, 2, np.nan), (np.inf, 1, np.inf), (3,)], ids=str
)
def test_the_gradient_of_a_median_is_shared_by_its_equals(
    values: tuple[float, ...], nan: bool
) -> None:
    x = torch.tensor([float(v) for v in values], requires_grad=True)
    theirs = (torch.nanmedian if nan else torch.median)(x)
    (wanted,) = torch.autograd.grad(theirs, x)
    value, grad = jax.value_and_grad(
        functools.partial(reduction.median_of_elements, ignore_nan=nan)
    )(jnp.asarray(x.detach().numpy()))
    np.testing.assert_array_equal(value, theirs.detach().numpy())
    np.testing.assert_array_equal(grad, wanted.numpy())
    assert reduction.median_of_elements(jnp.array([3, 1, 2])) == 2


@pytest.mark.parametrize("bounds", [(-0.5, 0.5), (-0.5, None), (None, 0.5)], ids=str)
def test_the_gradient_of_a_clamped_nan_is_zero(bounds: tuple[float | None, float | None]) -> None:
    values = np.array([np.nan, -1, -0.5, 0, 0.5, np.inf], np.float32)
    x = torch.tensor(values, requires_grad=True)
    want = torch.clamp(x, *bounds)
    want.sum().backward()
    got, slopes = clamp(values, *bounds), jax.grad(lambda v: clamp(v, *bounds).sum())(values)
    np.testing.assert_array_equal(got, want.detach().numpy())
    np.testing.assert_array_equal(slopes, x.grad.numpy())

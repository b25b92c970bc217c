"""torch state_dict ↔ Flax state: names, layouts, dtypes, tied arrays, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import optax
import pytest
import torch
from flax import nnx
from jax import numpy as jnp

from migrator import load_state_dict, to_state_dict
from migrator.weights import slots


class Net(nnx.Module):
    """Native layers in every container, a buffer, a non-persistent buffer, a parameter and dropout."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(5, 4, rngs=rngs)
        self.net = nnx.Sequential(
            nnx.Linear(4, 3, rngs=rngs), nnx.relu, nnx.Linear(3, 4, rngs=rngs)
        )
        self.blocks = nnx.List([nnx.LayerNorm(4, rngs=rngs)])
        self.heads = nnx.Dict(a=nnx.Linear(4, 2, use_bias=False, rngs=rngs))
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.scale = nnx.Param(jnp.ones((1, 4)))
        self.steps = nnx.BatchStat(jnp.array(0))
        self.mask = nnx.Variable(jnp.ones(3), persistent=False)
        self.width = jnp.ones(2)


class TorchNet(torch.nn.Module):
    """What Net was before."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(5, 4)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 4)
        )
        self.blocks = torch.nn.ModuleList([torch.nn.LayerNorm(4)])
        self.heads = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 2, bias=False)})
        self.dropout = torch.nn.Dropout(0.5)
        self.scale = torch.nn.Parameter(torch.randn(1, 4))
        self.register_buffer("steps", torch.tensor(7))
        self.register_buffer("mask", torch.ones(3), persistent=False)
        self.width = torch.ones(2)


@pytest.fixture
def net() -> Net:
    return Net(rngs=nnx.Rngs(0))


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return TorchNet().state_dict()


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def assert_same_state(state: dict[str, torch.Tensor], found: dict[str, np.ndarray]) -> None:
    assert set(found) == set(state)
    for key, tensor in state.items():
        assert str(found[key].dtype) == str(tensor.dtype).removeprefix("torch."), key
        assert found[key].shape == tuple(tensor.shape), key
        assert bits(found[key]) == bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy()), (
            key
        )


def test_round_trip_is_bit_for_bit(net: Net, state: dict) -> None:
    load_state_dict(net, state)
    assert_same_state(state, to_state_dict(net))
    TorchNet().load_state_dict({k: torch.from_numpy(v) for k, v in to_state_dict(net).items()})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_as_stored(net: Net, state: dict, dtype: torch.dtype) -> None:
    half = {k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()}
    load_state_dict(net, half)
    assert_same_state(half, to_state_dict(net))


def test_values_land_in_the_flax_layout(net: Net, state: dict) -> None:
    load_state_dict(net, state)
    np.testing.assert_array_equal(net.net.layers[0].kernel[...], state["net.0.weight"].numpy().T)
    np.testing.assert_array_equal(net.blocks[0].scale[...], state["blocks.0.weight"].numpy())
    np.testing.assert_array_equal(net.embed.embedding[...], state["embed.weight"].numpy())
    assert net.steps[...] == 7


def test_numpy_arrays_are_taken_too(net: Net, state: dict) -> None:
    load_state_dict(net, {k: v.numpy() for k, v in state.items()})
    assert_same_state(state, to_state_dict(net))


def test_float64_goes_to_the_width_of_the_module(net: Net, state: dict) -> None:
    load_state_dict(net, {k: v.double() if v.is_floating_point() else v for k, v in state.items()})
    assert_same_state(state, to_state_dict(net))


def test_int32_buffers_come_back_as_int32() -> None:
    module = nnx.Dict(index=nnx.Variable(jnp.zeros(3, jnp.int32)))
    load_state_dict(module, {"index": torch.tensor([1, 2, 3], dtype=torch.int32)})
    assert to_state_dict(module)["index"].dtype == np.int32
    load_state_dict(module, {"index": torch.tensor([1, 2, 3])})
    assert to_state_dict(module)["index"].dtype == np.int64


def test_later_changes_of_the_tensors_do_not_reach_the_module(net: Net, state: dict) -> None:
    before = state["scale"].clone()
    load_state_dict(net, state)
    state["scale"].zero_()
    np.testing.assert_array_equal(net.scale[...], before.numpy())


def test_exported_arrays_can_be_written(net: Net) -> None:
    to_state_dict(net)["scale"][...] = 3
    assert net.scale[...].max() == 1


def test_every_leftover_is_named(net: Net, state: dict) -> None:
    del state["embed.weight"], state["net.0.bias"]
    state["extra"], state["more.weight"] = torch.ones(1), torch.ones(1)
    with pytest.raises(KeyError) as error:
        load_state_dict(net, state)
    for name in ("embed.weight", "net.0.bias", "extra", "more.weight"):
        assert name in str(error.value)
    assert "scale" not in str(error.value)


def test_a_common_prefix_is_pointed_out(net: Net, state: dict) -> None:
    with pytest.raises(KeyError, match=r"starts with 'module\.'"):
        load_state_dict(net, {f"module.{k}": v for k, v in state.items()})


def test_a_wrong_shape_is_named_with_both_shapes(net: Net, state: dict) -> None:
    state["net.0.weight"] = torch.ones(3, 5)
    with pytest.raises(ValueError, match=r"net\.0\.weight.*\(3, 5\).*\(3, 4\)"):
        load_state_dict(net, state)


def test_nothing_changes_when_loading_fails(net: Net, state: dict) -> None:
    before = to_state_dict(net)
    state["steps"] = torch.tensor(2**40)
    with pytest.raises(ValueError, match="steps"):
        load_state_dict(net, state)
    after = to_state_dict(net)
    assert all(bits(before[key]) == bits(after[key]) for key in before)


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        pytest.param(torch.tensor([0, 1, 1], dtype=torch.uint8), True, id="0 and 1 as bool"),
        pytest.param(torch.tensor([0, 1, 2], dtype=torch.uint8), False, id="2 is no bool"),
    ],
)
def test_another_kind_of_dtype_must_fit(value: torch.Tensor, fits: bool) -> None:
    module = nnx.Dict(mask=nnx.Variable(jnp.zeros(3, bool)))
    if fits:
        load_state_dict(module, {"mask": value})
        assert to_state_dict(module)["mask"].tolist() == [False, True, True]
    else:
        with pytest.raises(ValueError, match="mask"):
            load_state_dict(module, {"mask": value})


class Tied(nnx.Module):
    """One array under two names, and one module under two names."""

    def __init__(self, *, rngs: nnx.Rngs) -> None:
        self.a = nnx.Linear(3, 3, rngs=rngs)
        self.b = nnx.Linear(3, 3, use_bias=False, rngs=rngs)
        self.b.kernel = self.a.kernel
        self.again = self.a


def test_tied_arrays_have_all_their_torch_names() -> None:
    names = {"a.weight", "a.bias", "b.weight", "again.weight", "again.bias"}
    tied = Tied(rngs=nnx.Rngs(0))
    state = to_state_dict(tied)
    assert set(state) == names
    load_state_dict(tied, state)


def test_one_name_of_a_tied_array_is_enough() -> None:
    tied = Tied(rngs=nnx.Rngs(0))
    weight = np.arange(9, dtype=np.float32).reshape(3, 3)
    load_state_dict(tied, {"b.weight": weight, "a.bias": np.ones(3, np.float32)})
    np.testing.assert_array_equal(to_state_dict(tied)["again.weight"], weight)


def test_two_values_for_one_array_are_refused() -> None:
    tied = Tied(rngs=nnx.Rngs(0))
    state = to_state_dict(tied)
    state["b.weight"] = state["b.weight"] + 1
    with pytest.raises(ValueError, match=r"a\.weight and b\.weight"):
        load_state_dict(tied, state)


class Wide(nnx.Linear):
    """A class of the user's that is an nnx.Linear."""


def test_subclasses_of_native_layers_have_their_layout() -> None:
    assert [s.key for s in slots(Wide(2, 3, rngs=nnx.Rngs(0)))] == ["weight", "bias"]
    assert to_state_dict(Wide(2, 3, rngs=nnx.Rngs(0)))["weight"].shape == (3, 2)


def test_gradients_have_torch_names_and_layouts(state: dict) -> None:
    torch_net, net = TorchNet(), Net(rngs=nnx.Rngs(0))
    torch_net.load_state_dict(state)
    load_state_dict(net, state)
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    (torch_net.net(torch.from_numpy(x)) * torch_net.scale).square().sum().backward()
    grads = nnx.grad(lambda net: jnp.sum((net.net(x) * net.scale) ** 2))(net)
    found = to_state_dict(grads, like=net)
    assert set(found) == {name for name, _ in torch_net.named_parameters()}
    for name, parameter in torch_net.named_parameters():
        expected = np.zeros(parameter.shape) if parameter.grad is None else parameter.grad.numpy()
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)


def test_tied_gradients_stand_under_every_name() -> None:
    tied = Tied(rngs=nnx.Rngs(0))
    grads = nnx.grad(lambda m: m.a(jnp.ones((1, 3))).sum() + m.b(jnp.ones((1, 3))).sum())(tied)
    found = to_state_dict(grads, like=tied)
    np.testing.assert_array_equal(found["a.weight"], 2 * np.ones((3, 3)))
    np.testing.assert_array_equal(found["b.weight"], found["again.weight"])


@pytest.mark.parametrize("held", ["ops", "a", "zops"])
def test_gradients_of_layers_in_a_plain_dict_have_their_own_names(held: str) -> None:
    class Held(nnx.Module):
        def __init__(self) -> None:
            self.q = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
            setattr(
                self, held, nnx.data({"q": self.q})
            )  # Flax tells it by the name that sorts first

    module = Held()
    grads = nnx.grad(lambda m: getattr(m, held)["q"](jnp.ones((1, 3))).sum())(module)
    found = to_state_dict(grads, like=module)
    assert set(found) == {"q.weight", "q.bias"}
    np.testing.assert_array_equal(found["q.bias"], np.ones(3))


def test_moments_of_an_optimiser_are_exported() -> None:
    net = Net(rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)
    optimizer.update(net, nnx.grad(lambda m: jnp.sum(m.scale[...]))(net))
    found = to_state_dict(optimizer.opt_state[0].mu, like=net)
    assert found["net.0.weight"].shape == (3, 4)
    np.testing.assert_allclose(found["scale"], 0.1 * np.ones((1, 4)), rtol=1e-6)


def test_a_number_in_a_variable_is_an_array() -> None:
    module = nnx.Dict(steps=nnx.BatchStat(0))
    load_state_dict(module, {"steps": torch.tensor(3)})
    assert to_state_dict(module)["steps"] == 3


def test_a_tree_of_another_module_is_refused() -> None:
    other = nnx.state(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    with pytest.raises(KeyError, match="kernel"):
        to_state_dict(other, like=Tied(rngs=nnx.Rngs(0)))


def test_something_else_than_a_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"flax\.nnx\.Module"):
        to_state_dict({"a": 1})


def test_abstract_modules_are_filled(state: dict) -> None:
    net = nnx.eval_shape(lambda: Net(rngs=nnx.Rngs(0)))
    load_state_dict(net, state)
    np.testing.assert_array_equal(net.scale[...], state["scale"].numpy())


def test_bfloat16_is_exported_as_ml_dtypes() -> None:
    module = nnx.Dict(w=nnx.Param(jnp.ones(2, jnp.bfloat16)))
    assert to_state_dict(module)["w"].dtype == ml_dtypes.bfloat16

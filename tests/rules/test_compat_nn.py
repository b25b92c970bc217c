"""Layers of rules/compat beyond torch's own samples: state, randomness, dtypes, compilation, parametrizations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch import nn
from torch.nn.utils import parametrizations, parametrize, rnn

from migrator.weights import load_state_dict, to_state_dict
from rules.compat import dropout_layers, packed
from rules.compat import parametrizations as compat
from rules.compat.adaptive import AdaptiveLogSoftmaxWithLoss
from rules.compat.attention import MultiheadAttention
from rules.compat.containers import Sequential
from rules.compat.conv import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from rules.compat.dropout_layers import AlphaDropout, Dropout2d
from rules.compat.embedding import Embedding, EmbeddingBag, pretrained_embedding
from rules.compat.linear import LazyLinear, Linear
from rules.compat.norm import BatchNorm2d, GroupNorm, InstanceNorm2d, LayerNormNd
from rules.compat.rnn import GRU, LSTM
from rules.compat.transformer import TransformerEncoder, TransformerEncoderLayer
from rules.ops import nn_dropout
from tests.rules.moduledb import definitions

RNGS = nnx.Rngs(0)
torch.manual_seed(0)  # the layers of the parameters are built on import


def jax_of(tensor: torch.Tensor) -> jax.Array:
    return jnp.asarray(tensor.detach().numpy())


def close(ours: Any, theirs: torch.Tensor, tolerance: float = 1e-5) -> bool:
    return np.allclose(ours, theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


def pair(torch_module: nn.Module, port: Any) -> tuple[nn.Module, Any]:
    load_state_dict(port, torch_module.state_dict())
    return torch_module, port


# --- initial values -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Linear(200, 100, rngs=RNGS), nn.Linear(200, 100)),
        (Conv2d(20, 40, 3, groups=2, rngs=RNGS), nn.Conv2d(20, 40, 3, groups=2)),
        (ConvTranspose2d(20, 40, 3, rngs=RNGS), nn.ConvTranspose2d(20, 40, 3)),
        (LSTM(50, 60, proj_size=30, rngs=RNGS), nn.LSTM(50, 60, proj_size=30)),
        (MultiheadAttention(64, 4, add_bias_kv=True, rngs=RNGS), nn.MultiheadAttention(64, 4, add_bias_kv=True)),
        (MultiheadAttention(64, 4, kdim=32, rngs=RNGS), nn.MultiheadAttention(64, 4, kdim=32)),
        (Embedding(500, 20, padding_idx=3, rngs=RNGS), nn.Embedding(500, 20, padding_idx=3)),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_parameters_start_in_torchs_distribution(ours: Any, theirs: nn.Module) -> None:
    state = to_state_dict(ours)
    assert state.keys() == theirs.state_dict().keys()
    for name, value in theirs.state_dict().items():
        assert state[name].shape == tuple(value.shape)
        spread = float(value.std(unbiased=False))
        allowed = max(0.25, 4 / value.numel() ** 0.5)  # four standard errors of what few draws show
        assert np.isclose(state[name].std(), spread, rtol=allowed, atol=1e-6), name
        assert np.abs(state[name]).max() <= float(value.abs().max()) * 1.5 + 1e-6, name


# --- normalisation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_running_statistics_follow_torch(momentum: float | None) -> None:
    theirs, ours = pair(
        nn.BatchNorm2d(3, momentum=momentum), BatchNorm2d(3, momentum=momentum, rngs=RNGS)
    )
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5) * 3 + 1
        assert close(ours(jax_of(x)), theirs(x))
    state = to_state_dict(ours)
    for name, value in theirs.state_dict().items():
        assert close(state[name], value), name
    theirs.eval(), ours.eval()
    assert close(ours(jax_of(x)), theirs(x))


@pytest.mark.parametrize(
    "layer",
    [
        Conv2d(4, 4, 3, dtype=jnp.bfloat16, rngs=RNGS),
        ConvTranspose2d(4, 4, 3, dtype=jnp.bfloat16, rngs=RNGS),
        BatchNorm2d(4, dtype=jnp.bfloat16, rngs=RNGS),
        InstanceNorm2d(4, rngs=RNGS),
        GroupNorm(2, 4, dtype=jnp.bfloat16, rngs=RNGS),
        LayerNormNd((6, 6), dtype=jnp.bfloat16, rngs=RNGS),
        Dropout2d(0.5, rngs=RNGS),
        AlphaDropout(0.5, rngs=RNGS),
    ],
    ids=lambda m: type(m).__name__,
)
def test_bfloat16_stays(layer: Any) -> None:
    before = jax.tree.map(lambda a: a.dtype, nnx.state(layer))
    assert layer(jnp.ones((2, 4, 6, 6), jnp.bfloat16)).dtype == jnp.bfloat16
    assert jax.tree.map(lambda a: a.dtype, nnx.state(layer)) == before


# --- compilation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Conv2d(4, 4, 3, padding="same", rngs=RNGS), (2, 4, 6, 6)),
        (BatchNorm2d(4, momentum=None, rngs=RNGS), (2, 4, 6, 6)),
        (Dropout2d(0.5, rngs=RNGS), (2, 4, 6, 6)),
        (GRU(4, 5, 2, bidirectional=True, dropout=0.3, rngs=RNGS), (7, 2, 4)),
        (compat.weight_norm(Conv1d(4, 4, 3, rngs=RNGS)), (2, 4, 6)),
        (compat.spectral_norm(Linear(4, 4, rngs=RNGS), rngs=RNGS), (2, 4)),
        (TransformerEncoderLayer(4, 2, 8, rngs=RNGS), (5, 2, 4)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_layer_is_traced_once_for_equal_shapes(layer: Any, shape: tuple[int, ...]) -> None:
    traces = []

    @nnx.jit
    def call(layer: Any, x: jax.Array) -> Any:
        traces.append(x.shape)
        return layer(x)

    for value in (0.0, 1.0, 2.0):
        call(layer, jnp.full(shape, value))
    assert traces == [shape]


# --- randomness --------------------------------------------------------------------------------------


def test_channel_dropout_drops_whole_channels_and_rescales() -> None:
    layer = Dropout2d(0.4, rngs=RNGS)
    found = np.asarray(layer(jnp.ones((50, 40, 3, 3)))).reshape(2000, 9)
    assert (found == found[:, :1]).all()
    assert np.allclose(np.unique(found), [0, 1 / 0.6])
    assert abs((found == 0).mean() - 0.4) < 0.05
    layer.eval()
    assert (layer(jnp.ones((2, 3, 4, 4))) == 1).all()


def varying(kept: np.ndarray) -> list[bool]:
    """Along which axes elements are dropped each by itself."""
    return [not (kept == np.take(kept, [0], axis=axis)).all().item() for axis in range(kept.ndim)]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        (f"{n}d", rank)
        for n, ranks in {1: (2, 3), 2: (2, 3, 4, 5), 3: (2, 3, 4, 5)}.items()
        for rank in ranks
    ],
)
@pytest.mark.filterwarnings("ignore:dropout")
def test_channels_are_dropped_along_the_axes_that_torch_takes_whatever_the_rank(
    name: str, rank: int
) -> None:
    x = np.ones((6,) * rank, np.float32)
    torch.manual_seed(0)
    want = varying(getattr(torch.nn, f"Dropout{name}")(0.5)(torch.tensor(x)).numpy())
    layer = getattr(dropout_layers, f"Dropout{name}")(0.5, rngs=nnx.Rngs(0))
    assert varying(np.asarray(layer(jnp.asarray(x)))) == want
    function = getattr(nn_dropout, f"f_dropout{name}")
    assert varying(np.asarray(function(jnp.asarray(x), 0.5, rngs=nnx.Rngs(0)))) == want


def test_alpha_dropout_keeps_mean_and_variance_of_selu() -> None:
    x = jax.nn.selu(jax.random.normal(jax.random.key(0), (400, 400)))
    found = AlphaDropout(0.3, rngs=RNGS)(x)
    assert abs(float(found.mean())) < 0.02
    assert abs(float(found.std()) - 1) < 0.02


def test_copies_of_a_transformer_layer_share_values_but_not_dropout() -> None:
    encoder = TransformerEncoder(TransformerEncoderLayer(8, 2, 16, 0.5, rngs=RNGS), 2, rngs=RNGS)
    first, second = encoder.layers
    assert (first.linear1.kernel[...] == second.linear1.kernel[...]).all()
    assert first.linear1.kernel is not second.linear1.kernel
    ones = jnp.ones((100, 100))
    assert (first.dropout(ones) != second.dropout(ones)).any()


# --- containers, lazy layers ---------------------------------------------------------------------------


def test_sequential_passes_one_value_on_and_indexes_like_torch() -> None:
    net = Sequential(lambda x: (x, x + 1), lambda both: both[0] + both[1], jnp.negative)
    assert net(1) == -3
    assert len(net) == 3
    assert net[-1] is jnp.negative
    assert net[1:]((1, 2)) == -3
    assert net.append(jnp.negative)(1) == 3


def test_a_lazy_layer_learns_its_input_on_the_first_call() -> None:
    layer = LazyLinear(3, rngs=RNGS)
    assert layer(jnp.ones((2, 5))).shape == (2, 3)
    assert layer.kernel.shape == (5, 3)


@pytest.mark.parametrize("name", ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyInstanceNorm2d"])
def test_a_lazy_norm_learns_its_channels_on_the_first_call(name: str) -> None:
    theirs = getattr(nn, name)(affine=True, track_running_stats=True)
    ours = definitions()[f"torch.nn.{name}"](affine=True, track_running_stats=True, rngs=RNGS)
    x = torch.randn(4, 3, 5) if name.endswith("1d") else torch.randn(4, 3, 5, 5)
    assert close(ours(jax_of(x)), theirs(x))
    state = theirs.state_dict()
    assert to_state_dict(ours).keys() == state.keys()
    assert all(close(value, state[key]) for key, value in to_state_dict(ours).items())
    ours.eval(), theirs.eval()
    assert close(ours(jax_of(x)), theirs(x))


# --- embeddings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"padding_idx": -1}, {"max_norm": 1.0}, {"scale_grad_by_freq": True}], ids=str
)
def test_embedding_options(options: dict[str, Any]) -> None:
    theirs, ours = pair(nn.Embedding(10, 3, **options), Embedding(10, 3, **options, rngs=RNGS))
    index = torch.tensor([[9, 9, 1], [3, 1, 0]])
    weights = torch.randn(2, 3, 3)
    gradient = torch.autograd.grad((theirs(index) * weights).sum(), theirs.weight)[0]
    found = nnx.grad(lambda m: (m(jax_of(index)) * jax_of(weights)).sum())(ours)
    assert close(found["embedding"][...], gradient)
    assert close(ours(jax_of(index)), theirs(index))
    assert close(to_state_dict(ours)["weight"], theirs.weight)


@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "sum"}, {"mode": "max"}, {"padding_idx": 2}, {"max_norm": 1.0}],
    ids=str,
)
def test_embedding_bags(options: dict[str, Any]) -> None:
    theirs, ours = pair(
        nn.EmbeddingBag(10, 3, **options), EmbeddingBag(10, 3, **options, rngs=RNGS)
    )
    index, offsets = torch.tensor([1, 2, 2, 9, 0, 4]), torch.tensor([0, 0, 4])
    assert close(ours(jax_of(index), jax_of(offsets)), theirs(index, offsets))
    assert close(ours(jax_of(index.view(2, 3))), theirs(index.view(2, 3)))


def test_frozen_pretrained_rows_are_not_trained() -> None:
    frozen = pretrained_embedding(jnp.eye(3), rngs=RNGS)
    assert not nnx.state(frozen, nnx.Param)
    assert nnx.state(pretrained_embedding(jnp.eye(3), freeze=False, rngs=RNGS), nnx.Param)
    assert (frozen(jnp.array([2])) == jnp.eye(3)[2]).all()


def test_adaptive_softmax() -> None:
    options = {"cutoffs": [4, 10, 15], "div_value": 2.0, "head_bias": True}
    theirs, ours = pair(
        nn.AdaptiveLogSoftmaxWithLoss(16, 20, **options),
        AdaptiveLogSoftmaxWithLoss(16, 20, **options, rngs=RNGS),
    )
    x, y = torch.randn(9, 16), torch.tensor([0, 3, 4, 9, 10, 14, 15, 19, 1])
    expected, found = theirs(x, y), ours(jax_of(x), jax_of(y))
    assert close(found.output, expected.output)
    assert close(found.loss, expected.loss)
    assert close(ours.log_prob(jax_of(x)), theirs.log_prob(x))
    assert close(ours.predict(jax_of(x)), theirs.predict(x))


# --- packed sequences --------------------------------------------------------------------------------


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_recurrence_over_packed_sequences(layer: str, bidirectional: bool) -> None:
    options = {"num_layers": 2, "bidirectional": bidirectional, "batch_first": True}
    theirs, ours = pair(
        getattr(nn, layer)(3, 4, **options), {"LSTM": LSTM, "GRU": GRU}[layer](3, 4, **options, rngs=RNGS)
    )  # fmt: skip
    x, lengths = torch.randn(3, 6, 3), torch.tensor([2, 5, 4])
    output, state = theirs(
        rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    )
    found, found_state = ours(
        packed.pack_padded_sequence(jax_of(x), jax_of(lengths), batch_first=True)
    )
    for total in (None, 7):
        expected, _ = rnn.pad_packed_sequence(output, True, -1.0, total)
        padded, found_lengths = packed.pad_packed_sequence(found, True, -1.0, total)
        assert close(padded, expected)
    assert found_lengths.tolist() == [2, 5, 4]
    for a, b in zip(
        jax.tree.leaves(found_state), state if layer == "LSTM" else [state], strict=True
    ):
        assert close(a, b)


def test_a_dynamic_length_is_refused_under_jit() -> None:
    @jax.jit
    def padded(x: jax.Array, lengths: jax.Array) -> Any:
        return packed.pad_packed_sequence(packed.pack_padded_sequence(x, lengths))

    with pytest.raises(ValueError, match="total_length"):
        padded(jnp.ones((4, 2, 3)), jnp.array([1, 2]))


def test_lengths_of_packed_sequences_are_cut_off_to_whole_numbers() -> None:
    """Relative lengths times the steps are no whole numbers: 0.8 of 7 steps are 5."""
    x, lengths = torch.randn(3, 7, 2), torch.tensor([1.0, 0.8, 0.5]) * 7
    for given, ours in ((lengths, jax_of(lengths)), (lengths.tolist(), lengths.tolist())):
        expected = rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, given, True), True)
        found = packed.pad_packed_sequence(packed.pack_padded_sequence(jax_of(x), ours, True), True)
        np.testing.assert_array_equal(found[0], expected[0].numpy())
        np.testing.assert_array_equal(found[1], expected[1].numpy())
        assert found[1].dtype == jnp.int32


@pytest.mark.parametrize("side", ["left", "right"])
def test_sequences_are_padded_and_cut_again(side: str) -> None:
    rows = [torch.randn(n, 2) for n in (3, 1, 2)]
    found = packed.pad_sequence([jax_of(r) for r in rows], True, 5.0, side)
    assert close(found, rnn.pad_sequence(rows, True, 5.0, side))
    again = packed.unpack_sequence(packed.pack_sequence([jax_of(r) for r in rows]))
    assert all(close(a, r) for a, r in zip(again, rows, strict=True))


# --- parametrizations ----------------------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.triu() + x.triu(1).T


class SymmetricPort(nnx.Module):
    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.triu(x) + jnp.triu(x, 1).T


PARAMETRIZED: dict[str, tuple[Callable[[], Any], Callable[[], Any], tuple[int, ...]]] = {
    "weight_norm": (
        lambda: nn.utils.weight_norm(nn.Conv1d(4, 6, 3)),
        lambda: compat.weight_norm(Conv1d(4, 6, 3, rngs=RNGS)),
        (2, 4, 9),
    ),
    "weight_norm of the whole": (
        lambda: nn.utils.weight_norm(nn.Linear(4, 6), dim=None),
        lambda: compat.weight_norm(Linear(4, 6, rngs=RNGS), dim=None),
        (2, 4),
    ),
    "weight_norm of a recurrence": (
        lambda: nn.utils.weight_norm(nn.RNN(4, 6).train(), "weight_hh_l0"),
        lambda: compat.weight_norm(_rnn(), "weight_hh_l0"),
        (5, 2, 4),
    ),
    "parametrized weight_norm": (
        lambda: parametrizations.weight_norm(nn.ConvTranspose1d(4, 6, 3), dim=1),
        lambda: compat.parametrized_weight_norm(ConvTranspose1d(4, 6, 3, rngs=RNGS), dim=1),
        (2, 4, 9),
    ),
    "spectral_norm": (
        lambda: nn.utils.spectral_norm(nn.Linear(4, 6), n_power_iterations=2),
        lambda: compat.spectral_norm(Linear(4, 6, rngs=RNGS), n_power_iterations=2, rngs=RNGS),
        (2, 4),
    ),
    "parametrized spectral_norm": (
        lambda: parametrizations.spectral_norm(nn.ConvTranspose1d(4, 6, 3)),
        lambda: compat.parametrized_spectral_norm(ConvTranspose1d(4, 6, 3, rngs=RNGS), rngs=RNGS),
        (2, 4, 9),
    ),
    "register_parametrization": (
        lambda: parametrize.register_parametrization(nn.Linear(4, 4), "weight", Symmetric()),
        lambda: compat.register_parametrization(Linear(4, 4, rngs=RNGS), "weight", SymmetricPort()),
        (2, 4),
    ),
}


def _rnn() -> Any:
    from rules.compat.rnn import RNN

    return RNN(4, 6, rngs=RNGS)


def _output(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def _sum_of_squares(module: Any, inputs: jax.Array) -> jax.Array:
    return (_output(module(inputs)) ** 2).sum()


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("case", PARAMETRIZED)
def test_parametrized_layers(case: str) -> None:
    make_theirs, make_ours, shape = PARAMETRIZED[case]
    theirs, ours = pair(make_theirs(), make_ours())
    for training in (False, True):
        theirs.train(training)
        ours.train() if training else ours.eval()
        x = torch.randn(shape)
        expected = _output(theirs(x))
        state = {k: v.clone() for k, v in theirs.state_dict().items()}
        gradients = torch.autograd.grad((expected**2).sum(), list(theirs.parameters()))
        inputs = jax_of(x)
        found, named = nnx.value_and_grad(_sum_of_squares)(ours, inputs)
        assert np.isclose(found, float((expected**2).sum()), rtol=1e-5)
        assert to_state_dict(ours).keys() == state.keys()
        assert all(close(value, state[name]) for name, value in to_state_dict(ours).items())
        named = to_state_dict(named, like=ours)
        for (name, _), gradient in zip(theirs.named_parameters(), gradients, strict=True):
            scale = float(gradient.abs().max()) + 1e-3
            assert np.abs(named[name] - gradient.numpy()).max() < 1e-4 * scale, name


def test_a_norm_can_be_removed() -> None:
    layer = Conv1d(4, 6, 3, rngs=RNGS)
    before, x = to_state_dict(layer), jnp.ones((2, 4, 9))
    expected = layer(x)
    for add, remove in (
        (compat.weight_norm, compat.remove_weight_norm),
        (lambda m: compat.spectral_norm(m, rngs=RNGS), compat.remove_spectral_norm),
    ):
        assert remove(add(layer)) is layer
        assert to_state_dict(layer).keys() == before.keys()
        assert type(layer) is Conv1d
        if add is compat.weight_norm:
            assert np.allclose(layer(x), expected, atol=1e-5)

"""Recurrent layers on ``lax.scan``, with torch's gate order, parameter names and layouts."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


class PackedSequence(NamedTuple):
    """Sequences of different lengths as one padded array (T, B, *) and their lengths (B,)."""

    padded: Any
    lengths: Any


def rnn_step(state, from_input, from_hidden, nonlinearity=jnp.tanh):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh); the two sums are the arguments."""
    return (nonlinearity(from_input + from_hidden),)


def lstm_step(state, from_input, from_hidden):
    """c' = f c + i g, h' = o tanh(c'), with the gates stacked as i, f, g, o."""
    gates = from_input + from_hidden
    i, f, _, o = jnp.split(jax.nn.sigmoid(gates), 4, axis=-1)  # one sigmoid is faster than three
    g = jnp.tanh(jnp.split(gates, 4, axis=-1)[2])
    c = f * state[1] + i * g
    return o * jnp.tanh(c), c


def gru_step(state, from_input, from_hidden):
    """h' = (1 - z) n + z h; the reset gate multiplies W_hh h + b_hh, gates stacked as r, z, n."""
    size = from_input.shape[-1] // 3
    gates = jax.nn.sigmoid(from_input[..., : 2 * size] + from_hidden[..., : 2 * size])
    r, z = jnp.split(gates, 2, axis=-1)
    n = jnp.tanh(from_input[..., 2 * size :] + r * from_hidden[..., 2 * size :])
    return ((1 - z) * n + z * state[0],)


def affine(x, kernel, bias=None):
    """x W + b."""
    return x @ kernel if bias is None else x @ kernel + bias


class RNNBase(nnx.Module):
    """Stacked recurrence over (T, B, in), (B, T, in) when ``batch_first``, or unbatched (T, in).

    Returns the output (T, B, D · out) and the final state (layers · D, B, out), D = 2 directions when
    ``bidirectional``; sequences of different lengths come and go as a ``PackedSequence``.
    """

    gates, states = 1, 1
    step = staticmethod(rnn_step)

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        dtype=None,
        *,
        rngs: nnx.Rngs,
    ):
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.bidirectional, self.proj_size = batch_first, bidirectional, proj_size
        self.bias, self.dropout = bias, dropout
        self._dropping = nnx.Dropout(dropout, rngs=rngs)
        out_size, bound, rows = (
            proj_size or hidden_size,
            hidden_size**-0.5,
            self.gates * hidden_size,
        )
        for layer in range(num_layers):
            in_size = out_size * (1 + bidirectional) if layer else input_size
            shapes = {"weight_ih": (rows, in_size), "weight_hh": (rows, out_size)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for suffix in self.suffixes(layer):
                for name, shape in shapes.items():
                    value = rngs.params.uniform(shape, dtype, -bound, bound)
                    setattr(self, name + suffix, nnx.Param(value))

    def suffixes(self, layer):
        return (f"_l{layer}", f"_l{layer}_reverse")[: 1 + self.bidirectional]

    def flatten_parameters(self):
        """Nothing to do: XLA lays parameters out itself."""

    def __call__(self, input, hx=None):
        x, lengths = input if isinstance(input, PackedSequence) else (input, None)
        state = hx if hx is None else tuple(hx) if self.states == 2 else (hx,)
        time, batch = (1, 0) if self.batch_first and lengths is None else (0, 1)
        unbatched = x.ndim == 2
        if unbatched:
            x = jnp.expand_dims(x, batch)
            state = state and tuple(h[:, None] for h in state)
        x = jnp.moveaxis(x, time, 0)
        if state is None:
            sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: self.states]
            rows = self.num_layers * (1 + self.bidirectional)
            state = tuple(jnp.zeros((rows, x.shape[1], size), x.dtype) for size in sizes)
        valid = None if lengths is None else (jnp.arange(len(x))[:, None] < lengths)[..., None]
        finals = []
        for layer in range(self.num_layers):
            x = self._dropping(x) if layer else x
            outputs = []
            for suffix in self.suffixes(layer):
                start = tuple(h[len(finals)] for h in state)
                final, output = self.scan(x, start, valid, suffix)
                finals.append(final)
                outputs.append(output)
            x = jnp.concatenate(outputs, axis=-1)
        state = tuple(jnp.stack(h) for h in zip(*finals, strict=True))
        x = jnp.moveaxis(x, 0, time)
        if unbatched:
            x, state = x.squeeze(batch), tuple(h[:, 0] for h in state)
        return (
            x if lengths is None else PackedSequence(x, lengths),
            state if self.states == 2 else state[0],
        )

    def scan(self, x, state, valid, suffix):
        """One direction of one layer; past a sequence's end its state stays and its output is 0."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        found = [getattr(self, name + suffix, None) for name in names]
        w_ih, w_hh, b_ih, b_hh, w_hr = (p if p is None else p[...].T for p in found)

        def step(state, inputs):
            from_input, valid = inputs
            new = self.step(state, from_input, affine(state[0], w_hh, b_hh))
            if w_hr is not None:
                new = (affine(new[0], w_hr), *new[1:])
            if valid is None:
                return new, new[0]
            kept = tuple(jnp.where(valid, n, old) for n, old in zip(new, state, strict=True))
            return kept, jnp.where(valid, new[0], 0)

        inputs = (affine(x, w_ih, b_ih), valid)
        return lax.scan(step, state, inputs, reverse=suffix.endswith("_reverse"))


def weight_names(rnn):
    """The names of a recurrent layer's parameters, a list for each layer and direction, as torch's ``_all_weights``."""
    every = "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"
    suffixes = [s for layer in range(rnn.num_layers) for s in rnn.suffixes(layer)]
    return [[n + s for n in every if getattr(rnn, n + s, None) is not None] for s in suffixes]


def weight_lists(rnn):
    """A recurrent layer's parameters, a list for each layer and direction, as torch's ``all_weights``."""
    return [[getattr(rnn, name) for name in names] for names in weight_names(rnn)]


class RNN(RNNBase):
    """Elman network: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(self, *args, nonlinearity="tanh", rngs: nnx.Rngs, **options):
        super().__init__(*args, rngs=rngs, **options)
        self.nonlinearity = nonlinearity

    def step(self, state, from_input, from_hidden):
        return rnn_step(state, from_input, from_hidden, getattr(jax.nn, self.nonlinearity))


class LSTM(RNNBase):
    """Long short-term memory; the state is (h, c), h of ``proj_size`` when that is given."""

    gates, states = 4, 2
    step = staticmethod(lstm_step)


class GRU(RNNBase):
    """Gated recurrent unit."""

    gates = 3
    step = staticmethod(gru_step)


class RNNCellBase(nnx.Module):
    """One step of a recurrence: (B, input_size) or (input_size,) and a state → the next state."""

    gates, states = 1, 1
    step = staticmethod(rnn_step)

    def __init__(self, input_size, hidden_size, bias=True, dtype=None, *, rngs: nnx.Rngs):
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows, bound = self.gates * hidden_size, hidden_size**-0.5

        def parameter(*shape):
            return nnx.Param(rngs.params.uniform(shape, dtype, -bound, bound))

        self.weight_ih, self.weight_hh = parameter(rows, input_size), parameter(rows, hidden_size)
        self.bias_ih, self.bias_hh = (parameter(rows), parameter(rows)) if bias else (None, None)

    def __call__(self, input, hx=None):
        if hx is None:
            state = (jnp.zeros((*input.shape[:-1], self.hidden_size), input.dtype),) * self.states
        else:
            state = tuple(hx) if self.states == 2 else (hx,)
        b_ih, b_hh = (None if b is None else b[...] for b in (self.bias_ih, self.bias_hh))
        from_input = affine(input, self.weight_ih[...].T, b_ih)
        new = self.step(state, from_input, affine(state[0], self.weight_hh[...].T, b_hh))
        return new if self.states == 2 else new[0]


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(self, *args, nonlinearity="tanh", rngs: nnx.Rngs, **options):
        super().__init__(*args, rngs=rngs, **options)
        self.nonlinearity = nonlinearity

    def step(self, state, from_input, from_hidden):
        return rnn_step(state, from_input, from_hidden, getattr(jax.nn, self.nonlinearity))


class LSTMCell(RNNCellBase):
    """One step of an LSTM; the state is (h, c)."""

    gates, states = 4, 2
    step = staticmethod(lstm_step)


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    gates = 3
    step = staticmethod(gru_step)

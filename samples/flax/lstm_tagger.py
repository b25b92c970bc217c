"""A bidirectional LSTM part-of-speech tagger."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


def renormalized(weight, index, max_norm, norm_type=2.0):
    """``weight`` (V, E) with the rows named in ``index`` cut to ``max_norm``; the gradient passes unscaled."""
    norm = jnp.linalg.norm(weight, norm_type, axis=1, keepdims=True)
    used = jnp.zeros((len(weight), 1), bool).at[index.ravel()].set(True)
    cut = jnp.where(used & (norm > max_norm), weight * (max_norm / (norm + 1e-7)), weight)
    return weight + lax.stop_gradient(cut - weight)


class Embedding(nnx.Embed):
    """``nnx.Embed`` of N(0, 1) rows; the row ``padding_idx`` starts at zero and gets no gradient.

    Rows that are looked up are first cut to ``max_norm`` in the ``norm_type``-norm, in place.
    """

    def __init__(
        self, num_embeddings, features, padding_idx=None, norm_type=2.0, *, rngs: nnx.Rngs
    ):
        options = {"embedding_init": nnx.initializers.normal(1.0)}
        super().__init__(num_embeddings, features, rngs=rngs, **options)
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, None, norm_type
        self.scale_grad_by_freq = False
        if padding_idx is not None:
            self.embedding[...] = self.embedding[...].at[padding_idx].set(0)

    def __call__(self, input):
        weight = self.embedding[...]
        if self.max_norm is not None:
            weight = renormalized(weight, input, self.max_norm, self.norm_type)
            self.embedding[...] = weight
        output = weight[input]
        if self.scale_grad_by_freq:
            share = 1 / jnp.zeros(len(weight)).at[input].add(1)[input][..., None]
            output = share * output + lax.stop_gradient((1 - share) * output)
        if self.padding_idx is not None:
            padding = (input == self.padding_idx % len(weight))[..., None]
            output = jnp.where(padding, lax.stop_gradient(output), output)
        return output


class PackedSequence(NamedTuple):
    """Sequences of different lengths as one padded array (T, B, *) and their lengths (B,)."""

    padded: Any
    lengths: Any


def affine(x, kernel, bias=None):
    """x W + b."""
    return x @ kernel if bias is None else x @ kernel + bias


def rnn_step(state, from_input, from_hidden, nonlinearity=jnp.tanh):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh); the two sums are the arguments."""
    return (nonlinearity(from_input + from_hidden),)


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
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        *,
        rngs: nnx.Rngs,
    ):
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.batch_first, self.bidirectional, self.proj_size = batch_first, bidirectional, 0
        self.bias, self.dropout = True, dropout
        self._dropping = nnx.Dropout(dropout, rngs=rngs)
        out_size, bound, rows = hidden_size, hidden_size**-0.5, self.gates * hidden_size
        for layer in range(num_layers):
            in_size = out_size * (1 + bidirectional) if layer else input_size
            shapes = {"weight_ih": (rows, in_size), "weight_hh": (rows, out_size)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            for suffix in self.suffixes(layer):
                for name, shape in shapes.items():
                    value = rngs.params.uniform(shape, None, -bound, bound)
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


def lstm_step(state, from_input, from_hidden):
    """c' = f c + i g, h' = o tanh(c'), with the gates stacked as i, f, g, o."""
    gates = from_input + from_hidden
    i, f, _, o = jnp.split(jax.nn.sigmoid(gates), 4, axis=-1)  # one sigmoid is faster than three
    g = jnp.tanh(jnp.split(gates, 4, axis=-1)[2])
    c = f * state[1] + i * g
    return o * jnp.tanh(c), c


class LSTM(RNNBase):
    """Long short-term memory; the state is (h, c), h of ``proj_size`` when that is given."""

    gates, states = 4, 2
    step = staticmethod(lstm_step)


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        super().__init__(in_features, out_features, kernel_init=init, bias_init=init, rngs=rngs)


def _class_loss(log_p, target, ignore_index):
    """Weighted negative log-likelihood of class numbers; the mean is over the weights kept."""
    axis = min(log_p.ndim - 1, 1)
    kept = target != ignore_index
    target = jnp.where(kept, target, 0)
    picked = -jnp.take_along_axis(log_p, jnp.expand_dims(target, axis), axis).squeeze(axis)
    weights = kept.astype(log_p.dtype)
    loss = jnp.where(kept, picked, 0)
    return jnp.sum(loss) / jnp.sum(weights)


def nll_loss(input, target, ignore_index=-100):
    """-input[target] · weight[target]; the mean divides by the weights of the targets kept.

    Shapes: input (C,) or (N, C, …) of log-probabilities, target () or (N, …) of class numbers.
    """
    return _class_loss(input, target, ignore_index)


def clamp(x: jax.Array, min=None) -> jax.Array:
    """``x`` bounded to [min, max] (numbers or arrays); the gradient at a bound is 1, in jnp.clip it is 1/2; of NaN it is 0."""
    if min is not None:
        x = jnp.where(x >= min, x, jnp.where(x < min, min, lax.stop_gradient(x)))
    return x


PAD = 0


class LSTMTagger(nnx.Module):
    """Embedding, stacked bidirectional LSTM and a linear layer over the tags.

    Args:
        vocab_size (int): number of word ids, 0 is padding
        tagset_size (int): number of tags
        embedding_dim (int): size of a word vector
        hidden_dim (int): size of the hidden state of both directions together
        num_layers (int): number of stacked layers
        dropout (float): dropout on the embeddings and between LSTM layers
    """

    def __init__(
        self,
        vocab_size,
        tagset_size,
        embedding_dim=16,
        hidden_dim=24,
        num_layers=2,
        dropout=0.0,
        *,
        rngs: nnx.Rngs,
    ):
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.num_layers = num_layers
        self.num_directions = 2

        self.word_embeddings = Embedding(vocab_size, embedding_dim, padding_idx=PAD, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        # The LSTM takes word embeddings as inputs, and outputs hidden states
        # with dimensionality hidden_dim.
        self.lstm = LSTM(
            embedding_dim,
            hidden_dim // self.num_directions,
            num_layers=num_layers,
            batch_first=True,
            dropout=dropout,
            bidirectional=True,
            rngs=rngs,
        )
        # The linear layer that maps from hidden state space to tag space
        self.hidden2tag = Linear(hidden_dim, tagset_size, rngs=rngs)

    def init_hidden(self, batch_size, device=None):
        """Zero states; the axes semantics are (num_layers * num_directions, batch, hidden)."""
        shape = (self.num_layers * self.num_directions, batch_size, self.hidden_dim // 2)
        return (jnp.zeros(shape), jnp.zeros(shape))

    def __call__(self, sentence, hidden=None):
        """
        sentence: (batch, seq_len) int64 word ids
        returns: (batch, seq_len, tagset_size) log-probabilities and the final LSTM state
        """
        batch_size, seq_len = sentence.shape
        if hidden is None:
            hidden = self.init_hidden(batch_size)
        embeds = self.dropout(self.word_embeddings(sentence))
        lstm_out, hidden = self.lstm(embeds, hidden)
        tag_space = self.hidden2tag(lstm_out.reshape(-1, self.hidden_dim))
        tag_scores = jax.nn.log_softmax(tag_space, axis=1)
        return tag_scores.reshape(batch_size, seq_len, -1), hidden


def tagging_loss(tag_scores, tags):
    """Negative log-likelihood of the tags, padding positions excluded."""
    return nll_loss(
        tag_scores.reshape(-1, tag_scores.shape[-1]), tags.reshape(-1), ignore_index=PAD
    )


def tagging_accuracy(tag_scores, tags):
    """Share of the words that are tagged right."""
    predicted = tag_scores.argmax(axis=-1)
    mask = tags != PAD
    correct = (predicted == tags) & mask
    return correct.sum().astype(jnp.float32) / clamp(mask.sum(), min=1).astype(jnp.float32)

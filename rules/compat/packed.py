"""Sequences of different lengths: packing keeps them padded, with their lengths beside them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rules.compat.rnn import PackedSequence


def pack_padded_sequence(input, lengths, batch_first=False):
    """Padded sequences (T, B, *), or (B, T, *) when ``batch_first``, with their lengths (B,)."""
    # torch cuts lengths off to whole numbers: 5.6, of relative lengths, are 5 steps
    lengths = jnp.asarray(lengths).astype(int)
    return PackedSequence(input.swapaxes(0, 1) if batch_first else input, lengths)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Padded sequences and lengths again; as long as the longest sequence, or ``total_length``."""
    x, lengths = sequence
    if total_length is None:
        if isinstance(lengths, jax.core.Tracer):
            raise ValueError("under jit, pad_packed_sequence needs total_length: a static shape")
        total_length = int(np.max(lengths))
    time = jnp.arange(len(x)).reshape(-1, *(1,) * (x.ndim - 1))
    valid = time < lengths.reshape(-1, *(1,) * (x.ndim - 2))
    x = jnp.where(valid, x, jnp.asarray(padding_value, x.dtype))[:total_length]
    missing = [(0, total_length - len(x)), *[(0, 0)] * (x.ndim - 1)]
    x = jnp.pad(x, missing, constant_values=padding_value)
    return x.swapaxes(0, 1) if batch_first else x, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Arrays (L_i, *) padded to the longest and stacked: (L, B, *), or (B, L, *) when ``batch_first``."""
    longest = max(len(x) for x in sequences)

    def padded(x):
        missing = longest - len(x)
        amount = (missing, 0) if padding_side == "left" else (0, missing)
        return jnp.pad(x, [amount, *[(0, 0)] * (x.ndim - 1)], constant_values=padding_value)

    return jnp.stack([padded(x) for x in sequences], axis=0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The list of arrays (L_i, *) that ``pad_sequence`` padded; lengths must be known numbers."""
    rows = padded_sequences if batch_first else padded_sequences.swapaxes(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences):
    """A list of arrays (L_i, *) as one packed sequence."""
    return PackedSequence(pad_sequence(sequences), jnp.array([len(x) for x in sequences]))


def unpack_sequence(packed_sequences):
    """The list of arrays (L_i, *) of a packed sequence; lengths must be known numbers."""
    return unpad_sequence(packed_sequences.padded, packed_sequences.lengths)

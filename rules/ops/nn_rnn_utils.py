"""torch.nn.utils.rnn: packing stays padded, and recurrent layers hold their state past a sequence's end."""

from __future__ import annotations

from rules.compat.packed import (
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)
from rules.registry import op


@op("torch.nn.utils.rnn.pack_padded_sequence")
def f_pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True) -> Other:
    """Order does not matter here."""
    return pack_padded_sequence(input, lengths, batch_first=batch_first)


@op("torch.nn.utils.rnn.pad_packed_sequence")
def f_pad_packed_sequence(
    sequence, batch_first=False, padding_value=0.0, total_length=None
) -> tuple[Tensor, Tensor["int"]]:
    """Under ``jit`` the output's length must be static: pass ``total_length``."""
    return pad_packed_sequence(
        sequence, batch_first=batch_first, padding_value=padding_value, total_length=total_length
    )


@op("torch.nn.utils.rnn.pad_sequence")
def f_pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right") -> Tensor:
    """Stacked after padding to the longest."""
    return pad_sequence(
        sequences, batch_first=batch_first, padding_value=padding_value, padding_side=padding_side
    )


@op("torch.nn.utils.rnn.unpad_sequence")
def f_unpad_sequence(padded_sequences, lengths, batch_first=False) -> list[Tensor]:
    """Slices of known lengths."""
    return unpad_sequence(padded_sequences, lengths, batch_first=batch_first)


@op("torch.nn.utils.rnn.pack_sequence")
def f_pack_sequence(sequences, enforce_sorted=True) -> Other:
    """Padded first."""
    return pack_sequence(sequences)


@op("torch.nn.utils.rnn.unpack_sequence")
def f_unpack_sequence(packed_sequences) -> list[Tensor]:
    """Slices of known lengths."""
    return unpack_sequence(packed_sequences)

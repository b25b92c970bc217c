"""Recurrent layers and cells."""

from __future__ import annotations

from rules.compat.rnn import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from rules.registry import layer


@layer(
    "torch.nn.LSTM",
    call="tuple[Tensor, tuple[Tensor, Tensor]]",
    example={"nn.LSTM(4, 8, batch_first=True)": "LSTM(4, 8, batch_first=True, rngs=rngs)"},
)
def lstm_layer(
    input_size,
    hidden_size,
    num_layers=1,
    bias=True,
    batch_first=False,
    dropout=0.0,
    bidirectional=False,
    proj_size=0,
    device=None,
    dtype=None,
    *,
    rngs,
) -> LSTM:
    """Gates in the order i, f, g, o; both biases kept."""
    return LSTM(
        input_size,
        hidden_size,
        num_layers=num_layers,
        bias=bias,
        batch_first=batch_first,
        dropout=dropout,
        bidirectional=bidirectional,
        proj_size=proj_size,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.GRU", call="tuple[Tensor, Tensor]")
def gru_layer(
    input_size,
    hidden_size,
    num_layers=1,
    bias=True,
    batch_first=False,
    dropout=0.0,
    bidirectional=False,
    device=None,
    dtype=None,
    *,
    rngs,
) -> GRU:
    """Gates in the order r, z, n; the reset gate acts after the hidden product."""
    return GRU(
        input_size,
        hidden_size,
        num_layers=num_layers,
        bias=bias,
        batch_first=batch_first,
        dropout=dropout,
        bidirectional=bidirectional,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.RNN", call="tuple[Tensor, Tensor]")
def rnn_layer(
    input_size,
    hidden_size,
    num_layers=1,
    nonlinearity="tanh",
    bias=True,
    batch_first=False,
    dropout=0.0,
    bidirectional=False,
    device=None,
    dtype=None,
    *,
    rngs,
) -> RNN:
    """Elman network, tanh or relu."""
    return RNN(
        input_size,
        hidden_size,
        num_layers=num_layers,
        nonlinearity=nonlinearity,
        bias=bias,
        batch_first=batch_first,
        dropout=dropout,
        bidirectional=bidirectional,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LSTMCell", call="tuple[Tensor, Tensor]")
def lstm_cell_layer(
    input_size, hidden_size, bias=True, device=None, dtype=None, *, rngs
) -> LSTMCell:
    """One step; the state is (h, c)."""
    return LSTMCell(input_size, hidden_size, bias=bias, dtype=dtype, rngs=rngs)


@layer("torch.nn.GRUCell")
def gru_cell_layer(input_size, hidden_size, bias=True, device=None, dtype=None, *, rngs) -> GRUCell:
    """One step."""
    return GRUCell(input_size, hidden_size, bias=bias, dtype=dtype, rngs=rngs)


@layer("torch.nn.RNNCell")
def rnn_cell_layer(
    input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None, *, rngs
) -> RNNCell:
    """One step, tanh or relu."""
    return RNNCell(
        input_size, hidden_size, bias=bias, nonlinearity=nonlinearity, dtype=dtype, rngs=rngs
    )

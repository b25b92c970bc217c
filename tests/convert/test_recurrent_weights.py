"""Weights of recurrent layers that are initialised by names that are made up, or by torch's lists of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from rules.compat.rnn import GRU, LSTM, weight_lists, weight_names
from tests.convert.tools import convert, loaded

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LAYER
        LINES

    def forward(self, x):
        y = self.rnn(x)
        return y[0] if isinstance(y, tuple) else y
"""
NAMED = """for i in range(2):
            nn.init.constant_(getattr(self.rnn, NAME), 0.25)
            getattr(self.rnn, "bias_hh_l{}".format(i)).data.fill_(0.5)
            getattr(self.rnn, "bias_ih_l" + str(i)).data[2:4] = 3"""
TABLE = """for names in self.rnn._all_weights:
            for name in names:
                if 'weight' in name:
                    nn.init.constant_(self.rnn.__getattr__(name), 0.25)
                else:
                    nn.init.zeros_(getattr(self.rnn, name))"""
GATES = """for names in self.rnn._all_weights:
            for name in filter(lambda n: "bias" in n, names):
                bias = getattr(self.rnn, name)
                n = bias.size(0)
                bias.data.zero_()
                bias.data[n // 4:n // 2].fill_(1.)"""
LISTS = """for weights in self.rnn.all_weights:
            for w in weights:
                if w.dim() > 1:
                    nn.init.constant_(w, 0.5)
                else:
                    w.data.zero_()
                    w.data[:2] = 1"""
CELL = """for kind in ("ih", "hh"):
            getattr(self.rnn, "bias_" + kind).data.fill_(0.5)
            nn.init.constant_(getattr(self.rnn, f"weight_{kind}"), 0.5)"""
TWO = "LSTM(4, 5, num_layers=2, bidirectional=True)"


@pytest.mark.parametrize(
    ("layer", "lines"),
    [
        (TWO, NAMED.replace("NAME", 'f"weight_hh_l{i}"')),
        ("GRU(4, 5, 2)", NAMED.replace("NAME", '"weight_ih_l%d" % i')),
        ("RNN(4, 5, 2)", TABLE),
        (TWO, TABLE),
        (TWO, GATES),
        ("LSTM(4, 5, 2)", LISTS),
        ("GRU(4, 5, bias=False)", TABLE),
        ("LSTMCell(4, 5)", CELL),
        ("GRUCell(4, 5)", CELL),
    ],
)
def test_first_values(layer: str, lines: str) -> None:
    theirs, ours, _ = loaded(SOURCE.replace("LAYER", layer).replace("LINES", lines))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    x = torch.linspace(-1, 1, 24).reshape(3, 2, 4)
    x = x[0] if "Cell" in layer else x
    want, got = model.state_dict(), migrator.to_state_dict(port)
    assert set(want) == set(got)
    for name, value in want.items():
        known = value == value.flatten()[0]
        if known.all() or (lines in (GATES, LISTS) and "bias" in name):
            np.testing.assert_array_equal(got[name], value.numpy(), err_msg=name)
    migrator.load_state_dict(port, want)
    np.testing.assert_allclose(
        nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x.numpy())), model(x).detach(), atol=1e-5
    )


@pytest.mark.parametrize(
    "lines",
    [
        "name = 'weight_hh_l0'[:]\n        nn.init.ones_(getattr(self.rnn, name))",
        "self.lists = self.rnn.all_weights",
        "w = getattr(self.rnn, f'weight_hh_l{0}')\n        w = w * 2\n        nn.init.ones_(self.rnn.all_weights[0][0])",
    ],
)
def test_what_is_not_known_to_be_one_of_them(lines: str) -> None:
    assert not convert(SOURCE.replace("LAYER", TWO).replace("LINES", lines)).complete


def test_the_helpers_against_torch() -> None:
    """``weight_names`` and ``weight_lists`` against ``_all_weights`` and ``all_weights``."""
    for options in ({}, {"num_layers": 2, "bidirectional": True}, {"bias": False}):
        pairs = [(torch.nn.LSTM, LSTM), (torch.nn.GRU, GRU)]
        for theirs, ours in pairs:
            want, got = theirs(4, 5, **options), ours(4, 5, rngs=nnx.Rngs(0), **options)
            assert weight_names(got) == want._all_weights
            shapes = [[tuple(w.shape) for w in weights] for weights in want.all_weights]
            assert [[w.shape for w in weights] for weights in weight_lists(got)] == shapes
    want = torch.nn.LSTM(4, 5, proj_size=3, num_layers=2)
    got = LSTM(4, 5, proj_size=3, num_layers=2, rngs=nnx.Rngs(0))
    assert weight_names(got) == want._all_weights


def test_cells_that_are_handed_no_state() -> None:
    for layer in ("GRUCell(4, 5)", "RNNCell(4, 5, nonlinearity='relu')", "LSTMCell(4, 5)"):
        theirs, ours, _ = loaded(SOURCE.replace("LAYER", layer).replace("LINES", "pass"))
        model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
        migrator.load_state_dict(port, model.state_dict())
        for x in (torch.linspace(-1, 1, 8).reshape(2, 4), torch.ones(4)):
            np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach(), atol=1e-5)

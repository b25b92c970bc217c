"""Initial values for layers whose weight is computed from others: spectral_norm, weight_norm, parametrizations.

``spectral_norm`` of torch.nn.utils leaves ``weight`` in one memory with ``weight_orig`` until the first call, so that
what initialises the one initialises the other; what the others compute is written to for nothing.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import loaded

PROGRAM = """
from torch.nn import init
from torch.nn.utils import spectral_norm, weight_norm
from torch.nn.utils import parametrizations as P

LAYERS = (nn.Linear, nn.Conv1d, nn.Embedding, nn.ConvTranspose1d)


def by_class(m):
    if isinstance(m, (nn.Linear, nn.Conv1d, nn.Embedding, nn.ConvTranspose1d)):
        init.constant_(m.weight, 0.5)


def by_name(m):
    name = m.__class__.__name__
    if name.find("Conv") != -1 or name.find("Linear") != -1 or name.find("Embedding") != -1:
        m.weight.data.fill_(0.5)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = LAYER
        INIT

    def forward(self, x):
        return self.l(x)
"""
LAYERS = {
    "linear": "nn.Linear(4, 4)",
    "convolution": "nn.Conv1d(4, 4, 1)",
    "embedding": "nn.Embedding(4, 4)",
    "transposed": "nn.ConvTranspose1d(4, 4, 1)",
}
NORMS = {
    "spectral": "spectral_norm({})",
    "weight": "weight_norm({})",
    "parametrized spectral": "P.spectral_norm({})",
    "parametrized weight": "P.weight_norm({})",
}
LOOP = "for m in self.modules(): if isinstance(m, (nn.Linear, nn.Conv1d, nn.Embedding, nn.ConvTranspose1d)): "
INITS = {
    "direct": "init.constant_(self.l.weight, 0.5)",
    "by data": "self.l.weight.data.fill_(0.5)",
    "in a loop": LOOP + "init.constant_(m.weight, 0.5)",
    "applied": "self.apply(by_class)",
    "applied by name": "self.apply(by_name)",
    "what has one": "for m in self.modules(): if hasattr(m, 'weight'): init.constant_(m.weight, 0.5)",
    "children": "for m in self.children(): m.weight.data.fill_(0.5)",
    "named": "for n, p in self.named_parameters(): if 'weight' in n: init.constant_(p, 0.5)",
    "parameters": "for p in self.parameters(): if p.dim() > 1: init.constant_(p, 0.5)",
}
EVERY = [
    one
    for one in product(LAYERS, NORMS, INITS)
    if not (one[1].startswith("parametrized") and one[2] == "what has one")  # which torch refuses
]
FEW = [one for i, one in enumerate(EVERY) if i % 11 == 0 or one[2] == "direct"]


def _compare(layer: str, norm: str, how: str) -> None:
    head, *rest = INITS[how].split(": ")
    text = head
    for depth, part in enumerate(rest, 3):
        text += ":\n" + "    " * depth + part
    made = NORMS[norm].format(LAYERS[layer])
    theirs, ours, _ = loaded(PROGRAM.replace("LAYER\n", made + "\n").replace("INIT\n", text + "\n"))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    want, got = model.state_dict(), migrator.to_state_dict(port)
    assert set(want) == set(got)
    for name, value in want.items():
        assert np.all(value.numpy() == 0.5) == np.all(np.asarray(got[name]) == 0.5), name


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("layer", "norm", "how"), FEW)
def test_initial_values_of_computed_weights(layer: str, norm: str, how: str) -> None:
    _compare(layer, norm, how)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(("layer", "norm", "how"), EVERY)
def test_every_initial_value_of_computed_weights(layer: str, norm: str, how: str) -> None:
    _compare(layer, norm, how)

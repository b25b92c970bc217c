"""Dataclasses of tensors that a forward pass returns go through jit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source
from tests.convert.tools import loaded, pair

SOURCE = """
import dataclasses
from dataclasses import dataclass, field
from typing import List, Optional


# what a step gives
@dataclass
class Output:
    logits: torch.Tensor
    loss: Optional[torch.FloatTensor] = None
    hidden: List["torch.Tensor"] = field(default_factory=list)

    def __getitem__(self, index):
        return (self.logits, self.loss)[index]


@dataclasses.dataclass(frozen=True)
class Pair:
    first: torch.Tensor
    second: "torch.Tensor | None" = None


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def pair(self, x):
        return Pair(x, x * 2), 1

    def forward(self, x, labels: Optional[torch.Tensor] = None):
        out = Output(logits=self.lin(x))
        out.hidden.append(x)
        both, _ = self.pair(x)
        if labels is not None:
            out.loss = F.cross_entropy(out[0], labels) + both.second.sum()
        return out
"""


def test_what_jit_hands_out() -> None:
    theirs, ours, code = loaded(SOURCE)
    assert (
        "# what a step gives\n@jax.tree_util.register_dataclass\n@dataclass\nclass Output" in code
    )
    assert "@jax.tree_util.register_dataclass\n@dataclasses.dataclass(frozen=True)" in code
    model, port = pair(theirs, ours, "M()")
    x, labels = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4), np.array([2, 0])
    want = model(torch.tensor(x), torch.tensor(labels))
    got = nnx.jit(lambda m, *a: m(*a))(port, jnp.asarray(x), jnp.asarray(labels))
    assert isinstance(got, ours["Output"])
    for one, other in (
        (want.logits, got.logits),
        (want.loss, got.loss),
        (want.hidden[0], got.hidden[0]),
    ):
        np.testing.assert_allclose(other, one.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert len(jax.tree.leaves(nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x)))) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss: Optional[torch.FloatTensor] = None", "name: str = 'a'"),  # jit hands out no text
        ("        self.lin = ", "        self.last = Output(torch.ones(2))\n        self.lin = "),
        ("    def __init__(self):", "    def __init__(self, kept: Optional[Output] = None):"),
        (
            "    def __getitem__(self",
            "    def __post_init__(self):\n        assert self.logits.ndim\n\n    def get(self",
        ),
        ("        return out\n", "        return out.logits\n"),  # nobody hands one out
    ],
)
def test_what_stays_as_it_is(old: str, new: str) -> None:
    """Flax refuses an attribute that is such a dataclass, and a check of shapes meets no shapes."""
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    code = convert_source(
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + source
    ).code
    assert "register_dataclass\n@dataclass\n" not in code

"""Methods beside the forward pass that put new layers in the place of others: they run where nothing is traced."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, rules_of

PRUNED = """
def kept(heads, n, size):
    mask = torch.ones(n, size)
    for head in heads:
        mask[head] = 0
    mask = mask.view(-1).contiguous().eq(1)
    return torch.arange(len(mask))[mask].long()


def pruned(layer, index, dim=0):
    W = layer.weight.index_select(dim, index).clone().detach()
    size = list(layer.weight.size())
    size[dim] = len(index)
    new = nn.Linear(size[1], size[0], bias=layer.bias is not None)
    new.weight.requires_grad = False
    new.weight.copy_(W.contiguous())
    new.weight.requires_grad = True
    if layer.bias is not None:
        b = layer.bias.clone().detach() if dim == 1 else layer.bias[index].clone().detach()
        new.bias.requires_grad = False
        new.bias.copy_(b)
        new.bias.requires_grad = True
    return new


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 6)
        self.down = nn.Linear(6, 4, bias=False)

    def prune(self, heads):
        index = kept(heads, 3, 2)
        self.up = pruned(self.up, index)
        self.down = pruned(self.down, index, dim=1)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))
"""


def test_pruned_heads() -> None:
    model, port, _ = both(PRUNED)
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    with torch.no_grad():
        model.prune([1])
    port.prune([1])
    assert port.up.kernel.shape == (4, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach(), atol=1e-6)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self.down(", "self.prune([1])\n        return self.down("),
        ("return self.down(", "kept([1], 3, 2)\n        return self.down("),
        ("        self.up = pruned(self.up, index)\n", "        return index\n"),
    ],
)
def test_what_the_forward_pass_does_or_gives_tensors_back_is_a_finding(old: str, new: str) -> None:
    made = PRUNED.replace(old, new).replace(
        "        self.down = pruned(self.down, index, dim=1)\n",
        "" if "index\n" in new else "        self.down = pruned(self.down, index, dim=1)\n",
    )
    assert "DYN001" in rules_of(made)

"""Running statistics that a forward pass reads once a layer has moved them: numbers, through which no gradient goes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, rules_of

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(7))
SOURCE = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        LAYER

    def forward(self, x):
        LINES
"""
LAYERS = [
    "self.m = nn.BatchNorm1d(4)",
    "self.m = nn.BatchNorm1d(4, momentum=None, affine=False)",
    "self.m = nn.InstanceNorm1d(5, track_running_stats=True)",
]
LINES = [
    "y = self.m(self.fc(x)); return y + self.m.running_mean.mean()",
    "y = self.m(self.fc(x)); return y / torch.sqrt(self.m.running_var.sum() + 1e-5)",
    "y = self.m(self.fc(x)); self.m.eval(); z = self.m(self.fc(x)); self.m.train(); return y + z",
    "y = self.m(self.fc(x)); return y + self.m.running_mean.detach().sum()",
]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("lines", LINES)
def test_no_gradient_goes_through_statistics(lines: str, layer: str) -> None:
    if "Instance" in layer:
        lines = lines.replace("self.m(self.fc(x))", "self.m(self.fc(x)[None])[0]")
    source = SOURCE.replace("LAYER", layer).replace("LINES", lines.replace("; ", "\n        "))
    model, port, _ = both(source)
    weights = torch.linspace(0.5, 1.5, 20).reshape(5, 4)
    (model(X) * weights).sum().backward()
    x = jnp.asarray(X.numpy())
    grads = nnx.grad(lambda module: (module(x) * weights.numpy()).sum())(port)
    np.testing.assert_allclose(grads["fc"]["bias"][...], model.fc.bias.grad, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        grads["fc"]["kernel"][...].T, model.fc.weight.grad, rtol=1e-3, atol=1e-4
    )


def test_statistics_that_are_taken_away() -> None:
    layer = "self.m = nn.BatchNorm1d(4); self.m.running_mean = None; self.m.running_var = None"
    source = SOURCE.replace("LAYER", layer.replace("; ", "\n        "))
    model, port, _ = both(source.replace("LINES", "return self.m(self.fc(x))"))
    for mode in (True, False):
        model.train(mode)
        port.train() if mode else port.eval()
        want = model(X).detach().numpy()
        np.testing.assert_allclose(port(jnp.asarray(X.numpy())), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("block", ["Block(n)", "blocks[-1] if self.share and blocks else Block(n)"])
def test_plain_lists_of_lists_of_layers(block: str) -> None:
    source = f"""class Block(nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)

class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.share = False
        self.stacks = []
        for _ in range(2):
            self.stacks.append(self.stack(n))
        self.all = nn.ModuleList([b for s in self.stacks for b in s])

    def stack(self, n):
        blocks = []
        for _ in range(2):
            block = {block}
            blocks.append(block)
        return blocks

    def forward(self, x):
        return self.stacks[0][0](x)
"""
    assert rules_of(source) == ["API008"]

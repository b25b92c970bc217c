"""``n = m.numel() - (m == 1).sum().item()``: counts that meet sizes, and are bounded before something is divided by them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.convert.tools import X, both, rules_of

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        LINE
        return y * y


def give():
    return 1.5
"""


def _source(line: str) -> str:
    return MODEL.replace("LINE", line.replace("; ", "\n        "))


COMPUTED = [
    "n = x.numel() - (x > 0).sum().item(); y = y / n",
    "n = (x > 0).sum().item() + x.size(0) * x.size(1); y = y / n + y.sum() / n",
    "n = x.shape[0] / ((x > 0).sum().item() + len(x)); y = y * n",
    "n = (x > 0).sum().item(); y = y / max(n, 1)",
    "n = (x > 9).sum().item(); y = y / max(1, n)",
    "n = int((x > 9).sum()); y = y / max(n, 1) + y * n",
    "n = (x > 0).sum().item(); k = max(n, 1); y = y / k",
    "n = (x > 0).sum().item(); y = y * min(n, 3)",
    "n = (x > 0).sum().item() * 2.5; y = y / n",
]


@pytest.mark.parametrize("line", COMPUTED)
def test_a_count_stays_an_array(line: str) -> None:
    module, port, _ = both(_source(line))
    x = X.clone().requires_grad_()
    expected = module(x)
    np.testing.assert_allclose(jax.jit(port)(X.numpy()), expected.detach(), rtol=1e-5, atol=1e-6)
    expected.sum().backward()
    gradient = jax.grad(lambda x: port(x).sum())(jnp.asarray(X.numpy()))
    np.testing.assert_allclose(gradient, x.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "n = (x > 0).sum().item() * x.numel(); y = y / n",  # may be of more than 32 bits
        "n = (x > 0).sum().item(); n = max(n, 1); y = y / n",
        "n = (x > 0).sum().item(); y = y[: max(n, 1)]",
        "n = (x > 0).sum().item(); y = y / max(n, 1); z = torch.zeros(n); y = y + z.sum()",
        "n = (x > 0).sum().item(); y = y / max(n, 1) if n > 2 else y",
        "n = (x > 0).sum().item(); k = max(n, 1); y = y * (k > 2)",
        "n = (x > 0).sum().item(); y = y + len(range(max(n, 1)))",
    ],
)
def test_what_needs_the_number_is_a_finding(line: str) -> None:
    assert rules_of(_source(line))


AVERAGED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("count", torch.tensor(0, dtype=torch.long))
        self.momentum = None

    def forward(self, x):
        if self.training:
            self.count += 1
            factor = 0.0
            if self.momentum is None:
                factor = 1.0 / TAKEN
            else:
                factor = self.momentum
            mean = x.mean(0)
            with torch.no_grad():
                LINE
        else:
            mean = self.mean
        return x - mean
"""
UPDATES = [
    "self.mean = factor * mean + (1 - factor) * self.mean",
    "self.mean = mean * factor + self.mean * (1.0 - factor * 1)",
    "self.mean.mul_(1 - factor).add_(mean, alpha=factor)",
    "self.mean.lerp_(mean, factor)",
    "self.mean += (mean - self.mean) * factor",
]


@pytest.mark.parametrize("line", UPDATES)
@pytest.mark.parametrize("taken", ["self.count.item()", "float(self.count)"])
def test_a_cumulative_mean_goes_by_the_count_of_batches(taken: str, line: str) -> None:
    module, port, _ = both(AVERAGED.replace("TAKEN", taken).replace("LINE", line))
    module.train()
    port.train()
    for scale in (1.0, 2.0, -3.0):
        np.testing.assert_allclose(port(scale * X.numpy()), module(scale * X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(port.mean[...], module.mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "self.mean = mean if factor > 0.5 else self.mean",
        "self.factor = factor",
        "self.mean = mean * (1 - factor) ** 2",
        "self.mean = mean * math.sqrt(1 - factor)",
        "self.mean = mean * (len(x) - factor)",
    ],
)
def test_what_else_asks_for_the_factor_is_a_finding(line: str) -> None:
    source = AVERAGED.replace("TAKEN", "self.count.item()").replace("LINE", line)
    assert "DYN004" in rules_of("import math\n" + source)

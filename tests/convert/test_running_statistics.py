"""``F.batch_norm`` with a module's own statistics: values, gradients, statistics and counters as in torch."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, convert, rules_of

OWN = """
class M(nn.Module):
    def __init__(self, n=3, eps=1e-4, momentum=0.2):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.full((n,), 1.5))
        self.bias = nn.Parameter(torch.zeros(n))
        self.register_buffer("running_mean", torch.zeros(n))
        self.register_buffer("running_var", torch.ones(n))

    def forward(self, x):
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
                            self.momentum, self.eps)
"""
TORCHS = """
class M(nn.BatchNorm2d):
    def __init__(self, n=3):
        super().__init__(n, momentum=0.3)

    def forward(self, input):
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                self.num_batches_tracked += 1
        training = True if self.training else (self.running_mean is None) and (self.running_var is None)
        return F.batch_norm(
            input,
            self.running_mean if not self.training or self.track_running_stats else None,
            self.running_var if not self.training or self.track_running_stats else None,
            self.weight, self.bias, bn_training := training, factor, self.eps)
"""
CUMULATIVE = TORCHS.replace("momentum=0.3", "momentum=None").replace(
    "self.num_batches_tracked += 1",
    "if self.momentum is None:\n                    factor = 1.0 / float(self.num_batches_tracked)",
)


@pytest.mark.parametrize(
    "source",
    [
        OWN,
        CUMULATIVE.replace("bn_training := training", "training"),
        TORCHS.replace("bn_training := training", "training"),
    ],
    ids=["own", "cumulative", "torch's"],
)
def test_statistics_move_in_training_only(source: str) -> None:
    model, port, _ = both(source)
    step = nnx.jit(lambda m, x: m(x))
    for train in (True, True, False):
        model.train(train)
        port.train() if train else port.eval()
        x = torch.randn(4, 3, 2, 2, generator=torch.Generator().manual_seed(int(train)))
        wanted = model(x).detach()
        np.testing.assert_allclose(step(port, jnp.asarray(x.numpy())), wanted, atol=1e-5)
        state = migrator.to_state_dict(port)
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(state[name], value.numpy(), atol=1e-5, err_msg=name)


def test_statistics_that_are_no_buffers_are_a_finding() -> None:
    source = "def f(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor):\n"
    source += "    return F.batch_norm(x, mean, var, training=TRAIN)\n"
    assert rules_of(source.replace("TRAIN", "True")) == ["API002"]
    assert convert(source.replace("TRAIN", "False")).complete


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("return x * (1.0 / float(self.n))", []),
        ("k = 2 / float(self.n)\n        return x * k", []),
        ("return x if float(self.n) > 1 else -x", ["DYN004"]),
        ("k = 2 / float(self.n)\n        return x.repeat(int(k), 1)", ["DYN004"]),
        ("k = 2 / float(self.n)\n        return x * k, k", ["DYN004"]),
        ("return x * float(x.sum())", []),
        ("return x * max(float(x.sum()), 1.0)", []),
    ],
)
def test_a_count_that_is_only_computed_with(line: str, rules: list[str]) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('n', torch.full((), 3, dtype=torch.long))\n\n"
        f"    def forward(self, x: torch.Tensor):\n        {line}\n"
    )
    assert rules_of(source) == rules
    if not rules:
        model, port, _ = both(source)
        for dtype, jax_dtype in ((torch.float32, jnp.float32), (torch.bfloat16, jnp.bfloat16)):
            out = port(jnp.ones((2, 3), jax_dtype))
            assert out.dtype == jax_dtype
            np.testing.assert_allclose(
                out.astype(jnp.float32), model(torch.ones(2, 3, dtype=dtype)).float(), rtol=1e-6
            )

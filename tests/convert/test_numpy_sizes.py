"""Sizes that numpy computes: torch takes its integers as Python's."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from migrator import convert_source

SOURCE = """import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


class M(nn.Module):
    def __init__(self):
        super().__init__()
        k = np.prod([3, 1])
        self.conv = nn.Conv2d(3, 4, kernel_size=k, padding=(k - 1) // 2)
        self.norm = nn.LayerNorm(np.prod([2, 4]))
        self.up = nn.ConvTranspose2d(4, 4, k, stride=np.int64(2))
        self.pool = nn.MaxPool2d(np.int64(2))
        self.k = np.int64(2)

    def forward(self, x):
        x = F.avg_pool2d(self.pool(self.conv(x)), self.k)
        x = F.conv2d(x, torch.ones(4, 4, 1, 1), stride=self.k)
        return self.norm(F.interpolate(self.up(x), size=(np.int64(8), 8)))
"""


def test_layers_and_functions_take_integers_of_numpy() -> None:
    result = convert_source(SOURCE)
    assert result.complete
    theirs: dict = {}
    exec(SOURCE, theirs)
    ours: dict = {}
    exec(result.code, ours)
    torch.manual_seed(0)
    original, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 3, 16, 16)).astype(np.float32)
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-4, atol=1e-5)


LAPLACE = """import numpy as np
import torch
from torch import nn


def scaled(adjacent):
    assert adjacent.shape[0] == adjacent.shape[1]
    laplacian = np.diag(np.sum(adjacent, axis=1)) - adjacent
    largest = np.linalg.eigvals(laplacian).max().real
    u, s, v = np.linalg.svd(laplacian)
    spectrum = np.abs(np.fft.fft(laplacian)).max()
    return 2 * laplacian / largest - np.identity(adjacent.shape[0]) * s.max() / spectrum


class M(nn.Module):
    def __init__(self):
        super().__init__()
        ones = np.arange(16.0).reshape(4, 4)
        self.register_buffer("l", torch.from_numpy(scaled(ones + ones.T)).float())

    def forward(self, x):
        return x @ self.l
"""


def test_what_the_linear_algebra_of_numpy_gives_are_arrays_of_numpy() -> None:
    result = convert_source(LAPLACE)
    assert result.complete, result.findings
    assert "np.linalg.eigvals(laplacian).max().real" in result.code
    theirs: dict = {}
    exec(LAPLACE, theirs)
    ours: dict = {}
    exec(result.code, ours)
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    want = theirs["M"]()(torch.tensor(x)).numpy()
    np.testing.assert_allclose(ours["M"](rngs=nnx.Rngs(0))(jnp.asarray(x)), want, atol=1e-5)

"""Pairs of a torch module and a hand-written port, with the loader between them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from torch import nn

torch.set_num_threads(1)


def variable(module: Any, path: str) -> Any:
    """The Variable at ``layers.0.kernel``."""
    for part in path.split("."):
        module = module[int(part)] if part.isdigit() else getattr(module, part)
    return module


def as_array(value: Any) -> np.ndarray:
    """A tensor or array as numpy; bfloat16 too, which numpy has from elsewhere."""
    if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:
        return value.float().numpy().astype(jnp.bfloat16)
    return np.asarray(value)


class Carrier:
    """Loads and dumps by a table of torch name → Flax path, with ``.T`` where the layout is transposed."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = table

    def load(self, module: nnx.Module, state: Mapping[str, Any]) -> None:
        """torch → Flax, in place."""
        assert set(state) == set(self.table)
        for name, path in self.table.items():
            value = as_array(state[name])
            value = value.T if path.endswith(".T") else value
            variable(module, path.removesuffix(".T"))[...] = jnp.asarray(value)

    def dump(self, module: Any, like: nnx.Module | None = None) -> dict[str, np.ndarray]:
        """Flax → torch names; a state of gradients has only what was differentiated."""
        if like is None:
            return {name: self._export(module, path) for name, path in self.table.items()}
        whole = nnx.clone(like)
        nnx.update(whole, module)
        params = {
            name: path
            for name, path in self.table.items()
            if isinstance(variable(whole, path.removesuffix(".T")), nnx.Param)
        }
        return {name: self._export(whole, path) for name, path in params.items()}

    @staticmethod
    def _export(module: Any, path: str) -> np.ndarray:
        value = np.asarray(variable(module, path.removesuffix(".T"))[...])
        return value.T if path.endswith(".T") else value


class TorchNet(nn.Module):
    """Linear, GELU, dropout, linear, layer norm."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(dropout), nn.Linear(16, 4))
        self.norm = nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.net(x))


class FlaxNet(nnx.Module):
    """The port, with places to go wrong."""

    def __init__(
        self,
        dropout: float = 0.0,
        eps: float = 1e-5,
        tanh: bool = False,
        stop: bool = False,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.net = nnx.Sequential(
            nnx.Linear(8, 16, rngs=rngs),
            functools.partial(jax.nn.gelu, approximate=tanh),
            nnx.Dropout(dropout, rngs=rngs),
            nnx.Linear(16, 4, rngs=rngs),
        )
        self.norm = nnx.LayerNorm(4, epsilon=eps, use_fast_variance=False, rngs=rngs)
        self.stop = stop

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.net(x)
        if self.stop:
            x = jax.lax.stop_gradient(x) * 0.5 + x * 0.5
        return self.norm(x)


NET = Carrier(
    {
        "net.0.weight": "net.layers.0.kernel.T",
        "net.0.bias": "net.layers.0.bias",
        "net.3.weight": "net.layers.3.kernel.T",
        "net.3.bias": "net.layers.3.bias",
        "norm.weight": "norm.scale",
        "norm.bias": "norm.bias",
    }
)


class TorchBatchNorm(nn.Module):
    """A linear layer and batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.bn = nn.BatchNorm1d(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(self.fc(x)))


class BatchNorm(nnx.Module):
    """torch's batch norm over (N, C)."""

    def __init__(self, size: int, momentum: float = 0.1, unbiased: bool = True) -> None:
        self.weight = nnx.Param(jnp.ones(size))
        self.bias = nnx.Param(jnp.zeros(size))
        self.running_mean = nnx.BatchStat(jnp.zeros(size))
        self.running_var = nnx.BatchStat(jnp.ones(size))
        self.num_batches_tracked = nnx.BatchStat(jnp.zeros((), jnp.int32))
        self.momentum, self.unbiased, self.use_running_average = momentum, unbiased, False

    def __call__(self, x: jax.Array) -> jax.Array:
        mean, var = self.running_mean[...], self.running_var[...]
        if not self.use_running_average:
            mean, var, m = x.mean(0), x.var(0), self.momentum
            kept = x.var(0, ddof=1) if self.unbiased else var
            self.running_mean[...] = (1 - m) * self.running_mean[...] + m * mean
            self.running_var[...] = (1 - m) * self.running_var[...] + m * kept
            self.num_batches_tracked[...] += 1
        return (x - mean) * jax.lax.rsqrt(var + 1e-5) * self.weight[...] + self.bias[...]


class FlaxBatchNorm(nnx.Module):
    """The port of ``TorchBatchNorm``."""

    def __init__(self, *, rngs: nnx.Rngs, **options: Any) -> None:
        self.fc = nnx.Linear(6, 5, rngs=rngs)
        self.bn = BatchNorm(5, **options)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu(self.bn(self.fc(x)))


BATCH_NORM = Carrier(
    {
        "fc.weight": "fc.kernel.T",
        "fc.bias": "fc.bias",
        **{
            f"bn.{name}": f"bn.{name}"
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
        },
    }
)


class TorchSampler(nn.Module):
    """A reparametrised sample: random in eval mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.mu = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mu = self.mu(x)
        return mu + torch.randn_like(mu) * torch.exp(0.5 * mu), mu


class FlaxSampler(nnx.Module):
    """The port of ``TorchSampler``; ``twice`` draws once more than torch does."""

    def __init__(self, twice: bool = False, scale: float = 0.5, *, rngs: nnx.Rngs) -> None:
        self.mu = nnx.Linear(4, 3, rngs=rngs)
        self.rngs, self.twice, self.scale = rngs, twice, scale

    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        mu = self.mu(x)
        if self.twice:
            mu = mu + 0 * self.rngs.normal(mu.shape)
        return mu + self.rngs.normal(mu.shape) * jnp.exp(self.scale * mu), mu


SAMPLER = Carrier({"mu.weight": "mu.kernel.T", "mu.bias": "mu.bias"})

"""A multilayer perceptron classifier for flattened images."""

from typing import Optional, Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        super().__init__(in_features, out_features, kernel_init=init, bias_init=init, rngs=rngs)


class BatchNorm1d(nnx.Module):
    """Batch normalisation of (N, C) or (N, C, L)."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, *, rngs: nnx.Rngs | None = None):
        self.eps, self.momentum = eps, momentum
        self.weight = nnx.Param(jnp.ones(num_features))
        self.bias = nnx.Param(jnp.zeros(num_features))
        self.use_running_average = False
        self.running_mean = nnx.BatchStat(jnp.zeros(num_features))
        self.running_var = nnx.BatchStat(jnp.ones(num_features))
        self.num_batches_tracked = nnx.BatchStat(jnp.array(0))

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        if self.use_running_average:
            mean, var = self.running_mean[...], self.running_var[...]
        else:
            axes = (0, *range(2, x.ndim))
            mean, var = x.mean(axes), x.var(axes)
            self.num_batches_tracked[...] += 1
            count = x.size // x.shape[1]
            new = self.momentum
            pairs = (self.running_mean, mean), (self.running_var, var * count / (count - 1))
            for stat, value in pairs if count else ():
                stat[...] = ((1 - new) * stat[...] + new * lax.stop_gradient(value)).astype(stat.dtype)
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scale = lax.rsqrt(var + self.eps) * self.weight[...]
        x = (x - mean.reshape(per_channel)) * scale.reshape(per_channel)
        return (x + self.bias[...].reshape(per_channel)).astype(input.dtype)


def cross_entropy(input, target, ignore_index=-100, label_smoothing=0.0):
    """Cross entropy of logits against class numbers or class probabilities.

    Shapes: input (C,) or (N, C, …); target () or (N, …) of integers, or as input. Formula: torch's
    documentation of torch.nn.CrossEntropyLoss.
    """
    axis = min(input.ndim - 1, 1)
    log_p = weighted = jax.nn.log_softmax(input, axis)
    if jnp.issubdtype(target.dtype, jnp.floating):
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / input.shape[axis]
        return jnp.mean(-jnp.sum(weighted * target, axis))
    smooth = -jnp.mean(weighted, axis)
    axis = min(log_p.ndim - 1, 1)
    kept = target != ignore_index
    target = jnp.where(kept, target, 0)
    picked = -jnp.take_along_axis(log_p, jnp.expand_dims(target, axis), axis).squeeze(axis)
    weights = kept.astype(log_p.dtype)
    if label_smoothing:
        picked = (1 - label_smoothing) * picked + label_smoothing * smooth
    loss = jnp.where(kept, picked, 0)
    return jnp.sum(loss) / jnp.sum(weights)


class MLP(nnx.Module):
    """Fully connected network with batch normalisation and dropout between the layers.

    Args:
        in_features: number of values in one flattened example.
        hidden: widths of the hidden layers.
        num_classes: number of logits.
        dropout: probability of dropping a hidden unit.
        activation: the nonlinearity, a module instance shared by all layers.
    """

    def __init__(
        self,
        in_features: int = 64,
        hidden: Sequence[int] = (48, 32),
        num_classes: int = 10,
        dropout: float = 0.0,
        activation: Optional[nnx.Module] = None,
        *,
        rngs: nnx.Rngs,
    ):
        self.in_features = in_features
        if activation is None:
            activation = jax.nn.relu

        layers = []
        width = in_features
        for size in hidden:
            layers.append(Linear(width, size, rngs=rngs))
            layers.append(BatchNorm1d(size, rngs=rngs))
            layers.append(activation)
            if dropout > 0:
                layers.append(nnx.Dropout(dropout, rngs=rngs))
            width = size
        self.features = nnx.Sequential(*layers)
        self.head = Linear(width, num_classes, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return logits of shape (batch, num_classes) for x of shape (batch, ...)."""
        x = x.reshape(x.shape[0], -1)
        assert x.shape[1] == self.in_features, (
            f"expected {self.in_features} values, got {x.shape[1]}"
        )
        x = self.features(x)
        return self.head(x)

    def predict(self, x: jax.Array) -> jax.Array:
        """Most probable class of each example."""
        return jax.lax.stop_gradient(self(x).argmax(axis=-1))

    @property
    def num_classes(self) -> int:
        return self.head.out_features


def classification_loss(logits: jax.Array, target: jax.Array, smoothing: float = 0.1):
    """Label-smoothed cross-entropy and the accuracy of the batch."""
    loss = cross_entropy(logits, target, label_smoothing=smoothing)
    accuracy = (logits.argmax(axis=1) == target).astype(jnp.float32).mean()
    return loss, accuracy

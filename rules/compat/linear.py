"""Linear layers with torch's initial distributions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs, **options):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        options = {"kernel_init": init, "bias_init": init, **options}
        super().__init__(in_features, out_features, rngs=rngs, **options)


class LinearAsTorch(Linear):
    """``Linear`` with torch's arguments."""

    def __init__(self, in_features, out_features, bias=True, dtype=None, *, rngs: nnx.Rngs):
        options = {"use_bias": bias, "param_dtype": dtype or jnp.float32}
        super().__init__(in_features, out_features, rngs=rngs, **options)


class Bilinear(nnx.Module):
    """x1ᵀ A x2 + b: (…, in1_features), (…, in2_features) → (…, out_features)."""

    def __init__(
        self,
        in1_features,
        in2_features,
        out_features,
        bias=True,
        dtype=None,
        *,
        rngs: nnx.Rngs,
    ):
        bound = in1_features**-0.5
        shape = (out_features, in1_features, in2_features)
        self.weight = nnx.Param(
            rngs.params.uniform(shape, dtype=dtype, minval=-bound, maxval=bound)
        )
        bias_value = rngs.params.uniform(shape[:1], dtype=dtype, minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_value) if bias else None

    def __call__(self, input1, input2):
        y = jnp.einsum("...i,oij,...j->...o", input1, self.weight[...], input2)
        return y if self.bias is None else y + self.bias[...]


class LazyLinear(Linear):
    """``Linear`` that learns ``in_features`` on its first call."""

    def __init__(self, out_features, *, rngs: nnx.Rngs, **options):
        self.kernel, self.bias = nnx.data(None), nnx.data(None)
        self.out_features, self.options, self.rngs = out_features, tuple(options.items()), rngs

    def __call__(self, input):
        if self.kernel is None:
            options = dict(self.options)
            super().__init__(input.shape[-1], self.out_features, rngs=self.rngs, **options)
        return super().__call__(input)

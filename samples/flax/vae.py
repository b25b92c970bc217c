"""Variational autoencoder with a convolutional encoder and decoder (Kingma & Welling, 2013)."""

import functools
import math
from typing import Dict, List, Optional, Tuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


class Conv2d(nnx.Module):
    """Convolution of (N, C, H, W)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, *, rngs):
        self.out_channels, self.groups = out_channels, 1
        self.stride = (stride,) * 2
        self.dilation = 1, 1
        self.padding = (padding,) * 2
        shape = out_channels, in_channels, kernel_size, kernel_size
        self.kernel_size = shape[2:]
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        bias_init = rngs.params.uniform(shape[:1], minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init)

    def __call__(self, input):
        bias = self.bias[...]
        padding = [(p, p) for p in self.padding]
        batched = input if input.ndim == 4 else input[None]
        output = lax.conv_general_dilated(batched, self.weight[...], self.stride, padding)
        output = output + bias.reshape(-1, 1, 1)
        return output if batched is input else output[0]


class BatchNorm2d(nnx.Module):
    """Batch normalisation of (N, C, H, W)."""

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


def leaky_relu(input, negative_slope=0.01):
    """x where x > 0, else negative_slope · x; the slope at 0 is ``negative_slope``, as in torch."""
    return jnp.where(input > 0, input, negative_slope * input)


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        super().__init__(in_features, out_features, kernel_init=init, bias_init=init, rngs=rngs)


class ConvTranspose2d(nnx.Module):
    """Transposed convolution of (N, C, H, W)."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        *,
        rngs: nnx.Rngs,
    ):
        self.out_channels, self.groups = out_channels, groups
        self.kernel_size = (kernel_size,) * 2
        self.stride = (stride,) * 2
        self.dilation = 1, 1
        self.padding = (padding,) * 2
        self.output_padding = (output_padding,) * 2
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        bias_init = rngs.params.uniform((out_channels,), minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init)

    def __call__(self, input, output_size=None):
        if input.ndim == 3:
            return self(input[None], output_size)[0]
        reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        extra = self.output_padding
        if output_size is not None:
            smallest = zip(input.shape[2:], self.stride, self.padding, reach, strict=True)
            smallest = [(n - 1) * s - 2 * p + r + 1 for n, s, p, r in smallest]
            wanted = output_size[-2:]
            extra = [size - least for size, least in zip(wanted, smallest, strict=True)]
        # The gradient of a convolution: the input dilated by the stride, the kernel flipped.
        kernel = jnp.flip(self.weight[...], range(2, 4))
        kernel = kernel.reshape(self.groups, -1, *kernel.shape[1:]).swapaxes(1, 2)
        output = lax.conv_general_dilated(
            input,
            kernel.reshape(self.out_channels, -1, *self.kernel_size),
            (1, 1),
            [(r - p, r - p + e) for r, p, e in zip(reach, self.padding, extra, strict=True)],
            lhs_dilation=self.stride,
            rhs_dilation=self.dilation,
            feature_group_count=self.groups,
        )
        return output + self.bias[...].reshape(-1, 1, 1)


@jax.custom_jvp
def _binary_cross_entropy(input, target):
    log_p, log_q = jnp.log(input), jnp.log1p(-input)
    return -(target * jnp.maximum(log_p, -100) + (1 - target) * jnp.maximum(log_q, -100))


@_binary_cross_entropy.defjvp
def _binary_cross_entropy_jvp(primals, tangents):
    input, target = primals
    slope = (input - target) / jnp.maximum((1 - input) * input, 1e-12)
    by_target = jnp.log1p(-input) - jnp.log(input)
    tangent = slope * tangents[0] + by_target * tangents[1]
    return _binary_cross_entropy(input, target), tangent


def binary_cross_entropy(input, target, reduction="mean"):
    """-(t log p + (1 - t) log(1 - p)) with logs no lower than -100 and a finite slope, as in torch.

    Shapes: input and target alike, weight broadcast to them.
    """
    loss = _binary_cross_entropy(input, target)
    return {"none": lambda x: x, "mean": jnp.mean, "sum": jnp.sum}[reduction](loss)


class VAE(nnx.Module):
    """Gaussian latent, Bernoulli likelihood.

    Args:
        in_channels: channels of the image.
        latent_dim: size of the latent vector.
        hidden_dims: channels after each halving of the image.
        image_size: height and width, a multiple of 2 ** len(hidden_dims).
    """

    def __init__(
        self,
        in_channels: int = 1,
        latent_dim: int = 8,
        hidden_dims: Optional[List[int]] = None,
        image_size: int = 16,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.deterministic = False
        self.rngs = rngs
        self.latent_dim = latent_dim

        modules = []
        if hidden_dims is None:
            hidden_dims = [8, 16]
        self.top_size = image_size // 2 ** len(hidden_dims)
        self.top_channels = hidden_dims[-1]

        # Build Encoder
        channels = in_channels
        for h_dim in hidden_dims:
            modules.append(
                nnx.Sequential(
                    Conv2d(channels, h_dim, 3, stride=2, padding=1, rngs=rngs),
                    BatchNorm2d(h_dim, rngs=rngs),
                    functools.partial(leaky_relu, negative_slope=0.2),
                )
            )
            channels = h_dim
        self.encoder = nnx.Sequential(*modules)
        flat = hidden_dims[-1] * self.top_size**2
        self.fc_mu = Linear(flat, latent_dim, rngs=rngs)
        self.fc_var = Linear(flat, latent_dim, rngs=rngs)

        # Build Decoder
        modules = []
        self.decoder_input = Linear(latent_dim, flat, rngs=rngs)
        dims = hidden_dims[::-1]
        for i in range(len(dims) - 1):
            modules.append(
                nnx.Sequential(
                    ConvTranspose2d(
                        dims[i], dims[i + 1], 3, stride=2, padding=1, output_padding=1, rngs=rngs
                    ),
                    BatchNorm2d(dims[i + 1], rngs=rngs),
                    functools.partial(leaky_relu, negative_slope=0.2),
                )
            )
        self.decoder = nnx.Sequential(*modules)
        self.final_layer = nnx.Sequential(
            ConvTranspose2d(
                dims[-1], dims[-1], 3, stride=2, padding=1, output_padding=1, rngs=rngs
            ),
            functools.partial(leaky_relu, negative_slope=0.2),
            Conv2d(dims[-1], in_channels, 3, padding=1, rngs=rngs),
            jax.nn.sigmoid,
        )

    def encode(self, x: jax.Array) -> Tuple[jax.Array, jax.Array]:
        """Mean and log-variance of q(z | x), each of shape (B, latent_dim)."""
        result = self.encoder(x)
        result = result.reshape(result.shape[0], -1)
        return self.fc_mu(result), self.fc_var(result)

    def decode(self, z: jax.Array) -> jax.Array:
        """Maps latent codes onto the image space."""
        result = self.decoder_input(z)
        result = result.reshape(-1, self.top_channels, self.top_size, self.top_size)
        result = self.decoder(result)
        return self.final_layer(result)

    def reparameterize(self, mu: jax.Array, logvar: jax.Array) -> jax.Array:
        """Sample from N(mu, var) by the reparameterization trick; the mean itself in eval mode."""
        if self.deterministic:
            return mu
        std = jnp.exp(0.5 * logvar)
        eps = self.rngs.normal(std.shape, std.dtype)
        return eps * std + mu

    def __call__(self, x: jax.Array) -> Tuple[jax.Array, jax.Array, jax.Array]:
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar

    def sample(self, num_samples: int) -> jax.Array:
        """Images decoded from draws of the prior."""
        z = self.rngs.normal((num_samples, self.latent_dim))
        return jax.lax.stop_gradient(self.decode(z))


def vae_loss(
    recon: jax.Array, x: jax.Array, mu: jax.Array, logvar: jax.Array, beta: float = 1.0
) -> Dict[str, jax.Array]:
    """Negative evidence lower bound, summed over pixels and averaged over the batch.

    KL(N(mu, sigma), N(0, 1)) = -0.5 * sum(1 + log(sigma^2) - mu^2 - sigma^2)
    """
    recons_loss = binary_cross_entropy(recon, x, reduction="sum") / x.shape[0]
    kld_loss = (-0.5 * (1 + logvar - mu ** 2 - jnp.exp(logvar)).sum(axis=1)).mean(axis=0)
    loss = recons_loss + beta * kld_loss
    return {"loss": loss, "reconstruction": lax.stop_gradient(recons_loss), "kld": lax.stop_gradient(kld_loss)}

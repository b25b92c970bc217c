"""The denoising U-Net of a diffusion model (Ho et al., 2020)."""

import functools
import math
from typing import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax


class Conv2d(nnx.Module):
    """Convolution of (N, C, H, W)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, bias=True, *, rngs
    ):
        self.stride = (stride,) * 2
        self.padding = (padding,) * 2
        shape = out_channels, in_channels, kernel_size, kernel_size
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        bias_init = rngs.params.uniform(shape[:1], minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init) if bias else None

    def __call__(self, input):
        bias = None if self.bias is None else self.bias[...]
        padding = [(p, p) for p in self.padding]
        batched = input if input.ndim == 4 else input[None]
        output = lax.conv_general_dilated(batched, self.weight[...], self.stride, padding)
        output = output if bias is None else output + bias.reshape(-1, 1, 1)
        return output if batched is input else output[0]


class GroupNorm(nnx.Module):
    """Normalisation of (N, C, *) over groups of C / num_groups channels and all later axes."""

    def __init__(self, num_groups, num_channels, eps=1e-5, *, rngs: nnx.Rngs | None = None):
        self.num_groups, self.eps = num_groups, eps
        self.weight = nnx.Param(jnp.ones(num_channels))
        self.bias = nnx.Param(jnp.zeros(num_channels))

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        x = x.reshape(len(x), self.num_groups, -1)
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        x = ((x - mean) * lax.rsqrt(var + self.eps)).reshape(input.shape)
        shape = (-1, *(1,) * (input.ndim - 2))
        x = x * self.weight[...].reshape(shape) + self.bias[...].reshape(shape)
        return x.astype(input.dtype)


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        super().__init__(in_features, out_features, kernel_init=init, bias_init=init, rngs=rngs)


def identity(input):
    """The input itself."""
    return input


def chunk(x: jax.Array, chunks: int, axis: int = 0) -> list[jax.Array]:
    """At most ``chunks`` pieces of ⌈n / chunks⌉ elements along ``axis``, the last one maybe smaller."""
    size = max(-(-x.shape[axis] // chunks), 1)
    return jnp.split(x, np.arange(size, x.shape[axis], size), axis=axis)


def _targets(input, scale_factor):
    """(axis, input size, output size, input positions per output position) of each spatial axis.

    A given scale_factor also sets the step, unless ``recompute``.
    """
    rank = input.ndim - 2
    given = None if scale_factor is None else scale_factor
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    for axis, old, value in zip(range(2, input.ndim), input.shape[2:], given, strict=True):
        new = value if scale_factor is None else math.floor(old * value)
        own_step = scale_factor is None
        yield axis, old, new, old / new if own_step else 1 / value


def interpolate_nearest(input, scale_factor=None):
    """Nearest neighbour resize of (N, C, …); ``exact`` is torch's "nearest-exact"."""
    for axis, old, new, step in _targets(input, scale_factor):
        at = (np.arange(new, dtype=np.float32) + np.float32(0.5 * False)) * np.float32(step)
        index = np.minimum(at.astype(int), old - 1)
        if new == 2 * old:
            index = np.arange(new) // 2
        times = max(new // old, 1)
        if np.array_equal(index, np.arange(old).repeat(times)):
            input = jnp.repeat(input, times, axis)
        else:
            input = jnp.take(input, index, axis)
    return input


def clamp(x: jax.Array, min=None, max=None) -> jax.Array:
    """``x`` bounded to [min, max] (numbers or arrays); the gradient at a bound is 1, in jnp.clip it is 1/2; of NaN it is 0."""
    if min is not None:
        x = jnp.where(x >= min, x, jnp.where(x < min, min, lax.stop_gradient(x)))
    if max is not None:
        x = jnp.where(x <= max, x, jnp.where(x > max, max, lax.stop_gradient(x)))
    return x


class SinusoidalPosEmb(nnx.Module):
    """Sines and cosines of the timestep at geometrically spaced frequencies."""

    def __init__(self, dim: int, theta: int = 10000, *, rngs: nnx.Rngs):
        self.dim = dim
        self.theta = theta

    def __call__(self, t: jax.Array) -> jax.Array:
        half_dim = self.dim // 2
        emb = math.log(self.theta) / (half_dim - 1)
        emb = jnp.exp(jnp.arange(half_dim) * -emb)
        emb = t[:, None] * emb[None, :]
        emb = jnp.concatenate((jnp.sin(emb), jnp.cos(emb)), axis=-1)
        return emb


class Block(nnx.Module):
    """Convolution, group normalisation, an optional scale and shift, SiLU."""

    def __init__(self, dim, dim_out, groups=4, *, rngs: nnx.Rngs):
        self.proj = Conv2d(dim, dim_out, 3, padding=1, rngs=rngs)
        self.norm = GroupNorm(groups, dim_out, rngs=rngs)
        self.act = jax.nn.silu

    def __call__(self, x, scale_shift=None):
        x = self.proj(x)
        x = self.norm(x)
        if scale_shift is not None:
            scale, shift = scale_shift
            x = x * (scale + 1) + shift
        return self.act(x)


class ResnetBlock(nnx.Module):
    def __init__(self, dim, dim_out, *, time_emb_dim=None, groups=4, rngs: nnx.Rngs):
        self.mlp = (
            nnx.Sequential(
                jax.nn.silu, Linear(time_emb_dim, dim_out * 2, rngs=rngs)
            ) if time_emb_dim else None
        )
        self.block1 = Block(dim, dim_out, groups=groups, rngs=rngs)
        self.block2 = Block(dim_out, dim_out, groups=groups, rngs=rngs)
        self.res_conv = Conv2d(dim, dim_out, 1, rngs=rngs) if dim != dim_out else identity

    def __call__(self, x, time_emb=None):
        scale_shift = None
        if self.mlp is not None and time_emb is not None:
            time_emb = self.mlp(time_emb)
            time_emb = time_emb[:, :, None, None]
            scale_shift = chunk(time_emb, 2, axis=1)
        h = self.block1(x, scale_shift=scale_shift)
        h = self.block2(h)
        return h + self.res_conv(x)


class Attention(nnx.Module):
    """Self-attention over the pixels, with a residual connection."""

    def __init__(self, dim, heads=2, dim_head=8, *, rngs: nnx.Rngs):
        self.scale = dim_head**-0.5
        self.heads = heads
        hidden_dim = dim_head * heads
        self.norm = GroupNorm(1, dim, rngs=rngs)
        self.to_qkv = Conv2d(dim, hidden_dim * 3, 1, bias=False, rngs=rngs)
        self.to_out = Conv2d(hidden_dim, dim, 1, rngs=rngs)

    def __call__(self, x):
        b, c, h, w = x.shape
        qkv = jnp.split(self.to_qkv(self.norm(x)), 3, axis=1)
        q, k, v = map(lambda t: t.reshape(b, self.heads, -1, h * w), qkv)
        q = q * self.scale
        sim = jnp.einsum("b h d i, b h d j -> b h i j", q, k)
        attn = jax.nn.softmax(sim)
        out = jnp.einsum("b h i j, b h d j -> b h i d", attn, v)
        out = out.transpose(0, 1, 3, 2).reshape(b, -1, h, w)
        return self.to_out(out) + x


class Upsample(nnx.Module):
    def __init__(self, dim, dim_out, *, rngs: nnx.Rngs):
        self.conv = Conv2d(dim, dim_out, 3, padding=1, rngs=rngs)

    def __call__(self, x):
        x = interpolate_nearest(x, scale_factor=2.0)
        return self.conv(x)


class DiffusionUNet(nnx.Module):
    """Predicts the noise in an image at a timestep.

    Args:
        dim: channels at full resolution.
        dim_mults: channels of each level, as multiples of dim; every level halves the image.
        channels: channels of the image.
    """

    def __init__(
        self, dim: int = 8, dim_mults: Sequence[int] = (1, 2), channels: int = 3, *, rngs: nnx.Rngs
    ):
        self.channels = channels
        self.init_conv = Conv2d(channels, dim, 7, padding=3, rngs=rngs)
        dims = [dim, *map(lambda m: dim * m, dim_mults)]
        in_out = list(zip(dims[:-1], dims[1:]))

        # time embeddings
        time_dim = dim * 4
        self.time_mlp = nnx.Sequential(
            SinusoidalPosEmb(dim, rngs=rngs),
            Linear(dim, time_dim, rngs=rngs),
            functools.partial(jax.nn.gelu, approximate=False),
            Linear(time_dim, time_dim, rngs=rngs),
        )

        # layers
        self.downs = nnx.List([])
        self.ups = nnx.List([])
        for dim_in, dim_out in in_out:
            self.downs.append(
                nnx.List(
                    [
                        ResnetBlock(dim_in, dim_in, time_emb_dim=time_dim, rngs=rngs),
                        Conv2d(dim_in, dim_out, 4, stride=2, padding=1, rngs=rngs),
                    ]
                )
            )

        mid_dim = dims[-1]
        self.mid_block1 = ResnetBlock(mid_dim, mid_dim, time_emb_dim=time_dim, rngs=rngs)
        self.mid_attn = Attention(mid_dim, rngs=rngs)
        self.mid_block2 = ResnetBlock(mid_dim, mid_dim, time_emb_dim=time_dim, rngs=rngs)

        for dim_in, dim_out in reversed(in_out):
            self.ups.append(
                nnx.List(
                    [
                        Upsample(dim_out, dim_in, rngs=rngs),
                        ResnetBlock(dim_in * 2, dim_in, time_emb_dim=time_dim, rngs=rngs),
                    ]
                )
            )

        self.final_block = ResnetBlock(dim * 2, dim, time_emb_dim=time_dim, rngs=rngs)
        self.final_conv = Conv2d(dim, channels, 1, rngs=rngs)

    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        """x: (B, channels, H, W) noisy images; time: (B,) timesteps."""
        x = self.init_conv(x)
        r = x
        t = self.time_mlp(time)

        h = []
        for block, downsample in self.downs:
            x = block(x, t)
            h.append(x)
            x = downsample(x)

        x = self.mid_block1(x, t)
        x = self.mid_attn(x)
        x = self.mid_block2(x, t)

        for upsample, block in self.ups:
            x = upsample(x)
            x = jnp.concatenate((x, h.pop()), axis=1)
            x = block(x, t)

        x = jnp.concatenate((x, r), axis=1)
        x = self.final_block(x, t)
        return self.final_conv(x)


def cosine_beta_schedule(timesteps: int, s: float = 0.008) -> jax.Array:
    """Cosine schedule as proposed in https://openreview.net/forum?id=-NEXDKk8gZ"""
    steps = timesteps + 1
    t = jnp.linspace(0, timesteps, steps, dtype=jnp.float32) / timesteps
    alphas_cumprod = jnp.cos((t + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return clamp(betas, min=0, max=0.999)

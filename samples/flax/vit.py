"""Vision Transformer (Dosovitskiy et al., 2020)."""

import math
from collections import OrderedDict
from functools import partial
from typing import Callable, Tuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


class Conv2d(nnx.Module):
    """Convolution of (N, C, H, W)."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, *, rngs):
        self.stride = (stride,) * 2
        self.padding = 0, 0
        shape = out_channels, in_channels, kernel_size, kernel_size
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


class NamedSequential(nnx.Sequential):
    """Calls its layers in turn; each is an attribute under its own name, as in torch's state_dict."""

    def __init__(self, layers=(), *, rngs: nnx.Rngs | None = None):
        self.names = ()
        for name, layer in layers.items() if hasattr(layers, "items") else layers:
            self.add_module(name, layer)

    def add_module(self, name, layer):
        if name not in self.names:
            self.names += (name,)
        setattr(self, name, layer)

    def append(self, layer):
        self.add_module(str(len(self.names)), layer)
        return self

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        found = self.layers[index]
        if isinstance(index, int):
            return found
        return NamedSequential(zip(self.names[index], found, strict=True))

    def __setitem__(self, index, layer):
        setattr(self, self.names[index], layer)

    @property
    def layers(self):
        return tuple(getattr(self, name) for name in self.names)

    def __call__(self, input):
        for layer in self.layers:
            input = layer(input)
        return input


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs, **options):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        options = {"kernel_init": init, "bias_init": init, **options}
        super().__init__(in_features, out_features, rngs=rngs, **options)


def LayerNorm(
    normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None, *, rngs
) -> nnx.LayerNorm:
    """nnx normalises one axis, and its fast variance E[x²] − E[x]² loses digits.

    Without a weight nnx would take several axes without a word, so that the class that knows both comes first."""
    if isinstance(normalized_shape, (tuple, list)) and len(normalized_shape) == 1:
        normalized_shape = normalized_shape[0]
    return nnx.LayerNorm(
        normalized_shape,
        epsilon=eps,
        use_scale=elementwise_affine,
        use_bias=bias,
        use_fast_variance=False,
        param_dtype=dtype or jnp.float32,
        rngs=rngs,
    )


def mask_scores(scores, mask):
    """Apply a mask that covers the first keys of scores (N, H, L, S): (L, S), (N·H, L, S) or 4-D."""
    if mask is None:
        return scores
    mask = mask.reshape(*scores.shape[:2], *mask.shape[1:]) if mask.ndim == 3 else mask
    mask = jnp.where(mask, -jnp.inf, 0) if mask.dtype == bool else mask
    missing = scores.shape[-1] - mask.shape[-1]
    return scores + jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)]).astype(scores.dtype)


class MultiheadAttention(nnx.Module):
    """Attention of queries (L, N, E) to keys (S, N, kdim), batch first on request, N optional.

    Returns the output and, when ``need_weights``, the weights: (N, L, S), or (N, num_heads, L, S) unless
    averaged. A boolean mask is True where attention is *blocked*; any other is added to the scores.
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        batch_first=False,
        dtype=jnp.float32,
        *,
        rngs: nnx.Rngs,
    ):
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.batch_first, self.add_zero_attn = batch_first, False
        self.dropout = dropout
        self._dropping = nnx.Dropout(dropout, rngs=rngs)
        uniform = nnx.initializers.xavier_uniform(in_axis=1, out_axis=0)
        sizes = {"q": embed_dim, "k": embed_dim, "v": embed_dim}
        self.packed = set(sizes.values()) == {embed_dim}
        if self.packed:
            shape = (3 * embed_dim, embed_dim)
            self.in_proj_weight = nnx.Param(uniform(rngs.params(), shape, dtype))
        else:
            for name, size in sizes.items():
                weight = nnx.Param(uniform(rngs.params(), (embed_dim, size), dtype))
                setattr(self, f"{name}_proj_weight", weight)
        self.in_proj_bias = nnx.Param(jnp.zeros(3 * embed_dim, dtype))
        options = {"use_bias": True, "bias_init": nnx.initializers.zeros, "param_dtype": dtype}
        self.out_proj = Linear(embed_dim, embed_dim, rngs=rngs, **options)
        self.bias_k = self.bias_v = None

    def __call__(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if query.ndim == 2:
            axis = 0 if self.batch_first else 1
            query, key, value = (jnp.expand_dims(x, axis) for x in (query, key, value))
            mask = None if key_padding_mask is None else key_padding_mask[None]
            output, weights = self(
                query, key, value, mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
            return output.squeeze(axis), None if weights is None else weights[0]
        if not self.batch_first:
            query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
        q, k, v = self.project(query, key, value)
        if self.bias_k is not None:
            biases = (jnp.tile(b[...], (len(k), 1, 1)) for b in (self.bias_k, self.bias_v))
            k, v = (jnp.append(x, b, axis=1) for x, b in zip((k, v), biases, strict=True))
        if self.add_zero_attn:
            k, v = (jnp.pad(x, ((0, 0), (0, 1), (0, 0))) for x in (k, v))
        q, k, v = (x.reshape(*x.shape[:2], self.num_heads, self.head_dim) for x in (q, k, v))
        scores = jnp.einsum("nlhd,nshd->nhls", q * self.head_dim**-0.5, k)
        if is_causal and key_padding_mask is None and not need_weights:
            attn_mask = ~jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = mask_scores(scores, attn_mask)
        if key_padding_mask is not None:
            scores = mask_scores(scores, key_padding_mask[:, None, None, :])
        # A row that may attend nowhere gives NaN with need_weights and 0 without, as in torch.
        weights = jax.nn.softmax(scores, where=None if need_weights else scores > -jnp.inf)
        weights = self._dropping(weights)
        output = jnp.einsum("nhls,nshd->nlhd", weights, v).reshape(query.shape)
        output = self.out_proj(output)
        if not self.batch_first:
            output = output.swapaxes(0, 1)
        if not need_weights:
            return output, None
        return output, weights.mean(1) if average_attn_weights else weights

    def project(self, query, key, value):
        if self.packed:
            w_q, w_k, w_v = jnp.split(self.in_proj_weight[...], 3)
        else:
            names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
            w_q, w_k, w_v = (getattr(self, name)[...] for name in names)
        q, k, v = query @ w_q.T, key @ w_k.T, value @ w_v.T
        b_q, b_k, b_v = jnp.split(self.in_proj_bias[...], 3)
        return q + b_q, k + b_k, v + b_v


def identity(input):
    """The input itself."""
    return input


class PatchEmbed(nnx.Module):
    """2D image to patch embedding."""

    def __init__(
        self,
        img_size: int = 32,
        patch_size: int = 8,
        in_chans: int = 3,
        embed_dim: int = 32,
        *,
        rngs: nnx.Rngs,
    ):
        self.img_size = (img_size, img_size)
        self.patch_size = (patch_size, patch_size)
        self.grid_size = (img_size // patch_size, img_size // patch_size)
        self.num_patches = self.grid_size[0] * self.grid_size[1]
        self.proj = Conv2d(in_chans, embed_dim, patch_size, stride=patch_size, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        B, C, H, W = x.shape
        assert H == self.img_size[0] and W == self.img_size[1], (
            f"Input image size ({H}*{W}) doesn't match model ({self.img_size[0]}*{self.img_size[1]})."
        )
        h = self.proj(x)
        return h.reshape(*h.shape[:2], -1).swapaxes(1, 2)  # BCHW -> BNC


class MLPBlock(NamedSequential):
    """Transformer MLP block."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float, *, rngs: nnx.Rngs):
        super().__init__(
            OrderedDict(
                [
                    ("fc1", Linear(in_dim, mlp_dim, rngs=rngs)),
                    ("act", partial(jax.nn.gelu, approximate=False)),
                    ("drop1", nnx.Dropout(dropout, rngs=rngs)),
                    ("fc2", Linear(mlp_dim, in_dim, rngs=rngs)),
                    ("drop2", nnx.Dropout(dropout, rngs=rngs)),
                ]
            )
        )


class EncoderBlock(nnx.Module):
    """Pre-norm Transformer encoder block."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        norm_layer: Callable[..., nnx.Module] = partial(LayerNorm, eps=1e-6),
        *,
        rngs: nnx.Rngs,
    ):
        self.ln_1 = norm_layer(hidden_dim, rngs=rngs)
        self.self_attention = MultiheadAttention(
            hidden_dim, num_heads, dropout=dropout, batch_first=True, rngs=rngs
        )
        self.dropout = nnx.Dropout(dropout, rngs=rngs)
        self.ln_2 = norm_layer(hidden_dim, rngs=rngs)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout, rngs=rngs)

    def __call__(self, input: jax.Array) -> jax.Array:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + input

        y = self.ln_2(x)
        y = self.mlp(y)
        return x + y


class VisionTransformer(nnx.Module):
    """ViT classifier: patches, a class token, learned positions and an encoder."""

    def __init__(
        self,
        img_size: int = 32,
        patch_size: int = 8,
        in_chans: int = 3,
        num_classes: int = 10,
        embed_dim: int = 32,
        depth: int = 2,
        num_heads: int = 4,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        *,
        rngs: nnx.Rngs,
    ):
        self.embed_dim = embed_dim
        self.patch_embed = PatchEmbed(img_size, patch_size, in_chans, embed_dim, rngs=rngs)

        self.cls_token = nnx.Param(jnp.zeros((1, 1, embed_dim)))
        self.pos_embed = nnx.Param(
            0.02 * rngs.normal((1, self.patch_embed.num_patches + 1, embed_dim), jnp.float32)
        )
        self.pos_drop = nnx.Dropout(dropout, rngs=rngs)

        self.blocks = nnx.List(
            [
                EncoderBlock(num_heads, embed_dim, int(embed_dim * mlp_ratio), dropout, rngs=rngs)
                for _ in range(depth)
            ]
        )
        self.norm = nnx.LayerNorm(embed_dim, use_fast_variance=False, rngs=rngs)
        self.head = Linear(embed_dim, num_classes, rngs=rngs) if num_classes > 0 else identity

        self.cls_token[...] = 0.02 * rngs.params.truncated_normal(
            -100.0, 100.0, self.cls_token.shape, self.cls_token.dtype
        )
        for _, module in nnx.iter_modules(self):
            self._init_weights(module, rngs=rngs)

    @staticmethod
    def _init_weights(m: nnx.Module, *, rngs: nnx.Rngs) -> None:
        if isinstance(m, Linear):
            m.kernel[...] = 0.02 * rngs.params.truncated_normal(
                -100.0, 100.0, m.kernel.shape, m.kernel.dtype
            )
            if m.bias is not None:
                m.bias[...] = jnp.full_like(m.bias[...], 0)
        elif isinstance(m, nnx.LayerNorm):
            m.bias[...] = jnp.full_like(m.bias[...], 0)
            m.scale[...] = jnp.full_like(m.scale[...], 1.0)

    def forward_features(self, x: jax.Array) -> Tuple[jax.Array, jax.Array]:
        """The class token and the patch tokens after the last block."""
        n = x.shape[0]
        x = self.patch_embed(x)
        cls_tokens = jnp.broadcast_to(self.cls_token[...], (n, *self.cls_token.shape[-2:]))  # stole cls_tokens impl from Phil Wang, thanks
        x = jnp.concatenate((cls_tokens, x), axis=1)
        x = self.pos_drop(x + self.pos_embed[...])
        for blk in self.blocks:
            x = blk(x)
        x = self.norm(x)
        return x[:, 0], x[:, 1:]

    def __call__(self, x: jax.Array) -> jax.Array:
        cls, _ = self.forward_features(x)
        return self.head(cls)

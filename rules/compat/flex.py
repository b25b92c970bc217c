"""``torch.nn.attention.flex_attention``: attention whose scores and mask are functions of the place.

torch's own definition of what its kernels compute: all scores, which XLA fuses as it can.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


class BlockMask:
    """The keys that a query attends to, where ``mask_mod(batch, head, query, key)`` holds.

    ``shape`` is (batches, heads, queries, keys); one batch or one head is that of all.
    """

    def __init__(self, mask_mod, shape):
        self.mask_mod = mask_mod
        self.shape = shape


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN):
    """The mask of a function, asked when ``flex_attention`` runs."""
    return BlockMask(mask_mod, (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN))


def over_places(mod, shape, scores=None):
    """``mod(batch, head, query, key)`` at all places of (batches, heads, queries, keys); of ``scores`` of that shape, too."""
    first = () if scores is None else (0,)
    for axes in (
        (None, None, None, 0),
        (None, None, 0, None),
        (None, 0, None, None),
        (0, None, None, None),
    ):
        mod = jax.vmap(mod, in_axes=first + axes)
    places = [jnp.arange(size) for size in shape]
    return mod(*places) if scores is None else mod(scores, *places)


def create_mask(mask_mod, B, H, Q_LEN, KV_LEN):
    """Where the function of a mask holds: (B, H, Q_LEN, KV_LEN), bool."""
    return over_places(mask_mod, (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN))


def and_masks(*mask_mods):
    """The function of a mask that holds where all hold."""

    def and_mask(b, h, q_idx, kv_idx):
        result = jnp.ones((), bool)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods):
    """The function of a mask that holds where one holds."""

    def or_mask(b, h, q_idx, kv_idx):
        result = jnp.zeros((), bool)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def flex_attention(
    query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False
):
    """Attention of (B, H, L, E) over (B, H, S, E) and (B, H, S, V) with scores changed by ``score_mod``.

    ``score_mod(score, batch, head, query, key)`` follows the scale; a query that attends to nothing gets 0.
    ``enable_gqa``: of H heads, several in a row share one of key and value.
    Errors: ValueError for a mask that was made for other sizes.
    """
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(f"{query.shape[1]} heads of queries and {key.shape[1]} of keys")
    groups = query.shape[1] // key.shape[1]
    key, value = (jnp.repeat(x, groups, axis=1) if groups > 1 else x for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    wide = jnp.promote_types(query.dtype, jnp.float32)
    scores = query.astype(wide) @ key.astype(wide).swapaxes(-2, -1) * scale
    changed = scores
    if score_mod is not None:
        changed = over_places(score_mod, scores.shape, scores).astype(wide)
    if block_mask is not None:
        *several, _, _ = block_mask.shape
        fits = all(n in (1, m) for n, m in zip(several, scores.shape[:2], strict=True))
        if not fits or block_mask.shape[2:] != scores.shape[2:]:
            raise ValueError(f"a mask {block_mask.shape} for scores {scores.shape}")
        changed = jnp.where(over_places(block_mask.mask_mod, scores.shape), changed, -jnp.inf)
    some = jnp.any(changed != -jnp.inf, axis=-1, keepdims=True)
    weights = jnp.where(some, jax.nn.softmax(jnp.where(some, changed, 0), axis=-1), 0)
    return weights.astype(query.dtype) @ value.astype(query.dtype)

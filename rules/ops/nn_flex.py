"""``torch.nn.attention.flex_attention``."""

from __future__ import annotations

from rules.compat.flex import BlockMask
from rules.compat.flex import and_masks as all_masks
from rules.compat.flex import create_block_mask as block_mask_of
from rules.compat.flex import create_mask as mask_of
from rules.compat.flex import flex_attention as attention
from rules.compat.flex import or_masks as any_mask
from rules.registry import op, unsupported


@op("torch.nn.attention.flex_attention.create_block_mask")
def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=128,
    _compile=False,
    separate_full_blocks=True,
    compute_dq_write_order=False,
    dq_kv_order=True,
) -> BlockMask:
    """Which keys a query attends to. The blocks are those of a kernel, and change nothing of what is computed."""
    return block_mask_of(mask_mod, B, H, Q_LEN, KV_LEN)


@op("torch.nn.attention.flex_attention.create_mask")
def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None) -> Tensor["bool"]:
    """The mask of a function, which is one of the four numbers of a place here, and not one of a score."""
    return mask_of(mod_fn, B, H, Q_LEN, KV_LEN)


@op("torch.nn.attention.flex_attention.and_masks")
def and_masks(*mask_mods):
    """A function that holds where all hold."""
    return all_masks(*mask_mods)


@op("torch.nn.attention.flex_attention.or_masks")
def or_masks(*mask_mods):
    """A function that holds where one holds."""
    return any_mask(*mask_mods)


@op("torch.nn.attention.flex_attention.flex_attention")
def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
) -> Tensor["same"]:
    """Attention with scores changed, and left out, by functions of the place."""
    if return_lse or return_aux is not None:
        unsupported("flex_attention() that returns more than the output")
    return attention(
        *(query, key, value),
        score_mod=score_mod,
        block_mask=block_mask,
        scale=scale,
        enable_gqa=enable_gqa,
    )

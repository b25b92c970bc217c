"""Masks of places as what is added to scores."""

import torch


def _prepare_4d_attention_mask(mask, dtype, tgt_len=None):
    """(batch, keys) of 0 and 1 → (batch, 1, queries, keys): 0, or the least number there is where the mask is 0."""
    bsz, src_len = mask.size()
    tgt_len = tgt_len if tgt_len is not None else src_len
    expanded = mask[:, None, None, :].expand(bsz, 1, tgt_len, src_len).to(dtype)
    inverted = 1.0 - expanded
    return inverted.masked_fill(inverted.to(torch.bool), torch.finfo(dtype).min)

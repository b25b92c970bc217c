"""Masks of places as what is added to scores."""

import torch


def _prepare_4d_attention_mask(mask, dtype, tgt_len=None):
    """(batch, keys) of 0 and 1 → (batch, 1, queries, keys): 0, or the least number there is where the mask is 0."""
    bsz, src_len = mask.size()
    tgt_len = tgt_len if tgt_len is not None else src_len
    expanded = mask[:, None, None, :].expand(bsz, 1, tgt_len, src_len).to(dtype)
    inverted = 1.0 - expanded
    return inverted.masked_fill(inverted.to(torch.bool), torch.finfo(dtype).min)


def _prepare_4d_attention_mask_for_sdpa(mask, dtype, tgt_len=None):
    """The same: that of ones is left as it is, with the same result."""
    return _prepare_4d_attention_mask(mask, dtype, tgt_len)


class AttentionMaskConverter:
    """Masks of places, (batch, keys), as what is added to scores, (batch, 1, queries, keys)."""

    def __init__(self, is_causal, sliding_window=None):
        if sliding_window is not None and sliding_window <= 0:
            raise ValueError(f"sliding_window={sliding_window} is not positive")
        self.is_causal = is_causal
        self.sliding_window = sliding_window

    def to_causal_4d(self, batch_size, query_length, key_value_length, dtype, device="cpu"):
        """What comes before; None for one query that looks at all."""
        if not self.is_causal:
            raise ValueError("a mask of what comes before is asked of a converter of other masks")
        if query_length > 1 or self.sliding_window is not None:
            return self._make_causal_mask(
                (batch_size, query_length),
                dtype,
                device,
                key_value_length - query_length,
                self.sliding_window,
            )
        return None

    def to_4d(self, attention_mask_2d, query_length, dtype, key_value_length=None):
        """What a mask of places leaves; of what comes before, where the converter says so."""
        expanded = self._expand_mask(attention_mask_2d, dtype, tgt_len=query_length)
        if self.is_causal and (query_length > 1 or self.sliding_window is not None):
            if key_value_length is None:
                raise ValueError("the number of keys is needed")
            causal = self._make_causal_mask(
                (attention_mask_2d.shape[0], query_length),
                dtype,
                None,
                key_value_length - query_length,
                self.sliding_window,
            )
            expanded = causal.masked_fill(expanded.bool(), torch.finfo(dtype).min)
        elif self.sliding_window is not None:
            raise NotImplementedError("a window is of what comes before only")
        return expanded

    @staticmethod
    def _make_causal_mask(
        input_ids_shape, dtype, device=None, past_key_values_length=0, sliding_window=None
    ):
        bsz, tgt_len = input_ids_shape
        queries = torch.arange(tgt_len)[:, None] + past_key_values_length
        keys = torch.arange(tgt_len + past_key_values_length)[None, :]
        hidden = keys > queries
        if sliding_window is not None:
            hidden = hidden | (keys < queries - sliding_window)
        mask = torch.where(hidden, torch.finfo(dtype).min, torch.zeros((), dtype=dtype))
        return mask[None, None, :, :].expand(bsz, 1, tgt_len, tgt_len + past_key_values_length)

    @staticmethod
    def _expand_mask(mask, dtype, tgt_len=None):
        return _prepare_4d_attention_mask(mask, dtype, tgt_len)

    @staticmethod
    def _unmask_unattended(expanded_mask, min_dtype):
        """A query that looks at nothing looks at all."""
        hidden = torch.all(expanded_mask == min_dtype, dim=-1, keepdim=True)
        return expanded_mask * ~hidden

    @staticmethod
    def _ignore_causal_mask_sdpa(
        attention_mask,
        inputs_embeds,
        past_key_values_length,
        sliding_window=None,
        is_training=False,
    ):
        """Whether attention looks at what comes before by itself. A mask of ones is left as it is, with the same result."""
        query_length = inputs_embeds.shape[1]
        key_value_length = query_length + past_key_values_length
        is_within = sliding_window is None or key_value_length < sliding_window
        return (
            attention_mask is None
            and is_within
            and (query_length == 1 or past_key_values_length == 0)
        )


def _prepare_4d_causal_attention_mask(
    attention_mask, input_shape, inputs_embeds, past_key_values_length, sliding_window=None
):
    """What comes before, and what a mask of places or one of four axes leaves of it."""
    converter = AttentionMaskConverter(is_causal=True, sliding_window=sliding_window)
    dtype = inputs_embeds.dtype
    key_value_length = input_shape[-1] + past_key_values_length
    if attention_mask is None:
        return converter.to_causal_4d(input_shape[0], input_shape[-1], key_value_length, dtype)
    if attention_mask.dim() == 4:
        inverted = 1.0 - attention_mask
        return inverted.masked_fill(inverted.to(torch.bool), torch.finfo(dtype).min)
    return converter.to_4d(
        attention_mask, input_shape[-1], dtype=dtype, key_value_length=key_value_length
    )


def _prepare_4d_causal_attention_mask_for_sdpa(
    attention_mask, input_shape, inputs_embeds, past_key_values_length, sliding_window=None
):
    """The same; None where attention looks at what comes before by itself, and one of four axes as it is."""
    converter = AttentionMaskConverter(is_causal=True, sliding_window=sliding_window)
    dtype = inputs_embeds.dtype
    key_value_length = input_shape[-1] + past_key_values_length
    if converter._ignore_causal_mask_sdpa(
        attention_mask, inputs_embeds, past_key_values_length, sliding_window
    ):
        return None
    if attention_mask is None:
        return converter.to_causal_4d(input_shape[0], input_shape[-1], key_value_length, dtype)
    if attention_mask.dim() == 4:
        return attention_mask
    return converter.to_4d(
        attention_mask, input_shape[-1], dtype=dtype, key_value_length=key_value_length
    )


def _create_4d_causal_attention_mask(
    input_shape, dtype, device=None, past_key_values_length=0, sliding_window=None
):
    """What comes before."""
    converter = AttentionMaskConverter(is_causal=True, sliding_window=sliding_window)
    key_value_length = past_key_values_length + input_shape[-1]
    return converter.to_causal_4d(input_shape[0], input_shape[-1], key_value_length, dtype)

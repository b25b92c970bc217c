"""Masks of attention: (batch, 1, queries, keys), of what is looked at, or 0 and the least number there is."""

import torch


def and_masks(*mask_functions):
    """What all rules let through."""

    def and_mask(batch_idx, head_idx, q_idx, kv_idx):
        result = mask_functions[0](batch_idx, head_idx, q_idx, kv_idx)
        for mask in mask_functions[1:]:
            result = result & mask(batch_idx, head_idx, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_functions):
    """What any rule lets through."""

    def or_mask(batch_idx, head_idx, q_idx, kv_idx):
        result = mask_functions[0](batch_idx, head_idx, q_idx, kv_idx)
        for mask in mask_functions[1:]:
            result = result | mask(batch_idx, head_idx, q_idx, kv_idx)
        return result

    return or_mask


def causal_mask_function(batch_idx, head_idx, q_idx, kv_idx):
    """What comes before, and the token itself."""
    return kv_idx <= q_idx


def sliding_window_overlay(sliding_window):
    """No more than so many tokens back."""

    def inner_mask(batch_idx, head_idx, q_idx, kv_idx):
        return kv_idx > q_idx - sliding_window

    return inner_mask


def chunked_overlay(chunk_size, left_padding):
    """Tokens of one piece of the text."""

    def inner_mask(batch_idx, head_idx, q_idx, kv_idx):
        first = left_padding[batch_idx]
        return (kv_idx - first) // chunk_size == (q_idx - first) // chunk_size

    return inner_mask


def sliding_window_causal_mask_function(sliding_window):
    """What comes before, no more than so many tokens back."""
    return and_masks(sliding_window_overlay(sliding_window), causal_mask_function)


def chunked_causal_mask_function(chunk_size, left_padding):
    """What comes before, of one piece of the text."""
    return and_masks(chunked_overlay(chunk_size, left_padding), causal_mask_function)


def padding_mask_function(padding_mask):
    """What a mask of keys, (batch, keys), lets through."""

    def inner_mask(batch_idx, head_idx, q_idx, kv_idx):
        return padding_mask[batch_idx, kv_idx]

    return inner_mask


def packed_sequence_mask_function(packed_sequence_mask):
    """Tokens of one of several texts in a row."""

    def inner_mask(batch_idx, head_idx, q_idx, kv_idx):
        return packed_sequence_mask[batch_idx, q_idx] == packed_sequence_mask[batch_idx, kv_idx]

    return inner_mask


def find_packed_sequence_indices(position_ids):
    """The text in a row that each token is of: one begins where a place does not follow on the one before."""
    before = position_ids[:, :1] - 1
    return (torch.diff(position_ids, prepend=before, dim=-1) != 1).cumsum(-1)


def _mask(config, mask_function, attention_mask, cache_position, sizes, batch_size, dtype):
    """What rules say of every query and key."""
    kv_length, kv_offset = sizes
    keys = torch.arange(kv_length) + kv_offset
    if attention_mask is not None:
        missing = kv_length + kv_offset - attention_mask.shape[-1]
        if missing > 0:
            attention_mask = torch.nn.functional.pad(attention_mask, (0, missing))
        mask_function = and_masks(mask_function, padding_mask_function(attention_mask))
    batch = torch.arange(batch_size)[:, None, None, None]
    head = torch.arange(1)[None, :, None, None]
    looked = mask_function(
        batch, head, cache_position[None, None, :, None], keys[None, None, None, :]
    )
    looked = looked.expand(batch_size, 1, cache_position.shape[0], kv_length)
    if config._attn_implementation != "eager":
        return looked
    return torch.where(looked, torch.zeros((), dtype=dtype), torch.finfo(dtype).min)


def _created(
    config,
    input_embeds,
    attention_mask,
    cache_position,
    past_key_values,
    position_ids,
    more,
    mask_function,
    layer_idx,
    reach,
):
    """A mask by a rule and more of them; None where attention looks at what comes before by itself."""
    or_mask_function, and_mask_function = more
    batch_size, length = input_embeds.shape[0], input_embeds.shape[1]
    sizes = (length, 0)
    if past_key_values is not None:
        sizes = past_key_values.get_mask_sizes(cache_position, layer_idx)
    is_plain = or_mask_function is None and and_mask_function is None
    if or_mask_function is not None:
        mask_function = or_masks(mask_function, or_mask_function)
    if and_mask_function is not None:
        mask_function = and_masks(mask_function, and_mask_function)
    if position_ids is not None and attention_mask is None and past_key_values is None:
        packed = find_packed_sequence_indices(position_ids.expand(batch_size, -1))
        mask_function = and_masks(mask_function, packed_sequence_mask_function(packed))
        is_plain = False
    queries = cache_position.shape[0]
    is_within = reach is None or sizes[0] < reach
    if config._attn_implementation != "eager" and is_plain and attention_mask is None:
        if is_within and (queries == 1 or queries == sizes[0]):
            return None
    return _mask(
        config, mask_function, attention_mask, cache_position, sizes, batch_size, input_embeds.dtype
    )


def _layer(past_key_values, is_sliding):
    """The first layer of a kind; the first of all where there is none."""
    kinds = getattr(past_key_values, "is_sliding", [])
    return kinds.index(is_sliding) if is_sliding in kinds else 0


def create_causal_mask(
    config,
    input_embeds,
    attention_mask,
    cache_position,
    past_key_values,
    position_ids=None,
    or_mask_function=None,
    and_mask_function=None,
):
    """The mask of layers that look at all that comes before; one of four axes as it is."""
    if attention_mask is not None and attention_mask.ndim == 4:
        return attention_mask
    if attention_mask is not None:
        attention_mask = attention_mask.to(torch.bool)
    return _created(
        config,
        input_embeds,
        attention_mask,
        cache_position,
        past_key_values,
        position_ids,
        (or_mask_function, and_mask_function),
        causal_mask_function,
        _layer(past_key_values, False),
        None,
    )


def create_sliding_window_causal_mask(
    config,
    input_embeds,
    attention_mask,
    cache_position,
    past_key_values,
    position_ids=None,
    or_mask_function=None,
    and_mask_function=None,
):
    """The mask of layers that look back ``config.sliding_window`` tokens; one of four axes as it is."""
    if attention_mask is not None and attention_mask.ndim == 4:
        return attention_mask
    if attention_mask is not None:
        attention_mask = attention_mask.to(torch.bool)
    window = getattr(config, "sliding_window", None)
    if window is None:
        raise ValueError("the configuration has no sliding_window")
    return _created(
        config,
        input_embeds,
        attention_mask,
        cache_position,
        past_key_values,
        position_ids,
        (or_mask_function, and_mask_function),
        sliding_window_causal_mask_function(window),
        _layer(past_key_values, True),
        window,
    )


def create_chunked_causal_mask(
    config,
    input_embeds,
    attention_mask,
    cache_position,
    past_key_values,
    position_ids=None,
    or_mask_function=None,
    and_mask_function=None,
):
    """The mask of layers that look at pieces of ``config.attention_chunk_size``; one of four axes as it is."""
    if attention_mask is not None and attention_mask.ndim == 4:
        return attention_mask
    if attention_mask is not None:
        attention_mask = attention_mask.to(torch.bool)
    size = getattr(config, "attention_chunk_size", None)
    if size is None:
        raise ValueError("the configuration has no attention_chunk_size")
    if attention_mask is not None:
        padding = (attention_mask.cumsum(dim=-1) == 0).sum(dim=-1)
    else:
        padding = torch.zeros(input_embeds.shape[0], dtype=torch.int64)
    return _created(
        config,
        input_embeds,
        attention_mask,
        cache_position,
        past_key_values,
        position_ids,
        (or_mask_function, and_mask_function),
        chunked_causal_mask_function(size, padding),
        _layer(past_key_values, True),
        size,
    )

"""Keyword arguments of kernels that are CUDA's."""

from typing import Any, TypedDict


class FlashAttentionKwargs(TypedDict, total=False):
    """Lengths of sequences in a row."""

    cu_seq_lens_q: Any
    cu_seq_lens_k: Any
    max_length_q: Any
    max_length_k: Any


def is_flash_attn_available():
    """The kernels of flash-attn are CUDA's."""
    return False


def flash_attn_supports_top_left_mask():
    """As above."""
    return False


def _flash_attention_forward(*args, **kwargs):
    """As above."""
    raise NotImplementedError("kernels for attention are not converted")

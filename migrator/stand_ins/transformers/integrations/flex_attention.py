"""Masks of kernels that are torch's."""


class BlockMask:
    """A mask that no port is given."""


def make_flex_block_causal_mask(*args, **kwargs):
    """As above."""
    raise NotImplementedError("flex_attention of transformers is not converted")

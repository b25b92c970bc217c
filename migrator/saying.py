"""Whether a text may be about torch, before anything reads it closely."""

from __future__ import annotations

import re

_METHODS = (
    "parameters named_parameters buffers named_buffers named_modules state_dict load_state_dict zero_grad "
    "unsqueeze permute detach contiguous masked_fill index_select numel view_as expand_as type_as "
    "requires_grad_"
).split()
_SHOWN = re.compile(
    rf"\.(?:{'|'.join(_METHODS)})\("
    r"|\.size\(-?\d+\)|\.view\((?:-?\d|[^()]*,)"  # x.size(0), x.view(b, -1)
    r"|\.[a-z]+_\("  # x.mul_(y)
)


def may_concern_torch(text: str) -> bool:
    """Whether a text says torch, or asks of its arguments what only tensors and modules of torch answer.

    A text that imports JAX has been converted: what it asks there is JAX's to answer.
    """
    return "torch" in text or ("jax" not in text and _SHOWN.search(text) is not None)

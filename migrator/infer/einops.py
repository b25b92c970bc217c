"""Kinds of what einops returns: a pattern says how many axes come out."""

from __future__ import annotations

import re

from migrator.infer import kinds as k
from migrator.infer.signatures import Args


def einops_result(name: str, args: Args) -> k.Kind:
    """The kind of a call of a function of einops by its qualified name."""
    short = name.removeprefix("einops.")
    if short == "unpack":
        return k.Sequence(k.TENSOR)
    if short == "parse_shape":
        return k.Mapping(k.INT)
    if short == "asnumpy":
        return k.Other("numpy.ndarray")
    texts = [str(kind.value) for _, kind in args if isinstance(kind, k.Const)]
    pattern = next((text for text in texts if "->" in text or "*" in text), "")
    tensors = [kind for _, kind in args if isinstance(kind, k.Tensor)]
    tensor = k.Tensor(_axes(pattern), tensors[0].dtype if tensors else None)
    if short == "pack":
        return k.Tuple((tensor, k.Sequence(k.Sequence(k.INT, "tuple"))))
    return tensor


def _axes(pattern: str) -> int | None:
    """The number of axes that the right side of a pattern has; None with an ellipsis."""
    right = pattern.rpartition("->")[2]
    if not pattern or "..." in right:
        return None
    return len(re.sub(r"\([^)]*\)", "_", right).split())

"""What ``torch.func.vjp`` returns, by what its function does."""

from __future__ import annotations

from migrator.infer import kinds as k


def of_pullback(made: k.Kind, has_aux: bool) -> k.Kind:
    """The value, its pullback and, where the function returns two, what it returns beside."""
    if not has_aux:
        return k.Tuple((_of_tensors(made), k.UNKNOWN))
    if isinstance(made, k.Tuple) and len(made.items) == 2:
        value, aux = map(_of_tensors, made.items)
        return k.Tuple((value, k.UNKNOWN, aux))
    return k.Tuple((k.UNKNOWN,) * 3)


def _of_tensors(kind: k.Kind) -> k.Kind:
    """A tensor, or several; nothing deeper, so that what calls itself comes to an end."""
    if isinstance(kind, k.Tuple):
        return k.Tuple(tuple(one if isinstance(one, k.Tensor) else k.UNKNOWN for one in kind.items))
    return kind if isinstance(kind, k.Tensor) else k.UNKNOWN

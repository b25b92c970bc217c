"""What ``torch.func.vjp`` returns, by what its function does."""

from __future__ import annotations

from migrator.infer import kinds as k


def of_pullback(made: k.Kind, has_aux: bool) -> k.Kind:
    """The value, its pullback and, where the function returns two, what it returns beside."""
    if not has_aux:
        return k.Tuple((made, k.UNKNOWN))
    if isinstance(made, k.Tuple) and len(made.items) == 2:
        return k.Tuple((made.items[0], k.UNKNOWN, made.items[1]))
    return k.Tuple((k.UNKNOWN,) * 3)

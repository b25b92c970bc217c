"""Norms, and whether they have a weight and a bias: the arguments ``affine`` and ``elementwise_affine``."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.infer import kinds as k

AFFINE = ("affine", "elementwise_affine")
_BARE = frozenset(f"torch.nn.InstanceNorm{n}d" for n in (1, 2, 3))
"""Norms without a weight unless they are asked for one."""
MAYBE_AFFINE = _BARE | {
    f"torch.nn.{name}"
    for name in "LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d".split()
}
"""Norms that may have neither weight nor bias."""


def is_affine(norm: k.Module) -> bool:
    """Whether a norm surely has a weight."""
    given = dict(norm.args)
    if "*" in given or "**" in given:
        return False
    return next((given[name] is True for name in AFFINE if name in given), norm.cls not in _BARE)


def surely_affine(base: str, args: Sequence[tuple[str | None, k.Kind]], starred: bool) -> bool:
    """Whether the constructor of a norm is surely asked for a weight."""
    for keyword, kind in args:
        if keyword in AFFINE:
            return kind == k.Const(True)
    if base in _BARE:
        return False
    return not starred and sum(keyword is None for keyword, _ in args) < 3

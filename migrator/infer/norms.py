"""Norms, and whether they have a weight and a bias, and running statistics: what their constructors are told."""

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
TRACKING = "track_running_stats"
_STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})


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


def may_lack(norm: k.Module, name: str) -> bool:
    """Whether an attribute of a norm is a statistic that is None where none are kept."""
    if name not in _STATISTICS or norm.cls not in MAYBE_AFFINE:
        return False
    return dict(norm.args).get(TRACKING, norm.cls not in _BARE) is not True


def tracking(base: str, args: Sequence[tuple[str | None, k.Kind]]) -> k.Kind:
    """What the constructor of a norm is told of running statistics."""
    for keyword, kind in args:
        if keyword == TRACKING:
            return kind
    plain = [kind for keyword, kind in args if keyword is None]
    default = k.Const(base not in _BARE)
    return plain[_BEFORE_TRACKING] if len(plain) > _BEFORE_TRACKING else default


_BEFORE_TRACKING = 4
"""The arguments of a norm before ``track_running_stats``."""

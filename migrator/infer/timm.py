"""Kinds of what the small functions of timm give that model files import."""

from __future__ import annotations

from migrator.infer import kinds as k
from migrator.infer.python import widen
from migrator.infer.signatures import Args


def timm_result(name: str, args: Args) -> k.Kind:
    """The kind of a call of ``to_2tuple`` or ``make_divisible``, by its qualified name."""
    short = name.removeprefix("timm_layers.")
    if short == "make_divisible":
        return k.INT
    if not args or not (short.startswith("to_") and short[3].isdigit()):
        return k.UNKNOWN
    given = args[0][1]
    if isinstance(given, k.Tuple):
        return given
    item = k.element(given) if isinstance(given, k.Sequence) else widen(given)
    return k.Tuple((item,) * int(short[3]))

"""Named tuples that ``namedtuple`` makes, and what of them holds tensors."""

from __future__ import annotations

from migrator.infer import kinds as k
from migrator.infer.signatures import Args

_MAKING = frozenset(["collections.namedtuple", "typing.NamedTuple"])
RECORD_CLASS = k.Other("<named tuple>")
"""What ``namedtuple("P", …)`` makes: a class, which is no module."""
RECORD = k.Other("<record>")
"""A named tuple of such a class that holds a tensor."""
ANEW = "<record>._replace"
"""The method that gives another one."""
OBJECTS = frozenset([*_MAKING, ANEW])


def made_by(name: str) -> k.Kind:
    """What a function gives that makes an object which is no tensor: a class, a dataclass, a named tuple."""
    if name == ANEW:
        return RECORD
    return RECORD_CLASS if name in _MAKING else k.Other("")


def record_of(args: Args) -> k.Kind:
    """What a call of a class made by ``namedtuple`` gives."""
    return RECORD if any(_holds_tensor(kind) for _, kind in args) else k.UNKNOWN


def _holds_tensor(kind: k.Kind) -> bool:
    if isinstance(kind, k.Tuple):
        return any(_holds_tensor(one) for one in kind.items)
    if isinstance(kind, (k.Sequence, k.Mapping)):
        item = kind.value if isinstance(kind, k.Mapping) else kind.item
        return _holds_tensor(item)
    return isinstance(kind, k.Tensor)

"""``torch.nn.modules.utils``: one number for each axis, written once."""

from __future__ import annotations

from rules.compat.tuples import ntuple, reverse_repeat_tuple
from rules.registry import op


@op("torch.nn.modules.utils._single")
def single(x) -> tuple[Any]:
    """A tuple of one, or what is iterable as a tuple, whatever its length."""
    return ntuple(x, 1)


@op(
    "torch.nn.modules.utils._pair",
    example={"torch.nn.modules.utils._pair(n)": "ntuple(n, 2)"},
)
def pair(x) -> tuple[Any, Any]:
    """The number twice; a parameter whose default is a number may be given a tuple, too."""
    return ntuple(x, 2)


@op("torch.nn.modules.utils._triple")
def triple(x) -> tuple[Any, Any, Any]:
    """The number three times, or what is iterable as a tuple."""
    return ntuple(x, 3)


@op("torch.nn.modules.utils._quadruple")
def quadruple(x) -> tuple[Any, Any, Any, Any]:
    """The number four times, or what is iterable as a tuple."""
    return ntuple(x, 4)


@op("torch.nn.modules.utils._ntuple")
def ntuple_of(n, name="parse") -> Callable:
    """A function that gives such tuples."""
    return lambda x: ntuple(x, n)


@op(
    "torch.nn.modules.utils._reverse_repeat_tuple",
    example={
        "torch.nn.modules.utils._reverse_repeat_tuple((1, n), 2)": "reverse_repeat_tuple((1, n), 2)"
    },
)
def reversed_repeated(t, n) -> tuple[Any, ...]:
    """The items in reverse, each ``n`` times, as ``F.pad`` takes them."""
    return reverse_repeat_tuple(t, n)

"""The lattice of kinds: what the assistant may know about an expression.

Kinds are small immutable values. ``join`` is the least upper bound used where control flow meets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Kind:
    """Base of all kinds."""


@dataclass(frozen=True)
class Unknown(Kind):
    """Nothing is known."""


@dataclass(frozen=True)
class Tensor(Kind):
    """A torch tensor. ``dtype`` is a class: "float", "int", "bool", "complex" or None; ``rank`` its ndim."""

    rank: int | None = None
    dtype: str | None = None
    role: str = ""
    """"param" or "buffer" for the value of a registered attribute, else ""."""


@dataclass(frozen=True)
class NumberOrTensor(Unknown):
    """A Python number or a tensor, by the way that was taken: ``out`` after ``out = 0`` and ``out = out + f(x)`` in a loop.

    Nothing is to be built on it but that what asks a tensor for its value may ask one here, and that it is the tensor
    whose methods are called."""

    tensor: Tensor = Tensor()


@dataclass(frozen=True)
class Const(Kind):
    """A Python scalar or None whose value is known."""

    value: Any = None


@dataclass(frozen=True)
class Scalar(Kind):
    """A Python scalar: ``type`` is "int", "float", "bool", "str", "complex" or "number"."""

    type: str = "int"


@dataclass(frozen=True)
class Tuple(Kind):
    """A tuple (or torch.Size) of known length. ``fields`` names components of a torch named tuple."""

    items: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sequence(Kind):
    """A list, tuple or torch.Size of unknown length. ``type`` is "list", "tuple", "size", "range" or "iter"."""

    item: Kind = Unknown()
    type: str = "list"


@dataclass(frozen=True)
class Mapping(Kind):
    """A dict with values of one kind; ``items`` where its constant keys are known, ``key`` what they are if no texts."""

    value: Kind = Unknown()
    items: tuple[tuple[Any, Kind], ...] = ()
    key: Kind | None = None


@dataclass(frozen=True)
class Module(Kind):
    """An nn.Module instance of a class named by its qualified name (``torch.nn.Linear``, ``file.Block``).

    ``item`` is the joined kind of the children of a Sequential, ModuleList or ModuleDict; ``args`` are the
    constant constructor arguments that decide what a call returns (``(("batch_first", True),)``); ``among`` has the
    kinds that one of several may be of, in the order of their classes."""

    cls: str = "torch.nn.Module"
    item: Kind | None = None
    args: tuple[tuple[str, Any], ...] = ()
    among: tuple[Module, ...] = ()


@dataclass(frozen=True)
class Class(Kind):
    """A class object by qualified name; ``among`` names the project's own ones that it may be, if it is one of those."""

    name: str = ""
    among: tuple[str, ...] = ()


@dataclass(frozen=True)
class Function(Kind):
    """A function object by qualified name; ``bound`` is the receiver's kind for a bound method.

    ``given``: a parameter has it by default, or from the calls that are known; others may hand over another."""

    name: str = ""
    bound: Kind | None = None
    given: bool = False


@dataclass(frozen=True)
class DType(Kind):
    """A torch.dtype."""

    name: str | None = None


@dataclass(frozen=True)
class Device(Kind):
    """A torch.device (or a string naming one)."""


@dataclass(frozen=True)
class Generator(Kind):
    """A torch.Generator."""


@dataclass(frozen=True)
class Namespace(Kind):
    """An imported module or package by qualified name (``torch.nn.functional``)."""

    name: str = ""


@dataclass(frozen=True)
class Other(Kind):
    """A Python object that is certainly no tensor and no module (numpy array, config, file…).

    ``type`` names its class where known (``numpy.ndarray``, ``file.Config``)."""

    type: str = ""


@dataclass(frozen=True)
class Optional(Kind):
    """None or the inner kind."""

    inner: Kind = Unknown()


def _quick(kind: Any) -> None:
    """Have the instances of a kind made and compared as those of any class are.

    A frozen dataclass sets each field by a call, and builds two tuples to find that a kind equals itself: there is
    nothing that inference does more often. Type checkers see that nobody changes a kind.
    """
    names = [field.name for field in fields(kind)]
    space: dict[str, Any] = {
        f"default_{f.name}": f.default for f in fields(kind) if f.default is not MISSING
    }
    given = [f"{n}=default_{n}" if f"default_{n}" in space else n for n in names]
    lines = [f"def __init__({', '.join(['self', *given])}):"]
    lines += [f"    self.{name} = {name}" for name in names] or ["    pass"]
    own, theirs = ("".join(f"{one}.{name}, " for name in names) for one in ("self", "other"))
    lines += ["def __eq__(self, other):", "    if self is other:", "        return True"]
    lines += ["    if other.__class__ is self.__class__:", f"        return ({own}) == ({theirs})"]
    lines += ["    return NotImplemented"]
    exec("\n".join(lines), space)
    kind.__init__, kind.__eq__ = space["__init__"], space["__eq__"]
    del kind.__setattr__, kind.__delattr__


for _kind in (Kind, *Kind.__subclasses__(), NumberOrTensor):
    _quick(_kind)


UNKNOWN = Unknown()
NONE = Const(None)
TENSOR = Tensor()
PRESUMED = Tensor()
"""A tensor in all likelihood, known by identity: what a run shows may take its place."""
NAMELESS = Function("")
SUPER = Other("super")
NUMPY = Other("numpy.ndarray")
BLOCK_MASK = Other("torch.nn.attention.flex_attention.BlockMask")
INT = Scalar("int")
FLOAT = Scalar("float")
BOOL = Scalar("bool")
STR = Scalar("str")


def replaceable(kind: Kind) -> Kind:
    """The kind of what others may replace: where ``None`` stands to begin with there may be anything."""
    return UNKNOWN if kind == NONE else kind


def scalar_type(kind: Kind) -> str | None:
    """ "int", "float", "bool", "str"… for a Python scalar kind, None for anything else."""
    if isinstance(kind, Scalar):
        return kind.type
    if isinstance(kind, Const) and kind.value is not None:
        return type(kind.value).__name__
    return None


def on_host(name: str) -> str:
    """``torch.FloatTensor`` for ``torch.cuda.FloatTensor``: JAX places arrays by itself."""
    cuda = name.startswith("torch.cuda.") and name.endswith("Tensor")
    return f"torch.{name.removeprefix('torch.cuda.')}" if cuda else name


def join(a: Kind, b: Kind) -> Kind:
    """Least upper bound of two kinds."""
    if a == b:
        return a
    if a == NONE:
        if isinstance(b, Unknown):
            return UNKNOWN
        return b if isinstance(b, Optional) else Optional(b)
    if b == NONE:
        return join(b, a)
    if isinstance(a, Optional) or isinstance(b, Optional):
        inner = join(
            a.inner if isinstance(a, Optional) else a, b.inner if isinstance(b, Optional) else b
        )
        if isinstance(inner, Unknown):
            return UNKNOWN
        return inner if isinstance(inner, Optional) else Optional(inner)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Tensor(
            a.rank if a.rank == b.rank else None,
            a.dtype if a.dtype == b.dtype else None,
            a.role if a.role == b.role else _registered(a.role, b.role),
        )
    scalars = scalar_type(a), scalar_type(b)
    if scalars[0] and scalars[1]:
        if scalars[0] == scalars[1]:
            return Scalar(scalars[0])
        if "str" not in scalars:
            return Scalar("number")
        return Other("scalar")
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
        items = tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True))
        return Tuple(items, a.fields if a.fields == b.fields else ())
    if isinstance(a, (Tuple, Sequence)) and isinstance(b, (Tuple, Sequence)):
        kinds = {k.type for k in (a, b) if isinstance(k, Sequence)} | {
            "tuple" for k in (a, b) if isinstance(k, Tuple)
        }
        return Sequence(join(element(a), element(b)), kinds.pop() if len(kinds) == 1 else "iter")
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        alike = a.key if a.key == b.key else join(a.key or STR, b.key or STR)
        return Mapping(join(a.value, b.value), (), alike)
    if isinstance(a, Module) and isinstance(b, Module):
        if a.cls == b.cls:
            item = a.item if b.item is None else b.item if a.item is None else join(a.item, b.item)
            several = _modules(a, b) if a.among and b.among else ()
            kept = item if isinstance(item, Kind) else None
            args = _either_in_place(a, b)
            if len(places := children(a)) == len(children(b)):
                args += at_places(map(join, places, children(b)))
            return Module(a.cls, kept, args, several)
        return Module("torch.nn.Module", None, _either_in_place(a, b), _modules(a, b))
    if isinstance(a, DType) and isinstance(b, DType):
        return DType()
    if isinstance(a, Other) and isinstance(b, Other):
        return Other()
    if isinstance(a, Class) and isinstance(b, Class):
        if on_host(a.name) == on_host(b.name):
            return Class(on_host(a.name))
        return Class("", _classes(a.among or (a.name,), b.among or (b.name,)))
    if isinstance(a, (Function, Class)) and isinstance(b, (Function, Class)):
        return Function("")
    return UNKNOWN


def either(a: Kind, b: Kind) -> Kind:
    """What a local name has where two ways meet: what is a number on one and a tensor on the other is told from the unknown."""
    tensors = [one for one in map(perhaps_tensor, (a, b)) if one is not None]
    both = isinstance(a, Tensor) and isinstance(b, Tensor)
    if not tensors or both or not all(perhaps_tensor(one) or is_number(one) for one in (a, b)):
        return join(a, b)
    first, last = tensors[0], tensors[-1]
    return NumberOrTensor(
        Tensor(
            last.rank if first.rank == last.rank else None,
            last.dtype if first.dtype == last.dtype else None,
        )
    )


def perhaps_tensor(kind: Kind) -> Tensor | None:
    """What is known of a value as the tensor that it is or may be; None for what is no tensor, or of which nothing is known."""
    if isinstance(kind, NumberOrTensor):
        return kind.tensor
    return kind if isinstance(kind, Tensor) else None


def is_number(kind: Kind) -> bool:
    """Whether a kind is that of a Python number."""
    return scalar_type(kind) in ("int", "float", "bool", "complex", "number")


_MOST = 8
"""More classes than these are not told apart."""
_MOST_MODULES = 16
"""More modules than these: tables of activations have many."""


def _classes(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the own classes that one of several is; none where it may be any.

    What torch's layers do depends on their arguments, and is not told by their names."""
    names = {*a, *b}
    known = len(names) <= _MOST and all(names)
    return tuple(sorted(names)) if known and not any(n.startswith("torch.") for n in names) else ()


def _modules(a: Module, b: Module) -> tuple[Module, ...]:
    """What one of several modules may be; nothing where it may be any."""
    found: dict[str, Module] = {}
    for one in map(_shallow, (*(a.among or (a,)), *(b.among or (b,)))):
        known = found.get(one.cls, one)
        joined = join(known, one)
        if one.cls == "torch.nn.Module" or "|" in one.cls or not isinstance(joined, Module):
            return ()
        found[one.cls] = joined
    return tuple(found[cls] for cls in sorted(found)) if len(found) <= _MOST_MODULES else ()


def _shallow(kind: Module) -> Module:
    """A module whose children are no choices, so that ``self.fc = nn.Sequential(self.fc, …)`` does not grow."""

    def plain(one: Any) -> Any:
        return replace(_shallow(one), among=()) if isinstance(one, Module) else one

    args = tuple((name, plain(value)) for name, value in kind.args)
    return replace(kind, item=plain(kind.item), args=args)


_ANY_MODULE = Module()


def is_any_module(kind: Kind) -> bool:
    """Whether a kind is that of a module of which no class, child nor argument is known for sure.

    That one of those it may be works in place says nothing of what it is.
    """
    if not isinstance(kind, Module) or kind.cls != _ANY_MODULE.cls:
        return False
    args = tuple(one for one in kind.args if one[0] != "inplace")
    return replace(kind, among=(), args=args) == _ANY_MODULE


def is_unknown_module(kind: Kind) -> bool:
    """Whether nothing is known of what may be a module."""
    return kind == UNKNOWN or is_any_module(kind)


def is_any_class(kind: Kind) -> bool:
    """Whether a kind is that of a class object that may be one or another."""
    return isinstance(kind, Class) and not kind.name


def in_role_of(kind: Kind, other: Kind) -> Kind:
    """A plain tensor as the parameter or buffer that ``other`` is; anything else as it is."""
    plain = kind.inner if isinstance(kind, Optional) else kind
    told = other.inner if isinstance(other, Optional) else other
    if not isinstance(plain, Tensor) or plain.role or not isinstance(told, Tensor):
        return kind
    made = Tensor(plain.rank, plain.dtype, told.role)
    return Optional(made) if isinstance(kind, Optional) else made


def is_parameter(kind: Kind | None) -> bool:
    """Whether a kind is that of a parameter, or of one that may be None."""
    inner = kind.inner if isinstance(kind, Optional) else kind
    return isinstance(inner, Tensor) and inner.role == "param"


LIST = "torch.nn.ModuleList"
PARALLEL = "torch.nn.DataParallel"
"""A module that splits a batch among GPUs, and else calls the one in it."""


def inside(module: Module) -> Module:
    """What a wrapper around a module calls."""
    return module.item if isinstance(module.item, Module) else Module("torch.nn.Module")


def in_place(kind: Kind | None) -> bool | None:
    """Whether a layer was made with ``inplace=True``; None if it may have been."""
    found = dict(kind.args).get("inplace", False) if isinstance(kind, Module) else False
    return found if isinstance(found, bool) else None


def chained(a: Module, b: Module) -> Kind:
    """``head + tail`` of two Sequentials: one with the layers of both, numbered anew."""
    if {a.cls, b.cls} != {"torch.nn.Sequential"}:
        return UNKNOWN
    items = [one.item for one in (a, b) if one.item is not None]
    begins = tuple(one for one in a.args if one[0] == "inplace")
    if a.item is None:
        begins = _either_in_place(a, b)
    return Module(a.cls, joined(items) if len(items) == 2 else None, begins)


def at_places(kinds: Iterable[Kind]) -> tuple[tuple[str, Kind], ...]:
    """The arguments of the kind of a ModuleList by which ``children`` knows what it has; lists in it do not tell theirs."""
    return tuple((str(i), without_places(kind)) for i, kind in enumerate(kinds))


def without_places(kind: Kind) -> Kind:
    """A ModuleList of which it is not known what it has at which place."""
    if isinstance(kind, Optional):
        return Optional(without_places(kind.inner))
    if not isinstance(kind, Module) or kind.cls != LIST:
        return kind
    item = None if kind.item is None else without_places(kind.item)
    return replace(kind, item=item, args=tuple(one for one in kind.args if not one[0].isdigit()))


def _either_in_place(a: Module, b: Module) -> tuple[tuple[str, Any], ...]:
    found = {in_place(a), in_place(b)}
    if found == {False}:
        return ()
    return (("inplace", True if found == {True} else "maybe"),)


def _registered(a: str, b: str) -> str:
    """The role of what is a parameter in one case and a buffer in another: it is registered in both."""
    return "param" if a and b else ""


def element(kind: Kind) -> Kind:
    """The kind of one item when iterating or indexing with an unknown index."""
    if isinstance(kind, Tuple):
        if not kind.items:
            return UNKNOWN
        result = kind.items[0]
        for item in kind.items[1:]:
            result = join(result, item)
        return result
    if isinstance(kind, Sequence):
        return kind.item
    if isinstance(kind, Mapping):
        return kind.key or STR
    if isinstance(kind, Tensor):
        return Tensor(kind.rank - 1 if kind.rank else None, kind.dtype)
    if isinstance(kind, Module) and kind.item is not None:
        return STR if kind.cls.endswith("Dict") else kind.item
    return UNKNOWN


def children(kind: Kind | None) -> tuple[Kind, ...]:
    """What a ModuleList has at each place, where that is known of all of them."""
    if not isinstance(kind, Module) or kind.cls != LIST:
        return ()
    return tuple(child for place, child in kind.args if place.isdigit())


def unpacked(kind: Kind, i: int, count: int, star: int | None) -> Kind:
    """What the target ``i`` of ``count`` gets of a kind; ``star`` is the one that takes what the others leave."""
    if isinstance(kind, Tuple) and kind.items:
        if star is None and len(kind.items) == count:
            return kind.items[i]
        if star is not None and i < star:
            return kind.items[min(i, len(kind.items) - 1)]
        if star is not None and i > star:
            return kind.items[max(i - count, -len(kind.items))]
    places = children(kind)
    return places[i] if star is None and len(places) == count else element(kind)


def is_registered(kind: Kind | None) -> bool:
    """Whether it is a parameter or buffer, or that or None."""
    inner = kind.inner if isinstance(kind, Optional) else kind
    return isinstance(inner, Tensor) and bool(inner.role)


def without_role(kind: Kind) -> Kind:
    """A tensor that is a value, no longer a registered attribute."""
    if isinstance(kind, Optional):
        return Optional(without_role(kind.inner))
    return replace(kind, role="") if isinstance(kind, Tensor) and kind.role else kind


def value_of(kind: Kind) -> Kind:
    """A kind without the role of a registered attribute, inside Optional and tuples too."""
    if isinstance(kind, Optional):
        return Optional(value_of(kind.inner))
    if isinstance(kind, Tuple):
        return Tuple(tuple(value_of(i) for i in kind.items), kind.fields)
    return without_role(kind)


def loosened(kind: Kind) -> Kind:
    """A kind without rank and dtype."""
    if isinstance(kind, Tensor):
        return Tensor(role=kind.role)
    if isinstance(kind, Optional):
        return Optional(loosened(kind.inner))
    if isinstance(kind, Tuple):
        return Tuple(tuple(loosened(i) for i in kind.items), kind.fields)
    if isinstance(kind, Mapping):
        items = tuple((n, loosened(v)) for n, v in kind.items)
        return Mapping(loosened(kind.value), items, kind.key and loosened(kind.key))
    return Sequence(loosened(kind.item), kind.type) if isinstance(kind, Sequence) else kind


def joined(kinds: Iterable[Kind]) -> Kind:
    """What all call sites hand to a parameter; one that is not known says nothing against the others."""
    result: Kind | None = None
    for kind in kinds:
        if not isinstance(kind, Unknown):
            result = kind if result is None else join(result, kind)
    return result if result is not None else UNKNOWN

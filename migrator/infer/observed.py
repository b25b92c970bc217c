"""What a run of the original showed, beside what inference proves: which completes it, which speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts
from migrator.tree import Tree


@dataclass(frozen=True)
class Observed:
    """Kinds seen at places of one file; a place is the index of an expression or parameter in the file's ``Tree``.

    Attributes:
      seen: all that the run showed.
      used: what inference may take up.
    """

    seen: Mapping[int, k.Kind] = field(default_factory=dict)
    used: Mapping[int, k.Kind] = field(default_factory=dict)

    def at(self, tree: Tree) -> dict[cst.CSTNode, k.Kind]:
        """What inference may take up, by node."""
        return {tree.nodes[place]: kind for place, kind in self.used.items()}


def completed(known: k.Kind, seen: k.Kind) -> k.Kind:
    """A kind with what it leaves open taken from what was seen; what it says itself stands."""
    if isinstance(known, k.Unknown) or known == seen:
        return seen
    if isinstance(known, k.Optional):
        return k.Optional(
            completed(known.inner, seen.inner if isinstance(seen, k.Optional) else seen)
        )
    if isinstance(seen, k.Optional):
        seen = seen.inner
    if isinstance(known, k.Tensor) and isinstance(seen, k.Tensor):
        rank = seen.rank if known.rank is None else known.rank
        return replace(known, rank=rank, dtype=known.dtype or seen.dtype)
    if isinstance(known, k.Sequence) and isinstance(seen, (k.Sequence, k.Tuple)):
        return replace(known, item=completed(known.item, k.element(seen)))
    if isinstance(known, k.Tuple) and isinstance(seen, k.Tuple):
        if len(known.items) == len(seen.items):
            pairs = zip(known.items, seen.items, strict=True)
            return replace(known, items=tuple(completed(a, b) for a, b in pairs))
    if isinstance(known, k.Mapping) and isinstance(seen, k.Mapping):
        return replace(known, value=completed(known.value, seen.value))
    if isinstance(known, k.Module) and isinstance(seen, k.Module):
        if k.is_any_module(known):
            return seen
        if known.cls == seen.cls and known.item in (None, k.UNKNOWN):
            return replace(known, item=seen.item)
    if known == k.Scalar("number") and isinstance(seen, k.Scalar) and seen.type != "str":
        return seen
    return known


_SORTS: tuple[tuple[type[k.Kind], str], ...] = (
    (k.Tensor, "tensor"),
    (k.Module, "module"),
    (k.Tuple, "sequence"),
    (k.Sequence, "sequence"),
    (k.Mapping, "mapping"),
)


def _sort(kind: k.Kind) -> str | None:
    """The sort of a value, coarse enough that two sorts exclude each other; None where a kind leaves that open."""
    if kind == k.NONE:
        return "None"
    scalar = k.scalar_type(kind)
    if scalar is not None:
        return "string" if scalar == "str" else "number"
    return next((sort for form, sort in _SORTS if isinstance(kind, form)), None)


def contradicts(known: k.Kind, seen: k.Kind) -> bool:
    """Whether something of the kind that was seen cannot be of the kind that inference found."""
    if isinstance(known, k.Optional):
        known = known.inner
    elif known == k.NONE:
        return not isinstance(seen, (k.Unknown, k.Optional))
    if isinstance(seen, k.Optional):
        seen = seen.inner
    if isinstance(known, k.Other) and known.type:
        return isinstance(seen, k.Tensor)  # a mixin's self is a module elsewhere
    one, other = _sort(known), _sort(seen)
    if one is None or other is None:
        return False
    if {one, other} == {"sequence", "module"}:
        return False  # a list of modules, or the container that is made of it
    if isinstance(known, k.Tensor) and isinstance(seen, k.Tensor):
        pairs = ((known.dtype, seen.dtype), (known.rank, seen.rank))
        return any(None not in pair and pair[0] != pair[1] for pair in pairs)
    return one != other


def contradictions(
    facts: Facts, observed: Observed
) -> Iterator[tuple[cst.CSTNode, k.Kind, k.Kind]]:
    """Expressions that were seen to be something else than inference has found: node, found, seen; each name once."""
    told: set[tuple[cst.CSTNode, str]] = set()
    for place, seen in sorted(observed.seen.items()):
        node = facts.tree.nodes[place]
        known = facts.kinds.get(node)
        if known is None or not contradicts(known, seen):
            continue
        above = facts.tree.around(node)
        if isinstance(above[-1], cst.Param):
            continue  # its uses tell
        function = next((n for n in reversed(above) if isinstance(n, cst.FunctionDef)), above[0])
        name = (function, node.value if isinstance(node, cst.Name) else str(place))
        if name not in told:
            told.add(name)
            yield node, known, seen


def described(kind: k.Kind, dtype: str = "") -> str:
    """A kind in words: ``an int64 tensor of rank 2``, ``a list, each item a tensor``.

    Args:
      dtype: the one dtype that all tensors of the kind had.
    """
    if isinstance(kind, k.Optional):
        return f"{described(kind.inner, dtype)} or None"
    if isinstance(kind, k.Tensor):
        what = f"{dtype or kind.dtype} tensor" if kind.dtype else "tensor"
        return _article(what) + (f" of rank {kind.rank}" if kind.rank is not None else "")
    if isinstance(kind, k.Tuple):
        return f"a tuple of ({', '.join(map(described, kind.items))})"
    if isinstance(kind, k.Sequence):
        what = {"size": "torch.Size", "iter": "sequence"}.get(kind.type, kind.type)
        return f"{_article(what)}{_each('item', kind.item)}"
    if isinstance(kind, k.Mapping):
        return f"a dict{_each('value', kind.value)}"
    if isinstance(kind, k.Module):
        what = _article(f"{kind.cls.rpartition('.')[2]} module")
        return what if kind.item is None else f"{what}{_each('item', kind.item)}"
    if isinstance(kind, k.Other):
        return _article(kind.type.rpartition(".")[2] or "Python object")
    named = {k.Class: "class of modules", k.DType: "dtype", k.Device: "device"}
    named |= {k.Generator: "generator", k.Function: "function", k.Namespace: "package"}
    scalar = k.scalar_type(kind)
    if kind == k.NONE or scalar is None:
        return _article(named[type(kind)]) if type(kind) in named else "None"
    return _article({"str": "string"}.get(scalar, scalar))


def _each(noun: str, kind: k.Kind) -> str:
    return "" if isinstance(kind, k.Unknown) else f", each {noun} {described(kind)}"


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"

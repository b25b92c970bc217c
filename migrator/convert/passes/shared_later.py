"""One tensor under two attributes, once a module is built: ``self.mean = self.last = v`` and ``self.last += 1``.

In torch a write to one is a write to both. Arrays are values: the two would part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.alias import innermost
from migrator.convert.containing import constructing, holds_parameter
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases
from migrator.convert.parts import shared
from migrator.convert.passes.several_targets import each
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.updates import written_names
from migrator.infer import kinds as k

_SEQUENCES = (cst.Tuple, cst.List)
_Given = tuple[cst.Attribute, cst.BaseExpression]


@converts(
    cst.Assign, targets=(cst.Attribute, *_SEQUENCES), when=lambda ctx: bool(written_names(ctx))
)
def kept_under_two_names(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure where an attribute gets the memory of another one, and something writes to either in place."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.statements or not ctx.source.index.has(node):
        return
    owner = ctx.frame.owner
    if owner is None or owner.torch_base is None:
        return
    if ctx.in_init or ctx.frame.info in set(constructing(ctx, owner)):
        return
    given = [one for target in node.targets for one in _given(target.target, node.value)]
    given = [(target, value) for target, value in given if _is_tensor(ctx, target, value)]
    if not given:
        return
    facts = aliases(ctx, innermost(ctx))
    state = facts.before.get(ctx.statements[-1].node)
    if state is None:
        return
    before: list[tuple[str, frozenset[str], cst.BaseExpression]] = []
    for target, value in given:
        path = syntax.code(target)
        path = path.removesuffix(".data")
        memory = facts.memory(value, state)
        others = {one.removeprefix("attr:") for one in memory if one.startswith("attr:")}
        others |= {name for name, theirs, of in before if of is value or shared(memory, theirs)}
        if target.attr.value == "data" and node.targets[0].target is not target:
            others |= {name for name, theirs in state.items() if shared(memory, theirs)}
        before.append((path, memory, value))
        _check(ctx, node, path, sorted(others - {path}))


def _check(ctx: Context, node: cst.Assign, path: str, others: Sequence[str]) -> None:
    written = written_names(ctx)
    for other in others:
        words = {path.rpartition(".")[2], other.rpartition(".")[2]}
        if not words.isdisjoint(written):
            raise Failure(
                node,
                "MUT001",
                f"`{path}` shares memory with `{other}`: in torch, writing to one changes both",
                "keep a copy (`.clone()`)",
            )


def _given(target: cst.BaseExpression, value: cst.BaseExpression) -> Iterator[_Given]:
    """Attributes and what each is given; of what a call gives nothing is told apart."""
    if isinstance(target, cst.Attribute):
        yield target, value
    elif isinstance(target, cst.Tuple | cst.List) and isinstance(value, cst.Tuple | cst.List):
        if len(target.elements) == len(value.elements):
            for element, one in zip(target.elements, value.elements, strict=True):
                yield from _given(element.value, one.value)
    elif isinstance(value, cst.Call):  # as `pair(v, v)`
        names = [one.value for one in value.args if isinstance(one.value, cst.Name)]
        twice = next((n for n in names if sum(n.value == m.value for m in names) > 1), None)
        if twice is not None:
            for place in each(target):
                if isinstance(place, cst.Attribute):
                    yield place, twice


def _is_tensor(ctx: Context, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    """Whether a tensor may be given that is no parameter or buffer itself: those stay one under each name."""
    kind = ctx.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if k.perhaps_tensor(kind) is None:
        own = ctx.kind(target)
        registered = isinstance(own, k.Tensor) and own.role in ("param", "buffer")
        return isinstance(kind, k.Unknown) and (registered or target.attr.value == "data")
    if isinstance(kind, k.Tensor) and holds_parameter(kind):
        return False
    itself = isinstance(value, cst.Attribute) and value.attr.value != "data"
    role = isinstance(kind, k.Tensor) and kind.role in ("param", "buffer")
    return not (itself and role and target.attr.value != "data")

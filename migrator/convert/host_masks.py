"""Tensors that a module keeps and that say what is selected: ``self.mask = ~torch.eye(n).bool()``, then ``x[self.mask]``.

How much it selects is known while JAX traces if numpy holds it: as data of the module it would be part of the program.
torch neither saves nor loads such an attribute, so what the constructor gave it is what it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.memory import aliases
from migrator.convert.parts import shared
from migrator.convert.sharing import VIEWS
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

_BY_NAME = frozenset("setattr getattr delattr vars __dict__ __setattr__ __getattr__".split())


def host_masks(ctx: Context, masks: Iterable[cst.BaseExpression]) -> frozenset[tuple[str, str]]:
    """The attributes among what some masks are computed of that numpy may hold, with their classes."""
    found: set[tuple[str, str]] = set()
    if not ctx.words.isdisjoint(_BY_NAME):
        return frozenset()
    for mask in _with_what_leads_to(ctx, masks):
        for node in ctx.source.index.within(mask, cst.Attribute):
            owner = owner_of(ctx, node)
            if owner is not None and _is_kept(ctx, owner, node.attr.value):
                found.add((owner.name, node.attr.value))
    return frozenset(found)


def _with_what_leads_to(
    ctx: Context, masks: Iterable[cst.BaseExpression]
) -> Iterator[cst.BaseExpression]:
    """Masks, and what the names in them are given in their functions."""
    index = ctx.source.index
    for mask in masks:
        yield mask
        around = [one for one in index.around(mask) if isinstance(one, cst.FunctionDef)]
        names, lines = (
            set(syntax.names(mask)),
            index.within(around[-1], cst.Assign) if around else (),
        )
        for line in reversed(lines):
            if not names.isdisjoint(n for t in line.targets for n in syntax.names(t.target)):
                names |= set(syntax.names(line.value))
                yield line.value


def is_held(ctx: Context, node: cst.Attribute, held: frozenset[tuple[str, str]]) -> bool:
    """Whether ``self.mask`` is among some attributes, which stand with their classes."""
    owner = owner_of(ctx, node)
    return owner is not None and (owner.name, node.attr.value) in held


def owner_of(ctx: Context, node: cst.Attribute) -> ClassInfo | None:
    """The class of the file that ``self.mask`` is an attribute of, where a method of that class reads it."""
    if not isinstance(node.value, cst.Name):
        return None
    around = ctx.source.index.around(node)
    inside = [one for one in around if isinstance(one, (cst.FunctionDef, cst.ClassDef))]
    if len(inside) < 2 or not isinstance(inside[0], cst.ClassDef) or len(inside) > 2:
        return None
    info = next((c for c in ctx.facts.classes.values() if c.node is inside[0]), None)
    method = ctx.facts.functions.get(inside[1]) if isinstance(inside[1], cst.FunctionDef) else None
    if info is None or method is None or not method.has_receiver:
        return None
    first = next(iter(syntax.named_parameters(method.node.params)), None)
    return info if first is not None and first.name.value == node.value.value else None


def _is_kept(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether a constructor gives an attribute one tensor that nothing else has, and all who read it are known."""
    kind, init = info.attributes.get(name), info.methods.get("__init__")
    if info.torch_base is None or info.settled is not None or init is None:
        return False
    if not isinstance(kind, k.Tensor) or kind.role or name in (info.state or ()):
        return False
    if any(info in one.lineage() and one is not info for one in ctx.facts.classes.values()):
        return False
    if any(name in one.attributes or name in one.methods for one in info.lineage()[1:]):
        return False
    linked = ctx.facts.linked
    if linked is not None and any(info.name.endswith(f".{one}") for _, one in linked.derived):
        return False
    given = 0
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != name:
            continue
        if owner_of(ctx, node) is not info:
            return False
        parent = ctx.source.index.parent(node)
        if isinstance(parent, cst.AssignTarget):
            given += 1
            if not _is_given(ctx, init, parent):
                return False
        elif _may_be_written(ctx, node):
            return False
    return given == 1


def _is_given(ctx: Context, init: FunctionInfo, target: cst.AssignTarget) -> bool:
    """Whether the constructor gives something new, in any case: a line of its own, and nobody else has the memory."""
    assign = ctx.source.index.parent(target)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    top = [s for s in init.node.body.body if isinstance(s, cst.SimpleStatementLine)]
    line = next((s for s in top if any(small is assign for small in s.body)), None)
    facts = aliases(ctx, init)
    if line is None or line not in facts.before:
        return False
    state = facts.before[line]
    memory = facts.memory(assign.value, state)
    if any(one.startswith(("param:", "attr:")) for one in memory):
        return False
    later = facts.read_after(line)
    return not any(shared(memory, theirs) for name, theirs in state.items() if name in later)


def _may_be_written(ctx: Context, node: cst.Attribute) -> bool:
    """Whether what reads an attribute may write to the tensor, or give it to somebody who does."""
    inner: cst.CSTNode = node
    for outer in reversed(ctx.source.index.around(node)):
        if isinstance(outer, (cst.AssignTarget, cst.AugAssign, cst.Del)):
            return getattr(outer, "target", None) is inner or isinstance(outer, cst.Del)
        if isinstance(outer, cst.Attribute):
            word = outer.attr.value
            if (word.endswith("_") and not word.endswith("__")) or word == "data":
                return True
        if isinstance(outer, cst.Call):
            name = ctx.facts.callee(outer) or ""
            if name.startswith("Tensor.") and name.removeprefix("Tensor.") not in VIEWS:
                return False
        if isinstance(outer, (cst.Assign, cst.Return, cst.Element, cst.DictElement, cst.Yield)):
            return True
        if isinstance(outer, (cst.NamedExpr, cst.Lambda, cst.IfExp, cst.BooleanOperation)):
            return True
        if isinstance(outer, cst.Arg):
            call = ctx.source.index.parent(outer)
            name = ctx.facts.callee(call) or "" if isinstance(call, cst.Call) else ""
            return not name.startswith(("torch.", "Tensor.", "builtins."))
        if isinstance(outer, (cst.Index, cst.BinaryOperation, cst.Comparison, cst.UnaryOperation)):
            return False
        if isinstance(outer, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            return False
        inner = outer
    return True

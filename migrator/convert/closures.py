"""What a function that a constructor writes in place reads of the module around it.

``m = self.mlp`` and ``self.mlp = m`` give a part of the module a name, under which a lambda may use it as under ``self``.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import ClassInfo
from migrator.infer import kinds as k


def named_parts(ctx: Context, function: cst.FunctionDef) -> dict[str, cst.Attribute]:
    """The names that a constructor binds once, to a part of the module: ``m = self.mlp``, ``self.mlp = m``."""
    bound: dict[str, int] = {}
    parts: dict[str, cst.Attribute] = {}
    tree = ctx.facts.tree
    for param in tree.within(function.params, cst.Param):
        bound[param.name.value] = 1
    for target in tree.within(function, cst.AssignTarget):
        for word in syntax.names(target.target):
            bound[word] = bound.get(word, 0) + 1
    for other in (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr):
        for node in tree.within(function, other):
            for word in syntax.names(node.target):
                bound[word] = bound.get(word, 0) + 2
    for node in tree.within(function, cst.Assign):
        sides: list[cst.BaseExpression] = [*(one.target for one in node.targets), node.value]
        name = next((one for one in sides if isinstance(one, cst.Name)), None)
        part = next((one for one in sides if _is_part(one)), None)
        if name is not None and isinstance(part, cst.Attribute):
            parts.setdefault(name.value, part)
    return {name: part for name, part in parts.items() if bound.get(name, 0) == 1}


def _is_part(node: cst.BaseExpression) -> bool:
    """``self.mlp``, ``self.mlp.act``."""
    while isinstance(node, cst.Attribute):
        node = node.value
        if _is_self(node):
            return True
    return False


def _is_self(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def _method_around(ctx: Context, node: cst.CSTNode) -> cst.FunctionDef | None:
    """The method in which code stands."""
    for one in ctx.facts.tree.around(node):
        if isinstance(one, cst.FunctionDef) and one.params.params:
            return one if one.params.params[0].name.value == "self" else None
    return None


def reads_module(
    ctx: Context, body: cst.CSTNode, seen: frozenset[cst.CSTNode] = frozenset()
) -> bool:
    """Whether code reads something of the module around it that may change: no number, and no text.

    ``seen`` are the functions on the way there, each of which calls the next.
    """
    for node in ctx.facts.tree.within(body, cst.Attribute):
        if _is_self(node.value) and not _settled(ctx.facts.kind(node)):
            return True
    return bool(_foreign(ctx, body, seen))


def written_here(ctx: Context, node: cst.Name) -> cst.CSTNode | None:
    """The lambda, or the body of the function within a function, that a name stands for."""
    kind = ctx.facts.kind(node)
    if not isinstance(kind, k.Function):
        return None
    if kind.name in ctx.facts.lambdas:
        return ctx.facts.lambdas[kind.name][0]
    info = ctx.facts.names.get(kind.name)
    if info is None or info.outer is None or info.settled is not None:
        return None
    return info.node.body


def _foreign(
    ctx: Context, body: cst.CSTNode, seen: frozenset[cst.CSTNode] = frozenset()
) -> set[str]:
    """Names under which code reads parts of a module, or modules and parameters that stand around it."""
    method = _method_around(ctx, body)
    if method is None:
        return set()
    found = set()
    parts = named_parts(ctx, method)
    free = set(syntax.names(body)) - bound_inside(ctx, body) - {"self"}
    for node in [n for n in syntax.walk(body) if isinstance(n, cst.Name) and n.value in free]:
        kind = ctx.facts.kind(parts[node.value]) if node.value in parts else ctx.facts.kind(node)
        inner = written_here(ctx, node)
        if (node.value in parts and not _settled(kind)) or trains(kind):
            found.add(node.value)
        elif inner is not None and inner not in seen and inner is not body:
            if ctx.facts.tree.has(inner) and reads_module(ctx, inner, seen | {body}):
                found.add(node.value)
    return found


def bound_inside(ctx: Context, body: cst.CSTNode) -> set[str]:
    """Names that a lambda, a comprehension or a function binds within itself."""
    found = {param.name.value for param in ctx.facts.tree.within(body, cst.Param)}
    for node in ctx.facts.tree.within(body, cst.CompFor):
        found |= set(syntax.names(node.target))
    for target in ctx.facts.tree.within(body, cst.AssignTarget):
        found |= {target.target.value} if isinstance(target.target, cst.Name) else set()
    return found


def _settled(kind: k.Kind) -> bool:
    return k.scalar_type(kind) is not None or isinstance(kind, k.Const)


def trains(kind: k.Kind) -> bool:
    """Whether a value is a module or a parameter, or holds some."""
    if isinstance(kind, k.Module):
        return True
    if isinstance(kind, k.Tensor):
        return bool(kind.role)
    if isinstance(kind, k.Optional):
        return trains(kind.inner)
    if isinstance(kind, k.Tuple):
        return any(map(trains, kind.items))
    if isinstance(kind, k.Sequence):
        return trains(kind.item)
    return isinstance(kind, k.Mapping) and trains(kind.value)


def names_of_parts(ctx: Context, node: cst.Lambda) -> dict[str, cst.BaseExpression] | None:
    """What stands for the names of parts in ``lambda self, x: self.mlp.act(x)``; None where that is not ``lambda x: m.act(x)``."""
    method = _method_around(ctx, node)
    if method is None:
        return None
    parts, inside, foreign = named_parts(ctx, method), bound_inside(ctx, node), _foreign(ctx, node)
    if "self" in inside or not foreign <= set(parts) or _defaults_read(ctx, node):
        return None
    written = [
        one.target
        for one in ctx.source.index.of_type(cst.AssignTarget)
        if isinstance(one.target, cst.Attribute)
    ]
    anywhere = [one.attr.value for one in written]
    here = [one.attr.value for one in written if not _of_others(ctx, node, one)]
    for name in foreign:  # a name goes on meaning what it meant
        *steps, first = _steps(parts[name])
        if here.count(first) > 1 or any(anywhere.count(step) > 1 for step in steps):
            return None
    return {name: parts[name] for name in foreign}


def _of_others(ctx: Context, node: cst.Lambda, target: cst.Attribute) -> bool:
    """Whether ``self.mlp`` is one of a class that has nothing to do with the one a lambda stands in."""
    if not _is_self(target.value):
        return False
    own, other = (_class_around(ctx, one) for one in (node, target))
    if own is None or other is None:
        return False
    families = (info.lineage() for info in ctx.facts.classes.values())
    return not any(own in family and other in family for family in families)


def _class_around(ctx: Context, node: cst.CSTNode) -> ClassInfo | None:
    found = [one for one in ctx.source.index.around(node) if isinstance(one, cst.ClassDef)]
    infos = ctx.facts.classes.values()
    return next((info for info in infos if found and info.node is found[-1]), None)


def _defaults_read(ctx: Context, node: cst.Lambda) -> bool:
    """``lambda x, layer=self.fc: layer(x)``, which holds the layer whatever it is handed."""
    defaults = [p.default for p in ctx.facts.tree.within(node.params, cst.Param) if p.default]
    return any(reads_module(ctx, one) or trains(ctx.kind(one)) for one in defaults)


def _steps(node: cst.BaseExpression) -> list[str]:
    found = []
    while isinstance(node, cst.Attribute):
        found.append(node.attr.value)
        node = node.value
    return found

"""Children that get another layer after a plain list has taken them: the list goes on with what torch knows no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.kept import either_or
from migrator.convert.passing import taken_out
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.texts import pattern

_REGISTERING = frozenset("add_module register_module register_parameter register_buffer".split())
_ADDING = frozenset("append extend insert".split())


def goes_on(ctx: Context, node: cst.Assign, name: str) -> bool:
    """Whether what a list of the module's own children holds is what the module goes on to have under their names.

    Args:
      node: ``self.layers = [self.a, self.b]`` of a constructor.
      name: that of the list.
    """
    owner = ctx.owner
    if owner is None:
        return False
    taking: list[cst.CSTNode] = [node]
    if isinstance(node.value, cst.List) and not node.value.elements:
        taking = list(_appended(ctx, name))  # in a loop behind it
    elif _is_put_into(ctx, owner, name):
        return False
    held = [(line, one) for line in taking for one in _held(ctx, line)]
    for given, made_up, receiver in _given(ctx):
        if ctx.facts.tree.holds(node, given) or not _is_of(ctx, receiver, owner):
            continue
        for line, one in held:
            if _may_be_same(made_up, one) and _comes_behind(ctx, line, given, made_up == one):
                return False
    return True


def _held(ctx: Context, line: cst.CSTNode) -> Iterator[str]:
    """What the names of the children may be that a line takes, as regular expressions."""
    value = line.value if isinstance(line, cst.Assign) else line.args[0].value  # type: ignore[attr-defined]
    for one in ctx.facts.tree.within(value, cst.Attribute):
        if ctx.is_self(one.value) and not isinstance(ctx.facts.tree.parent(one), cst.Attribute):
            yield re.escape(one.attr.value)
    for call in ctx.facts.tree.within(value, cst.Call):
        if ctx.facts.callee(call) == "builtins.getattr" and len(call.args) > 1:
            yield from _written_out(ctx, call) or [_made_up(ctx, call.args[1].value)]


def _written_out(ctx: Context, call: cst.Call) -> list[str]:
    """``"a"`` and ``"b"`` of ``[getattr(self, name) for name in ("a", "b")]``."""
    name = call.args[1].value
    for around in reversed(ctx.facts.tree.around(call)):
        if isinstance(around, cst.ListComp) and isinstance(name, cst.Name):
            loop = around.for_in
            texts = loop.iter.elements if isinstance(loop.iter, (cst.Tuple, cst.List)) else ()
            values = [one.value for one in texts if isinstance(one.value, cst.SimpleString)]
            same = isinstance(loop.target, cst.Name) and loop.target.value == name.value
            if same and loop.inner_for_in is None and len(values) == len(texts):
                return [re.escape(str(one.evaluated_value)) for one in values]
    return []


def _appended(ctx: Context, name: str) -> Iterator[cst.Call]:
    """``self.layers.append(layer)``"""
    for call in ctx.facts.tree.of_type(cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value == "append" and len(call.args) == 1:
            if isinstance(func.value, cst.Attribute) and func.value.attr.value == name:
                yield call


def _made_up(ctx: Context, node: cst.BaseExpression) -> str:
    """What a name may be: a number stands where one is put in."""
    if isinstance(node, cst.FormattedString):
        return "".join(
            re.escape(one.value)
            if isinstance(one, cst.FormattedStringText)
            else _NUMBER
            if k.scalar_type(ctx.kind(one.expression)) == "int"  # type: ignore[attr-defined]
            else ".*"
            for one in node.parts
        )
    return pattern(node)


_NUMBER = r"-?\d+"


def _may_be_same(one: str, other: str) -> bool:
    """Whether two names that are made up may be one; of two that have holes that is not known."""
    plain = [
        None if ".*" in each or _NUMBER in each else re.sub(r"\\(.)", r"\1", each)
        for each in (one, other)
    ]
    if plain[0] is not None:
        return re.fullmatch(other, plain[0]) is not None
    return plain[1] is None or re.fullmatch(one, plain[1]) is not None


def _given(ctx: Context) -> Iterator[tuple[cst.CSTNode, str, cst.BaseExpression]]:
    """Where an attribute gets a value or goes, what its name may be, and of which object it is."""
    tree = ctx.facts.tree
    for node in tree.of_type(cst.AssignTarget, cst.AnnAssign, cst.For):
        line = tree.parent(node) if isinstance(node, cst.AssignTarget) else node
        if isinstance(line, cst.Assign) and k.scalar_type(ctx.kind(line.value)) is not None:
            continue  # torch refuses it in the place of a layer
        for one in tree.within(node.target, cst.Attribute):
            if not isinstance(tree.parent(one), (cst.Attribute, cst.Subscript)):
                yield one, re.escape(one.attr.value), one.value
    for call in tree.of_type(cst.Call):
        func, args = call.func, [one.value for one in call.args]
        if isinstance(func, cst.Name) and func.value == "setattr" and len(args) == 3:
            yield call, _made_up(ctx, args[1]), args[0]
        elif isinstance(func, cst.Attribute) and func.attr.value in _REGISTERING and args:
            yield call, _made_up(ctx, args[0]), func.value
    for holder, made_up in taken_out(ctx):
        yield holder, made_up, holder  # type: ignore[misc]


def _is_of(ctx: Context, receiver: cst.BaseExpression, owner: ClassInfo) -> bool:
    """Whether an object may be of a class."""
    kind = ctx.kind(receiver)
    if not isinstance(kind, (k.Module, k.Other)):
        return isinstance(kind, k.Unknown)
    name = kind.cls if isinstance(kind, k.Module) else kind.type
    if name in ("torch.nn.Module", ""):
        return True
    info = ctx.facts.classes.get(name)
    return info is not None and (info in owner.lineage() or owner in info.lineage())


def _comes_behind(ctx: Context, line: cst.CSTNode, given: cst.CSTNode, same: bool) -> bool:
    """Whether a name may be given another value after a line has taken what it stood for.

    Args:
      same: both make the name up in the same way, so that a loop gives another one in each turn.
    """
    tree, owner = ctx.facts.tree, ctx.owner
    functions = [
        next((one for one in reversed(tree.around(each)) if isinstance(one, cst.FunctionDef)), None)
        for each in (line, given)
    ]
    if functions[0] is functions[1]:
        loops = [one for one in tree.around(line) if isinstance(one, (cst.For, cst.While))]
        before = tree.place(given) < tree.place(line)
        if any(tree.holds(one, given) for one in loops):
            return not (before and same and _has_hole(ctx, line))
        return not before and not either_or(ctx, line, given)
    info = ctx.facts.functions.get(functions[1]) if functions[1] is not None else None
    base = info is not None and owner is not None and info.owner in owner.lineage()[1:]
    return not (base and info is not None and info.short == "__init__")


def _has_hole(ctx: Context, line: cst.CSTNode) -> bool:
    return any(".*" in one or _NUMBER in one for one in _held(ctx, line))


def _is_put_into(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """``self.layers[0] = layer``, ``self.layers.append(layer)``, ``self.layers += [layer]``."""
    tree = ctx.facts.tree
    for node in tree.of_type(cst.Attribute):
        if node.attr.value != name or not _is_of(ctx, node.value, owner):
            continue
        *_, outer, above = tree.around(node)
        if isinstance(above, cst.Subscript) and above.value is node:
            if isinstance(outer, (cst.AssignTarget, cst.AugAssign)):
                return True
        elif isinstance(above, cst.AugAssign) and above.target is node:
            return True
        elif isinstance(above, cst.Attribute) and above.attr.value in _ADDING:
            if isinstance(outer, cst.Call):
                return True
    return False

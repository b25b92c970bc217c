"""``self.scales = {Kind.A: 1.0, None: 2.0}``: Flax sorts the keys of a dict that a module keeps, and these do not sort."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import holds_tensor
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def odd_table(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.scales = Table({Kind.A: 1.0})``.

    Raises:
      Failure: the values are tensors or layers.
    """
    ctx = rw.ctx
    owner = ctx.owner
    if owner is None or owner.torch_base is None or node in ctx.redeclared:
        return None
    if not all(_of_self(ctx, one.target) for one in node.targets):
        return None
    table = _literal(ctx, node.value)
    if table is None:
        return _built(ctx, node)
    if not (_is_odd(ctx, table) or _grows_odd(ctx, owner, node, table)):
        return None
    if isinstance(table, cst.DictComp):
        values = [table.value]
    else:
        values = [one.value for one in table.elements if isinstance(one, cst.DictElement)]
    if any(isinstance(ctx.kind(v), k.Module) or holds_tensor(ctx.kind(v)) for v in values):
        raise _unsorted(node)
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.Assign):
        return made
    name = ctx.helpers.need(module_file("rules.compat.tables"), "Table")
    call = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(made.value)])
    return syntax.changed(made, value=call)


def _unsorted(node: cst.Assign) -> Failure:
    what = "a dict of tensors or layers whose keys do not sort, which Flax cannot keep in a module"
    return Failure(node, "API008", what, "use strings as keys")


def _built(ctx: Context, node: cst.Assign) -> None:
    """Raise where ``self.outputs = outputs`` keeps a dict of tensors that the function has built with keys of several kinds."""
    if not isinstance(node.value, cst.Name) or ctx.frame is None:
        return
    name, body = node.value.value, ctx.frame.info.node.body
    keys: list[cst.BaseExpression] = []
    values: list[cst.BaseExpression] = []
    for line in ctx.facts.tree.within(body, cst.Assign):
        for target in syntax.assigned_to(line):
            if isinstance(target, cst.Name) and target.value == name:
                if not isinstance(line.value, cst.Dict):
                    continue
                entries = [e for e in line.value.elements if isinstance(e, cst.DictElement)]
                keys += [one.key for one in entries]
                values += [one.value for one in entries]
            elif isinstance(target, cst.Subscript) and syntax.code(target.value) == name:
                key = syntax.key_of(target)
                keys += [key] if key is not None else []
                values.append(line.value)
    kinds = {_sort(ctx, key) for key in keys}
    if None in kinds or len(kinds - {"unknown"}) > 1:
        if any(isinstance(ctx.kind(v), k.Module) or holds_tensor(ctx.kind(v)) for v in values):
            raise _unsorted(node)


@converts(cst.Dict)
def inner_table(rw: Rewriter, node: cst.Dict) -> Any:
    """``self.scales = {"a": {None: 1.0, 1: 2.0}}``, a dict within what a module keeps."""
    ctx = rw.ctx
    if ctx.owner is None or ctx.owner.torch_base is None or not ctx.facts.tree.has(node):
        return None
    if node in ctx.redeclared or len(node.elements) == 0 or not _is_odd(ctx, node):
        return None
    inside = False
    for above in reversed(ctx.facts.tree.around(node)):
        if isinstance(above, cst.Assign):
            if not inside or not all(_of_self(ctx, one.target) for one in above.targets):
                return None
            break
        if not isinstance(above, (cst.Dict, cst.List, cst.Tuple, cst.DictElement, cst.Element)):
            return None
        inside = True
    values = [one.value for one in node.elements if isinstance(one, cst.DictElement)]
    if any(isinstance(ctx.kind(v), k.Module) or holds_tensor(ctx.kind(v)) for v in values):
        return None  # which is a finding of its own
    ctx.redeclared.add(node)
    name = ctx.helpers.need(module_file("rules.compat.tables"), "Table")
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node))])


def _grows_odd(
    ctx: Context, owner: ClassInfo, node: cst.Assign, table: cst.Dict | cst.DictComp
) -> bool:
    """Whether ``self.scales = {}`` gets keys that do not sort by later lines: ``self.scales[Kind.A] = 1.0``."""
    if not isinstance(table, cst.Dict) or table.elements:
        return False
    names = {syntax.code(one.target) for one in node.targets}
    keys = [
        key
        for method in owner.methods.values()
        for line in ctx.facts.tree.within(method.node.body, cst.Assign)
        for target in syntax.assigned_to(line)
        if isinstance(target, cst.Subscript) and syntax.code(target.value) in names
        if (key := syntax.key_of(target)) is not None
    ]
    kinds = {_sort(ctx, key) for key in keys}
    return None in kinds or len(kinds - {"unknown"}) > 1


def _of_self(ctx: Context, target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Attribute) and ctx.is_self(target.value)


def _literal(ctx: Context, node: cst.BaseExpression) -> cst.Dict | cst.DictComp | None:
    """The dict that is written there, or at the top of the file under that name."""
    if isinstance(node, (cst.Dict, cst.DictComp)):
        return node
    if not isinstance(node, cst.Name) or node.value not in ctx.facts.module_env:
        return None
    top = ctx.facts.tree.root
    assert isinstance(top, cst.Module)
    found = [
        one.value
        for line in top.body
        for one in (line.body if isinstance(line, cst.SimpleStatementLine) else ())
        if isinstance(one, (cst.Assign, cst.AnnAssign)) and one.value is not None
        if any(isinstance(t, cst.Name) and t.value == node.value for t in syntax.assigned_to(one))
    ]
    known = found[0] if len(found) == 1 else None
    return known if isinstance(known, (cst.Dict, cst.DictComp)) else None


def _is_odd(ctx: Context, table: cst.Dict | cst.DictComp) -> bool:
    """Whether keys are of a kind that has no order, or of several."""
    if isinstance(table, cst.DictComp):
        keys = [table.key]
    else:
        keys = [one.key for one in table.elements if isinstance(one, cst.DictElement)]
    kinds = {_sort(ctx, key) for key in keys}
    return None in kinds or len(kinds) > 1


def _sort(ctx: Context, key: cst.BaseExpression) -> str | None:
    """What a key sorts with; None where it may sort with nothing."""
    member = isinstance(key, cst.Attribute) and isinstance(ctx.kind(key.value), k.Class)
    kind = k.scalar_type(ctx.kind(key))
    if kind is not None and not member:
        return "str" if kind == "str" else "number"
    if isinstance(key, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)):
        return "str"
    if isinstance(key, cst.Tuple):
        parts = [_sort(ctx, one.value) for one in key.elements]
        return None if None in parts else f"({', '.join(str(one) for one in parts)})"
    known = isinstance(key, (cst.Attribute, cst.Lambda)) or (
        isinstance(key, cst.Name) and (key.value == "None" or key.value in ctx.facts.module_env)
    )
    known = known or isinstance(ctx.kind(key), (k.Module, k.Function, k.Class, k.DType, k.Tensor))
    return None if known else "unknown"

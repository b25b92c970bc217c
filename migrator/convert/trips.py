"""Loops that surely run: over displays that are not empty, and over the layers that a constructor lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import libcst as cst

from migrator import syntax
from migrator.assignments import bound
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.emptied import emptied
from migrator.python_tree import walk
from migrator.source import dotted
from migrator.tree import Tree

_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.ParameterList"})
_SAME_LENGTH = frozenset(f"builtins.{name}" for name in ("enumerate", "reversed", "list", "tuple"))


def surely_runs(ctx: Context, info: FunctionInfo, node: cst.For) -> bool:
    """Whether the body of a loop runs to its end at least once."""
    if ctx.facts.tree.within(node.body, cst.Break, cst.Continue):
        return False
    return _is_filled(ctx, info, node.iter) or _goes_on_from_one(ctx, info, node)


def _is_filled(ctx: Context, info: FunctionInfo, node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
        return any(isinstance(e, cst.Element) for e in node.elements)
    if isinstance(node, cst.ListComp):
        clause = node.for_in
        plain = clause.inner_for_in is None and not clause.ifs
        return plain and _is_filled(ctx, info, clause.iter)
    if isinstance(node, cst.Attribute):
        return _is_filled_attribute(ctx, info, node)
    if isinstance(node, cst.Name):
        return info.short == "__init__" and _is_filled_by_default(ctx, info, node)
    if not isinstance(node, cst.Call) or any(a.star for a in node.args):
        return False
    name, args = ctx.facts.callee(node) or "", [a.value for a in node.args]
    if name == "builtins.range":
        return _counts(ctx, info, args)
    if name == "builtins.zip":
        return bool(args) and all(_is_filled(ctx, info, one) for one in args)
    return name in _SAME_LENGTH and bool(args) and _is_filled(ctx, info, args[0])


def _is_filled_by_default(ctx: Context, init: FunctionInfo, name: cst.Name) -> bool:
    """``dilations`` of ``def __init__(self, dilations=(1, 3))``: none of it would make no layer at all; that is said."""
    params = [p for p in syntax.named_parameters(init.node.params) if p.name.value == name.value]
    default = params[0].default if params else None
    if default is None or any(_binds(node, name.value) for node in syntax.walk(init.node.body)):
        return False
    if not isinstance(default, (cst.List, cst.Tuple)) or not _is_filled(ctx, init, default):
        return False
    if params[0] not in ctx.assumed:
        ctx.assumed.add(params[0])
        what = f"`{name.value}` is taken not to be empty, as its default: else no layer would run"
        ctx.report(
            params[0], "MUT001", what, "assert that it is not", severity="info", blocks=False
        )
    return True


def _counts(ctx: Context, info: FunctionInfo, args: list[cst.BaseExpression]) -> bool:
    """``range(3)``, ``range(len(self.layers))``."""
    if len(args) != 1:
        return False
    if isinstance(args[0], cst.Call) and ctx.facts.callee(args[0]) == "builtins.len":
        return bool(args[0].args) and _is_filled(ctx, info, args[0].args[0].value)
    kind = ctx.facts.kind(args[0])
    return isinstance(kind, k.Const) and isinstance(kind.value, int) and kind.value > 0


def _goes_on_from_one(ctx: Context, info: FunctionInfo, loop: cst.For) -> bool:
    """``for j in range(1, n)`` of a function that has returned where n is one or less, and leaves n as it is.

    ``if n == 1: return`` leaves the case of none open, in which nothing would run: that is said."""
    call = loop.iter
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "builtins.range":
        return False
    if len(call.args) != 2 or ctx.facts.kind(call.args[0].value) != k.Const(1):
        return False
    count = call.args[1].value
    name = dotted(count) if isinstance(count, (cst.Name, cst.Attribute)) else None
    body = info.node.body
    if name is None or any(_binds(node, name) for node in syntax.walk(body)):
        return False
    for statement in body.body:
        if statement is loop or ctx.facts.tree.holds(statement, loop):
            return False
        limit = _limit(statement, name)
        if limit == "==1" and loop not in ctx.assumed:
            ctx.assumed.add(loop)
            what = f"the loop is taken to run: one has returned, and `{name}` is a number of things"
            advice = "return for `<= 1` if there may be none"
            ctx.report(loop.iter, "MUT001", what, advice, severity="info", blocks=False)
        if limit:
            return True
    return False


def _limit(statement: cst.CSTNode, name: str) -> str:
    """``"<=1"`` of ``if n <= 1: return …``; empty for what is no such statement."""
    if not isinstance(statement, cst.If) or statement.orelse is not None:
        return ""
    last = statement.body.body[-1]
    leaves = isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _LEAVING)
    test = statement.test
    if not leaves or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return ""
    if not isinstance(test.left, (cst.Name, cst.Attribute)) or dotted(test.left) != name:
        return ""
    limit = syntax.code(test.comparisons[0]).replace(" ", "")
    return limit if limit in ("==1", "<=1", "<2") else ""


_LEAVING = (cst.Return, cst.Raise)


def _binds(node: cst.CSTNode, name: str) -> bool:
    """Whether a node gives a name, or an attribute, another value."""
    if isinstance(node, cst.Assign):
        targets: list[cst.CSTNode] = [one.target for one in node.targets]
    elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)):
        targets = [node.target]
    else:
        return False
    parts = [part for target in targets for part in syntax.walk(target)]
    return any(isinstance(p, (cst.Name, cst.Attribute)) and dotted(p) == name for p in parts)


def _emptied(ctx: Context) -> frozenset[str]:
    """The names of lists that the project may take layers out of, or put others in the place of."""
    if ctx.emptied is None:
        linked = ctx.facts.linked
        elsewhere = linked.emptied(ctx.facts.module) if linked is not None else frozenset[str]()
        ctx.emptied = emptied(walk(ast.parse(ctx.source.text))) | elsewhere
    return ctx.emptied


def _is_filled_attribute(ctx: Context, info: FunctionInfo, node: cst.Attribute) -> bool:
    """``self.layers``, which the constructor makes, each time of a list that is not empty."""
    owner, params = info.owner, info.node.params.params
    if owner is None or not params or not isinstance(node.value, cst.Name):
        return False
    init = owner.methods.get("__init__")
    if node.value.value != params[0].name.value or init is None:
        return False
    values: list[cst.BaseExpression] = []
    for assign in ctx.source.index.of_type(cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Del):
        written = assign.targets if isinstance(assign, cst.Assign) else [assign]
        for one in written:
            target = getattr(one, "target", one)
            found = ctx.source.index.within(target, cst.Attribute)
            if any(n.attr.value == node.attr.value for n in found):
                if target is found[0] and _is_of_others(ctx, owner, target):
                    continue
                if target is not found[0] or not isinstance(assign, cst.Assign):
                    return False
                values.append(assign.value)
    return (
        bool(values)
        and all(_is_filled_list(ctx, init, one) for one in values)
        and node.attr.value not in _emptied(ctx)
    )


def _is_filled_list(ctx: Context, init: FunctionInfo, made: cst.BaseExpression) -> bool:
    """``nn.ModuleList([…])`` in a constructor, of what is not empty."""
    if not ctx.facts.tree.holds(init.node.body, made):
        return False
    if not isinstance(made, cst.Call) or len(made.args) != 1 or made.args[0].star:
        return False
    kind = ctx.facts.kind(made)
    listed = isinstance(kind, k.Module) and kind.cls in _LISTS
    return listed and _is_filled(ctx, init, made.args[0].value)


def _is_of_others(ctx: Context, owner: ClassInfo, target: cst.Attribute) -> bool:
    """``self.layers = …`` in a module that no instance of a class is, nor of a class that derives from it."""
    classes = list(ctx.facts.classes.values())
    around = [n for n in ctx.facts.tree.around(target) if isinstance(n, cst.FunctionDef)]
    info = ctx.facts.functions.get(around[-1]) if around else None
    if info is None or info.owner is None or info.owner.torch_base is None:
        return False
    params = info.node.params.params
    own = isinstance(target.value, cst.Name) and bool(params)
    if not own or target.value.value != params[0].name.value:  # type: ignore[attr-defined]
        return False
    return not any({owner, info.owner} <= set(one.lineage()) for one in classes)


Step = tuple[cst.CSTNode, Sequence[cst.CSTNode], tuple[cst.CSTNode, ...]]
"""A statement, what it evaluates and the loops around it."""


def read_in_turns(
    order: Sequence[Step],
    reads: Sequence[frozenset[str]],
    position: int,
) -> frozenset[str]:
    """What the further turns of the loops around a statement read of the names that it has found there.

    ``order`` are the statements with the loops around each, ``reads`` the names that each reads.
    """
    found = frozenset[str]()
    for loop in order[position][2]:
        anew = rebound((loop,))  # what each turn binds before it is read there
        for i, (node, _, around) in enumerate(order[: position + 1]):
            if loop in around:
                found |= reads[i] - anew - rebound(around[around.index(loop) + 1 :])
                anew |= bound_at_once(loop, node)
    return found


def run_after(tree: Tree, order: Sequence[Step], position: int) -> list[int]:
    """The places of the statements behind one that may run once it has run.

    Not those of the other branch of an ``if``, but where a loop comes by it again.
    """
    statement, _, loops = order[position]
    around = tree.around(statement) if tree.has(statement) else []
    once = min((around.index(loop) for loop in loops if loop in around), default=len(around))
    instead = [
        one.orelse
        for one in around[:once]
        if isinstance(one, cst.If)
        and one.orelse is not None
        and (one.body is statement or tree.holds(one.body, statement))
    ]
    return [
        i
        for i in range(position + 1, len(order))
        if not any(tree.holds(one, order[i][0]) for one in instead)
    ]


def rebound(loops: Sequence[cst.CSTNode]) -> frozenset[str]:
    """The names that loops bind at the head of each turn."""
    heads = (loop.target for loop in loops if isinstance(loop, cst.For))
    return frozenset(name for head in heads for name in bound(head))


def bound_at_once(loop: cst.CSTNode, line: cst.CSTNode) -> frozenset[str]:
    """The names that a line binds which every turn of a loop comes by."""
    body = getattr(getattr(loop, "body", None), "body", ())
    if not isinstance(line, cst.SimpleStatementLine) or not any(one is line for one in body):
        return frozenset()
    given = [target for one in line.body if isinstance(one, cst.Assign) for target in one.targets]
    return frozenset(name for one in given for name in bound(one.target))

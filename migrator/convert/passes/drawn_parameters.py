"""Parameters that are picked out of a walk: ``next(net.parameters())``, ``max(…, key=…)``, ``itertools.chain(…)``.

What a loop does to the parameters of one module is followed, and layers are asked for the axes of theirs. What comes
by way of such a function is an array in the output, laid out as Flax has it, and who writes to it changes no layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.transposed import ADVICE, as_in_torch, offence
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.sharing import VIEWS
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_WALKS = ("parameters", "named_parameters")
_PICKING = frozenset("next max min filter map chain islice from_iterable sorted reversed".split())
_KEEPING = frozenset("iter list tuple enumerate zip".split())
_ONE = frozenset(("next", "max", "min"))


def _asked(ctx: Context) -> bool:
    return not ctx.words.isdisjoint(_WALKS)


@converts(cst.Call, named=_WALKS)
def picked(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure where a parameter that is picked out of a walk is written, or used by its axes."""
    ctx, func = rw.ctx, node.func
    known = isinstance(func, cst.Attribute) and ctx.facts.tree.has(node)
    if not known or not isinstance(func, cst.Attribute) or func.attr.value not in _WALKS:
        return
    calls, whole = _around(ctx, node)
    _check(ctx, calls, whole, func.attr.value == "named_parameters", ctx.kind(func.value))


@converts(cst.Call, when=_asked)
def handed_back(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for the same with what a function of the file returns: ``return list(net.parameters())``."""
    ctx = rw.ctx
    info = ctx.facts.names.get(ctx.facts.callee(node) or "")
    if (
        not isinstance(info, FunctionInfo)
        or info.settled is not None
        or not ctx.facts.tree.has(node)
    ):
        return
    walk = _returned(ctx, info)
    if walk is None:
        return
    looped = isinstance(ctx.facts.tree.parent(node), (cst.For, cst.CompFor))
    values = isinstance(
        walk, _COMPREHENSIONS
    )  # of the parameters, where a call gives them themselves
    _check(ctx, [node], node, False, k.UNKNOWN, _word(walk) in _ONE, values or not looped)
    parent = ctx.facts.tree.parent(node)
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    where = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    for one in [node, *(_reads(ctx, where, target.value) if isinstance(target, cst.Name) else ())]:
        above = ctx.facts.tree.parent(one)
        asked = above.attr.value if isinstance(above, cst.Attribute) else ""
        if asked in ("items", "values"):  # of a dict of parameters by their names
            walked = ctx.facts.tree.parent(above)
            _check(ctx, [node], walked, asked == "items", k.UNKNOWN, writes=values)
        elif isinstance(above, (cst.For, cst.CompFor)) and one is not node:
            _check(ctx, [node], one, False, k.UNKNOWN, writes=values)


_COMPREHENSIONS = (cst.ListComp, cst.DictComp, cst.SetComp, cst.GeneratorExp)


def _returned(ctx: Context, info: FunctionInfo) -> cst.BaseExpression | None:
    """The expression by which a function returns the parameters of a module, or one of them; their names aside."""
    tree = ctx.facts.tree
    for line in tree.within(info.node.body, cst.Return):
        value = line.value
        if isinstance(value, cst.Name):
            given = [
                one.value
                for one in tree.within(info.node.body, cst.Assign)
                if any(
                    isinstance(t.target, cst.Name) and t.target.value == value.value
                    for t in one.targets
                )
            ]
            value = given[0] if len(given) == 1 else None
        for call in tree.within(value, cst.Call) if value is not None else ():
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value not in _WALKS:
                continue
            if _hands_out(ctx, value, call):
                return value
    return None


def _hands_out(ctx: Context, value: cst.CSTNode, walk: cst.CSTNode) -> bool:
    """Whether a value is a walk, a list or dict of its parameters as they are, or one that is picked out of it."""
    node: cst.CSTNode = walk
    while node is not value:
        parent = ctx.facts.tree.parent(node)
        if isinstance(parent, cst.CompFor):
            made = ctx.facts.tree.parent(parent)
            kept = made.value if isinstance(made, cst.DictComp) else getattr(made, "elt", None)
            if not isinstance(kept, cst.Name) or kept.value not in syntax.names(parent.target):
                return False
            parent = made
        elif isinstance(parent, cst.Call):
            if _word(parent) not in _PICKING | _KEEPING | {"dict"}:
                return False
        elif not isinstance(parent, cst.Arg):
            return False
        node = parent
    return True


def _check(
    ctx: Context,
    calls: list[cst.Call],
    whole: cst.CSTNode,
    pairs: bool,
    of: k.Kind,
    one: bool = False,
    writes: bool = True,
) -> None:
    """Raise a Failure where a parameter of a module is written or used by its axes that is one of what calls give."""
    tree = ctx.facts.tree
    names = dict(_named(ctx, whole, bool(calls), pairs))
    for call in calls:
        for item in call.args:
            if isinstance(item.value, cst.Lambda):
                names |= {p.name.value: item.value.body for p in item.value.params.params}
    same = as_in_torch(ctx, of)
    uses: list[cst.CSTNode | None] = []
    for name, where in names.items():
        uses += _reads(ctx, where, name)
    one = one or (bool(calls) and _word(calls[-1]) in _ONE)
    if calls and not one and isinstance(tree.parent(whole), cst.Assign):
        target = tree.parent(whole).targets[0].target
        if isinstance(target, cst.Name):  # a list of parameters
            uses = [_entry(ctx, use) for use in uses if use is not None]
    if one:
        uses.append(calls[-1])
    elif calls:
        uses.append(_entry(ctx, calls[-1]))
    found = [use for use in uses if use is not None]
    for use in filter(None, (_second(ctx, use) for use in found) if pairs else found):
        if writes and _is_written(ctx, use):
            what = "a parameter that is picked out of others is written, which changes no layer of the output"
            raise Failure(
                use, "MUT001", what, "write to the parameters of each layer by their names"
            )
        place = None if same else offence(ctx, use)
        if place is not None:
            text = " ".join(syntax.code(use).split())
            what = (
                f"the axes of `{text}` count here, and Flax keeps the weight of a Linear transposed"
            )
            raise Failure(place, "API006", what, ADVICE)


def _around(ctx: Context, node: cst.CSTNode) -> tuple[list[cst.Call], cst.CSTNode]:
    """The calls that a walk is handed to one after the other, if one of them picks; and the outermost expression."""
    calls: list[cst.Call] = []
    around = ctx.facts.tree.around(node)
    while around:
        parent = around.pop()
        if isinstance(parent, (cst.Arg, cst.Element, cst.List, cst.Tuple)):
            continue
        if isinstance(parent, cst.CompFor) and parent.iter is node and around:
            made = around.pop()  # ``(p for p in net.parameters() if p.dim() > 1)``
            given = syntax.code(getattr(made, "elt", parent.target))
            if isinstance(made, cst.DictComp) or given not in syntax.names(parent.target):
                break
            node = made
            continue
        if not isinstance(parent, cst.Call) or parent.func is node:
            break
        if _word(parent) not in _PICKING | _KEEPING:
            break
        calls.append(parent)
        node = parent
        if _word(parent) in _ONE:
            break
    return (calls, node) if any(_word(one) in _PICKING for one in calls) else ([], node)


def _word(call: cst.CSTNode) -> str:
    func = call.func if isinstance(call, cst.Call) else None
    last = func.attr if isinstance(func, cst.Attribute) else func
    return last.value if isinstance(last, cst.Name) else ""


def _named(
    ctx: Context, node: cst.CSTNode, picks: bool, with_names: bool
) -> Iterator[tuple[str, cst.CSTNode]]:
    """The names that parameters get where an expression stands, and where these are read."""
    around = ctx.facts.tree.around(node)
    parent = around[-1] if around else None
    where = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    target: Any = None
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        unpacked = isinstance(target, (cst.Tuple, cst.List))
        if not picks and not unpacked:
            return
    elif isinstance(parent, (cst.For, cst.CompFor)) and parent.iter is node and picks:
        target = parent.target
        where = around[-2] if isinstance(parent, cst.CompFor) else parent.body
    if isinstance(target, cst.Tuple) and with_names and len(target.elements) > 1:
        target = target.elements[-1].value
    for name in syntax.names(target) if target is not None else ():
        yield name, where


def _reads(ctx: Context, where: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    tree = ctx.facts.tree
    found = [n for n in tree.within(where, cst.Name) if n.value == name]
    found = [n for n in found if _is_read(tree.parent(n), n)]
    return [n for n in found if not isinstance(ctx.kind(n), (k.Const, k.Scalar))]


def _is_read(parent: cst.CSTNode, node: cst.Name) -> bool:
    """Whether a name is a variable's, not that of an attribute or of an argument."""
    if isinstance(parent, cst.Attribute):
        return parent.attr is not node
    return not isinstance(parent, cst.Param) and getattr(parent, "keyword", None) is not node


def _entry(ctx: Context, node: cst.CSTNode) -> cst.CSTNode | None:
    """``ps[0]`` of a list of parameters; None for the list itself."""
    parent = ctx.facts.tree.parent(node)
    entry = isinstance(parent, cst.Subscript) and parent.value is node and len(parent.slice) == 1
    return parent if entry and isinstance(parent.slice[0].slice, cst.Index) else None


def _second(ctx: Context, node: cst.CSTNode) -> cst.CSTNode | None:
    """``x[1]`` of a name and a parameter; a name of its own stands for the parameter."""
    parent = ctx.facts.tree.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        index = syntax.code(parent.slice[0].slice).strip()
        return parent if index in ("1", "-1") and len(parent.slice) == 1 else None
    if isinstance(ctx.kind(node), k.Tuple):
        return None
    return node if isinstance(node, cst.Name) and not _in_lambda(ctx, node) else None


def _in_lambda(ctx: Context, node: cst.Name) -> bool:
    """Whether a name is the parameter of a lambda, which is handed a pair."""
    around = (one for one in ctx.facts.tree.around(node) if isinstance(one, cst.Lambda))
    return any(node.value == p.name.value for one in around for p in one.params.params)


def _is_written(ctx: Context, node: cst.CSTNode) -> bool:
    """``p.data.fill_(0)``, ``p.data[0] = 1``, ``p.data = w``, ``nn.init.ones_(p)``."""
    below = node
    for parent in reversed(ctx.facts.tree.around(node)):
        if isinstance(parent, cst.Attribute):
            word = parent.attr.value
            if word.endswith("_") and not word.endswith("__") and word != "requires_grad_":
                return True
            if word in ("shape", "size", "grad", "device", "dtype", "requires_grad"):
                return False
        elif isinstance(parent, cst.Subscript):
            if parent.value is not below:
                return False
        elif isinstance(parent, cst.Arg):
            below = parent
            continue
        elif isinstance(parent, cst.Call):
            if parent.func is not below:
                called = ctx.facts.callee(parent) or ""
                first = bool(parent.args) and parent.args[0] is below
                return first and called.startswith("torch.") and called.endswith("_")
            if not isinstance(below, cst.Attribute) or below.attr.value not in VIEWS:
                return False  # ``p.new(2).zero_()``, ``p.clone().mul_(2)``: something new
        elif isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
            return parent.target is below and not isinstance(below, cst.Name)
        else:
            return False
        below = parent
    return False

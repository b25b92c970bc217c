"""A parameter that is written through a view and then made anew of that view, as YOLO's heads set their biases.

``b = m.bias.view(3, -1)``, ``b.data[:, 4] += 1``, ``m.bias = nn.Parameter(b.view(-1))``: the memory stays the same all along,
so the Variable needs its new value at the end alone, where nothing has read it in between.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.assignments import bound
from migrator.convert.context import Context
from rules import definitions

_WHOLE = frozenset("view reshape flatten view_as unsqueeze squeeze data detach".split())
"""Views that show every element of a tensor, in order."""
_HARMLESS = ("torch.", "math.", "numpy.", "builtins.", "Tensor.")


def is_written_back(ctx: Context, statement: cst.CSTNode, name: cst.Name, attribute: str) -> bool:
    """Whether an attribute that a statement writes through a name gets the name's memory back before anybody looks."""
    tree = ctx.facts.tree
    blocks = [n for n in tree.around(statement) if isinstance(n, cst.IndentedBlock)]
    for block in reversed(blocks):
        lines = list(block.body)
        at = next(
            i for i, one in enumerate(lines) if one is statement or tree.holds(one, statement)
        )
        made = [i for i in range(at) if name.value in _bound(ctx, lines[i])]
        back = next(
            (i for i in range(at + 1, len(lines)) if _gives_back(ctx, lines[i], name, attribute)),
            None,
        )
        if back is None:
            continue
        line = _assigned(lines[made[-1]]) if made else None
        return (
            line is not None
            and _is_whole_view(ctx, line.value, attribute)
            and not any(_looks(ctx, one, attribute) for one in lines[made[-1] + 1 : back])
        )
    return False


def _assigned(line: cst.CSTNode) -> cst.Assign | None:
    """The assignment that a line is."""
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        only = line.body[0]
        if isinstance(only, cst.Assign) and len(only.targets) == 1:
            return only
    return None


def _bound(ctx: Context, line: cst.CSTNode) -> set[str]:
    """The names that a line binds, but not those that it writes to."""
    found = ctx.facts.tree.within(line, cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.With)
    targets: list[cst.CSTNode] = []
    for one in found:
        if isinstance(one, cst.Assign):
            targets += [each.target for each in one.targets]
        elif isinstance(one, cst.With):
            targets += [item.asname.name for item in one.items if item.asname is not None]
        else:
            targets.append(one.target)
    return {each for one in targets for each in bound(one)}


def _is_whole_view(ctx: Context, value: cst.BaseExpression, text: str) -> bool:
    """``text``, ``text.data``, ``text.view(…)``: all of its elements in their order."""
    while syntax.code(value).strip() != text:
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if ctx.facts.callee(value) not in {f"Tensor.{one}" for one in _WHOLE}:
                return False
            value = value.func
        if not isinstance(value, cst.Attribute) or value.attr.value not in _WHOLE:
            return False
        value = value.value
    return True


def _gives_back(ctx: Context, line: cst.CSTNode, name: cst.Name, attribute: str) -> bool:
    """``attribute = nn.Parameter(name.view(-1))``."""
    assign = _assigned(line)
    if assign is None or syntax.code(assign.targets[0].target).strip() != attribute:
        return False
    value = assign.value
    if not isinstance(value, cst.Call) or ctx.facts.callee(value) != "torch.nn.Parameter":
        return False
    return bool(value.args) and _is_whole_view(ctx, value.args[0].value, name.value)


def _looks(ctx: Context, line: cst.CSTNode, attribute: str) -> bool:
    """Whether a line may read an attribute, leave before it is given back, or give what holds it another meaning."""
    head, _, last = attribute.rpartition(".")
    tree = ctx.facts.tree
    if any(n.attr.value == last for n in tree.within(line, cst.Attribute)):
        return True
    if tree.within(line, cst.Return, cst.Break, cst.Continue, cst.Yield):
        return True
    if head.partition(".")[0] in _bound(ctx, line):
        return True
    return not all(_is_harmless(ctx, call) for call in tree.within(line, cst.Call))


def _is_harmless(ctx: Context, call: cst.Call) -> bool:
    """Whether a call reads what it is given alone: a function of torch, or what a tensor has a method of that name for."""
    name = ctx.facts.callee(call)
    if any(ctx.is_module(one.value) for one in call.args):
        return False
    if name is not None:  # "torch.nn.Linear()" is the call of a layer, which reads its parameters
        return name.startswith(_HARMLESS) and not name.endswith("()")
    return isinstance(call.func, cst.Attribute) and bool(
        definitions.ops(f"Tensor.{call.func.attr.value}")
    )

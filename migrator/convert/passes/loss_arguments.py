"""Arguments of losses that are read back: ``loss_fct.ignore_index``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Attribute, named=("ignore_index",), of=(k.Module,))
def ignored(rw: Rewriter, node: cst.Attribute) -> cst.BaseExpression | None:
    """``loss_fct.ignore_index`` of ``loss_fct = nn.CrossEntropyLoss()``: the number that it was given, or -100."""
    ctx, name = rw.ctx, node.value
    kind, tree = ctx.kind(name), ctx.source.index
    if node.attr.value != "ignore_index" or not isinstance(name, cst.Name):
        return None
    if not isinstance(kind, k.Module) or kind.cls not in (
        "torch.nn.CrossEntropyLoss",
        "torch.nn.NLLLoss",
    ):
        return None
    function = next(
        (n for n in reversed(tree.around(node)) if isinstance(n, cst.FunctionDef)), None
    )
    if function is None or name.value in syntax.parameters(function):
        return None
    found = set()
    others = (cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.AsName)
    for other in tree.within(function.body, *others):
        bound = other.name if isinstance(other, cst.AsName) else other.target
        if name.value in syntax.names(bound):
            return None
    for line in tree.within(function.body, cst.Assign):
        if not any(syntax.code(one.target) == name.value for one in line.targets):
            continue
        if not isinstance(line.value, cst.Call) or ctx.kind(line.value) != kind:
            return None
        given = [
            a.value for a in line.value.args if a.keyword and a.keyword.value == "ignore_index"
        ]
        plain = all(a.keyword is not None and not a.star for a in line.value.args)
        if not plain or not all(map(syntax.is_number, given)):
            return None
        found.add(syntax.code(given[0]) if given else "-100")
    return syntax.parse(found.pop()) if len(found) == 1 else None

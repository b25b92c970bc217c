"""Sums and products that a module keeps for quantisation: ``self.skip_add = nn.quantized.FloatFunctional()``.

As long as nothing is quantised they are torch's functions (``torch/ao/nn/quantized/modules/functional_modules.py``):
``self.skip_add.add(a, b)`` is ``torch.add(a, b)``.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax

_KEPT = re.compile(r"\bself\.(\w+) *= *(?:\w+\.)*FloatFunctional\(\)")
_SAME = {
    "add": "torch.add",
    "add_scalar": "torch.add",
    "mul": "torch.mul",
    "mul_scalar": "torch.mul",
    "cat": "torch.cat",
    "matmul": "torch.matmul",
}


def by_functions(tree: cst.Module, text: str) -> cst.Module:
    """A file that calls torch's functions themselves, where all that is asked of such objects is one."""
    if "FloatFunctional" not in text or re.search(r"^import torch\b", text, re.M) is None:
        return tree
    names = set(_KEPT.findall(text))
    for name in list(names):
        uses = re.findall(rf"\.{name}\b(?! *= *(?:\w+\.)*FloatFunctional\(\))(\.\w+\()?", text)
        texts = re.search(rf"[\"']{name}[\"']", text) is not None
        if texts or any(one[1:-1] not in (*_SAME, "add_relu") for one in uses):
            names.discard(name)
    if not names:
        return tree
    changed: Any = tree.visit(_Functions(names))
    return changed


class _Functions(cst.CSTTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        match updated_node.func:
            case cst.Attribute(cst.Attribute(attr=cst.Name(name)), cst.Name(method)):
                if name in self.names:
                    func = syntax.parse(_SAME.get(method, "torch.add"))
                    made = syntax.changed(updated_node, func=func)
                    if method == "add_relu":
                        bare = syntax.changed(made, lpar=[], rpar=[])
                        made = syntax.with_args(
                            cst.Call(syntax.parse("torch.relu")), [cst.Arg(bare)]
                        )
                    return made
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        match updated_node.body:
            case [
                cst.Assign([cst.AssignTarget(cst.Attribute(attr=cst.Name(name)))], cst.Call(func))
            ]:
                if name in self.names and syntax.code(func).endswith("FloatFunctional"):
                    return cst.RemoveFromParent()
        return updated_node

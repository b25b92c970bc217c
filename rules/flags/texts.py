"""API013: code within a text, which nothing that reads the file sees."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.registry import FlagContext, flag


@flag(
    "API013",
    "text-evaluated",
    cst.Call,
    effort=0.5,
    what="code within a text is run",
    why="What the text names may be torch's, which the output does not import; only a run tells what it is.",
    example="def build(name: str):\n    return eval(name)(4, 4)",
    instead='def build(name: str):\n    return {"linear": nn.Linear, "bilinear": nn.Bilinear}[name](4, 4)',
)
def text_evaluated(node: cst.Call, ctx: FlagContext) -> str | None:
    """``eval(name)`` and ``exec(lines)`` in a file that imports torch, without names of their own to look up."""
    name = ctx.callee(node)
    if name not in ("builtins.eval", "builtins.exec") or len(node.args) != 1:
        return None
    if not _imports_torch(ctx.parents[0]):
        return None
    if name == "builtins.exec":
        return "write out the statements that it runs"
    return "choose among functions or classes by a dict"


def _imports_torch(module: Any) -> bool:
    """Whether a file imports torch or a part of it anywhere."""
    pending = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Import):
            if any(_first(alias.name) == "torch" for alias in node.names):
                return True
        elif isinstance(node, cst.ImportFrom):
            if node.module is not None and not node.relative and _first(node.module) == "torch":
                return True
        elif not isinstance(node, cst.BaseExpression):
            pending.extend(node.children)
    return False


def _first(node: cst.BaseExpression) -> str:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""

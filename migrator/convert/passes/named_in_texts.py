"""``activation="torch.nn.GELU"``: what looks a layer up by such a text finds torch's, which takes no arrays."""

from __future__ import annotations

import re

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer.symbols import canonical
from rules import definitions
from rules.torch_names import table

_PATH = re.compile(r"torch(\.\w+)*\.[A-Za-z_]\w*")
_NUMBERS = re.compile(
    r"torch\.(u?int\d*|float\d*|bfloat16|half|double|short|long|bool|complex\d*|cfloat|cdouble|\w*Tensor|device|dtype)"
)
"""dtypes, which are compared with their texts."""


def _has_paths(ctx: Context) -> bool:
    return '"torch.' in ctx.source.text or "'torch." in ctx.source.text


@converts(cst.SimpleString, when=_has_paths)
def torch_by_name(rw: Rewriter, node: cst.SimpleString) -> None:
    """Report a text that is the full name of a layer or function of torch, and of no table of the file."""
    ctx, text = rw.ctx, node.evaluated_value
    if not isinstance(text, str) or not _PATH.fullmatch(text) or _NUMBERS.fullmatch(text):
        return
    if not ctx.facts.tree.has(node) or not _is_called(canonical(text)) or _is_looked_up(ctx, text):
        return
    what = f"the text names {text}: what looks it up gets torch's"
    ctx.report(
        node,
        "API001",
        what,
        "name the converted layer or function, or keep a table of those it may be",
    )


def _is_called(name: str) -> bool:
    """Whether torch has a class or a function of a name, and no module: ``filterwarnings(module="torch.nn.modules")``."""
    called = name in table()["class"] or name in table()["function"]
    return called or bool(definitions.ops(name) or definitions.layers(name))


def _is_looked_up(ctx: Context, text: str) -> bool:
    """Whether the file compares something with the text, or has it for the key of a table."""
    for node in ctx.source.index.of_type(cst.SimpleString):
        if node.evaluated_value == text:
            parent = ctx.source.index.around(node)[-1]
            key = isinstance(parent, cst.DictElement) and parent.key is node
            if key or isinstance(
                parent, (cst.Comparison, cst.ComparisonTarget, cst.Expr, cst.Index)
            ):
                return True
    return False

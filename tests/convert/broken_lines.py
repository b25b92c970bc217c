"""Sources with a line break wherever brackets allow one, as formatters leave some."""

from __future__ import annotations

import random

import libcst as cst

_OPERATORS = (cst.BaseBinaryOp, cst.BaseBooleanOp, cst.BaseCompOp)
_WHERE = {
    cst.IfExp: ("whitespace_before_if", "whitespace_before_else"),
    cst.ConcatenatedString: ("whitespace_between",),
    cst.Dot: ("whitespace_before",),
    cst.Comma: ("whitespace_after",),
}


class _Breaking(cst.CSTTransformer):
    def __init__(self, rng: random.Random, share: float) -> None:
        super().__init__()
        self.rng, self.share = rng, share
        self.depth = 0
        self.within_strings = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.depth += self._brackets(node)
        self.within_strings += isinstance(node, cst.FormattedString)
        return True

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        self.depth -= self._brackets(original_node)
        self.within_strings -= isinstance(original_node, cst.FormattedString)
        if not self.depth or self.within_strings:
            return updated_node
        fields = _WHERE.get(type(original_node), ())
        if isinstance(original_node, _OPERATORS):
            fields = ("whitespace_before",) if self.rng.random() < 0.5 else ("whitespace_after",)
        for field in fields:
            if isinstance(getattr(updated_node, field), cst.SimpleWhitespace):
                if self.rng.random() < self.share:
                    space = cst.SimpleWhitespace("    " * self.rng.randrange(5))
                    made = cst.ParenthesizedWhitespace(indent=True, last_line=space)
                    updated_node = updated_node.with_changes(**{field: made})
        return updated_node

    def _brackets(self, node: cst.CSTNode) -> int:
        inside = isinstance(node, cst.Arg | cst.SubscriptElement | cst.List | cst.Dict | cst.Set)
        own = getattr(node, "lpar", ())
        return int(inside or (isinstance(own, list | tuple) and len(own) > 0))


def broken(text: str, seed: int = 0, share: float = 0.5) -> str:
    """The source with some of its lines broken within brackets."""
    tree = cst.parse_module(text)
    made = tree.visit(_Breaking(random.Random(seed), share))
    assert isinstance(made, cst.Module)
    return made.code

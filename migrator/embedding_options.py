"""Options of embeddings that nobody gives: ``F.embedding(i, w, padding_idx, embed.max_norm, embed.norm_type)``.

Where no embedding of a file is made with one of them, they are what torch's constructor has by default.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax

_DEFAULTS = {
    "max_norm": "None",
    "norm_type": "2.0",
    "scale_grad_by_freq": "False",
    "sparse": "False",
}
_READ = re.compile(r"\bembedding\([^)]*\.max_norm\b")
_GIVEN = re.compile(
    r"\b(?:max_norm|norm_type|scale_grad_by_freq|sparse)\s*=[^=]|\(\w*\.?Embedding\)|\bEmbeddingBag\b"
)
"""An option that is given or written, a class that derives from an embedding."""
_BEFORE = 3
"""The arguments of an embedding that stand before these."""


def as_defaults(tree: cst.Module, text: str) -> cst.Module:
    """A file that looks rows up with the options which its embeddings have."""
    if not _READ.search(text) or "Embedding(" not in text or _GIVEN.search(text):
        return tree
    calls = [one for one in syntax.walk(tree) if isinstance(one, cst.Call)]
    made = [one for one in calls if _last(one.func) == "Embedding"]
    if not made or any(len(one.args) > _BEFORE or any(a.star for a in one.args) for one in made):
        return tree
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    for call in calls:
        if _last(call.func) == "embedding":
            for one in call.args:
                value = one.value
                if isinstance(value, cst.Attribute) and value.attr.value in _DEFAULTS:
                    if not (isinstance(value.value, cst.Name) and value.value.value == "self"):
                        found[value] = syntax.parse(_DEFAULTS[value.attr.value])

    def visit(node: cst.CSTNode) -> Any:
        return found[node] if node in found else syntax.rebuild(node, visit)

    whole: cst.Module = visit(tree) if found else tree
    return whole


def _last(func: cst.BaseExpression) -> str:
    last = func.attr if isinstance(func, cst.Attribute) else func
    return last.value if isinstance(last, cst.Name) else ""

"""What the objects of ``torch.distributions`` have, and what their methods return."""

from __future__ import annotations

import ast
from functools import cache

from migrator import python_tree
from migrator.infer import kinds as k
from rules.definitions import module_file

DISTRIBUTIONS = "torch.distributions."
_FILES = ("distributions", "continuous", "counts", "transformed")
"""The files of ``rules/compat`` with the converted classes."""
_SHAPES = ("batch_shape", "event_shape")
_OBJECTS = frozenset(
    "base_dist transforms mixture_distribution component_distribution parts".split()
)
_NEEDS = {"perplexity": "entropy", "stddev": "variance"}
"""What the base class has for all, and what it computes it from."""
DIVERGENCE = "torch.distributions.kl_divergence"


def is_distribution(kind: k.Kind | None) -> bool:
    """Whether a value is one of torch's distributions, which holds arrays."""
    return isinstance(kind, k.Other) and kind.type.startswith(DISTRIBUTIONS)


@cache
def _classes() -> dict[str, ast.ClassDef]:
    found = {}
    for name in _FILES:
        for node in module_file(f"rules.compat.{name}").tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = node
    return found


def members(name: str) -> dict[str, bool]:
    """The public attributes of a converted class, by its name, and whether each is a method; none of other classes."""
    found = _attributes(name)
    return {
        key: method
        for key, method in found.items()
        if not key.startswith("_") and _NEEDS.get(key, key) in found
    }


@cache
def _attributes(name: str) -> dict[str, bool]:
    """All attributes of a converted class and of those it derives from."""
    node = _classes().get(name)
    if node is None:
        return {}
    found: dict[str, bool] = {}
    for base in node.bases:
        found |= _attributes(base.id) if isinstance(base, ast.Name) else {}
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            found[item.name] = not item.decorator_list
        elif isinstance(item, ast.Assign):
            found |= {t.id: False for t in item.targets if isinstance(t, ast.Name)}
    for part in python_tree.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            found[part.attr] = False
    return found


def converted(value: k.Kind) -> str:
    """The name of the converted class that a value is an object of, or ""."""
    if not isinstance(value, k.Other) or not value.type.startswith(DISTRIBUTIONS):
        return ""
    name = value.type.removeprefix(DISTRIBUTIONS)
    return name if name in _classes() else ""


def is_transform(value: k.Kind) -> bool:
    """Whether a value is one of torch's transforms, which are called like functions."""
    return converted(value).endswith("Transform")


def comparable(p: k.Kind, q: k.Kind) -> bool:
    """Whether ``kl_divergence`` of two distributions, as far as they are known, has a conversion."""
    formulas = [_formula(name) for name in (converted(p), converted(q)) if name]
    return "" not in formulas and len(set(formulas)) < 2


def _formula(name: str) -> str:
    """The class that has the formula of a class's divergence, or ""."""
    node = _classes().get(name)
    if node is None:
        return ""
    if any(isinstance(item, ast.FunctionDef) and item.name == "_divergence" for item in node.body):
        return name
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return next(filter(None, map(_formula, bases)), "")


def of_distribution(value: k.Other, name: str) -> k.Kind:
    """The kind of an attribute of a distribution or a transform."""
    method = members(converted(value)).get(name)
    if method is None or name in _OBJECTS:
        return k.UNKNOWN
    if method:
        return k.Function(f"{value.type}.{name}", value)
    if name in _SHAPES:
        return k.Sequence(k.INT, "size")
    if name == "inv":
        return k.Other(f"{DISTRIBUTIONS}InverseTransform")
    return k.BOOL if name == "has_rsample" else k.TENSOR


def result(name: str) -> k.Kind | None:
    """The kind of what a method of a distribution returns, by its qualified name; None for other functions."""
    owner, _, method = name.rpartition(".")
    of = owner.removeprefix(DISTRIBUTIONS)
    if of == owner or method not in members(of):
        return None
    return k.Other(owner) if method == "expand" else k.TENSOR

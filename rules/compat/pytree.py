"""``torch.utils._pytree``: nested containers as a flat list and back.

Unlike in ``jax.tree``, None is a leaf, a dict keeps the order of its keys, and a container of a class of its own (but a
named tuple, or one that is registered) is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

import jax

NODES = {}
"""Class → the functions that take its objects apart and make them of their parts, for torch's trees."""


class Context:
    """What an object keeps beside its parts, which JAX compares and hashes."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Context) and self.value == other.value

    def __hash__(self):
        return 0  # as equal as they are; a list has no hash of its own


def register_container(cls, flatten_fn, unflatten_fn):
    """Let the objects of a class be containers: of torch's trees, and of what JAX transforms."""

    def taken_apart(whole):
        parts, context = flatten_fn(whole)
        return list(parts), Context(context)

    NODES[cls] = flatten_fn, unflatten_fn
    jax.tree_util.register_pytree_node(
        cls, taken_apart, lambda context, parts: unflatten_fn(list(parts), context.value)
    )


class TreeSpec:
    """How a nested container is rebuilt: ``build`` takes the list of its parts, None for a leaf."""

    def __init__(self, build, children):
        self.build = build
        self.children = children
        self.num_leaves = 1 if build is None else sum(spec.num_leaves for spec in children)


def tree_parts(tree):
    """The parts of one container and the function that builds it from them; (None, None) for a leaf."""
    kind = type(tree)
    if kind in NODES:
        parts, context = NODES[kind][0](tree)
        return list(parts), lambda parts: NODES[kind][1](list(parts), context)
    if kind in (list, tuple):
        return list(tree), kind
    if kind in (dict, OrderedDict):
        return list(tree.values()), lambda parts: kind(zip(tree, parts, strict=True))
    if kind is defaultdict:
        factory = tree.default_factory
        return list(tree.values()), lambda parts: kind(factory, zip(tree, parts, strict=True))
    if kind is deque:
        return list(tree), lambda parts: kind(parts, maxlen=tree.maxlen)
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return list(tree), lambda parts: kind(*parts)
    return None, None


def tree_flatten(tree, is_leaf=None):
    """The leaves of nested containers in order, and what ``tree_unflatten`` rebuilds them by."""
    parts, build = (None, None) if is_leaf is not None and is_leaf(tree) else tree_parts(tree)
    if parts is None:
        return [tree], TreeSpec(None, [])
    leaves, children = [], []
    for part in parts:
        found, spec = tree_flatten(part, is_leaf)
        leaves += found
        children.append(spec)
    return leaves, TreeSpec(build, children)


def tree_unflatten(leaves, treespec):
    """Nested containers from their leaves; ValueError where there are more or fewer than the tree has."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"{len(leaves)} leaves for a tree of {treespec.num_leaves}")
    if treespec.build is None:
        return leaves[0]
    parts, start = [], 0
    for spec in treespec.children:
        parts.append(tree_unflatten(leaves[start : start + spec.num_leaves], spec))
        start += spec.num_leaves
    return treespec.build(parts)


def tree_map(func, tree, *rests, is_leaf=None):
    """``func`` of each leaf and of what lies at its place in the other trees, which go as deep as the first."""
    if is_leaf is not None and is_leaf(tree):
        return func(tree, *rests)
    parts, build = tree_parts(tree)
    if parts is None:
        return func(tree, *rests)
    others = [tree_parts(rest)[0] for rest in rests]
    for rest, other in zip(rests, others, strict=True):
        alike = (isinstance(tree, dict) and isinstance(rest, dict)) or type(rest) is type(tree)
        if other is None or not alike or len(other) != len(parts):
            raise ValueError(f"{rest!r} is no {type(tree).__name__} of {len(parts)} parts")
        if isinstance(tree, dict):
            other[:] = [rest[key] for key in tree]
    rows = zip(parts, *others, strict=True)
    return build([tree_map(func, *row, is_leaf=is_leaf) for row in rows])

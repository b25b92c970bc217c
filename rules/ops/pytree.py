"""``torch.utils._pytree``: the functions that packages use to walk nested outputs."""

from __future__ import annotations

from rules.compat.pytree import register_container
from rules.compat.pytree import tree_flatten as flatten
from rules.compat.pytree import tree_map as mapped
from rules.compat.pytree import tree_unflatten as rebuilt
from rules.registry import op


@op(
    "torch.utils._pytree.tree_flatten",
    example={"torch.utils._pytree.tree_flatten((x, n))": "tree_flatten((x, n))"},
)
def tree_flatten(tree, is_leaf=None):
    """The leaves, None among them, and the structure."""
    return flatten(tree, is_leaf=is_leaf)


@op("torch.utils._pytree.tree_unflatten")
def tree_unflatten(leaves, treespec):
    """The tree of a structure and its leaves."""
    return rebuilt(leaves, treespec)


@op("torch.utils._pytree.tree_leaves")
def tree_leaves(tree, is_leaf=None):
    """The leaves, None among them."""
    return flatten(tree, is_leaf=is_leaf)[0]


@op(
    "torch.utils._pytree.tree_map",
    example={"torch.utils._pytree.tree_map(f, (x, y))": "tree_map(f, (x, y))"},
)
def tree_map(func, tree, *rests, is_leaf=None):
    """A function of each leaf."""
    return mapped(func, tree, *rests, is_leaf=is_leaf)


@op("torch.utils._pytree.register_pytree_node", "torch.utils._pytree._register_pytree_node")
def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Objects of ``cls`` become containers, of which JAX's transformations take and give the parts as well."""
    register_container(cls, flatten_fn, unflatten_fn)

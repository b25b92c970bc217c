"""``hasattr(m, "inplace")``, ``getattr(m, "p", 0)`` of something unknown: what layers of torch have, and Flax's have not."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.source import dotted

_LOST = frozenset(
    "forward reset_parameters inplace p negative_slope kernel_size stride padding dilation reduction padding_idx "
    "num_embeddings embedding_dim normalized_shape scale_factor output_size elementwise_affine affine".split()
)
_LAYER = re.compile(
    r"(?i)(?:m|mod|module|layer|l|child|net|model|block|part|submodule|op|drop\w*)\d*$"
)
"""What layers are called."""
_SETTINGS = re.compile(r"(?i)arg|cfg|conf|opt|param|setting|spec|meta")
"""What names of settings hold."""


@converts(cst.Call, called=("builtins.hasattr", "builtins.getattr"))
def asked_for_lost(rw: Rewriter, node: cst.Call) -> Any:
    """A question whose answer would be another one in silence.

    Raises:
      Failure: it may be asked of a layer of torch's that is a function in the output, or has not got that.
    """
    ctx = rw.ctx
    asks = ctx.facts.callee(node)
    if asks not in ("builtins.hasattr", "builtins.getattr") or ctx.frame is None:
        return
    if len(node.args) != (2 if asks == "builtins.hasattr" else 3):
        return
    owner, name = node.args[0].value, node.args[1].value
    if not isinstance(name, cst.SimpleString) or name.evaluated_value not in _LOST:
        return
    kind = ctx.kind(owner)
    if not isinstance(kind, k.Unknown) and not k.is_unknown_module(kind):
        return
    if _SETTINGS.search(dotted(owner) or ""):
        return
    if name.evaluated_value == "p" and isinstance(kind, k.Unknown):
        if not _LAYER.match((dotted(owner) or "").rpartition(".")[2]):
            return  # many an object has one
    if name.evaluated_value == "inplace" and _only_sets(rw, node):
        return  # which changes nothing that is computed
    raise Failure(
        node,
        "API011",
        f"layers of torch have `{name.evaluated_value}`, and what they become may not: the answer would change",
        "ask for the classes that are meant by isinstance",
    )


def _only_sets(rw: Rewriter, node: cst.Call) -> bool:
    """``if hasattr(m, "inplace"): m.inplace = False``, and nothing else."""
    tree = rw.ctx.facts.tree
    parent = tree.around(node)[-1] if tree.has(node) else None
    if not isinstance(parent, cst.If) or parent.test is not node or parent.orelse is not None:
        return False
    lines = [part for line in parent.body.body for part in getattr(line, "body", [line])]
    targets = [t.target for one in lines if isinstance(one, cst.Assign) for t in one.targets]
    return len(targets) == len(lines) and all(
        isinstance(one, cst.Attribute) and one.attr.value == "inplace" for one in targets
    )


@converts(cst.Attribute, named=("requires_grad", "grad_fn", "is_leaf"))
def asked_for_history(rw: Rewriter, node: cst.Attribute) -> None:
    """``y.requires_grad`` of something unknown: nothing but a tensor of torch has it.

    Raises:
      Failure: it is read, and JAX's arrays have no such attribute.
    """
    ctx = rw.ctx
    if node.attr.value not in ("requires_grad", "grad_fn", "is_leaf") or ctx.frame is None:
        return
    if not isinstance(ctx.kind(node.value), k.Unknown) or not isinstance(node.value, cst.Name):
        return
    if not ctx.facts.tree.has(node) or isinstance(
        ctx.facts.tree.around(node)[-1], cst.AssignTarget
    ):
        return
    what = (
        f"Tensor.{node.attr.value}: autograd state of a tensor: jax.grad differentiates functions"
    )
    raise Failure(node, "API002", what, "leave it out, or decide by an argument")


@converts(cst.Assign, named=("dropout",), targets=(cst.Attribute,))
def given_anew(rw: Rewriter, node: cst.Assign) -> None:
    """``m.dropout = 0.0`` of something unknown: attention and recurrent layers go by what they were made with.

    Raises:
      Failure: it may be such a layer, which would go on as it was.
    """
    target, ctx = node.targets[0].target, rw.ctx
    if not isinstance(target, cst.Attribute) or target.attr.value != "dropout":
        return
    owner = target.value
    if ctx.is_self(owner) or not isinstance(ctx.kind(owner), k.Unknown):
        return
    if not _SETTINGS.search(dotted(owner) or ""):
        what = (
            "`dropout` is set of what may be a layer of torch's, which keeps its own in the output"
        )
        raise Failure(node, "API001", what, "hand it to the constructor")

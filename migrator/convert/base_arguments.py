"""What the constructor of a class hands to the layer that the class derives from."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k
from migrator.infer.python import is_self

_BEFORE_MODE = 8
"""The arguments of a convolution before ``padding_mode``."""
_BEFORE_AFFINE = 2
"""The arguments of a norm before ``elementwise_affine``."""


def pads_otherwise(ctx: Context) -> bool:
    """Whether the file hands a ``padding_mode`` to a convolution that is not torch's own class."""
    for call in ctx.source.index.of_type(cst.Call):
        kind = ctx.facts.kind(call.func)
        if isinstance(kind, k.Class) and kind.name.startswith("torch."):
            continue
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__":
            plain = [a for a in call.args if not a.star and a.keyword is None]
            if len(plain) > _BEFORE_MODE:
                return True
        if any(a.keyword is not None and a.keyword.value == "padding_mode" for a in call.args):
            return True
    return False


def hands_on(ctx: Context, init: cst.FunctionDef) -> bool:
    """Whether ``super().__init__`` gets starred arguments."""
    return any(
        isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "__init__"
        and any(arg.star for arg in node.args)
        for node in ctx.source.index.within(init, cst.Call)
    )


def over_axes(ctx: Context, init: cst.FunctionDef) -> bool:
    """Whether ``super().__init__`` of a norm may get a shape of several axes, or a number that Flax must not ask about.

    Without a weight Flax takes several axes without a word, so that the rules of norms then make the class that knows
    both, where it is not sure that there is one axis; the class that is derived from must be the same.
    """
    for call in ctx.source.index.within(init, cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "__init__":
            continue
        given = [a.value for a in call.args if a.keyword is None]
        if not syntax.is_super(call.func.value) and given and is_self(given[0]):
            del given[0]  # nn.LayerNorm.__init__(self, …)
        named = {a.keyword.value: a.value for a in call.args if a.keyword is not None}
        shape = named.get("normalized_shape", given[0] if given else None)
        affine = named.get("elementwise_affine", given[2] if len(given) > _BEFORE_AFFINE else None)
        kind = ctx.facts.kind(shape) if shape is not None else k.Unknown()
        if isinstance(kind, k.Sequence) or (isinstance(kind, k.Tuple) and len(kind.items) != 1):
            return True
        one = kind.items[0] if isinstance(kind, k.Tuple) else kind
        if affine is not None and one != k.INT and syntax.code(affine) != "True":
            return True
    return False

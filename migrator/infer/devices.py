"""What a program asks about devices: all its tensors lie on one, which is none of CUDA's."""

from __future__ import annotations

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts

HOST = "cpu"
"""What a device says its type is: that of the machine on which both versions are compared."""

_NOT_HERE = frozenset({"is_cuda", "is_mps", "is_xpu", "is_mkldnn", "is_quantized", "is_nested"})


def never(facts: Facts, node: cst.Attribute) -> bool:
    """``x.is_cuda`` and the like, which no array is."""
    return node.attr.value in _NOT_HERE and isinstance(facts.kind(node.value), k.Tensor)


def same(facts: Facts, left: cst.BaseExpression, right: cst.BaseExpression) -> bool | None:
    """Whether two devices, or the type of one and a text, are the same; None for anything else."""
    kinds = facts.kind(left), facts.kind(right)
    if all(isinstance(kind, k.Device) for kind in kinds):
        return _type(facts, left) == _type(facts, right)
    if k.NONE in kinds:
        one = right if kinds[0] == k.NONE else left
        return False if _of_tensor(facts, one) else None
    if any(_is_type_name(facts, side) for side in (left, right)):
        return False if any(_text(kind).startswith("torch.cuda.") for kind in kinds) else None
    types = [_read(facts, side) for side in (left, right)]
    return None if None in types else types[0] == types[1]


def _is_type_name(facts: Facts, node: cst.BaseExpression) -> bool:
    """``x.type()``, which is ``"torch.cuda.HalfTensor"`` or the like where a tensor lies on a device of CUDA's."""
    if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute):
        return False
    return node.func.attr.value == "type" and isinstance(facts.kind(node.func.value), k.Tensor)


def _text(kind: k.Kind) -> str:
    return str(kind.value) if isinstance(kind, k.Const) else ""


def among(facts: Facts, left: cst.BaseExpression, right: cst.BaseExpression) -> bool | None:
    """Whether the type of a device is one of the texts that are written there."""
    if _read(facts, left) is None or not isinstance(right, (cst.Tuple, cst.List, cst.Set)):
        return None
    found = [same(facts, left, element.value) for element in right.elements]
    return None if None in found else any(found)


def is_text(facts: Facts, call: cst.Call) -> bool:
    """``isinstance(x.device.type, str)``."""
    if not isinstance(call.func, cst.Name) or call.func.value != "isinstance" or not call.args:
        return False
    given, *wanted = [arg.value for arg in call.args]
    return (
        isinstance(given, cst.Attribute)
        and _read(facts, given) is not None
        and [facts.kind(one) for one in wanted] == [k.Function("builtins.str")]
    )


def is_cuda_tensor(facts: Facts, call: cst.Call) -> bool:
    """``isinstance(x.data, torch.cuda.FloatTensor)``."""
    if (
        not isinstance(call.func, cst.Name)
        or call.func.value != "isinstance"
        or len(call.args) != 2
    ):
        return False
    name = facts.qualified_name(call.args[1].value) or ""
    return name.startswith("torch.cuda.") and name.endswith("Tensor")


def _type(facts: Facts, node: cst.BaseExpression) -> str:
    """The type of a device: as it is written out, else that of all tensors."""
    if isinstance(node, cst.Call) and node.args and facts.callee(node) == "torch.device":
        given = facts.kind(node.args[0].value)
        if isinstance(given, k.Const) and isinstance(given.value, str):
            return given.value.partition(":")[0]
    return HOST


def _of_tensor(facts: Facts, node: cst.BaseExpression) -> bool:
    """``x.device``, which is never None; a variable of that name may be."""
    return (
        isinstance(node, cst.Attribute)
        and node.attr.value == "device"
        and isinstance(facts.kind(node.value), k.Tensor)
    )


def _read(facts: Facts, node: cst.BaseExpression) -> str | None:
    """The text that ``device.type``, ``str(device)``, or a constant is."""
    if isinstance(node, cst.Attribute) and node.attr.value == "type":
        device = node.value
        return _type(facts, device) if isinstance(facts.kind(device), k.Device) else None
    if isinstance(node, cst.Call) and facts.callee(node) == "builtins.str" and len(node.args) == 1:
        return HOST if isinstance(facts.kind(node.args[0].value), k.Device) else None
    kind = facts.kind(node)
    value = kind.value if isinstance(kind, k.Const) else None
    return value if isinstance(value, str) else None

"""What ``torch.autocast(…)`` asks for: whether it does anything, and on which device."""

from __future__ import annotations

from enum import Enum

import libcst as cst

_OF_A_DEVICE = ("enabled", "dtype", "cache_enabled")
_GENERAL = ("device_type", "dtype", "enabled", "cache_enabled")


class Use(Enum):
    """What becomes of an autocast region.

    OFF does nothing, by its arguments. ON_CUDA lowers the precision on CUDA only, and only if a flag says so: on any
    other device torch computes in the dtypes that the tensors have, as the port does. ON is anything else.
    """

    OFF = "off"
    ON_CUDA = "on cuda"
    ON = "on"


def use(node: cst.BaseExpression, name: str | None) -> Use | None:
    """What an expression asks for; None where it is no autocast.

    Args:
      name: what the expression, or the function that it calls, is called in torch.
    """
    if name is None or not name.startswith("torch.") or not name.endswith("autocast"):
        return None
    if not isinstance(node, cst.Call):
        return Use.ON
    of_a_device = name.startswith(("torch.cuda.", "torch.cpu."))
    given = _arguments(node, _OF_A_DEVICE if of_a_device else _GENERAL)
    enabled = given.get("enabled")
    if isinstance(enabled, cst.Name) and enabled.value == "False":
        return Use.OFF
    device = given.get("device_type")
    cuda = name.startswith("torch.cuda.") or (
        isinstance(device, cst.SimpleString) and device.evaluated_value == "cuda"
    )
    asked = enabled is not None and not (isinstance(enabled, cst.Name) and enabled.value == "True")
    return Use.ON_CUDA if cuda and asked else Use.ON


def _arguments(node: cst.Call, names: tuple[str, ...]) -> dict[str, cst.BaseExpression]:
    """Name → value of the arguments of a call, as far as none is starred."""
    found = {}
    for place, arg in enumerate(node.args):
        if arg.star:
            break
        if arg.keyword is not None:
            found[arg.keyword.value] = arg.value
        elif place < len(names):
            found[names[place]] = arg.value
    return found

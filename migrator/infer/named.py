"""Activations by a name that only a run tells: ``self.act = getattr(F, config.act)``."""

from __future__ import annotations

import re

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts
from migrator.infer.static import asked_name, exists
from migrator.source import dotted

_HELPERS = {
    "torch.nn.functional": "activation",
    "torch": "activation",
    "torch.nn": "activation_layer",
}
NAMES = {
    "torch.nn.functional": frozenset(
        "relu relu6 leaky_relu elu selu celu gelu silu mish sigmoid logsigmoid tanh softplus softsign hardtanh "
        "hardswish hardsigmoid hardshrink softshrink tanhshrink glu".split()
    ),
    "torch": frozenset("relu selu celu sigmoid tanh hardshrink".split()),
    "torch.nn": frozenset(
        "ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid LogSigmoid Tanh Softplus Softsign Hardtanh "
        "Hardswish Hardsigmoid Hardshrink Softshrink Tanhshrink Identity PReLU".split()
    ),
}
"""What the helpers know."""


def known_by_name(helper: str) -> tuple[str, str]:
    """What a helper that looks functions up by name means for the port, and what to do about it."""
    known = "paddings" if helper == "padding_layer" else "activations"
    what = f"which function this is, only a run tells: the port knows the {known}, and raises on another name"
    return what, f"add what else is asked for to {helper}()"


_ACTIVATING = re.compile(r"(^|_)(act|activations?|nonlinearity)(_|$)")
"""The name of a function that returns an activation: ``get_activation_fn``."""


def activation_helper(facts: Facts, node: cst.Call) -> str | None:
    """The function of ``rules.compat.by_name`` that finds what is asked for; None where it may be no activation.

    What is called with one tensor alone is an activation, or raises under JAX when it is asked for: no loss, pooling
    or normalisation; and a layer without options.
    """
    kind = facts.kind(node.args[0].value) if len(node.args) == 2 else None
    space = kind.name if isinstance(kind, k.Namespace) else ""
    if space not in NAMES or any(a.star or a.keyword is not None for a in node.args):
        return None
    if asked_name(facts, node) is not None:
        return None
    by_default = _by_default(facts, node) if space == "torch.nn" else None
    if by_default is None and space == "torch.nn" and _is_called_activation(facts, node):
        by_default = "activation_layer"
    named = space != "torch.nn" and _is_named_activation(facts, node)
    if by_default is not None or (not named and _asks_others(facts, space)):
        return by_default
    if isinstance(node.args[1].value, (cst.FormattedString, cst.BinaryOperation)):
        return None  # a name that is put together, as those of losses and norms are
    if space == "torch" and not named:
        return None  # which has much else that takes one tensor
    helper = _HELPERS[space]
    around = facts.tree.around(node)
    parent = around[-1]
    if isinstance(parent, cst.Call) and parent.func is node:
        return helper if len(parent.args) == (space != "torch.nn") else None
    value: cst.CSTNode = node
    while isinstance(parent, cst.IfExp) and parent.test is not value:
        around = around[:-1]  # relu if name == "relu" else getattr(F, name)
        value, parent = parent, around[-1]
    if isinstance(parent, cst.Return):
        made_by = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
        says = made_by is not None and _ACTIVATING.search(made_by.name.value)
        return helper if says and space != "torch.nn" else None
    if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
        return helper if named else None
    target = parent.targets[0].target
    name = dotted(target) if isinstance(target, (cst.Name, cst.Attribute)) else None
    if name is None:
        return None
    within = cst.FunctionDef if isinstance(target, cst.Name) else cst.ClassDef
    scope = next((one for one in reversed(around) if isinstance(one, within)), None)
    if scope is None:
        return None
    reads, calls, others_called = 0, 0, False
    below = facts.tree.below(scope)
    others = {target, *(one.attr for one in below if isinstance(one, cst.Attribute))}
    # act = getattr(nn, act), of an argument
    others |= {*facts.tree.below(node.args[1].value)}
    others |= {one.name for one in below if isinstance(one, cst.Param)}
    for one in below:
        if type(one) is type(target) and dotted(one) == name and one not in others:
            reads += 1
        if isinstance(one, cst.Call) and dotted(one.func) == name:
            plain = [a for a in one.args if not a.star and a.keyword is None]
            alone = len(one.args) == len(plain) == (space != "torch.nn")
            calls, others_called = calls + alone, others_called or not alone
    sure = named and not others_called
    return helper if sure or (calls and reads == calls) else None


PADDINGS = frozenset(
    f"{kind}Pad{axes}d"
    for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular")
    for axes in (1, 2, 3)
)


def _by_default(facts: Facts, node: cst.Call) -> str | None:
    """The helper for ``getattr(nn, activation)(**options)`` where ``activation="LeakyReLU"`` is a default.

    Who gives a default says what is meant: an activation is made with options by name, a padding with one size.
    """
    parent, name = facts.tree.around(node)[-1], node.args[1].value
    if (
        not isinstance(name, cst.Name)
        or not isinstance(parent, cst.Call)
        or parent.func is not node
    ):
        return None
    default = _default_of(facts, node, name.value)
    if not default or _asks_others(facts, "torch.nn", name.value):
        return None
    stars = [a.star for a in parent.args]
    if default in NAMES["torch.nn"] and stars in ([], ["**"]):
        return "activation_layer"
    given = parent.args[0].keyword is None if parent.args else False
    if default in PADDINGS and given and stars in ([""], ["", "**"]):
        return "padding_layer"
    return None


def _is_named_activation(facts: Facts, node: cst.Call) -> bool:
    """``activation = getattr(F, activation)``: the name says what it is, and a default says nothing else."""
    name = node.args[1].value
    last = dotted(name) if isinstance(name, (cst.Name, cst.Attribute)) else None
    if last is None or not _ACTIVATION.search(last.rpartition(".")[2]):
        return False
    last, known = last.rpartition(".")[2], NAMES["torch.nn.functional"]
    told = {_default_of(facts, node, last, anew=True)}
    for one in facts.tree.of_type(cst.Arg):
        if one.keyword is not None and one.keyword.value == last:
            told |= (
                {str(one.value.evaluated_value)}
                if isinstance(one.value, cst.SimpleString)
                else set()
            )
    return told <= {"", *known}


_ACTIVATION = re.compile(r"(?i)(^|_)(final_)?act(ivation)?(_\w+)?$|non_?linear")


def _is_called_activation(facts: Facts, node: cst.Call) -> bool:
    """``act = getattr(nn, activation)`` whose name says what it is, and which is made with options by name alone.

    Or of which a default says so."""
    around, name = facts.tree.around(node), node.args[1].value
    parent = around[-1]
    if not isinstance(name, cst.Name) or not isinstance(parent, cst.Assign):
        return False
    target = parent.targets[0].target
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    if len(parent.targets) != 1 or not isinstance(target, cst.Name) or function is None:
        return False
    default = _default_of(facts, node, name.value)
    if default not in NAMES["torch.nn"] and (default or not _ACTIVATION.search(name.value)):
        return False
    if _asks_others(facts, "torch.nn", name.value):
        return False
    below = facts.tree.below(function.body)
    calls = [c for c in below if isinstance(c, cst.Call) and dotted(c.func) == target.value]
    named = all(a.star == "**" or a.keyword is not None for c in calls for a in c.args)
    others = {*map(id, facts.tree.below(name)), id(target), *(id(c.func) for c in calls)}
    others |= {id(a.attr) for a in below if isinstance(a, cst.Attribute)}
    # act = Snake under another branch
    others |= {id(a.target) for a in below if isinstance(a, cst.AssignTarget)}
    reads = [n for n in below if isinstance(n, cst.Name) and n.value == target.value]
    return bool(calls) and named and all(id(one) in others for one in reads)


def _default_of(facts: Facts, node: cst.Call, name: str, anew: bool = False) -> str:
    """The text that is the default of the parameter of this name; an empty one where the function gives it another.

    Args:
      anew: the function may give the name another value.
    """
    around = facts.tree.around(node)
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    if function is None:
        return ""
    bound = facts.tree.within(function.body, cst.AssignTarget, cst.NamedExpr, cst.For)
    again = any(isinstance(one.target, cst.Name) and one.target.value == name for one in bound)
    if again and not anew:
        return ""
    for param in (*function.params.params, *function.params.kwonly_params):
        if param.name.value == name and isinstance(param.default, cst.SimpleString):
            return str(param.default.evaluated_value)
    return ""


def _asks_others(facts: Facts, space: str, name: str | None = None) -> bool:
    """Whether the file speaks of something else that torch has under a name: ``def __init__(self, act="RReLU")``.

    What a parameter of another name than ``name`` is by default is not meant, nor is a padding.
    """
    known, others = NAMES[space], set[int]()
    if name is not None:
        known |= PADDINGS
        params = facts.tree.of_type(cst.Param)
        others = {id(one.default) for one in params if one.name.value != name}
    words = {
        one.evaluated_value for one in facts.tree.of_type(cst.SimpleString) if id(one) not in others
    }
    return any(exists(space, one) for one in words - known if isinstance(one, str))

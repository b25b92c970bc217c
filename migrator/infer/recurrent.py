"""Weights of recurrent layers by names that are made up: ``getattr(self.rnn, f"weight_hh_l{i}")``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax, texts
from migrator.infer import kinds as k
from migrator.infer.facts import Facts

_LAYERS = frozenset(f"torch.nn.{name}" for name in "RNN LSTM GRU RNNCell LSTMCell GRUCell".split())
TABLES = ("_all_weights", "all_weights")
"""Attributes that list the weights, a list for each layer and direction: by name, and themselves."""


def is_recurrent(kind: k.Kind) -> bool:
    """Whether a kind is that of one of torch's recurrent layers, or of one or another of them."""
    return isinstance(kind, k.Module) and set(kind.cls.split("|")) <= _LAYERS


def names_weight(facts: Facts, call: cst.Call) -> bool:
    """Whether ``getattr(rnn, …)`` certainly takes one of the layer's weights."""
    told = call.args[1].value
    if any(not _writes_text(one) for one in facts.tree.within(told, cst.Call)):
        return False  # it would run twice
    if texts.pattern(told).startswith(("weight_", "bias_")):
        return True
    if not isinstance(told, cst.Name) or not facts.tree.has(call):
        return False
    name = told.value
    for loop in reversed(facts.tree.around(call)):
        if isinstance(loop, cst.For) and isinstance(loop.target, cst.Name):
            if loop.target.value != name:
                continue
            way = loop.iter
            if isinstance(way, cst.Call) and isinstance(way.func, cst.Name) and len(way.args) == 2:
                way = way.args[1].value if way.func.value == "filter" else way
            if isinstance(way, cst.Subscript) and isinstance(way.value, cst.Attribute):
                return way.value.attr.value == "_all_weights"  # self.rnn._all_weights[0]
            if not isinstance(way, cst.Name):
                return False
            return _goes_through_table(facts, loop, way.value)
    return False


def _writes_text(call: cst.Call) -> bool:
    """``str(i)``, ``"bias_l{}".format(i)``."""
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value == "format" and isinstance(call.func.value, cst.SimpleString)
    return isinstance(call.func, cst.Name) and call.func.value == "str"


def holds_weights(facts: Facts, body: cst.CSTNode, name: cst.CSTNode, value: cst.CSTNode) -> bool:
    """Whether ``bias = getattr(self.rnn, name)`` gives a local name a weight, which is all that it ever stands for."""
    if not isinstance(name, cst.Name) or not _takes_weight(facts, value):
        return False
    bound = facts.tree.within(
        body, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For, cst.AsName
    )
    for node in bound:
        target = node.name if isinstance(node, cst.AsName) else node.target
        if isinstance(target, (cst.Subscript, cst.Attribute)):
            continue  # it is written to
        if name.value not in syntax.names(target):
            continue
        if not isinstance(node, cst.AssignTarget) or not isinstance(target, cst.Name):
            return False
        if not _takes_weight(facts, facts.tree.parent(node).value):
            return False
    return True


def _takes_weight(facts: Facts, value: cst.CSTNode) -> bool:
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Name):
        return False
    known = value.func.value == "getattr" and len(value.args) == 2
    return known and is_recurrent(facts.kind(value.args[0].value)) and names_weight(facts, value)


def _goes_through_table(facts: Facts, node: cst.CSTNode, name: str) -> bool:
    """Whether a loop around a node gives a name the lists of ``_all_weights``."""
    for loop in reversed(facts.tree.around(node)):
        if isinstance(loop, cst.For) and isinstance(loop.target, cst.Name):
            if loop.target.value == name:
                way = loop.iter
                return isinstance(way, cst.Attribute) and way.attr.value == "_all_weights"
    return False

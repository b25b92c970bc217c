"""What a program asks ``torch.autograd.grad`` for, read off its calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.leading_lines import Line

_PARAMETERS = (
    *("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs"),
    *("allow_unused", "is_grads_batched", "materialize_grads"),
)


_ASKED = re.compile(r"\bgrad\s*\(|\bimport\b[^#\n]*\bgrad\b")
"""A call of ``torch.autograd.grad``, or an import of it by whatever name."""


def may_ask(text: str) -> bool:
    """Whether a file may ask torch for gradients."""
    return "autograd" in text and _ASKED.search(text) is not None


def spelled(tree: cst.Module) -> tuple[frozenset[str], str | None]:
    """How a file spells ``torch.autograd.grad``, and ``torch``."""
    found: set[str] = set()
    torch = None
    for node in syntax.walk(tree):
        if isinstance(node, cst.Import):
            for one in node.names:
                name = syntax.code(one.name)
                called = syntax.code(one.asname.name) if one.asname else name
                if name == "torch" or (name.startswith("torch.") and not one.asname):
                    torch = called.partition(".")[0]
                    found.add(f"{torch}.autograd.grad")
                if name == "torch.autograd" and one.asname:
                    found.add(f"{called}.grad")
        elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            origin = syntax.code(node.module) if node.module and not node.relative else ""
            for one in node.names:
                name = syntax.code(one.name)
                called = syntax.code(one.asname.name) if one.asname else name
                if (origin, name) == ("torch", "autograd"):
                    found.add(f"{called}.grad")
                elif (origin, name) == ("torch.autograd", "grad"):
                    found.add(called)
    return frozenset(found), torch


@dataclass
class Asked:
    """One call of ``torch.autograd.grad``.

    Attributes:
      call: it.
      outputs: what is differentiated.
      inputs: the variables it is differentiated by.
      given: what each output's gradient is, None where it is one.
      several: whether the outputs are a list, and so what their function returns.
      kept: whether what it gives can be differentiated again: a literal, or a condition.
      through: what was differentiated, where ``outputs`` is the one variable that it is computed from.
    """

    call: cst.Call
    outputs: list[cst.BaseExpression]
    inputs: list[str]
    given: list[cst.BaseExpression | None]
    several: bool
    kept: bool | cst.BaseExpression
    through: cst.BaseExpression | None = None

    @property
    def variable(self) -> str | None:
        """The variable that is differentiated, where it is one and nothing else."""
        name = self.outputs[0]
        return name.value if isinstance(name, cst.Name) and not self.several else None


def read(call: cst.Call, body: cst.CSTNode) -> Asked | None:
    """What a call in the body of a function asks for; None where that is not understood."""
    given: dict[str, cst.BaseExpression] = {}
    for place, one in enumerate(call.args):
        if one.star or place >= len(_PARAMETERS):
            return None
        given[one.keyword.value if one.keyword else _PARAMETERS[place]] = one.value
    if not {"outputs", "inputs"} <= set(given) <= set(_PARAMETERS):
        return None
    if not _is_literally(given.get("is_grads_batched"), False):
        return None
    if not _is_literally(given.get("allow_unused"), False) and _is_tested(call, body):
        return None
    several = isinstance(given["outputs"], (cst.List, cst.Tuple))
    outputs, inputs = _each(given["outputs"]), _each(given["inputs"])
    if outputs is None or inputs is None or not outputs or not inputs:
        return None
    if not all(isinstance(one, cst.Name) for one in inputs):
        return None
    names = [one.value for one in inputs if isinstance(one, cst.Name)]
    if isinstance(given["inputs"], cst.Name) and _may_be_list(names[0], call, body):
        return None
    ones: list[cst.BaseExpression | None] = [None] * len(outputs)
    wanted = given.get("grad_outputs")
    if wanted is not None and not is_named(wanted, "None"):
        found = _each(_said(wanted, body))
        if found is None or len(found) != len(outputs):
            return None
        ones = [None if is_named(one, "None") else one for one in found]
    kept: bool | cst.BaseExpression = False
    graph = given.get("create_graph")
    if graph is not None and not is_named(graph, "False"):
        kept = True if is_named(graph, "True") else graph
        if kept is graph and not syntax.is_cheap(graph):
            return None
    retained = given.get("retain_graph")
    if retained is not None and not syntax.is_cheap(retained):
        return None
    if len(set(names)) != len(names):
        return None
    return Asked(call, outputs, names, ones, several and len(outputs) > 1, kept)


_GOING_OVER = frozenset("zip enumerate list tuple map dict sorted reversed sum any all".split())


def _may_be_list(name: str, call: cst.Call, body: cst.CSTNode) -> bool:
    """Whether a variable that is differentiated by may hold several tensors: ``for p, g in zip(params, grads)``.

    A tensor's gradient is asked for by place or unpacked, where nothing else says that it is one.
    """
    single = tensor = False
    for node in syntax.walk(body):
        match node:
            case cst.For(iter=over) | cst.CompFor(iter=over):
                if is_named(over, name):
                    return True
            case cst.Call(func=cst.Name(value=function), args=args) if function in _GOING_OVER:
                if any(is_named(one.value, name) for one in args):
                    return True
            case cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value=method))):
                if is_named(held, name):
                    if method in ("values", "items", "keys", "append", "extend"):
                        return True
                    tensor = True
            case cst.StarredElement(value=held) | cst.Arg(value=held, star="*" | "**"):
                if is_named(held, name):
                    return True
            case cst.Attribute(value=held) if is_named(held, name):
                tensor = True
            case cst.BinaryOperation(left=left, right=right):
                tensor |= is_named(left, name) or is_named(right, name)
            case cst.Subscript(value=held, slice=[cst.SubscriptElement(cst.Index(index))]):
                if held is call:
                    single = True
                elif is_named(held, name) and not isinstance(index, cst.Ellipsis):
                    return True
            case cst.Assign(
                targets=[cst.AssignTarget(cst.Tuple(elements=[_]) | cst.List(elements=[_]))]
            ):
                single |= node.value is call
    return not (single or tensor)


def _said(node: cst.BaseExpression, body: cst.CSTNode) -> cst.BaseExpression:
    """The list that a variable is, where it is given one in the whole function: ``ones = [torch.ones_like(y)]``."""
    if not isinstance(node, cst.Name):
        return node
    given = [
        one.value
        for one in syntax.walk(body)
        if (
            isinstance(one, cst.Assign) and any(is_named(t.target, node.value) for t in one.targets)
        )
        or (isinstance(one, cst.AnnAssign) and is_named(one.target, node.value))
    ]
    value = given[0] if len(given) == 1 else None
    if not isinstance(value, cst.List) or len(value.elements) != 1:
        return node
    ones = value.elements[0].value
    if not isinstance(ones, cst.Call) or syntax.names(body)[node.value] != 2:
        return node
    if syntax.code(ones.func).rpartition(".")[2] not in ("ones_like", "ones"):
        return node
    return cst.List([cst.Element(ones.deep_clone())])


def _is_tested(call: cst.Call, body: cst.CSTNode) -> bool:
    """Whether somebody may see that a gradient is None, which is zero in JAX."""
    for node in syntax.walk(body):
        if isinstance(node, cst.Comparison):
            for one in node.comparisons:
                operands = (node.left, one.comparator)
                if any(is_named(operand, "None") for operand in operands):
                    return True
        elif isinstance(node, cst.Return) and node.value is not None:
            whole = node.value
            while isinstance(whole, cst.Subscript):
                whole = whole.value
            if whole is call:
                return True
    return False


def _each(node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The elements of a display, or what is none; None for what may be several."""
    if isinstance(node, (cst.List, cst.Tuple)):
        if any(isinstance(one, cst.StarredElement) for one in node.elements):
            return None
        return [one.value for one in node.elements]
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return None
    return [node]


def _is_literally(node: cst.BaseExpression | None, value: bool) -> bool:
    return node is None or is_named(node, str(value))


def is_named(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


_SAME = frozenset(
    "requires_grad_ to float double half bfloat16 contiguous cuda cpu type type_as".split()
)
"""Methods that may give the very tensor they are called on."""


def roots_of(line: Any, name: str) -> set[str]:
    """The variables whose tensor, or part of what they hold, a line may bind a name to; none for a tensor of its own."""
    own = Line(line)
    node = own.value_of(name)
    if node is None:
        return own.reads | {name}
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method in _ANEW or _is_of_torch(node.func):
                return set()
            if method not in _SAME:
                return own.reads | {name}
            node = node.func.value
        elif isinstance(node, (cst.Attribute, cst.Subscript)):
            node = node.value
        else:
            break
    if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation)):
        return set()
    if isinstance(node, cst.Call) and is_named(node.func, "Variable"):
        return set()
    return {node.value} if isinstance(node, cst.Name) else own.reads | {name}


_ANEW = frozenset(
    "detach clone new_tensor mul add sub div neg pow exp log sin cos tanh sigmoid sum mean view reshape flatten "
    "unsqueeze squeeze transpose permute expand repeat".split()
)
"""Methods of tensors whose result is another tensor, for torch's graph as well."""
_AS_IT_IS = frozenset("as_tensor asarray atleast_1d atleast_2d atleast_3d".split())


def _is_of_torch(func: cst.Attribute) -> bool:
    """Whether a function of torch makes a tensor of its own: ``torch.cat``, ``torch.autograd.Variable``."""
    path = syntax.code(func)
    return path.startswith("torch.") and func.attr.value not in _AS_IT_IS


def fresh_name(name: str, used: set[str]) -> str:
    """A name like another that is none of those in use, among which it is from now on."""
    found, number = name, 1
    while found in used:
        number += 1
        found = f"{name}_{number}"
    used.add(found)
    return found


def assigned(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    """``name = value``"""
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])

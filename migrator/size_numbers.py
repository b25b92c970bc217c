"""Sizes that are made tensors first: ``n = torch.prod(torch.tensor(x.shape[1:]))``, which is read as ``x.view(-1, n)``.

A size must be a number while JAX compiles, and an array has no value then. The number says the same.
"""

from __future__ import annotations

import re

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_MADE = re.compile(r"\btorch\.(?:as_)?tensor\((?:\d|[^\n]*(?:\.shape\b|\.size\())")
_METHODS = frozenset(
    "view reshape expand repeat tile new_zeros new_ones new_empty new_full".split()
)
_FUNCTIONS = frozenset("zeros ones empty rand randn eye full".split())
_FIRST = frozenset({"full", "new_full"})
"""Of what these are handed, the first argument alone is a size."""
_WHOLE = frozenset("long int int32 int64".split())
_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide)


def as_numbers(tree: cst.Module, text: str) -> cst.Module:
    """A file with numbers for the tensors of sizes that are nothing but sizes again."""
    made = "tensor(" in text and _MADE.search(text)
    return with_functions(tree, _function) if made else tree


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    found = _Sizes(function).replaced()
    if not found:
        return function

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        return found[node] if node in found else syntax.rebuild(node, visit)

    return syntax.changed(function, body=visit(function.body))


class _Sizes:
    """What becomes a number in one function."""

    def __init__(self, function: cst.FunctionDef) -> None:
        self.nodes = syntax.walk(function.body)
        self.parents = {child: node for node in self.nodes for child in syntax.children(node)}
        self.params = set(syntax.parameters(function))

    def replaced(self) -> dict[cst.CSTNode, cst.BaseExpression]:
        """Each tensor, and each ``n.item()``, with the number that stands for it."""
        found: dict[cst.CSTNode, cst.BaseExpression] = {}
        for node in self.nodes:
            number = _number(node)
            if number is None or not self._is_of_tensor(number):
                continue
            reads = self._reads(node)
            if reads and all(map(self._is_size, reads)):
                found[node] = number
                for read in reads:
                    item = self._item(read)
                    if item is not None:
                        found[item] = number if read is node else read  # type: ignore[assignment]
        return found

    def _is_of_tensor(self, number: cst.CSTNode) -> bool:
        """Whether a number comes of the sizes of a name: an argument, or what is computed. Others may be no tensor."""
        if isinstance(number, cst.Integer):
            return True
        while not (isinstance(number, cst.Attribute) and number.attr.value in ("shape", "size")):
            if not isinstance(number, (cst.Attribute, cst.Subscript, cst.Call)):
                return False
            number = number.func if isinstance(number, cst.Call) else number.value
        if not isinstance(number.value, cst.Name) or number.value.value == "self":
            return False
        name = number.value.value
        given = [
            one.value
            for one in self.nodes
            if isinstance(one, cst.Assign)
            and any(
                isinstance(to.target, cst.Name) and to.target.value == name for to in one.targets
            )
        ]
        return (name in self.params or bool(given)) and all(map(_computes, given))

    def _reads(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Where what an expression gives is read: there, or by the one name that it is given."""
        part: cst.CSTNode = node
        above = self.parents.get(node)
        while isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _ARITHMETIC):
            other = above.left if above.right is part else above.right
            if not isinstance(other, cst.Integer):
                return []  # of a tensor, perhaps, and then no number
            part, above = above, self.parents.get(above)
        if not isinstance(above, cst.Assign):
            return [node]
        target = above.targets[0].target
        if len(above.targets) != 1 or not isinstance(target, cst.Name):
            return []
        name = target.value
        every = [n for n in self.nodes if isinstance(n, cst.Name) and n.value == name]
        reads: list[cst.CSTNode] = []
        reads += [n for n in every if n is not target and not self._is_word(n)]
        return [] if name in self.params else reads

    def _is_word(self, name: cst.Name) -> bool:
        """Whether a name is that of an attribute or a keyword."""
        above = self.parents.get(name)
        if isinstance(above, cst.Attribute):
            return above.attr is name
        return isinstance(above, cst.Arg) and above.keyword is name

    def _item(self, node: cst.CSTNode) -> cst.Call | None:
        """``n.item()`` of n."""
        above = self.parents.get(node)
        if not isinstance(above, cst.Attribute) or above.attr.value != "item":
            return None
        call = self.parents.get(above)
        bare = isinstance(call, cst.Call) and call.func is above and not call.args
        return call if bare else None  # type: ignore[return-value]

    def _is_size(self, node: cst.CSTNode) -> bool:
        """Whether a value is taken for a size, or as a number, where it is read."""
        above = self.parents.get(node)
        if isinstance(above, cst.BinaryOperation) and isinstance(above.operator, _ARITHMETIC):
            return self._is_size(above)
        if isinstance(above, cst.Slice) or self._item(node) is not None:
            return True
        if isinstance(above, cst.Element):
            above = self.parents.get(self.parents[above])
        call = self.parents.get(above) if isinstance(above, cst.Arg) else None
        if not isinstance(call, cst.Call) or above.keyword or above.star:  # type: ignore[union-attr]
            return False
        func = call.func
        if isinstance(func, cst.Name):
            return func.value in ("int", "range")
        if not isinstance(func, cst.Attribute):
            return False
        of_torch = isinstance(func.value, cst.Name) and func.value.value == "torch"
        if isinstance(func.value, cst.Name) and func.value.value == "self":
            return False  # a method of the file
        sized = func.attr.value in (_FUNCTIONS if of_torch else _METHODS)
        return sized and (func.attr.value not in _FIRST or call.args[0] is above)


def _computes(value: cst.BaseExpression) -> bool:
    """Arithmetic and calls, but for numpy's; an entry or an attribute may be anything."""
    if not isinstance(value, cst.Call):
        return isinstance(value, (cst.BinaryOperation, cst.UnaryOperation))
    return not syntax.code(value.func).startswith(("np.", "numpy."))


def _number(node: cst.CSTNode) -> cst.BaseExpression | None:
    """``x.shape[1:].numel()`` for ``torch.tensor(x.shape[1:]).prod()``, ``4`` for ``torch.tensor(4)``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if node.func.attr.value == "prod":
        of_torch = isinstance(node.func.value, cst.Name) and node.func.value.value == "torch"
        given = [a.value for a in node.args if a.keyword is None and not a.star]
        if len(given) != len(node.args) or len(given) != of_torch:
            return None
        size = _made_of(given[0] if of_torch else node.func.value)
        if isinstance(size, cst.Call) and isinstance(size.func, cst.Name) and len(size.args) == 1:
            size = size.args[0].value if size.func.value in ("list", "tuple") else None
        if size is None or not _is_sizes(size):
            return None
        return cst.Call(cst.Attribute(size, cst.Name("numel")))
    value = _made_of(node)
    if isinstance(value, cst.Integer):
        return value
    if isinstance(value, cst.Subscript) and len(value.slice) == 1:
        one = isinstance(value.slice[0].slice, cst.Index)
        return value if one and _is_sizes(value.value) else None
    size_of = isinstance(value, cst.Call) and len(value.args) == 1
    return value if size_of and _is_method(value, "size") else None


def _made_of(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What ``torch.tensor`` makes a tensor of whole numbers of."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or not node.args:
        return None
    if syntax.code(node.func) not in ("torch.tensor", "torch.as_tensor"):
        return None
    first, *rest = node.args
    for one in rest:
        word = one.keyword.value if one.keyword is not None else ""
        whole = isinstance(one.value, cst.Attribute) and one.value.attr.value in _WHOLE
        if word != "device" and not (word == "dtype" and whole):
            return None
    return None if first.keyword is not None or first.star else first.value


def _is_sizes(node: cst.CSTNode) -> bool:
    """``x.shape``, ``x.size()``, and a slice of one."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        return isinstance(node.slice[0].slice, cst.Slice) and _is_sizes(node.value)
    if isinstance(node, cst.Attribute):
        return node.attr.value == "shape"
    return isinstance(node, cst.Call) and not node.args and _is_method(node, "size")


def _is_method(node: cst.CSTNode | None, name: str) -> bool:
    func = node.func if isinstance(node, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value == name

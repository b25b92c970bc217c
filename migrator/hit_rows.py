"""Loops over the experts that some token was sent to: ``hit = (mask.sum((-1, -2)) > 0).nonzero()``, ``for i in hit:``.

How many those are only the data says. A loop over all of them that leaves out the others does the same, and what it
then does with the rows of each is known to keep its shapes (``migrator.convert.rows``).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.assignments import bound, with_functions


def over_all(tree: cst.Module, text: str) -> cst.Module:
    """A file with loops over all experts, of which those without a row are left out."""
    return with_functions(tree, _function) if "one_hot(" in text and "nonzero(" in text else tree


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    nodes = list(_in_order(function.body))
    for loop in nodes:
        if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Name) and loop.orelse is None:
            found = _Hits(nodes, loop, loop.iter.value)
            if found.fit():
                return found.rewritten(function)
    return function


def _in_order(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it, as they stand in the file."""
    yield node
    for child in syntax.children(node):
        yield from _in_order(child)


class _Hits:
    """One such loop: ``for e in hit:``."""

    def __init__(self, nodes: list[cst.CSTNode], loop: cst.For, hit: str) -> None:
        self.nodes, self.loop, self.hit = nodes, loop, hit
        self.mask = ""
        self.line: cst.CSTNode | None = None
        """The line that finds the experts."""
        self.squeezed: dict[cst.CSTNode, cst.BaseExpression] = {}
        """``mask[e].squeeze(0)``, where the place is a tensor of one axis, and ``mask[e]``."""

    def fit(self) -> bool:
        """Whether what the loop goes over is what the mask says, and each place is only an index."""
        given = self._given(self.hit)
        if len(given) != 1 or sum(self._is(n, self.hit) for n in self.nodes) != 2:
            return False
        mask = _asked(given[0].value)
        if mask is None or not isinstance(self.loop.body, cst.IndentedBlock):
            return False
        self.mask = mask
        self.line = next(
            n
            for n in self.nodes
            if isinstance(n, cst.SimpleStatementLine) and any(s is given[0] for s in n.body)
        )
        return len(self.line.body) == 1 and self._counts_places() and self._indexes()

    def _is(self, node: cst.CSTNode, name: str) -> bool:
        return isinstance(node, cst.Name) and node.value == name

    def _given(self, name: str) -> list[cst.Assign]:
        return [
            n
            for n in self.nodes
            if isinstance(n, cst.Assign) and any(name in bound(t.target) for t in n.targets)
        ]

    def _counts_places(self) -> bool:
        """``mask = F.one_hot(chosen, n).permute(2, 1, 0)``, on one line or two: three axes, of zeros and ones."""
        given = self._given(self.mask)
        permuted = [_permuted(one.value) for one in given]
        first = [
            one.value if axes is None else axes for one, axes in zip(given, permuted, strict=True)
        ]
        if not given or not any(axes is not None for axes in permuted):
            return False
        if not _is_one_hot(first[0]) or not all(self._is(one, self.mask) for one in first[1:]):
            return False
        if any(axes is None for axes in permuted[1:]) or len(given) > 2:
            return False
        order = [n for n in self.nodes if n in given or n is self.loop]
        written = (
            n.target for n in self.nodes if isinstance(n, (cst.AugAssign, cst.For, cst.CompFor))
        )
        if order[-1] is not self.loop:
            return False  # the mask is made anew later
        return not any(self.mask in syntax.names(one) for one in written)

    def _indexes(self) -> bool:
        """Whether the place is only read as ``layers[e]`` and ``mask[e].squeeze(0)``."""
        target = self.loop.target
        if not isinstance(target, cst.Name):
            return False
        place = target.value
        inner = syntax.walk(self.loop.body)
        parents = {child: node for node in inner for child in syntax.children(node)}
        reads = 0
        for node in inner:
            if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
                continue
            index = node.slice[0].slice
            if not isinstance(index, cst.Index) or not self._is(index.value, place):
                continue
            reads += 1
            if not self._is(node.value, self.mask):
                held = isinstance(node.value, cst.Attribute) and self._is(node.value.value, "self")
                if not held or not isinstance(parents.get(node), (cst.Assign, cst.Call)):
                    return False
                continue
            func = parents.get(node)
            call = parents.get(func) if func is not None else None
            if (
                not isinstance(call, cst.Call)
                or syntax.code(call) != f"{self.mask}[{place}].squeeze(0)"
            ):
                return False
            self.squeezed[call] = node
        return bool(self.squeezed) and reads + 1 == sum(self._is(n, place) for n in self.nodes)

    def rewritten(self, function: cst.FunctionDef) -> cst.FunctionDef:
        """``for e in range(mask.shape[0]):`` and ``if not mask[e].any(): continue``."""
        place = syntax.code(self.loop.target)
        guard = syntax.statement(f"if not {self.mask}[{place}].any(): continue\n")
        every = syntax.parse(f"range({self.mask}.shape[0])")

        def visit(node: cst.CSTNode) -> cst.CSTNode:
            if node in self.squeezed:
                return self.squeezed[node]
            made = syntax.rebuild(node, visit)
            if isinstance(made, cst.IndentedBlock):
                assert isinstance(node, cst.IndentedBlock)
                lines = [
                    new
                    for old, new in zip(node.body, made.body, strict=True)
                    if old is not self.line
                ]
                if node is self.loop.body:
                    lines.insert(0, guard)
                return syntax.changed(made, body=lines)
            return syntax.changed(made, iter=every) if node is self.loop else made

        made = visit(function)
        assert isinstance(made, cst.FunctionDef)
        return made


def _asked(node: cst.BaseExpression) -> str | None:
    """The mask of ``torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    of_torch = syntax.code(node.func) == "torch.nonzero"
    if node.func.attr.value != "nonzero" or len(node.args) != of_torch:
        return None
    test: cst.CSTNode = node.args[0].value if of_torch else node.func.value
    total: cst.CSTNode | None = None
    if isinstance(test, cst.Call) and syntax.code(test.func) in ("torch.greater", "torch.gt"):
        if len(test.args) == 2 and syntax.code(test.args[1].value) == "0":
            total = test.args[0].value
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        only = test.comparisons[0]
        if isinstance(only.operator, cst.GreaterThan) and syntax.code(only.comparator) == "0":
            total = test.left
    if not isinstance(total, cst.Call) or len(total.args) != 1:
        return None
    func, axes = total.func, syntax.code(total.args[0].value).replace(" ", "")
    if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name):
        return None
    return func.value.value if func.attr.value == "sum" and axes in _LAST_TWO else None


_LAST_TWO = ("(-1,-2)", "(-2,-1)", "(1,2)", "(2,1)", "[-1,-2]", "[-2,-1]", "[1,2]")


def _permuted(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What ``x.permute(2, 1, 0)`` is done to, which has three axes."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    numbers = all(isinstance(a.value, cst.Integer) and not a.star for a in node.args)
    fits = node.func.attr.value == "permute" and len(node.args) == 3 and numbers
    return node.func.value if fits else None


def _is_one_hot(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and syntax.code(node.func) in (
        "F.one_hot",
        "nn.functional.one_hot",
        "torch.nn.functional.one_hot",
    )

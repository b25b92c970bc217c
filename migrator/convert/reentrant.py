"""Tensors that surely have no gradient in torch, by what a function and its callers make them of.

``checkpoint`` in its reentrant form runs a module without gradients and finds them later only where a tensor that it is
handed has one; what stands in a tuple or a dict it does not look at.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.switches import OFF

_MAKING = frozenset(
    "ones zeros empty full rand randn randint arange linspace eye tensor as_tensor from_numpy "
    "ones_like zeros_like empty_like full_like rand_like randn_like randint_like".split()
)

_PLAIN = (k.Scalar, k.Const, k.DType, k.Device, k.Module, k.Class, k.Function)


def never_tracked(ctx: Context, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
    """Whether an argument of a checkpointed call is no tensor with a gradient."""
    if isinstance(node, (cst.Tuple, cst.List, cst.Dict)):
        return True
    if isinstance(ctx.kind(node), (k.Tuple, k.Sequence, k.Mapping)):
        return True
    return _Asked(ctx).of(node, info)


class _Asked:
    def __init__(self, ctx: Context) -> None:
        self.ctx, self.tree = ctx, ctx.facts.tree
        self.seen: set[tuple[FunctionInfo | None, int]] = set()

    def of(self, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
        """Whether a value of a function has no gradient."""
        kind = self.ctx.kind(node)
        if isinstance(kind, k.Tensor) and (kind.role == "buffer" or kind.dtype in ("int", "bool")):
            return True
        if k.is_parameter(kind) or (info, id(node)) in self.seen:
            return False
        self.seen.add((info, id(node)))
        if isinstance(kind, _PLAIN) or syntax.is_number(node):
            return True
        if isinstance(node, cst.Name):
            return self._named(node, info)
        if isinstance(node, cst.Attribute):
            return node.attr.value == "data" or (
                node.attr.value in ("T", "mT", "real") and self.of(node.value, info)
            )
        if isinstance(node, cst.Subscript):
            return self.of(node.value, info)
        if isinstance(node, cst.BinaryOperation):
            return self.of(node.left, info) and self.of(node.right, info)
        if isinstance(node, cst.UnaryOperation):
            return self.of(node.expression, info)
        if isinstance(node, cst.Call):
            return self._called(node, info)
        return False

    def _called(self, node: cst.Call, info: FunctionInfo | None) -> bool:
        name = self.ctx.facts.callee(node) or ""
        word = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        asks = any(a.keyword is not None and a.keyword.value == "requires_grad" for a in node.args)
        if asks or word == "requires_grad_":
            return False
        if word in ("detach", "detach_") or (name.startswith("torch.") and word in _MAKING):
            return True
        if not name.startswith(("torch.", "Tensor.")) or name.endswith("()"):
            return False  # a module, or a function of the file, may have parameters
        values = [a.value for a in node.args]
        if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
            values.append(node.func.value)
        return bool(values) and all(self.of(one, info) for one in values)

    def _named(self, name: cst.Name, info: FunctionInfo | None) -> bool:
        if info is None or not self.tree.holds(info.node.body, name):
            return False
        if self._is_written(name.value, info):
            return False
        last = self._last(name)
        given = list(self._given(name.value, info)) if last is None else [last]
        free = all(one is not None and (self._off(one) or self.of(one, info)) for one in given)
        if last is not None or (given and name.value not in info.params):
            return free
        return free and self._handed(name.value, info)

    def _is_written(self, name: str, info: FunctionInfo) -> bool:
        """``y.add_(x)``, ``y.requires_grad_()``, ``fill(y)``: what may give a tensor a gradient later."""
        for line in self.tree.within(info.node.body, cst.Expr):
            call = line.value
            if not isinstance(call, cst.Call):
                continue
            if any(name in syntax.names(one) for one in call.args):
                return True
            func = call.func
            if isinstance(func, cst.Attribute) and name in syntax.names(func.value):
                if func.attr.value.endswith("_"):
                    return True
        return False

    def _off(self, value: cst.CSTNode) -> bool:
        """Whether a value is computed under ``torch.no_grad()``, and no other name of what is there."""
        if isinstance(value, (cst.Name, cst.Attribute)):
            return False
        for around in self.tree.around(value):
            for item in around.items if isinstance(around, cst.With) else ():
                if isinstance(item.item, cst.Call) and self.ctx.facts.callee(item.item) in OFF:
                    return True
        return False

    def _given(self, name: str, info: FunctionInfo) -> Iterator[cst.BaseExpression | None]:
        """What lines of a function give a name; None for what is not known."""
        for node in self.tree.within(
            info.node.body,
            cst.Assign,
            cst.AnnAssign,
            cst.AugAssign,
            cst.For,
            cst.WithItem,
            cst.NamedExpr,
        ):
            targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else []
            if isinstance(node, cst.WithItem):
                targets = [node.asname.name] if node.asname is not None else []
            elif not isinstance(node, cst.Assign):
                targets = [node.target]
            for target in targets:
                if name in syntax.names(target):
                    plain = isinstance(target, cst.Name) and isinstance(
                        node, (cst.Assign, cst.AnnAssign)
                    )
                    yield node.value if plain else None

    def _last(self, name: cst.Name) -> cst.BaseExpression | None:
        """What the nearest line before a name gives it, where nothing lies between that may give it anything else."""
        inner: cst.CSTNode = name
        for around in reversed(self.tree.around(name)):
            if isinstance(around, (cst.For, cst.While, cst.FunctionDef, cst.Lambda)):
                return None
            if isinstance(around, cst.IndentedBlock):
                body = list(around.body)
                at = next((i for i, one in enumerate(body) if one is inner), 0)
                for line in reversed(body[:at]):
                    match line:
                        case cst.SimpleStatementLine(
                            [cst.Assign([cst.AssignTarget(cst.Name(to))], value)]
                        ):
                            if to == name.value:
                                return value
                            continue
                    bound = self.tree.within(
                        line, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For
                    )
                    if any(name.value in syntax.names(one.target) for one in bound):
                        return None
            inner = around
        return None

    def _handed(self, name: str, info: FunctionInfo) -> bool:
        """Whether all calls of a function, which no other file makes, hand it what has no gradient."""
        from migrator.convert.alias import bound_arguments

        if info.shared or not info.call_sites or name not in info.params:
            return False
        for call, caller in info.call_sites.items():
            found = bound_arguments(call, info) if isinstance(call, cst.Call) else []
            given = [item.value for parameter, item in found if parameter == name]
            if len(given) != 1 or not self.of(given[0], caller):
                return False
        return True

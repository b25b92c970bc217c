"""Tensors that surely have no gradient in torch, by what a function and its callers make them of.

``checkpoint`` in its reentrant form runs a module without gradients and finds them later only where a tensor that it is
handed has one; what stands in a tuple or a dict it does not look at.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.refilled import may_have_gradient, runs_without
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_MAKING = frozenset(
    "ones zeros empty full rand randn randint arange linspace eye tensor from_numpy "
    "ones_like zeros_like empty_like full_like rand_like randn_like randint_like".split()
)

_GIVING_ITSELF = frozenset(
    "to float double half bfloat16 type type_as cpu cuda contiguous dropout dropout1d dropout2d dropout3d "
    "alpha_dropout feature_alpha_dropout Identity Dropout Dropout1d Dropout2d Dropout3d AlphaDropout "
    "FeatureAlphaDropout Sequential as_tensor".split()
)
"""What may give back the very tensor that it is handed, with the gradient that this has."""
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_OPTIONS = frozenset("use_reentrant preserve_rng_state context_fn determinism_check debug".split())

_PLAIN = (k.Scalar, k.Const, k.DType, k.Device, k.Module, k.Class, k.Function)


def never_tracked(ctx: Context, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
    """Whether an argument of a checkpointed call is no tensor with a gradient."""
    if isinstance(node, (cst.Tuple, cst.List, cst.Dict)):
        return True
    if isinstance(ctx.kind(node), (k.Tuple, k.Sequence, k.Mapping)):
        return True
    return _Asked(ctx).of(node, info)


def is_free(ctx: Context, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
    """Whether a value of a function surely has no gradient."""
    asked = _Asked(ctx)
    return asked.off(node, info) or asked.of(node, info)


class _Asked:
    def __init__(self, ctx: Context) -> None:
        self.ctx, self.tree = ctx, ctx.facts.tree
        self.seen: set[tuple[FunctionInfo | None, int]] = set()

    def of(self, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
        """Whether a value of a function has no gradient."""
        kind = self.ctx.kind(node)
        if isinstance(kind, k.Tensor) and kind.dtype in ("int", "bool"):
            return True
        if isinstance(kind, k.Tensor) and kind.role == "buffer":
            if isinstance(node, cst.Attribute):
                return not may_have_gradient(self.ctx, node)
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
        if isinstance(node, (cst.List, cst.Tuple)):
            return all(self.of(one.value, info) for one in node.elements)
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
        given = node.args
        if name == _CHECKPOINT:
            options = [a for a in given if a.keyword and a.keyword.value in _OPTIONS]
            reentrant = [a.value for a in options if a.keyword.value == "use_reentrant"]  # type: ignore[union-attr]
            if any(self.ctx.kind(one) != k.Const(True) for one in reentrant):
                return False
            given = [a for a in given[1:] if a not in options]
        values = [a.value for a in given]
        if any(isinstance(self.ctx.kind(one), (k.Module, k.Function, k.Class)) for one in values):
            return False  # it runs what may have parameters
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
        free = all(one is not None and (self.off(one, info) or self.of(one, info)) for one in given)
        if last is not None or (given and name.value not in info.params):
            return free
        return free and self._handed(name.value, info)

    def _is_written(self, name: str, info: FunctionInfo) -> bool:
        """``y.add_(x)``, ``y.requires_grad_()``, ``fill(y)``: what may give a tensor a gradient later."""
        for call in self.tree.within(info.node.body, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value.endswith("_"):
                if name in syntax.names(func.value):
                    return True
            alone = isinstance(self.tree.parent(call), cst.Expr)
            if alone and any(name in syntax.names(one) for one in call.args):
                return True
        return False

    def off(self, value: cst.BaseExpression, info: FunctionInfo | None) -> bool:
        """Whether a value is computed under ``torch.no_grad()``, and no other name of what is there."""
        if not runs_without(self.ctx, value):
            return False
        if isinstance(value, cst.Call):
            return not self._gives_itself(value) or self._is_of_free(value, info)
        return isinstance(value, (cst.BinaryOperation, cst.UnaryOperation, cst.Subscript))

    def _is_of_free(self, call: cst.Call, info: FunctionInfo | None) -> bool:
        values = [a.value for a in call.args]
        if (self.ctx.facts.callee(call) or "").startswith("Tensor."):
            values.append(call.func.value)  # type: ignore[attr-defined]
        return all(self.of(one, info) for one in values)

    def _gives_itself(self, call: cst.Call) -> bool:
        """Whether a call may return one of its arguments, as ``x.to(dtype)`` does where there is nothing to do."""
        name = (self.ctx.facts.callee(call) or "").removesuffix("()")
        word = name.rpartition(".")[2]
        own = self.ctx.facts.classes.get(name)
        made = own.method("forward") if own is not None else self.ctx.facts.names.get(name)
        if isinstance(made, FunctionInfo):
            return made.settled is not None or _returns_argument(made)
        return not name.startswith(("torch.", "Tensor.")) or (
            word in _GIVING_ITSELF or word.endswith("_")
        )

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
            tests = self.tree.within(around.test, cst.NamedExpr) if type(around) is cst.If else ()
            if any(name.value in syntax.names(one.target) for one in tests):
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
                        line, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr
                    )
                    if any(name.value in syntax.names(one.target) for one in bound):
                        return None
                    held = [one.asname for one in self.tree.within(line, cst.WithItem)]
                    if any(one is not None and name.value in syntax.names(one) for one in held):
                        return None
            inner = around
        return None

    def _handed(self, name: str, info: FunctionInfo) -> bool:
        """Whether modules of the file alone call a function, each time with what has no gradient.

        What a program calls may be called with anything by another one."""
        from migrator.convert.alias import bound_arguments

        if info.shared or not info.call_sites or name not in info.params:
            return False
        if not self._is_only_called(info):
            return False
        for call, caller in info.call_sites.items():
            owner = caller.owner if caller is not None else None
            if owner is None or owner.torch_base is None:
                return False
            found = bound_arguments(call, info) if isinstance(call, cst.Call) else []
            given = [item.value for parameter, item in found if parameter == name]
            if len(given) != 1 or not self.of(given[0], caller):
                return False
        return True

    def _is_only_called(self, info: FunctionInfo) -> bool:
        """Whether nothing holds a function, or a layer whose forward pass it is, to call it unseen: ``map(self.f, xs)``."""
        if info.owner is None or info.short not in ("forward", "__call__"):
            return self._is_nowhere_held(info.short)
        for call in self.ctx.source.index.of_type(cst.Call):
            kind = self.ctx.kind(call)
            made = self.ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
            if made is None or info.owner not in made.lineage():
                continue
            if self.ctx.facts.callee(call) != made.name:
                continue
            above = self.tree.parent(call)
            targets = above.targets if isinstance(above, cst.Assign) else []
            if len(targets) != 1 or not isinstance(targets[0].target, cst.Attribute):
                return False
            if not self._is_nowhere_held(targets[0].target.attr.value):
                return False
        return True

    def _is_nowhere_held(self, name: str) -> bool:
        for node in self.ctx.source.index.of_type(cst.Attribute, cst.Name):
            word = node.attr if isinstance(node, cst.Attribute) else node
            above = self.tree.parent(node)
            if word.value != name or (isinstance(above, cst.Attribute) and above.attr is node):
                continue
            if isinstance(node, cst.Name) and not isinstance(above, (cst.Arg, cst.Element)):
                continue
            if isinstance(above, cst.Call) and above.func is node:
                continue
            if isinstance(above, (cst.AssignTarget, cst.Attribute)):
                continue
            if isinstance(above, cst.Arg) and above.keyword is node:
                continue
            return False
        return True


def _returns_argument(info: FunctionInfo) -> bool:
    """Whether a function returns a parameter that it does not surely give another value before."""
    body = info.node.body.body
    lines = [line for line in body if isinstance(line, cst.SimpleStatementLine)]
    again = {
        syntax.code(target.target)
        for line in lines
        for small in line.body
        if isinstance(small, cst.Assign)
        for target in small.targets
    }
    for node in syntax.walk(info.node.body):
        value = node.value if isinstance(node, cst.Return) else None
        if isinstance(value, (cst.IfExp, cst.BooleanOperation, cst.Tuple)):
            return True
        if isinstance(value, cst.Name) and value.value in set(info.params) - again:
            return True
    return False

"""Tensors that surely have no gradient in torch, by what a function and its callers make them of.

``checkpoint`` in its reentrant form runs a module without gradients and finds them later only where a tensor that it is
handed has one; what stands in a tuple or a dict it does not look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.frozen import has_no_trained
from migrator.convert.reaching import HANDED, START, Definition, Each, State, reaching
from migrator.convert.refilled import may_have_gradient, runs_without
from migrator.convert.untracked import has_gradient
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

_DEEPEST = 40
_PLAIN = (k.Scalar, k.Const, k.DType, k.Device, k.Module, k.Class, k.Function)


def has_none(
    ctx: Context, node: cst.Call, made: cst.CSTNode, info: FunctionInfo | None
) -> bool | None:
    """Whether torch leaves the parameters of a checkpointed call without a gradient; None where it does on some ways.

    The reentrant form, which is the default, has one only where a tensor that it is handed has.
    """
    reentrant = is_reentrant(ctx, node)
    if reentrant is False:
        return False
    surely = reentrant or None
    run = ctx.kind(node.args[0].value)
    if isinstance(run, k.Module) and run.cls in ("torch.nn.Embedding", "torch.nn.EmbeddingBag"):
        return surely  # of indices
    given = [one for one in node.args[1:] if one.keyword is None]
    if all(_Asked(ctx).argument(one, info) for one in given):
        return surely
    args = [a for a in made.args if a.keyword is None] if isinstance(made, cst.Call) else []
    if len(args) == len(given):
        pairs = zip(given, args, strict=True)
        if all(_Asked(ctx).argument(a, info) or not has_gradient(ctx, b.value) for a, b in pairs):
            return surely
    return None if all(_Doubt(ctx).argument(one, info) for one in given) else False


def is_reentrant(ctx: Context, node: cst.Call) -> bool | None:
    """Whether a call of checkpoint, or a partial of it, is in the reentrant form; None where an option says so."""
    flags = [a.value for a in node.args if a.keyword and a.keyword.value == "use_reentrant"]
    kind = ctx.kind(flags[0]) if flags else k.Const(True)
    return bool(kind.value) if isinstance(kind, k.Const) and kind.value is not None else None


def is_open(ctx: Context, node: cst.Call, info: FunctionInfo | None) -> bool:
    """Whether what a partial of checkpoint is called with later says whether there are gradients."""
    given = [one for one in node.args[2:] if one.keyword is None]
    reentrant = is_reentrant(ctx, node) is not False
    return reentrant and all(_Asked(ctx).argument(one, info) for one in given)


def is_free(ctx: Context, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
    """Whether a value of a function surely has no gradient."""
    return _Asked(ctx).definition(node, "", info)


class _Asked:
    """Whether values surely have no gradient, whichever way led to them."""

    circular = True
    """What is said of a value that is made of itself, in a loop: it has no gradient if it begins without one."""

    handed_to_lambda = False
    """What is said of what a lambda is handed."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.tree = ctx, ctx.facts.tree
        self.active: set[tuple[FunctionInfo | None, int]] = set()
        self.sure = self

    def several(self, answers: Iterable[bool]) -> bool:
        """The answer for a value that is one of several."""
        return all(answers)

    def argument(self, item: cst.Arg, info: FunctionInfo | None) -> bool:
        """Whether an argument of a checkpointed call is no tensor with a gradient; it does not look into containers."""
        if item.star:
            return self._starred(item.value, info)
        if isinstance(item.value, (cst.Tuple, cst.List, cst.Dict)):
            return True
        if isinstance(self.ctx.kind(item.value), (k.Tuple, k.Sequence, k.Mapping)):
            return True
        return self.definition(item.value, "", info)

    def _starred(self, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
        """``*args``: what a function is handed, or a tuple that is written out."""
        if isinstance(node, (cst.Tuple, cst.List)):
            return all(self.of(one.value, info) for one in node.elements)
        if not isinstance(node, cst.Name) or info is None or not self.tree.holds(info.node, node):
            return False
        star = info.node.params.star_arg
        found = self._reaching(node, info)
        if HANDED in found:
            return self.handed_to_lambda
        if found != {START}:
            lists = [one for one in found if isinstance(one, (cst.Tuple, cst.List))]
            return len(lists) == len(found) > 0 and self.several(
                self._starred(one, info) for one in lists
            )
        if not isinstance(star, cst.Param) or star.name.value != node.value:
            return False
        params = info.node.params
        before = len((*params.posonly_params, *params.params)) - info.receivers
        return self._handed(info, lambda call: [a for a in call.args if not a.keyword][before:])

    def of(self, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
        """Whether a value of a function has no gradient."""
        kind = self.ctx.kind(node)
        if isinstance(kind, k.Tensor) and kind.dtype in ("int", "bool"):
            return True
        if isinstance(kind, k.Tensor) and kind.role == "buffer" and isinstance(node, cst.Attribute):
            return not may_have_gradient(self.ctx, node)
        if k.is_parameter(kind):
            return False
        if isinstance(kind, _PLAIN) or syntax.is_number(node):
            return True
        key = (info, id(node))
        if key in self.active:
            return self.circular
        if len(self.active) > _DEEPEST:
            return False
        self.active.add(key)
        try:
            return self._made(node, info)
        finally:
            self.active.discard(key)

    def _made(self, node: cst.CSTNode, info: FunctionInfo | None) -> bool:
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
        if isinstance(node, cst.IfExp):
            return self.several(self.of(one, info) for one in (node.body, node.orelse))
        if isinstance(node, cst.BooleanOperation):
            return self.several(self.of(one, info) for one in (node.left, node.right))
        if isinstance(node, cst.NamedExpr):
            return self.of(node.value, info)
        if isinstance(node, cst.AugAssign):
            return self.of(node.target, info) and self.of(node.value, info)
        return isinstance(node, cst.Call) and self._called(node, info)

    def _called(self, node: cst.Call, info: FunctionInfo | None) -> bool:
        name = self.ctx.facts.callee(node) or ""
        word = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        asks = any(a.keyword is not None and a.keyword.value == "requires_grad" for a in node.args)
        if asks or word == "requires_grad_":
            return False
        if word in ("detach", "detach_") or (name.startswith("torch.") and word in _MAKING):
            return True
        values = [a.value for a in node.args]
        if has_no_trained(self.ctx, node):
            return bool(values) and self._untrained(values, info)
        if not name.startswith(("torch.", "Tensor.")) or name.endswith("()"):
            return False  # a module, or a function of the file, may have parameters
        if name == _CHECKPOINT:
            given = [one for one in node.args[1:] if one.keyword is None]
            return is_reentrant(self.ctx, node) is True and all(
                self.argument(one, info) for one in given
            )
        if any(isinstance(self.ctx.kind(one), (k.Module, k.Function, k.Class)) for one in values):
            return False  # it runs what may have parameters
        if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
            values.append(node.func.value)
        return bool(values) and all(self.of(one, info) for one in values)

    def _untrained(self, values: list[cst.BaseExpression], info: FunctionInfo | None) -> bool:
        """Whether nothing that a layer without trained parameters is handed has a gradient."""
        return all(self.of(one, info) for one in values)

    def _named(self, name: cst.Name, info: FunctionInfo | None) -> bool:
        if info is None or not self.tree.holds(info.node.body, name):
            return False
        found = self._reaching(name, info)
        return bool(found) and self.several(self.definition(one, name.value, info) for one in found)

    def _reaching(self, name: cst.Name, info: FunctionInfo) -> State:
        sure = self.sure
        return reaching(self.tree, info.node.body, name, lambda one: sure.definition(one, "", info))

    def definition(self, node: Definition, name: str, info: FunctionInfo | None) -> bool:
        """Whether what gives a name its value gives it no gradient."""
        if isinstance(node, Each):
            return self._each(node.of, info)
        if isinstance(node, str):
            if node == HANDED:
                return self.handed_to_lambda
            if node != START or info is None or name not in info.params:
                return False
            return self._handed(info, lambda call: _given(call, info, name))
        return self.off(node, info) or self.of(node, info)  # type: ignore[arg-type]

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

    def _each(self, node: cst.BaseExpression, info: FunctionInfo | None) -> bool:
        """Whether the entries of what a loop goes over have no gradient."""
        if isinstance(node, (cst.Tuple, cst.List)):
            entries = [one.value for one in node.elements]
            plain = not any(isinstance(one, cst.StarredElement) for one in node.elements)
            return plain and self.several(self.definition(one, "", info) for one in entries)
        if not isinstance(node, cst.Name) or isinstance(self.ctx.kind(node), k.Tensor):
            return self.of(node, info)
        if info is None or not self.tree.holds(info.node.body, node):
            return False
        found = self._reaching(node, info)
        if not found or not all(isinstance(one, (cst.Tuple, cst.List)) for one in found):
            return False
        return self.several(self._each(one, info) for one in found)  # type: ignore[arg-type]

    def _handed(
        self, info: FunctionInfo, given: Callable[[cst.Call], Sequence[cst.Arg] | None]
    ) -> bool:
        """Whether modules of the file alone call a function, each time with what has no gradient.

        What a program calls may be called with anything by another one."""
        if info.shared or not info.call_sites or not self._is_only_called(info):
            return self.unknown(info)
        return self.several(
            self._is_handed(call, caller, given) for call, caller in info.call_sites.items()
        )

    def _is_handed(
        self,
        call: cst.CSTNode,
        caller: FunctionInfo | None,
        given: Callable[[cst.Call], Sequence[cst.Arg] | None],
    ) -> bool:
        found = given(call) if isinstance(call, cst.Call) else None
        if found is None or caller is None:
            return False
        if caller.owner is None or caller.owner.torch_base is None:
            # what a function hands on is what it is handed itself, by a module in the end
            handed_on = all(
                isinstance(one.value, cst.Name) and one.value.value in caller.params
                for one in found
            )
            if not handed_on or not caller.call_sites:
                return False
        return all(
            self._starred(one.value, caller) if one.star else self.definition(one.value, "", caller)
            for one in found
        )

    def unknown(self, info: FunctionInfo) -> bool:
        """The answer for what a function is handed by callers that are not known."""
        return False

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


class _Doubt(_Asked):
    """Whether values have no gradient on some way that leads to them, and may have one on others."""

    circular = False
    handed_to_lambda = True

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx)
        self.sure, self.frozen = _Asked(ctx), 0

    def several(self, answers: Iterable[bool]) -> bool:
        """One is enough."""
        return any(answers)

    def _untrained(self, values: list[cst.BaseExpression], info: FunctionInfo | None) -> bool:
        self.frozen += 1
        try:
            return super()._untrained(values, info)
        finally:
            self.frozen -= 1

    def unknown(self, info: FunctionInfo) -> bool:
        """What is computed by frozen layers alone has a gradient only where the input of the model is asked for one."""
        return self.frozen > 0


def _given(call: cst.Call, info: FunctionInfo, name: str) -> list[cst.Arg] | None:
    """What a call gives a parameter: nothing where it leaves it at a constant; None where that is not known."""
    from migrator.convert.alias import bound_arguments

    given = [item for parameter, item in bound_arguments(call, info) if parameter == name]
    if len(given) == 1:
        return given
    param = syntax.parameters(info.node).get(name)
    default = param.default if param is not None else None
    if given or default is None or any(a.star for a in call.args):
        return None
    none = isinstance(default, cst.Name) and default.value == "None"
    return [] if none or syntax.is_number(default) else None


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

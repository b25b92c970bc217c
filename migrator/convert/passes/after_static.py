"""Layers and parameters under a name that may have held something else: ``self.model = None`` in a base class.

Flax keeps to what an attribute was first, data or not, unless it is told otherwise. Where one constructor assigns a
constant and a layer later, the constant is declared (``nnx.data(None)``); what a base class, another file, a tuple of
targets or ``setattr`` has assigned is not, so that what comes says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import holds_tensor
from migrator.convert.context import Context, Failure
from migrator.convert.kept import either_or
from migrator.convert.own_state import property_of
from migrator.convert.passes.first_kept import is_constant
from migrator.convert.passes.held import assigned, is_called, is_function
from migrator.convert.passes.host_arrays import is_host_array
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def declared(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.model = nnx.data(Net(…))``."""
    ctx = rw.ctx
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or node in ctx.redeclared:
        return None
    owner = ctx.owner
    if owner is None or owner.torch_base is None or not ctx.is_self(target.value):
        return None
    if property_of(ctx, target) is not None:
        return None  # it is the setter that assigns
    name = target.attr.value
    if not _is_data(rw, node.value):
        if not _is_array_after(ctx, owner, name, node.value) or is_host_array(ctx, target):
            return None
    elif not _may_be_static(ctx, owner, name, node.value):
        return None
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.Assign) or not isinstance(made.targets[0].target, cst.Attribute):
        return made
    if isinstance(made.value, cst.Call) and syntax.code(made.value.func) in _DECLARED:
        return made
    ctx.helpers.use("nnx")
    call = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(made.value)])
    return syntax.changed(made, value=call)


@converts(cst.Assign, targets=(cst.Attribute,))
def told_by_what_comes(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.reg = declared(reg)`` where ``reg`` may be a layer, and another line assigns a number or a truth before.

    A class that is mixed in before a module assigns to the module.
    """
    ctx, owner, value = rw.ctx, rw.ctx.owner, node.value
    target = node.targets[0].target
    if len(node.targets) != 1 or type(target) is not cst.Attribute or node in ctx.redeclared:
        return None
    if owner is None or not ctx.is_self(target.value) or ctx.frame is None:
        return None
    if not ctx.in_init and not (owner.torch_base is None and ctx.frame.info.short == "__init__"):
        return None
    name, kind = target.attr.value, ctx.facts.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    plain = owner.torch_base is None and isinstance(kind, k.Module)
    if not (plain or k.is_unknown_module(kind)) or not is_called(ctx, name):
        return None
    values = [one for base in owner.lineage() for one in assigned(ctx, base, name)]
    before = [one for one in values if one is not value and _is_number(ctx, one)]
    if all(either_or(ctx, value, one) for one in before):
        return None
    if owner.torch_base is None and not _is_mixed_in(ctx, owner):
        return None
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.Assign):
        return made
    if isinstance(made.value, cst.Call) and syntax.code(made.value.func) in _SAYING:
        return made
    wrapper = ctx.helpers.need(module_file("rules.compat.factories"), "declared")
    call = syntax.with_args(cst.Call(cst.Name(wrapper)), [cst.Arg(made.value)])
    return syntax.changed(made, value=call)


def _is_number(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value is a number, a text or a truth, which Flax holds as no data; a constant is declared there."""
    if isinstance(value, (cst.Comparison, cst.UnaryOperation)):
        return isinstance(ctx.facts.kind(value), (k.Unknown, k.Scalar, k.Const))
    return k.scalar_type(ctx.facts.kind(value)) is not None and not is_constant(value)


def _is_mixed_in(ctx: Context, info: ClassInfo) -> bool:
    """Whether instances of a plain class of the file are modules: others derive from it, and none is made of it alone."""
    heirs = [c for c in ctx.facts.classes.values() if c is not info and info in c.lineage()]
    if not heirs or not all(one.torch_base for one in heirs):
        return False
    calls = ctx.source.index.of_type(cst.Call)
    return not any(isinstance(c.func, cst.Name) and c.func.value == info.short for c in calls)


@converts(cst.Assign, targets=(cst.Attribute,))
def nothing_yet(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.a = self.b = None``: each as it is alone, where one is declared as data."""
    value = node.value
    if len(node.targets) < 2 or not (isinstance(value, cst.Name) and value.value == "None"):
        return None
    if not all(type(one.target) is cst.Attribute for one in node.targets):
        return None
    from migrator.convert.passes.parameters import attribute_assignment

    each = [syntax.changed(node, targets=[one]) for one in node.targets]
    made = [attribute_assignment(rw, one) for one in each]
    if all(one is None for one in made):
        return None
    found = zip(each, made, strict=True)
    return [rw.rebuild(one) if new is None else new for one, new in found]


@converts(cst.Assign, values=(cst.Call,), targets=(cst.Attribute,))
def nothing_given(rw: Rewriter, node: cst.Assign) -> None:
    """``self.hidden = self.reset()`` of a method that sets ``hidden`` and returns None, which torch then keeps."""
    if not isinstance(node.value, cst.Call) or rw.ctx.facts.kind(node.value) != k.NONE:
        return
    for one in node.targets:
        target = one.target
        owner = (
            rw.ctx.class_of(rw.ctx.kind(target.value)) if type(target) is cst.Attribute else None
        )
        if owner is None or not isinstance(target, cst.Attribute):
            continue
        kind = owner.attribute(target.attr.value)
        if isinstance(kind.inner if isinstance(kind, k.Optional) else kind, k.Tensor):
            what = f"`{target.attr.value}` is given what `{syntax.code(node.value)}` returns, which is nothing"
            raise Failure(node, "API001", what, "call it in a statement of its own")


def before_registration(rw: Rewriter, node: cst.Assign, value: cst.BaseExpression) -> cst.Assign:
    """``self.weight = nnx.data(weight)`` in a constructor: a parameter, or what one replaces later, never a write."""
    kind = rw.ctx.facts.kind(node.value)
    if not (isinstance(kind, k.Tensor) and kind.role == "param"):
        rw.ctx.helpers.use("nnx")
        value = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(value)])
    target = syntax.changed(node.targets[0], target=rw.rebuild(node.targets[0].target))
    return syntax.changed(node, targets=[target], value=value)


@converts(cst.Call, called=("builtins.setattr",))
def parameter_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``setattr(self, name, nnx.data(nnx.Param(…)))`` in a constructor: the name may be that of a number until then."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if ctx.facts.callee(node) != "builtins.setattr" or len(node.args) != _OF_SETATTR:
        return None
    holder, name, value = (arg.value for arg in node.args)
    if node in ctx.redeclared or isinstance(name, cst.SimpleString) or not ctx.is_self(holder):
        return None
    if owner is None or owner.torch_base is None or not ctx.in_init:
        return None
    if not k.is_parameter(ctx.facts.kind(value)) or not _reads_itself(ctx, name):
        return None
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.Call) or len(made.args) != _OF_SETATTR:
        return made
    ctx.helpers.use("nnx")
    call = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(made.args[2].value)])
    return syntax.changed(made, args=[*made.args[:2], cst.Arg(call)])


def _reads_itself(ctx: Context, name: cst.BaseExpression) -> bool:
    """Whether the function that sets an attribute by a name reads one by the same: ``getattr(self, name)``."""
    frame = ctx.frame
    calls = ctx.source.index.within(frame.info.node, cst.Call) if frame is not None else ()
    return any(
        ctx.facts.callee(call) == "builtins.getattr"
        and len(call.args) > 1
        and call.args[1].value.deep_equals(name)
        for call in calls
    )


_OF_SETATTR = 3


def number_or_array(
    rw: Rewriter, node: cst.CSTNode, made: cst.BaseExpression
) -> cst.BaseExpression | None:
    """``held(self.beta)`` behind ``self.beta = beta; if learn: self.beta = nn.Parameter(…)``: it need not be a Variable."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if not isinstance(node, cst.Attribute) or owner is None or not ctx.is_self(node.value):
        return None
    if not k.is_parameter(ctx.facts.kind(node)):
        return None
    values = [v for base in owner.lineage() for v in assigned(ctx, base, node.attr.value)]
    made_here = [v for v in values if k.is_parameter(ctx.facts.kind(v))]
    others = [v for v in values if isinstance(ctx.facts.kind(v), (k.Unknown, k.Scalar, k.Const))]
    others = [v for v in others if ctx.facts.kind(v) != k.NONE and ctx.facts.tree.has(v)]
    if all(any(_follows(ctx, one, first) for one in made_here) for first in others):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.named"), "held")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(made)])


def _follows(ctx: Context, one: cst.CSTNode, first: cst.CSTNode) -> bool:
    """Whether an expression surely runs behind another, which it does unless it stands in a branch alone."""
    if not ctx.facts.tree.has(one):
        return True
    ours, theirs = ctx.facts.tree.around(one), ctx.facts.tree.around(first)
    common = len([a for a, b in zip(ours, theirs, strict=False) if a is b])
    return not any(isinstance(a, (cst.If, cst.For, cst.While, cst.Try)) for a in ours[common:])


def set_on_the_way(ctx: Context, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    """``self.hidden = self.reset()`` of a method that sets ``self.hidden`` before it returns it."""
    owner = ctx.owner
    if (
        owner is None
        or not isinstance(value, cst.Call)
        or not isinstance(value.func, cst.Attribute)
    ):
        return False
    called = owner.method(value.func.attr.value) if ctx.is_self(value.func.value) else None
    seen: set[FunctionInfo] = set()
    queue = [called] if called is not None else []
    while queue:
        one = queue.pop()
        if one in seen or not ctx.facts.tree.has(one.node.body):
            continue
        seen.add(one)
        for line in ctx.facts.tree.within(one.node.body, cst.Assign):
            if any(syntax.is_own(item.target, target.attr.value) for item in line.targets):
                return True
        queue.extend(c for c in one.calls if isinstance(c, FunctionInfo))
    return False


def in_two_steps(
    node: cst.Assign, target: cst.BaseExpression, made: cst.BaseExpression
) -> list[cst.BaseSmallStatement]:
    """``self.hidden = nnx.Variable(None, …)`` and ``self.hidden.set_value(self.reset())``, which sets it as well."""
    assert isinstance(made, cst.Call)
    empty = syntax.changed(made.args[0], value=cst.Name("None"))
    variable = syntax.changed(made, args=[empty, *made.args[1:]])
    func = cst.Attribute(target, cst.Name("set_value"))
    value = cst.Call(func, [cst.Arg(made.args[0].value)])
    to = [syntax.changed(node.targets[0], target=target)]
    return [syntax.changed(node, targets=to, value=variable), cst.Expr(value)]


@converts(cst.Assign, kinds=(k.Module,), targets=(cst.Attribute,))
def past_a_property(rw: Rewriter, node: cst.Assign) -> None:
    """``self.net.act = nn.Tanh()`` where ``act`` is a property: torch keeps the layer, and never calls the setter."""
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Attribute) or property_of(rw.ctx, target) is None:
            continue
        if isinstance(rw.ctx.kind(node.value), k.Module):
            what = f"a layer is assigned to the property `{target.attr.value}`, whose setter torch does not call"
            raise Failure(node, "API007", what, "call a method that sets it")


_DECLARED = ("nnx.data", "nnx.static")
_SAYING = (*_DECLARED, "declared", "nnx.Variable", "nnx.Param")


def _is_data(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a value is a layer in the output, a parameter or an array, or a container of some, or else None."""
    if isinstance(value, cst.IfExp):
        cases = [one for one in (value.body, value.orelse) if rw.ctx.facts.kind(one) != k.NONE]
        return bool(cases) and all(_is_data(rw, one) for one in cases)
    kind = rw.ctx.facts.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(kind, k.Module):
        return not is_function(rw, value)
    return isinstance(kind, k.Tensor) or holds_tensor(kind)


def _is_array_after(ctx: Context, owner: ClassInfo, name: str, value: cst.BaseExpression) -> bool:
    """``self.size = size; self.size = np.asarray(self.size)``: an array of numpy, which Flax takes for data as well."""
    if ctx.facts.kind(value) != k.NUMPY:
        return False
    if any(name in base.attributes for base in owner.lineage()[1:]):
        return True
    before = [v for v in assigned(ctx, owner, name) if v is not value]
    return any(ctx.facts.kind(v) != k.NUMPY for v in before) or _assigns(ctx, owner, name)


def _may_be_static(ctx: Context, owner: ClassInfo, name: str, value: cst.BaseExpression) -> bool:
    """Whether something else may have been assigned to an attribute before, and nothing declares it there."""
    bases = [base.attributes[name] for base in owner.lineage()[1:] if name in base.attributes]
    if any(not _says_data(kind) for kind in bases):
        return True
    before = [v for v in assigned(ctx, owner, name) if v is not value and not is_constant(v)]
    if any(not _says_data(ctx.facts.kind(v)) and not either_or(ctx, v, value) for v in before):
        return True
    return any(_assigns(ctx, info, name) for info in owner.lineage())


def _says_data(kind: k.Kind) -> bool:
    """Whether what a base class assigns is data, or declared as such."""
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(inner, (k.Module, k.Tensor)) or holds_tensor(inner)


def _assigns(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether a class assigns a constant to an attribute beside others, or by a name that is computed."""
    if info not in ctx.put_beside:
        ctx.put_beside[info] = frozenset(_put_beside(ctx, info))
    return not ctx.put_beside[info].isdisjoint((name, _ANY))


_ANY = "*"
"""Stands for every attribute, where a name is computed."""


def _put_beside(ctx: Context, info: ClassInfo) -> Iterator[str]:
    tree, computed = ctx.facts.tree, "setattr" in ctx.words
    for method in info.methods.values():
        if not tree.has(method.node.body):
            continue
        for item in tree.within(method.node.body, cst.Assign):
            for one in item.targets:
                yield from _constants(one.target, item.value, len(item.targets) > 1)
        for call in tree.within(method.node.body, cst.Call) if computed else ():
            if isinstance(call.func, cst.Name) and call.func.value == "setattr":
                if len(call.args) == 3 and is_constant(call.args[2].value):
                    told = call.args[1].value
                    yield str(told.evaluated_value) if isinstance(told, cst.SimpleString) else _ANY


def _constants(
    target: cst.BaseExpression, value: cst.BaseExpression, beside: bool
) -> Iterator[str]:
    """The attributes among several targets that get constants."""
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        for to, one in zip(target.elements, value.elements, strict=False):
            yield from _constants(to.value, one.value, beside=True)
    elif beside and isinstance(target, cst.Attribute) and is_constant(value):
        yield target.attr.value

"""Where a value goes when torch would have written in place."""

from __future__ import annotations

import libcst as cst

from migrator import syntax, views
from migrator.convert.becoming import is_parameter
from migrator.convert.context import Context, Failure
from migrator.convert.own_arrays import is_own_array
from migrator.convert.own_state import property_of
from migrator.convert.passes.past_gradients import past_gradient
from migrator.convert.passes.repeated_places import is_copy
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.recurrent import is_recurrent
from migrator.infer.symbols import LAYERS
from rules import definitions
from rules.definitions import module_file

FULL = syntax.parse("_[...]")


def dereferenced(node: cst.BaseExpression) -> cst.Subscript:
    """``node[...]``: the array a Variable holds."""
    assert isinstance(FULL, cst.Subscript)
    return syntax.changed(FULL, value=node)


def layer_weight(ctx: Context, node: cst.Attribute) -> tuple[str, bool] | None:
    """Flax attribute and whether it is stored transposed, for a parameter that a torch layer owns."""
    kind = ctx.kind(node.value)
    found = set()
    info: ClassInfo | None = None
    if isinstance(kind, k.Other) and kind.type in ctx.facts.classes:
        info = ctx.facts.classes[kind.type]
        heirs = [c for c in ctx.facts.classes.values() if c is not info and info in c.lineage()]
        cls = "|".join(sorted({c.torch_base or "" for c in heirs} - {"", "torch.nn.Module"}))
        if not cls or node.attr.value not in ("weight", "bias"):
            return None
        if any(c.attribute(node.attr.value) is not None for c in heirs):
            found.add(node.attr.value)
    elif not isinstance(kind, k.Module):
        return None
    else:
        cls = kind.cls
        info = ctx.facts.classes.get(cls)
        if info is not None:
            if info.attribute(node.attr.value) is not None:
                return None
            cls = info.torch_base or ""
    for one in cls.split("|"):
        if one == "torch.nn.Module" or not one.startswith(LAYERS):
            return None
        if isinstance(kind, k.Module) and info is None:
            check_loss(node, one)
        rules = definitions.layers(one)
        spec = rules[0].weights.get(node.attr.value, node.attr.value) if rules else node.attr.value
        found.add(spec)
    if len(found) != 1:
        raise Failure(
            node,
            "API006",
            f"`{node.attr.value}` has different names in the layers this may be",
            "write one branch for each class",
        )
    spec = found.pop()
    return spec.removesuffix(".T"), spec.endswith(".T")


def check_loss(node: cst.Attribute, layer: str) -> None:
    """Raise a Failure for the weights of a loss."""
    if node.attr.value in ("weight", "pos_weight"):
        if layer.startswith("torch.nn.") and layer.endswith("Loss"):
            what = f"`{node.attr.value}` of {layer}, a plain function where it is not given one"
            raise Failure(node, "API001", what, "keep the weights in a buffer of its own")


def is_variable(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression names a registered parameter or buffer (a Variable in Flax)."""
    kind = ctx.kind(node)
    return isinstance(kind, k.Tensor) and kind.role in ("param", "buffer")


def names_variable(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is the name of one, not a new one."""
    return isinstance(node, (cst.Name, cst.Attribute)) and is_variable(ctx, node)


def is_operand(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether something is computed with, which None cannot be: ``x * self.weight``, ``self.weight.view(1, -1)``."""
    above = ctx.facts.tree.around(node)[-1:] if ctx.facts.tree.has(node) else ()
    if not above:
        return False
    one = above[0]
    if isinstance(one, (cst.Attribute, cst.Subscript)):
        return one.value is node
    return isinstance(one, (cst.BinaryOperation, cst.UnaryOperation)) and not isinstance(
        getattr(one, "operator", None), cst.Not
    )


def registered_by_name(ctx: Context, node: cst.CSTNode) -> bool:
    """``m.anchors`` of something unknown, where the classes that have such an attribute register it as a tensor.

    Raises:
      Failure: one class registers it, in another it is something else.
    """
    if not (type(node) is cst.Attribute and k.is_unknown_module(ctx.kind(node.value))):
        return False
    name = node.attr.value
    kinds = [info.attributes.get(name) for info in ctx.facts.classes.values() if info.torch_base]
    inner = [one.inner if isinstance(one, k.Optional) else one for one in kinds if one is not None]
    registered = [isinstance(one, k.Tensor) and bool(one.role) for one in inner]
    if any(registered) and not all(registered):
        what = f"`{name}` is a parameter or buffer in one class and something else in another"
        raise Failure(node, "API006", what, "write one branch for each class")
    return any(registered)


def holds_parameter(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a local name stands for a parameter made here: ``w = nn.Parameter(…)`` and nothing else."""
    if type(node) is not cst.Name or not isinstance(ctx.kind(node), k.Tensor):
        return False
    body = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    return node.value in new_parameters(ctx, body)


def new_parameters(ctx: Context, body: cst.CSTNode) -> frozenset[str]:
    """The names that a function gives new parameters only."""
    if body not in ctx.new_parameters:
        ctx.new_parameters[body] = frozenset()  # what a recursive function returns is not known
        made: dict[str, bool] = {}
        for item in ctx.facts.tree.within(body, cst.Assign):
            for target in item.targets:
                if isinstance(target.target, cst.Name):
                    name = target.target.value
                    made[name] = made.get(name, True) and makes_parameter(ctx, item.value)
        ctx.new_parameters[body] = frozenset(name for name, always in made.items() if always)
    return ctx.new_parameters[body]


def makes_parameter(ctx: Context, value: cst.CSTNode) -> bool:
    """Whether a value is ``nn.Parameter(…)``, or a call of a function of the file that always returns one."""
    if not isinstance(value, cst.Call):
        return False
    name = ctx.facts.callee(value) or ""
    if name == "copy.deepcopy" and value.args:
        of = value.args[0].value
        return is_parameter(ctx, of) or makes_parameter(ctx, of) or holds_parameter(ctx, of)
    info = ctx.facts.names.get(name)
    if info is None or info.settled is not None:
        return name in ("torch.nn.Parameter", "torch.nn.Buffer")
    returns = [n.value for n in ctx.facts.tree.within(info.node.body, cst.Return)]
    return bool(returns) and all(
        one.value in new_parameters(ctx, info.node.body)
        if isinstance(one, cst.Name)
        else isinstance(one, cst.Call) and ctx.facts.callee(one) == "torch.nn.Parameter"
        for one in returns
    )


def variable_reference(rw: Rewriter, node: cst.BaseExpression) -> tuple[cst.BaseExpression, bool]:
    """The Variable an expression names in the output, and whether it holds the transposed array."""
    if isinstance(node, cst.Attribute):
        weight = layer_weight(rw.ctx, node)
        value = rw.visit(node.value)
        base = syntax.changed(node, value=syntax.fitted(node, "value", value))
        if weight is not None:
            return syntax.changed(base, attr=cst.Name(weight[0])), weight[1]
        return base, False
    if isinstance(node, cst.Subscript):
        return rw.rebuild(node), False
    return node, False


def assign(
    rw: Rewriter,
    target: cst.BaseExpression,
    value: cst.BaseExpression,
    *,
    layout_free: bool = False,
    data: bool | None = False,
) -> list[cst.BaseSmallStatement]:
    """The statements that put a new value where torch wrote in place.

    Args:
      target: the written expression of the original tree.
      value: the new value of the whole target.
      layout_free: the value is the same in a transposed layout (it was made for that shape).
      data: torch wrote to the tensor's ``data``; None where it wrote no numbers, but another shape, or made a new tensor.
    """
    ctx = rw.ctx
    if views.is_detached(target):
        inner = views.undressed(target)
        return assign(rw, inner, value, layout_free=layout_free, data=True)
    if isinstance(target, cst.Name):
        if is_variable(ctx, target) or holds_parameter(ctx, target):
            from migrator.convert.passes.walked import check_written

            check_written(ctx, target)
            value = past_gradient(rw, target, dereferenced(target), value, data)
            return [_assign(dereferenced(target), value)]
        from migrator.convert.passes.state_alias import with_state

        return with_state(
            rw, target, [_assign(target, past_gradient(rw, target, target, value, data))]
        )
    if isinstance(target, cst.Attribute):
        if views.is_data(target):
            _check_kept(ctx, target.value)
            return assign(rw, target.value, value, layout_free=layout_free, data=True)
        if property_of(ctx, target) is not None:
            raise _through_view(target)
        if is_variable(ctx, target):
            _check_one_kind(ctx, target)
            reference, transposed = variable_reference(rw, target)
            if _may_be_computed(ctx, target):
                value = (
                    cst.Attribute(_atom(value), cst.Name("T"))
                    if transposed and layout_free
                    else value
                )
                return [initialized(rw, target, value)]
            if transposed and not layout_free:
                value = cst.Attribute(_atom(value), cst.Name("T"))
            value = past_gradient(rw, target, dereferenced(reference), value, data)
            return [_assign(dereferenced(reference), value)]
        from migrator.convert.passes.put_elsewhere import in_place

        put = in_place(rw, target, value) if not data else None
        if put is not None:
            return [put]
        if data and _is_own_parameter(ctx, target):
            read = dereferenced(rw.rebuild(target))
            return [_assign(read, past_gradient(rw, target, read, value, data))]
        if isinstance(ctx.kind(target), k.Tensor) and _is_of_object(ctx, target):
            read = rw.rebuild(target)
            return [_assign(read, past_gradient(rw, target, read, value, data))]
    if isinstance(target, cst.Subscript) and is_copy(ctx, target):
        what = f"`{' '.join(syntax.code(target).split())[:60]}` may be a copy, where what is written is lost"
        raise Failure(target, "MUT001", what, "assign to the places, `x[i] = …`")
    if isinstance(target, cst.Subscript) and is_variable(ctx, target):
        from migrator.convert.passes.listed_parameters import check_entry

        check_entry(ctx, target)
        read = dereferenced(rw.rebuild(target))
        return [_assign(read, past_gradient(rw, target, read, value, data))]
    if is_weight_by_name(ctx, target):
        read = dereferenced(rw.rebuild(target))
        return [_assign(read, past_gradient(rw, target, read, value, data))]
    if _own_by_name(ctx, target):
        read = dereferenced(rw.visit(target))
        return [_assign(read, past_gradient(rw, target, read, value, data))]
    if isinstance(target, cst.Subscript) and isinstance(ctx.kind(target.value), k.Tensor):
        from migrator.convert.passes.item_writes import set_items

        return set_items(rw, target, value)
    plain = ctx.owner is not None and ctx.owner.torch_base is None
    if isinstance(target, cst.Attribute) and ctx.is_self(target.value) and plain:
        what = f"`{syntax.code(target)}` is written in place, and may be held elsewhere, whole or in part"
        advice = f"make it a new tensor, and give out copies: `{syntax.code(target)}[i].clone()`"
        raise Failure(target, "MUT001", what, advice)
    from migrator.convert.passes.changed_items import item_of_own
    from migrator.convert.passes.view_writes import base_value

    item = item_of_own(rw, target)
    if item is not None:
        return [_assign(item, past_gradient(rw, target, item, value, data))]
    shown = base_value(rw, target, value)
    if shown is not None:
        return assign(rw, *shown, data=data)
    raise _through_view(target)


def _is_of_object(ctx: Context, target: cst.Attribute) -> bool:
    """Whether an attribute is one of a module of the file, or a tensor that an object of a plain class makes."""
    if ctx.class_of(ctx.kind(target.value)):
        return True
    return is_own_array(ctx, target)


def _is_own_parameter(ctx: Context, target: cst.Attribute) -> bool:
    """``module.gamma`` of one or several own classes, each of which has a parameter there, or a number, which has no data."""
    from migrator.convert.passes.held import assigned

    kind = ctx.kind(target.value)
    if not isinstance(kind, k.Module):
        return False
    names = [one.cls for one in kind.among] or kind.cls.split("|")
    for info in map(ctx.facts.classes.get, names):
        if info is None or info.torch_base != "torch.nn.Module" or info.settled is not None:
            return False
        given = [ctx.kind(value) for value in assigned(ctx, info, target.attr.value)]
        given = [one.inner if isinstance(one, k.Optional) else one for one in given]
        held = [one for one in given if isinstance(one, k.Tensor) and one.role == "param"]
        rest = [one for one in given if one not in held and one != k.NONE]
        if not held or not all(k.scalar_type(one) for one in rest):
            return False
    return True


def _check_kept(ctx: Context, target: cst.BaseExpression) -> None:
    """Raise a Failure where an attribute is a parameter at times and a plain tensor before: it would be one no more."""
    if not isinstance(target, cst.Attribute) or is_variable(ctx, target) or ctx.in_init:
        return
    from migrator.convert.passes.held import assigned

    owner = ctx.owner if ctx.is_self(target.value) else ctx.class_of(ctx.kind(target.value))
    if owner is not None and any(
        getattr(ctx.kind(value), "role", None) for value in assigned(ctx, owner, target.attr.value)
    ):
        what = f"`{syntax.code(target)}` is a plain tensor before it is a parameter"
        raise Failure(target, "MUT002", what, "make the parameter of it under another name")


def _through_view(target: cst.BaseExpression) -> Failure:
    what = f"`{' '.join(syntax.code(target).split())[:60]}` is written through a view"
    return Failure(target, "MUT001", what, "assign the new value to the tensor it is a view of")


def check_named(ctx: Context, target: cst.BaseExpression) -> None:
    """Raise a Failure for ``getattr(self, name).data[0] = v`` where only a run tells which parameter it is."""
    base, index = target, target.slice[0].slice if isinstance(target, cst.Subscript) else None
    while isinstance(base, (cst.Subscript, cst.Attribute)):
        if isinstance(base, cst.Attribute) and base.attr.value != "data":
            return
        base = base.value
    if base is target or not isinstance(base, cst.Call) or not base.args:
        return
    of_self = ctx.facts.callee(base) == "builtins.getattr" and ctx.is_self(base.args[0].value)
    word = isinstance(index, cst.Index) and k.scalar_type(ctx.kind(index.value)) == "str"
    if of_self and not word and isinstance(ctx.kind(base), k.Unknown):
        raise _through_view(target)


def replace(
    rw: Rewriter, target: cst.BaseExpression, value: cst.BaseExpression, original: cst.CSTNode
) -> list[cst.BaseSmallStatement]:
    """The statements for ``p.data = value`` and ``layer.weight = nn.Parameter(value)``: another shape and dtype may come.

    ``p[...] = value`` would cast and broadcast the value, or raise: ``p.set_value(value)`` does neither.
    """
    made = assign(rw, target, value)
    last = made[-1]
    base = target
    while views.is_data(base):
        base = base.value
    if not isinstance(last, cst.Assign) or keeps_form(rw.ctx, base, original):
        return made
    last = _of_any_dtype(rw, last)
    made = [*made[:-1], last]
    place = last.targets[0].target
    if not isinstance(place, cst.Subscript) or not place.deep_equals(dereferenced(place.value)):
        return made
    func = cst.Attribute(place.value, cst.Name("set_value"))
    call = syntax.with_args(cst.Call(func), [cst.Arg(syntax.unparenthesized(last.value))])
    return [*made[:-1], cst.Expr(call)]


def _of_any_dtype(rw: Rewriter, line: cst.Assign) -> cst.Assign:
    """``x = with_data(x, value)`` of a whole new value, which keeps its own dtype."""
    value, file = line.value, module_file("rules.compat.data")
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Name):
        return line
    if value.func.value != rw.ctx.helpers.need(file, "with_data"):
        return line
    name = cst.Name(rw.ctx.helpers.need(file, "with_new_data"))
    return syntax.changed(line, value=syntax.changed(value, func=name))


_ELEMENTWISE = frozenset(
    "abs add add_ clamp clamp_ clone contiguous copy_ detach div div_ exp fill_ mul mul_ neg normal_ sub sub_ uniform_ "
    "zero_".split()
)


def keeps_form(ctx: Context, target: cst.BaseExpression, value: cst.CSTNode) -> bool:
    """Whether a new value has the shape and dtype of the old one: ``self.count + 1``, ``0.9 * p.data``, ``zeros_like(p)``."""
    name = syntax.code(target).strip()
    if isinstance(value, (cst.Name, cst.Attribute)):
        return syntax.code(value).strip() in (name, f"{name}.data")
    if isinstance(value, cst.UnaryOperation):
        return keeps_form(ctx, target, value.expression)
    if isinstance(value, cst.BinaryOperation):
        sides = (value.left, value.right)
        kept = [side for side in sides if keeps_form(ctx, target, side)]
        number = next((one for one in sides if syntax.is_number(one)), None)
        if len(kept) == 2 or (kept and number is not None):
            whole = isinstance(value.operator, (cst.Add, cst.Subtract, cst.Multiply))
            whole = whole and (number is None or isinstance(number, cst.Integer))
            return _dtype_stays(ctx, target, kept[0], whole)
        return False
    if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
        return False
    method = value.func.attr.value
    if method.endswith("_like"):
        return len(value.args) == 1 and keeps_form(ctx, target, value.args[0].value)
    receiver = value.func.value
    plain = method in _ELEMENTWISE and all(syntax.is_number(a.value) for a in value.args)
    return plain and keeps_form(ctx, target, receiver) and _dtype_stays(ctx, target, receiver)


def _dtype_stays(
    ctx: Context, target: cst.BaseExpression, read: cst.BaseExpression, whole: bool = False
) -> bool:
    """Whether arithmetic leaves a tensor's dtype; ``whole``: it gives whole numbers of whole numbers, and floats of floats.

    The dtype is that of what is read: of the target it may be what the assignment gives it."""
    kinds = [ctx.kind(one) for one in (read, target)]
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, k.Tensor) and kind.dtype is not None}
    if whole or "int" in dtypes:
        return whole and "bool" not in dtypes
    trained = any(isinstance(kind, k.Tensor) and kind.role == "param" for kind in kinds)
    return dtypes == {"float"} or (trained and not dtypes)


def _own_by_name(ctx: Context, target: cst.BaseExpression) -> bool:
    """``getattr(self, f"pos_{i}")`` of a class of the file, where all that may be meant is registered."""
    if not isinstance(target, cst.Call) or ctx.facts.callee(target) != "builtins.getattr":
        return False
    return is_variable(ctx, target) and ctx.is_self(target.args[0].value)


def is_weight_by_name(ctx: Context, node: cst.CSTNode) -> bool:
    """``getattr(self.rnn, f"weight_hh_l{i}")`` of a recurrent layer, whose weights Flax has under torch's names."""
    if not isinstance(node, cst.Call) or ctx.facts.callee(node) != "builtins.getattr":
        return False
    return is_variable(ctx, node) and is_recurrent(ctx.kind(node.args[0].value))


def _may_be_computed(ctx: Context, target: cst.Attribute) -> bool:
    """Whether a layer's weight may be one that weight norm or the like computes: what is written to it is lost."""
    kind = ctx.kind(target.value)
    if target.attr.value != "weight" or not isinstance(kind, k.Module):
        return False
    layer = all(name.startswith("torch.nn.") for name in kind.cls.split("|"))
    return layer and any(word in ctx.source.text for word in _COMPUTING)


_COMPUTING = ("weight_norm(", "spectral_norm(", "register_parametrization(")


def _check_one_kind(ctx: Context, target: cst.Attribute) -> None:
    """Refuse to write to what a constructor makes a parameter, or a plain tensor, which is no Variable.

    Raises:
      Failure: it may be either.
    """
    from migrator.convert.passes.held import assigned

    if ctx.owner is None or not ctx.is_self(target.value):
        return
    parameters = plain = False
    for value in assigned(ctx, ctx.owner, target.attr.value):
        made = isinstance(value, cst.Call) and ctx.facts.callee(value) == "torch.nn.Parameter"
        parameters = parameters or made
        kind = ctx.facts.kind(value)
        written = isinstance(value, cst.Name) or not ctx.facts.tree.has(value)
        plain = plain or (isinstance(kind, k.Tensor) and not kind.role and not made and not written)
    if parameters and plain and f'register_buffer("{target.attr.value}"' not in ctx.source.text:
        what = (
            f"`{target.attr.value}` may be a parameter or a plain tensor, which no Variable holds"
        )
        raise Failure(target, "MUT002", what, "register the plain one as a buffer")


def found_at_run_time(ctx: Context, target: cst.BaseExpression) -> cst.Attribute | None:
    """``m.weight`` of a module whose class is not known, or of several classes that differ in names."""
    if not isinstance(target, cst.Attribute) or target.attr.value not in ("weight", "bias"):
        return None
    from migrator.convert.passes.tying import loosely_tied

    kind = ctx.kind(target.value)
    if isinstance(kind, k.Unknown) or k.is_any_module(kind) or loosely_tied(ctx, target.value):
        return target
    if isinstance(kind, k.Module) and "|" in kind.cls:
        try:
            layer_weight(ctx, target)
        except Failure:
            return target
    return None


_CASTS = frozenset("half float double bfloat16 to type type_as".split())


def casts(value: cst.BaseExpression) -> bool:
    """Whether a new value is of another type perhaps: ``m.weight.data.half()``."""
    func = value.func if isinstance(value, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in _CASTS


def initialized(
    rw: Rewriter, target: cst.Attribute, value: cst.BaseExpression, cast: bool = False
) -> cst.Expr:
    """``initialize(m, "weight", lambda w: value)``; the value is written in terms of ``whole``.

    ``cast``: outside of the forward pass it keeps the dtype and shape that it has.
    """
    from migrator.convert.passes.freezing import in_forward

    helper = "overwrite" if in_forward(rw.ctx) else "initialize"
    name = rw.ctx.helpers.need(module_file("rules.compat.initialize"), helper)
    function = cst.Lambda(
        cst.Parameters([cst.Param(whole(rw.ctx))]), syntax.fitted(_LAMBDA, "body", value)
    )
    args = [
        cst.Arg(rw.visit(target.value)),
        cst.Arg(cst.SimpleString(f'"{target.attr.value}"')),
        cst.Arg(function),
    ]
    if cast and helper == "initialize":
        args.append(syntax.arg(cst.Name("True"), "dtype"))
    return cst.Expr(syntax.with_args(cst.Call(cst.Name(name)), args))


def whole(ctx: Context) -> cst.Name:
    """What stands for the present value of a parameter where its new one is told: a name that the file has not."""
    names = ("w", "old", "present", *(f"w{i}" for i in range(2, 99)))
    return cst.Name(next(name for name in names if name not in ctx.words))


_LAMBDA = cst.Lambda(cst.Parameters(), cst.Name("w"))


def _atom(node: cst.BaseExpression) -> cst.BaseExpression:
    if syntax.precedence(node) < syntax.ATOM:
        return syntax.parenthesized(node)  # type: ignore[return-value]
    return node


def _assign(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign:
    if not isinstance(value, cst.Tuple):
        value = syntax.unparenthesized(value)
    return cst.Assign([cst.AssignTarget(target)], value)  # type: ignore[arg-type]


def current(rw: Rewriter, target: cst.BaseExpression) -> cst.BaseExpression:
    """The present value of a target, in torch's layout."""
    if holds_parameter(rw.ctx, target):
        return dereferenced(target)
    made: cst.BaseExpression = rw.visit(target)
    return made

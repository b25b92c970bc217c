"""Parameters that a loop goes through, where the axes of one count: Flax keeps the kernel of a Linear transposed.

What is done element by element, over all elements or with another walk's parameters is the same in both layouts.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax, views
from migrator.assignments import BINDING, bound_by
from migrator.convert.context import Context, Failure
from migrator.convert.laid_out import is_laid_out
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.construction import CONTAINERS
from rules import definitions

_ELEMENTWISE = frozenset(
    "data grad detach clone contiguous to type float double half bfloat16 int long bool cpu cuda requires_grad_ "
    "abs neg negative exp expm1 log log1p log2 log10 sqrt rsqrt square sign sgn sin cos tan tanh sigmoid relu erf "
    "floor ceil round trunc frac reciprocal pow add sub subtract mul multiply div divide true_divide floor_divide "
    "remainder fmod lerp addcmul addcdiv clamp clip clamp_min clamp_max where masked_fill nan_to_num maximum minimum "
    "eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isinf isfinite isclose fill zero copy "
    "bernoulli normal uniform exponential random zeros_like ones_like empty_like full_like rand_like randn_like "
    "new_zeros new_ones requires_grad retain_grad register_hook detach_ threshold softplus".split()
)
_REDUCTIONS = frozenset(
    "sum mean std var norm max min amax amin prod any all median count_nonzero logsumexp allclose equal dist "
    "nansum nanmean numel nelement dim ndimension ndim element_size item dtype device is_cuda is_floating_point is_complex "
    "is_leaf layout storage histc unique nuclear_norm vector_norm".split()
)
"""Over all elements, as long as no dimension is named."""
_ORDER_FREE = _REDUCTIONS | {"kthvalue", "quantile", "topk", "sort"}
"""The same for elements in any order, the indices left aside."""
_FLAT = ("view", "reshape", "flatten", "ravel")
_MADE = frozenset(
    "zeros ones empty full rand randn normal zeros_like ones_like new_zeros new_ones len".split()
)
_BY_AXIS = ("kaiming_", "sparse_", "_calculate_")
"""What initialises, or counts, that goes by a weight's rows or columns; the others are as likely in either layout."""
_HOLDS_LINEAR = tuple(
    f"torch.nn.{name}"
    for name in ("Linear", "Lazy", "Transformer", "MultiheadAttention", "AdaptiveLogSoftmax")
)
ADVICE = (
    "ask the layers for it: `for m in model.modules(): if isinstance(m, nn.Linear): … m.weight …`"
)


def check(ctx: Context, walk: cst.Call) -> None:
    """Raise a Failure where what a function does to the parameters it walks rests on their axes."""
    assert isinstance(walk.func, cst.Attribute)
    if as_in_torch(ctx, ctx.kind(walk.func.value)):
        return
    body = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    if body not in ctx.by_axes:
        ctx.by_axes[body] = next(_by_axes(ctx, body), None)
    found = ctx.by_axes[body]
    if found is not None:
        name, node = found
        what = f"the axes of `{name}` count here, and Flax keeps the weight of a Linear transposed"
        raise Failure(node, "API006", what, ADVICE)


def _by_axes(ctx: Context, body: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """The names of walked parameters, with what goes by their axes."""
    names = _walked(ctx, body)
    for node in ctx.facts.tree.within(body, cst.Name) if names else ():
        if node.value not in names:
            continue
        kind = ctx.kind(node)
        if isinstance(kind, k.Tensor) and (kind.role == "param" or names[node.value]):
            found = offence(ctx, node)
            if found is not None and not _other_rank(ctx, node):
                yield node.value, found
    yield from _entries_by_axes(ctx, body)


def _entries_by_axes(ctx: Context, body: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """Entries of lists and dicts of parameters: ``dict(m.named_parameters())["fc.weight"].shape``."""
    from migrator.convert.passes.listed_parameters import is_collected

    for node in ctx.facts.tree.within(body, cst.Subscript, cst.Call):
        kind = ctx.kind(node)
        if not isinstance(kind, k.Tensor):
            continue
        if kind.role != "param":
            if isinstance(node, cst.Subscript) and _is_made_of_walked(ctx, node):
                found = offence(ctx, node)
                if found is not None and not _other_rank(ctx, node):
                    yield syntax.code(node), found
            continue
        holder: cst.CSTNode = node
        if isinstance(node, cst.Subscript):
            holder = node.value
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            holder = node.func.value
        collected = isinstance(holder, (cst.Name, cst.Call)) and is_collected(ctx, holder)
        if collected or reads_state(holder):
            found = offence(ctx, node)
            if found is not None and not _other_rank(ctx, node):
                yield syntax.code(node), found


def _is_made_of_walked(ctx: Context, node: cst.Subscript) -> bool:
    """``z[name]`` of ``z = {n: torch.zeros_like(p) for n, p in m.named_parameters()}``, laid out as the parameter is."""
    from migrator.convert.passes.listed_parameters import given, is_collected, is_walk

    if not isinstance(node.value, cst.Name) or not isinstance(node.slice[0].slice, cst.Index):
        return False
    made = given(ctx, node.value)
    if not isinstance(made, (cst.ListComp, cst.DictComp)):
        return False
    walk = made.for_in.iter
    value = made.elt if isinstance(made, cst.ListComp) else made.value
    while isinstance(value, (cst.Attribute, cst.Call, cst.BinaryOperation)):
        if isinstance(value, cst.BinaryOperation):
            value = value.left
            continue
        func = value.func if isinstance(value, cst.Call) else value
        if not isinstance(func, cst.Attribute) or func.attr.value.rstrip("_") not in _ELEMENTWISE:
            return False
        call = value if isinstance(value, cst.Call) else None
        torchs = call is not None and (ctx.facts.callee(call) or "").startswith("torch.")
        value = call.args[0].value if torchs and call is not None and call.args else func.value
    if isinstance(value, cst.Subscript) and isinstance(value.value, cst.Name):
        return is_collected(ctx, value.value)
    named = isinstance(value, cst.Name) and value.value in syntax.names(made.for_in.target)
    asked = walk.func if isinstance(walk, cst.Call) else None
    if named and isinstance(asked, cst.Attribute) and asked.attr.value in ("items", "values"):
        return isinstance(asked.value, cst.Name) and is_collected(ctx, asked.value)
    return named and (
        is_walk(ctx, walk) or (isinstance(walk, cst.Name) and is_collected(ctx, walk))
    )


def as_in_torch(ctx: Context, kind: k.Kind, seen: frozenset[str] = frozenset()) -> bool:
    """Whether all parameters of a module certainly stand in Flax as they do in torch: it has no Linear."""
    if not isinstance(kind, k.Module) or kind.cls in seen:
        return isinstance(kind, k.Module)
    info = ctx.facts.classes.get(kind.cls)
    if info is None:
        if kind.cls in CONTAINERS:
            return kind.item is not None and as_in_torch(ctx, kind.item, seen)
        return bool(definitions.layers(kind.cls)) and not kind.cls.startswith(_HOLDS_LINEAR)
    base = info.torch_base or ""
    if base not in ("torch.nn.Module", *CONTAINERS):
        return base.startswith("torch.nn.") and as_in_torch(ctx, k.Module(base))
    seen |= {kind.cls}
    own = (
        len(info.lineage()) == 1 and info.settled is None
    )  # what another file's holds is not known
    return own and all(as_in_torch(ctx, one, seen) for one in _children(ctx, info))


def _children(ctx: Context, info: ClassInfo) -> Iterator[k.Kind]:
    """The kinds of all modules that a class makes or is given, Unknown for what may be one."""
    for call in ctx.facts.tree.within(info.node.body, cst.Call):
        made, name = ctx.kind(call), call.func
        if isinstance(made, k.Module) and made.cls not in CONTAINERS:
            yield made
        elif isinstance(made, k.Unknown) and ctx.facts.callee(call) is None:
            yield from _chosen(ctx, info, name) or [made]
        elif isinstance(name, cst.Attribute) and ctx.is_self(name.value):
            held = info.attributes.get(name.attr.value)
            if held is not None and not isinstance(held, (k.Module, k.Function)):
                if not _is_made_of_chosen(ctx, info, name.attr.value):
                    yield held


def _chosen(ctx: Context, info: ClassInfo, name: cst.BaseExpression) -> list[k.Kind]:
    """The layers that ``norm = {"batch": nn.BatchNorm1d, …}.get(kind)`` may make; none where that is not told."""
    if not isinstance(name, cst.Name):
        return []
    found: list[k.Kind] = []
    for one in ctx.facts.tree.within(info.node.body, *BINDING):
        if name.value not in syntax.names(bound_by(one)):
            continue
        line = ctx.facts.tree.parent(one) if isinstance(one, cst.AssignTarget) else None
        value = line.value if isinstance(line, cst.Assign) else None
        table: cst.CSTNode | None = None
        if isinstance(value, cst.Subscript):
            table = value.value
        elif isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            asks = value.func.attr.value == "get" and all(
                ctx.facts.kind(a.value) == k.NONE for a in value.args[1:]
            )
            table = value.func.value if asks else None
        kind = ctx.facts.kind(table) if isinstance(table, cst.Dict) else None
        entries = kind.items if isinstance(kind, k.Mapping) else ()
        classes = [entry for _, entry in entries if isinstance(entry, k.Class) and entry.name]
        written = table.elements if isinstance(table, cst.Dict) else ()
        if not classes or len(classes) != len(written):
            return []
        found += [k.Module(entry.name) for entry in classes]
    return found


def _is_made_of_chosen(ctx: Context, info: ClassInfo, attribute: str) -> bool:
    """Whether an attribute is nothing but such a layer, which is met where it is made."""
    values = [
        line.value
        for line in ctx.facts.tree.within(info.node.body, cst.Assign)
        for one in line.targets
        if isinstance(one.target, cst.Attribute) and one.target.attr.value == attribute
    ]
    return bool(values) and all(
        isinstance(one, cst.Call) and bool(_chosen(ctx, info, one.func)) for one in values
    )


def _walked(ctx: Context, body: cst.CSTNode) -> dict[str, bool]:
    """The names that loops give parameters, and the other names of those (True)."""
    found: dict[str, bool] = {}
    for node in ctx.facts.tree.within(body, cst.For, cst.CompFor):
        if not isinstance(node.iter, (cst.List, cst.Tuple)):
            found.update((name, False) for name in syntax.names(node.target))
    for node in ctx.facts.tree.within(body, cst.Assign) if found else ():
        if isinstance(node.targets[0].target, cst.Name):
            name, value = node.targets[0].target.value, node.value
            while isinstance(value, (cst.Attribute, cst.Call)):
                value = value.func if isinstance(value, cst.Call) else value.value
            if isinstance(value, cst.Name) and value.value in found and name not in found:
                kind = ctx.kind(value)
                if found[value.value] or (isinstance(kind, k.Tensor) and kind.role == "param"):
                    found[name] = True
    return found


def offence(ctx: Context, node: cst.CSTNode) -> cst.CSTNode | None:
    """Where an expression of a parameter is used by its axes; None where it is not."""
    while True:
        parent = _parent(ctx, node)
        if isinstance(parent, cst.Attribute):
            outer = _parent(ctx, parent)
            called = isinstance(outer, cst.Call) and outer.func is parent
            after: cst.CSTNode = outer if called and isinstance(outer, cst.Call) else parent
            word = parent.attr.value.rstrip("_")
            whole = word == "copy"
            if called and any(_is_laid_out(ctx, one.value, whole) for one in outer.args):  # type: ignore[attr-defined]
                return after
            if word in _ELEMENTWISE:
                node = after
                continue
            if word in ("shape", "size"):
                return None if _is_form(ctx, after) else after
            if word in _FLAT and _is_flattened(outer):
                return None if _in_any_order(ctx, after) else after
            if word in _REDUCTIONS:
                return after if called and _names_axis(outer, 0, word) else None
            return after if definitions.ops(f"Tensor.{word}") else None
        if isinstance(parent, cst.Arg):
            return _as_argument(ctx, parent)
        if isinstance(parent, cst.BinaryOperation):
            if isinstance(parent.operator, cst.MatrixMultiply):
                return parent
            if _is_laid_out(ctx, parent.right if parent.left is node else parent.left):
                return parent
            node = parent
        elif isinstance(parent, (cst.Comparison, cst.UnaryOperation)):
            node = parent
        elif isinstance(parent, cst.ComparisonTarget):
            node = _parent(ctx, parent)
        elif isinstance(parent, cst.AugAssign) and parent.target is node:
            return parent if _is_laid_out(ctx, parent.value) else None
        elif isinstance(parent, cst.AssignTarget):
            whole = isinstance(parent.target, cst.Attribute)
            if whole and parent.target.attr.value == "requires_grad":  # type: ignore[attr-defined]
                return None
            return parent if _is_laid_out(ctx, _parent(ctx, parent).value, whole) else None  # type: ignore[attr-defined]
        elif isinstance(parent, cst.Subscript) and parent.value is node:
            index = syntax.code(parent).removeprefix(syntax.code(parent.value))[1:]
            masks = any(isinstance(ctx.kind(n), k.Tensor) for n in _indices(parent))
            return None if masks or index in ("...]", ":]") else parent
        else:
            return None


def _is_laid_out(ctx: Context, node: cst.BaseExpression, whole: bool = False) -> bool:
    return is_laid_out(ctx, node, ctx.frame.info if ctx.frame is not None else None, whole)


def _as_argument(ctx: Context, item: cst.Arg) -> cst.CSTNode | None:
    """Whether a torch function that is given a parameter goes by its axes."""
    call = _parent(ctx, item)
    name = ctx.facts.callee(call) if isinstance(call, cst.Call) else None
    own = ctx.facts.names.get(name or "")
    if isinstance(call, cst.Call) and (_registers(call) or name == "builtins.setattr"):
        return call  # as a buffer or parameter of its own, whose shape is torch's
    if isinstance(own, FunctionInfo) and isinstance(call, cst.Call):
        return call if _asks_axes(ctx, own, call, item) else None
    if name is None or not name.startswith(("torch.", "Tensor.")) or not isinstance(call, cst.Call):
        return None
    word = name.rpartition(".")[2]
    if name.startswith("torch.nn.init."):
        return call if word.startswith(_BY_AXIS) and walked_module(ctx, call) is None else None
    word = word.rstrip("_")
    if name.startswith("Tensor."):
        by_axis = word in ("matmul", "mm", "bmm", "mv", "addmm", "view", "reshape", "einsum")
        return call if by_axis else None
    if word in _ELEMENTWISE:
        return offence(ctx, call)
    if word in _REDUCTIONS:
        return call if _names_axis(call, 1, word) else None
    if word == "Parameter":
        return offence(ctx, call)
    if word in ("cat", "stack", "concat", "is_tensor", "is_grad_enabled", "save"):
        return None
    return call if definitions.ops(name) else None


def _registers(call: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name in ("register_buffer", "register_parameter")


def _asks_axes(ctx: Context, info: FunctionInfo, call: cst.Call, item: cst.Arg) -> bool:
    """Whether a function of the file goes by the axes of a parameter that it is handed."""
    from migrator.convert.alias import bound_arguments

    names = {name for name, one in bound_arguments(call, info) if one is item}
    if info.settled is not None or not names or (info, *names) in ctx.axes_asked:
        return False
    ctx.axes_asked.add((info, *names))
    try:
        for node in ctx.facts.tree.within(info.node.body, cst.Name):
            if node.value in names and _is_variable_name(ctx, node):
                if offence(ctx, node) is not None and not _other_rank(ctx, node):
                    return True
    finally:
        ctx.axes_asked.discard((info, *names))
    return False


def _is_variable_name(ctx: Context, node: cst.Name) -> bool:
    parent = _parent(ctx, node)
    if isinstance(parent, cst.Attribute):
        return parent.value is node
    return not (isinstance(parent, cst.Arg) and parent.keyword is node)


def walked_module(
    ctx: Context, call: cst.Call, target: cst.BaseExpression | None = None
) -> cst.BaseExpression | None:
    """The module through whose parameters a loop goes that initialises one by its axes; None for anything else.

    ``for name, p in self.named_parameters(): … nn.init.kaiming_normal_(p)``.

    Args:
      target: what is initialised, where it is not the first argument as it stands: ``torch.as_tensor(p)``."""
    name = (ctx.facts.callee(call) or "").removeprefix("torch.nn.init.")
    given = views.undressed(call.args[0].value) if call.args and target is None else target
    if not name.startswith(_BY_AXIS) or not isinstance(_parent(ctx, call), cst.Expr):
        return None
    if isinstance(given, cst.Subscript) and reads_state(given.value):
        return given.value.func.value  # type: ignore[attr-defined]
    if not isinstance(given, cst.Name):
        return None
    for loop in reversed(ctx.facts.tree.around(call)):
        if not isinstance(loop, cst.For) or given.value not in syntax.names(loop.target):
            continue
        walk = loop.iter
        if not isinstance(walk, cst.Call) or not isinstance(walk.func, cst.Attribute):
            return None
        walks = walk.func.attr.value in ("parameters", "named_parameters") and not walk.args
        if walk.func.attr.value in ("items", "values") and reads_state(walk.func.value):
            walks, table = True, walk.func.value  # self.state_dict().items()
            assert isinstance(table, cst.Call)
            walk = table
        if not walks or not _only_meaning(ctx, loop, given.value):
            return None
        return walk.func.value if isinstance(walk.func, cst.Attribute) else None
    return None


def reads_state(node: cst.CSTNode) -> bool:
    """``self.state_dict()``."""
    func = node.func if isinstance(node, cst.Call) and not node.args else None
    if not isinstance(func, cst.Attribute) or func.attr.value != "state_dict":
        return False
    return isinstance(func.value, cst.Name) and func.value.value == "self"


def _only_meaning(ctx: Context, loop: cst.For, name: str) -> bool:
    """Whether nothing in a loop gives its variable another meaning."""
    targets = ctx.facts.tree.within(loop.body, cst.AssignTarget, cst.For, cst.AugAssign)
    return not any(name in syntax.names(one.target) for one in targets)


def _names_axis(call: cst.CSTNode | None, own: int, word: str) -> bool:
    """Whether a reduction is given more than what it reduces, and the order of a norm."""
    if not isinstance(call, cst.Call):
        return False
    keywords = {item.keyword.value for item in call.args if item.keyword is not None}
    positional = sum(item.keyword is None for item in call.args) - own
    free = 1 if word in ("norm", "allclose", "equal", "dist", "to") else 0
    return bool(keywords & {"dim", "axis", "keepdim"}) or positional > free


def _is_flattened(call: cst.CSTNode | None) -> bool:
    text = [syntax.code(item.value) for item in call.args] if isinstance(call, cst.Call) else ["?"]
    return text in ([], ["-1"], ["0"])


def _in_any_order(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether the elements, once in a row, are only asked for what is the same in any order."""
    while True:
        parent = _parent(ctx, node)
        if isinstance(parent, cst.Arg):
            name = ctx.facts.callee(_parent(ctx, parent)) or ""  # type: ignore[arg-type]
            return name.startswith("torch.") and name.rpartition(".")[2] in _ORDER_FREE
        if not isinstance(parent, cst.Attribute):
            return False
        word = parent.attr.value.rstrip("_")
        if word in _ORDER_FREE or word in ("size", "shape"):
            return True
        if word not in _ELEMENTWISE:
            return False
        outer = _parent(ctx, parent)
        node = outer if isinstance(outer, cst.Call) and outer.func is parent else parent


def _is_form(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a shape is compared, counted, or the shape of a new tensor."""
    parent = _parent(ctx, node)
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        return True
    if isinstance(parent, cst.Attribute):
        return parent.attr.value == "numel"
    if isinstance(parent, cst.IfExp) and parent.test is not node:
        return _is_form(ctx, parent)
    if isinstance(parent, cst.BinaryOperation):  # ``p.size() + (2,)``
        further = isinstance(parent.operator, cst.Add) and isinstance(parent.right, cst.Tuple)
        return further and parent.left is node and _is_form(ctx, parent)
    if isinstance(parent, cst.Arg):
        call = _parent(ctx, parent)
        if isinstance(call, cst.Call) and ctx.facts.callee(call) == "functools.reduce":
            return _multiplies(ctx, call.args[0].value)
        func = call.func if isinstance(call, cst.Call) else None
        word = func.attr if isinstance(func, cst.Attribute) else func
        if isinstance(word, cst.Name) and word.value in ("list", "tuple"):
            return _is_form(ctx, call)
        return isinstance(word, cst.Name) and word.value in (*_MADE, "prod")
    return False


def _multiplies(ctx: Context, function: cst.BaseExpression) -> bool:
    """``operator.mul``, ``lambda a, b: a * b``: the order is all one to it."""
    match function:
        case cst.Lambda(
            cst.Parameters([cst.Param(cst.Name(one)), cst.Param(cst.Name(other))]),
            cst.BinaryOperation(cst.Name(left), cst.Multiply(), cst.Name(right)),
        ):
            return {one, other} == {left, right}
    return ctx.facts.qualified_name(function) == "operator.mul" or (
        syntax.code(function).strip() == "operator.mul" and "operator" in ctx.words
    )


def _indices(node: cst.Subscript) -> Iterator[cst.BaseExpression]:
    for element in node.slice:
        if isinstance(element.slice, cst.Index):
            yield element.slice.value


_ONE_SIDED = {
    cst.Equal: lambda n: n != 2,
    cst.GreaterThan: lambda n: n >= 2,
    cst.GreaterThanEqual: lambda n: n >= 3,
    cst.LessThan: lambda n: n <= 2,
    cst.LessThanEqual: lambda n: n <= 1,
}


def _other_rank(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a test around a use keeps matrices out: ``if p.dim() == 4:``."""
    inner: cst.CSTNode = node
    for outer in ctx.facts.tree.around(node)[::-1]:
        if isinstance(outer, cst.If) and inner is outer.body and _no_matrix(outer.test):
            return True
        if isinstance(outer, cst.IfExp) and inner is outer.body and _no_matrix(outer.test):
            return True
        inner = outer
    return False


def _no_matrix(test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _no_matrix(test.left) or _no_matrix(test.right)
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    one, asked = test.comparisons[0], syntax.code(test.left)
    if not asked.endswith((".dim()", ".ndim", ".shape)", ".size())")):
        return False
    if not isinstance(one.comparator, cst.Integer):
        return False
    return any(
        isinstance(one.operator, cls) and keeps(int(one.comparator.value))
        for cls, keeps in _ONE_SIDED.items()
    )


def _parent(ctx: Context, node: cst.CSTNode) -> cst.CSTNode:
    around = ctx.facts.tree.around(node)
    return around[-1] if around else node

"""An output layer that shares an embedding's matrix: Flax stores the two transposed to each other.

``self.head.weight = self.embed.weight`` with a Linear head without bias becomes ``self.head = self.embed`` and
``self.head(x)`` becomes ``self.head.attend(x)``: one object under two names, both keys in the state_dict.

A head with a bias, and one that is tied in a branch only, becomes ``self.head = TiedLinear(self.embed.embedding, self.head)``,
a layer with the embedding's parameter for its own; so does one that a constructor is handed (``weight``) the parameter of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alike import alike
from migrator.convert.context import Context, Failure
from migrator.convert.earlier_walks import earlier
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter
from migrator.convert.tied_walks import told_apart, unlike
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.tied import kept_whole
from rules.definitions import module_file

_REASON = "a Linear and an Embedding share one matrix in a way that cannot be kept"


def tied_heads(ctx: Context, info: ClassInfo) -> dict[str, cst.Attribute]:
    """Attribute name of a tied Linear head → the ``embedding.weight`` expression, for one class."""
    if info.name in ctx.tied_heads:
        return ctx.tied_heads[info.name]
    found: dict[str, cst.Attribute] = {}
    if info.settled is not None:
        made = ((head, syntax.parse(weight)) for head, weight in info.settled.tied)
        found = {head: weight for head, weight in made if isinstance(weight, cst.Attribute)}
        ctx.tied_heads[info.name] = found
        return found
    for small in _always_run(info):
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            pair = _pair(ctx, small.targets[0].target, small.value)
            if pair is not None and not _gains_bias(ctx, info, pair[0]):
                if _only_runs(ctx, info, pair[0]):
                    found[pair[0]] = pair[1]
    ctx.tied_heads[info.name] = found
    return found


def _gains_bias(ctx: Context, info: ClassInfo, head: str) -> bool:
    """Whether the class gives a Linear that was made without a bias one: ``self.head.bias = self.bias``."""
    nodes = ctx.facts.tree.within(info.node, cst.AssignTarget)
    return any(syntax.code(one.target) == f"self.{head}.bias" for one in nodes)


def _only_runs(ctx: Context, info: ClassInfo, head: str) -> bool:
    """Whether a class makes a Linear, ties it and calls it, and asks nothing else of it, such as to be initialised."""
    tree = ctx.facts.tree
    for line in tree.within(info.node, cst.Assign):
        given = [syntax.code(one.target) for one in line.targets]
        if f"self.{head}" in given and (len(given) > 1 or not isinstance(line.value, cst.Call)):
            return False
    for node in tree.within(info.node, cst.Attribute):
        if node.attr.value != head or syntax.code(node.value) != "self":
            continue
        above = tree.parent(node)
        if isinstance(above, cst.Attribute) and above.attr.value == "weight":
            if not isinstance(tree.parent(above), (cst.AssignTarget, cst.Assign)):
                return False
        elif not isinstance(above, cst.AssignTarget):
            if not (isinstance(above, cst.Call) and above.func is node):
                return False
    return True


def _always_run(info: ClassInfo) -> Iterator[cst.CSTNode]:
    """The statements that a constructor runs in any case, with those of ``self.tie_weights()``."""
    init = info.methods.get("__init__")
    for small in _top_level(init):
        yield small
        call = small.value if isinstance(small, cst.Expr) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and not call.args:
            if isinstance(call.func.value, cst.Name) and call.func.value.value == "self":
                yield from _top_level(info.methods.get(call.func.attr.value))


def _top_level(method: FunctionInfo | None) -> Iterator[cst.CSTNode]:
    for statement in method.node.body.body if method is not None else ():
        if isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body


def _pair(
    ctx: Context, target: cst.CSTNode, value: cst.CSTNode
) -> tuple[str, cst.Attribute] | None:
    for one, other in ((target, value), (value, target)):
        if not (type(one) is cst.Attribute and type(other) is cst.Attribute):
            continue
        if one.attr.value != "weight" or other.attr.value != "weight":
            continue
        head, embed = ctx.kind(one.value), ctx.kind(other.value)
        if (
            isinstance(head, k.Module)
            and head.cls == "torch.nn.Linear"
            and isinstance(embed, k.Module)
            and embed.cls == "torch.nn.Embedding"
            and isinstance(one.value, cst.Attribute)
            and isinstance(one.value.value, cst.Name)
            and ("bias", False) in head.args
        ):
            return one.value.attr.value, other
    return None


def tie(rw: Rewriter, node: cst.Assign, target: cst.Attribute, value: cst.Attribute) -> Any:
    """Convert the statement that ties."""
    owner = rw.ctx.owner
    if owner is None:
        raise Failure(node, "API009", _REASON, "")
    heads = tied_heads(rw.ctx, owner)
    pair = _pair(rw.ctx, target, value)
    if (target.attr.value == value.attr.value == "weight") and _head(rw.ctx, target) is not None:
        if pair is None or pair[0] not in heads:
            return _replaced(rw, node, target, value)
    if value.attr.value == "weight" and _is_last_read(rw.ctx, target):
        return _replaced(rw, node, target, value)
    if value.attr.value == target.attr.value == "weight" and _is_inner(rw.ctx, target):
        return _replaced(rw, node, target, value)
    if pair is None or pair[0] not in heads:
        raise Failure(
            node,
            "API009",
            _REASON,
            "write `self.head.weight = self.embed.weight` of the class's own layers, where the module is built",
        )
    for base in owner.lineage()[1:]:
        if any(m.settled is not None and pair[0] in m.settled.asks for m in base.methods.values()):
            what = f"{base.short} of another file calls `self.{pair[0]}`, a Linear that is an embedding's here"
            raise Failure(node, "API009", what, f"define what calls it in {owner.short}")
    counted = told_apart(rw.ctx, owner)
    if counted is not None:
        what = f"a Linear and an Embedding that share one matrix are one layer in Flax, and line {counted} goes by how many there are"
        raise Failure(node, "API009", what, "name the layers that are meant one by one")
    line = unlike(rw.ctx, owner, node, *pair)
    if line is not None:  # of the first values alone: whoever loads a state_dict has the same
        what = (
            "a Linear and an Embedding share one matrix, whose first values are the embedding's here: line "
            f"{line} may give the Linear others, which stay in torch"
        )
        advice = "tie them after that, draw both alike, or load torch's weights"
        rw.ctx.report(node, "API009", what, advice, severity="warning", blocks=False)
    embed = rw.visit(pair[1].value)
    head = cst.Attribute(cst.Name("self"), cst.Name(pair[0]))
    return syntax.changed(node, targets=[syntax.changed(node.targets[0], target=head)], value=embed)


def _head(ctx: Context, node: cst.CSTNode) -> str | None:
    """``head`` for ``self.head.weight`` of a Linear that a class of the file has, and that it may tie."""
    layer = node.value if type(node) is cst.Attribute and node.attr.value == "weight" else None
    if type(layer) is not cst.Attribute or not ctx.is_self(layer.value) or ctx.owner is None:
        return None
    return layer.attr.value if is_linear(ctx.kind(layer)) else None


def is_linear(kind: k.Kind) -> bool:
    """Whether a kind is that of a Linear of torch."""
    return isinstance(kind, k.Module) and kind.cls == "torch.nn.Linear"


def _is_last_read(ctx: Context, node: cst.Attribute) -> bool:
    """Whether ``self.out[-1].weight`` is that of a Linear in a container which nothing else in the file indexes."""
    at = node.value
    if node.attr.value != "weight" or not isinstance(at, cst.Subscript):
        return False
    held, kind = at.value, ctx.kind(at)
    if not isinstance(held, cst.Attribute) or not ctx.is_self(held.value):
        return False
    if not is_linear(kind):
        return False
    return not any(
        one is not at
        and isinstance(one.value, cst.Attribute)
        and one.value.attr.value == held.attr.value
        for one in ctx.source.index.of_type(cst.Subscript)
    )


def _is_inner(ctx: Context, node: cst.Attribute) -> bool:
    """Whether ``self.cls.predictions.decoder.weight`` is that of a Linear of a part, which does nothing but call it."""
    head = node.value
    if not isinstance(head, cst.Attribute) or not is_linear(ctx.kind(head)):
        return False
    if ctx.is_self(head.value):
        return False  # its own
    above, holder = head.value, ctx.kind(head.value)
    while isinstance(above, cst.Attribute) and not ctx.is_self(above):
        above = above.value
    info = ctx.facts.classes.get(holder.cls) if isinstance(holder, k.Module) else None
    if not ctx.is_self(above) or info is None or info.settled is not None:
        return False
    name = head.attr.value
    if _is_held_elsewhere(ctx, info, cst.Attribute(cst.Name("self"), head.attr)):
        return False
    read = [
        one
        for one in ctx.source.index.reading(ctx.source.tree, "weight")
        if isinstance(one.value, cst.Attribute) and one.value.attr.value == name
    ]
    return all(one is node or syntax.code(one) == syntax.code(node) for one in read)


def _replaced(rw: Rewriter, node: cst.Assign, target: cst.Attribute, value: cst.Attribute) -> Any:
    """``self.head = TiedLinear(self.embed.embedding, self.head)``."""
    if not _is_embedding(rw.ctx, value.value):
        raise Failure(node, "API009", _REASON, "tie them where the module is built")
    return with_weight(rw, node, target, targets.variable_reference(rw, value)[0])


def with_weight(
    rw: Rewriter, node: cst.Assign, target: cst.Attribute, weight: cst.BaseExpression
) -> Any:
    """``self.head = TiedLinear(weight, self.head)`` for ``self.head.weight = weight``, a parameter laid out as in torch."""
    ctx = rw.ctx
    assert ctx.owner is not None
    if not ctx.in_init:
        raise Failure(node, "API009", _REASON, "tie them where the module is built")
    asked = _asked_for(ctx, ctx.owner, target.value, node)
    if asked is not None:
        what = f"{_REASON}: {asked}, and the tied one is no Linear any more"
        advice = "write `self.head.weight = self.embed.weight` of a Linear of the class's own, without bias, at the top level of __init__"
        raise Failure(node, "API009", what, advice)
    if _is_held_elsewhere(ctx, ctx.owner, target.value):
        raise Failure(
            node, "API009", f"{_REASON}: the Linear is held elsewhere, too", "tie it first"
        )
    name = ctx.helpers.need(module_file("rules.compat.tied"), "TiedLinear")
    head = target.value if type(target.value) is cst.Attribute else rw.visit(target.value)
    args = [cst.Arg(weight), cst.Arg(rw.visit(target.value))]
    made = syntax.with_args(cst.Call(cst.Name(name)), args)
    return syntax.changed(node, targets=[syntax.changed(node.targets[0], target=head)], value=made)


def _is_held_elsewhere(ctx: Context, info: ClassInfo, head: cst.BaseExpression) -> bool:
    """Whether something else may hold the layer: ``nn.Sequential(self.drop, self.head)``."""
    if not isinstance(head, cst.Attribute):
        return False
    tree, path = ctx.facts.tree, syntax.code(head)
    for line in tree.within(info.node, cst.Assign):
        given = [syntax.code(one.target) for one in line.targets]
        if path in given and (len(given) > 1 or not isinstance(line.value, cst.Call)):
            if not _comes_later(ctx, info, line):
                return True  # self.head = head, which has another name
    for node in tree.within(info.node, cst.Attribute):
        if node is not head and node.attr.value == head.attr.value and syntax.code(node) == path:
            above = tree.parent(node)
            called = isinstance(above, cst.Call) and above.func is node
            if called or (isinstance(above, cst.Return) and _comes_later(ctx, info, above)):
                continue
            if not isinstance(above, (cst.AssignTarget, cst.Attribute, cst.Comparison)):
                return True
    return False


def _comes_later(ctx: Context, info: ClassInfo, node: cst.CSTNode) -> bool:
    """Whether a statement stands in a method that the constructor does not ask for: it gives what is there then."""
    method = next(
        n for n in reversed(ctx.facts.tree.around(node)) if isinstance(n, cst.FunctionDef)
    )
    init = info.methods.get("__init__")
    if init is None or init.node is method:
        return False
    return not ctx.facts.tree.reading(init.node, method.name.value)


_ASKING = re.compile(r"\.apply\(|modules\(\)|children\(\)|(?<![.\w])type\(")
"""Where layers may be gone through or asked for their classes; ``x.type(…)`` is of a tensor."""
_PLAIN = frozenset("int float bool str bytes tuple list dict set type".split())


def _asked_for(
    ctx: Context, info: ClassInfo, head: cst.BaseExpression, tie: cst.CSTNode
) -> str | None:
    """Where a file or class may go through the layers by their classes; None where nothing does."""
    if any(one.settled is not None and not _is_plain_base(one) for one in info.lineage()):
        return "the class inherits from another, which may ask for layers by their class"
    kind = ctx.kind(head)
    plain = isinstance(kind, k.Module) and ("bias", False) in kind.args
    known = alike(ctx) if plain and "isinstance(" in ctx.source.text else []
    known += earlier(ctx, info, tie)
    calls = ctx.source.index.of_type(cst.Call)
    known += [one for one in calls if _is_gradient(ctx, one) or _is_type_told(ctx, one)]
    passed = {ctx.source.span(one).line for one in known if isinstance(one, cst.Call)}
    for number, line in enumerate(ctx.source.text.split("\n"), 1):
        found = _ASKING.search(line)
        if found is not None and number not in passed:
            return f"line {number} (`{found[0].strip('(')}`) may ask for layers by their class"
    for call in ctx.source.index.of_type(cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value == "isinstance":
            if any(ctx.facts.tree.holds(one, call) for one in known):
                continue
            if len(call.args) != 2 or not _is_no_linear(ctx, call.args[1].value):
                return f"line {ctx.source.span(call).line} asks for layers by their class"
    return None


def _is_type_told(ctx: Context, call: cst.Call) -> bool:
    """``type(x) is not tuple``, and the type in the text of an error: no layer is told from another by it."""
    if syntax.code(call.func) != "type":
        return False
    around = ctx.source.index.around(call)
    if any(isinstance(one, cst.Raise) for one in around):
        return True
    above = around[-1]
    if not isinstance(above, cst.Comparison) or above.left is not call:
        return False
    return all(
        isinstance(one.comparator, cst.Name) and one.comparator.value in _PLAIN
        for one in above.comparisons
    )


def _is_gradient(ctx: Context, call: cst.Call) -> bool:
    """``Gelu.apply(x)`` of an autograd function, which goes through no layers."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "apply":
        return False
    kind = ctx.kind(func.value)
    info = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    return info is not None and info.gradient


def _is_plain_base(info: ClassInfo) -> bool:
    """Whether a base is one that stands in for a library's, of which it is known what it asks."""
    return info.name.partition(".")[0] == "transformers_flax" or ".transformers_flax." in info.name


def _is_no_linear(ctx: Context, asked: cst.BaseExpression) -> bool:
    """Whether a Linear is none of the classes that ``isinstance`` asks for."""
    kinds = [e.value for e in asked.elements] if isinstance(asked, cst.Tuple) else [asked]
    return all(
        (isinstance(one, cst.Name) and one.value in _PLAIN)
        or _is_own(ctx, one)
        or ctx.facts.qualified_name(one) in ("torch.Tensor", "torch.Size", "torch.nn.Parameter")
        for one in kinds
    )


def _is_own(ctx: Context, node: cst.BaseExpression) -> bool:
    """A class of the project that no Linear derives from."""
    kind = ctx.kind(node)
    info = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    return info is not None


def loosely_tied(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether ``m.head`` is a Linear that its class may tie to an embedding, in a branch or with its bias."""
    if type(node) is not cst.Attribute:
        return False
    kind = ctx.kind(node.value)
    info = ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
    every = [] if info is None else info.lineage()
    return any(node.attr.value in loose_heads(ctx, one) for one in every)


def loose_heads(ctx: Context, info: ClassInfo) -> frozenset[str]:
    """The Linears that a class ties to an embedding in a branch, or with their bias."""
    if info.settled is not None:
        return info.settled.loose
    if info.name not in ctx.loose_heads:
        strict = tied_heads(ctx, info)
        found = {
            target.value.attr.value
            for method in info.methods.values()
            for target, value in _assigned(ctx, method)
            if target.attr.value == "weight" and isinstance(target.value, cst.Attribute)
            if (isinstance(value, cst.Name) and is_linear(ctx.kind(target.value)))
            or (
                isinstance(value, cst.Attribute)
                and value.attr.value == "weight"
                and _is_embedding(ctx, value.value)
            )
        }
        ctx.loose_heads[info.name] = frozenset(found - set(strict))
    return ctx.loose_heads[info.name]


def _assigned(
    ctx: Context, method: FunctionInfo
) -> Iterator[tuple[cst.Attribute, cst.Attribute | cst.Name]]:
    """``a.b = c.d`` of a method: the two attributes; also ``a.b = c`` with a parameter that a constructor is handed."""
    whole = kept_whole(ctx.facts, method)
    for node in ctx.facts.tree.within(method.node.body, cst.Assign):
        for target in node.targets:
            one, value = target.target, node.value
            if not isinstance(one, cst.Attribute):
                continue
            if isinstance(value, cst.Attribute) or (
                isinstance(value, cst.Name)
                and value.value in whole
                and k.is_parameter(method.params.get(value.value))
            ):
                yield one, value


def _is_embedding(ctx: Context, node: cst.CSTNode) -> bool:
    kind = ctx.kind(node)
    return isinstance(kind, k.Module) and kind.cls == "torch.nn.Embedding"


def head_of(rw: Rewriter, node: cst.CSTNode) -> str | None:
    """The name of the tied head that an expression ``self.head`` means, None for others."""
    if type(node) is not cst.Attribute or not rw.ctx.is_self(node.value):
        return None
    owner = rw.ctx.owner
    if owner is None:
        return None
    name = node.attr.value
    return name if any(name in tied_heads(rw.ctx, c) for c in owner.lineage()) else None


def assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """The Linear that is tied later is never built; its line goes."""
    if len(node.targets) != 1 or head_of(rw, node.targets[0].target) is None:
        return None
    made = node.value if isinstance(node.value, cst.Call) else None
    if made is not None and rw.ctx.facts.callee(made) == "torch.nn.Linear":
        return []
    return None


def call(rw: Rewriter, node: cst.Call) -> Any:
    """``self.head(x)`` → ``self.head.attend(x)``."""
    if head_of(rw, node.func) is None:
        return None
    args = [syntax.changed(a, value=rw.visit(a.value)) for a in node.args]
    return syntax.changed(node, func=cst.Attribute(node.func, cst.Name("attend")), args=args)


def attribute(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.head.weight`` is the embedding's table."""
    if node.attr.value == "weight" and loosely_tied(rw.ctx, node.value):
        name = rw.ctx.helpers.need(module_file("rules.compat.initialize"), "weight_of")
        return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node.value))])
    if node.attr.value == "weight" and head_of(rw, node.value) is not None:
        return syntax.substitute(syntax.parse("__a__.embedding[...]"), {"__a__": node.value})
    return None

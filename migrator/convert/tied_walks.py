"""Initialisers that go through the layers of a model whose Linear and Embedding share one matrix.

torch visits both layers, in the order in which they were registered, and what comes last stays. The port has the
embedding only, and so what is done to that: the same where it comes last and leaves nothing of what was there, where
nothing is done to a Linear, and where the same is done to both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.alike import draws
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.construction import CONTAINERS
from migrator.infer.reached import of_forward

_LINEAR, _EMBEDDING = "torch.nn.Linear", "torch.nn.Embedding"
_WALKS = frozenset("modules named_modules children named_children".split())
_TABLES = frozenset(["_modules"])
_IN_TURN = frozenset(f"builtins.{name}" for name in "list tuple enumerate iter".split())
_HAS = {
    _LINEAR: frozenset("weight bias in_features out_features reset_parameters".split()),
    _EMBEDDING: frozenset(
        "weight padding_idx num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq sparse "
        "reset_parameters".split()
    ),
}


class _Unclear(Exception):
    """What is done to a layer cannot be told."""


def unlike(
    ctx: Context, info: ClassInfo, tie: cst.CSTNode, head: str, embed: cst.Attribute
) -> int | None:
    """The line of a walk that leaves another matrix in torch than what it does to the embedding alone.

    Args:
      tie: the statement ``self.head.weight = self.embed.weight``.
      head, embed: the name of the Linear, and the expression of the weight of the embedding."""
    found = any(_draws_later(ctx, info, tie, embed))
    kind = ctx.kind(embed.value)
    padded = isinstance(kind, k.Module) and dict(kind.args).get("padding_idx") is not None
    names = {head, embed.value.attr.value if isinstance(embed.value, cst.Attribute) else ""}
    last = _comes_last(ctx, info, head, embed)
    for place, body, name in _walks(ctx, info):
        if _runs_before(ctx, info, place, tie):
            continue
        try:
            if body is None:
                raise _Unclear
            walk = _Walk(ctx, name, padded, names)
            linear, embedding = (walk.lines(body, of) for of in (_LINEAR, _EMBEDDING))
        except _Unclear:
            return ctx.source.span(place).line
        drawn = any(whole for _, whole in embedding)
        if not any(name in syntax.names(cst.parse_module(line)) for line, _ in linear):
            found = found or drawn
            continue
        same = [line for line, _ in linear] == [line for line, _ in embedding]
        if not (drawn and (last or (same and all(walk.is_settled(line) for line in linear)))):
            return ctx.source.span(place).line
        found = found or drawn
    if not found and _is_of_linear(tie, head):
        return ctx.source.span(tie).line
    return None


def told_apart(ctx: Context, info: ClassInfo) -> int | None:
    """The line of a walk that counts the layers of a model, or goes over them in its forward pass: there is one less here."""
    ways = [
        way
        for way in ctx.source.index.of_type(cst.Call)
        if isinstance(way.func, cst.Attribute)
        and way.func.attr.value in _WALKS
        and _may_be(ctx, info, way.func.value, way)
    ]
    forward = {one.node for one in of_forward(ctx.facts) if one.settled is None} if ways else set()
    for way in ways:
        around = ctx.facts.tree.around(way)
        kept = _only_asks(ctx, way) and _is_read_again(ctx, way)
        if kept or any(one in forward for one in around):
            return ctx.source.span(way).line
    return None


def _is_read_again(ctx: Context, way: cst.Call) -> bool:
    """``self.n = len(list(self.modules()))`` where something reads ``n``."""
    for line in ctx.facts.tree.around(way):
        target = line.targets[0].target if isinstance(line, cst.Assign) else None
        if isinstance(target, cst.Attribute):
            reads = ctx.source.index.of_type(cst.Attribute)
            return any(one is not target and one.attr.value == target.attr.value for one in reads)
    return False


def _is_of_linear(tie: cst.CSTNode, head: str) -> bool:
    """``self.embed.weight = self.head.weight``: the matrix is the Linear's, as that drew it."""
    value = tie.value if isinstance(tie, cst.Assign) else tie
    return syntax.code(value) == f"self.{head}.weight"


def _draws_later(
    ctx: Context, info: ClassInfo, tie: cst.CSTNode, embed: cst.Attribute
) -> Iterator[bool]:
    """Whether the constructor draws the weight of the embedding itself, for each statement after the tie."""
    init = info.methods.get("__init__")
    at = _statement(ctx, init, tie) if init is not None else None
    for statement in init.node.body.body[at + 1 :] if init is not None and at is not None else ():
        yield draws(ctx, statement, syntax.code(embed.value))


def _walks(
    ctx: Context, info: ClassInfo
) -> Iterator[tuple[cst.CSTNode, Sequence[cst.CSTNode] | None, str]]:
    """The walks through the layers of a model, what each does, and the name it gives a layer."""
    for call in ctx.source.index.of_type(cst.Call):
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "apply" or len(call.args) != 1:
            continue
        if not _may_be(ctx, info, func.value, call):
            continue
        given = call.args[0].value
        if isinstance(given, cst.Call) and ctx.facts.callee(given) == "functools.partial":
            given = given.args[0].value
        if isinstance(given, cst.Lambda) and len(given.params.params) == 1:
            line = cst.SimpleStatementLine([cst.Expr(given.body)])
            yield call, [line], given.params.params[0].name.value
            continue
        kind = ctx.kind(given)
        made = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        known = isinstance(made, FunctionInfo) and made.settled is None
        names = [p.name.value for p in made.node.params.params][made.receivers :] if known else []  # type: ignore[union-attr]
        yield call, made.node.body.body if names else None, names[0] if names else ""  # type: ignore[union-attr]
    for way in ctx.source.index.of_type(cst.Call, cst.Attribute):
        func = way.func if isinstance(way, cst.Call) else way
        if not isinstance(func, cst.Attribute):
            continue
        wanted = _WALKS if isinstance(way, cst.Call) else _TABLES
        if func.attr.value not in wanted or not _may_be(ctx, info, func.value, way):
            continue
        yield _gone_over(ctx, way) if isinstance(way, cst.Call) else (way, None, "")


def _gone_over(
    ctx: Context, way: cst.Call
) -> tuple[cst.CSTNode, Sequence[cst.CSTNode] | None, str]:
    """What goes over ``m.modules()``: a loop, or something that nothing is known of."""
    inner: cst.CSTNode = way
    around = list(ctx.facts.tree.around(way))
    while around:
        above = around.pop()
        if isinstance(above, cst.For) and above.iter is inner:
            target: cst.BaseExpression = above.target
            while isinstance(target, cst.Tuple):
                target = target.elements[-1].value
            if isinstance(target, cst.Name):
                return above, above.body.body, target.value
        wrapped = isinstance(above, cst.Call) and ctx.facts.callee(above) in _IN_TURN
        if not wrapped and not isinstance(above, cst.Arg):
            break
        inner = above
    return way, [] if _only_asks(ctx, way) else None, ""


def _only_asks(ctx: Context, way: cst.Call) -> bool:
    """``any(isinstance(m, nn.Linear) for m in self.modules())``, ``len(list(self.modules()))``: nothing is drawn."""
    *_, outer, above = ctx.facts.tree.around(way)
    if isinstance(above, cst.CompFor) and isinstance(outer, (cst.ListComp, cst.GeneratorExp)):
        calls = ctx.facts.tree.within(outer.elt, cst.Call)
        return all((ctx.facts.callee(one) or "").startswith("builtins.") for one in calls)
    text = syntax.code(way)
    counted = (one for one in ctx.facts.tree.around(way) if isinstance(one, cst.Call))
    return any(syntax.code(one) in (f"len(list({text}))", f"len({text})") for one in counted)


def _may_be(ctx: Context, info: ClassInfo, receiver: cst.BaseExpression, node: cst.CSTNode) -> bool:
    """Whether a walk may go through a model of a class: ``self`` of it, one that is made elsewhere."""
    kind = ctx.kind(receiver)
    if isinstance(receiver, cst.Attribute) and isinstance(kind, k.Module):
        return _may_have(ctx, kind, info)
    if isinstance(kind, k.Class):
        return False
    if isinstance(receiver, cst.Name) and receiver.value == "self" and isinstance(kind, k.Module):
        own = ctx.facts.classes.get(kind.cls)
        return own is None or own is info or info in own.lineage() or _holds(ctx, own, info)
    return isinstance(kind, (k.Module, k.Unknown, k.Optional))


def _may_have(
    ctx: Context, kind: k.Kind | None, info: ClassInfo, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a layer is, or has in it, an instance of a class: a Linear has not."""
    if isinstance(kind, (k.Sequence, k.Optional)):
        kind = kind.item if isinstance(kind, k.Sequence) else kind.inner
    if not isinstance(kind, k.Module):
        return False
    for name in kind.cls.split("|"):
        own = ctx.facts.classes.get(name)
        if own is not None and (info in own.lineage() or own in info.lineage()):
            return True
        if own is not None and own.name not in seen and _holds(ctx, own, info, seen):
            return True
    inner = kind.among if kind.cls == "torch.nn.Module" else (kind.item,)
    if any(one is not None for one in inner):
        return any(_may_have(ctx, one, info, seen) for one in inner)
    return not seen and kind.cls in (*CONTAINERS, "torch.nn.Module")


def _holds(
    ctx: Context, owner: ClassInfo, info: ClassInfo, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a class makes or keeps instances of another one, or of a class that does."""
    short, seen = info.node.name.value, seen | {owner.name}
    for one in owner.lineage():
        tree = ctx.facts.tree
        if any(tree.naming(method.node, short) for method in one.methods.values()):
            return True
        if any(_may_have(ctx, kind, info, seen) for kind in one.attributes.values()):
            return True
    return False


def _runs_before(ctx: Context, info: ClassInfo, place: cst.CSTNode, tie: cst.CSTNode) -> bool:
    """Whether a walk is over when the constructor ties the two."""
    init = info.methods.get("__init__")
    if init is None:
        return False
    tree, index = ctx.facts.tree, ctx.source.index
    if not tree.has(place) or not tree.has(tie):
        return False
    ours, its = _statement(ctx, init, tie), _statement(ctx, init, place)
    if ours is None:
        return False
    if its is not None:
        return its < ours
    method = next((m for m in info.methods.values() if tree.holds(m.node.body, place)), None)
    if method is None:
        return False
    calls = [
        one
        for one in index.of_type(cst.Attribute)
        if one.attr.value == method.short and one is not place
    ]
    found = [_statement(ctx, init, one) for one in calls]
    return bool(found) and all(at is not None and at < ours for at in found)


def _statement(ctx: Context, init: FunctionInfo, node: cst.CSTNode) -> int | None:
    """The place among the statements of a constructor of the one that holds a node, or calls the method that does."""
    for at, statement in enumerate(init.node.body.body):
        if ctx.facts.tree.holds(statement, node):
            return at
    owner = init.owner
    for method in owner.methods.values() if owner is not None else ():
        if method is init or not ctx.facts.tree.holds(method.node.body, node):
            continue
        for at, statement in enumerate(init.node.body.body):
            calls = ctx.facts.tree.within(statement, cst.Call)
            if any(syntax.code(one.func) == f"self.{method.short}" for one in calls):
                return at
    return None


def _comes_last(ctx: Context, info: ClassInfo, head: str, embed: cst.Attribute) -> bool:
    """Whether the embedding is registered after the Linear, so that a walk comes to it later."""
    init = info.methods.get("__init__")
    root: cst.BaseExpression = embed.value
    while isinstance(root, cst.Attribute) and isinstance(root.value, cst.Attribute):
        root = root.value
    if init is None or not isinstance(root, cst.Attribute):
        return False
    given = [
        syntax.code(target.target)
        for statement in init.node.body.body
        for target in ctx.facts.tree.within(statement, cst.AssignTarget)
    ]
    first, other = f"self.{head}", syntax.code(root)
    if given.count(first) != 1 or not _is_made_there(ctx, init, other):
        return False  # another module, which comes first, may have it as well
    return first in given and other in given and given.index(first) < given.index(other)


def _is_made_there(ctx: Context, init: FunctionInfo, path: str) -> bool:
    """Whether a constructor assigns what it makes there and then: ``self.embed = nn.Embedding(…)``."""
    made = [
        one.value
        for one in ctx.facts.tree.within(init.node.body, cst.Assign)
        if any(syntax.code(target.target) == path for target in one.targets)
    ]
    return len(made) == 1 and isinstance(made[0], cst.Call)


class _Walk:
    """What a walk does to a layer of one class."""

    def __init__(self, ctx: Context, name: str, padded: bool, layers: set[str]) -> None:
        self.ctx, self.name, self.padded, self.layers = ctx, name, padded, layers
        self.locals: dict[str, cst.BaseExpression] = {}

    def lines(self, body: Sequence[cst.CSTNode], of: str, depth: int = 0) -> list[tuple[str, bool]]:
        """The statements that run, each with whether it leaves nothing of what the matrix was."""
        if depth == 0:
            self.locals = {}
        found: list[tuple[str, bool]] = []
        for one in body:
            if syntax.is_docstring(one):
                continue
            if isinstance(one, cst.If):
                found += self._branch(one, of)
            elif isinstance(one, cst.With):
                found += self.lines(one.body.body, of, 1)
            elif isinstance(one, cst.SimpleStatementLine):
                if any(
                    isinstance(s, (cst.Return, cst.Continue, cst.Break, cst.Raise))
                    for s in one.body
                ):
                    raise _Unclear
                if self._is_local(one):
                    continue
                if not isinstance(one.body[0], cst.Pass):
                    whole = draws(self.ctx, one, self.name)
                    one = syntax.substitute(one, self.locals)
                    text = "; ".join(syntax.code(s).strip(" ;") for s in one.body)
                    found.append((text, whole))
            else:
                raise _Unclear
        return found

    def _is_local(self, line: cst.SimpleStatementLine) -> bool:
        """``std = 0.02``: what a name stands for in the lines behind it."""
        match line.body:
            case [cst.Assign([cst.AssignTarget(cst.Name(name))], value)]:
                self.locals.pop(name, None)
                if self.name not in syntax.names(value):
                    self.locals[name] = syntax.substitute(value, self.locals)
                    return True
        return False

    def _branch(self, node: cst.If, of: str) -> list[tuple[str, bool]]:
        taken = self._test(node.test, of)
        if taken is None:
            if self.name in syntax.names(node):
                raise _Unclear
            return [(syntax.code(node).strip(), False)]
        if taken:
            return self.lines(node.body.body, of, 1)
        other = node.orelse
        if isinstance(other, cst.If):
            return self._branch(other, of)
        return self.lines(other.body.body, of, 1) if other is not None else []

    def _test(self, test: cst.BaseExpression, of: str) -> bool | None:
        """What a test says of a layer of a class; None where that is not known."""
        if isinstance(test, cst.BooleanOperation):
            sides = [self._test(one, of) for one in (test.left, test.right)]
            ends = isinstance(test.operator, cst.Or)
            if ends in sides:
                return ends
            return None if None in sides else not ends
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = self._test(test.expression, of)
            return None if inner is None else not inner
        if isinstance(test, cst.Call):
            return self._asked(test, of)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            absent = self._absent(test.left, of)
            one = test.comparisons[0]
            if absent is not None and syntax.code(one.comparator) == "None":
                return absent if isinstance(one.operator, cst.Is) else not absent
            return None
        absent = self._absent(test, of)
        return not absent if absent else None

    def _absent(self, node: cst.BaseExpression, of: str) -> bool | None:
        """Whether ``m.bias`` or ``m.padding_idx`` is None; None where that is not known."""
        text = syntax.code(node)
        if text == f"{self.name}.bias" and of == _LINEAR:
            return True  # a Linear with a bias is tied otherwise
        if text == f"{self.name}.padding_idx" and of == _EMBEDDING:
            return not self.padded
        return False if text == f"{self.name}.weight" else None

    def _asked(self, test: cst.Call, of: str) -> bool | None:
        called = self.ctx.facts.callee(test)
        if len(test.args) != 2 or syntax.code(test.args[0].value) != self.name:
            return None
        what = test.args[1].value
        if called == "builtins.hasattr" and isinstance(what, cst.SimpleString):
            name = str(what.evaluated_value)
            if name in _HAS[_LINEAR] | _HAS[_EMBEDDING]:
                return name in _HAS[of]
            return None if self._is_given(name) else False
        if called != "builtins.isinstance":
            return None
        every = [e.value for e in what.elements] if isinstance(what, cst.Tuple) else [what]
        kinds = [self.ctx.kind(one) for one in every]
        if not all(isinstance(one, k.Class) and one.name for one in kinds):
            return None
        return not {of, "torch.nn.Module"}.isdisjoint(one.name for one in kinds)  # type: ignore[attr-defined]

    def _is_given(self, name: str) -> bool:
        """Whether the file gives one of the two layers an attribute of that name, or may."""
        for target in self.ctx.source.index.of_type(cst.AssignTarget):
            one = target.target
            if isinstance(one, cst.Attribute) and one.attr.value == name:
                layer = one.value
                last = layer.attr if isinstance(layer, cst.Attribute) else layer
                if not isinstance(last, cst.Name) or last.value in self.layers:
                    return True
        return "setattr" in self.ctx.words

    def is_settled(self, line: tuple[str, bool]) -> bool:
        """Whether a statement does the same when it runs twice: it draws the matrix, or does not name the layer."""
        text, whole = line
        return whole or self.name not in syntax.names(cst.parse_module(text))

"""LayerDrop: ``if not (self.training and torch.rand([]) < p): x = layer(x)`` in a loop over layers.

Python cannot branch on what is drawn while JAX traces. Where a layer changes nothing but what it returns, it is computed
in any case, and what it leaves is taken or not: outside of training nothing is left out. What is done with the rest of its
results under a test of Python's own, ``if output_attentions:``, is done under that test and where the layer is not left
out, which JAX can only tell where it does not trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes.skipping import (
    HOOKS,
    ORDERS,
    assigned,
    is_number,
    names_bound,
    pure,
    single_draw,
    untaken,
)
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_HOST = frozenset(
    "numpy.random.random numpy.random.rand numpy.random.random_sample numpy.random.uniform random.random "
    "random.uniform".split()
)
"""Draws of one number between 0 and 1 by Python or numpy."""
_HOOKS = HOOKS - {"weight_norm"}
"""What a file names that changes a layer's call for later; a normed weight is made anew each time."""
_OPPOSITE: dict[type, cst.BaseCompOp] = {
    cst.LessThan: cst.GreaterThanEqual(),
    cst.LessThanEqual: cst.GreaterThan(),
    cst.GreaterThan: cst.LessThanEqual(),
    cst.GreaterThanEqual: cst.LessThan(),
}


@dataclass
class Drop:
    """An ``if`` around a layer that may be left out.

    Attributes:
      body: what is done where it is not left out.
      mode, order: ``self.training``, and the comparison with what is drawn; None where a name holds both.
      negated: the comparison says that the layer is kept.
      flag: that name, or the one that is made up.
      names: what is given new values, and read later.
      guarded: the statements of the body that are done under a test of Python's own.
    """

    body: cst.BaseSuite
    mode: cst.BaseExpression | None = None
    order: cst.Comparison | None = None
    negated: bool = False
    flag: str = ""
    names: list[str] = field(default_factory=list)
    guarded: list[cst.CSTNode] = field(default_factory=list)


@dataclass
class Drops:
    """What is converted so in a file.

    Attributes:
      layers: the branches around the layers.
      flags: the assignments of names that say whether a layer is left out.
      draws: what Python or numpy drew.
      comments: what stood above the lines that drew them.
      named: the names of such numbers where they are asked for, with what drew them.
      without: ``if drop: outputs = (None, None)``, with the test under which the outputs are read and the name.
    """

    layers: dict[cst.CSTNode, Drop] = field(default_factory=dict)
    flags: dict[cst.CSTNode, cst.BooleanOperation] = field(default_factory=dict)
    draws: set[cst.CSTNode] = field(default_factory=set)
    named: dict[cst.CSTNode, cst.Call] = field(default_factory=dict)
    comments: dict[cst.CSTNode, list[cst.EmptyLine]] = field(default_factory=dict)
    without: dict[cst.If, tuple[cst.BaseExpression, str, cst.BaseSuite]] = field(
        default_factory=dict
    )


def drops(ctx: Context) -> Drops:
    """The layers of a file that may be left out; what was said against the branches is taken back."""
    if ctx.drops is None:
        ctx.drops = Drops()
        drawn = ctx.words & {"rand", "random", "uniform"}
        if "training" in ctx.words and drawn and _HOOKS.isdisjoint(ctx.words):
            for loop in ctx.source.index.of_type(cst.For):
                _note(ctx, loop, ctx.drops)
    found: Drops = ctx.drops
    return found


def _note(ctx: Context, loop: cst.For, found: Drops) -> None:
    tree = ctx.source.index
    functions = [n for n in tree.around(loop) if isinstance(n, (cst.FunctionDef, cst.Lambda))]
    last = functions[-1] if functions else None
    info = ctx.facts.functions.get(last) if isinstance(last, cst.FunctionDef) else None
    if info is None or info.owner is None or not info.owner.torch_base:
        return
    if not isinstance(loop.body, cst.IndentedBlock) or loop.orelse is not None:
        return
    lines: Any = loop.body.body
    for place, line in enumerate(lines):
        drop = _layer(ctx, line, lines[:place]) if isinstance(line, cst.If) else None
        if drop is None:
            continue
        plan = _plan(ctx, info, loop, place, drop)
        if plan is None:
            continue
        settled: list[cst.CSTNode] = [line, *plan.flags, *plan.without]
        found.layers |= plan.layers
        found.flags |= plan.flags
        found.without |= plan.without
        said = [line.test, *plan.flags]
        _take_draws(ctx, said, found)
        for name in [n for one in said for n in tree.within(one, cst.Name)]:
            given = [one for one in lines[:place] if name.value in names_bound(one)]
            only = _assignment(given[0]) if len(given) == 1 else None
            if only is not None and isinstance(only.value, cst.Call) and _by_host(ctx, only.value):
                found.named[name] = only.value
                ctx.moved.add(given[0])
                above = found.comments.setdefault(line, [])
                above += [one for one in given[0].leading_lines if one.comment is not None]
                _take_draws(ctx, [only.value], found)
        tests = [one.test if isinstance(one, cst.If) else one for one in settled]
        for node in [n for n in ctx.blocked if any(tree.holds(one, n) for one in tests)]:
            del ctx.blocked[node]
        return


def _take_draws(ctx: Context, nodes: Sequence[cst.CSTNode], found: Drops) -> None:
    """Note what Python or numpy draws for a layer; that it would be a constant is taken back."""
    for node in nodes:
        for call in ctx.source.index.within(node, cst.Call):
            if _by_host(ctx, call):
                found.draws.add(call)
                line = ctx.source.span(call).line
                kept = [f for f in ctx.findings if f.rule != "TRC005" or f.line != line]
                ctx.findings[:] = kept


def _by_host(ctx: Context, node: cst.CSTNode) -> bool:
    """``np.random.random()``, ``random.uniform(0, 1)``: one number between 0 and 1."""
    if not isinstance(node, cst.Call) or ctx.facts.callee(node) not in _HOST:
        return False
    if any(one.keyword is not None or one.star for one in node.args):
        return False
    function = next(
        (n for n in reversed(ctx.source.index.around(node)) if isinstance(n, cst.FunctionDef)), None
    )
    info = ctx.facts.functions.get(function) if function is not None else None
    if info is None or not info.draws:
        return False
    bounds = [syntax.code(one.value) for one in node.args]
    return not bounds or (
        (ctx.facts.callee(node) or "").endswith("uniform")
        and bounds in (["0", "1"], ["0.0", "1.0"], ["0.", "1."])
    )


# --- what is said -----------------------------------------------------------------------------------------------------


def _layer(ctx: Context, node: cst.If, before: Sequence[cst.BaseStatement]) -> Drop | None:
    """The branch around a layer; None for any other."""
    test = syntax.unparenthesized(node.test)
    if node.orelse is not None:  # if drop: outputs = (None, None) / else: …
        if not isinstance(test, cst.Name) or not isinstance(node.orelse, cst.Else):
            return None
        return Drop(node.orelse.body, flag=test.value)
    inner = None
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = syntax.unparenthesized(test.expression)
    if isinstance(inner, cst.Name):
        return Drop(node.body, flag=inner.value)
    if isinstance(inner, cst.BooleanOperation) and isinstance(inner.operator, cst.And):
        order = syntax.unparenthesized(inner.right)
        if _is_mode(inner.left) and _is_order(ctx, order, before):
            assert isinstance(order, cst.Comparison)
            return Drop(node.body, inner.left, order)
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        left, order = test.left, syntax.unparenthesized(test.right)
        if isinstance(left, cst.UnaryOperation) and isinstance(left.operator, cst.Not):
            if _is_mode(left.expression) and _is_order(ctx, order, before):
                assert isinstance(order, cst.Comparison)
                return Drop(node.body, left.expression, order, negated=True)
    return None


def _is_mode(node: cst.BaseExpression) -> bool:
    return syntax.code(syntax.unparenthesized(node)) == "self.training"


def _is_order(ctx: Context, node: cst.BaseExpression, before: Sequence[cst.BaseStatement]) -> bool:
    """Whether a draw is compared with a number, ``torch.rand([]) < p``; also one that a line before has named."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return False
    if not isinstance(node.comparisons[0].operator, ORDERS):
        return False
    sides = [node.left, node.comparisons[0].comparator]
    drawn = [one for one in sides if _is_drawn(ctx, one, before)]
    others = [one for one in sides if one not in drawn]
    return len(drawn) == 1 and is_number(ctx.kind(others[0])) and _is_simple(others[0])


def _is_simple(node: cst.BaseExpression) -> bool:
    """A number, a name, or an attribute of one."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, (cst.Name, cst.Integer, cst.Float))


def _is_drawn(ctx: Context, node: cst.BaseExpression, before: Sequence[cst.BaseStatement]) -> bool:
    if not isinstance(node, cst.Name):
        return single_draw(ctx, node) is not None or _by_host(ctx, node)
    bound = [line for line in before if node.value in names_bound(line)]
    only = _assignment(bound[0]) if len(bound) == 1 else None
    if only is None or not isinstance(only.value, cst.Call):
        return False
    if _by_host(ctx, only.value):
        function = ctx.source.index.around(only)
        whole = next(n for n in reversed(function) if isinstance(n, cst.FunctionDef))
        names = [n for n in ctx.source.index.within(whole, cst.Name) if n.value == node.value]
        return len(names) == 2  # where it is drawn, and here
    return ctx.facts.callee(only.value) == "torch.rand" and (
        single_draw(ctx, only.value) is not None
    )


def _assignment(line: cst.CSTNode) -> cst.Assign | None:
    """The assignment to one name that a line is."""
    only = (
        line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    )
    if not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return None
    return only if isinstance(only.targets[0].target, cst.Name) else None


# --- what can be converted --------------------------------------------------------------------------------------------


def _plan(ctx: Context, info: FunctionInfo, loop: cst.For, place: int, drop: Drop) -> Drops | None:
    """What becomes of a loop, if its layer may be computed in any case."""
    tree, plan = ctx.source.index, Drops()
    lines: Any = loop.body.body
    line = lines[place]
    if drop.flag and not _says(ctx, info, lines[:place], drop.flag, plan):
        return None
    without = _without_results(lines[place:], drop)
    if without is None or not isinstance(drop.body, cst.IndentedBlock):
        return None
    inside = {id(n) for n in tree.below(drop.body)}
    for name, node in without.items():
        test = _guard(ctx, loop, lines[place:], name, inside)
        if test is None:
            return None
        plan.without[node] = (test, drop.flag, node.body)
    body: Any = drop.body.body
    while True:  # what may not be computed in any case is done under its test
        made = [one for one in body if one not in drop.guarded]
        more = [one for one in made if not _is_pure(ctx, info, one)]
        lost = [
            name
            for name in _left(ctx, info, made, inside, set(without))
            if not _holds_tensor(ctx, info, loop, name)
        ]
        more += [one for one in made if names_bound(one) & set(lost) and one not in more]
        if not more:
            break
        if not all(_stands_alone(ctx, one) for one in more):
            return None
        drop.guarded += more
    drop.names = _left(ctx, info, made, inside, set(without))
    under = {name for one in drop.guarded for name in names_bound(one)}  # type: ignore[arg-type]
    read = {name for one in made for name in syntax.names(one)} | set(drop.names)
    if not drop.names or under & read or not all(one in _bound(made) for one in without):
        return None
    if drop.flag and not _flag_is_known(ctx, info, plan, line, drop):
        return None
    plan.layers[line] = drop
    return plan


def _without_results(lines: Sequence[cst.BaseStatement], drop: Drop) -> dict[str, cst.If] | None:
    """The branches ``if drop: outputs = (None, None)`` by name; None where something else is done there."""
    found: dict[str, cst.If] = {}
    for place, line in enumerate(lines):
        if not isinstance(line, cst.If) or not drop.flag:
            continue
        if place == 0 and line.orelse is None:
            continue
        if syntax.code(line.test) != drop.flag:
            continue
        name = _emptied(line.body)
        if not name or name in found or (place and line.orelse is not None):
            return None
        found[name] = line
    return found


def _bound(lines: Sequence[cst.BaseStatement]) -> set[str]:
    return {name for one in lines for name in names_bound(one)}


def _left(
    ctx: Context,
    info: FunctionInfo,
    lines: Sequence[cst.BaseStatement],
    inside: set[int],
    without: set[str],
) -> list[str]:
    """The names that some lines bind and that are read beyond the branch they stand in."""
    found = []
    for name in sorted(_bound(lines) - without):
        reads = [n for n in ctx.source.index.within(info.node, cst.Name) if n.value == name]
        if any(id(one) not in inside for one in reads):
            found.append(name)
    return found


def _stands_alone(ctx: Context, line: cst.BaseStatement) -> bool:
    """Whether a statement is a branch on a test of Python's own that does not leave the round."""
    if not isinstance(line, cst.If) or line.orelse is not None or not _is_pythons(ctx, line.test):
        return False
    leaving = (cst.Return, cst.Break, cst.Continue)
    return not any(isinstance(n, leaving) for n in syntax.walk(line))


def _is_pure(ctx: Context, info: FunctionInfo, line: cst.BaseStatement) -> bool:
    """Whether a statement does nothing but bind names."""
    leaving = (cst.Return, cst.Break, cst.Continue)
    if any(isinstance(n, leaving) for n in syntax.walk(line)):
        return False
    return pure(ctx, [line], {info}, anywhere=True)


def _says(
    ctx: Context,
    info: FunctionInfo,
    before: Sequence[cst.BaseStatement],
    flag: str,
    plan: Drops,
) -> bool:
    """Whether a name says in this round whether the layer is left out: ``drop = self.training and d < p``."""
    tree = ctx.source.index
    for place, line in enumerate(before):
        only = _assignment(line)
        if only is None or syntax.code(only.targets[0].target) != flag:
            continue
        value = only.value
        if not isinstance(value, cst.BooleanOperation) or not isinstance(value.operator, cst.And):
            return False
        order = syntax.unparenthesized(value.right)
        if not _is_mode(value.left) or not _is_order(ctx, order, before[:place]):
            return False
        bound = [
            n
            for one in tree.within(info.node.body, cst.AssignTarget, cst.AnnAssign, cst.AugAssign)
            for n in tree.below(one.target)
            if isinstance(n, cst.Name) and n.value == flag
        ]
        plan.flags[only] = value
        return len(bound) == 1
    return False


def _flag_is_known(ctx: Context, info: FunctionInfo, plan: Drops, line: cst.If, drop: Drop) -> bool:
    """Whether nothing else asks for the name that says whether a layer is left out."""
    tree = ctx.source.index
    asked = [line.test, *(one.test for one in plan.without), *plan.flags]
    return all(
        any(tree.holds(one, name) for one in asked)
        for name in tree.within(info.node, cst.Name)
        if name.value == drop.flag
    )


def _is_pythons(ctx: Context, test: cst.BaseExpression) -> bool:
    """Whether a test asks for nothing that a tensor holds: an option, or whether something is None."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_pythons(ctx, test.expression)
    if isinstance(test, cst.BooleanOperation):
        return _is_pythons(ctx, test.left) and _is_pythons(ctx, test.right)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        only = test.comparisons[0]
        asks = isinstance(only.operator, (cst.Is, cst.IsNot))
        return asks and syntax.code(only.comparator) == "None" and _is_simple(test.left)
    return _is_simple(test) and k.scalar_type(ctx.facts.kind(test)) == "bool"


def _emptied(body: cst.BaseSuite) -> str:
    """``outputs`` of ``outputs = (None, None)``, all that a branch does."""
    only = _assignment(body.body[0]) if len(body.body) == 1 else None
    value = only.value if only is not None else None
    if only is None or not isinstance(value, cst.Tuple):
        return ""
    nothing = all(syntax.code(one.value) == "None" for one in value.elements)
    return only.targets[0].target.value if nothing else ""  # type: ignore[attr-defined]


def _guard(
    ctx: Context, loop: cst.For, lines: Sequence[cst.BaseStatement], name: str, inside: set[int]
) -> cst.BaseExpression | None:
    """The test of Python's own under which a round reads what a layer returned, after the layer; None for another."""
    tree = ctx.source.index
    tests: list[cst.BaseExpression] = []
    function = next(n for n in reversed(tree.around(loop)) if isinstance(n, cst.FunctionDef))
    for read in tree.within(function, cst.Name):
        if read.value != name or id(read) in inside:
            continue
        above = tree.around(read)
        if isinstance(above[-1], cst.AssignTarget):
            continue
        branch = next((one for one in lines[1:] if tree.holds(one, read)), None)
        if not isinstance(branch, cst.If) or branch.orelse is not None:
            return None
        if tree.holds(branch.test, read) or not _is_pythons(ctx, branch.test):
            return None
        tests.append(branch.test)
    if not tests or any(not one.deep_equals(tests[0]) for one in tests):
        return None
    asked, body = syntax.names(tests[0]).keys(), loop.body.body
    if any(asked & names_bound(line) for line in body):  # type: ignore[arg-type]
        return None
    return tests[0]


def _holds_tensor(ctx: Context, info: FunctionInfo, loop: cst.For, name: str) -> bool:
    """Whether a name surely holds a tensor before and after a layer."""
    tree = ctx.source.index
    reads = [n for n in tree.within(info.node, cst.Name) if n.value == name and _is_read(ctx, n)]
    if name in syntax.names(loop.target):
        return False
    if not all(isinstance(ctx.facts.kind(one), k.Tensor) for one in reads):
        return False
    if isinstance(info.params.get(name), k.Tensor):
        return True
    around: Any = tree.around(loop)
    lines = next(
        n.body for n in reversed(around) if isinstance(n, cst.IndentedBlock) and loop in n.body
    )
    before = [one for one in lines[: lines.index(loop)] if isinstance(one, cst.SimpleStatementLine)]
    return name in _bound(before)


def _is_read(ctx: Context, name: cst.Name) -> bool:
    above = ctx.source.index.around(name)[-1]
    if isinstance(above, cst.Arg):
        return above.keyword is not name
    return not isinstance(above, (cst.AssignTarget, cst.Param, cst.Attribute)) or (
        isinstance(above, cst.Attribute) and above.value is name
    )


# --- the output -------------------------------------------------------------------------------------------------------


@converts(cst.Assign, when=lambda ctx: bool(drops(ctx).flags))
def flagged(rw: Rewriter, node: cst.Assign) -> Any:
    """``drop = self.training and torch.rand([]) < p``"""
    value = drops(rw.ctx).flags.get(node)
    if value is None:
        return None
    order = syntax.unparenthesized(value.right)
    assert isinstance(order, cst.Comparison)
    return syntax.changed(node, value=_skip(rw, value.left, order, negated=False))


def _skip(
    rw: Rewriter, mode: cst.BaseExpression, order: cst.Comparison, negated: bool
) -> cst.BooleanOperation:
    first = order.comparisons[0]
    sides = []
    for side in (order.left, first.comparator):
        draw = single_draw(rw.ctx, side)
        host = drops(rw.ctx).named.get(side)
        made = rw.visit(host or (side if draw is None else draw))
        if host is not None:
            pass  # it is drawn here, where it is asked for
        elif draw is not None:
            made = syntax.with_args(made, [cst.Arg(cst.Tuple([]))])
        elif isinstance(kind := rw.ctx.kind(side), k.Tensor) and kind.rank != 0:
            rw.ctx.helpers.use("jnp")
            made = syntax.substitute(syntax.parse("jnp.reshape(__d__, ())"), {"__d__": made})
        sides.append(made)
    operator = _OPPOSITE[type(first.operator)] if negated else first.operator
    compared = syntax.changed(
        order,
        left=sides[0],
        comparisons=[syntax.changed(first, operator=operator, comparator=sides[1])],
        lpar=[],
        rpar=[],
    )
    return cst.BooleanOperation(rw.visit(mode), cst.And(), compared)


@converts(cst.Call, when=lambda ctx: bool(drops(ctx).draws))
def drawn(rw: Rewriter, node: cst.Call) -> Any:
    """``np.random.random()`` → ``self.rngs.uniform(())``"""
    if node not in drops(rw.ctx).draws:
        return None
    made = syntax.parse("__rngs__.uniform(())")
    return syntax.substitute(made, {"__rngs__": rw.ctx.rngs(node)})


@converts(cst.If, when=lambda ctx: bool(drops(ctx).layers))
def around_layer(rw: Rewriter, node: cst.If) -> Any:
    """The layer itself, and what is taken of it."""
    found = drops(rw.ctx)
    if node not in found.layers:
        return _without(rw, node) if node in found.without else None
    drop = found.layers[node]
    flag = drop.flag
    lines: list[cst.BaseStatement] = []
    if drop.order is not None and drop.mode is not None:
        flag = untaken(rw, "skip")
        lines.append(assigned(flag, _skip(rw, drop.mode, drop.order, drop.negated)))
    kept = {}
    for name in drop.names:
        kept[name] = untaken(rw, "unchanged" if len(drop.names) == 1 else f"old_{name}")
        lines.append(assigned(kept[name], cst.Name(name)))
    assert isinstance(drop.body, cst.IndentedBlock)
    for line in drop.body.body:
        if line in drop.guarded:
            assert isinstance(line, cst.If)
            _tell(rw, line)
            lines += _under(rw, line, cst.UnaryOperation(cst.Not(), cst.Name(flag)))
        else:
            lines += rw.body([line])
    helper = rw.ctx.helpers.need(module_file("rules.compat.skipping"), "left_out")
    for name in drop.names:
        given = [cst.Arg(cst.Name(one)) for one in (flag, kept[name], name)]
        lines.append(assigned(name, syntax.with_args(cst.Call(cst.Name(helper)), given)))
    if node in found.without:
        lines += _without(rw, node)
    above = [*found.comments.get(node, ()), *node.leading_lines]
    return [syntax.changed(lines[0], leading_lines=above), *lines[1:]]


def _under(rw: Rewriter, node: cst.If, also: cst.BaseExpression) -> list[cst.BaseStatement]:
    """A branch under its own test and another."""
    test = cst.BooleanOperation(rw.visit(node.test), cst.And(), also)
    return [syntax.changed(node, test=test, body=rw.block(node.body))]


def _without(rw: Rewriter, node: cst.If) -> list[cst.BaseStatement]:
    """``if output_attentions and drop: outputs = (None, None)``"""
    guard, flag, body = drops(rw.ctx).without[node]
    _tell(rw, node)
    asked = cst.BooleanOperation(rw.visit(guard), cst.And(), cst.Name(flag))
    return [cst.If(asked, rw.block(body), leading_lines=node.leading_lines)]


def _tell(rw: Rewriter, node: cst.If) -> None:
    """Say that what else a layer gives is left out in training by Python alone."""
    rw.ctx.report(
        node,
        "DYN002",
        "what a layer gives besides is left out with it, in training, which JAX cannot trace",
        "ask for it outside of jit, or in eval mode",
        severity="warning",
        blocks=False,
    )

"""``if x.sum() > 0: x = x * 2`` → ``x = lax.cond(x.sum() > 0, lambda: x * 2, lambda: x)``.

Python cannot branch on what is not known while JAX traces. ``lax.cond`` runs one of two functions, and its gradient is
that of the one that ran. Both must give arrays of the same shapes and types: a branch is converted where that is plain
to see, and where it does nothing but give names new values, or return one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.bound_before import bound_before, read_outside, writes_own
from migrator.convert.context import Context, Failure
from migrator.convert.expand import make_tuple
from migrator.convert.only_arithmetic import meets_numbers, only_arithmetic
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.same_shapes import NUMBER, Shapes, meet
from migrator.convert.tensor_tests import asked, is_pure, is_test, parts, read_number
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.line_breaks import on_one_line


@dataclass
class Branch:
    """What becomes of an ``if``: the names it gives values, or what both ways return.

    Attributes:
      names: what is read later, in the order of the source.
      given: those names that have a value before, which the branches are handed.
      then, other: the assignment, return or expression that a branch is; None where it has several lines.
      returned: the return that comes after an ``if`` that returns.
      lines: the assignments and the return that come after an ``if`` that returns, where there are several.
      test: what is asked of a tensor.
      settled: what is asked of Python before that, ``self.training`` of ``self.training and torch.rand(1) < p``.
    """

    names: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    then: cst.CSTNode | None = None
    other: cst.CSTNode | None = None
    returns: bool = False
    returned: cst.Return | None = None
    lines: list[cst.BaseStatement] = field(default_factory=list)
    test: cst.BaseExpression = field(default_factory=lambda: cst.Name("True"))
    settled: cst.BaseExpression | None = None


def branches(ctx: Context) -> dict[cst.CSTNode, Branch]:
    """The branches on a tensor that can be converted, by their node; what was said against them is taken back."""
    if ctx.branches is None:
        ctx.branches = {}
        wanted = [node for node, why in ctx.blocked.items() if why[0] in ("DYN002", "DYN004")]
        for part in wanted:
            if part not in ctx.blocked:
                continue  # taken back with the branch around it
            node, around = _tested(ctx, part)
            if node is None or node in ctx.branches:
                continue
            found = _planned(ctx, node, around)
            if found is not None:
                ctx.branches[node] = found
                inside = [n for n in ctx.blocked if ctx.facts.tree.holds(node.test, n)]
                for one in inside:
                    del ctx.blocked[one]
                if found.returned is not None:
                    ctx.facts.dead.append(_line_of(ctx, found.returned))
                ctx.moved.update(found.lines)
    return ctx.branches


def _tested(ctx: Context, part: cst.CSTNode) -> tuple[cst.If | cst.IfExp | None, Sequence[Any]]:
    """The branch that a node is all of the test of, or whose test reads it as a number; and what is around that."""
    tree = ctx.facts.tree
    around = tree.around(part) if tree.has(part) else []
    whole = ctx.blocked[part][0] == "DYN002"
    while around:
        node = around.pop()
        if isinstance(node, cst.If | cst.IfExp) and tree.holds(node.test, part):
            return (None if whole and node.test is not part else node), [*around, node]
        if not isinstance(node, cst.Comparison | cst.BooleanOperation) or whole:
            break
    return None, ()


def _line_of(ctx: Context, node: cst.CSTNode) -> cst.CSTNode:
    line: cst.CSTNode = ctx.facts.tree.around(node)[-1]
    return line


# --- what can be converted ---------------------------------------------------------------------------------------------


def _planned(ctx: Context, node: cst.If | cst.IfExp, around: Sequence[Any]) -> Branch | None:
    tree = ctx.facts.tree
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    info = ctx.facts.functions.get(function) if function is not None else None
    inner = [n for n in ctx.blocked if tree.has(n) and tree.holds(node, n)]
    if info is None or _switches_gradients(ctx, info):
        return None
    if any(n is not node.test and not tree.holds(node.test, n) for n in inner):
        return None
    settled, test = parts(ctx, node)
    known = read_number(ctx, test)
    read = known[0] if known is not None else None
    if any(ctx.blocked[n][0] != "DYN002" and n is not read for n in inner):
        return None
    if not is_test(ctx, test, alone=True):
        return None
    if any(isinstance(one, cst.Lambda | cst.ListComp | cst.GeneratorExp) for one in around):
        return None
    if isinstance(node, cst.IfExp):
        shapes = Shapes(ctx)
        alike = _alike(ctx, shapes, node.body, shapes, node.orelse)
        if not alike and _is_written(node.body) and _is_written(node.orelse):
            types = {k.scalar_type(ctx.facts.kind(one)) for one in (node.body, node.orelse)}
            alike = len(types) == 1 and meets_numbers(ctx, info, node)
        return Branch(then=node.body, other=node.orelse, test=test) if alike else None
    parent = around[-2] if len(around) > 1 else None
    if isinstance(parent, cst.If) or not isinstance(node.body, cst.IndentedBlock):
        return None  # an elif
    if node.orelse is not None and not isinstance(node.orelse, cst.Else):
        return None
    found = None if settled is not None else _returning(ctx, node, info, parent)
    found = found or _assigning(ctx, node, info, parent)
    if found is not None:
        found.test, found.settled = test, settled
    return found


def _switches_gradients(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function says that something has no gradient, which is then said where a value is assigned."""
    words = {n.value for n in ctx.facts.tree.within(info.node, cst.Name)}
    return not words.isdisjoint(_SWITCHES)


_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"})


def _returning(ctx: Context, node: cst.If, info: FunctionInfo, parent: Any) -> Branch | None:
    """``if t: return a`` before ``return b``, or with it under ``else``."""
    then = _only_return(node.body)
    if then is None or then.value is None:
        return None
    last: cst.Return | None
    if node.orelse is not None:
        last = _only_return(node.orelse.body)
    else:
        rest = list(parent.body[parent.body.index(node) + 1 :]) if hasattr(parent, "body") else []
        if len(rest) > 1:
            return _returning_first(ctx, node, info, then, rest)
        last = _return_of(rest[0]) if rest else None
    if last is None or last.value is None:
        return None
    shapes = Shapes(ctx)
    if not _alike(ctx, shapes, then.value, shapes, last.value):
        return None
    after = last if node.orelse is None else None
    return Branch(then=then, other=last, returns=True, returned=after)


def _returning_first(
    ctx: Context,
    node: cst.If,
    info: FunctionInfo,
    then: cst.Return,
    rest: list[cst.BaseStatement],
) -> Branch | None:
    """``if t: return a`` before ``c = b + 1`` and ``return c``."""
    *lines, end = rest
    assigned, last = _assignments(lines), _return_of(end)
    if not assigned or last is None or then.value is None or last.value is None:
        return None
    tree, before = ctx.facts.tree, bound_before(ctx, node, info)
    own = {p.name.value for p in info.node.params.params} | before.names
    new = {name for name, _ in assigned} - own
    inside = {id(n) for line in rest for n in tree.within(line, cst.Name)}
    if any(n.value in new and id(n) not in inside for n in tree.within(info.node, cst.Name)):
        return None  # which may have a value before
    unclear = before.unclear & {name for name, _ in assigned}
    if unclear or not writes_own(ctx, info, before, assigned):
        return None
    if any(tree.has(n) and any(tree.holds(line, n) for line in rest) for n in ctx.blocked):
        return None
    if not all(is_pure(ctx, value) for _, value in assigned):
        return None
    first, second = Shapes(ctx, before.kinds), Shapes(ctx, before.kinds).after(assigned)
    if not _alike(ctx, first, then.value, second, last.value):
        return None
    given = [name for name in dict.fromkeys(name for name, _ in assigned) if name in own]
    return Branch(given=given, then=then, returns=True, lines=rest)


def _only_return(body: cst.BaseSuite) -> cst.Return | None:
    return _return_of(body.body[0]) if len(body.body) == 1 else None


def _return_of(line: Any) -> cst.Return | None:
    only = (
        line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    )
    return only if isinstance(only, cst.Return) else None


def _assigning(ctx: Context, node: cst.If, info: FunctionInfo, parent: Any) -> Branch | None:
    """Branches of assignments to names."""
    then = _assignments(_said(ctx, node.body.body))
    other = _assignments(_said(ctx, node.orelse.body.body)) if node.orelse is not None else []
    if not then or other is None:
        return None
    if not all(is_pure(ctx, value) for _, value in [*then, *other]):
        return None
    bound = list(dict.fromkeys(name for name, _ in [*then, *other]))
    read = read_outside(ctx, node, info)
    names = [name for name in bound if name in read]
    before = bound_before(ctx, node, info)
    if not writes_own(ctx, info, before, [*then, *other]):
        return None
    if not names or any(name in before.unclear for name in bound):
        return None
    own = {p.name.value for p in info.node.params.params}
    given = [name for name in bound if name in own or name in before.names]
    everywhere = {name for name, _ in then} & {name for name, _ in other}
    if any(name not in given and name not in everywhere for name in names):
        return None
    first, second = (Shapes(ctx, before.kinds).after(one) for one in (then, other))
    for name in names:
        shape = first.named(name)
        if shape is None or shape != second.named(name):
            return None
        if shape == NUMBER:
            if not _are_numbers(ctx, info, name, then, other):
                return None
            continue
        if not first.types_meet(name, second, before.kinds):
            return None
    branch = Branch(names=names, given=given)
    plain = not any(isinstance(value, cst.AugAssign) for _, value in [*then, *other])
    if plain and len(then) == 1 and len(other) <= 1 and len(bound) == 1:
        branch.then = _small_of(ctx, node.body)
        branch.other = _small_of(ctx, node.orelse.body) if other else cst.Name(names[0])  # type: ignore[union-attr]
    return branch


def _are_numbers(
    ctx: Context,
    info: FunctionInfo,
    name: str,
    *branches: list[tuple[str, cst.BaseExpression | cst.AugAssign]],
) -> bool:
    """Whether both branches give a name numbers of one type that are written down, and nothing but arithmetic reads it."""
    types = set()
    for one in branches:
        given = [value for to, value in one if to == name]
        if len(given) != 1 or not _is_written(given[0]):
            return False
        types.add(k.scalar_type(ctx.facts.kind(given[0])))
    return len(types) == 1 and types < {"int", "float"} and only_arithmetic(ctx, info, name)


def _is_written(node: cst.CSTNode | None) -> bool:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node = node.expression
    return isinstance(node, cst.Float) or (isinstance(node, cst.Integer) and len(node.value) < 9)


def _said(ctx: Context, lines: Sequence[Any]) -> list[Any]:
    """Lines without the messages that are left out."""
    return [
        line
        for line in lines
        if not isinstance(line, cst.SimpleStatementLine)
        or not all(small in ctx.dropped for small in line.body)
    ]


_IN_PLACE = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)


def _small_of(ctx: Context, body: cst.BaseSuite) -> cst.CSTNode:
    line = _said(ctx, body.body)[0]
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]


def _assignments(
    lines: Sequence[cst.BaseStatement | cst.BaseSmallStatement],
) -> list[tuple[str, cst.BaseExpression | cst.AugAssign]] | None:
    """Name and value of each statement, ``x += y`` itself for that; None where there is something else."""
    found: list[tuple[str, cst.BaseExpression | cst.AugAssign]] = []
    for line in lines:
        match line:
            case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)]):
                found.append((name, value))
            case cst.SimpleStatementLine([cst.AugAssign(cst.Name(name), operator) as small]):
                if not isinstance(operator, _IN_PLACE):
                    return None
                found.append((name, small))
            case cst.SimpleStatementLine([cst.Pass()]):
                pass
            case _:
                return None
    return found


def _alike(
    ctx: Context,
    first: Shapes,
    one: cst.BaseExpression,
    second: Shapes,
    other: cst.BaseExpression,
) -> bool:
    """Whether two expressions surely give arrays, or tuples of arrays, of the same shapes and types."""
    if isinstance(one, cst.Tuple) and isinstance(other, cst.Tuple):
        return len(one.elements) == len(other.elements) and all(
            isinstance(a, cst.Element)
            and isinstance(b, cst.Element)
            and _alike(ctx, first, a.value, second, b.value)
            for a, b in zip(one.elements, other.elements, strict=True)
        )
    if not (is_pure(ctx, one) and is_pure(ctx, other)):
        return False
    shape = first.of(one)
    if shape is None or shape == NUMBER or shape != second.of(other):
        return False
    return meet(ctx.facts.kind(one), ctx.facts.kind(other))


# --- the output --------------------------------------------------------------------------------------------------------


@converts(cst.IfExp, when=lambda ctx: bool(branches(ctx)))
def chosen(rw: Rewriter, node: cst.IfExp) -> Any:
    """``a if x.sum() > 0 else b``."""
    found = branches(rw.ctx).get(node)
    return _cond(rw, found.test, found) if found is not None else None


@converts(cst.If, when=lambda ctx: bool(branches(ctx)))
def branched(rw: Rewriter, node: cst.If) -> Any:
    """An ``if`` that gives names new values, or returns."""
    found = branches(rw.ctx).get(node)
    if found is None:
        return None
    if found.lines:
        lines = _returns(rw, found)
    elif found.then is None:
        lines = _functions(rw, node, found)
    else:
        value = _cond(rw, found.test, found)
        made: cst.BaseSmallStatement = cst.Return(value)
        if not found.returns:
            made = cst.Assign([cst.AssignTarget(cst.Name(found.names[0]))], value)
        lines = [cst.SimpleStatementLine([made])]
    if found.settled is not None:
        test = syntax.unparenthesized(rw.visit(found.settled))
        lines = [cst.If(test, cst.IndentedBlock(lines))]
    lines[0] = syntax.changed(lines[0], leading_lines=node.leading_lines)
    return lines


def _cond(rw: Rewriter, test: cst.BaseExpression, found: Branch) -> cst.Call:
    """``lax.cond(test, lambda: then, lambda: other)``."""
    rw.ctx.helpers.use("lax")
    given: list[cst.BaseExpression] = [asked(rw, test)]
    numbers = [
        one.value if isinstance(one, cst.Assign) else one for one in (found.then, found.other)
    ]
    if all(map(_is_written, numbers)):
        rw.ctx.helpers.use("jnp")
        choice = cst.Call(syntax.parse("jnp.where"))
        return syntax.with_args(choice, [cst.Arg(one) for one in (*given, *numbers)])  # type: ignore[arg-type]
    with rw.ctx.no_hoisting():
        for arm in (found.then, found.other):
            made = rw.visit(arm) if arm is not None else None
            value = made.value if isinstance(made, cst.Assign | cst.Return) else made
            if not isinstance(value, cst.BaseExpression):
                what = "a branch on the value of a tensor cannot be traced"
                raise Failure(test, "DYN002", what, "choose by jnp.where or lax.cond")
            if isinstance(value, cst.Tuple):
                value = make_tuple([one.value for one in value.elements])
            given.append(cst.Lambda(cst.Parameters(), on_one_line(value)))
    call = cst.Call(syntax.parse("lax.cond"))
    return syntax.with_args(call, [cst.Arg(one) for one in given])


def _returns(rw: Rewriter, found: Branch) -> list[cst.BaseStatement]:
    """What comes after an ``if`` that returns, as a function of the names that it gives other values."""
    ctx = rw.ctx
    ctx.helpers.use("lax")
    assert isinstance(found.then, cst.Return)
    assert found.then.value is not None
    test, params = asked(rw, found.test), ", ".join(found.given)
    with ctx.no_hoisting():
        value = on_one_line(rw.visit(found.then.value))
    name = ctx.unused("otherwise")
    made = syntax.statement(f"def {name}({params}):\n    pass\n")
    assert isinstance(made, cst.FunctionDef)
    inner = [one for line in found.lines for one in rw.statement(line)]
    inner[0] = syntax.changed(inner[0], leading_lines=_comments(inner[0]))
    made = syntax.changed(made, body=cst.IndentedBlock(inner))
    first = syntax.parse(f"lambda {params}: None" if params else "lambda: None")
    assert isinstance(first, cst.Lambda)
    given = [test, syntax.changed(first, body=value), cst.Name(name), *map(cst.Name, found.given)]
    call = syntax.with_args(cst.Call(syntax.parse("lax.cond")), [cst.Arg(one) for one in given])
    return [made, cst.SimpleStatementLine([cst.Return(call)])]


def _comments(line: cst.BaseStatement) -> list[cst.EmptyLine]:
    """What is said above a line, without the empty lines before that."""
    lines = list(getattr(line, "leading_lines", ()))
    while lines and lines[0].comment is None:
        del lines[0]
    return lines


def _functions(rw: Rewriter, node: cst.If, found: Branch) -> list[cst.BaseStatement]:
    """Both branches as functions of the names they are handed."""
    ctx = rw.ctx
    ctx.helpers.use("lax")
    test = asked(rw, found.test)
    params = ", ".join(found.given)
    results = ", ".join(found.names)
    lines: list[cst.BaseStatement] = []
    arms: list[str] = []
    other = node.orelse.body if isinstance(node.orelse, cst.Else) else None
    for hint, body in (("then", node.body), ("otherwise", other)):
        if body is None:
            whole = results if len(found.names) == 1 else f"({results})"
            arms.append(f"lambda {params}: {whole}" if params else f"lambda: {whole}")
            continue
        name = ctx.unused(hint)
        made = syntax.statement(f"def {name}({params}):\n    return {results}\n")
        assert isinstance(made, cst.FunctionDef)
        block = rw.block(body)
        assert isinstance(block, cst.IndentedBlock)
        inner = [*block.body, *made.body.body]
        lines.append(syntax.changed(made, body=syntax.changed(block, body=inner)))
        arms.append(name)
    targets = [cst.Name(name) for name in found.names]
    target = targets[0] if len(targets) == 1 else make_tuple(targets, parens=False)
    call = cst.Call(syntax.parse("lax.cond"))
    given = [test, *map(syntax.parse, arms), *map(cst.Name, found.given)]
    call = syntax.with_args(call, [cst.Arg(one) for one in given])
    assign = cst.Assign([cst.AssignTarget(target)], call)
    return [*lines, cst.SimpleStatementLine([assign])]

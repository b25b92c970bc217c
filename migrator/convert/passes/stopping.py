"""``for i in range(n): …; if change < tol: break`` → ``(x,) = until(step, range(n), x)``.

Python cannot leave a loop by what is not known while JAX traces. The round becomes a function of the names that it hands
on to the next, and to what comes after the loop; the rounds after the last compute nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.bound_before import bound_before, read_outside, writes_own
from migrator.convert.context import Context
from migrator.convert.expand import make_tuple
from migrator.convert.only_arithmetic import only_arithmetic
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.same_shapes import ELEMENTWISE
from migrator.convert.tensor_tests import asked, is_pure, is_test, parts, read_number
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_GROWING = frozenset(
    "cat concat concatenate stack hstack vstack dstack column_stack pad repeat tile repeat_interleave t transpose permute "
    "unsqueeze squeeze kron outer append".split()
)
"""What may give the state of a loop another shape in each round."""
Bound = tuple[str, cst.CSTNode, k.Kind]
"""A name, the statement's value or the statement itself where it adds to the name, and what the name holds then."""


@dataclass
class Stop:
    """A loop that ends by the value of a tensor.

    Attributes:
      place: which statement of the loop asks.
      test, settled: what is asked of a tensor, and of Python before that.
      state: the names that a round hands on.
      given: those of them that have a value before the loop.
      kept: those of them that are given a value after the test.
    """

    place: int
    test: cst.BaseExpression
    settled: cst.BaseExpression | None
    state: list[str]
    given: set[str]
    kept: list[str]


def stops(ctx: Context) -> dict[cst.CSTNode, Stop]:
    """The loops of a file that can be converted, by their ``for``; what was said against them is taken back."""
    if ctx.stops is None:
        ctx.stops = {}
        tree = ctx.facts.tree
        for part in [n for n, why in ctx.blocked.items() if why[0] in ("DYN002", "DYN004")]:
            around = tree.around(part) if tree.has(part) else ()
            loop = next((n for n in reversed(around) if isinstance(n, (cst.For, cst.While))), None)
            if not isinstance(loop, cst.For) or loop in ctx.stops:
                continue
            found = _planned(ctx, loop)
            if found is not None:
                ctx.stops[loop] = found
                asks = loop.body.body[found.place]
                for one in [n for n in ctx.blocked if tree.has(n) and tree.holds(asks, n)]:
                    del ctx.blocked[one]
    return ctx.stops


# --- what can be converted ---------------------------------------------------------------------------------------------


def _planned(ctx: Context, loop: cst.For) -> Stop | None:
    tree = ctx.facts.tree
    around = tree.around(loop)
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    info = ctx.facts.functions.get(function) if function is not None else None
    if info is None or loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock):
        return None
    if not isinstance(loop.target, cst.Name) or not isinstance(loop.iter, cst.Call):
        return None
    if ctx.facts.callee(loop.iter) != "builtins.range" or "enable_grad" in ctx.words:
        return None
    lines = list(loop.body.body)
    places = [n for n, line in enumerate(lines) if _leaves(ctx, loop, line)]
    if len(places) != 1:
        return None
    (place,) = places
    question = lines[place]
    assert isinstance(question, cst.If)
    settled, test = parts(ctx, question)
    if not _may_ask(ctx, loop, question.test, test) or (
        settled is not None and not is_pure(ctx, settled)
    ):
        return None
    first, rest = _bound(ctx, lines[:place]), _bound(ctx, lines[place + 1 :])
    if not first or rest is None:
        return None
    return _with_state(ctx, loop, info, Stop(place, test, settled, [], set(), []), first, rest)


def _leaves(ctx: Context, loop: cst.For, line: cst.BaseStatement) -> bool:
    """``if t: break``, or ``if t: return x`` where ``return x`` comes after the loop."""
    if not isinstance(line, cst.If) or line.orelse is not None:
        return False
    body = [
        one
        for one in line.body.body
        if not isinstance(one, cst.SimpleStatementLine) or not set(one.body) <= ctx.dropped
    ]
    match body:
        case [cst.SimpleStatementLine([cst.Break()])]:
            return True
        case [cst.SimpleStatementLine([cst.Return(value=value)])] if value is not None:
            block = ctx.facts.tree.around(loop)[-1]
            after = list(block.body)[list(block.body).index(loop) + 1 :]
            match after:
                case [cst.SimpleStatementLine([cst.Return(value=last)])] if last is not None:
                    return last.deep_equals(value)
    return False


def _may_ask(
    ctx: Context, loop: cst.For, whole: cst.BaseExpression, test: cst.BaseExpression
) -> bool:
    """Whether nothing else in a loop stands in the way."""
    tree = ctx.facts.tree
    known = read_number(ctx, test)
    read = known[0] if known is not None else None
    for node in ctx.blocked:
        if tree.has(node) and tree.holds(loop, node) and node is not read:
            if ctx.blocked[node][0] != "DYN002" or not tree.holds(whole, node):
                return False
    pure = is_pure(ctx, known[1]) if known is not None else is_pure(ctx, test)
    return pure and is_test(ctx, test, alone=True)


def _bound(ctx: Context, lines: Sequence[cst.BaseStatement]) -> list[Bound] | None:
    """What each statement gives a value, in order; None where one does something else."""
    found: list[Bound] = []
    for line in lines:
        match line:
            case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)]):
                several = isinstance(target, (cst.Tuple, cst.List))
                for one in [e.value for e in target.elements] if several else [target]:  # type: ignore[attr-defined]
                    if not isinstance(one, cst.Name):
                        return None
                    found.append((one.value, value, ctx.facts.kind(one if several else value)))
            case cst.SimpleStatementLine([cst.AugAssign(cst.Name(name) as target) as small]):
                found.append((name, small, ctx.facts.kind(target)))
            case cst.SimpleStatementLine(small) if all(
                isinstance(one, cst.Pass) or one in ctx.dropped for one in small
            ):
                pass
            case _:
                return None
    return found


def _with_state(
    ctx: Context,
    loop: cst.For,
    info: FunctionInfo,
    stop: Stop,
    first: list[Bound],
    rest: list[Bound],
) -> Stop | None:
    before = bound_before(ctx, loop, info)
    own = {p.name.value for p in info.node.params.params}
    bound = list(dict.fromkeys(name for name, _, _ in [*first, *rest]))
    if any(name in before.unclear for name in bound) or _target(loop) in bound:
        return None
    outside, carried = read_outside(ctx, loop, info), _carried(ctx, loop, stop)
    if _target(loop) in outside or not all(is_pure(ctx, value) for _, value, _ in [*first, *rest]):
        return None
    stop.state = [name for name in bound if name in outside or name in carried]
    values: dict[str, list[cst.CSTNode]] = {}
    for name, value, _ in [*first, *rest]:
        values.setdefault(name, []).append(value)
    if any(_grows(ctx, values, name, {name}) for name in stop.state):
        return None
    stop.given = {name for name in stop.state if name in own or name in before.names}
    at_first, late = ({name for name, _, _ in one} for one in (first, rest))
    stop.kept = [name for name in stop.state if name in late]
    for name in stop.state:
        if name not in stop.given and (name in carried or name not in at_first):
            return None
    for name, value, kind in [*first, *rest]:
        known = before.kinds.get(name, k.TENSOR if name in own else k.UNKNOWN)
        if isinstance(value, cst.AugAssign) and isinstance(kind, k.Tensor):
            if not writes_own(ctx, info, before, [(name, value)]):
                return None
        elif name in stop.state and not isinstance(kind, k.Tensor):
            if not _counts(ctx, info, name, value, known):
                return None
        elif name in stop.kept and name not in at_first and not isinstance(known, k.Tensor):
            return None
    return stop if stop.state else None


def _target(loop: cst.For) -> str:
    assert isinstance(loop.target, cst.Name)
    return loop.target.value


def _counts(
    ctx: Context, info: FunctionInfo, name: str, value: cst.CSTNode, before: k.Kind
) -> bool:
    """Whether a round adds to a number of Python that is only computed with: ``rounds += 1``."""
    if not isinstance(value, cst.AugAssign):
        return False
    types = {k.scalar_type(before), k.scalar_type(ctx.facts.kind(value.value))}
    return len(types) == 1 and types < {"int", "float"} and only_arithmetic(ctx, info, name)


def _carried(ctx: Context, loop: cst.For, stop: Stop) -> set[str]:
    """The names that a round reads before it gives them a value."""
    found: set[str] = set()
    bound: set[str] = set()
    for place, line in enumerate(loop.body.body):
        part: cst.CSTNode = line
        if place == stop.place:
            assert isinstance(line, cst.If)
            part = line.test
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        given = isinstance(small, cst.Assign)
        named = small.value if isinstance(small, cst.Assign) else part
        found |= {n.value for n in ctx.facts.tree.within(named, cst.Name)} - bound
        if isinstance(named, cst.Name):
            found |= {named.value} - bound
        if given:
            bound |= set(syntax.names(small.targets[0].target))  # type: ignore[union-attr]
    return found


def _grows(ctx: Context, values: dict[str, list[cst.CSTNode]], name: str, seen: set[str]) -> bool:
    """Whether what a round gives a name may be larger each time, by what the value is as large as."""
    waiting = list(values.get(name, ()))
    while waiting:
        node = waiting.pop()
        match node:
            case cst.Name(value=other) if other not in seen:
                seen.add(other)
                waiting += values.get(other, ())
            case cst.BinaryOperation(left=left, right=right):
                waiting += [left, right]
            case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
                waiting.append(inner)
            case cst.AugAssign():
                pass  # which leaves a tensor as large as it was
            case cst.Attribute(attr=cst.Name("T" | "mT")):
                return True
            case cst.Call(func=func, args=args):
                last = (ctx.facts.callee(node) or "").rpartition(".")[2]
                if last in _GROWING:
                    return True
                if last in ELEMENTWISE:
                    waiting += [one.value for one in args]
                    waiting += [func.value] if isinstance(func, cst.Attribute) else []
    return False


# --- the output --------------------------------------------------------------------------------------------------------


@converts(cst.For, when=lambda ctx: bool(stops(ctx)))
def stopped(rw: Rewriter, node: cst.For) -> Any:
    """The round as a function, and the loop as a call."""
    found = stops(rw.ctx).get(node)
    if found is None:
        return None
    ctx = rw.ctx
    name, rounds = _free(ctx, "step"), rw.visit(node.iter)
    target = _target(node)
    numbered = any(n.value == target for n in ctx.facts.tree.within(node.body, cst.Name))
    params = ", ".join([target] * numbered + found.state)
    assert isinstance(node.body, cst.IndentedBlock)
    lines = list(node.body.body)
    question = lines[found.place]
    with ctx.no_hoisting():
        inner = rw.body(lines[: found.place])
        test = _asked(rw, found)
        rest = rw.body(lines[found.place + 1 :])
    if found.kept:
        stop = _free(ctx, "stop")
        asks = _assign(cst.Name(stop), test)
        inner.append(syntax.changed(asks, leading_lines=question.leading_lines))  # type: ignore[attr-defined]
        inner += _unless(rw, found, stop, rest)
        test = cst.Name(stop)
    result = make_tuple([make_tuple([cst.Name(one) for one in found.state]), test], parens=False)
    inner.append(cst.SimpleStatementLine([cst.Return(result)]))
    made = syntax.statement(f"def {name}({params}):\n    pass\n")
    body = syntax.changed(node.body, body=inner)
    made = syntax.changed(made, body=body, leading_lines=node.leading_lines)
    helper = ctx.helpers.need(
        module_file("rules.compat.stopping"), "until_numbered" if numbered else "until"
    )
    given = [cst.Name(one if one in found.given else "None") for one in found.state]
    call = cst.Call(cst.Name(helper), [cst.Arg(one) for one in (cst.Name(name), rounds, *given)])
    names = [cst.Name(one) for one in found.state]
    target_names = make_tuple(names, parens=len(names) == 1)
    return [made, _assign(target_names, syntax.with_args(call, list(call.args)))]


def _asked(rw: Rewriter, found: Stop) -> cst.BaseExpression:
    """What a round asks, as an array of no axes."""
    test = asked(rw, found.test)
    if found.settled is None:
        return test
    rw.ctx.helpers.use("jnp")
    sides = [syntax.unparenthesized(rw.visit(found.settled)), test]
    both = cst.Call(syntax.parse("jnp.logical_and"))
    return syntax.with_args(both, [cst.Arg(one) for one in sides])


def _unless(
    rw: Rewriter, found: Stop, stop: str, rest: list[cst.BaseStatement]
) -> list[cst.BaseStatement]:
    """What comes after the test, which the last round leaves out."""
    ctx = rw.ctx
    ctx.helpers.use("lax")
    name, params = _free(ctx, "rest"), ", ".join(found.kept)
    made = syntax.statement(f"def {name}({params}):\n    return {params}\n")
    assert isinstance(made, cst.FunctionDef)
    block = syntax.changed(made.body, body=[*rest, *made.body.body])
    whole = params if len(found.kept) == 1 else f"({params})"
    names = [cst.Name(one) for one in found.kept]
    given = [cst.Name(stop), syntax.parse(f"lambda {params}: {whole}"), cst.Name(name), *names]
    call = syntax.with_args(cst.Call(syntax.parse("lax.cond")), [cst.Arg(one) for one in given])
    target = names[0] if len(names) == 1 else make_tuple(names, parens=False)
    return [syntax.changed(made, body=block), _assign(target, call)]


def _free(ctx: Context, name: str) -> str:
    """A name of a function's own, which may be used in several."""
    return ctx.unused(name) if name in ctx.words or name in ctx.helpers.taken else name


def _assign(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)])  # type: ignore[arg-type]

"""``if x.sum() > 0: x = x * 2`` → ``x = lax.cond(x.sum() > 0, lambda: x * 2, lambda: x)``.

Python cannot branch on what is not known while JAX traces. ``lax.cond`` runs one of two functions, and its gradient is
that of the one that ran. Both must give arrays of the same shapes and types: a branch is converted where that is plain
to see, and where it does nothing but give names new values, or return one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.bound_before import bound_before, read_outside, writes_own
from migrator.convert.context import Context, Failure
from migrator.convert.expand import make_tuple
from migrator.convert.passes.skipping import HOOKS, pure_call
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.same_shapes import LAYERS_AS_LARGE, NUMBER, Shapes, meet
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.line_breaks import on_one_line
from rules import definitions

_DRAWS = frozenset(
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu gumbel_softmax multinomial "
    "bernoulli poisson normal rand randn randint rand_like randn_like randint_like randperm "
    "scaled_dot_product_attention multi_head_attention_forward".split()
)
_OPAQUE = (
    cst.Lambda,
    cst.NamedExpr,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
    cst.Await,
    cst.Yield,
    cst.StarredElement,
    cst.StarredDictElement,
)


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
    settled, test = _parts(ctx, node)
    known = _read(ctx, test)
    read = known[0] if known is not None else None
    if any(ctx.blocked[n][0] != "DYN002" and n is not read for n in inner):
        return None
    if not _is_test(ctx, test, alone=True):
        return None
    if any(isinstance(one, cst.Lambda | cst.ListComp | cst.GeneratorExp) for one in around):
        return None
    if isinstance(node, cst.IfExp):
        shapes = Shapes(ctx)
        alike = _alike(ctx, shapes, node.body, shapes, node.orelse)
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


def _parts(
    ctx: Context, node: cst.If | cst.IfExp
) -> tuple[cst.BaseExpression | None, cst.BaseExpression]:
    """What is asked of Python first, and of a tensor then, of ``if self.training and torch.rand(1) < p:``."""
    test = node.test
    plain = isinstance(node, cst.If) and node.orelse is None
    if plain and isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        if k.scalar_type(ctx.facts.kind(test.left)) == "bool":
            return test.left, test.right
    return None, test


def _read(
    ctx: Context, test: cst.BaseExpression
) -> tuple[cst.Call, cst.BaseExpression, str, cst.BaseExpression] | None:
    """``x.item()``, the tensor, the operator and the number of ``x.item() > 3``, which is the same of the tensor.

    Python compares in double precision: a number that float32 has not is another there. Only of what is drawn does
    that make no difference.
    """
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    call, (told,) = test.left, test.comparisons
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "Tensor.item" or call.args:
        return None
    tensor, number = call.func.value, told.comparator  # type: ignore[attr-defined]
    if not isinstance(told.operator, _ORDERING):
        return None
    known = ctx.facts.kind(number)
    exact = k.scalar_type(known) == "int"
    if isinstance(number, cst.Integer | cst.Float):
        exact = _is_short(syntax.literal(number))
    chance = _draws(ctx, tensor) and not isinstance(known, k.Tensor) and _is_pure(ctx, number)
    return (call, tensor, told.operator._get_token(), number) if exact or chance else None


_ORDERING = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.Equal)


def _is_short(value: float) -> bool:
    """Whether float32 has a number."""
    if abs(value) > 2**64:
        return False
    return struct.unpack("f", struct.pack("f", value))[0] == value


def _draws(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is a draw from a continuous range: ``torch.rand(1)``."""
    drawn = isinstance(node, cst.Call) and ctx.facts.callee(node) in ("torch.rand", "torch.randn")
    return drawn and _is_pure(ctx, node, draws=True)


def _switches_gradients(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function says that something has no gradient, which is then said where a value is assigned."""
    words = {n.value for n in ctx.facts.tree.within(info.node, cst.Name)}
    return not words.isdisjoint(_SWITCHES)


_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"})


def _is_test(ctx: Context, test: cst.BaseExpression, alone: bool = False) -> bool:
    """Whether a test is a tensor, or made of some by ``and``, ``or`` and ``not``, that changes nothing.

    What is drawn for it is drawn whatever another part says: it must stand ``alone``. A name for ``first and mask.any()`` is none: it may hold what comes first, whatever that is."""
    if isinstance(test, cst.BooleanOperation):
        return _is_test(ctx, test.left) and _is_test(ctx, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_test(ctx, test.expression, alone)
    if isinstance(test, cst.Comparison) and len(test.comparisons) > 1:
        return False  # `a < x < b` is `a < x and x < b`: Python asks for the truth of the first
    if alone and (read := _read(ctx, test)) is not None:
        return _is_pure(ctx, read[1], draws=True)
    kind = ctx.facts.kind(test)
    if isinstance(test, cst.Name) and _is_one_of_several(ctx, test):
        return False
    return (
        isinstance(kind, k.Tensor) and kind.dtype in (None, "bool") and _is_pure(ctx, test, alone)
    )


def _is_one_of_several(ctx: Context, name: cst.Name) -> bool:
    """Whether a name may hold one part of an ``and``, an ``or`` or a choice."""
    tree = ctx.facts.tree
    function = next(n for n in reversed(tree.around(name)) if isinstance(n, cst.FunctionDef))
    for assign in tree.within(function, cst.Assign, cst.AnnAssign, cst.NamedExpr):
        choice = isinstance(assign.value, cst.BooleanOperation | cst.IfExp)
        if choice and name.value in syntax.names(assign):
            return True
    return False


def _is_pure(
    ctx: Context, node: cst.CSTNode, draws: bool = False, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether an expression does nothing but compute, and draws nothing unless it may."""
    for one in syntax.walk(node):
        if isinstance(one, _OPAQUE):
            return False
        if isinstance(one, cst.Call):
            name = ctx.facts.callee(one) or ""
            last = name.rpartition(".")[2].removesuffix("()")
            if draws and name in _DRAWN:
                continue
            drawn = last in _DRAWS or any(rule.draws for rule in definitions.ops(name))
            kind = ctx.kind(one.func)
            if isinstance(kind, k.Module) and not _draws_nothing(ctx, kind, seen):
                return False
            if drawn or not pure_call(ctx, one, set()):
                return False
    return True


_DRAWN = frozenset(f"torch.{name}" for name in "rand randn randint bernoulli rand_like".split())
"""What may be drawn for a test: it changes nothing but the generator."""


_AFFINE = frozenset({"torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})


def _draws_nothing(ctx: Context, kind: k.Module, seen: frozenset[str]) -> bool:
    """Whether a module has no dropout, which would draw where nobody asks for it, nor anything that is not known."""
    sequential = kind.cls == "torch.nn.Sequential"
    parts = [one for _, one in kind.args] if sequential else kind.among
    if parts or sequential:
        known = (isinstance(one, k.Module) and _draws_nothing(ctx, one, seen) for one in parts)
        return bool(parts) and all(known)
    info = ctx.facts.classes.get(kind.cls)
    forward = info.method("forward") if info is not None else None
    if forward is None or kind.cls in seen:
        affine = kind.cls in _AFFINE and ctx.words.isdisjoint(HOOKS - {"weight_norm"})
        return affine or kind.cls in LAYERS_AS_LARGE
    return _is_pure(ctx, forward.node.body, seen=seen | {kind.cls})


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
    if not all(_is_pure(ctx, value) for _, value in assigned):
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
    if not all(_is_pure(ctx, value) for _, value in [*then, *other]):
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
        if shape is None or shape == NUMBER or shape != second.named(name):
            return None
        if not first.types_meet(name, second, before.kinds):
            return None
    branch = Branch(names=names, given=given)
    plain = not any(isinstance(value, cst.AugAssign) for _, value in [*then, *other])
    if plain and len(then) == 1 and len(other) <= 1 and len(bound) == 1:
        branch.then = _small_of(ctx, node.body)
        branch.other = _small_of(ctx, node.orelse.body) if other else cst.Name(names[0])  # type: ignore[union-attr]
    return branch


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
    if not (_is_pure(ctx, one) and _is_pure(ctx, other)):
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
    given: list[cst.BaseExpression] = [_asked(rw, test)]
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


def _asked(rw: Rewriter, test: cst.BaseExpression) -> cst.BaseExpression:
    """The test as an array of no axes; torch asks the truth of any tensor of one element."""
    if isinstance(test, cst.BooleanOperation):
        name = "logical_and" if isinstance(test.operator, cst.And) else "logical_or"
        sides = [_asked(rw, test.left), _asked(rw, test.right)]
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        name, sides = "logical_not", [_asked(rw, test.expression)]
    elif (read := _read(rw.ctx, test)) is not None:
        _, tensor, operator, number = read
        rw.ctx.helpers.use("jnp")
        mapping = {"__tensor__": rw.visit(tensor), "__number__": rw.visit(number)}
        kind = rw.ctx.facts.kind(tensor)
        small = isinstance(number, cst.Integer) and len(number.value) < 3  # any type has it
        whole_number = isinstance(kind, k.Tensor) and kind.dtype in ("int", "bool")
        # a half would be compared with what is left of the number in half precision
        wide = "" if small or whole_number else ".astype(jnp.float32)"
        whole = syntax.parse(f"jnp.reshape(__tensor__, ()){wide} {operator} __number__")
        return syntax.substitute(whole, mapping)
    else:
        kind = rw.ctx.facts.kind(test)
        made = syntax.unparenthesized(rw.visit(test))
        if isinstance(kind, k.Tensor) and kind.rank == 0 and kind.dtype == "bool":
            return made
        rw.ctx.helpers.use("jnp")
        whole = syntax.parse("jnp.reshape(__test__, ())")
        if not isinstance(kind, k.Tensor) or kind.dtype != "bool":
            whole = syntax.parse("jnp.reshape(__test__, ()) != 0")
        return syntax.substitute(whole, {"__test__": made})
    rw.ctx.helpers.use("jnp")
    call = cst.Call(syntax.parse(f"jnp.{name}"))
    return syntax.with_args(call, [cst.Arg(one) for one in sides])


def _returns(rw: Rewriter, found: Branch) -> list[cst.BaseStatement]:
    """What comes after an ``if`` that returns, as a function of the names that it gives other values."""
    ctx = rw.ctx
    ctx.helpers.use("lax")
    assert isinstance(found.then, cst.Return)
    assert found.then.value is not None
    asked, params = _asked(rw, found.test), ", ".join(found.given)
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
    given = [asked, syntax.changed(first, body=value), cst.Name(name), *map(cst.Name, found.given)]
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
    asked = _asked(rw, found.test)
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
    given = [asked, *map(syntax.parse, arms), *map(cst.Name, found.given)]
    call = syntax.with_args(call, [cst.Arg(one) for one in given])
    assign = cst.Assign([cst.AssignTarget(target)], call)
    return [*lines, cst.SimpleStatementLine([assign])]

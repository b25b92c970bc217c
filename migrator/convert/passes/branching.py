"""``if x.sum() > 0: x = x * 2`` → ``x = lax.cond(x.sum() > 0, lambda: x * 2, lambda: x)``.

Python cannot branch on what is not known while JAX traces. ``lax.cond`` runs one of two functions, and its gradient is
that of the one that ran. Both must give arrays of the same shapes and types: a branch is converted where that is plain
to see, and where it does nothing but give names new values, or return one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.expand import make_tuple
from migrator.convert.passes.skipping import pure_call
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.line_breaks import on_one_line
from rules import definitions

_ELEMENTWISE = frozenset(
    "abs neg exp exp2 log log2 log1p log10 sqrt rsqrt relu relu6 sigmoid tanh sin cos tan erf floor ceil round trunc sign "
    "clamp clip clamp_min clamp_max square pow reciprocal softmax log_softmax gelu silu elu leaky_relu softplus mish "
    "masked_fill where add sub subtract mul multiply div divide true_divide maximum minimum fmod remainder nan_to_num "
    "float double long int bool to type_as clone detach contiguous zeros_like ones_like full_like normalize flip roll "
    "cumsum cumprod logical_not isnan lerp".split()
)
"""Functions of torch, and methods, whose result is as large as their arguments together."""
_LIKE_FIRST = frozenset(
    "zeros_like ones_like full_like normalize softmax log_softmax flip roll cumsum cumprod to type_as".split()
)
"""Those whose result is as large as the first alone."""
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in "ReLU ReLU6 GELU SiLU Sigmoid Tanh LeakyReLU ELU Mish Hardswish Softplus Softmax LayerNorm RMSNorm "
    "GroupNorm Identity".split()
)
"""Layers whose output is as large as their input."""
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
Shape = tuple[str, ...]
_NUMBER: Shape = ("number",)
_SCALAR: Shape = ("scalar",)


@dataclass
class Branch:
    """What becomes of an ``if``: the names it gives values, or what both ways return.

    Attributes:
      names: what is read later, in the order of the source.
      given: those names that have a value before, which the branches are handed.
      then, other: the assignment, return or expression that a branch is; None where it has several lines.
      returned: the return that comes after an ``if`` that returns.
    """

    names: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    then: cst.CSTNode | None = None
    other: cst.CSTNode | None = None
    returns: bool = False
    returned: cst.Return | None = None


def branches(ctx: Context) -> dict[cst.CSTNode, Branch]:
    """The branches on a tensor that can be converted, by their node; what was said against them is taken back."""
    if ctx.branches is None:
        ctx.branches = {}
        wanted = [node for node, why in ctx.blocked.items() if why[0] == "DYN002"]
        for test in wanted:
            around = ctx.facts.tree.around(test) if ctx.facts.tree.has(test) else ()
            node = around[-1] if around else None
            if not isinstance(node, cst.If | cst.IfExp) or node.test is not test:
                continue
            found = _planned(ctx, node, around)
            if found is not None:
                ctx.branches[node] = found
                for one in [n for n in ctx.blocked if ctx.facts.tree.holds(test, n) or n is test]:
                    del ctx.blocked[one]
                if found.returned is not None:
                    ctx.facts.dead.append(_line_of(ctx, found.returned))
    return ctx.branches


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
    if any(ctx.blocked[n][0] != "DYN002" for n in inner) or not _is_test(ctx, node.test):
        return None
    if any(isinstance(one, cst.Lambda | cst.ListComp | cst.GeneratorExp) for one in around):
        return None
    if isinstance(node, cst.IfExp):
        shapes = _Shapes(ctx)
        alike = _alike(ctx, shapes, node.body, shapes, node.orelse)
        return Branch(then=node.body, other=node.orelse) if alike else None
    parent = around[-2] if len(around) > 1 else None
    if isinstance(parent, cst.If) or not isinstance(node.body, cst.IndentedBlock):
        return None  # an elif
    if node.orelse is not None and not isinstance(node.orelse, cst.Else):
        return None
    return _returning(ctx, node, parent) or _assigning(ctx, node, info, parent)


def _switches_gradients(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function says that something has no gradient, which is then said where a value is assigned."""
    words = {n.value for n in ctx.facts.tree.within(info.node, cst.Name)}
    return not words.isdisjoint(_SWITCHES)


_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "enable_grad"})


def _is_test(ctx: Context, test: cst.BaseExpression) -> bool:
    """Whether a test is a tensor, or made of some by ``and``, ``or`` and ``not``, that changes nothing.

    A name for ``first and mask.any()`` is none: it may hold what comes first, whatever that is."""
    if isinstance(test, cst.BooleanOperation):
        return _is_test(ctx, test.left) and _is_test(ctx, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_test(ctx, test.expression)
    kind = ctx.facts.kind(test)
    if isinstance(test, cst.Name) and _is_one_of_several(ctx, test):
        return False
    return isinstance(kind, k.Tensor) and kind.dtype in (None, "bool") and _is_pure(ctx, test)


def _is_one_of_several(ctx: Context, name: cst.Name) -> bool:
    """Whether a name may hold one part of an ``and``, an ``or`` or a choice."""
    tree = ctx.facts.tree
    function = next(n for n in reversed(tree.around(name)) if isinstance(n, cst.FunctionDef))
    for assign in tree.within(function, cst.Assign, cst.AnnAssign, cst.NamedExpr):
        choice = isinstance(assign.value, cst.BooleanOperation | cst.IfExp)
        if choice and name.value in syntax.names(assign):
            return True
    return False


def _is_pure(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression does nothing but compute, and draws nothing."""
    for one in syntax.walk(node):
        if isinstance(one, _OPAQUE):
            return False
        if isinstance(one, cst.Call):
            name = ctx.facts.callee(one) or ""
            last = name.rpartition(".")[2].removesuffix("()")
            draws = last in _DRAWS or any(rule.draws for rule in definitions.ops(name))
            kind = ctx.kind(one.func)
            if isinstance(kind, k.Module) and kind.cls not in _LAYERS and not _is_affine(kind):
                return False
            if draws or not pure_call(ctx, one, set()):
                return False
    return True


_AFFINE = frozenset({"torch.nn.Linear", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d"})


def _is_affine(kind: k.Module) -> bool:
    return kind.cls in _AFFINE


def _returning(ctx: Context, node: cst.If, parent: Any) -> Branch | None:
    """``if t: return a`` before ``return b``, or with it under ``else``."""
    then = _only_return(node.body)
    if then is None or then.value is None:
        return None
    last: cst.Return | None
    if node.orelse is not None:
        last = _only_return(node.orelse.body)
    else:
        rest = list(parent.body[parent.body.index(node) + 1 :]) if hasattr(parent, "body") else []
        last = _return_of(rest[0]) if len(rest) == 1 else None
    if last is None or last.value is None:
        return None
    shapes = _Shapes(ctx)
    if not _alike(ctx, shapes, then.value, shapes, last.value):
        return None
    after = last if node.orelse is None else None
    return Branch(then=then, other=last, returns=True, returned=after)


def _only_return(body: cst.BaseSuite) -> cst.Return | None:
    return _return_of(body.body[0]) if len(body.body) == 1 else None


def _return_of(line: Any) -> cst.Return | None:
    only = (
        line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    )
    return only if isinstance(only, cst.Return) else None


def _assigning(ctx: Context, node: cst.If, info: FunctionInfo, parent: Any) -> Branch | None:
    """Branches of assignments to names."""
    then = _assignments(node.body)
    other = _assignments(node.orelse.body) if node.orelse is not None else []
    if not then or other is None:
        return None
    if not all(_is_pure(ctx, value) for _, value in [*then, *other]):
        return None
    bound = list(dict.fromkeys(name for name, _ in [*then, *other]))
    read = _read_outside(ctx, node, info)
    names = [name for name in bound if name in read]
    before = _bound_before(ctx, node, info)
    if not names or any(name in before.unclear for name in bound):
        return None
    own = {p.name.value for p in info.node.params.params}
    given = [name for name in bound if name in own or name in before.names]
    everywhere = {name for name, _ in then} & {name for name, _ in other}
    if any(name not in given and name not in everywhere for name in names):
        return None
    first, second = (_Shapes(ctx, before.kinds).after(one) for one in (then, other))
    for name in names:
        shape = first.named(name)
        if shape is None or shape == _NUMBER or shape != second.named(name):
            return None
        if not first.types_meet(name, second, before.kinds):
            return None
    branch = Branch(names=names, given=given)
    if len(then) == 1 and len(other) <= 1 and len(bound) == 1:
        branch.then = _small_of(node.body)
        branch.other = _small_of(node.orelse.body) if other else cst.Name(names[0])  # type: ignore[union-attr]
    return branch


def _read_outside(ctx: Context, node: cst.If, info: FunctionInfo) -> set[str]:
    """The names that a function reads elsewhere than in a statement."""
    tree = ctx.facts.tree
    inside = {id(n) for n in tree.within(node, cst.Name)}
    found = set()
    for name in tree.within(info.node, cst.Name):
        parent = tree.around(name)[-1]
        bound = isinstance(parent, cst.Param) and parent.name is name
        bound |= isinstance(parent, cst.AssignTarget) and parent.target is name
        if not bound and id(name) not in inside:
            found.add(name.value)
    return found


def _small_of(body: cst.BaseSuite) -> cst.CSTNode:
    line = body.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]


def _assignments(body: cst.BaseSuite) -> list[tuple[str, cst.BaseExpression]] | None:
    """Name and value of each statement, ``x += y`` as a sum; None where there is something else."""
    found: list[tuple[str, cst.BaseExpression]] = []
    for line in body.body:
        match line:
            case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)]):
                found.append((name, value))
            case cst.SimpleStatementLine([cst.Pass()]):
                pass
            case _:
                return None
    return found


@dataclass
class _Before:
    """What is bound before a statement: surely, or perhaps."""

    names: set[str] = field(default_factory=set)
    kinds: dict[str, k.Kind] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)


def _bound_before(ctx: Context, node: cst.CSTNode, info: FunctionInfo) -> _Before:
    """The names that statements above have surely given a value; a name that something else binds is unclear."""
    tree, found = ctx.facts.tree, _Before()
    for inner, outer in pairwise([node, *reversed(tree.around(node))]):
        if outer is info.node:
            break
        for line in outer.body if isinstance(outer, cst.IndentedBlock) else ():
            if line is inner:
                break
            match line:
                case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)]):
                    several = isinstance(target, cst.Tuple | cst.List)
                    for one in [e.value for e in target.elements] if several else [target]:  # type: ignore[attr-defined]
                        if isinstance(one, cst.Name):
                            found.names.add(one.value)
                            found.kinds[one.value] = ctx.facts.kind(one if several else value)
    for declared in tree.within(info.node.body, cst.Global, cst.Nonlocal):
        found.unclear |= {item.name.value for item in declared.names}
    for inside in tree.within(info.node.body, cst.FunctionDef, cst.Lambda):
        found.unclear |= {
            n.value for n in tree.within(inside, cst.Name)
        }  # they must keep their names
    return found


# --- shapes ------------------------------------------------------------------------------------------------------------


class _Shapes:
    """How large what an expression gives is, told by what it is as large as."""

    def __init__(self, ctx: Context, before: dict[str, k.Kind] | None = None) -> None:
        self.ctx = ctx
        self.before = before or {}
        self.env: dict[str, tuple[Shape | None, k.Kind]] = {}

    def after(self, assignments: Sequence[tuple[str, cst.BaseExpression]]) -> _Shapes:
        """The names after some assignments."""
        for name, value in assignments:
            self.env[name] = self.of(value), self.ctx.facts.kind(value)
        return self

    def named(self, name: str) -> Shape | None:
        """The shape of what a name holds."""
        if name in self.env:
            return self.env[name][0]
        kind = self.before.get(name)
        return _SCALAR if isinstance(kind, k.Tensor) and kind.rank == 0 else ("name", name)

    def types_meet(self, name: str, other: _Shapes, before: dict[str, k.Kind]) -> bool:
        """Whether a name holds a tensor of one type after both branches."""
        kinds = [
            one.env[name][1] if name in one.env else before.get(name, k.TENSOR)
            for one in (self, other)
        ]
        return _meet(*kinds)

    def of(self, node: cst.BaseExpression) -> Shape | None:
        """The shape of an expression; None where it is not known."""
        kind = self.ctx.facts.kind(node)
        if isinstance(node, cst.Name) and node.value in self.env:
            return self.env[node.value][0]
        if k.scalar_type(kind) in ("int", "float", "number"):
            return _NUMBER
        if isinstance(kind, k.Tensor) and kind.rank == 0:
            return _SCALAR
        if isinstance(node, cst.Name):
            return ("name", node.value) if isinstance(kind, k.Tensor) else None
        found = self._computed(node)
        if found is not None or not isinstance(kind, k.Tensor):
            return found
        known = self.env.keys() & syntax.names(node).keys()
        return None if known else ("code", syntax.code(syntax.unparenthesized(node)))

    def _computed(self, node: cst.BaseExpression) -> Shape | None:
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.MatrixMultiply):
                return None
            return _together([self.of(node.left), self.of(node.right)])
        if isinstance(node, cst.UnaryOperation):
            return self.of(node.expression)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return _together([self.of(node.left), self.of(node.comparisons[0].comparator)])
        return self._called(node) if isinstance(node, cst.Call) else None

    def _called(self, node: cst.Call) -> Shape | None:
        kind, name = self.ctx.kind(node.func), self.ctx.facts.callee(node) or ""
        if isinstance(kind, k.Module):
            layer = kind.cls in _LAYERS and len(node.args) == 1
            return self.of(node.args[0].value) if layer else None
        last = name.rpartition(".")[2]
        if last not in _ELEMENTWISE or not name.startswith(("torch.", "Tensor.")):
            return None
        given = [a.value for a in node.args]
        if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
            given = [node.func.value, *given]
        if not given:
            return None
        return self.of(given[0]) if last in _LIKE_FIRST else _together([self.of(a) for a in given])


def _together(shapes: Sequence[Shape | None]) -> Shape | None:
    """The shape of what is computed element by element; numbers are as large as anything."""
    if None in shapes:
        return None
    whole = {one for one in shapes if one not in (_NUMBER, _SCALAR)}
    if not whole:
        return _SCALAR if _SCALAR in shapes else _NUMBER
    return whole.pop() if len(whole) == 1 else None


def _meet(one: k.Kind, other: k.Kind) -> bool:
    """Whether two kinds are of tensors of one type."""
    if not isinstance(one, k.Tensor) or not isinstance(other, k.Tensor):
        return False
    return one.dtype == other.dtype or {one.dtype, other.dtype} == {None, "float"}


def _alike(
    ctx: Context,
    first: _Shapes,
    one: cst.BaseExpression,
    second: _Shapes,
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
    if shape is None or shape == _NUMBER or shape != second.of(other):
        return False
    return _meet(ctx.facts.kind(one), ctx.facts.kind(other))


# --- the output --------------------------------------------------------------------------------------------------------


@converts(cst.IfExp, when=lambda ctx: bool(branches(ctx)))
def chosen(rw: Rewriter, node: cst.IfExp) -> Any:
    """``a if x.sum() > 0 else b``."""
    found = branches(rw.ctx).get(node)
    return _cond(rw, node.test, found) if found is not None else None


@converts(cst.If, when=lambda ctx: bool(branches(ctx)))
def branched(rw: Rewriter, node: cst.If) -> Any:
    """An ``if`` that gives names new values, or returns."""
    found = branches(rw.ctx).get(node)
    if found is None:
        return None
    if found.then is None:
        return _functions(rw, node, found)
    value = _cond(rw, node.test, found)
    made: cst.BaseSmallStatement = cst.Return(value)
    if not found.returns:
        made = cst.Assign([cst.AssignTarget(cst.Name(found.names[0]))], value)
    return cst.SimpleStatementLine([made], leading_lines=node.leading_lines)


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


def _functions(rw: Rewriter, node: cst.If, found: Branch) -> list[cst.BaseStatement]:
    """Both branches as functions of the names they are handed."""
    ctx = rw.ctx
    ctx.helpers.use("lax")
    asked = _asked(rw, node.test)
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
    lines.append(cst.SimpleStatementLine([assign]))
    lines[0] = syntax.changed(lines[0], leading_lines=node.leading_lines)
    return lines

"""What is asked of a tensor: whether it may be asked again or earlier, and how JAX asks it."""

from __future__ import annotations

import struct

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes.skipping import HOOKS, pure_call
from migrator.convert.rewriter import Rewriter
from migrator.convert.same_shapes import LAYERS_AS_LARGE
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

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


def parts(
    ctx: Context, node: cst.If | cst.IfExp
) -> tuple[cst.BaseExpression | None, cst.BaseExpression]:
    """What is asked of Python first, and of a tensor then, of ``if self.training and torch.rand(1) < p:``."""
    test = node.test
    plain = isinstance(node, cst.If) and node.orelse is None
    if plain and isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        if k.scalar_type(ctx.facts.kind(test.left)) == "bool":
            return test.left, test.right
    return None, test


def read_number(
    ctx: Context, test: cst.BaseExpression
) -> tuple[cst.Call, cst.BaseExpression, str, cst.BaseExpression] | None:
    """``x.item()``, the tensor, the operator and the number of ``x.item() > 3``, which is the same of the tensor.

    Python compares in double precision: a number that float32 has not is another there, and stands for the next that
    it has (``_next``). What is drawn is compared as it is.
    """
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    call, (told,) = test.left, test.comparisons
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "Tensor.item" or call.args:
        return None
    tensor, number = call.func.value, told.comparator  # type: ignore[attr-defined]
    if not isinstance(told.operator, _ORDERING):
        return None
    if isinstance(told.operator, cst.Equal):
        exact = _is_exact(ctx, number)
    else:
        exact = k.scalar_type(ctx.facts.kind(number)) in ("int", "float", "number")
    chance = _draws(ctx, tensor) and not isinstance(ctx.facts.kind(number), k.Tensor)
    found = (call, tensor, told.operator._get_token(), number)
    return found if (exact or chance) and is_pure(ctx, number) else None


def _is_exact(ctx: Context, number: cst.BaseExpression) -> bool:
    """Whether float32 has a number, as far as is known: whoever writes integers means no more than it has."""
    if isinstance(number, cst.Integer | cst.Float):
        return _is_short(syntax.literal(number))
    return k.scalar_type(ctx.facts.kind(number)) == "int"


_NEXT = {"<": "not_below", ">=": "not_below", ">": "not_above", "<=": "not_above"}


_ORDERING = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.Equal)


def _is_short(value: float) -> bool:
    """Whether float32 has a number."""
    if abs(value) > 2**64:
        return False
    return struct.unpack("f", struct.pack("f", value))[0] == value


def _draws(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is a draw from a continuous range: ``torch.rand(1)``."""
    drawn = isinstance(node, cst.Call) and ctx.facts.callee(node) in ("torch.rand", "torch.randn")
    return drawn and is_pure(ctx, node, draws=True)


def is_test(ctx: Context, test: cst.BaseExpression, alone: bool = False) -> bool:
    """Whether a test is a tensor, or made of some by ``and``, ``or`` and ``not``, that changes nothing.

    What is drawn for it is drawn whatever another part says: it must stand ``alone``. A name for ``first and mask.any()`` is none: it may hold what comes first, whatever that is."""
    if isinstance(test, cst.BooleanOperation):
        return is_test(ctx, test.left) and is_test(ctx, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return is_test(ctx, test.expression, alone)
    if isinstance(test, cst.Comparison) and len(test.comparisons) > 1:
        return False  # `a < x < b` is `a < x and x < b`: Python asks for the truth of the first
    if alone and (read := read_number(ctx, test)) is not None:
        return is_pure(ctx, read[1], draws=True)
    kind = ctx.facts.kind(test)
    if isinstance(test, cst.Name) and _is_one_of_several(ctx, test):
        return False
    return isinstance(kind, k.Tensor) and kind.dtype in (None, "bool") and is_pure(ctx, test, alone)


def _is_one_of_several(ctx: Context, name: cst.Name) -> bool:
    """Whether a name may hold one part of an ``and``, an ``or`` or a choice."""
    tree = ctx.facts.tree
    function = next(n for n in reversed(tree.around(name)) if isinstance(n, cst.FunctionDef))
    for assign in tree.within(function, cst.Assign, cst.AnnAssign, cst.NamedExpr):
        choice = isinstance(assign.value, cst.BooleanOperation | cst.IfExp)
        if choice and name.value in syntax.names(assign):
            return True
    return False


def is_pure(
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
    return is_pure(ctx, forward.node.body, seen=seen | {kind.cls})


def asked(rw: Rewriter, test: cst.BaseExpression) -> cst.BaseExpression:
    """The test as an array of no axes; torch asks the truth of any tensor of one element."""
    if isinstance(test, cst.BooleanOperation):
        name = "logical_and" if isinstance(test.operator, cst.And) else "logical_or"
        sides = [asked(rw, test.left), asked(rw, test.right)]
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        name, sides = "logical_not", [asked(rw, test.expression)]
    elif (read := read_number(rw.ctx, test)) is not None:
        _, tensor, operator, number = read
        rw.ctx.helpers.use("jnp")
        compared = rw.visit(number)
        if not _is_exact(rw.ctx, number) and not _draws(rw.ctx, tensor):
            helper = rw.ctx.helpers.need(module_file("rules.compat.numbers"), _NEXT[operator])
            compared = syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(compared)])
        mapping = {"__tensor__": rw.visit(tensor), "__number__": compared}
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

"""DYN002, DYN004 and TRC011: Python asks for the value of a tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from migrator.infer.kinds import scalar_type
from rules.below import children, walk
from rules.flags import _lines as lines
from rules.flags._asked import asks_number, asks_order, asks_truth, holds_tensors
from rules.flags._first import stands_in, start, starts
from rules.flags._guards import guards, is_guard, last_test
from rules.flags._messages import depends, is_check, is_message
from rules.flags._numbers import chosen, counts_up, only_computed_with, places
from rules.registry import Advice, FlagContext, flag

_TRUTH = frozenset(
    [
        "torch.equal",
        "torch.allclose",
        "torch.is_nonzero",
        "Tensor.equal",
        "Tensor.allclose",
        "Tensor.is_nonzero",
    ]
)
"""Functions of tensors that return a Python bool."""
_AUTOGRAD = ("requires_grad", "is_leaf")
_TIGHT = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)


# --- truth ---------------------------------------------------------------------------------------------


@flag(
    "DYN002",
    "branch-on-tensor",
    cst.If,
    cst.While,
    cst.IfExp,
    cst.CompIf,
    cst.BooleanOperation,
    cst.UnaryOperation,
    cst.Call,
    cst.Comparison,
    what="Python branches on the value of a tensor",
    why="While JAX traces a function no value is known, so Python cannot choose a branch by one. Code that runs on the "
    "host may: [what counts as such](index.md#code-that-is-not-traced). Of a branch whose two ways surely give arrays of "
    "the same shapes and types, as `x = x * 2` does under an `if`, `convert` makes `lax.cond`, and `analyze` has a note. One "
    "that goes by a buffer and changes nothing but the module's state, `if self.steps == 0: self.mean.copy_(m)`, becomes "
    "`nnx.cond` over the module. A layer that a loop leaves out by a draw in training (LayerDrop) is computed in any case "
    "where it changes nothing but what it returns, and its result is taken or not. A loop over a range that a tensor ends, "
    "`if change < tol: break`, becomes a call of its round, where that computes tensors of the same shapes.",
    example="def chosen(x: torch.Tensor, y: torch.Tensor):\n    if x.sum() > 0:\n        x = y\n    return x",
    instead="def chosen(x: torch.Tensor, y: torch.Tensor):\n    return torch.where(x.sum() > 0, y, x)",
)
def branch(node: Any, ctx: FlagContext) -> Advice | str | None:
    """Tests, ``and``/``or``/``not``, ``bool()``, ``all()``, ``in``, ``min()`` and ``max()`` of tensors."""
    if type(node) is cst.BooleanOperation:
        return _boolean(node, ctx)
    if type(node) is cst.UnaryOperation:
        return _negation(node, ctx)
    if isinstance(node, (cst.Call, cst.Comparison)) and asks_truth(node, ctx, _reads_value):
        return _truth(node, ctx)
    if isinstance(node, cst.Call):
        return _call(node, ctx)
    if isinstance(node, cst.Comparison):
        return None
    if not _reads_value(node.test, ctx) or not ctx.in_forward:
        return None  # of a number that is taken out of one, `number` speaks
    test = _array_test(node.test, ctx)
    if isinstance(node, cst.If):
        if is_check(node, ctx) or start(node, ctx.parents, ctx.kind) is not None:
            return None
        if is_guard(node, ctx):
            rest = node.test.left if last_test(node) is not node.test else None  # type: ignore[attr-defined]
            if rest is None or not _reads_value(rest, ctx):
                return None
        return Advice(_if(node, test, ctx), node=node.test, effort=0.5)
    if isinstance(node, cst.While):
        return Advice(_while(node, test), node=node.test, effort=1.0)
    if isinstance(node, cst.IfExp):
        text = f"write `jnp.where({test}, {ctx.text(node.body)}, {ctx.text(node.orelse)})`"
        return Advice(text, node=node.test, effort=0.25)
    return Advice(f"keep every element and mask: `jnp.where({test}, …, 0)`", node=node.test)


def _array_test(node: cst.BaseExpression, ctx: FlagContext) -> str:
    """A condition in the operators of boolean arrays: ``&``, ``|`` and ``~``."""
    if isinstance(node, cst.BooleanOperation):
        sign = "&" if isinstance(node.operator, cst.And) else "|"
        sides = [_array_test(side, ctx) for side in (node.left, node.right)]
        left, right = (
            text if isinstance(side, (cst.UnaryOperation, *_TIGHT)) else f"({text})"
            for text, side in zip(sides, (node.left, node.right), strict=True)
        )
        return f"{left} {sign} {right}"
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = _array_test(node.expression, ctx)
        tight = isinstance(node.expression, _TIGHT)
        return f"~{inner}" if tight or inner.startswith("(") else f"~({inner})"
    return ctx.text(node).replace(".item()", "")


def _value(node: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether an expression is a tensor, or a Python bool made from a tensor's values."""
    if isinstance(node, cst.BooleanOperation):
        return False  # its sides are looked at
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return False
    if isinstance(node, cst.Comparison) and any(
        isinstance(c.comparator, cst.Name) and c.comparator.value == "None"
        for c in node.comparisons
    ):
        return False
    if isinstance(node, cst.Call) and ctx.callee(node) in _TRUTH:
        return True
    return asks_truth(node, ctx, _reads_value) or ctx.is_given_tensor(node)


def _assigned(body: cst.BaseSuite) -> tuple[str, cst.BaseExpression] | None:
    """Name and value of a body that is one assignment."""
    line = body.body[0] if len(body.body) == 1 else None
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        line = line.body[0]
    if isinstance(line, cst.Assign) and len(line.targets) == 1:
        target = line.targets[0].target
        if isinstance(target, cst.Name):
            return target.value, line.value
    return None


def _returned(body: cst.BaseSuite) -> cst.BaseExpression | None:
    line = body.body[0] if len(body.body) == 1 else None
    if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Return):
        return line.body[0].value
    return None


def _jump(body: cst.BaseSuite) -> str:
    """ "break" or "continue" where a branch ends in one."""
    line: cst.CSTNode = body.body[-1]
    if isinstance(line, cst.SimpleStatementLine):
        line = line.body[-1]
    return (
        "break"
        if isinstance(line, cst.Break)
        else "continue"
        if isinstance(line, cst.Continue)
        else ""
    )


def _if(node: cst.If, test: str, ctx: FlagContext) -> str:
    jump = _jump(node.body)
    if jump:
        return f"run every round and keep what it computes with `jnp.where({test}, old, new)`" + (
            ""
            if jump == "continue"
            else "; or make the loop a lax.while_loop that ends by this test"
        )
    then = _assigned(node.body)
    if then is not None:
        name, value = then
        other: str | None = name
        if isinstance(node.orelse, cst.Else):
            last = _assigned(node.orelse.body)
            other = ctx.text(last[1]) if last is not None and last[0] == name else None
        elif node.orelse is not None:
            other = None
        if other is not None:
            return f"write `{name} = jnp.where({test}, {ctx.text(value)}, {other})`"
    result = _returned(node.body)
    if result is not None:
        rest = _returned(node.orelse.body) if isinstance(node.orelse, cst.Else) else None
        rest_text = ctx.text(rest) if rest is not None else "…"
        return (
            f"return both ways in one: `return jnp.where({test}, {ctx.text(result)}, {rest_text})`"
        )
    changed = sorted(
        _bound(node.body)
        | (_bound(node.orelse.body) if isinstance(node.orelse, cst.Else) else set())
    )
    state = ", ".join(changed) if changed else "x"
    return (
        f"put the branches into functions: `{state} = lax.cond({test}, then, otherwise, {state})`, "
        f"or choose by `jnp.where({test}, …, …)`"
    )


def _while(node: cst.While, test: str) -> str:
    changed = sorted(_bound(node.body))
    if len(changed) == 1:
        name = changed[0]
        loop = f"`{name} = lax.while_loop(lambda {name}: {test}, body, {name})`"
    else:
        state = ", ".join(changed) or "state"
        loop = f"`{state} = lax.while_loop(test, body, ({state}))`"
    return f"write {loop} with the body as a function of what it changes"


def _bound(node: cst.CSTNode) -> set[str]:
    """Names that the statements of a block assign."""
    found: set[str] = set()
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, (cst.AssignTarget, cst.AugAssign)):
            found |= _target_names(item.target)
        elif not isinstance(item, cst.FunctionDef):
            stack.extend(children(item))
    return found


def _target_names(node: cst.CSTNode) -> set[str]:
    if isinstance(node, cst.Name):
        return {node.value}
    if isinstance(node, (cst.Tuple, cst.List)):
        return set().union(*[_target_names(e.value) for e in node.elements])
    return set()


def _boolean(node: cst.BooleanOperation, ctx: FlagContext) -> Advice | None:
    handed_on = ctx.is_tensor(node) and not _truth_asked(node, ctx)
    for side in (node.left,) if handed_on else (node.left, node.right):
        if _value(side, ctx) and ctx.in_forward and _tested_by(node, ctx) is None:
            text = f"write `{_array_test(node, ctx)}` with boolean arrays and choose by jnp.where or lax.cond"
            return Advice(text, node=side, what="`and`/`or` ask for the truth of a tensor")
    return None


def _truth_asked(node: cst.BooleanOperation, ctx: FlagContext) -> bool:
    """Whether an ``and`` or ``or`` is itself asked for its truth; else it gives its last part as it is."""
    inner: cst.CSTNode = node
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.UnaryOperation):
            return True
        if not isinstance(parent, cst.BooleanOperation):
            return False
        if parent.left is inner:
            return True
        inner = parent
    return False


def _negation(node: cst.UnaryOperation, ctx: FlagContext) -> Advice | None:
    if not isinstance(node.operator, cst.Not) or not _value(node.expression, ctx):
        return None
    if starts(node, ctx.parents, ctx.kind):
        return None
    if not ctx.in_forward or _tested_by(node, ctx) is not None:
        return None
    text = f"write `{_array_test(node, ctx)}` and choose by jnp.where or lax.cond"
    return Advice(text, what="`not` asks for the truth of a tensor")


def _truth(node: cst.Call | cst.Comparison, ctx: FlagContext) -> Advice | None:
    if not ctx.in_forward or _tested_by(node, ctx) is not None:
        return None
    text = "compare as arrays (`&`, `|`, jnp.all, jnp.any) and choose by jnp.where or lax.cond"
    return Advice(text, what="Python asks for the truth of a tensor here")


def _call(node: cst.Call, ctx: FlagContext) -> Advice | None:
    name = ctx.callee(node)
    if asks_order(node, ctx, _reads_value) and ctx.in_forward:
        text = "order or choose by jnp.sort, jnp.argsort, jnp.argmax or jnp.where"
        return Advice(text, what="Python orders or chooses by the values of tensors")
    if name not in ("builtins.bool", "builtins.max", "builtins.min") or not ctx.in_forward:
        return None
    values = [a.value for a in node.args if not a.star and a.keyword is None]
    if name == "builtins.bool":
        if guards(node, ctx) or starts(node, ctx.parents, ctx.kind):
            return None
        if len(values) == 1 and ctx.is_given_tensor(values[0]):
            text = f"keep `{ctx.text(values[0])}` as an array and choose by jnp.where or lax.cond"
            return Advice(text, what="bool() asks for the value of a tensor")
        return None
    if not any(ctx.is_given_tensor(v) for v in values) and not (
        len(values) == 1 and holds_tensors(ctx.kind(values[0]))
    ):
        return None
    if chosen(node, ctx.parents, ctx.kind, ctx.callee):
        return None
    function = "jnp.max" if name == "builtins.max" else "jnp.min"
    listed = ", ".join(map(ctx.text, values))
    text = f"{function}(jnp.stack([{listed}]))"
    if len(values) == 2:
        text = f"{function}imum({listed})"
    elif len(values) == 1:
        text = f"{function}({listed if ctx.is_tensor(values[0]) else f'jnp.stack({listed})'})"
    what = "Python's max() and min() compare the values of tensors"
    return Advice(f"write `{text}`", what=what, effort=0.1)


def _reads_value(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether a condition asks for the value of a tensor anywhere in its ``and``, ``or`` and ``not``."""
    if isinstance(node, cst.BooleanOperation):
        return _reads_value(node.left, ctx) or _reads_value(node.right, ctx)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return _reads_value(node.expression, ctx)
    return _value(node, ctx)


_NUMBERS = ("builtins.int", "builtins.float", "builtins.bool", "builtins.complex")


def _takes_number(test: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether a condition goes by numbers that are taken out of tensors: ``(x < 0).sum().item() == 0``."""
    for call in (n for n in walk(test) if isinstance(n, cst.Call)):
        name = ctx.callee(call)
        if name in ("Tensor.item", "Tensor.tolist"):
            return True
        if name in _NUMBERS and len(call.args) == 1 and ctx.is_tensor(call.args[0].value):
            return True
    return False


def _asks(test: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether a condition goes by the value of a tensor, be it taken out or not."""
    return _reads_value(test, ctx) or _takes_number(test, ctx)


def _in_check(ctx: FlagContext) -> bool:
    """Whether a number is asked for by nothing but a check that is left out, or to say in it what is wrong."""
    for place, parent in reversed(list(enumerate(ctx.parents))):
        if isinstance(parent, cst.Assert):
            return True
        if isinstance(parent, cst.Expr) and is_message(parent, ctx):
            return depends(ctx.parents[:place], parent, lambda test: _asks(test, ctx))
        if isinstance(parent, cst.If):
            return is_check(parent, ctx) and _asks(parent.test, ctx)
        if isinstance(parent, (cst.Lambda, cst.NamedExpr, cst.FunctionDef)):
            return False
    return False


def _asks_autograd(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether a condition asks a tensor for nothing but its state in autograd."""
    if isinstance(node, cst.BooleanOperation):
        return _asks_autograd(node.left, ctx) and _asks_autograd(node.right, ctx)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return _asks_autograd(node.expression, ctx)
    if not isinstance(node, cst.Attribute) or node.attr.value not in _AUTOGRAD:
        return False
    return ctx.is_tensor(node.value)


def _tested_by(node: cst.CSTNode, ctx: FlagContext) -> cst.CSTNode | None:
    """The statement or conditional expression whose condition a part belongs to: found there."""
    for parent in reversed(ctx.parents):
        if isinstance(parent, (cst.BooleanOperation, cst.UnaryOperation)):
            node = parent
        elif isinstance(parent, (cst.If, cst.While, cst.IfExp, cst.CompIf, cst.Assert)):
            return parent if parent.test is node else None
        else:
            return None
    return None


@flag(
    "TRC011",
    "check-on-tensor",
    cst.Assert,
    cst.If,
    cst.Raise,
    cst.Expr,
    severity="info",
    blocks=False,
    effort=0.0,
    what="a check of a tensor's value is left out",
    why="While JAX traces a function no value is known that could be asserted. A message that goes by one, "
    '`if torch.isnan(x).any(): print("nan")`, changes no result and goes, too.',
    example="def f(x: torch.Tensor):\n    assert (x > 0).all()\n    return x.log()",
    instead="def f(x: torch.Tensor):\n    assert x.shape[0] > 0\n    return x.log()",
)
def check(
    node: cst.Assert | cst.If | cst.Raise | cst.Expr, ctx: FlagContext
) -> Advice | str | None:
    """``assert`` on tensors, ``if not torch.isfinite(x).all(): raise …``, ``assert not y.requires_grad``."""
    if isinstance(node, cst.Expr):
        return _message(node, ctx)
    if isinstance(node, cst.Raise):
        if not ctx.in_forward or not stands_in(node, ctx.parents, ctx.kind):
            return None
        return "to keep it, use `jax.experimental.checkify.check`"
    if isinstance(node, cst.Assert) and _asks_autograd(node.test, ctx):
        return "nothing takes its place: in JAX, jax.grad is told what to differentiate by"
    if isinstance(node, cst.If) and not is_check(node, ctx):
        return None
    if not _asks(node.test, ctx) or not ctx.in_forward:
        return None
    test = _array_test(node.test, ctx)
    if isinstance(node, cst.If):
        test = test[1:] if test.startswith("~") else f"~({test})"
    return f"to keep it, `jax.experimental.checkify.check({test}, message)`"


def _message(node: cst.Expr, ctx: FlagContext) -> Advice | None:
    """``print("nan")`` beside what else is done ``if torch.isnan(x).any():``."""
    if not ctx.in_forward or not is_message(node, ctx):
        return None
    if not depends(ctx.parents, node, lambda test: _asks(test, ctx)):
        return None
    if any(isinstance(one, cst.If) and is_check(one, ctx) for one in ctx.parents):
        return None  # which goes as a whole
    text = "to keep it, `jax.debug.print` or `jax.debug.callback` under `lax.cond`"
    return Advice(text, what="a message that goes by a tensor's value is left out")


# --- numbers ---------------------------------------------------------------------------------------------


@flag(
    "DYN004",
    "tensor-to-python-number",
    cst.Call,
    cst.Subscript,
    cst.BinaryOperation,
    cst.FormattedStringExpression,
    what="a tensor becomes a Python number",
    why="While JAX traces a function no value is known, so there is no number to take out. What a function only returns "
    "beside tensors, `return loss, losses` with `losses.append(l.item())`, is a number where nothing is traced, and an "
    "array without gradient where JAX traces.",
    example="def scale(x: torch.Tensor):\n    return x * math.sqrt(x.max().item())",
    instead="def scale(x: torch.Tensor):\n    return x * x.max().sqrt()",
)
def number(node: Any, ctx: FlagContext) -> Advice | str | None:
    """``.item()``, ``.tolist()``, ``int(x)``, ``float(x)``, ``math.sqrt(x)``, ``parts[i]`` of a list, ``f"{x:.2f}"``."""
    found = asks_number(node, ctx)
    if found is not None:
        return None if _in_check(ctx) else found
    if not isinstance(node, cst.Call):
        return None
    name = ctx.callee(node) or ""
    if name in ("Tensor.item", "builtins.int") and guards(node, ctx):
        return None
    if name.startswith(_TAKEN_OUT) and starts(node, ctx.parents, ctx.kind):
        return None
    if name in ("Tensor.item", "Tensor.tolist"):
        x = node.func.value if isinstance(node.func, cst.Attribute) else None
        if counts_up(node, ctx.callee, lambda one: scalar_type(ctx.kind(one)) == "int") is not None:
            return None
    elif _unknown_item(node, ctx):
        advice = _use(node, "Tensor.item", lines.receiver(node), ctx)
        return replace(advice, severity="warning", blocks=False)
    elif name in ("builtins.int", "builtins.float", "builtins.complex") and len(node.args) == 1:
        x = node.args[0].value
        if not ctx.is_given_tensor(x):
            return None
    else:
        return None
    if x is None or not ctx.in_forward or _in_check(ctx):
        return None
    # torch takes nothing but whole numbers where it is told a place, so that a dtype that is not known is one of them
    whole = name == "builtins.int" or (
        name == "Tensor.item" and ctx.is_tensor(x) and ctx.dtype(x) in ("int", None)
    )
    wide = name == "builtins.int" or ctx.dtype(x) == "int"
    if whole and places(node, ctx.parents, ctx.is_tensor, ctx.callee, wide):
        return None
    if only_computed_with(node, ctx.parents, ctx.kind, ctx.callee):
        return None
    return _use(node, name, x, ctx)


_TAKEN_OUT = ("Tensor.item", "builtins.int", "builtins.float")


def _unknown_item(node: cst.Call, ctx: FlagContext) -> bool:
    """``.item()`` of something unknown in a module's forward pass: a tensor in all likelihood."""
    parts = lines.method(node)
    if parts is None or parts[1] != "item" or node.args or not (ctx.in_module and ctx.in_forward):
        return False
    return type(ctx.kind(parts[0])).__name__ == "Unknown"


_SHAPES = frozenset(
    [
        "view",
        "reshape",
        "expand",
        "repeat",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "eye",
        "rand",
        "randn",
        "range",
        "split",
        "narrow",
        "topk",
        "new_zeros",
        "new_ones",
        "chunk",
        "tile",
    ]
)
_LOGGED = frozenset(["print", "log", "info", "debug", "warning", "add_scalar", "append", "format"])


def _use(node: cst.Call, name: str, x: cst.CSTNode, ctx: FlagContext) -> Advice:
    """The advice by what the number is used for."""
    text = ctx.text(x)
    outer = _around(node, ctx)
    if name == "Tensor.tolist":
        return Advice(
            f"keep `{text}` as an array and index it, or pass the list in as a Python list (it is static then)"
        )
    if outer == "shape":
        return Advice(
            f"pass the number in as a Python int (it is static then), or use its largest value and the mask "
            f"`jnp.arange(n) < {text}`",
            what="a size is taken from the value of a tensor",
            effort=1.0,
        )
    if outer == "log":
        return Advice(
            f"log it outside, from what the model returns, or `jax.debug.print('{{}}', {text})`",
            severity="warning",
            effort=0.1,
        )
    if outer == "test":
        return Advice(f"compare `{text}` itself and choose by jnp.where or lax.cond")
    cast = {"builtins.int": ".astype(jnp.int32)", "builtins.float": ".astype(jnp.float32)"}.get(
        name, ""
    )
    return Advice(f"keep the 0-d array: `{lines.grouped(text, x)}{cast}`", effort=0.1)


def _around(node: cst.CSTNode, ctx: FlagContext) -> str:
    """What the expression around a number does: "shape", "log", "test" or nothing special."""
    inner = node
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.Slice):
            return "shape"
        if isinstance(parent, cst.FormattedStringExpression):
            return "log"
        if isinstance(parent, cst.Call):
            short = parent.func.attr.value if isinstance(parent.func, cst.Attribute) else ""
            short = parent.func.value if isinstance(parent.func, cst.Name) else short
            if short in _SHAPES and inner is not parent.func:
                return "shape"
            if short in _LOGGED:
                return "log"
        if isinstance(parent, (cst.If, cst.While, cst.Assert)):
            return "test" if parent.test is inner else ""
        if isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Name):
            return _uses(parent.targets[0].target.value, ctx)
        if isinstance(parent, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return ""
        inner = parent
    return ""


def _uses(name: str, ctx: FlagContext) -> str:
    """What a function does with a number that it gives a name: a size, or what it branches on."""
    function = next((p for p in reversed(ctx.parents) if isinstance(p, cst.FunctionDef)), None)
    found = ""
    for node in walk(function.body) if function is not None else ():
        if isinstance(node, cst.Call):
            last = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
            sized = isinstance(last, cst.Name) and last.value in _SHAPES
            if sized and any(_names(arg.value, name) for arg in node.args):
                return "shape"
        elif isinstance(node, (cst.If, cst.While)) and _names(node.test, name):
            found = "test"
    return found


def _names(node: cst.CSTNode, name: str) -> bool:
    return any(isinstance(one, cst.Name) and one.value == name for one in walk(node))

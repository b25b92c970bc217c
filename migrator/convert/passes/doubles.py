"""Functions that compute in float64 what they give back to numpy: ``torch.linspace(a, b, n, dtype=torch.float64).numpy()``.

They run on the host, before anything is compiled, where JAX computes in 64 bits as well if it is told to. So do the
statements of a constructor that compute in float64 what its buffers keep in float32: the schedules of a diffusion model.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.chosen_functions import meant
from migrator.convert.context import Context
from migrator.infer import FunctionInfo

_MAKING = frozenset(
    f"torch.{name}"
    for name in "linspace logspace arange ones zeros full empty eye tensor as_tensor".split()
)
_DOUBLE = ("torch.float64", "torch.double")
_LEAVING = ("numpy", "tolist", "item")


def computes_in_double(ctx: Context, info: FunctionInfo) -> bool:
    """Whether all tensors that a function makes are of float64, and none leaves it but as an array of numpy or a number."""
    if info.owner is not None or info.outer is not None or info.settled is not None:
        return False
    tree, body = ctx.facts.tree, info.node.body
    returns = tree.within(body, cst.Return)
    return bool(returns) and all(_leaves(one.value) for one in returns) and _in_double(ctx, info)


def _in_double(ctx: Context, info: FunctionInfo) -> bool:
    """Whether all tensors that a function makes are of float64, and other functions of the project make none for it."""
    tree, body = ctx.facts.tree, info.node.body
    if tree.within(body, cst.FunctionDef, cst.Lambda, cst.Yield):
        return False
    calls = [(ctx.facts.callee(call) or "", call) for call in tree.within(body, cst.Call)]
    if any(name in ctx.facts.names or name.startswith("torch.rand") for name, _ in calls):
        return False
    made = [call for name, call in calls if name in _MAKING]
    return bool(made) and all(_is_double(ctx, call) for call in made)


def _leaves(value: cst.BaseExpression | None) -> bool:
    """``betas.numpy()``."""
    func = value.func if isinstance(value, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in _LEAVING


def _is_double(ctx: Context, call: cst.Call) -> bool:
    given = (a.value for a in call.args if a.keyword is not None and a.keyword.value == "dtype")
    return any(ctx.facts.qualified_name(one) in _DOUBLE for one in given)


def in_64_bits(ctx: Context, body: cst.BaseSuite) -> cst.BaseSuite:
    """The statements of a function within ``with jax.enable_x64(True):``, its docstring before it."""
    ctx.helpers.use("jax")
    statements: list[Any] = list(body.body)
    at = 1 if statements and syntax.is_docstring(statements[0]) else 0
    block = syntax.statement("with jax.enable_x64(True):\n    pass\n")
    block = syntax.changed(block, body=cst.IndentedBlock(statements[at:]))
    return syntax.changed(body, body=[*statements[:at], block])


# --- constructors --------------------------------------------------------------------------------------------------


def with_doubles(ctx: Context, info: FunctionInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    """The statements of a converted constructor, those that compute in float64 in 64 bits.

    They reach from the first that makes a tensor of float64 to the last that reads one; what they keep is float32, buffers
    of float64 from there on, and nothing that they make otherwise is read after them. Where that does not hold they stay
    as they are.
    """
    doubles = _doubles(ctx, info)
    if not doubles:
        return body
    statements: list[Any] = list(body.body)
    touching = [at for at, one in enumerate(statements) if doubles & _told(one)]
    if not touching:
        return body
    start, end = touching[0], touching[-1] + 1
    region, rest = statements[start:end], statements[end:]
    made: set[str] = set()
    if not all(_stays_inside(one, doubles, made) for one in region):
        return body
    if any(made & set(syntax.names(one)) for one in rest):
        return body
    wide = [name for one in region for name in _wide(one, doubles)]
    if len(set(wide)) < len(wide) or (wide and _BUFFER in syntax.names(ctx.source.tree)):
        return body
    ctx.helpers.use("jax")
    block = syntax.statement("with jax.enable_x64(True):\n    pass\n")
    lead = region[0].leading_lines
    region[0] = syntax.changed(region[0], leading_lines=[])
    block = syntax.changed(block, body=cst.IndentedBlock(region), leading_lines=lead)
    after = [syntax.statement(_narrowed(wide))] if wide else []
    return syntax.changed(body, body=[*statements[:start], block, *after, *rest])


_BUFFER = "buffer"


def _narrowed(buffers: list[str]) -> str:
    """The statement after which buffers of float64 are float32, unless x64 is switched on."""
    if len(buffers) == 1:
        return f"{buffers[0]}.set_value({buffers[0]}[...].astype(float))\n"
    line = f"{_BUFFER}.set_value({_BUFFER}[...].astype(float))"
    return f"for {_BUFFER} in ({', '.join(buffers)}):\n    {line}\n"


def _told(node: cst.CSTNode) -> set[str]:
    """The names in code, and its attributes of ``self`` as ``self.betas``."""
    return set(syntax.names(node)) | {name for one in syntax.walk(node) if (name := _own(one))}


def _own(node: cst.CSTNode) -> str:
    own = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    return f"self.{node.attr.value}" if own and node.value.value == "self" else ""  # type: ignore[attr-defined]


def _wide(node: cst.CSTNode, doubles: set[str]) -> list[str]:
    """The buffers of float64 that a converted statement makes."""
    lines = node.body if isinstance(node, cst.SimpleStatementLine) else ()
    return [
        name
        for line in lines
        if isinstance(line, cst.Assign)
        and (name := _own(line.targets[0].target)) in doubles
        and not _keeps_float32(line.value)
    ]


def _doubles(ctx: Context, info: FunctionInfo) -> set[str]:
    """The names, and the buffers of ``self``, that a constructor gives to tensors of float64, and to nothing else."""
    found: set[str] = set()
    others: set[str] = set()
    for node in ctx.facts.tree.within(info.node.body, cst.Assign, cst.Call):
        if isinstance(node, cst.Call):
            name, value = _registered(node)
            if name and value is not None and _gives_double(ctx, info, value, found):
                found.add(name)
            continue
        for target in node.targets:
            names = set(syntax.names(target.target)) - {"self"}
            if isinstance(target.target, cst.Name):
                (found if _gives_double(ctx, info, node.value, found) else others).update(names)
            elif not isinstance(target.target, cst.Attribute):
                others |= names
            else:
                others.add(_own(target.target))
    return found - others


def _registered(call: cst.Call) -> tuple[str, cst.BaseExpression | None]:
    """``self.betas`` and the value of ``self.register_buffer("betas", value)``."""
    if _own(call.func) != "self.register_buffer" or len(call.args) < 2:
        return "", None
    name, value = call.args[0], call.args[1]
    if name.keyword or value.keyword or not isinstance(name.value, cst.SimpleString):
        return "", None
    return f"self.{syntax.literal(name.value)}", value.value


def _gives_double(
    ctx: Context, info: FunctionInfo, node: cst.BaseExpression, doubles: set[str]
) -> bool:
    """Whether an expression is a tensor of float64: made as one, or computed from one."""

    def gives(*parts: cst.BaseExpression) -> bool:
        return any(_gives_double(ctx, info, part, doubles) for part in parts)

    if isinstance(node, cst.Name):
        return node.value in doubles
    if isinstance(node, cst.Attribute):
        return _own(node) in doubles
    if isinstance(node, cst.BinaryOperation):
        return gives(node.left, node.right)
    if isinstance(node, cst.UnaryOperation):
        return gives(node.expression)
    if isinstance(node, cst.Subscript):
        return gives(node.value)
    if not isinstance(node, cst.Call):
        return False
    name = ctx.facts.callee(node) or ""
    if name in _MAKING:
        return _is_double(ctx, node)
    if name == "Tensor.double":
        return True
    if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
        return name.rpartition(".")[2] not in _ENDING and gives(node.func.value)
    if name.startswith("torch."):
        return gives(*(a.value for a in node.args))
    reached = meant(ctx, info, node.func)
    return bool(reached) and all(one.settled is None and _in_double(ctx, one) for one in reached)


_ENDING = frozenset(
    "float half bfloat16 to type int long bool size dim numel argmax argmin".split()
)
"""Methods that give another dtype, or no tensor."""


def _stays_inside(node: cst.CSTNode, doubles: set[str], made: set[str]) -> bool:
    """Whether a converted statement leaves nothing of 64 bits behind; ``made`` gains what it binds to arrays."""
    if isinstance(node, cst.If):
        arms = [*node.body.body, *([node.orelse] if node.orelse is not None else [])]
        if any(_wide(one, doubles) for one in arms):
            return False
        return all(_stays_inside(one, doubles, made) for one in arms)
    if isinstance(node, cst.Else):
        if any(_wide(one, doubles) for one in node.body.body):
            return False
        return all(_stays_inside(one, doubles, made) for one in node.body.body)
    if not isinstance(node, cst.SimpleStatementLine) or "rngs" in syntax.names(node):
        return False
    for line in node.body:
        if not isinstance(line, cst.Assign) or len(line.targets) != 1:
            return False
        target, value = line.targets[0].target, line.value
        arrays = _reads_arrays(value, doubles | made)
        if isinstance(target, cst.Attribute) and arrays and not _keeps_float32(value):
            if _own(target) not in doubles or not _is_variable(value):
                return False
        if not isinstance(target, cst.Attribute) and arrays:
            made.update(syntax.names(target))
    return True


def _reads_arrays(node: cst.CSTNode, arrays: set[str]) -> bool:
    """Whether a value is, or holds, what is computed from arrays: more than their sizes."""
    if isinstance(node, cst.Attribute) and node.attr.value in ("shape", "ndim", "size"):
        return False
    if _own(node) in arrays:
        return True
    if isinstance(node, cst.Subscript) and not _reads_arrays(node.value, arrays):
        return False
    if isinstance(node, cst.Name):
        return node.value in arrays or node.value in ("jnp", "jax", "lax", "nnx")
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return node.func.value not in ("int", "len", "float", "bool")  # else a helper
    return any(
        _reads_arrays(one, arrays)
        for one in syntax.children(node)
        if isinstance(one, (cst.BaseExpression, cst.Arg, cst.BaseElement))
    )


def _is_variable(value: cst.BaseExpression) -> bool:
    """``nnx.Variable(betas)``."""
    func = value.func if isinstance(value, cst.Call) else None
    return (
        isinstance(func, cst.Attribute) and func.attr.value == "Variable" and _root(func) == "nnx"
    )


def _root(node: cst.Attribute) -> str:
    return node.value.value if isinstance(node.value, cst.Name) else ""


def _keeps_float32(value: cst.BaseExpression) -> bool:
    """``nnx.Variable(betas.astype(jnp.float32))``."""
    if isinstance(value, cst.Call) and len(value.args) == 1:
        inner = value.args[0].value
        if isinstance(inner, cst.Call) and isinstance(inner.func, cst.Attribute):
            last = inner.args[0].value if len(inner.args) == 1 else None
            cast = inner.func.attr.value == "astype" and isinstance(last, cst.Attribute)
            return cast and last.attr.value == "float32"  # type: ignore[union-attr]
    return False

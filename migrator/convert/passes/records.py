"""Named tuples of tensors that a module keeps, which Flax must be told of; dataclasses with tensors as defaults."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import holds_tensor, levels
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.named_tuples import RECORD

_TENSOR = re.compile(r"\bTensor\b|\bArray\b")
_MAKING = ("OrderedDict", "namedtuple", "NamedTuple")
_NUMBER = re.compile(r"[\s|,\[\]]*(?:(?:float|int|complex|Optional|Union|None)[\s|,\[\]]*)+")


def of_named_tuple(rw: Rewriter, node: cst.Assign) -> cst.Assign | None:
    """``self.scales = Scales(torch.ones(3), 2)`` of a named tuple, ``self.p = p`` of one, ``OrderedDict(a=torch.ones(3))``.

    Raises:
      Failure: beside the tensors it holds what is no number, which Flax would take for one of its arrays.
    """
    ctx, value = rw.ctx, node.value
    if node in ctx.redeclared or not _holds_tensors(ctx, node, value):
        return None
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.Assign):
        return None
    ctx.helpers.use("nnx")
    call = cst.Call(syntax.parse("nnx.data"))
    call = syntax.with_args(call, [cst.Arg(syntax.unparenthesized(made.value))])
    return syntax.changed(made, value=call)


@converts(cst.AnnAssign, when=lambda ctx: "dataclass" in ctx.words)
def default(rw: Rewriter, node: cst.AnnAssign) -> Any:
    """``scale: Tensor = torch.ones(2)`` of a dataclass: arrays have no hash, and Python takes them for lists."""
    ctx = rw.ctx
    if node.value is None or node in ctx.redeclared or not ctx.source.index.has(node):
        return None
    given = _default(node.value)
    if not isinstance(ctx.facts.kind(given), k.Tensor):
        return None
    if "ClassVar" in syntax.code(node.annotation.annotation):
        return None
    around = ctx.source.index.around(node)
    if len(around) < 3 or not isinstance(around[-3], cst.ClassDef):
        return None
    if not any(_is_dataclass(one.decorator) for one in around[-3].decorators):
        return None
    name = around[-3].name.value
    field = node.target.value if isinstance(node.target, cst.Name) else ""
    if any(isinstance(n.value, cst.Name) and n.value.value == name for n in _reads(ctx, field)):
        what = f"`{name}.{field}` is read of the class, whose default is a tensor"
        raise Failure(node, "API008", what, "give the tensor a name of its own")
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.AnnAssign) or made.value is None:
        return None
    value = _default(made.value)
    if "rngs" in syntax.names(value):
        what = f"the default of `{field}` is drawn once, for all that is made without one"
        raise Failure(node, "API008", what, "give it where the class is used")
    if value is not made.value:  # the options of field() stay
        assert isinstance(made.value, cst.Call)
        anew = syntax.substitute(syntax.parse("lambda: __a__"), {"__a__": value})
        args = [
            syntax.changed(a, keyword=cst.Name("default_factory"), value=anew)
            if a.keyword is not None and a.keyword.value == "default"
            else a
            for a in made.value.args
        ]
        return syntax.changed(made, value=syntax.changed(made.value, args=args))
    ctx.helpers.use("dataclasses")
    made_anew = syntax.parse("dataclasses.field(default_factory=lambda: __a__)")
    return syntax.changed(made, value=syntax.substitute(made_anew, {"__a__": value}))


def _default(node: cst.BaseExpression) -> cst.BaseExpression:
    """``x`` of ``field(default=x)``, and of ``x``."""
    if isinstance(node, cst.Call) and syntax.code(node.func).rpartition(".")[2] == "field":
        for item in node.args:
            if item.keyword is not None and item.keyword.value == "default":
                return item.value
    return node


def _reads(ctx: Context, field: str) -> list[cst.Attribute]:
    return ctx.source.index.reading(ctx.source.tree, field)


def _is_dataclass(node: cst.BaseExpression) -> bool:
    """``@dataclass``, ``@dataclasses.dataclass(frozen=True)``."""
    node = node.func if isinstance(node, cst.Call) else node
    return syntax.code(node).rpartition(".")[2] == "dataclass"


def nested_records(ctx: Context, node: cst.Assign) -> bool:
    """Whether a list, tuple or dict has named tuples of tensors in it."""
    for kind in levels(ctx.kind(node.value)):
        if kind == RECORD:
            return True
        info = ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
        if info is not None and _fields(node, info.short, hints_of(info)):
            return True
    return False


def _holds_tensors(ctx: Context, node: cst.Assign, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.BooleanOperation):
        return _holds_tensors(ctx, node, value.left) or _holds_tensors(ctx, node, value.right)
    kind = ctx.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if kind == RECORD:
        return True
    info = ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    if info is not None and (hints := hints_of(info)):
        return _fields(node, info.short, hints)
    if not isinstance(value, cst.Call) or ctx.words.isdisjoint(_MAKING):
        return False
    ordered = syntax.code(value.func).rpartition(".")[2] == "OrderedDict"
    if not ordered and not _is_named_tuple(ctx, value):
        return False
    given = [ctx.kind(a.value) for a in value.args]
    return any(isinstance(one, k.Tensor) or holds_tensor(one) for one in given)


def _derives(node: cst.ClassDef) -> bool:
    """``class P(NamedTuple)``."""
    return any(syntax.code(base.value).rpartition(".")[2] == "NamedTuple" for base in node.bases)


def hints_of(info: ClassInfo) -> tuple[str, ...]:
    """The hints of the fields of a class that is a named tuple, also of another file."""
    if info.settled is not None:
        return info.settled.record
    if not _derives(info.node):
        return ()
    body: Any = info.node.body.body
    lines = (line.body[0] for line in body if isinstance(line, cst.SimpleStatementLine))
    return tuple(
        syntax.code(one.annotation.annotation) for one in lines if isinstance(one, cst.AnnAssign)
    )


def _fields(node: cst.Assign, name: str, hints: tuple[str, ...]) -> bool:
    """Whether a field of a named tuple is a tensor, by its hint."""
    tensors = [hint for hint in hints if _TENSOR.search(hint)]
    others = [hint for hint in hints if hint not in tensors and not _NUMBER.fullmatch(hint)]
    if tensors and others:
        what = f"{name} holds tensors beside `{others[0]}`, which Flax cannot tell apart in a tuple"
        raise Failure(node, "API008", what, "keep the tensors as attributes of the module")
    return bool(tensors)


def _is_named_tuple(ctx: Context, call: cst.Call) -> bool:
    """Whether a class is made by ``namedtuple`` at the top of the file, or derives from NamedTuple."""
    if ctx.words.isdisjoint(("namedtuple", "NamedTuple")):
        return False
    name = syntax.code(call.func)
    for one in ctx.facts.tree.of_type(cst.Assign):
        if isinstance(one.value, cst.Call) and syntax.code(one.targets[0].target) == name:
            return syntax.code(one.value.func).rpartition(".")[2] in ("namedtuple", "NamedTuple")
    return any(
        one.name.value == name and _derives(one) for one in ctx.facts.tree.of_type(cst.ClassDef)
    )

"""Ways to give a class a ``forward`` other than by a definition in its body: Flax runs ``__call__``, and these would be lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.replaced_forward import replaced
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.reached import asked_of_self

_RUN = ("forward", "__call__")


def _may_bind(ctx: Context) -> bool:
    return not ctx.words.isdisjoint(_RUN)


@converts(cst.ClassDef, when=_may_bind)
def bound_in_body(rw: Rewriter, node: cst.ClassDef) -> None:
    """``forward = run`` in the body of a module's class, ``if FAST: def forward(…)``, ``__call__`` beside ``forward``.

    Raises:
      Failure: torch calls that, and the class of the output would call something else.
    """
    ctx = rw.ctx
    info = next((c for c in ctx.facts.classes.values() if c.node is node), None)
    if info is None or info.torch_base is None or info.gradient or info.settled is not None:
        return
    for line in node.body.body:
        small = line.body if isinstance(line, cst.SimpleStatementLine) else ()
        for one in small:
            if any(isinstance(t, cst.Name) and t.value in _RUN for t in syntax.assigned_to(one)):
                raise _bound(one)
        if isinstance(line, (cst.If, cst.Try, cst.With)) and not _is_for_types(line):
            for inner in _definitions(line):
                raise _bound(inner)
    _check_call(ctx, info)


def _bound(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API005",
        "what a module runs is bound otherwise than by a definition in the body of its class",
        "write `def forward(self, …)` there, and call the function that is meant",
    )


def _is_for_types(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.If) and syntax.code(node.test).endswith("TYPE_CHECKING")


def _definitions(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The definitions of what a module runs below a statement of its class, those of other functions left out."""
    for one in node.children:
        if isinstance(one, cst.FunctionDef):
            if one.name.value in _RUN:
                yield one
        elif not isinstance(one, cst.ClassDef):
            yield from _definitions(one)


def _check_call(ctx: Context, info: ClassInfo) -> None:
    """Raise a Failure for ``__call__`` that is the first to run in torch, and gives way to ``forward`` in the output."""
    line = info.lineage()
    calls = next((at for at, one in enumerate(line) if "__call__" in one.methods), None)
    runs = next((at for at, one in enumerate(line) if "forward" in one.methods), None)
    if calls is None or runs is None:
        return
    method = line[calls].methods["__call__"]
    asks = "forward" in asked_of_self(ctx.facts, method)
    if runs <= calls and not asks:
        own = line[calls].settled is None
        asks = own and not any(map(syntax.is_super, ctx.facts.tree.within(method.node, cst.Call)))
    if asks and (runs <= calls or calls == 0):
        what = f"{info.short} has a __call__ of its own beside forward(), which becomes __call__"
        raise Failure(info.node.name, "API005", what, "do in forward() what __call__ does")


@converts(cst.Assign, named=("forward",), targets=(cst.Attribute,))
def given_to_a_class(rw: Rewriter, node: cst.Assign) -> None:
    """``Net.forward = fast``."""
    for item in node.targets:
        target = item.target
        if isinstance(target, cst.Attribute) and target.attr.value in _RUN:
            if isinstance(rw.ctx.kind(target.value), k.Class):
                raise replaced(target)


@converts(cst.Call, called=("builtins.setattr",))
def given_by_name(rw: Rewriter, node: cst.Call) -> None:
    """``setattr(Net, "forward", fast)``."""
    if rw.ctx.facts.callee(node) != "builtins.setattr" or len(node.args) != 3:
        return
    name = node.args[1].value
    named = isinstance(name, cst.SimpleString) and name.evaluated_value in _RUN
    if named and isinstance(rw.ctx.kind(node.args[0].value), k.Class):
        raise replaced(node)


@converts(cst.Call, named=("type",))
def made_class(rw: Rewriter, node: cst.Call) -> None:
    """``type("Net", (Base,), {"forward": run})``.

    Raises:
      Failure: what the class has may be what it runs, or how it is built.
    """
    if not isinstance(node.func, cst.Name) or node.func.value != "type" or len(node.args) != 3:
        return
    bases, table = node.args[1].value, node.args[2].value
    if not _derives(rw.ctx, bases) or _is_plain(table):
        return
    what = "a class of modules is made by type(), with methods that only torch calls by these names"
    raise Failure(node, "API005", what, "write the class out")


def _derives(ctx: Context, bases: cst.BaseExpression) -> bool:
    """Whether a class that is made may be one of modules."""
    if not isinstance(bases, cst.Tuple):
        return True
    for one in bases.elements:
        kind = ctx.kind(one.value)
        if not isinstance(kind, k.Class):
            return True
        info = ctx.facts.classes.get(kind.name)
        if kind.name.startswith("torch.") or (info is not None and info.torch_base is not None):
            return True
    return False


def _is_plain(table: cst.BaseExpression) -> bool:
    """``{}``, ``{"scale": 2}``, ``dict(scale=2)``: attributes of some names, none of them a method that is looked for."""
    if isinstance(table, cst.Dict):
        keys = [one.key if isinstance(one, cst.DictElement) else None for one in table.elements]
        names = [one.evaluated_value if isinstance(one, cst.SimpleString) else None for one in keys]
        return all(isinstance(n, str) and n != "forward" and n[:2] != "__" for n in names)
    if isinstance(table, cst.Call) and syntax.code(table.func) == "dict":
        given = [one.keyword.value if one.keyword is not None else None for one in table.args]
        return all(n is not None and n != "forward" and n[:2] != "__" for n in given)
    return False


@converts(cst.Attribute, named=("forward",))
def of_a_class(rw: Rewriter, node: cst.Attribute) -> Any:
    """``super().forward`` and ``Base.forward`` as values: ``super().__call__``.

    Raises:
      Failure: only a run tells of which class it is the method, which may be none in the output.
    """
    ctx = rw.ctx
    if node.attr.value != "forward" or not ctx.facts.tree.has(node):
        return None
    above = ctx.facts.tree.around(node)[-1]
    called = isinstance(above, cst.Call) and above.func is node
    if syntax.is_super(node.value):
        return None if called else syntax.changed(node, attr=cst.Name("__call__"))
    kind = ctx.kind(node.value)
    if isinstance(kind, k.Class) and not called:
        info = ctx.facts.classes.get(kind.name)
        if info is not None and info.torch_base is not None and info.method("forward") is not None:
            if isinstance(above, (cst.Assign, cst.AnnAssign)) and ctx.frame is None:
                raise _bound(node)  # ``run = Base.forward`` in the body of a class
            return syntax.changed(node, value=rw.visit(node.value), attr=cst.Name("__call__"))
    if not isinstance(kind, k.Module) and _asks_for_class(node.value):
        what = f"`{syntax.code(node)}`: of which class it is the method, only a run tells"
        raise Failure(node, "API005", what, "name the class")
    return None


def _asks_for_class(node: cst.BaseExpression) -> bool:
    """``type(self.layer)``, ``type(self).__mro__[1]``, ``self.__class__``."""
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Name) and node.func.value == "type"
    if isinstance(node, cst.Subscript):
        return _asks_for_class(node.value)
    if isinstance(node, cst.Attribute):
        return node.attr.value in _CLASSES
    return False


_CLASSES = frozenset("__mro__ __bases__ __base__ __class__".split())


def is_within_a_function(ctx: Context, node: cst.Call) -> bool:
    """``super(Net, self).forward(x)`` in a function of a method, where ``super()`` means another object or none."""
    spelled = isinstance(node.func, cst.Attribute) and isinstance(node.func.value, cst.Call)
    if not spelled or not node.func.value.args or not ctx.facts.tree.has(node):  # type: ignore[attr-defined]
        return False
    around = ctx.facts.tree.around(node)
    return sum(isinstance(one, _FUNCTIONS) for one in around) > 1


_FUNCTIONS = (
    cst.FunctionDef,
    cst.Lambda,
    cst.GeneratorExp,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
)

"""What stands for a statement that is not converted where it would keep a file from being imported.

The names that it binds become names that raise when they are used, with its place and the finding. All else in the file
can be imported, run and verified. A statement that does more than to bind names stays as it is: without it, the rest
might compute something else.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.infer import kinds as k
from migrator.infer.symbols import BASED_ON_TORCH, built_on_torch, of_torch
from migrator.infer.without_torch import brought_by, needs_torch, runs_without_torch
from migrator.source import dotted
from rules import definitions
from rules.definitions import module_file
from rules.torch_names import table

NAME = "NotConverted"
_HARMLESS = sys.stdlib_module_names | BASED_ON_TORCH | {"torch", "packaging"}
"""Libraries whose functions change nothing of the project's own."""
_BUILTINS = frozenset(dir(builtins)) - {"setattr", "delattr", "exec", "eval", "globals", "next"}
_READING = frozenset(
    "items keys values isupper islower isalpha isidentifier startswith endswith lower upper strip "
    "lstrip rstrip split rsplit partition rpartition join format".split()
)
"""Methods of texts and tables that change nothing."""
_KEPT = ("property", "staticmethod", "classmethod", "cached_property", "setter", "deleter")
"""Decorators that say how a method is reached."""


def at_import(ctx: Context) -> bool:
    """Whether code runs when a file of a project is imported, not only when it is run itself."""
    if ctx.facts.linked is None or ctx.frames:
        return False
    return not any(isinstance(one.node, cst.If) and _is_main(one.node) for one in ctx.statements)


def _is_main(node: cst.If) -> bool:
    """``if __name__ == "__main__":``."""
    test = node.test
    return isinstance(test, cst.Comparison) and dotted(test.left) == "__name__"


def reason(ctx: Context, failure: Failure, name: str = "") -> str:
    """The name of what is not converted, its place and the finding, for whoever uses it."""
    parts = ctx.source.module.split(".")
    if Path(ctx.source.path).name == "__init__.py" and parts[-1:] != ["__init__"]:
        parts.append("__init__")
    line = ctx.source.span(failure.node).line
    text = f"{'/'.join(parts)}.py:{line}: {failure.rule} {failure.message}"
    text = f"{name}: {text}" if name else text
    return " ".join(text.split())


def stand_in(ctx: Context, failure: Failure, name: str = "") -> cst.Call:
    """``NotConverted("Pool: net/model.py:3: API001 …")``."""
    helper = ctx.helpers.need(module_file("rules.compat.not_converted"), NAME)
    text = cst.SimpleString(_quoted(reason(ctx, failure, name)))
    return cst.Call(cst.Name(helper), [cst.Arg(text)])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def stand_ins(
    ctx: Context, node: cst.BaseStatement, failure: Failure
) -> list[cst.BaseStatement] | None:
    """The statements in the place of one; None where it has to stay."""
    if not at_import(ctx):
        return None
    if isinstance(node, cst.ClassDef):
        _note(ctx, node.name.value, failure)
        return [_raising_class(ctx, node, failure)]
    if isinstance(node, cst.FunctionDef):
        return [_raising(ctx, node, failure)]
    if isinstance(node, cst.If):
        names = None if ctx.classes else _bound_by_branches(ctx, node)
        made_of = [bound(ctx, cst.Name(name), failure) for name in names or ()]
        return None if names is None else [cst.SimpleStatementLine([one]) for one in made_of]
    if not isinstance(node, cst.SimpleStatementLine):
        return None
    lines: list[cst.BaseStatement] = []
    for small in node.body:
        parts = _of_line(ctx, small, failure)
        if parts is None:
            return None
        lines += [cst.SimpleStatementLine([part]) for part in parts]
    return lines


def _note(ctx: Context, name: str, failure: Failure) -> None:
    """Remember which names at the top of a file are not what they were."""
    if not ctx.classes:
        ctx.stood_in[name] = failure.rule, f"{name} is not converted: {failure.message}"


def _raising(ctx: Context, node: cst.FunctionDef, failure: Failure) -> cst.BaseStatement:
    """A function of the same name that raises; a property stays one, and forward() is what a call runs."""
    name = node.name.value
    if name == "forward" and ctx.classes and ctx.classes[-1].torch_base is not None:
        name = "__call__"
    text = _quoted(reason(ctx, failure, node.name.value))
    made = syntax.statement(
        f"def {name}(*args, **kwargs):\n    raise NotImplementedError({text})\n"
    )
    decorators = [d for d in node.decorators if _is_kept(d)]
    return syntax.changed(made, decorators=decorators, leading_lines=[])


def _raising_class(ctx: Context, node: cst.ClassDef, failure: Failure) -> cst.BaseStatement:
    """A class of the same name of which nobody, nor of those that derive from it, gets an instance."""
    made = syntax.statement(
        f"class {node.name.value}:\n"
        "    def __new__(cls, *args, **kwargs):\n"
        f"        raise NotImplementedError({_quoted(reason(ctx, failure, node.name.value))})\n"
    )
    return syntax.changed(made, leading_lines=[])


def _is_kept(decorator: cst.Decorator) -> bool:
    name = dotted(decorator.decorator) or ""
    return name.rpartition(".")[2] in _KEPT and not of_torch(name.partition(".")[0])


def _of_line(
    ctx: Context, small: cst.BaseSmallStatement, failure: Failure
) -> list[cst.BaseSmallStatement] | None:
    """What stands for one of the statements of a line."""
    if isinstance(small, cst.Import):
        return _of_import(ctx, small, failure)
    if isinstance(small, cst.ImportFrom):
        if isinstance(small.names, cst.ImportStar):
            return []
        module = dotted(small.module) or "" if small.module is not None else ""
        instead: list[cst.BaseSmallStatement] = []
        for alias in small.names:
            name = alias.evaluated_alias or alias.evaluated_name
            if not small.relative and runs_without_torch(f"{module}.{alias.evaluated_name}"):
                alone = syntax.changed(alias, comma=cst.MaybeSentinel.DEFAULT)
                instead.append(syntax.changed(small, names=[alone], lpar=None, rpar=None))
            else:
                instead.append(bound(ctx, cst.Name(name), failure))
        return instead
    if isinstance(small, cst.Expr):
        return None if ctx.classes else []
    if isinstance(small, (cst.Assign, cst.AnnAssign)):
        return _of_assignment(ctx, small, failure)
    return None


def bound(ctx: Context, target: cst.BaseAssignTargetExpression, failure: Failure) -> cst.Assign:
    """``DropPath = NotConverted(…)``."""
    if isinstance(target, cst.Name):
        _note(ctx, target.value, failure)
    return cst.Assign([cst.AssignTarget(target)], stand_in(ctx, failure, dotted(target) or ""))


def _of_import(
    ctx: Context, node: cst.Import, failure: Failure
) -> list[cst.BaseSmallStatement] | None:
    """The names of libraries without a counterpart; what is imported beside them stays."""
    made: list[cst.BaseSmallStatement] = []
    for alias in node.names:
        module = dotted(alias.name) or ""
        if foreign(ctx, brought_by(alias)):
            name = alias.evaluated_alias or module.partition(".")[0]
            made.append(bound(ctx, cst.Name(name), failure))
        elif _outside(ctx, module) and not of_torch(module):
            alone = syntax.changed(alias, comma=cst.MaybeSentinel.DEFAULT)
            made.append(cst.Import([alone]))
    return made


def _of_assignment(
    ctx: Context, node: cst.Assign | cst.AnnAssign, failure: Failure
) -> list[cst.BaseSmallStatement] | None:
    """The names that an assignment binds, where that is all it does."""
    if node.value is None or not _only_makes(ctx, node.value) or _may_be_none(node.value):
        return None
    if isinstance(node, cst.Assign) and is_hint(ctx, node.value):
        ctx.helpers.use("typing")
        return [syntax.changed(node, value=syntax.parse("typing.Any"))]
    if isinstance(node, cst.Assign):
        targets = [part for t in node.targets for part in _parts(t.target)]
        if all(isinstance(t, cst.Attribute) and _is_of_no_use(ctx, t.value) for t in targets):
            return []
        if not all(isinstance(t, cst.Name) and not _is_special(t.value) for t in targets):
            return None
        return [bound(ctx, target, failure) for target in targets]
    if not isinstance(node.target, cst.Name) or _is_special(node.target.value):
        return None
    hint = syntax.changed(node.annotation, annotation=_hint(ctx, node.annotation.annotation))
    return [syntax.changed(node, annotation=hint, value=stand_in(ctx, failure, node.target.value))]


def is_hint(ctx: Context, value: cst.CSTNode) -> bool:
    """``Union[Optimizer, Dict[str, Optimizer]]``: made for hints, which Python reads when it imports the file."""
    if not isinstance(value, cst.Subscript):
        return False
    kind = ctx.facts.kinds.get(value.value)
    return isinstance(kind, k.Other) and kind.type.startswith("typing.")


def _bound_by_branches(ctx: Context, node: cst.If) -> list[str] | None:
    """The names that the branches of an ``if`` bind; None where they do more than that."""
    if not _only_makes(ctx, node.test):
        return None
    suites: list[cst.CSTNode] = [node.body]
    if node.orelse is not None:
        suites.append(node.orelse if isinstance(node.orelse, cst.If) else node.orelse.body)
    found: dict[str, None] = {}
    for suite in suites:
        inner = [suite] if isinstance(suite, cst.If) else list(suite.body)  # type: ignore[attr-defined]
        for statement in inner:
            names = _bound_by(ctx, statement)
            if names is None:
                return None
            found |= dict.fromkeys(names)
    return list(found)


def _bound_by(ctx: Context, node: cst.CSTNode) -> list[str] | None:
    """The names that a statement binds; None where it does more than that."""
    if isinstance(node, cst.If):
        return _bound_by_branches(ctx, node)
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return None if node.decorators or isinstance(node, cst.ClassDef) else [node.name.value]
    if isinstance(node, cst.SimpleStatementLine):
        every = [_bound_by(ctx, small) for small in node.body]
        return None if None in every else [name for names in every for name in names or ()]
    if isinstance(node, (cst.Import, cst.ImportFrom)):
        if isinstance(node.names, cst.ImportStar):
            return None
        return [a.evaluated_alias or a.evaluated_name.partition(".")[0] for a in node.names]
    if isinstance(node, cst.Pass):
        return []
    if isinstance(node, cst.Expr):
        return [] if _only_makes(ctx, node.value) else None
    if not isinstance(node, cst.Assign) or not _only_makes(ctx, node.value):
        return None
    targets = [part for t in node.targets for part in _parts(t.target)]
    if not all(isinstance(t, cst.Name) and not _is_special(t.value) for t in targets):
        return None
    return [target.value for target in targets]


def _hint(ctx: Context, node: cst.BaseExpression) -> cst.BaseExpression:
    """A hint that can be read when the file is imported: a field of a dataclass has to have one."""
    text = dotted(node)
    here = text is not None and ctx.facts.qualified_name(node) is None
    return node if here and "." not in (text or "") else cst.Name("object")


def _parts(target: cst.BaseExpression) -> Iterator[Any]:
    """The single targets of an assignment."""
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _parts(element.value)
    else:
        yield target


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_of_no_use(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether something is of torch, or a library built on it, and nothing in the output stands for it."""
    name = _known(ctx, node)
    if foreign(ctx, name):
        return True
    if not name.startswith("torch.") or name.count(".") == 1 or name.startswith("torch.nn."):
        return False  # what is set on nn.Module or Tensor concerns all of them
    return not (definitions.layers(name) or definitions.ops(name) or name in table()["module"])


def _only_makes(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether an expression changes nothing of the project: a call of its own functions may fill a table."""
    for node in ctx.facts.tree.within(value, cst.Call, cst.NamedExpr, cst.Await, cst.Yield):
        if not isinstance(node, cst.Call) or not _changes_nothing(ctx, node):
            return False
    return True


def _changes_nothing(ctx: Context, node: cst.Call) -> bool:
    """Whether a call is one of a library, of Python's own, or of a method that only reads."""
    func = node.func
    kind = ctx.facts.kinds.get(func)
    if isinstance(kind, k.Other) and kind.type.startswith("typing."):
        return True
    if isinstance(func, cst.Attribute) and func.attr.value in _READING:
        return True
    name = ctx.facts.callee(node) or _of_root(ctx, func) or dotted(func) or ""
    return name in _BUILTINS or (name.partition(".")[0] in _HARMLESS and _outside(ctx, name))


def _may_be_none(node: cst.BaseExpression) -> bool:
    """Whether a value may be None, as far as it says so: what stands for it is not None."""
    if isinstance(node, cst.IfExp):
        return _may_be_none(node.body) or _may_be_none(node.orelse)
    if isinstance(node, cst.BooleanOperation):
        return _may_be_none(node.left) or _may_be_none(node.right)
    if isinstance(node, cst.Call) and dotted(node.func) == "getattr":
        return len(node.args) > 2 and _may_be_none(node.args[2].value)
    return isinstance(node, cst.Name) and node.value == "None"


def _outside(ctx: Context, name: str) -> bool:
    linked = ctx.facts.linked
    return linked is None or linked.place(ctx.source.module, name, 0, None) == "outside"


def foreign(ctx: Context, name: str) -> bool:
    """Whether a dotted name is of a library that is built on torch, and not converted along."""
    return needs_torch(name) and _outside(ctx, name)


def unavailable(ctx: Context, node: cst.BaseExpression) -> tuple[str, str, str] | None:
    """Why what a name leads to is not there: rule, message and advice; None where it is, as far as is known."""
    root = node
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)) and not _known(ctx, root):
        root = root.func if isinstance(root, cst.Call) else root.value
    name = _known(ctx, root)
    if name and foreign(ctx, name):
        return "API004", *built_on_torch(name)
    while isinstance(root, cst.Attribute):
        root = root.value  # transformers, of which transformers.AutoTokenizer alone would be there
    linked = ctx.facts.linked
    if linked is None or not isinstance(root, cst.Name):
        return None
    if not ctx.frames and root.value in ctx.stood_in:
        return *ctx.stood_in[root.value], ""
    if not linked.is_missing(ctx.source.module, root.value):
        return None
    what = f"{root.value} is not among the files that are converted"
    return "API004", what, "convert the file that defines it as well"


def _of_root(ctx: Context, node: cst.BaseExpression) -> str:
    """The dotted name of what an attribute is asked of: ``transformers.BertTokenizer`` of its ``from_pretrained``."""
    while isinstance(node, cst.Attribute):
        node = node.value
        if _known(ctx, node):
            return _known(ctx, node)
    return ""


def _known(ctx: Context, node: cst.CSTNode) -> str:
    """The dotted name that an expression stands for."""
    kind = ctx.facts.kinds.get(node)
    return kind.name if isinstance(kind, (k.Class, k.Function, k.Namespace)) else ""


def listed(around: Sequence[cst.CSTNode]) -> bool:
    """Whether a value, by the nodes around it, is in a table or list that a name is bound to."""
    above = list(around)
    while above and (isinstance(above[-1], _DISPLAYS) or _makes_dict(above[-1])):
        above.pop()
    return bool(above) and isinstance(above[-1], (cst.Assign, cst.AnnAssign))


def _makes_dict(node: cst.CSTNode) -> bool:
    """``dict(relu=nn.ReLU)``, or one of its arguments."""
    if isinstance(node, cst.Arg):
        return node.keyword is not None
    return isinstance(node, cst.Call) and dotted(node.func) == "dict"


_DISPLAYS = (cst.Dict, cst.List, cst.Tuple, cst.Element, cst.DictElement)

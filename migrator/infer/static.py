"""What a program asks about torch itself and its answer, which is the same in every run of the output."""

from __future__ import annotations

import re
from collections.abc import Callable

import libcst as cst

from migrator.infer import devices
from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.guards import asked_texts
from migrator.infer.symbols import TORCH_VERSION, canonical, of_torch
from migrator.source import dotted
from migrator.syntax import is_docstring, parameters
from rules import definitions
from rules.torch_members import importable
from rules.torch_names import ROOTS, VERSION, table

_NEVER = frozenset(
    "torch.jit.is_scripting torch.jit.is_tracing torch._C._is_tracing torch.compiler.is_compiling "
    "torch.compiler.is_dynamo_compiling torch.compiler.is_exporting torch._dynamo.is_compiling torch.onnx.is_in_onnx_export "
    "torch.distributed.is_initialized torch.distributed.is_torchelastic_launched torch.cuda.is_initialized "
    "torch.xpu.is_available torch.mps.is_available torch.backends.mps.is_available torch.backends.mps.is_built".split()
)
_ALWAYS = frozenset({"torch.distributed.is_available"})
_PARSERS = ("Version", "parse", "LooseVersion", "StrictVersion", "parse_version", "digit_version")
_OBJECTS = frozenset(
    "torch.channels_last torch.channels_last_3d torch.contiguous_format torch.legacy_contiguous_format "
    "torch.preserve_format torch.strided "
    "torch.jagged torch.sparse_coo torch.sparse_csr torch.sparse_csc torch.sparse_bsr torch.sparse_bsc "
    "torch.default_generator torch.per_tensor_affine torch.per_channel_affine torch.__version__".split()
)
"""Memory formats, layouts and the like, which the table of names leaves out."""
_ORDERS: dict[type, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    cst.Equal: lambda a, b: a == b,
    cst.NotEqual: lambda a, b: a != b,
    cst.LessThan: lambda a, b: a < b,
    cst.LessThanEqual: lambda a, b: a <= b,
    cst.GreaterThan: lambda a, b: a > b,
    cst.GreaterThanEqual: lambda a, b: a >= b,
}


def exists(namespace: str, name: str) -> bool | None:
    """Whether a namespace of torch has a name; None where its table does not say."""
    full = canonical(f"{namespace}.{name}")
    if full in _OBJECTS or any(full in names for names in table().values()):
        return True
    if definitions.ops(full) or definitions.layers(full):
        return True
    if namespace not in ROOTS or name.startswith("_"):
        return None
    return False if importable(namespace, name) is False else None


def asked_name(facts: Facts, call: cst.Call) -> tuple[str, str] | None:
    """The namespace of torch and the name that ``hasattr`` or ``getattr`` asks for."""
    if len(call.args) < 2 or any(a.star or a.keyword is not None for a in call.args):
        return None
    namespace, name = (facts.kind(a.value) for a in call.args[:2])
    if not isinstance(namespace, k.Namespace) or not of_torch(namespace.name):
        return None
    if not isinstance(name, k.Const) or not str(name.value).isidentifier():
        return None
    return namespace.name, str(name.value)


def choices(facts: Facts, call: cst.Call) -> list[str]:
    """Names that ``getattr(nn, f"Conv{dims}d")`` may mean: all of the namespace that are written so, but for the hole.

    Those that a branch or an assertion has asked for, where it has; empty where the namespace is not torch's, or
    where little of the name is written.
    """
    if len(call.args) != 2 or any(a.star or a.keyword is not None for a in call.args):
        return []
    namespace, written = facts.kind(call.args[0].value), call.args[1].value
    if not isinstance(namespace, k.Namespace) or not of_torch(namespace.name):
        return []
    asked = asked_texts(facts.tree, written)
    if asked:
        return asked if all(exists(namespace.name, one) for one in asked) else []
    written = _written_out(facts, call, written)
    if canonical(namespace.name) == "torch.nn" and (named := _recurrent(facts, call, written)):
        return named
    either = [written.body, written.orelse] if isinstance(written, cst.IfExp) else []
    told = [str(one.evaluated_value) for one in either if isinstance(one, cst.SimpleString)]
    if len(told) == 2:
        return told if all(exists(namespace.name, one) for one in told) else []
    for hole in (r"\d+", r"\w+"):
        pattern = _pattern(facts, written, hole)
        if pattern is None:
            return []
        whole = re.compile(rf"{re.escape(canonical(namespace.name))}\.{pattern}")
        names = {*table()["class"], *table()["function"]}
        found = sorted(name for name in names if whole.fullmatch(name))
        if found:
            return [name.rpartition(".")[2] for name in found] if len(found) <= _MOST else []
    return []


_OF_RNN = re.compile(
    r"(\w+_)?rnn(_?(type|cell|name|model|layer|class|module|mode|kind|unit|arch|cls))*"
)
"""Names of what says which recurrent layer is meant, not which activation or norm beside it."""


_RECURRENT = ["GRU", "LSTM", "RNN"]
_CELLS = [f"{one}Cell" for one in _RECURRENT]


def _recurrent(facts: Facts, call: cst.Call, written: cst.BaseExpression) -> list[str]:
    """The layers that ``getattr(nn, rnn_type.upper())`` can mean: torch has three sorts of them.

    Also where a default says so, ``cell="LSTM"``, or what it is assigned to: ``self.rnn = getattr(nn, kind)(8, 8)``.
    """
    if (
        isinstance(written, cst.Call)
        and not written.args
        and isinstance(written.func, cst.Attribute)
    ):
        if written.func.attr.value != "upper":
            return []
        written = written.func.value
    name = (dotted(written) or "").rpartition(".")[2]
    default, around = _default(facts, call, name), facts.tree.around(call)
    if default in (*_RECURRENT, *_CELLS):
        return _RECURRENT if default in _RECURRENT else _CELLS
    if default or not name:
        return []
    made = around[-1] if isinstance(around[-1], cst.Call) and around[-1].func is call else None
    line = around[-2] if made is not None else None
    to = dotted(line.targets[0].target) if isinstance(line, cst.Assign) else None
    if to is not None and re.fullmatch(r"(self\.)?(\w+_)?rnn\d*", to):
        return _RECURRENT
    if not _OF_RNN.fullmatch(name.lower()):
        return []
    return [*_RECURRENT, *_CELLS] if "cell" in name.lower() else _RECURRENT


def _default(facts: Facts, call: cst.Call, name: str) -> str:
    """The text that a parameter of this name of the function around a call is by default."""
    for function in reversed(facts.tree.around(call)):
        if isinstance(function, cst.FunctionDef):
            default = getattr(parameters(function).get(name), "default", None)
            return str(default.evaluated_value) if isinstance(default, cst.SimpleString) else ""
    return ""


def _written_out(facts: Facts, call: cst.Call, written: cst.BaseExpression) -> cst.BaseExpression:
    """``kind + "Cell"`` for a name or an attribute that is given that and nothing else."""
    name = dotted(written) if isinstance(written, (cst.Name, cst.Attribute)) else None
    if name is None:
        return written
    within = cst.FunctionDef if isinstance(written, cst.Name) else cst.ClassDef
    scope = next((n for n in reversed(facts.tree.around(call)) if isinstance(n, within)), None)
    if scope is None or (isinstance(scope, cst.FunctionDef) and name in parameters(scope)):
        return written
    above = _line_above(facts, call)
    if isinstance(above, cst.Assign) and [dotted(one.target) for one in above.targets] == [name]:
        return above.value if _parts(above.value) is not None else written
    targets = facts.tree.within(scope, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For)
    given = [one for one in targets if name in (dotted(n) for n in _names(one.target))]
    line = facts.tree.parent(given[0]) if len(given) == 1 else None
    if not isinstance(line, cst.Assign) or dotted(given[0].target) != name:
        return written
    return line.value if _parts(line.value) is not None else written


def _line_above(facts: Facts, node: cst.CSTNode) -> cst.CSTNode | None:
    """The statement that runs right before the one in which a node stands."""
    around = [*facts.tree.around(node), node]
    for place, block in reversed([*enumerate(around)]):
        if isinstance(block, (cst.IndentedBlock, cst.Module)):
            number = next(i for i, one in enumerate(block.body) if one is around[place + 1])
            before = block.body[number - 1] if number else None
            simple = isinstance(before, cst.SimpleStatementLine)
            return before.body[-1] if simple else None  # type: ignore[union-attr]
    return None


def _names(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [name for one in target.elements for name in _names(one.value)]
    return [target]


def _pattern(facts: Facts, node: cst.BaseExpression, hole: str) -> str | None:
    """The names that a text with a hole or two may be, as a regular expression; a hole that is a string is a word."""
    parts = _parts(node)
    holes = [one for one in parts or () if not isinstance(one, str)]
    texts = [one for one in parts or () if isinstance(one, str)]
    if parts is None or len(holes) not in (1, 2) or not "".join(texts).isidentifier():
        return None
    return "".join(
        re.escape(one) if isinstance(one, str) else _filled_in(facts, one) or hole for one in parts
    )


_WRITTEN = {
    "capitalize": "[A-Z][a-z]*",
    "title": "[A-Z][a-z]*",
    "upper": "[A-Z]+",
    "lower": "[a-z]+",
}


def _filled_in(facts: Facts, hole: cst.BaseExpression) -> str:
    """What a hole is filled with, as a regular expression: a word where it is a text, and none made of a number."""
    if isinstance(hole, cst.Call) and isinstance(hole.func, cst.Attribute) and not hole.args:
        if hole.func.attr.value in _WRITTEN:
            return _WRITTEN[hole.func.attr.value]
    number = (
        isinstance(hole, cst.Call)
        and facts.callee(hole) == "builtins.str"
        and k.scalar_type(facts.kind(hole.args[0].value)) != "str"
    )
    return r"\w+" if k.scalar_type(facts.kind(hole)) == "str" and not number else ""


def _parts(node: cst.BaseExpression) -> list[str | cst.BaseExpression] | None:
    """What a text is put together from, in order: ``f"Conv{n}d"``, ``kind + "Cell"``, ``"%sCell" % kind``, ``.format``."""
    if isinstance(node, cst.FormattedString):
        if "r" in node.prefix.lower():
            return None
        found: list[str | cst.BaseExpression] = []
        for one in node.parts:
            if isinstance(one, cst.FormattedStringText):
                found.append(one.value)
            elif isinstance(one, cst.FormattedStringExpression) and one.format_spec is None:
                found.append(one.expression)
            else:
                return None
        return found
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        sides = [_parts(side) or [side] for side in (node.left, node.right)]
        told = any(isinstance(one, str) for side in sides for one in side)
        return [one for side in sides for one in side] if told else None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
        given = node.right.elements if isinstance(node.right, cst.Tuple) else None
        values = [node.right] if given is None else [one.value for one in given]
        return _filled(node.left, _PERCENT, values)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "format" and not any(a.keyword or a.star for a in node.args):
            return _filled(node.func.value, _BRACES, [a.value for a in node.args])
        return None
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return [node.evaluated_value]
    return None


_PERCENT = re.compile(r"%[dis]")
_BRACES = re.compile(r"\{\}")


def _filled(
    node: cst.BaseExpression, hole: re.Pattern[str], values: list[cst.BaseExpression]
) -> list[str | cst.BaseExpression] | None:
    """The texts around the holes of a string, and between them what stands there."""
    text = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    if not isinstance(text, str):
        return None
    if len(values) == 1 and hole is _BRACES:
        text = text.replace("{0}", "{}")
    first, *rest = hole.split(text)
    if len(rest) != len(values) or any(mark in one for one in (first, *rest) for mark in "%{}"):
        return None
    found: list[str | cst.BaseExpression] = [first]
    for value, after in zip(values, rest, strict=True):
        found += [*(_parts(value) or [value]), after]
    return found


_MOST = 6
"""More names than these are no choice that somebody would write down."""


def names_dtype(facts: Facts, call: cst.Call) -> bool:
    """``getattr(torch, config.dtype)``: the name of a dtype that is not known."""
    if len(call.args) != 2 or facts.kind(call.args[0].value) != k.Namespace("torch"):
        return False
    name = (dotted(call.args[1].value) or "").rpartition(".")[2]
    return name.endswith("dtype") and asked_name(facts, call) is None


def truth(facts: Facts, test: cst.CSTNode) -> bool | None:
    """The truth of a test that asks about torch; None where it depends on anything else."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = truth(facts, test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        sides = truth(facts, test.left), truth(facts, test.right)
        decides = isinstance(test.operator, cst.Or)
        if decides in sides:
            return decides
        return None if None in sides else not decides
    if isinstance(test, cst.Name) and test.value in facts.settled:
        return bool(facts.settled[test.value])
    if isinstance(test, cst.Call):
        callee = facts.callee(test)
        if callee == "builtins.hasattr":
            asked = asked_name(facts, test)
            return exists(*asked) if asked is not None else None
        if devices.is_text(facts, test):
            return True
        if callee in _NEVER or devices.is_cuda_tensor(facts, test):
            return False
        return True if callee in _ALWAYS else _of_function(facts, test)
    if isinstance(test, cst.Attribute):
        return False if devices.never(facts, test) else None
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _compared(facts, test)
    return None


def _of_function(facts: Facts, call: cst.Call) -> bool | None:
    """``is_distributed()``: a function of the file without arguments that returns what is asked of torch."""
    answer = _answer(facts, call)
    return answer if isinstance(answer, bool) else None


def _answer(facts: Facts, call: cst.Call) -> bool | int | None:
    """What a function of the file without arguments returns, which may be told by what it asks of torch."""
    name = call.func.value if isinstance(call.func, cst.Name) else ""
    info = facts.names.get(facts.callee(call) or "") if name and not call.args else None
    if info is None or info.short != name or info.decorators or info.params:
        return None
    top = facts.tree.root.body if isinstance(facts.tree.root, cst.Module) else ()
    bound = [n for n in facts.tree.of_type(cst.FunctionDef) if n.name.value == name]
    if bound != [info.node] or info.node not in top or name not in facts.module_env:
        return None
    if info in facts.answering:
        return None  # a function that asks itself
    facts.answering.append(info)
    try:
        return _returned(facts, info.node.body)
    finally:
        facts.answering.pop()


def _returned(facts: Facts, suite: cst.BaseSuite) -> bool | int | None:
    """``if not is_available(): return 1`` and ``return world_size()``: what the first return that is reached gives."""
    for line in suite.body:
        if is_docstring(line):
            continue
        if isinstance(line, cst.If):
            holds = truth(facts, line.test)
            taken = line.body if holds else line.orelse
            if isinstance(taken, cst.Else):
                taken = taken.body
            if holds is None or isinstance(taken, cst.If):
                return None
            if taken is not None and (leaves(taken) or not isinstance(taken, cst.BaseSuite)):
                return _returned(facts, taken)
            if taken is not None:
                return None
            continue
        only = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
        if not isinstance(only, cst.Return) or only.value is None:
            return None
        value = only.value
        if isinstance(value, cst.Name) and value.value in ("True", "False"):
            return value.value == "True"
        number = _number(facts, value)
        if number is None and isinstance(value, _ASKING):
            return truth(facts, value)
        return number
    return None


def _number(facts: Facts, node: cst.BaseExpression) -> int | None:
    """``1``, ``get_world_size()``, and a name that is given nothing else in its function."""
    if isinstance(node, cst.Integer):
        return int(node.value, 0)
    if isinstance(node, cst.Name):
        given = _only_value(facts, node)
        return _number(facts, given) if isinstance(given, cst.Call) else None
    answer = _answer(facts, node) if isinstance(node, cst.Call) else None
    return answer if type(answer) is int else None


def _only_value(facts: Facts, name: cst.Name) -> cst.BaseExpression | None:
    """What a local variable is given, where its function binds the name once."""
    around = facts.tree.around(name) if facts.tree.has(name) else []
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    if function is None or name.value in parameters(function):
        return None
    tree = facts.tree
    bound = [n for n in tree.within(function.body, *_BINDING) if tree.naming(n, name.value)]
    match [(one, facts.tree.parent(one)) for one in bound]:
        case [(cst.AssignTarget(cst.Name()), cst.Assign([_], cst.Call() as value))]:
            return value
    return None


_ASKING = (cst.Call, cst.BooleanOperation, cst.UnaryOperation, cst.Comparison)
_BINDING: tuple[type[cst.CSTNode], ...] = (
    *(cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.AsName, cst.ImportAlias),
    *(cst.For, cst.CompFor, cst.Global, cst.Nonlocal, cst.Del, cst.FunctionDef, cst.ClassDef),
)


def leaves(suite: cst.CSTNode | None) -> bool:
    """Whether what follows a suite that runs is never reached."""
    last: cst.CSTNode | None = suite
    while isinstance(last, (cst.IndentedBlock, cst.SimpleStatementSuite, cst.Else)):
        last = last.body if isinstance(last, cst.Else) else last.body[-1] if last.body else None
        if isinstance(last, cst.SimpleStatementLine):
            last = last.body[-1]
    return isinstance(last, (cst.Return, cst.Raise, cst.Continue, cst.Break))


def _compared(facts: Facts, test: cst.Comparison) -> bool | None:
    """``torch.__version__ >= "2.0"``, on either side and parsed or not; ``x.device != y.device``."""
    target = test.comparisons[0]
    asked = _devices(facts, test.left, target)
    if asked is not None:
        return asked
    if isinstance(target.operator, (cst.Is, cst.IsNot)):
        none = isinstance(target.comparator, cst.Name) and target.comparator.value == "None"
        is_none = _is_none(facts, test.left) if none and isinstance(test.left, cst.Name) else None
        return None if is_none is None else is_none is isinstance(target.operator, cst.Is)
    if isinstance(target.operator, (cst.In, cst.NotIn)):
        there = _listed(facts, test.left, target.comparator)
        return there if there is None or isinstance(target.operator, cst.In) else not there
    order = _ORDERS.get(type(target.operator))
    sides = (test.left, target.comparator)
    if order is not None and isinstance(target.comparator, cst.Integer):
        number = _number(facts, test.left)
        if number is not None and not isinstance(test.left, cst.Integer):
            return order((number,), (int(target.comparator.value, 0),))
    asks = [facts.kind(side) == TORCH_VERSION for side in sides]
    if order is None or sum(asks) != 1:
        return None
    return _ordered(order, asks[0], _written_version(facts, sides[asks.index(False)]))


def _ordered(
    order: Callable[[tuple[int, ...], tuple[int, ...]], bool],
    first: bool,
    other: tuple[int, ...] | None,
) -> bool | None:
    """How torch's version compares with another; ``first`` says that it stands on the left."""
    own = _release(VERSION)
    if own is None or other is None:
        return None
    width = max(len(own), len(other))
    own, other = (v + (0,) * (width - len(v)) for v in (own, other))
    return order(own, other) if first else order(other, own)


def _is_none(facts: Facts, name: cst.Name) -> bool | None:
    """Whether what a library's absence leaves is None; a module of torch that ``try`` imports is there."""
    if name.value in facts.settled:
        return facts.settled[name.value] is None
    kind = facts.kind(name)
    if not isinstance(kind, k.Namespace) or not of_torch(kind.name):
        return None
    for one in facts.tree.of_type(cst.AssignTarget):
        if isinstance(one.target, cst.Name) and one.target.value == name.value:
            around = facts.tree.around(one)
            handled = any(isinstance(node, cst.ExceptHandler) for node in around)
            tries = [node for node in around if isinstance(node, cst.Try)]
            if not handled or not facts.tree.within(tries[-1].body, cst.Import, cst.ImportFrom):
                return None
    return False


def _devices(facts: Facts, left: cst.BaseExpression, target: cst.ComparisonTarget) -> bool | None:
    """``x.device.type == "cuda"``, ``x.device.type in ("cuda", "xpu")``."""
    negated = isinstance(target.operator, (cst.NotEqual, cst.IsNot, cst.NotIn))
    if isinstance(target.operator, (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot)):
        found = devices.same(facts, left, target.comparator)
    elif isinstance(target.operator, (cst.In, cst.NotIn)):
        found = devices.among(facts, left, target.comparator)
    else:
        return None
    return None if found is None else found is not negated


def _listed(facts: Facts, name: cst.BaseExpression, names: cst.BaseExpression) -> bool | None:
    """``"silu" in dir(F)``."""
    if not isinstance(names, cst.Call) or len(names.args) != 1:
        return None
    namespace, asked = facts.kind(names.args[0].value), facts.kind(name)
    if not isinstance(names.func, cst.Name) or names.func.value != "dir":
        return None
    if not isinstance(namespace, k.Namespace) or not isinstance(asked, k.Const):
        return None
    return exists(namespace.name, str(asked.value)) if of_torch(namespace.name) else None


def _written_version(facts: Facts, node: cst.BaseExpression) -> tuple[int, ...] | None:
    """``"2.0"``, ``version.parse("2.0")``, ``Version("2.0")``."""
    if isinstance(node, cst.Call) and len(node.args) == 1:
        if _is_parser(facts, node.func):
            return _written_version(facts, node.args[0].value)
    if isinstance(node, cst.Tuple) and all(isinstance(e.value, cst.Integer) for e in node.elements):
        return _release(".".join(e.value.value for e in node.elements))  # type: ignore[attr-defined]
    if isinstance(node, cst.SimpleString):
        return _release(str(node.evaluated_value))
    return None


def _release(text: str) -> tuple[int, ...] | None:
    """The numbers of a plain release; None for what has more to it (``2.1.0a0``)."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d+(\.\d+)*", text) else None


def present(facts: Facts, node: cst.BaseExpression) -> bool:
    """Whether an expression reads a name that torch surely has, and which is true therefore."""
    if isinstance(node, cst.Call) and facts.callee(node) == "builtins.getattr":
        asked = asked_name(facts, node)
        return asked is not None and exists(*asked) is True and _true(facts.kind(node))
    return False


def _true(kind: k.Kind) -> bool:
    return isinstance(kind, (k.Function, k.Class, k.Namespace))


def of_version(facts: Facts, value: cst.BaseExpression) -> bool | None:
    """``V(torch.__version__) >= V("1.9.0")``, as it is written; None for anything else."""
    if not isinstance(value, cst.Comparison) or len(value.comparisons) != 1:
        return None
    target, sides = value.comparisons[0], [value.left, value.comparisons[0].comparator]
    order = _ORDERS.get(type(target.operator))
    asks = [_writes_own_version(facts, side) for side in sides]
    if order is None or sum(asks) != 1:
        return None
    return _ordered(order, asks[0], _written_version(facts, sides[asks.index(False)]))


def _writes_own_version(facts: Facts, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call) and len(node.args) == 1:
        return _is_parser(facts, node.func) and dotted(node.args[0].value) == "torch.__version__"
    return False


def parses_version(facts: Facts, node: cst.Call, argument: k.Kind) -> bool:
    """``version.parse(torch.__version__)``."""
    return argument == TORCH_VERSION and _is_parser(facts, node.func)


def _is_parser(facts: Facts, func: cst.BaseExpression) -> bool:
    """``Version``, ``version.parse``, and ``V`` of ``from packaging.version import parse as V``."""
    name = func.attr if isinstance(func, cst.Attribute) else func
    if not isinstance(name, cst.Name) or name.value in _PARSERS:
        return isinstance(name, cst.Name)
    return any(
        isinstance(one.name, cst.Name)
        and one.name.value in _PARSERS
        and one.asname is not None
        and isinstance(one.asname.name, cst.Name)
        and one.asname.name.value == name.value
        for one in facts.tree.of_type(cst.ImportAlias)
    )


def undecided_version(facts: Facts, test: cst.Comparison) -> bool:
    """A comparison of ``torch.__version__``, which is ordered as versions are, with what is not known."""
    sides = [test.left, *(target.comparator for target in test.comparisons)]
    plain = [facts.kind(s) == TORCH_VERSION and not isinstance(s, cst.Call) for s in sides]
    return any(plain) and _compared(facts, test) is None


def settled_by_calls(info: FunctionInfo | None, test: cst.CSTNode) -> bool | None:
    """Whether ``if size is None:`` holds for all calls of a function, or for none; None where calls say nothing.

    Where all give a number of Python, what such a default is computed of, ``size = lengths.max()``, says nothing of it.
    """
    if info is None or not info.call_sites or info.settled is not None or info.shared:
        return None
    match test:
        case cst.Comparison(
            left=cst.Name(value=name),
            comparisons=[
                cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))
            ],
        ):
            handed = info.handed.get(name, {})
            param = parameters(info.node).get(name)
            if param is None or param.default is None:
                return None
            kinds = [handed.get(call) for call in info.call_sites]
            if handed and all(one in (None, k.NONE) for one in kinds):
                return True
            numbers = all(
                one is not None and k.scalar_type(one) in ("int", "float") for one in kinds
            )
            # who uses a module calls its forward pass
            if numbers and info.short not in ("forward", "__call__", "__init__"):
                return False
    return None

"""Functions that ask for gradients of what they are handed: ``def gradient(y, x)``, written out where they are called.

What ``y`` was computed from stands where it is called, and so does the function that JAX differentiates::

    def gradient(y, x):                                     u = self.net(x)
        return torch.autograd.grad(                         u_x = torch.autograd.grad(
            y, x, torch.ones_like(y),              ⟶          u, x, torch.ones_like(u),
            create_graph=True)[0]                               create_graph=True)[0]

    u = self.net(x)
    u_x = gradient(u, x)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.asked_gradients import assigned, fresh_name, may_ask, spelled
from migrator.assignments import BINDING, bound, bound_by, with_functions, with_statements

_DEEP = 3
"""How many such functions may call one another."""


def in_callers(tree: cst.Module, text: str) -> cst.Module:
    """A file whose functions ask for gradients themselves, where another one did it for them."""
    if not may_ask(text) or "def " not in text:
        return tree
    asking, _ = spelled(tree)
    if not asking:
        return tree
    for _ in range(_DEEP):
        helpers = _helpers(tree, asking)
        if not helpers:
            return tree
        made = _without(_written_out(tree, helpers), helpers, tree, asking)
        if made is tree:
            return tree
        tree = made
    return tree


@dataclass
class _Helper:
    """A function that asks for gradients of its parameters.

    Attributes:
      function: its definition.
      owner: the name of the class that it is a method of, empty where it is none.
      first: the parameter that is the module, None where there is none.
      params: the others, with their defaults.
      body: its lines but the last.
      result: what it returns.
      own: the variables that it binds.
    """

    function: cst.FunctionDef
    owner: str
    first: str | None
    params: dict[str, cst.BaseExpression | None]
    body: list[Any]
    result: cst.BaseExpression
    own: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.function.name.value


def _helpers(tree: cst.Module, asking: frozenset[str]) -> dict[str, _Helper]:
    """The functions of a file that can be written out, by their names; none of two that share theirs."""
    found: dict[str, list[_Helper | None]] = {}
    for owner, function in _functions(tree):
        name = function.name.value
        found.setdefault(name, []).append(_helper(owner, function, asking))
    others = _bound(*(line for line in tree.body if not isinstance(line, _DEFINITIONS)))
    named = Counter(n.name.value for n in syntax.walk(tree) if isinstance(n, _DEFINITIONS))
    whole = {name: one[0] for name, one in found.items() if named[name] == 1 and name not in others}
    calls = {
        name: helper
        for name, helper in whole.items()
        if helper is not None and not syntax.names(helper.function.body).get(name)
    }
    # One that calls another is written out after the other is.
    return {
        name: helper
        for name, helper in calls.items()
        if not any(one is not helper and _calls_of(helper.function, one) for one in calls.values())
    }


_DEFINITIONS = (cst.FunctionDef, cst.ClassDef)


def _functions(tree: cst.Module) -> Iterator[tuple[str, cst.FunctionDef]]:
    for line in tree.body:
        if isinstance(line, cst.FunctionDef):
            yield "", line
        elif isinstance(line, cst.ClassDef):
            for one in line.body.body:
                if isinstance(one, cst.FunctionDef):
                    yield line.name.value, one


def _helper(owner: str, function: cst.FunctionDef, asking: frozenset[str]) -> _Helper | None:
    params = syntax.parameters(function)
    plain = function.params
    names = list(params)
    decorators = [syntax.code(one.decorator) for one in function.decorators]
    if plain.posonly_params or plain.kwonly_params or function.asynchronous is not None:
        return None
    if (
        isinstance(plain.star_arg, cst.Param)
        or plain.star_kwarg
        or decorators not in ([], ["staticmethod"])
    ):
        return None
    if decorators and not owner:
        return None
    first = names.pop(0) if owner and not decorators and names else None
    if owner and not decorators and first is None:
        return None
    if not isinstance(function.body, cst.IndentedBlock):
        return None
    body: list[Any] = [one for one in function.body.body if not syntax.is_docstring(one)]
    last = body.pop() if body else None
    match last:
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as result)]):
            pass
        case _:
            return None
    own = _bound(function.body)
    body, result = _short(body, result)
    inside = [node for one in (*body, result) for node in syntax.walk(one)]
    if any(isinstance(node, _STRANGE) or _writes(node) for node in inside):
        return None
    asked = [n for n in inside if isinstance(n, cst.Call) and syntax.code(n.func) in asking]
    if not asked or not any(_asks_of(call, names) for call in asked):
        return None
    if first is not None and first in own:
        return None
    defaults = {name: params[name].default for name in names}
    if any(one is not None and not _is_constant(one) for one in defaults.values()):
        return None
    return _Helper(function, owner, first, defaults, body, result, own)


def _bound(*nodes: cst.CSTNode) -> set[str]:
    """The variables that some lines bind."""
    inside = (node for one in nodes for node in syntax.walk(one) if isinstance(node, BINDING))
    return {name for node in inside for name in bound(bound_by(node))}


def _writes(node: cst.CSTNode) -> bool:
    """Whether something is written that a line may share with others: ``y.mul_(2)``, ``self.g = g``, ``g += y``."""
    if isinstance(node, cst.Call):
        return _called(node).endswith("_") and _called(node) != "requires_grad_"
    if isinstance(node, cst.AssignTarget):
        return any(isinstance(one, (cst.Attribute, cst.Subscript)) for one in syntax.walk(node))
    return isinstance(node, cst.AugAssign) and not isinstance(node.target, cst.Name)


def _short(body: list[Any], result: Any) -> tuple[list[Any], cst.BaseExpression]:
    """The lines and the result of a function without ``grad = …`` before ``return grad``."""
    while body and isinstance(result, cst.Name):
        match body[-1]:
            case cst.SimpleStatementLine(
                body=[cst.Assign([cst.AssignTarget(cst.Name(value=target))], value)]
            ) if target == result.value:
                body, result = body[:-1], value
            case _:
                break
    return body, result


_STRANGE = (
    *(cst.FunctionDef, cst.ClassDef, cst.Lambda, cst.Return, cst.Yield, cst.Await, cst.Global),
    *(cst.Nonlocal, cst.Try, cst.With, cst.Del, cst.NamedExpr, cst.Import, cst.ImportFrom),
)
"""What a function that is written out has none of, its last line aside."""


def _is_constant(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Name):
        return node.value in ("None", "True", "False")
    return isinstance(node, (cst.Integer, cst.Float, cst.SimpleString))


def _is_part(node: cst.BaseExpression) -> bool:
    """``u``, ``u[:, i:i + 1]``: what may be read again."""
    while isinstance(node, cst.Subscript):
        if not all(isinstance(n, _PLACES) for one in node.slice for n in syntax.walk(one)):
            return False
        node = node.value
    return isinstance(node, cst.Name)


_PLACES = (
    *(cst.Name, cst.Integer, cst.Slice, cst.Index, cst.SubscriptElement, cst.BinaryOperation),
    *(cst.UnaryOperation, cst.BaseBinaryOp, cst.BaseUnaryOp, cst.Ellipsis),
)


def _asks_of(call: cst.Call, params: list[str]) -> bool:
    """Whether a gradient is one of a parameter, or of what is computed from it, by a parameter."""
    given = {
        one.keyword.value if one.keyword else ("outputs", "inputs", *("",) * 9)[place]: one.value
        for place, one in enumerate(call.args)
        if not one.star
    }
    if not {"outputs", "inputs"} <= set(given):
        return False
    return all(set(params) & set(syntax.names(given[name])) for name in ("outputs", "inputs"))


def _calls_of(node: cst.CSTNode, helper: _Helper) -> list[cst.Call]:
    """The calls in a node that may be of a helper."""
    return [one for one in syntax.walk(node) if isinstance(one, cst.Call) and _is_of(one, helper)]


def _is_of(call: cst.Call, helper: _Helper) -> bool:
    if helper.owner:
        return isinstance(call.func, cst.Attribute) and (
            call.func.attr.value == helper.name and isinstance(call.func.value, cst.Name)
        )
    return isinstance(call.func, cst.Name) and call.func.value == helper.name


def _called(call: cst.Call) -> str:
    func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return func.value if isinstance(func, cst.Name) else ""


# where they are called


def _written_out(tree: cst.Module, helpers: dict[str, _Helper]) -> cst.Module:
    """A file with the calls of helpers written out."""

    def of_owner(owner: str) -> Any:
        def change(function: cst.FunctionDef) -> cst.FunctionDef:
            caller = _Caller(function, owner, helpers)
            return caller.rewritten()

        return change

    body: list[Any] = []
    for line in tree.body:
        owner = line.name.value if isinstance(line, cst.ClassDef) else ""
        if any(_calls_of(line, one) for one in helpers.values()):
            around: cst.Module = with_functions(cst.Module([line]), of_owner(owner))
            line = around.body[0]
        body.append(line)
    script = cst.FunctionDef(cst.Name("script"), cst.Parameters(), cst.IndentedBlock(body))
    made: Any = _Caller(script, "", helpers, top=True).rewritten().body
    changed = any(one is not old for one, old in zip(made.body, tree.body, strict=False))
    return syntax.changed(tree, body=list(made.body)) if changed else tree


class _Caller:
    """A function that calls helpers."""

    def __init__(
        self,
        function: cst.FunctionDef,
        owner: str,
        helpers: dict[str, _Helper],
        top: bool = False,
    ) -> None:
        self.function, self.owner, self.helpers, self.top = function, owner, helpers, top
        self.used = set(syntax.names(function))
        self.bound = _bound(function.body) if not top else set()
        self.bound |= set(syntax.parameters(function))
        params = list(syntax.parameters(function))
        self.itself = params[0] if params else ""

    def rewritten(self) -> cst.FunctionDef:
        if not any(_calls_of(self.function.body, one) for one in self.helpers.values()):
            return self.function

        def block(node: Any) -> Any:
            if not isinstance(node, cst.IndentedBlock):
                return node
            lines: list[Any] = []
            for line in node.body:
                lines += self._line(line)
            same = len(lines) == len(node.body) and all(map(_is, lines, node.body))
            return node if same else syntax.changed(node, body=lines)

        if self.top:
            return syntax.changed(self.function, body=block(self.function.body))
        whole = with_statements(cst.Module([self.function]), block)
        made: Any = whole.body[0]
        return made

    def _line(self, line: Any) -> list[Any]:
        """A line with the calls of helpers in it written out before it."""
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return [line]
        before: list[Any] = []
        once = set(_once(line))
        for call in _calls(line):
            helper = self.helpers.get(_called(call))
            if helper is None or not _is_of(call, helper):
                continue
            given = self._given(call, helper)
            if given is None or not _is_calm(line, call):
                continue
            lines, result = self._expanded(helper, given)
            if lines and call not in once:
                continue
            before += lines
            line = _replaced(line, call, result)
        if before:
            leading = line.leading_lines
            before[0] = syntax.changed(before[0], leading_lines=leading)
            line = syntax.changed(line, leading_lines=[])
        return [*before, line]

    def _given(self, call: cst.Call, helper: _Helper) -> dict[str, cst.BaseExpression] | None:
        """The arguments of a call by the parameters; None where it is not known to be the helper that is called."""
        free = set(syntax.names(helper.function.body)) - helper.own - set(helper.params)
        if helper.owner:
            match call.func:
                case cst.Attribute(value=cst.Name(value=owner)):
                    pass
                case _:
                    return None
            own = self.owner == helper.owner and owner == self.itself
            if not own and (owner != helper.owner or helper.first is not None):
                return None
        elif not isinstance(call.func, cst.Name) or helper.name in self.bound:
            return None
        if (free - {helper.first}) & self.bound:
            return None  # a name of the file is another's here
        given: dict[str, cst.BaseExpression] = {}
        for place, one in enumerate(call.args):
            if one.star or (not one.keyword and place >= len(helper.params)):
                return None
            name = one.keyword.value if one.keyword else list(helper.params)[place]
            if name not in helper.params or name in given:
                return None
            given[name] = one.value
        for name, default in helper.params.items():
            if name not in given:
                if default is None:
                    return None
                given[name] = default
        return given

    def _expanded(
        self, helper: _Helper, given: dict[str, cst.BaseExpression]
    ) -> tuple[list[Any], cst.BaseExpression]:
        """What a call comes to: the lines before, and the expression in its place."""
        lines: list[Any] = []
        names: dict[str, cst.BaseExpression] = {}
        body = [made for one in helper.body for made in _settled(one, given)]
        body, whole = _with_ones(body, helper.result)
        own = _bound(*body, whole)
        for name, value in given.items():
            if name not in own and (_is_part(value) or _is_constant(value)):
                names[name] = value
                continue
            new = self._new(name)
            names[name] = cst.Name(new)
            if not _is_bound_first(body, name):
                lines.append(assigned(new, value.deep_clone()))
        if helper.first is not None:
            names[helper.first] = cst.Name(self.itself)
        for name in sorted(own - set(given)):
            names[name] = cst.Name(self._new(name))
        lines += [_renamed(one, names) for one in body]
        return lines, _renamed(syntax.unparenthesized(whole), names)

    def _new(self, name: str) -> str:
        return fresh_name(name, self.used)


def _is(one: object, other: object) -> bool:
    return one is other


def _calls(line: cst.CSTNode) -> list[cst.Call]:
    """The calls of a line, inner ones first."""
    return [one for one in reversed(list(syntax.walk(line))) if isinstance(one, cst.Call)]


_ASIDE = (cst.Lambda, cst.BaseComp, cst.IfExp, cst.BooleanOperation, cst.Comparison)
"""What may compute a part of itself more than once, or not at all."""


def _once(line: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls of a line that are made once and in any case."""
    for one in syntax.children(line):
        if not isinstance(one, _ASIDE):
            if isinstance(one, cst.Call):
                yield one
            yield from _once(one)


def _is_calm(line: cst.SimpleStatementLine, call: cst.Call) -> bool:
    """Whether nothing that a line does before a call changes what the call is handed."""
    inside = {id(node) for node in syntax.walk(call)}
    for node in syntax.walk(line):
        if id(node) in inside:
            if node is not call and isinstance(node, (cst.Call, cst.NamedExpr)):
                if isinstance(node, cst.NamedExpr) or _called(node).endswith("_"):
                    return False
        elif isinstance(node, cst.NamedExpr):
            return False
        elif isinstance(node, cst.Call) and _called(node).endswith("_"):
            return False
    return True


def _settled(line: Any, given: dict[str, cst.BaseExpression]) -> list[Any]:
    """A line of a helper; ``if grad_outputs is None:`` is settled by what a call gives."""
    match line:
        case cst.If(
            test=cst.Comparison(
                left=cst.Name(value=name),
                comparisons=[
                    cst.ComparisonTarget(
                        operator=cst.Is() | cst.IsNot() as operator,
                        comparator=cst.Name(value="None"),
                    )
                ],
            ),
            body=body,
            orelse=orelse,
        ) if name in given:
            value = given[name]
            is_none = isinstance(value, cst.Name) and value.value == "None"
            if is_none or _is_something(value):
                chosen = body if is_none is isinstance(operator, cst.Is) else orelse
                if isinstance(chosen, cst.Else):
                    chosen = chosen.body
                return list(chosen.body) if isinstance(chosen, cst.IndentedBlock) else []
    return [line]


def _is_something(node: cst.BaseExpression) -> bool:
    """Whether an argument is surely not None: ``torch.ones_like(u)``, ``2 * w``."""
    if isinstance(node, cst.Call):
        return syntax.code(node.func).startswith("torch.")
    return isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.BaseNumber))


def _with_ones(body: list[Any], result: cst.BaseExpression) -> tuple[list[Any], cst.BaseExpression]:
    """Lines with ``ones = torch.ones_like(y)`` written where ``ones`` is read, where that is one place."""
    for place, line in enumerate(body):
        match line:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        [cst.AssignTarget(cst.Name(value=name))],
                        cst.Call(args=[cst.Arg(value=cst.Name(value=like))]) as value,
                    )
                ]
            ) if _called(value) == "ones_like":
                rest = [*body[:place], *body[place + 1 :]]
                every = [*rest, result]
                read = sum(syntax.names(one).get(name, 0) for one in every)
                if read == 1 and name not in _bound(*every) and like not in _bound(*rest):
                    with_it = {name: value}
                    rest = [_renamed(one, with_it) for one in rest]
                    return _with_ones(rest, _renamed(result, with_it))
    return body, result


def _is_bound_first(body: list[Any], name: str) -> bool:
    """Whether the first line of a body gives a variable its value without reading it."""
    match body[:1]:
        case [
            cst.SimpleStatementLine(
                body=[cst.Assign([cst.AssignTarget(cst.Name(value=target))], value)]
            )
        ]:
            return target == name and name not in syntax.names(value)
    return False


def _renamed(node: Any, names: Mapping[str, cst.BaseExpression]) -> Any:
    """A copy of a node with other names for its variables; not those of attributes and keywords."""

    def visit(one: Any) -> Any:
        if isinstance(one, cst.Name):
            return names[one.value].deep_clone() if one.value in names else one.deep_clone()
        if isinstance(one, cst.Attribute):
            return syntax.changed(one, value=syntax.fitted(one, "value", visit(one.value)))
        if isinstance(one, cst.Arg):
            return syntax.changed(one, value=visit(one.value))
        return syntax.rebuild(one, visit)

    return visit(node.deep_clone())


def _replaced(line: Any, old: cst.CSTNode, new: cst.BaseExpression) -> Any:
    def visit(node: cst.CSTNode) -> Any:
        return new if node is old else syntax.rebuild(node, visit)

    return visit(line)


# what is left of them


def _uses(tree: cst.Module, helper: _Helper, asking: frozenset[str]) -> int:
    """How often a file names a helper, its definition among them."""
    attributes: set[int] = set()
    aside: set[int] = set()
    times = 0
    for node in syntax.walk(tree):
        if isinstance(node, cst.Attribute):
            attributes.add(id(node.attr))
            if syntax.code(node) in asking:
                aside.add(id(node.attr))
        elif isinstance(node, cst.Name) and node.value == helper.name and id(node) not in aside:
            times += (id(node) in attributes) is bool(helper.owner) or node is helper.function.name
        elif isinstance(node, cst.SimpleString):
            times += node.value.strip("'\"") == helper.name
    return times


def _without(
    tree: cst.Module, helpers: dict[str, _Helper], before: cst.Module, asking: frozenset[str]
) -> cst.Module:
    """A file without the helpers that were called and no longer are."""
    if tree is before:
        return tree
    gone: set[str] = set()
    for name, helper in helpers.items():
        if _calls_of(before, helper) and _uses(tree, helper, asking) == 1:
            gone.add(name)

    def without(lines: Any) -> list[Any]:
        return [
            one
            for one in lines
            if not (isinstance(one, cst.FunctionDef) and one.name.value in gone)
        ]

    body: list[Any] = []
    for line in without(tree.body):
        if isinstance(line, cst.ClassDef) and isinstance(line.body, cst.IndentedBlock):
            rest = without(line.body.body)
            if rest and len(rest) != len(line.body.body):
                line = syntax.changed(line, body=syntax.changed(line.body, body=rest))
        body.append(line)
    return syntax.changed(tree, body=body) if gone else tree

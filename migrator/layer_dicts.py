"""Layers in a plain dict that are registered by a list of its values: ``self.decoder = nn.ModuleList(list(self.convs.values()))``.

The dict of a decoder that looks its layers up by keys such as ``("upconv", 4, 0)``. It is filled under a name of the
constructor's own, and what the module keeps under the dict's name are its keys, in the order of the list::

    self.convs = OrderedDict()                           convs = OrderedDict()
    self.convs[("up", 0)] = Block(8, 4)                  convs[("up", 0)] = Block(8, 4)
    self.net = nn.ModuleList(self.convs.values())   ⟶    self.net = nn.ModuleList(convs.values())
                                                         self.convs = tuple(convs.keys())

    x = self.convs[("up", 0)](x)                         x = self.net[self.convs.index(("up", 0))](x)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax

_REGISTERED = re.compile(
    r"\bself\.\w+\s*=\s*[\w.]*\b(?:ModuleList|Sequential)\(\s*\*?\s*(?:list\()?\s*self\.(\w+)\.values\(\)"
)
_CONTAINERS = ("ModuleList", "Sequential")


def as_places(tree: cst.Module, text: str) -> cst.Module:
    """A file whose modules know the places of the layers that they look up by keys."""
    if ".values()" not in text or not _REGISTERED.search(text):
        return tree
    heirs = {
        syntax.code(base.value)
        for node in tree.body
        if isinstance(node, cst.ClassDef)
        for base in node.bases
    }
    of_others = {
        node.attr.value
        for node in syntax.walk(tree)
        if isinstance(node, cst.Attribute) and not _is_own(node, node.attr.value)
    }
    body = [
        _class(line, of_others)
        if isinstance(line, cst.ClassDef) and line.name.value not in heirs
        else line
        for line in tree.body
    ]
    same = all(new is old for new, old in zip(body, tree.body, strict=True))
    return tree if same else syntax.changed(tree, body=body)


def _class(node: cst.ClassDef, of_others: set[str]) -> cst.ClassDef:
    """A class with its dicts of layers; not those that are read of an instance somewhere, ``net.convs``."""
    for name in dict.fromkeys(_REGISTERED.findall(syntax.code(node))):
        if name not in of_others:
            node = _of_dict(node, name) or node
    return node


def _of_dict(node: cst.ClassDef, name: str) -> cst.ClassDef | None:
    """A class whose dict of layers is one of places; None where it is more than filled, registered and looked up in."""
    inits = [
        one
        for one in node.body.body
        if isinstance(one, cst.FunctionDef) and one.name.value == "__init__"
    ]
    if len(inits) != 1 or not isinstance(inits[0].body, cst.IndentedBlock):
        return None
    init = inits[0]
    lines = list(init.body.body)
    made = [i for i, line in enumerate(lines) if _is_made(line, name)]
    listed = [(i, held) for i, line in enumerate(lines) if (held := _registers(line, name))]
    if len(made) != 1 or len(listed) != 1 or made[0] > listed[0][0]:
        return None
    (first,), ((last, held),) = made, listed
    if any(_mentions(line, name) for line in lines[:first]) or name in syntax.names(init):
        return None
    filled = lines[first + 1 : last]
    if not any(_mentions(line, name) for line in filled) or not all(
        _only_fills(line, name) for line in filled
    ):
        return None
    methods = [one for one in node.body.body if one is not init]
    looked = [*lines[last + 1 :], *methods]
    others = [*lines[:first], *filled]
    if not all(_only_looks_up(line, name, held) for line in looked):
        return None
    if any(_mentions(line, held) for line in others) or any(_writes(one, held) for one in looked):
        return None
    local = {name: cst.Name(name)}
    body = [*lines[:first]]
    body += [_with_local(line, local) for line in lines[first : last + 1]]
    places = f"self.{name} = tuple({name}.keys())\n"
    body.append(syntax.statement(places))
    body += [_with_places(line, name, held) for line in lines[last + 1 :]]
    new: list[Any] = [
        syntax.changed(init, body=syntax.changed(init.body, body=body))
        if one is init
        else _with_places(one, name, held)
        for one in node.body.body
    ]
    return syntax.changed(node, body=syntax.changed(node.body, body=new))


def _is_own(node: Any, name: str) -> bool:
    """``self.convs``."""
    return (
        isinstance(node, cst.Attribute)
        and node.attr.value == name
        and isinstance(node.value, cst.Name)
        and node.value.value == "self"
    )


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(
        (isinstance(one, cst.Attribute) and one.attr.value == name)
        or (isinstance(one, cst.SimpleString) and one.value.strip("'\"") == name)
        for one in syntax.walk(node)
    )


def _assigned(line: Any) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]
        ):
            return target, value
    return None


def _is_made(line: Any, name: str) -> bool:
    """``self.convs = {}``, ``self.convs = OrderedDict()``."""
    target, value = _assigned(line) or (None, None)
    if not _is_own(target, name):
        return False
    if isinstance(value, cst.Call):
        return not value.args and _last(value.func) in ("OrderedDict", "dict")
    return isinstance(value, cst.Dict) and not value.elements


def _registers(line: Any, name: str) -> str | None:
    """The name of the container that is made of a dict's values."""
    target, value = _assigned(line) or (None, None)
    if not isinstance(target, cst.Attribute) or not _is_own(target, target.attr.value):
        return None
    match value:
        case cst.Call(func=func, args=[cst.Arg(value=given, keyword=None)]):
            if _last(func) not in _CONTAINERS:
                return None
            if isinstance(given, cst.Call) and _last(given.func) == "list" and len(given.args) == 1:
                given = given.args[0].value
            match given:
                case cst.Call(
                    func=cst.Attribute(value=held, attr=cst.Name(value="values")), args=[]
                ) if _is_own(held, name):
                    return target.attr.value
    return None


def _last(func: cst.BaseExpression) -> str:
    last = func.attr if isinstance(func, cst.Attribute) else func
    return last.value if isinstance(last, cst.Name) else ""


def _only_fills(line: cst.CSTNode, name: str) -> bool:
    """Whether a line of the constructor does no more with a dict than put layers into it, and hands ``self`` to nobody."""
    filling: set[int] = set()
    for node in syntax.walk(line):
        match node:
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Subscript(value=held) as place)]
            ) if _is_own(held, name) and syntax.key_of(place) is not None:
                filling.add(id(held))
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=held)]) if _is_own(
                held, name
            ):
                filling.add(id(held))
            case cst.FunctionDef() | cst.Lambda() | cst.Return():
                return False
            case cst.Call(func=cst.Attribute(value=cst.Name(value="self"))):
                return False  # a method of its own may read it
            case cst.Arg(value=cst.Name(value="self")):
                return False
    every = (one for one in syntax.walk(line) if isinstance(one, cst.Attribute))
    return all(id(one) in filling for one in every if one.attr.value == name) and not any(
        isinstance(one, cst.SimpleString) and one.value.strip("'\"") == name
        for one in syntax.walk(line)
    )


def _only_looks_up(node: cst.CSTNode, name: str, held: str) -> bool:
    """Whether layers are only looked up in a dict: ``self.convs[key]``, ``key in self.convs``, ``self.convs.values()``."""
    fine: set[int] = set()
    for one in syntax.walk(node):
        match one:
            case cst.AssignTarget() | cst.AugAssign() | cst.Del() | cst.For() | cst.AnnAssign():
                target = one.iter if isinstance(one, cst.For) else getattr(one, "target", one)
                if any(_is_own(inner, name) for inner in _stored(target, isinstance(one, cst.For))):
                    return False
            case cst.Subscript(value=value) if syntax.key_of(one) is not None:
                fine.add(id(value))
            case cst.ComparisonTarget(operator=cst.In() | cst.NotIn(), comparator=value):
                fine.add(id(value))
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=value)]):
                fine.add(id(value))
            case cst.Call(
                func=cst.Attribute(value=value, attr=cst.Name(value="values" | "keys")), args=[]
            ):
                fine.add(id(value))
            case cst.SimpleString() if one.value.strip("'\"") == name:
                return False
    every = (one for one in syntax.walk(node) if isinstance(one, cst.Attribute))
    return all(id(one) in fine and _is_own(one, name) for one in every if one.attr.value == name)


def _stored(target: Any, only_itself: bool) -> Sequence[cst.CSTNode]:
    """What is written where something is stored: ``self.convs[key]``, and not the keys of other things."""
    if only_itself:
        return [target]
    found: list[cst.CSTNode] = [target]
    while isinstance(found[-1], (cst.Subscript, cst.Attribute)):
        found.append(found[-1].value)
    if isinstance(target, (cst.Tuple, cst.List)):
        for one in target.elements:
            found += _stored(one.value, False)
    return found


def _writes(node: cst.CSTNode, held: str) -> bool:
    """Whether the list of layers is changed: another layer might stand where a key's did."""
    for one in syntax.walk(node):
        match one:
            case cst.AssignTarget(target=target) | cst.AugAssign(target=target):
                if any(
                    isinstance(n, cst.Attribute) and n.attr.value == held
                    for n in _stored(target, False)
                ):
                    return True
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value=method))):
                changing = ("append", "extend", "insert", "pop", "add_module", "__setitem__")
                if method in changing and isinstance(value, cst.Attribute):
                    if value.attr.value == held:
                        return True
            case cst.Del():
                return True
    return False


def _with_local(line: Any, names: dict[str, cst.Name]) -> Any:
    """A line that fills the constructor's own dict."""

    def visit(node: cst.CSTNode) -> Any:
        if isinstance(node, cst.Attribute) and _is_own(node, node.attr.value):
            return names.get(node.attr.value, node)
        return syntax.rebuild(node, visit)

    return visit(line)


def _with_places(line: Any, name: str, held: str) -> Any:
    """A statement with ``self.net[self.convs.index(key)]`` for ``self.convs[key]``, ``self.net`` for ``self.convs.values()``."""

    def visit(node: cst.CSTNode) -> Any:
        match node:
            case cst.Subscript(value=value) if _is_own(value, name):
                container = cst.Attribute(cst.Name("self"), cst.Name(held))
                looked_up: Any = syntax.key_of(node)
                key = visit(looked_up)
                place = cst.Call(cst.Attribute(node.value, cst.Name("index")), [cst.Arg(key)])
                return cst.Subscript(container, [cst.SubscriptElement(cst.Index(place))])
            case cst.Call(
                func=cst.Attribute(value=value, attr=cst.Name(value="values")), args=[]
            ) if _is_own(value, name):
                return cst.Attribute(cst.Name("self"), cst.Name(held))
            case cst.Call(
                func=cst.Attribute(value=value, attr=cst.Name(value="keys")), args=[]
            ) if _is_own(value, name):
                return value
        return syntax.rebuild(node, visit)

    return visit(line)

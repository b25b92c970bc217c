"""What is said in a roundabout way, as the passes know it: ``id(a) == id(b)``, ``getattr(layer, "weight")``."""

from __future__ import annotations

import keyword
import re

import libcst as cst

from migrator import syntax

_IDENTITY = re.compile(r"id\((?<![\w.]id\()")  # the word first: it is looked for at once
_BY_NAME = re.compile(r"(?<![\w.])[gs]etattr\(")
_TEXT = re.compile(r""",\s*["'][^\W\d]\w*["']\s*[,)]""")
_REBOUND = re.compile(
    r"def (?:get|set)attr\(|\b_modules\s*(?::[^=\n]*)?=(?!=)|KeyError|[(,]\s*[gs]etattr\s*[,:=]"
)
_TAKEN_OVER = re.compile(r"([\w.]+)\.copy_\(\s*\1\.(?:cpu|clone)\(\)\.\w+_\(")
_FILLING = frozenset("normal_ uniform_ zero_ fill_ trunc_normal_ exponential_".split())
_METHODS = {"__getattr__": ("getattr", 1), "__setattr__": ("setattr", 2)}


def straightened(tree: cst.Module, text: str) -> cst.Module:
    """A file with comparisons of two identities as ``a is b``, and with attributes by their names.

    What stands for a parameter may be made anew each time, Flax's modules have no ``__getattr__`` of their own, and
    what a layer of torch calls ``weight`` is called otherwise in some of Flax. A tensor that takes over what its copy
    on another device is filled with is filled itself: ``w.copy_(w.cpu().normal_().to(w.device))``.
    """
    identities = "id(" in text and bool(_IDENTITY.search(text)) and "def id(" not in text
    methods = {
        name: told
        for name, told in _METHODS.items()
        if f".{name}(" in text and f"def {name}" not in text
    }
    by_name = "etattr(" in text and bool(_BY_NAME.search(text) and _TEXT.search(text))
    texts = bool(methods) or by_name
    texts = texts and "def getattr(" not in text and "def setattr(" not in text
    tables = "._modules[" in text and not _REBOUND.search(text)
    copies = ".copy_(" in text and bool(_TAKEN_OVER.search(text))
    if not identities and not methods and not texts and not tables and not copies:
        return tree
    stored = _stored(tree) if tables else []
    brought = _imported(tree) if tables else frozenset()

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        made = syntax.rebuild(node, visit)
        if tables and isinstance(made, cst.Subscript) and not any(node is one for one in stored):
            return _child(made, brought) or made
        if tables and isinstance(made, cst.Assign):
            return _child_given(made, brought) or made
        if isinstance(made, cst.Comparison) and identities:
            return _asked(made) or made
        if isinstance(made, cst.Expr) and copies:
            made = _filled(made) or made
        if isinstance(made, cst.Expr) and texts:
            return _assigned(made) or made
        if isinstance(made, cst.Call):
            called = _called(made, methods) or made
            return (_read(called) or called) if texts else called
        return made

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


def _stored(tree: cst.Module) -> list[cst.CSTNode]:
    """The entries that a file writes or deletes."""
    found: list[cst.CSTNode] = []
    for node in syntax.walk(tree):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del, cst.For)):
            target = node.target
            found += [n for n in syntax.walk(target) if isinstance(n, cst.Subscript)]
    return found


def _imported(tree: cst.Module) -> frozenset[str]:
    """The names that imports bring: what has a table of that name there is a registry of classes, and no module."""
    found: set[str] = set()
    for node in syntax.walk(tree):
        if isinstance(node, (cst.Import, cst.ImportFrom)) and not isinstance(
            node.names, cst.ImportStar
        ):
            found |= {n for one in node.names for n in syntax.names(one)}
    return frozenset(found)


def _child(node: cst.Subscript, brought: frozenset[str]) -> cst.Call | None:
    """``getattr(net, name)`` for ``net._modules[name]``."""
    held = _entry(node, brought)
    if held is None:
        return None
    call = cst.Call(cst.Name("getattr"), lpar=node.lpar, rpar=node.rpar)
    return syntax.with_args(call, [cst.Arg(one) for one in held])


def _child_given(node: cst.Assign, brought: frozenset[str]) -> cst.Expr | None:
    """``setattr(net, name, layer)`` for ``net._modules[name] = layer``."""
    target = node.targets[0].target
    held = _entry(target, brought) if isinstance(target, cst.Subscript) else None
    if held is None or len(node.targets) != 1:
        return None
    args = [cst.Arg(one) for one in (*held, node.value)]
    return cst.Expr(syntax.with_args(cst.Call(cst.Name("setattr")), args), node.semicolon)


def _entry(
    node: cst.Subscript, brought: frozenset[str]
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    table = node.value
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if not isinstance(table, cst.Attribute) or table.attr.value != "_modules":
        return None
    root = table.value
    while isinstance(root, cst.Attribute):
        root = root.value
    if isinstance(root, cst.Name) and root.value in brought:
        return None
    return (table.value, index.value) if isinstance(index, cst.Index) else None


def _called(node: cst.Call, methods: dict[str, tuple[str, int]]) -> cst.Call | None:
    """``getattr(self, name)`` for ``self.__getattr__(name)``."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in methods:
        return None
    name, count = methods[func.attr.value]
    plain = all(a.keyword is None and not a.star for a in node.args)
    if (
        len(node.args) != count
        or not plain
        or not isinstance(func.value, (cst.Name, cst.Attribute))
    ):
        return None
    return syntax.with_args(
        syntax.changed(node, func=cst.Name(name)), [cst.Arg(func.value), *node.args]
    )


def _read(node: cst.Call) -> cst.Attribute | None:
    """``layer.weight`` for ``getattr(layer, "weight")``."""
    held = _by_text(node, "getattr", 2)
    if held is None:
        return None
    return cst.Attribute(*held, lpar=node.lpar, rpar=node.rpar)


def _assigned(node: cst.Expr) -> cst.Assign | None:
    """``layer.weight = w`` for ``setattr(layer, "weight", w)``."""
    held = _by_text(node.value, "setattr", 3)
    if held is None or not isinstance(node.value, cst.Call):
        return None
    value = node.value.args[2].value
    target = cst.AssignTarget(cst.Attribute(*held))
    return cst.Assign([target], value, semicolon=node.semicolon)


def _by_text(
    node: cst.BaseExpression, name: str, count: int
) -> tuple[cst.BaseExpression, cst.Name] | None:
    """The object and the attribute of ``getattr(x, "name")``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return None
    if node.func.value != name or len(node.args) != count:
        return None
    if any(a.keyword is not None or a.star for a in node.args):
        return None
    held, told = node.args[0].value, node.args[1].value
    found = name == "getattr" and isinstance(held, cst.Call)
    if not found and not isinstance(held, (cst.Name, cst.Attribute, cst.Subscript)):
        return None
    attribute = told.evaluated_value if isinstance(told, cst.SimpleString) else None
    if not isinstance(attribute, str) or not attribute.isidentifier():
        return None
    if keyword.iskeyword(attribute) or attribute.startswith("__"):
        return None  # which Python would give the name of the class, within one
    return held, cst.Name(attribute)


def _asked(node: cst.Comparison) -> cst.Comparison | None:
    if len(node.comparisons) != 1:
        return None
    (only,) = node.comparisons
    left, right = _whose(node.left), _whose(only.comparator)
    if left is None or right is None or not isinstance(only.operator, (cst.Equal, cst.NotEqual)):
        return None
    operator = cst.Is() if isinstance(only.operator, cst.Equal) else cst.IsNot()
    made = syntax.changed(only, operator=operator, comparator=right)
    return syntax.changed(node, left=left, comparisons=[made])


def _filled(node: cst.Expr) -> cst.Expr | None:
    """``w.normal_(…)`` for ``w.copy_(w.cpu().normal_(…).to(w.device))``."""
    outer = _method(node.value)
    if outer is None or outer[1] != "copy_" or len(outer[2].args) != 1:
        return None
    target, filling = outer[0], outer[2].args[0].value
    if outer[2].args[0].keyword is not None or outer[2].args[0].star:
        return None
    if not re.fullmatch(r"[\w.]+", syntax.code(target)):
        return None
    back = _method(filling)
    if back is not None and back[1] == "to" and len(back[2].args) == 1:
        where = back[2].args[0]
        if where.keyword is not None or where.star:
            return None
        if syntax.code(where.value) not in (f"{syntax.code(target)}.device", syntax.code(target)):
            return None
        filling = back[0]
    made = _method(filling)
    first = _method(made[0]) if made is not None else None
    if made is None or first is None or made[1] not in _FILLING or first[2].args:
        return None
    if first[1] not in ("cpu", "clone") or not first[0].deep_equals(target):
        return None
    if any(a.star or (a.keyword and a.keyword.value == "generator") for a in made[2].args):
        return None  # a generator is of one device
    call = syntax.changed(made[2], func=cst.Attribute(target, cst.Name(made[1])), lpar=[], rpar=[])
    return syntax.changed(node, value=call)


def _method(
    node: cst.BaseExpression,
) -> tuple[cst.BaseExpression, str, cst.Call] | None:
    """What a method is called of, its name, and the call."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return node.func.value, node.func.attr.value, node


def _whose(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``id(x)``, where that is a name or an attribute."""
    if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].star:
        return None
    if not isinstance(node.func, cst.Name) or node.func.value != "id" or node.args[0].keyword:
        return None
    value = node.args[0].value
    return value if isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)) else None

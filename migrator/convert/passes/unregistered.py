"""Lists of modules that are children under other names: ``self.heads = [...]`` and a loop of ``add_module``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.kept import either_or
from migrator.infer import ClassInfo
from migrator.infer.construction import CONTAINERS

_TENSORS = ("register_buffer", "register_parameter")
_REGISTERING = ("add_module", "register_module", "register_parameter", "setattr")


def is_registered(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether ``__init__`` certainly makes every module in the list ``self.name`` a child under another name."""
    init = owner.methods.get("__init__")
    if init is None:
        return False
    blocks = [b for b in syntax.walk(init.node) if isinstance(b, cst.IndentedBlock)]
    if any(_appends(s, name) for b in blocks for s in b.body):
        return all(_registers_what_it_appends(b, name) for b in blocks) or _handed_on(
            ctx, init.node.body, name
        )
    return _handed_on(ctx, init.node.body, name)


def is_collected(ctx: Context, owner: ClassInfo, name: str, value: cst.BaseExpression) -> bool:
    """Whether the value of ``self.name`` is a local list of ``__init__``, all of whose modules that makes children.

    ``layers = []``, in a loop ``self.add_module(name, layer)`` and ``layers.append(layer)``, and at last
    ``self.layers = layers[::-1]``, as feature pyramids do; it may hold None as well.
    """
    init, tree = owner.methods.get("__init__"), ctx.facts.tree
    listed = _copied(ctx, value)
    if init is None or listed is None or not tree.has(value):
        return False
    begun, appended = 0, set[cst.CSTNode]()
    for block in tree.within(init.node, cst.IndentedBlock):
        registered = _registered_names(block)
        for line in block.body:
            if _appends(line, name):
                return False
            match line:
                case cst.SimpleStatementLine([cst.Assign([target], cst.List([]))]):
                    begun += _is_name(target.target, listed)
                    appended.add(target.target)
                case cst.SimpleStatementLine(
                    [cst.Expr(cst.Call(cst.Attribute(held, cst.Name("append")), [cst.Arg(one)]))]
                ) if _is_name(held, listed):
                    if not isinstance(one, cst.Name) or one.value not in {*registered, "None"}:
                        return False
                    if one.value != "None" and not _stays(ctx, block, line, one.value):
                        return False
                    appended.add(held)
    named = [n for n in tree.within(init.node.body, cst.Name) if n.value == listed]
    others = [n for n in named if n not in appended]
    return begun == 1 and all(_is_read(ctx, one) for one in others)


def is_made_as_child(ctx: Context, owner: ClassInfo, value: cst.BaseExpression) -> bool:
    """``[self.make(i) for i in range(n)]`` with a helper that makes what it returns a child, by another name each time."""
    match value:
        case cst.ListComp(
            cst.Call(func, args) as call,
            cst.CompFor(cst.Name(number), cst.Call() as over, [], None, None),
        ) if ctx.facts.callee(over) == "builtins.range":
            helper = _helper(ctx, owner, func)
        case _:
            return False
    if helper is None or any(one.star or one.keyword for one in args):
        return False
    params = [one.name.value for one in helper.params.params]
    if isinstance(call.func, cst.Attribute):
        params = params[1:]
    given = dict(zip(params, (one.value for one in args), strict=False))
    numbers = {p for p, one in given.items() if _is_name(one, number)}
    return _returns_its_child(ctx, helper, numbers)


def _helper(ctx: Context, owner: ClassInfo, func: cst.BaseExpression) -> cst.FunctionDef | None:
    """The method of a class, or the function within its constructor, that a constructor calls."""
    if isinstance(func, cst.Attribute) and _is_self(func.value):
        info = owner.methods.get(func.attr.value)
        others = [one for one in ctx.facts.classes.values() if func.attr.value in one.methods]
        if info is None or len(others) != 1 or info.node.decorators:
            return None
        return info.node if _is_self(info.node.params.params[0].name) else None
    init = owner.methods.get("__init__")
    if init is None or not isinstance(func, cst.Name):
        return None
    inner = ctx.facts.tree.within(init.node.body, cst.FunctionDef)
    found = [one for one in inner if one.name.value == func.value]
    plain = len(found) == 1 and not found[0].decorators
    return found[0] if plain and "self" not in syntax.names(found[0].params) else None


def _returns_its_child(ctx: Context, helper: cst.FunctionDef, numbers: set[str]) -> bool:
    """Whether a function only returns a module that it registered, under a name made of one of the numbers."""
    tree, lines = ctx.facts.tree, helper.body.body
    last = lines[-1].body[-1] if isinstance(lines[-1], cst.SimpleStatementLine) else None
    made = last.value if isinstance(last, cst.Return) else None
    if not isinstance(made, cst.Name) or len(list(tree.within(helper.body, cst.Return))) != 1:
        return False
    targets = tree.within(helper.body, cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For)
    bound = [name for one in targets for name in syntax.names(one.target)]
    if bound.count(made.value) != 1 or numbers & set(bound):
        return False
    for line in lines:
        if not isinstance(line, cst.SimpleStatementLine):
            continue
        if made.value in _registered_names(cst.IndentedBlock([line])):
            (call, *_) = tree.within(line, cst.Call)
            return bool(numbers & set(syntax.names(call.args[-2].value)))
    return False


def _stays(ctx: Context, block: cst.IndentedBlock, line: cst.CSTNode, name: str) -> bool:
    """Whether what a line appends is what another line of the block registers, under a name that no other one gets."""
    lines = list(block.body)
    places = [
        i for i, one in enumerate(lines) if name in _registered_names(cst.IndentedBlock([one]))
    ]
    if len(places) != 1:
        return False
    at = next(i for i, one in enumerate(lines) if one is line)
    first, last = sorted((places[0], at))
    for between in lines[first + 1 : last]:
        targets = ctx.facts.tree.within(between, cst.AssignTarget)
        if not isinstance(between, cst.SimpleStatementLine) or any(
            name in syntax.names(one.target) for one in targets
        ):
            return False
    calls = ctx.facts.tree.within(lines[places[0]], cst.Call)
    given = [a.value for call in calls for a in call.args]
    again = any(isinstance(one, (cst.For, cst.While)) for one in ctx.facts.tree.around(block))
    return not again or not any(isinstance(one, cst.SimpleString) for one in given)


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _copied(ctx: Context, value: cst.BaseExpression) -> str | None:
    """``layers`` of ``layers``, ``layers[::-1]`` and ``list(reversed(layers))``."""
    if isinstance(value, cst.Subscript) and isinstance(value.slice[0].slice, cst.Slice):
        return _copied(ctx, value.value)
    if isinstance(value, cst.Call) and len(value.args) == 1:
        known = ctx.facts.callee(value) in ("builtins.list", "builtins.reversed")
        return _copied(ctx, value.args[0].value) if known else None
    return value.value if isinstance(value, cst.Name) else None


def _is_read(ctx: Context, name: cst.Name) -> bool:
    """Whether a list is only read where it is named: ``layers[-1]``, ``len(layers)``, ``self.layers = layers[::-1]``."""
    *_, outer, parent = ctx.facts.tree.around(name)
    if isinstance(parent, cst.Attribute):
        return parent.attr is name  # ``self.layers``
    if isinstance(parent, cst.Subscript):
        return not isinstance(outer, (cst.AssignTarget, cst.AugAssign, cst.Del))
    if isinstance(parent, cst.Arg) and isinstance(outer, cst.Call):
        return ctx.facts.callee(outer) in ("builtins.list", "builtins.reversed", "builtins.len")
    given = parent.targets if isinstance(parent, cst.Assign) and parent.value is name else ()
    return bool(given) and all(isinstance(one.target, cst.Attribute) for one in given)


def holds_layers_of_any_class(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether a list surely holds modules, of which nothing else is known: what it holds is made children."""
    init = owner.methods.get("__init__")
    if init is None or init.settled is not None or not is_registered(ctx, owner, name):
        return False
    if _handed_on(ctx, init.node.body, name):
        return True
    return not {"setattr", "register_parameter"} & set(syntax.names(init.node))


def _handed_on(ctx: Context, body: cst.BaseSuite, name: str) -> bool:
    """``for m in self.name: self.add_module(…, m)`` or ``nn.Sequential(*self.name)``, whatever the constructor does."""
    for statement in body.body:
        if isinstance(statement, cst.For) and _registers_each(statement, name):
            return True
        for call in _values(statement):
            if ctx.facts.callee(call) in CONTAINERS and len(call.args) == 1:
                sequential = ctx.facts.callee(call) == "torch.nn.Sequential"
                if _is_own(call.args[0].value, name) and bool(call.args[0].star) is sequential:
                    return True
    return False


def _values(statement: cst.CSTNode) -> Iterator[cst.Call]:
    """The calls that a line assigns to an attribute of self."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
            target = small.targets[0].target
            if isinstance(target, cst.Attribute) and _is_self(target.value):
                yield small.value


def _registers_each(loop: cst.For, name: str) -> bool:
    """A loop over the list whose first level registers the module it is at."""
    over, target = loop.iter, loop.target
    if (
        isinstance(over, cst.Call)
        and isinstance(over.func, cst.Name)
        and over.func.value == "enumerate"
    ):
        if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or not over.args:
            return False
        over, target = over.args[0].value, target.elements[1].value  # type: ignore[assignment]
    if not _is_own(over, name) or not isinstance(target, cst.Name):
        return False
    return target.value in _registered_names(loop.body)


def _registers_what_it_appends(block: cst.IndentedBlock, name: str) -> bool:
    """Every module that a block appends to the list is registered in the same block, or by the next line as the last one."""
    after = [*block.body[1:], None]
    appended = {
        _appends(line, name)
        for line, following in zip(block.body, after, strict=True)
        if not _registers_last(following, name)
    }
    return appended - {""} <= _registered_names(block)


def _registers_last(line: cst.CSTNode | None, name: str) -> bool:
    """``self.add_module(key, self.name[-1])``."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, cst.Expr) else None
    func = call.func if isinstance(call, cst.Call) else None
    if not isinstance(func, cst.Attribute) or not _is_self(func.value):
        return False
    last = call.args[-1].value if call.args else None  # type: ignore[union-attr]
    item = last.slice[0].slice if isinstance(last, cst.Subscript) else None
    return (
        func.attr.value in _REGISTERING
        and isinstance(last, cst.Subscript)
        and _is_own(last.value, name)
        and isinstance(item, cst.Index)
        and syntax.code(item) == "-1"
    )


def _appends(statement: cst.CSTNode, name: str) -> str:
    """The name that ``self.name.append(x)`` appends; "?" for anything else that is appended."""
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        call = small.value if isinstance(small, cst.Expr) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            continue
        if _is_own(call.func.value, name) and call.func.attr.value in (
            "append",
            "extend",
            "insert",
        ):
            only = call.args[0].value if len(call.args) == 1 else None
            plain = isinstance(only, cst.Name) and call.func.attr.value == "append"
            return only.value if plain and isinstance(only, cst.Name) else "?"
    return ""


def _registered_names(block: cst.BaseSuite) -> set[str]:
    """The local names that the first level of a block makes children of self."""
    found: set[str] = set()
    for statement in block.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            call = small.value if isinstance(small, cst.Expr) else None
            if not isinstance(call, cst.Call) or not call.args:
                continue
            func = call.func
            method = isinstance(func, cst.Attribute) and _is_self(func.value)
            name = (
                func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
            )
            plain = name == "setattr" and _is_self(call.args[0].value)
            last = call.args[-1].value
            if name in _REGISTERING and (method or plain) and isinstance(last, cst.Name):
                found.add(last.value)
    return found


def _is_self(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def _is_own(node: cst.CSTNode, name: str) -> bool:
    """Whether an expression is ``self.name``."""
    return isinstance(node, cst.Attribute) and node.attr.value == name and _is_self(node.value)


def made_by_heirs(ctx: Context, node: cst.BaseExpression) -> bool:
    """``self.fc`` in a class with a ``forward`` that is no module: a module that inherits it makes the layer."""
    from migrator.convert.passes.classes import is_mixed_in

    own = isinstance(node, cst.Attribute) and ctx.is_self(node.value)
    return own and ctx.owner is not None and is_mixed_in(ctx, ctx.owner)


def registered_elsewhere(ctx: Context, node: cst.Assign, name: str) -> bool:
    """Whether the constructor registers the name only where it does not run this statement: in the other branches."""
    from migrator.convert.passes.targets import makes_parameter

    frame, tree = ctx.frame, ctx.facts.tree
    if frame is None or frame.info.short != "__init__" or not tree.has(node.value):
        return False
    made: list[cst.CSTNode] = []
    for call in tree.within(frame.info.node, cst.Call):
        func, first = call.func, call.args[0].value if call.args else None
        if isinstance(func, cst.Attribute) and func.attr.value in _TENSORS:
            if isinstance(first, cst.SimpleString) and first.raw_value == name:
                made.append(call)
    for line in tree.within(frame.info.node, cst.Assign):
        if line.value is not node.value and any(
            makes_parameter(ctx, n) for n in syntax.walk(line.value)
        ):
            given = [one.target for one in line.targets]
            if any(isinstance(t, cst.Attribute) and t.attr.value == name for t in given):
                made.append(line.value)
    return bool(made) and all(either_or(ctx, node.value, one) for one in made)

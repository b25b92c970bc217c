"""State that is made of a tensor of the file: ``self.t = TABLE``, ``nn.Parameter(TABLE)``, ``Part(TABLE)``.

It is that tensor, or shares its memory: who writes to the one writes to the other, which no Variable does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.containing import holds_tensor
from migrator.convert.context import Context, Failure
from migrator.convert.kept import (
    MAKING,
    constructor,
    handed_on,
    is_buffer,
    registered,
    registers,
)
from migrator.convert.memory import Aliases, aliases
from migrator.convert.states import State
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def check_made_of_global(ctx: Context, node: cst.CSTNode, attribute: str) -> None:
    """Raise a Failure for a write in place to an attribute that may be made of a tensor of the file."""
    name = re.sub(r"\[[^\]]*\]", "", attribute).rpartition(".")[2]
    made = made_of_globals(ctx).get(name)
    if made is not None and (attribute != f"self.{name}" or _may_be_own(ctx, name)):
        raise Failure(
            node,
            "MUT001",
            f"writing `{attribute}` in place also changes `{made}`, of which it may be made",
            f"make it of a copy (`{made}.clone()`)",
        )


def _may_be_own(ctx: Context, name: str) -> bool:
    """Whether ``self.weight`` of the class that is read may be made of a tensor of the file, and not only another's."""
    owner = ctx.owner
    if owner is None:
        return True
    for info in [*ctx.facts.functions.values(), *ctx.facts.names.values()]:
        if info.settled is not None:
            if name in dict(info.settled.of_globals):
                return True
            continue
        if name not in dict(of_globals(ctx, info)):
            continue
        other = info.owner
        if other is None or not _sets_its_own(ctx, info, name):
            return True
        classes = ctx.facts.classes.values()
        if any({owner, other} <= set(one.lineage()) for one in classes):
            return True
    return False


def _sets_its_own(ctx: Context, info: FunctionInfo, name: str) -> bool:
    """Whether a method gives an attribute to ``self`` and to nothing else: neither to a part, nor to what it makes."""
    for node in ctx.facts.tree.within(info.node, cst.AssignTarget, cst.AnnAssign, cst.Call):
        if isinstance(node, cst.Call):
            init = constructor(ctx, node)
            kind = ctx.kind(node.func)
            own = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
            init = own.method("__init__") if own is not None else init
            if init is not None:
                if any(attribute == name for _, attribute, _ in handed_on(ctx, node, init)):
                    return False
            target: cst.CSTNode = node.func
            if not registers(node) or not isinstance(target, cst.Attribute):
                continue
            if not ctx.is_self(target.value) and syntax.code(target.value) != "self":
                return False
        elif isinstance(node.target, cst.Attribute) and node.target.attr.value == name:
            if syntax.code(node.target.value) != "self":
                return False
    return True


def made_of_globals(ctx: Context) -> dict[str, str]:
    """The names of attributes that may share memory with a tensor of a file, each with what that is called."""
    if ctx.made_of_globals is None:
        ctx.made_of_globals = {}
        for info in [*ctx.facts.functions.values(), *ctx.facts.names.values()]:
            made = info.settled.of_globals if info.settled is not None else of_globals(ctx, info)
            ctx.made_of_globals |= dict(made)
    return ctx.made_of_globals


def of_globals(ctx: Context, info: FunctionInfo) -> tuple[tuple[str, str], ...]:
    """The attributes that a function of the file makes of a tensor of the file, each with what that is called."""
    if info not in ctx.of_globals:
        names = _names(ctx)
        read = ctx.facts.tree.within(info.node, cst.Name) if names else ()
        any_read = any(one.value in names for one in read)
        ctx.of_globals[info] = tuple(_kept(ctx, info, names).items()) if any_read else ()
    return ctx.of_globals[info]


def _global_of(info: FunctionInfo, memory: frozenset[str], names: frozenset[str]) -> str | None:
    """``TABLE`` and ``TABLES[0]`` of memory, by the names of what the file has; also by a default, ``t=TABLE``."""
    defaults = {
        f"param:{name}": f"attr:{syntax.code(param.default)}"
        for name, param in syntax.parameters(info.node).items()
        if param.default is not None
    }
    for one in sorted(defaults.get(one, one) for one in memory):
        root = re.match(r"attr:(\w+)", one)
        if root is not None and root[1] in names:
            return one.removeprefix("attr:")
    return None


def _names(ctx: Context) -> frozenset[str]:
    """The names of the file that stand for tensors, for what holds some, and for functions that may give them."""
    return frozenset(
        name
        for name, kind in ctx.facts.module_env.items()
        if isinstance(kind, (k.Function, k.Other)) or holds_tensor(kind)
    )


def _kept(ctx: Context, info: FunctionInfo, names: frozenset[str]) -> dict[str, str]:
    facts, found = aliases(ctx, info), dict[str, str]()
    for statement, _, _ in facts.order:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for attribute, value in _values(ctx, statement):
            memory = _memory(ctx, facts, value, facts.before[statement])
            made = _global_of(info, memory, names)
            if made is not None and ("(" not in made or holds_tensor(ctx.kind(value))):
                found[attribute] = made  # a function of the file may give anything
    return found


def _memory(
    ctx: Context, facts: Aliases, value: cst.BaseExpression, state: State
) -> frozenset[str]:
    if isinstance(value, cst.Call) and ctx.facts.callee(value) in MAKING:
        data = registered(value, 0, "data")
        return facts.memory(data, state) if data is not None else frozenset()
    return facts.memory(value, state)


def _values(
    ctx: Context, statement: cst.SimpleStatementLine
) -> Iterator[tuple[str, cst.BaseExpression]]:
    """What a line gives attributes, of its own object and of those that it makes."""
    for one in statement.body:
        if isinstance(one, (cst.Assign, cst.AnnAssign)) and one.value is not None:
            whole = one.targets if isinstance(one, cst.Assign) else [one]
            for target in (to.target for to in whole):
                if isinstance(target, cst.Attribute):
                    yield target.attr.value, one.value
    for call in ctx.facts.tree.within(statement, cst.Call):
        name = registered(call, 0, "name") if registers(call) else None
        value = registered(call, 1, "tensor", "param") if name is not None else None
        if isinstance(name, cst.SimpleString) and value is not None:
            yield str(name.evaluated_value), value
        kind = ctx.kind(call.func)
        own = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
        init = own.method("__init__") if own is not None else constructor(ctx, call)
        for item, attribute, _ in handed_on(ctx, call, init) if init is not None else ():
            if attribute:
                yield attribute, item.value


def check_written_by_others(
    ctx: Context, info: FunctionInfo, line: cst.SimpleStatementLine
) -> None:
    """Raise a Failure for a line of a constructor that makes state of a tensor of the file to which others write.

    Another file does in place, or an optimizer, where the tensor is read besides.
    """
    made = made_of_globals(ctx)
    if not made:
        return
    foreign = (f.settled.updates for f in ctx.facts.names.values() if f.settled is not None)
    written = frozenset[str]().union(*foreign)
    own = dict(of_globals(ctx, info))
    for name, value in _values(ctx, line):
        parameter = isinstance(value, cst.Call) and ctx.facts.callee(value) in MAKING
        trained = parameter and name in own and not is_buffer(ctx, value)
        if name in made and (name in written or (trained and _is_read(ctx, own[name]))):
            check_made_of_global(ctx, line, name)


def _is_read(ctx: Context, made: str) -> bool:
    """Whether the file reads what state is made of elsewhere than where modules are built."""
    root = re.split(r"\W", made)[0]
    return any(
        one.value == root
        for info in ctx.facts.functions.values()
        if info.short != "__init__"
        for one in ctx.facts.tree.within(info.node.body, cst.Name)
    )

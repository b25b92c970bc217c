"""Parameters and buffers made of one tensor: in torch they share its memory, and who writes to one changes all.

An optimizer writes to every parameter. Variables of Flax hold arrays of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from migrator import syntax
from migrator.convert.bindings import given_to
from migrator.convert.context import Context, Failure
from migrator.convert.kept import (
    MAKING,
    constructor,
    either_or,
    handed_on,
    is_buffer,
    is_false,
    is_loaded,
    kept,
    may_share,
    registered,
    registers,
)
from migrator.convert.made_of_globals import check_written_by_others
from migrator.convert.memory import Aliases, aliases
from migrator.convert.parts import TWICE, shared
from migrator.convert.passes.targets import (
    holds_parameter,
    is_variable,
    layer_weight,
    makes_parameter,
)
from migrator.convert.passes.tied_arguments import handed_whole
from migrator.convert.passing import LEGACY
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.updates import written_names
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


@dataclass(frozen=True)
class _Made:
    """A new parameter or buffer of a constructor and the memory of the tensor that it is made of.

    ``name``: the attribute it becomes, None where only a run tells; ``of``: the state it is made of, and whether that
    is a buffer, but for what it replaces (``fc.weight = nn.Parameter(fc.weight.half())``). ``weight``: ``fc.weight``
    where it is made of the weight, as it is, of a layer that nothing keeps: it shares nothing with the layer's others.
    ``loaded``: whether torch saves it with the module and loads it. ``call``: what makes it. ``sized``: ``n`` of what is
    made by ``torch.Tensor(n)``, for which a run tells whether n is a size, values, or a tensor.
    """

    statement: cst.CSTNode
    memory: frozenset[str]
    name: str | None
    buffer: bool
    of: tuple[tuple[str, bool], ...] = ()
    again: bool = False
    weight: str = ""
    loaded: bool = True
    call: cst.Call | None = None
    sized: str = ""


@converts(cst.SimpleStatementLine)
def made_of_one_tensor(rw: Rewriter, node: cst.SimpleStatementLine) -> None:
    """Raise a Failure for the second Variable that is made of a tensor, if one of them is ever written."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.in_init:
        return
    check_written_by_others(ctx, ctx.frame.info, node)
    every = _made(ctx, ctx.frame.info)
    for i, one in enumerate(every):
        if one.statement is not node:
            continue
        others = [
            other
            for other in every[:i]
            if shared(other.memory, one.memory) or (one.weight and other.weight == one.weight)
        ]
        others = [o for o in others if not either_or(ctx, o.statement, one.statement)]
        # what a constructor registers, under one name, as a buffer or else as a parameter
        others = [o for o in others if o.call is not one.call or not one.name or o.name != one.name]
        others = [o for o in others if not (o.weight and one.weight) or o.weight == one.weight]
        # the port raises for a tensor
        others = [o for o in others if not one.sized or o.sized != one.sized]
        sized = {o.name for o in every if one.sized and o.sized == one.sized}
        of = [(n, b) for n, b in one.of if n not in sized]
        others += [_Made(node, one.memory, n, b, loaded=is_loaded(ctx, n)) for n, b in of]
        if any(_is_written(ctx, one, other) for other in (*others, *([one] if one.again else []))):
            raise Failure(
                node,
                "MUT001",
                "parameters or buffers are made of one tensor, whose memory they share in torch",
                "make each of a copy (`.clone()`), or give one parameter both names if they are tied",
            )
        other = next((other for other in others if other.loaded != one.loaded), None)
        if other is not None:
            loaded = one.name if one.loaded else other.name
            raise Failure(
                node,
                "MUT001",
                f"something else keeps the memory of the buffer `{loaded}`, which loading a state_dict changes in torch",
                "read it in forward() from the module that registers it, or keep a copy (`.clone()`)",
            )


def _is_written(ctx: Context, *several: _Made) -> bool:
    """Whether one of these may be written in place: parameters are, by an optimizer."""
    names = written_names(ctx)
    return any(not one.buffer or one.name is None or one.name in names for one in several)


def _made(ctx: Context, info: FunctionInfo) -> list[_Made]:
    if info not in ctx.made_variables:
        ctx.made_variables[info] = list(_find(ctx, info))
    return ctx.made_variables[info]


def _find(ctx: Context, info: FunctionInfo) -> Iterator[_Made]:
    calls = ctx.facts.tree.within(info.node.body, cst.Call)
    if not any(_may_make(ctx, call) for call in calls):
        return
    facts = aliases(ctx, info)
    for statement, _, loops in facts.order:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        state = facts.before[statement]
        for node in ctx.facts.tree.within(statement, cst.Call):
            for value, path, buffer, loaded in _values(ctx, statement, node):
                memory = facts.memory(value, state)
                before = [*(facts.before[loop] for loop in loops)]
                if _is_repeated(ctx, node):
                    before.append(state)
                again = any(shared(memory, one) for each in before for one in each.values())
                again = again and not _is_taken_once(ctx, facts, value, loops)
                weight = _weight(ctx, info, value)
                of = tuple(
                    (n, r == "buffer")
                    for p, n, r in state_in(ctx, info, memory)
                    if p not in (path, weight)
                )
                name = path.rpartition(".")[2] or None
                sized = _sized(ctx, value)
                yield _Made(statement, memory, name, buffer, of, again, weight, loaded, node, sized)


_DTYPES = {
    "torch.Tensor": "float32",
    "torch.FloatTensor": "float32",
    "torch.DoubleTensor": "float64",
    "torch.LongTensor": "int32",
    "torch.IntTensor": "int32",
}
"""The dtypes that torch's old classes of tensors stand for."""


@converts(cst.Call, called=LEGACY)
def made_of_sizes(rw: Rewriter, node: cst.Call) -> cst.Call | None:
    """``torch.Tensor(n)`` of two parameters → ``size_or_values(n, jnp.float32)``, which raises for a tensor."""
    ctx = rw.ctx
    dtype = _DTYPES.get(ctx.facts.callee(node) or "")
    if ctx.frame is None or not ctx.in_init or dtype is None:
        return None
    if any(one.star for one in node.args) or not (sized := _sized(ctx, node)):
        return None
    every, around = _made(ctx, ctx.frame.info), ctx.facts.tree.around(node)
    if not any(o.call in around for o in every if o.sized == sized):
        return None
    if sum(o.sized == sized for o in every) < 2:
        return None
    helper = ctx.helpers.need(module_file("rules.compat.data"), "size_or_values")
    ctx.helpers.use("jnp")
    args = [cst.Arg(rw.visit(node.args[0].value)), cst.Arg(syntax.parse(f"jnp.{dtype}"))]
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


def _sized(ctx: Context, value: cst.BaseExpression) -> str:
    """``n`` of ``torch.Tensor(n)`` where nothing tells what n is; what is written out with a star, for a size."""
    if not isinstance(value, cst.Call) or ctx.facts.callee(value) not in _DTYPES:
        return ""
    if any(one.star == "*" for one in value.args):
        return ", ".join(syntax.code(one) for one in value.args)
    if len(value.args) != 1 or value.args[0].keyword is not None:
        return ""
    name = value.args[0].value
    if not isinstance(name, (cst.Name, cst.Attribute)) or ctx.kind(name) != k.UNKNOWN:
        return ""
    return syntax.code(name)


def _weight(ctx: Context, info: FunctionInfo, value: cst.BaseExpression) -> str:
    """``fc.weight`` for a weight of a local layer of torch's own that nothing keeps."""
    if not isinstance(value, cst.Attribute) or not isinstance(value.value, cst.Name):
        return ""
    layer, tree = ctx.kind(value.value), ctx.facts.tree
    if not isinstance(layer, k.Module) or not layer.cls.startswith("torch.nn."):
        return ""
    for name in tree.within(info.node, cst.Name):
        above = tree.parent(name) if name.value == value.value.value else None
        read = isinstance(above, cst.Attribute) and above.attr.value in ("weight", "bias")
        if above is not None and not read and not isinstance(above, cst.AssignTarget):
            return ""
    return syntax.code(value)


def _may_make(ctx: Context, call: cst.Call) -> bool:
    """Whether a call makes Variables, or an instance of a class whose constructor does of what it is handed."""
    if ctx.facts.callee(call) in MAKING or registers(call):
        return True
    init = constructor(ctx, call)
    if init is None or not any(may_share(ctx, one.value) for one in call.args):
        return False
    return bool(kept(ctx, init))


def _values(
    ctx: Context, statement: cst.SimpleStatementLine, node: cst.Call
) -> Iterator[tuple[cst.BaseExpression, str, bool, bool]]:
    """The tensors a call makes Variables of, the path of the attribute (empty: not known), and whether it is a buffer.

    And whether it is saved and loaded: the attribute of another module, or a buffer, may not be."""
    if ctx.facts.callee(node) in MAKING:
        value = registered(node, 0, "data")
        if value is not None:
            persistent = registered(node, -1, "persistent")
            yield value, _assigned(statement), is_buffer(ctx, node), not is_false(persistent)
    elif registers(node) and isinstance(node.func, cst.Attribute):
        value, name = registered(node, 1, "tensor"), registered(node, 0, "name")
        new = isinstance(value, cst.Call) and ctx.facts.callee(value) in MAKING
        if node.func.attr.value == "register_buffer" and value is not None and not new:
            kind = ctx.facts.kind(name) if name is not None else k.UNKNOWN
            told = (
                f"{syntax.code(node.func.value)}.{kind.value}" if isinstance(kind, k.Const) else ""
            )
            yield value, told, True, not is_false(registered(node, 2, "persistent"))
    init = constructor(ctx, node)
    for item, attribute, how in handed_on(ctx, node, init) if init is not None else ():
        if how == "plain" and handed_whole(ctx, item.value):
            continue  # one Variable under two names
        if how != "plain" or isinstance(ctx.kind(item.value), k.Tensor):
            path = f"{_assigned(statement)}.{attribute}" if attribute else ""
            loaded = how != "plain" and is_loaded(ctx, attribute)
            yield item.value, path, how != "param", loaded


def state_in(
    ctx: Context, info: FunctionInfo, memory: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """The parameters and buffers that memory is of: ``self.a``, ``a``, "param"."""
    paths = {one.removeprefix("attr:") for one in memory if one.startswith("attr:")}
    if not paths:
        return
    for node in _variables(ctx, info):
        path, kind = syntax.code(node), ctx.kind(node)
        if path in paths and isinstance(kind, k.Tensor):
            paths.discard(path)
            yield path, node.attr.value, kind.role
    for path in sorted(paths):  # which a method gives, and that is nowhere written here
        role = _role(ctx, path)
        if role:
            yield path, path.rpartition(".")[2], role


def _role(ctx: Context, path: str) -> str:
    """What ``self.layer.table`` is, "param" or "buffer", by the classes of what it is asked of; "" where it is neither."""
    first, *parts = path.split(".")
    owner = ctx.owner if first == "self" else None
    for part in parts[:-1]:
        kind = owner.attribute(part) if owner is not None else None
        owner = ctx.class_of(kind) if kind is not None else None
    kind = owner.attribute(parts[-1]) if owner is not None and parts else None
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    role = kind.role if isinstance(kind, k.Tensor) else ""
    return role if role in ("param", "buffer") else ""


def _variables(ctx: Context, info: FunctionInfo) -> list[cst.Attribute]:
    """Where a function names a parameter or buffer as an attribute."""
    if info not in ctx.variables:
        read = ctx.facts.tree.within(info.node.body, cst.Attribute)
        ctx.variables[info] = [node for node in read if is_variable(ctx, node)]
    return ctx.variables[info]


def _is_taken_once(
    ctx: Context, facts: Aliases, value: cst.BaseExpression, loops: Sequence[cst.CSTNode]
) -> bool:
    """``for name, v in tables.items(): self.register_buffer(name, v)`` of a dict written out: each value has its turn."""
    loop = loops[0] if len(loops) == 1 else None
    if not isinstance(loop, cst.For) or not isinstance(value, cst.Name):
        return False
    given = given_to(ctx.facts.tree, facts.info.node, value)
    if value.value not in syntax.names(loop.target) or len(given) != 1:
        return False
    state = facts.before[loop]
    for one in _gone_over(ctx, loop.iter):
        memory = facts.memory(one, state)
        if any(m == TWICE or m.startswith(("param:", "attr:")) for m in memory):
            return False
        if memory and not _is_written_out(ctx, facts.info, one, loop):
            return False
    return True


def _gone_over(ctx: Context, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """``a`` and ``b`` of ``zip(a, b)``, ``enumerate(a)``, ``a.items()``."""
    name = ctx.facts.callee(node) if isinstance(node, cst.Call) else None
    if isinstance(node, cst.Call) and name in ("builtins.zip", "builtins.enumerate"):
        return [one for arg in node.args for one in _gone_over(ctx, arg.value)]
    func = node.func if isinstance(node, cst.Call) and not node.args else None
    if isinstance(func, cst.Attribute) and func.attr.value in ("items", "values"):
        return [func.value]
    return [node]


def _is_written_out(
    ctx: Context, info: FunctionInfo, node: cst.BaseExpression, loop: cst.For
) -> bool:
    """Whether a list or dict is written out whole, and only a loop has to do with it."""
    if not isinstance(node, cst.Name):
        return isinstance(node, _DISPLAYS)
    tree = ctx.facts.tree
    given = given_to(tree, info.node, node)
    read = [one for one in tree.within(info.node.body, cst.Name) if one.value == node.value]
    return all(isinstance(one, _DISPLAYS) for one in given) and all(
        tree.holds(loop.iter, one) or isinstance(tree.parent(one), cst.AssignTarget) for one in read
    )


_DISPLAYS = (cst.Dict, cst.List, cst.Tuple)


def _is_repeated(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a comprehension makes several of one tensor: ``[nn.Parameter(w) for _ in range(3)]``."""
    names = set(syntax.names(node))
    for parent in ctx.facts.tree.around(node):
        if isinstance(parent, (cst.ListComp, cst.GeneratorExp, cst.DictComp)):
            bound = {name for one in _targets(parent.for_in) for name in syntax.names(one)}
            if not bound & names:
                return True
    return False


def _targets(clause: cst.CompFor | None) -> Iterator[cst.CSTNode]:
    while clause is not None:
        yield clause.target
        clause = clause.inner_for_in


def _assigned(statement: cst.SimpleStatementLine) -> str:
    """The path of the attribute that a statement gives a value."""
    for small in statement.body:
        if isinstance(small, cst.Assign) and isinstance(small.targets[0].target, cst.Attribute):
            return syntax.code(small.targets[0].target)
    return ""


# --- names for what is there -----------------------------------------------------------------------------------------


def _is_moved(ctx: Context, node: cst.Assign, value: cst.Attribute) -> bool:
    """``self.bias = self.conv.bias``, whose next line is ``self.conv.bias = None``: there are never two of it."""
    around = ctx.facts.tree.around(node) if ctx.facts.tree.has(node) else ()
    lines = [n for n in around if isinstance(n, cst.SimpleStatementLine)]
    blocks = [n for n in around if isinstance(n, cst.IndentedBlock)]
    if not lines or not blocks or len(lines[-1].body) != 1:
        return False
    body = list(blocks[-1].body)
    at = body.index(lines[-1]) + 1 if lines[-1] in body else len(body)
    after = body[at] if at < len(body) else None
    if not isinstance(after, cst.SimpleStatementLine) or not isinstance(after.body[0], cst.Assign):
        return False
    taken = after.body[0]
    none = isinstance(taken.value, cst.Name) and taken.value.value == "None"
    if not none or syntax.code(taken.targets[0].target) != syntax.code(value):
        return False
    paths = {syntax.code(value): 1, syntax.code(value.value): 1}
    for other in ctx.facts.tree.within(ctx.frame.info.node, cst.AssignTarget) if ctx.frame else ():
        path = syntax.code(other.target)
        if path in paths:
            paths[path] -= 1
    return all(times >= 0 for times in paths.values())  # no other bias, and no other layer


@converts(cst.Assign, targets=(cst.Attribute,))
def another_name(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``self.row = self.table[0]``, a view, and for a second name of what is given anew later."""
    ctx, target = rw.ctx, node.targets[0].target
    if ctx.frame is None or not ctx.in_init or not isinstance(target, cst.Attribute):
        return
    if isinstance(node.value, cst.Attribute) and is_variable(ctx, node.value):
        if _is_moved(ctx, node, node.value):
            return
        if layer_weight(ctx, target) is None and _is_given_anew(ctx, node, (target, node.value)):
            raise _second_name(node, target, "and one of the two is given a new value later")
        if _is_saved_otherwise(ctx, target, node.value):
            raise _second_name(node, target, "of which torch saves one")
        return
    if isinstance(node.value, cst.Call) and (
        makes_parameter(ctx, node.value) or not isinstance(ctx.kind(node.value), k.Tensor)
    ):
        return
    if not _variables(ctx, ctx.frame.info) and not isinstance(node.value, cst.Call):
        return
    if not may_share(ctx, node.value):
        return
    facts, line = aliases(ctx, ctx.frame.info), ctx.statements[-1].node
    if line not in facts.before or holds_parameter(ctx, node.value):
        return
    memory = facts.memory(node.value, facts.before[line])
    own = syntax.code(target).removesuffix(".data")
    if any(path != own for path, _, _ in state_in(ctx, ctx.frame.info, memory)):
        raise _second_name(node, target, "as a view or under a condition")


def second_names(ctx: Context, info: ClassInfo) -> list[str]:
    """The attributes that are second names of buffers, ``self.degrees = self.linear.degrees``: torch saves none."""
    init = info.methods.get("__init__")
    found: list[str] = []
    for node in ctx.facts.tree.within(init.node.body, cst.Assign) if init is not None else ():
        target, kind = node.targets[0].target, ctx.facts.kind(node.value)
        own = isinstance(target, cst.Attribute) and syntax.code(target.value) == "self"
        if not own or not isinstance(node.value, cst.Attribute) or len(node.targets) != 1:
            continue
        if not isinstance(kind, k.Tensor) or kind.role != "buffer":
            continue
        name = target.attr.value
        if name not in found and not any(_registers(one, name) for one in info.lineage()):
            found.append(name)
    return found


def _registers(info: ClassInfo, name: str) -> bool:
    """Whether a class may register something of that name itself."""
    calls = [c for c in syntax.walk(info.node) if isinstance(c, cst.Call) and registers(c)]
    named = [registered(one, 0, "name") for one in calls]
    return any(one is None or _may_spell(one, name) for one in named)


def _may_spell(node: cst.BaseExpression, name: str) -> bool:
    """Whether a text may be a name: ``f"table{i}"`` is one that begins so."""
    if isinstance(node, cst.SimpleString):
        return bool(node.evaluated_value == name)
    if not isinstance(node, cst.FormattedString) or not node.parts:
        return True
    first, last = node.parts[0], node.parts[-1]
    begins = first.value if isinstance(first, cst.FormattedStringText) else ""
    ends = last.value if isinstance(last, cst.FormattedStringText) else ""
    return name.startswith(begins) and name.endswith(ends)


def _is_saved_otherwise(ctx: Context, target: cst.Attribute, value: cst.Attribute) -> bool:
    """``self.layer.table = self.table`` of a buffer that torch saves under one of the two names alone."""
    kind, owner = ctx.kind(value), ctx.class_of(ctx.kind(target.value))
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if ctx.is_self(target.value) or not isinstance(kind, k.Tensor) or kind.role != "buffer":
        return False
    name = target.attr.value
    registered = owner is not None and any(_registers(one, name) for one in owner.lineage())
    there = registered and is_loaded(ctx, name)
    return owner is not None and there != is_loaded(ctx, value.attr.value)


def _is_given_anew(ctx: Context, node: cst.Assign, pair: tuple[cst.Attribute, ...]) -> bool:
    """Whether another statement assigns to one of these attributes, but for one that runs before."""
    assert ctx.frame is not None
    names = {one.attr.value for one in pair}
    body = ctx.frame.info.node.body
    before = True
    for other in ctx.source.index.of_type(cst.Assign):
        before = before and other is not node
        for one in other.targets if other is not node else ():
            target = one.target
            if not isinstance(target, cst.Attribute) or target.attr.value not in names:
                continue
            if ctx.is_self(target.value) and not _is_of_one(ctx, other, target, pair):
                continue
            if makes_parameter(ctx, other.value) or (before and ctx.facts.tree.holds(body, other)):
                continue
            return True
    return False


def _is_of_one(
    ctx: Context, node: cst.Assign, target: cst.Attribute, pair: tuple[cst.Attribute, ...]
) -> bool:
    """Whether what a method gives to an attribute of ``self`` may be given to one of two attributes.

    It is not where no instance is of both classes: neither derives from the other, nor a third one from both. Nor is it
    in the constructor of another module, which has run."""
    around = ctx.facts.tree.around(node) if ctx.facts.tree.has(node) else ()
    within = next((one for one in reversed(around) if isinstance(one, cst.ClassDef)), None)
    method = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    every = ctx.facts.classes.values()
    found = next((one for one in every if one.node is within), None)
    for one in pair:
        if one.attr.value != target.attr.value:
            continue
        own = ctx.is_self(one.value)
        owner = ctx.owner if own else ctx.class_of(ctx.kind(one.value))
        if found is None or owner is None:
            if own or owner is not None:
                return True
            continue
        built = not own and method is not None and method.name.value == "__init__"
        if not built and any({found, owner} <= set(c.lineage()) for c in every):
            return True
    return False


def _second_name(node: cst.Assign, target: cst.Attribute, why: str) -> Failure:
    return Failure(
        node,
        "MUT001",
        f"`{syntax.code(target)}` shares memory with a parameter or buffer, {why}",
        "read it in forward() from the parameter or buffer itself",
    )

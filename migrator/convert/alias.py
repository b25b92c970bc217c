"""Who else sees an in-place write: which names may share memory, and which of them are read later.

torch's views and assignments share memory; JAX arrays never change. A write may become a rebinding only when
nothing that shares the written memory is read afterwards under another name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from migrator import syntax, views
from migrator.convert.context import Context, Failure
from migrator.convert.first_round import begins_anew
from migrator.convert.free_names import check_default, check_own
from migrator.convert.handed_on import is_handed_on
from migrator.convert.later_reads import holds_tensor, may_be_tensors, sees_no_values
from migrator.convert.made_of_globals import check_made_of_global
from migrator.convert.memory import Aliases, aliases
from migrator.convert.named_weights import check_named_weight
from migrator.convert.never_asked import is_never_asked
from migrator.convert.parts import (
    NOT_KNOWN,
    OVERLAP,
    TWICE,
    is_container,
    is_of_item,
    is_part,
    names_same,
    shared,
    whole,
)
from migrator.convert.possible_calls import as_called, may_be_run, possible_calls
from migrator.convert.starred import may_hold_tensors, spread_arguments
from migrator.convert.written_back import is_written_back
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.options import leaves_default, options_handed, options_on


def root_name(node: cst.CSTNode, ctx: Context | None = None) -> cst.Name | None:
    """The name at the root of ``x``, ``x[i]``, ``x[i][j]``, ``x.data``; None for other targets."""
    base = views.written_base(node, ctx.is_module if ctx is not None else None)
    return base if isinstance(base, cst.Name) else None


def check_mutation(
    ctx: Context, node: cst.CSTNode, target: cst.CSTNode, reshapes: bool = False
) -> None:
    """Raise a Failure when somebody else may see the write to a target.

    Args:
      reshapes: it changes sizes, which another name is asked for as well.
    """
    if ctx.frame is None or not ctx.statements:
        return
    name = root_name(target, ctx)
    if name is None:
        attribute = views.written_base(target, ctx.is_module)
        if isinstance(attribute, cst.Attribute):
            _check_attribute(ctx, node, syntax.code(attribute))
        return
    check_named_weight(ctx, node, name)
    facts = aliases(ctx, innermost(ctx))
    statement = ctx.statements[-1].node
    state = facts.before.get(statement)
    if state is None:
        return
    check_own(ctx, facts.info, facts.before.values(), node, name.value)
    memory = state.get(name.value, frozenset())
    later = facts.read_after(statement) | _read_beside(facts, statement, node)
    element = is_of_item(ctx, target)
    variable = is_variable(ctx.kind(name))
    for other, theirs in state.items():
        if other == name.value or other not in later or not shared(memory, theirs):
            continue
        if other in ctx.in_step:
            continue
        if variable and _names_variable(ctx, facts, other):
            continue  # the two may be one Variable, and both are read where they are used
        if element and theirs == memory and is_container(ctx, facts.info, other):
            continue  # the same list under another name: it gets the new element too
        if not reshapes and sees_no_values(ctx, facts, statement, other):
            continue
        raise Failure(
            node,
            "MUT001",
            f"writing `{name.value}` in place also changes `{other}`, which is read later",
            f"copy first (`{name.value} = {name.value}.clone()`) or write the change to both",
        )
    if element and TWICE in memory and name.value in later:
        raise Failure(
            node,
            "MUT001",
            f"`{name.value}` may hold one tensor twice, and writing it in place changes both",
            "make the elements with a copy each",
        )
    buffer = state_of(ctx, name)
    if buffer is not None:
        check_made_of_global(ctx, node, buffer.removeprefix("attr:"))
    for one in sorted(memory):  # a set of strings has another order in every process
        if one.startswith("attr:") and not variable and one != buffer:  # else read where it is used
            if is_written_back(ctx, statement, name, one.removeprefix("attr:")):
                continue
            raise Failure(
                node,
                "MUT001",
                f"writing `{name.value}` in place also changes `{one.removeprefix('attr:')}`",
                "assign the new value to the attribute",
            )
        if one.startswith("param:"):
            param = whole(one).removeprefix("param:")
            root = "" if variable else name.value
            write = Write(node, param, innermost(ctx), element, is_part(one), root=root)
            check_calls(ctx, write)


def check_temporary(ctx: Context, node: cst.CSTNode, target: cst.CSTNode) -> None:
    """Raise a Failure where the write to a nameless tensor, which the port leaves alone, is seen by somebody.

    ``g(x).mul_(2)``: what a function or a layer gives may be memory of what it is handed, or of what it holds.
    """
    if ctx.frame is None or not ctx.statements:
        return
    info, statement = innermost(ctx), ctx.statements[-1].node
    facts = aliases(ctx, info)
    state = facts.before.get(statement)
    if state is None:
        return
    memory = facts.memory(target, state)
    later = (facts.read_after(statement) - rebound(statement)) | _read_beside(
        facts, statement, node
    )
    seen = [name for name in sorted(later) if shared(memory, state.get(name, frozenset()))]
    seen += [one.removeprefix("attr:") for one in sorted(memory) if one.startswith("attr:")]
    if seen:
        raise Failure(
            node,
            "MUT001",
            f"writing to what this gives may also change `{seen[0]}`, which is read later",
            "copy first (`.clone()`), or give the change a statement of its own",
        )
    for one in sorted(memory):
        if one.startswith("param:"):
            param = whole(one).removeprefix("param:")
            check_calls(ctx, Write(node, param, info, False, is_part(one)))


def check_unknown(ctx: Context, node: cst.CSTNode, target: cst.Name) -> None:
    """``y += 1`` of what may be a tensor: a Failure when a tensor whose memory it may share is read later."""
    if ctx.frame is None or not ctx.statements:
        return
    check_named_weight(ctx, node, target, sure=False)
    facts, statement = aliases(ctx, innermost(ctx)), ctx.statements[-1].node
    state = facts.before.get(statement, {})
    memory, later = state.get(target.value, frozenset()), facts.read_after(statement)
    if facts.info.outer is not None and target.value in may_be_tensors(ctx, facts.info):
        check_own(ctx, facts.info, facts.before.values(), node, target.value)
    others = {n for n, theirs in state.items() if n in later and shared(memory, theirs)}
    others -= {target.value}
    given = (
        may_be_tensors(ctx, facts.info) if others or any("attr:" in m for m in memory) else set()
    )
    for other in ctx.facts.tree.below(facts.info.node.body) if others else ():
        if not isinstance(other, cst.Name) or other.value not in others:
            continue
        tensors = isinstance(ctx.kind(other), k.Tensor)
        if tensors or target.value in given:
            raise Failure(
                node,
                "MUT001",
                f"`{target.value}` may be a tensor: writing it in place also changes `{other.value}`, which is read later",
                f"write `{target.value} = {target.value} …` if `{other.value}` is to stay as it is",
            )
    reached = may_be_run(ctx, facts.info)  # else it is often a width: `n *= ratio`
    for one in sorted(memory):
        by_name = one.startswith("attr:getattr(self,") and not ctx.in_init  # perhaps a buffer
        if not reached and not by_name:
            continue
        told = by_name or target.value in given or holds_tensor(ctx, facts, state, one)
        if one.startswith("attr:") and told:
            what = f"`{target.value}` may be a tensor: writing it in place also changes `{one.removeprefix('attr:')}`"
            raise Failure(node, "MUT001", what, "assign the new value to the attribute")
        if one.startswith("param:"):
            part = is_part(one)
            name = whole(one).removeprefix("param:")
            check_calls(ctx, Write(node, name, facts.info, False, part))


def is_variable(kind: k.Kind) -> bool:
    """Whether a name stands for a Variable in the output: a parameter, or a buffer, of a module."""
    return isinstance(kind, k.Tensor) and bool(kind.role)


def _names_variable(ctx: Context, facts: Aliases, name: str) -> bool:
    """Whether a name stands for a Variable wherever a function reads it."""
    read = [
        node
        for node in ctx.facts.tree.within(facts.info.node.body, cst.Name)
        if node.value == name and node in ctx.facts.kinds
    ]
    return bool(read) and all(is_variable(ctx.kind(node)) for node in read)


def _read_beside(facts: Aliases, statement: cst.CSTNode, node: cst.CSTNode) -> set[str]:
    """Names that a statement reads outside of a part of it, where both run."""
    apart = Counter(syntax.names(node))
    for other in _instead(statement, node):
        apart.update(syntax.names(other))
    return {n for n in facts.before[statement] if reads_in(statement, n) > apart[n]}


def _instead(node: cst.CSTNode, part: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """``x`` of ``self.skip(x) if self.skip else x``: what is computed where a part is not."""
    while node is not part:
        inner = next((one for one in syntax.children(node) if _holds(one, part)), None)
        if inner is None:
            return
        if isinstance(node, cst.IfExp) and inner is not node.test:
            yield node.orelse if inner is node.body else node.body
        node = inner


def _holds(node: cst.CSTNode, part: cst.CSTNode) -> bool:
    return any(one is part for one in syntax.walk(node))


def _check_attribute(ctx: Context, node: cst.CSTNode, attribute: str) -> None:
    """``h = self.buf`` and then ``self.buf += 1``: h is written too, here and in who called this method."""
    check_made_of_global(ctx, node, attribute)
    seen: set[FunctionInfo] = set()
    queue: list[tuple[FunctionInfo, cst.CSTNode, cst.CSTNode]] = [
        (innermost(ctx), ctx.statements[-1].node, node)
    ]
    while queue:
        info, statement, part = queue.pop()
        facts = aliases(ctx, info)
        state = facts.before.get(statement, {})
        beside = _read_beside(facts, statement, part) if state else set[str]()
        later = facts.read_after(statement) | beside
        for other, theirs in () if seen else state.items():  # of its callers: ``state_reads``
            if other in later and any(names_same(one, attribute) for one in theirs):
                raise Failure(
                    node,
                    "MUT001",
                    f"writing `{attribute}` in place also changes `{other}`, which is read later",
                    f"copy first (`{other} = {attribute}.clone()`)",
                )
        held = {m for theirs in state.values() if f"attr:{attribute}" in theirs for m in theirs}
        built = ctx.plan.builds_time(info)
        for one in sorted(m for m in held if m.startswith("param:") and not built):
            param = whole(one).removeprefix("param:")
            check_calls(ctx, Write(node, param, info, False, is_part(one), root=attribute))
        seen.add(info)
        for call, caller in info.call_sites.items():
            if caller is None or caller in seen or not _of_self(call, caller):
                continue
            found = statement_of(aliases(ctx, caller), call)
            if found is not None:
                queue.append((caller, found, call))


def _of_self(call: cst.CSTNode, caller: FunctionInfo) -> bool:
    """Whether a method calls another of its own instance."""
    func = call.func if isinstance(call, cst.Call) else None
    params = caller.node.params.params
    owner = func.value if isinstance(func, cst.Attribute) else None
    return isinstance(owner, cst.Name) and bool(params) and params[0].name.value == owner.value


def state_of(ctx: Context, name: cst.Name) -> str | None:
    """The buffer that a name stands for, which is given its new value too."""
    from migrator.convert.passes.state_alias import named_state

    found = named_state(ctx, name)
    return f"attr:{syntax.code(found)}" if found is not None else None


def innermost(ctx: Context) -> FunctionInfo:
    return ctx.frames[-1].info


_HOLDERS = (k.Tensor, k.Unknown, k.Optional, k.Sequence, k.Tuple, k.Mapping)


@dataclass(frozen=True)
class Write:
    """A write of a function to one of its parameters.

    ``element``: the argument is a list or dict that gets a new element, which who holds the list sees; ``part``:
    a part of it is written, and other parts are taken to be other memory; ``way``: what the argument was handed to.
    """

    node: cst.CSTNode
    param: str
    info: FunctionInfo
    element: bool
    part: bool
    way: tuple[FunctionInfo, ...] = ()
    root: str = ""
    """The name by which it is written, where a statement of the function does."""


def check_calls(ctx: Context, write: Write) -> None:
    """A function that writes to its argument is safe when no caller reads that argument afterwards."""
    known = ctx.mutated.setdefault(write.info, set())
    again = write.param in known and not write.part and write.info is not innermost(ctx)
    if write.info in write.way or again:
        return
    known.add(write.param)
    try:
        _check_callers(ctx, write)
    except Failure:
        known.discard(write.param)  # who tries another way asks again
        raise


def _check_callers(ctx: Context, write: Write) -> None:
    from migrator.convert.procedures import written_parameters

    node, param, info = write.node, write.param, write.info
    if info.owner is not None and info.owner.gradient and info.short == "backward":
        raise Failure(
            node,
            "MUT003",
            f"the gradient `{param}` is changed in place, and others may get the same tensor in torch",
            f"work on a copy (`{param} = {param}.clone()`)",
        )
    check_default(ctx, info, node, param)
    if is_handed_on(ctx, info) and not is_never_asked(ctx, info, node):
        raise Failure(
            node,
            "MUT003",
            f"{info.short}() changes its argument `{param}` in place, and is handed on as a value",
            "work on a copy, or call it by its name",
        )
    if not info.call_sites and not write.element and _gives_nothing(ctx, info, write):
        raise Failure(
            node,
            "MUT003",
            f"{info.short}() changes its argument `{param}` in place and returns nothing: here its caller sees no change",
            f"return `{param}`, and take it back where it is called"
            if write.root in ("", param)
            else "hand over the module, and go through its parameters() here",
        )
    returned = written_parameters(ctx, info)
    if param in returned and write.root not in ("", param):
        raise _seen(node, param, cst.Name(param), f"who calls {info.short}()")
    options = [*options_on(ctx.facts.tree, info, node), *options_handed(ctx.facts.tree, info, node)]
    for call, caller in {**info.call_sites, **possible_calls(ctx, info)}.items():
        if not isinstance(call, cst.Call):
            continue
        if any(leaves_default(info, one, call) for one in options):
            continue  # it is not written there
        for name, item in spread_arguments(ctx, as_called(ctx, _run_by(ctx, call)), info):
            if name != param or not isinstance(ctx.kind(item.value), _HOLDERS):
                continue
            if item.star and not may_hold_tensors(ctx.kind(item.value)):
                continue
            if caller is None:
                if root_name(item.value) is not None:
                    raise _seen(node, param, item.value, "the code around its call")
                continue
            if not taken_back(ctx, call, info, item):
                _check_call(ctx, write, caller, call, item, param in returned)


def _run_by(ctx: Context, call: cst.Call) -> cst.Call:
    """``self.block(x)`` of ``checkpoint(self.block, x)``, as far as its arguments go."""
    if ctx.facts.callee(call) != "torch.utils.checkpoint.checkpoint" or not call.args:
        return call
    return syntax.with_args(call, [one for one in call.args[1:] if one.keyword is None])


def _gives_nothing(ctx: Context, info: FunctionInfo, write: Write) -> bool:
    """Whether a plain function has no result, in the output either: what it does to its arguments is all there is.

    What a module holds is written in the port, too; tensors that something unknown holds are not."""
    from migrator.convert.passes.initializers import returned_parameter

    param = write.param
    if info.outer is not None or info.generator:
        return False
    held = write.root not in ("", param) and info.short != "__init__"
    if not isinstance(info.params.get(param), (k.Tensor, *((k.Unknown,) if held else ()))):
        return False
    if returned_parameter(ctx, info) == param:
        return False
    returns = [n for n in syntax.walk(info.node.body) if isinstance(n, cst.Return)]
    return all(one.value is None or one.value.deep_equals(cst.Name("None")) for one in returns)


def _check_call(
    ctx: Context,
    write: Write,
    caller: FunctionInfo,
    call: cst.Call,
    item: cst.Arg,
    returned: bool = False,
) -> None:
    """One caller of a function that writes to an argument; ``returned``: the variable that it gives takes the result."""
    from migrator.convert.procedures import is_walked

    facts = aliases(ctx, caller)
    statement = statement_of(facts, call)
    seen = _seen(write.node, write.param, item.value, f"{caller.short}()")
    if is_walked(ctx, item.value) and not returned:
        raise seen  # a Variable, of which the function gets the value
    if statement is None:
        if root_name(item.value) is not None:
            raise seen
        return
    if runs_often(ctx, statement, call):
        raise seen  # each round gets what the one before wrote
    state = facts.before[statement]
    memory = facts.memory(item.value, state)
    if memory & ({TWICE, OVERLAP, NOT_KNOWN} if write.part else set()):
        raise seen
    after = frozenset() if ends(ctx, statement) else facts.read_after(statement)
    later = after - rebound(statement)
    later |= _read_beside(facts, statement, call)
    if returned and isinstance(item.value, cst.Name):
        later -= {item.value.value}
    if write.info.outer is not None:  # a function within a function reads what is around it
        later |= set(syntax.names(write.info.node.body)) - set(write.info.params)
    for name, theirs in state.items():
        same = write.element and theirs == memory and is_container(ctx, facts.info, name)
        if name in later and shared(theirs, memory) and not same:
            raise seen
    given = f"attr:{syntax.code(views.undressed(item.value))}" if returned else ""
    for one in sorted(memory):
        if one.startswith("attr:") and one != given:
            raise seen
        if one.startswith("param:") and caller is not write.info:
            same = write.element and isinstance(item.value, cst.Name)
            param = whole(one).removeprefix("param:")
            part = write.part or is_part(one)
            check_calls(ctx, Write(write.node, param, caller, same, part, (*write.way, write.info)))


_REPEATED = (cst.BaseComp, cst.Lambda)
"""What may run many times within one statement."""


def runs_often(ctx: Context, statement: cst.CSTNode, call: cst.CSTNode) -> bool:
    """Whether a call stands in a comprehension or a lambda of a statement, which may run it many times."""
    return any(isinstance(one, _REPEATED) for one in _between(ctx, statement, call))


def _between(ctx: Context, outer: cst.CSTNode, inner: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes around a node that lie within another one."""
    if not ctx.facts.tree.has(inner):  # of another file in the same circle
        return [one for one in syntax.walk(outer)[1:] if inner in syntax.walk(one)[1:]]
    around = ctx.facts.tree.around(inner)
    return around[around.index(outer) + 1 :] if outer in around else []


def _seen(node: cst.CSTNode, param: str, value: cst.BaseExpression, where: str) -> Failure:
    text = " ".join(syntax.code(value).split())[:40]
    return Failure(
        node,
        "MUT003",
        f"the argument `{param}` is changed in place and `{text}` is read later by {where}",
        "work on a copy, or return the changed tensor",
    )


def taken_back(ctx: Context, call: cst.Call, info: FunctionInfo, item: cst.Arg) -> bool:
    """Whether a call is a statement of its own whose result becomes the argument's new value."""
    from migrator.convert.passes import targets
    from migrator.convert.passes.initializers import writes_first_parameter

    first = call.args[0] if call.args else None
    if item is not first or item.keyword is not None or item.star:
        return False
    if not writes_first_parameter(ctx, info):
        return False
    if not any(s.value is call for s in ctx.source.index.of_type(cst.Expr)):
        return False
    value = views.undressed(item.value)
    return (
        isinstance(ctx.kind(value), k.Tensor) or targets.found_at_run_time(ctx, value) is not None
    )


def bound_arguments(node: cst.Call, info: FunctionInfo) -> list[tuple[str, cst.Arg]]:
    """The arguments of a call with the parameters they go to, up to the first starred one."""
    queue = list(info.params)
    if not info.has_receiver:
        params = info.node.params
        queue = [p.name.value for p in (*params.posonly_params, *params.params)]
    found = []
    for item in node.args:
        if item.star:
            break
        if item.keyword is not None:
            found.append((item.keyword.value, item))
        elif queue:
            found.append((queue.pop(0), item))
    return found


def reads_in(statement: cst.CSTNode, name: str) -> int:
    """How often a statement reads a name; what it binds is not read."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return syntax.names(statement).get(name, 0)
    parts = [s.value if isinstance(s, cst.Assign) else s for s in statement.body]
    return sum(syntax.names(part).get(name, 0) for part in parts)


def rebound(statement: cst.CSTNode) -> set[str]:
    found = set()
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        for target in small.targets if isinstance(small, cst.Assign) else ():
            if isinstance(target.target, cst.Name):
                found.add(target.target.value)
            elif isinstance(target.target, cst.Tuple):
                parts = [e.value for e in target.target.elements]
                found |= {one.value for one in parts if isinstance(one, cst.Name)}
    return found


def statement_of(facts: Aliases, call: cst.CSTNode) -> cst.CSTNode | None:
    for statement, _, _ in facts.order:
        if call in set(syntax.walk(statement)) and isinstance(
            statement, (cst.SimpleStatementLine, cst.BaseSmallStatement)
        ):
            return statement
    return None


def _runs_again(ctx: Context, node: cst.CSTNode, name: str) -> bool:
    """``[layer(x) for layer in layers]``: whether one expression makes a call again, with a name of outside it."""
    index = ctx.source.index
    if not index.has(node):  # made of ``checkpoint(layer, x)``
        return any(isinstance(one, cst.BaseComp) for one in syntax.walk(ctx.statements[-1].node))
    for around in reversed(index.around(node)):
        if isinstance(around, cst.BaseStatement | cst.BaseSmallStatement):
            return False
        if isinstance(around, cst.Lambda) and any(
            p.name.value == name for p in syntax.named_parameters(around.params)
        ):
            return False
        if isinstance(around, cst.BaseComp):
            if name in _bound_by(around.for_in):
                return False
            if not ctx.source.index.holds(around.for_in.iter, node):
                return True
    return False


def _bound_by(loop: cst.CompFor) -> set[str]:
    inner = _bound_by(loop.inner_for_in) if loop.inner_for_in is not None else set()
    return inner | set(syntax.names(loop.target))


def check_in_place_layer(ctx: Context, node: cst.Call) -> None:
    """``relu(x, inplace=True)``: the result replaces x, which must not be read as it was."""
    if not node.args or not ctx.statements:
        return
    name = root_name(node.args[0].value, ctx)
    if name is None:
        if isinstance(node.args[0].value, cst.Call):  # which may hand on what it is handed
            check_temporary(ctx, node, node.args[0].value)
        return
    if begins_anew(ctx, node):
        return
    check_mutation(ctx, node, name)
    frame = ctx.frame
    if frame is None:
        return
    statement = ctx.statements[-1]
    facts = aliases(ctx, frame.info)
    again = reads_in(statement.node, name.value) > syntax.names(node).get(name.value, 0)
    again = again or _runs_again(ctx, node, name.value)
    anew = {statement.target} | rebound(statement.node)
    later = name.value in facts.read_after(statement.node) - anew
    if again or (later and not ends(ctx, statement.node)):
        raise Failure(
            node,
            "MUT002",
            f"`{name.value}` is changed by inplace=True and read again later",
            f"assign the result back to `{name.value}`, or drop inplace=True if the old value is meant",
        )


def ends(ctx: Context, statement: cst.CSTNode) -> bool:
    """Whether a function is left by a statement: what stands below it, in another branch, is not run then."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    around = ctx.facts.tree.around(small) if small and ctx.facts.tree.has(small) else None
    return (
        isinstance(small, cst.Return)
        and around is not None
        and not any(isinstance(one, cst.Try | cst.TryStar) for one in around)
    )

"""State that is read before a call which updates it, and used after it.

``m = self.bn.running_mean; y = self.bn(x); return y + m``: m is the buffer itself in torch, and its new value is what is
added. The port reads a value, which is the old one.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.memory import Aliases, aliases
from migrator.convert.own_state import called_function, kept_by_call, state_names
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.sharing import VIEWS
from migrator.convert.updates import may_be_written, updated_by, writes_state, written_names
from migrator.infer import FunctionInfo


@converts(cst.Call)
def read_before(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for a call that may write to state of which somebody holds the tensor."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.statements or ctx.in_init:
        return
    read = _state_read(ctx, ctx.frame.info)
    updated = read & updated_by(ctx, node) if read else frozenset()
    if not updated or not (updated := updated & written_names(ctx)):
        return
    statement = ctx.statements[-1].node
    facts = aliases(ctx, ctx.frame.info)
    state = facts.before.get(statement)
    if state is None:
        return
    for name in sorted(_held(facts, statement, node)):
        if _names(state.get(name, frozenset())) & updated:
            raise _changed(node, name)
    for attribute in _direct(ctx, statement, node, updated):
        raise _changed(node, syntax.code(attribute))


def _held(facts: Aliases, statement: cst.CSTNode, node: cst.Call) -> set[str]:
    """The names that are read while a call runs, after it or beside it."""
    beside = {name for part in evaluated(statement) for name in syntax.names(part)}
    func = set(syntax.names(node.func))
    return (set(facts.read_after(statement)) | beside) - func


def evaluated(statement: cst.CSTNode) -> list[cst.CSTNode]:
    """What a statement evaluates: not what it binds, nor the suites below it."""
    if isinstance(statement, cst.SimpleStatementLine):
        return [s.value if isinstance(s, cst.Assign) else s for s in statement.body]
    if isinstance(statement, (cst.If, cst.While)):
        return [statement.test]
    return [statement.iter] if isinstance(statement, cst.For) else []


def _state_read(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The names of attributes that a function reads and that something in the project may write to in place."""
    if info not in ctx.state_read:
        read = {n.attr.value for n in ctx.facts.tree.within(info.node.body, cst.Attribute)}
        if writes_state(ctx):
            read |= _given_by_calls(ctx, info) | _kept_by_calls(ctx, info)
        ctx.state_read[info] = may_be_written(ctx, read)
    return ctx.state_read[info]


def _given_by_calls(ctx: Context, info: FunctionInfo) -> set[str]:
    """The names of attributes that calls in a function may give: ``t = self.counter(x)``, where that is its ``total``."""
    found: set[str] = set()
    for call in ctx.facts.tree.within(info.node.body, cst.Call):
        called = called_function(ctx, call)
        if called is not None:
            found |= state_names(ctx, called)
    return found


def _kept_by_calls(ctx: Context, info: FunctionInfo) -> set[str]:
    """The names of attributes that hold what calls are handed: ``self.queue.put(x)``."""
    found: set[str] = set()
    for call in ctx.facts.tree.within(info.node.body, cst.Call):
        called = called_function(ctx, call)
        if called is not None:
            found |= {to.rpartition(".")[2] for _, to in kept_by_call(ctx, called, call)}
    return found


def _names(memory: frozenset[str]) -> frozenset[str]:
    """``running_mean`` of the memory ``attr:self.bn.running_mean``."""
    return frozenset(one.rpartition(".")[2] for one in memory if one.startswith("attr:"))


def _direct(
    ctx: Context, statement: cst.CSTNode, call: cst.Call, updated: frozenset[str]
) -> Iterator[cst.CSTNode]:
    """``self.bn.running_mean + self.bn(x)``: state that a statement reads before a call, and uses once it has run."""
    for part in evaluated(statement):
        for node in ctx.facts.tree.below(part):  # in the order of the source
            if node is call.func:
                break  # what comes now is read after the call, or handed to it
            if _gives(ctx, node, updated) and not ctx.facts.tree.holds(node, call):
                if not _is_used_up(ctx, node, call):
                    yield node
        for node in _each_round(ctx, call):
            if _gives(ctx, node, updated):
                yield node


def _gives(ctx: Context, node: cst.CSTNode, updated: frozenset[str]) -> bool:
    """Whether an expression may be state of some names: ``self.mean``, or the call of a method that returns it."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in updated
    if not isinstance(node, cst.Call):
        return False
    called = called_function(ctx, node)
    return called is not None and not updated.isdisjoint(state_names(ctx, called))


def _each_round(ctx: Context, call: cst.Call) -> Iterator[cst.CSTNode]:
    """What the rounds of a comprehension put into a list as it is, beside or by a call: ``[self.count(x) for x in xs]``.

    And what a function without a name gives, ``map(lambda x: self.count(x), xs)``, which may be called time and again.
    """
    tree = ctx.facts.tree
    for outer in tree.around(call) if tree.has(call) else ():
        if isinstance(
            outer, (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp, cst.Lambda)
        ):
            value = next(v for n in _VALUES if (v := getattr(outer, n, None)) is not None)
            for node in tree.below(value):
                if not _is_used_up(ctx, node, outer):
                    yield node


_VALUES = ("elt", "value", "body")


def _is_used_up(ctx: Context, node: cst.CSTNode, call: cst.CSTNode) -> bool:
    """Whether something new is made of a tensor before a call: ``self.bn.running_mean.clone() + self.bn(x)``."""
    for parent in reversed(ctx.facts.tree.around(node)):
        if parent is call or ctx.facts.tree.holds(parent, call):
            return False
        if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
            return True
        name = ctx.facts.callee(parent) or "" if isinstance(parent, cst.Call) else ""
        if name.startswith(("torch.", "Tensor.")) and name.rpartition(".")[2] not in VIEWS:
            return True
    return False


def _changed(node: cst.Call, name: str) -> Failure:
    return Failure(
        node,
        "MUT001",
        f"this call may write to the state that `{name}` stands for, which is used once it has run",
        "read the old value with `.clone()` before the call, or the new one after it",
    )

"""What is read of a name after a write to memory it shares: nothing but sizes, or nothing before it is bound anew."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.made_of_globals import made_of_globals
from migrator.convert.memory import Aliases
from migrator.convert.own_state import kept_by_call
from migrator.convert.states import State
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.items import spread

_ATTRIBUTES = frozenset("shape dtype device ndim is_cuda requires_grad layout".split())
_METHODS = frozenset(
    "size dim numel nelement ndimension element_size is_floating_point is_complex get_device "
    "new_zeros new_ones new_empty new_full new_tensor".split()
)
_OF_ARGUMENT = frozenset("type_as expand_as view_as reshape_as".split())
_LIKE = frozenset(
    f"torch.{name}_like" for name in "zeros ones empty full rand randn randint".split()
)


def sees_no_values(ctx: Context, facts: Aliases, statement: cst.CSTNode, name: str) -> bool:
    """Whether what a write in place does to the numbers of ``name`` is never seen: its sizes stay as they are."""
    if _is_kept_by_function(ctx, facts, name):
        return False
    return _is_bound_first(ctx, statement, name) or all(
        _is_no_value(ctx, one) for one in _reads(ctx, facts, statement, name)
    )


def _is_kept_by_function(ctx: Context, facts: Aliases, name: str) -> bool:
    """Whether a function within the function reads the name, whenever it is called."""
    inner = ctx.facts.tree.within(facts.info.node.body, cst.Lambda, cst.FunctionDef)
    return any(name in syntax.names(one) for one in inner)


def _reads(
    ctx: Context, facts: Aliases, statement: cst.CSTNode, name: str
) -> Iterator[cst.CSTNode]:
    """Where a name may be read once a statement runs: in it, after it, and in the loops around it."""
    at = next((i for i, (node, _, _) in enumerate(facts.order) if node is statement), 0)
    around = set(facts.order[at][2])
    for i, (one, parts, loops) in enumerate(facts.order):
        if i < at and one not in around and around.isdisjoint(loops):
            continue
        for part in parts:
            for node in syntax.walk(part):
                if isinstance(node, cst.Name) and node.value == name and _is_read(ctx, node):
                    yield node


def _is_read(ctx: Context, node: cst.Name) -> bool:
    """Whether a name stands for its value, and is no attribute, no keyword and nothing that is bound."""
    parent = ctx.facts.tree.parent(node) if ctx.facts.tree.has(node) else None
    if isinstance(parent, cst.Attribute):
        return parent.value is node
    if isinstance(parent, cst.Arg):
        return parent.value is node
    return not isinstance(parent, cst.AssignTarget)


def _is_no_value(ctx: Context, node: cst.CSTNode) -> bool:
    """``x.shape``, ``x.data.size(1)``, ``torch.zeros_like(x)``, ``y.type_as(x)`` of a tensor."""
    if not isinstance(ctx.kind(node), k.Tensor) or not ctx.facts.tree.has(node):
        return False
    above = list(reversed(ctx.facts.tree.around(node)))
    while isinstance(above[0], cst.Attribute) and above[0].attr.value in ("data", "T"):
        node, above = above[0], above[1:]
    first = above[0]
    if isinstance(first, cst.Attribute):
        called = isinstance(above[1], cst.Call) and above[1].func is first
        return first.attr.value in (_METHODS if called else _ATTRIBUTES)
    call = above[1]
    if not isinstance(first, cst.Arg) or not isinstance(call, cst.Call) or first.star:
        return False
    name = ctx.facts.callee(call) or ""
    if name in _LIKE or name == "builtins.len":
        return call.args[0] is first
    return name.startswith("Tensor.") and name.removeprefix("Tensor.") in _OF_ARGUMENT


def _is_bound_first(ctx: Context, statement: cst.CSTNode, name: str) -> bool:
    """Whether the lines that follow in the same block give the name a new value before anything reads it."""
    tree = ctx.facts.tree
    if not tree.has(statement):
        return False
    line, around = statement, list(tree.around(statement))
    if isinstance(line, cst.BaseSmallStatement):
        line = around.pop()
    block = around[-1] if around else None
    if not isinstance(block, cst.IndentedBlock) or not isinstance(line, cst.SimpleStatementLine):
        return False
    if len(line.body) != 1 or any(isinstance(one, cst.Try) for one in around):
        return False
    if name in syntax.reads(line.body[0]):
        return False
    for one in list(block.body)[list(block.body).index(line) + 1 :]:
        if not isinstance(one, cst.SimpleStatementLine):
            leaves = tree.within(one, cst.Break, cst.Continue)
            if leaves or name in syntax.names(one):
                return False
            continue
        for small in one.body:
            if isinstance(small, (cst.Break, cst.Continue)) or name in syntax.reads(small):
                return False
            if isinstance(small, cst.Assign):
                targets = [target.target for target in small.targets]
                if any(isinstance(to, cst.Name) and to.value == name for to in targets):
                    return True
    return False


def may_be_tensors(ctx: Context, info: FunctionInfo) -> set[str]:
    """The names of what is computed of a forward pass's arguments, or taken out of them, and may be tensors for all
    that is known: ``x, b = inputs``, ``y = batch["x"] * 2``."""
    from migrator.convert.possible_calls import may_be_run

    # what a function within the function reads of the names around it
    around = may_be_tensors(ctx, info.outer) if info.outer is not None else set[str]()
    if not around and not may_be_run(ctx, info):
        return set()

    def comes_of(value: cst.BaseExpression, found: set[str]) -> bool:
        kind = ctx.kind(value)
        if isinstance(kind, k.Tensor):
            return True
        sized = k.scalar_type(kind) is not None  # a size, a text
        return not sized and not (found | around).isdisjoint(syntax.names(value))

    return around | spread(ctx.facts.tree, info, comes_of)


def holds_tensor(ctx: Context, facts: Aliases, state: State, memory: str) -> bool:
    """Whether memory of an attribute is a tensor's: a name that is one shares it, or the function has put one there.

    An attribute that begins as None is taken for one, too: numbers do not; and what is looked up in ``globals()``,
    or made of a tensor of the file.
    """
    if memory.startswith("attr:globals()") or memory.rpartition(".")[2] in made_of_globals(ctx):
        return True
    first, _, rest = memory.removeprefix("attr:").partition(".")
    owner = ctx.owner if first == "self" and "." not in rest else None
    if owner is not None and any(_is_none(one, rest) for one in owner.lineage()):
        return True
    names = {name for name, theirs in state.items() if memory in theirs}
    tree, body, path = ctx.facts.tree, facts.info.node.body, memory.removeprefix("attr:")
    read = tree.within(body, cst.Name) if names else ()
    if any(one.value in names and isinstance(ctx.kind(one), k.Tensor) for one in read):
        return True
    for line in tree.within(body, cst.Assign):
        every = (one for to in syntax.assigned_to(line) for one in syntax.walk(to))
        put = any(isinstance(to, cst.Attribute) and syntax.code(to) == path for to in every)
        if put and any(isinstance(ctx.kind(one), k.Tensor) for one in syntax.walk(line.value)):
            return True
    for call in tree.within(body, cst.Call):
        method = ctx.facts.names.get(ctx.facts.callee(call) or "")
        kept = kept_by_call(ctx, method, call) if method is not None else ()
        if any(to == path and isinstance(ctx.kind(value), k.Tensor) for value, to in kept):
            return True
    return False


def _is_none(info: ClassInfo, name: str) -> bool:
    return name in info.unclear or info.attributes.get(name) == k.NONE

"""Walks over parameters whose result does not depend on the order."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context
from migrator.convert.passes.zero_dims import names_half
from migrator.infer import kinds as k
from migrator.infer.recomputing import only_trained
from rules.flags._numbers import HALF

_FOLDS = frozenset("sum max min any all len set".split())


def in_any_order(ctx: Context, call: cst.Call) -> bool:
    """Whether what is made of ``net.parameters()`` is the same in any order; modules side by side have the same one.

    A sum is, and a loop that only writes to what it goes through or adds up.
    """
    around = list(ctx.facts.tree.around(call))[::-1]
    for i, node in enumerate(around):
        if isinstance(node, cst.For):
            own = node.iter is call or any(one is node.iter for one in around[:i])
            mine = set(syntax.names(node.target))
            apart = _sums_are_not_read(node.body) and not _carries(
                node.body, _bound(node.body), set()
            )
            return own and apart and _each_for_itself(node.body, mine)
        if isinstance(node, cst.Call) and _only_trains(ctx, node, around[:i], call):
            return True
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            if node.func.value in _FOLDS:
                return True
            if node.func.value == "zip" and not _alike(ctx, node, call):
                return False
            if node.func.value not in ("zip", "list", "tuple"):
                return False
        elif isinstance(node, cst.BaseSmallStatement):
            return False
    return False


def asks_of_any(ctx: Context, call: cst.Call) -> bool:
    """``any(isinstance(m, nn.Conv2d) for m in self.modules())``: a question that is answered alike in any order."""
    around = list(ctx.facts.tree.around(call))[::-1]
    if len(around) < 4 or not isinstance(around[0], cst.CompFor) or around[0].iter is not call:
        return False
    clause, made, asked = around[0], around[1], around[3]
    if not isinstance(made, (cst.GeneratorExp, cst.ListComp)) or not isinstance(asked, cst.Call):
        return False
    if ctx.facts.callee(asked) not in ("builtins.any", "builtins.all") or len(asked.args) != 1:
        return False
    tests = [made.elt, *(one.test for one in clause.ifs)]
    return clause.inner_for_in is None and all(_is_asked_of_all(ctx, one) for one in tests)


def _is_asked_of_all(ctx: Context, test: cst.BaseExpression) -> bool:
    """Whether a test may be asked of every module, and changes none: what class it is of, whether it has something."""
    if isinstance(test, cst.BooleanOperation):
        return _is_asked_of_all(ctx, test.left) and _is_asked_of_all(ctx, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_asked_of_all(ctx, test.expression)
    asks = ("builtins.isinstance", "builtins.hasattr")
    return isinstance(test, cst.Call) and ctx.facts.callee(test) in asks


def _only_trains(
    ctx: Context, node: cst.Call, inner: list[cst.CSTNode], parameters: cst.Call
) -> bool:
    """Whether a function is handed parameters that it names for gradient checkpointing, and reads for nothing else."""
    if len(inner) != 1 or not isinstance(inner[0], cst.Arg):
        return False
    kind = ctx.kind(node.func)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or not hasattr(info, "params"):
        return False
    settled = info.settled
    trained = settled.only_trained if settled is not None else only_trained(ctx.facts, info)
    return any(p in trained and a.value is parameters for p, a in bound_arguments(node, info))


_OF_TYPE = frozenset(
    "dtype device is_cuda is_floating_point get_device new new_zeros new_ones new_empty new_full new_tensor".split()
)


def asks_for_type(ctx: Context, call: cst.Call) -> bool:
    """``next(self.parameters())`` that is asked for its dtype alone: all have one in files that name no half."""
    around = list(ctx.facts.tree.around(call))[::-1]
    iterated = around[1:2] and isinstance(around[0], cst.Arg) and around[1]
    if isinstance(iterated, cst.Call) and ctx.facts.callee(iterated) == "builtins.iter":
        around = around[2:]  # next(iter(self.parameters()))
    taken = around[1] if len(around) > 2 and isinstance(around[0], cst.Arg) else None
    if not isinstance(taken, cst.Call) or not isinstance(taken.func, cst.Name):
        return False
    if taken.func.value != "next" or len(taken.args) != 1 or _makes_half(ctx):
        return False
    above, at = around[2], 2
    while isinstance(above, cst.Attribute) and above.attr.value == "data":  # as much as the tensor
        taken, at = above, at + 1
        above = around[at]
    if isinstance(above, cst.Assign) and len(above.targets) == 1 and ctx.frame is not None:
        name = above.targets[0].target
        if not isinstance(name, cst.Name):
            return False
        body = ctx.frame.info.node.body
        uses = [n for n in ctx.facts.tree.within(body, cst.Name) if n.value == name.value]
        rest = [ctx.facts.tree.around(use)[-1] for use in uses if use is not name]
        return all(map(_is_type, rest, (use for use in uses if use is not name)))
    return _is_type(above, taken)


def _makes_half(ctx: Context) -> bool:
    """Whether a file names a narrow float type other than to ask for it: ``p.dtype == torch.float16``."""
    if not names_half(ctx):
        return False
    tree = ctx.facts.tree
    named = [node for node in ctx.source.index.of_type(cst.Attribute) if node.attr.value in HALF]
    compared = (cst.ComparisonTarget, cst.Comparison)
    return not named or not all(isinstance(tree.parent(node), compared) for node in named)


def _is_type(above: cst.CSTNode, value: cst.CSTNode) -> bool:
    named = isinstance(above, cst.Attribute) and above.value is value
    return named and above.attr.value in _OF_TYPE  # type: ignore[attr-defined]


def _alike(ctx: Context, together: cst.Call, call: cst.Call) -> bool:
    """Whether all that is walked side by side are parameters of modules of one class, in one order therefore."""
    found = set()
    for item in together.args:
        one = item.value
        if not isinstance(one, cst.Call) or not isinstance(one.func, cst.Attribute):
            return False
        if not isinstance(call.func, cst.Attribute) or one.func.attr.value != call.func.attr.value:
            return False
        kind = ctx.kind(one.func.value)
        found.add(kind.cls if isinstance(kind, k.Module) else "")
    return len(found) == 1


def _sums_are_not_read(body: cst.BaseSuite) -> bool:
    """Whether nothing in a loop reads what it adds up, as an offset is that runs along."""
    added: dict[str, int] = {}
    for node in syntax.walk(body):
        target = node.target if isinstance(node, cst.AugAssign) else None
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name):
            name = node.targets[0].target.value
            if name in syntax.names(node.value):
                added[name] = added.get(name, 0) + 2  # read once beside
        if isinstance(target, cst.Name):
            added[target.value] = added.get(target.value, 0) + 1
    read = [n.value for n in syntax.walk(body) if isinstance(n, cst.Name)]
    return all(read.count(name) == times for name, times in added.items())


def _bound(body: cst.BaseSuite) -> set[str]:
    """The names that a loop gives a new value each round: what is added to is not among them."""
    return {
        name
        for one in syntax.walk(body)
        if isinstance(one, cst.Assign)
        for to in one.targets
        for name in _named(to.target)
        if name not in syntax.names(one.value)
    }


def _named(target: cst.BaseExpression) -> set[str]:
    """The names that an assignment binds, none of ``p.data`` or ``p[0]``."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return {name for one in target.elements for name in _named(one.value)}
    return {target.value} if isinstance(target, cst.Name) else set()


def _carries(body: cst.BaseSuite, bound: set[str], fresh: set[str]) -> bool:
    """Whether a round reads what an earlier one has left: a name before it is given its value of this round.

    Args:
      bound: the names that the rounds give values.
      fresh: those that have their value of this round; what the statements give is added.
    """
    for statement in body.body:
        if isinstance(statement, cst.If):
            if set(syntax.names(statement.test)) & (bound - fresh):
                return True
            then, other = set(fresh), set(fresh)
            rest = statement.orelse
            if _carries(statement.body, bound, then):
                return True
            if rest is not None and (isinstance(rest, cst.If) or _carries(rest.body, bound, other)):
                return True  # `elif` is not looked into
            fresh |= then & other
            continue
        for small in getattr(statement, "body", [statement]):
            targets = [to.target for to in small.targets] if isinstance(small, cst.Assign) else []
            given = {name for one in targets for name in _named(one)}
            value = small.value if isinstance(small, cst.Assign) else small
            held = {n for one in targets if not _named(one) for n in syntax.names(one)}
            if (set(syntax.names(value)) | held) & (bound - fresh):
                return True
            fresh |= given
    return False


def _each_for_itself(body: cst.BaseSuite, targets: set[str]) -> bool:
    """Whether statements write to the loop's own names, or add something up, and do nothing else."""
    for statement in body.body:
        if isinstance(statement, cst.If):
            other = statement.orelse
            parts = [statement.body, *([other.body] if other is not None else [])]
            if isinstance(other, cst.If) or not all(_each_for_itself(p, targets) for p in parts):
                return False
            continue
        if isinstance(statement, cst.BaseCompoundStatement):
            return False
        for small in getattr(statement, "body", [statement]):
            if not _for_itself(small, targets):
                return False
    return True


def _for_itself(small: cst.CSTNode, targets: set[str]) -> bool:
    if isinstance(small, (cst.Pass, cst.Continue)):
        return True
    if isinstance(small, cst.Expr):
        return _root(small.value) in targets
    if isinstance(small, cst.AugAssign):
        return _root(small.target) in targets or _adds(small.target, small.operator, small.value)
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
        if isinstance(target, cst.Tuple) and all(
            isinstance(e.value, cst.Name) for e in target.elements
        ):
            names = set(syntax.names(target))
            if names & set(syntax.names(value)) or not targets & set(syntax.names(value)):
                return False
            targets |= names  # of this round alone: `old, new = p.data, q.data`
            return True
        if not isinstance(target, cst.Name):
            return _root(target) in targets
        read = syntax.names(value)
        if target.value not in read:  # a name of this round alone
            targets.add(target.value)
            return bool(set(read) & targets)
        return (
            isinstance(value, cst.BinaryOperation)
            and isinstance(value.left, cst.Name)
            and value.left.value == target.value
            and _adds(target, value.operator, value.right)
        )
    return False


def _adds(target: cst.CSTNode, operator: cst.CSTNode, value: cst.CSTNode) -> bool:
    """Whether a number or tensor, and no list, is added to a name that it does not read."""
    return (
        isinstance(target, cst.Name)
        and isinstance(operator, (cst.Add, cst.AddAssign))
        and not isinstance(value, (cst.List, cst.Tuple, cst.ListComp))
        and target.value not in syntax.names(value)
    )


def _root(node: cst.CSTNode) -> str:
    """The name at the root of ``p.data.mul_(m).add_(q)``."""
    while isinstance(node, (cst.Attribute, cst.Call, cst.Subscript)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else ""

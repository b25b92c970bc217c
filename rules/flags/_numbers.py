"""Numbers taken out of tensors that are only computed with, so that a 0-d array does instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import libcst as cst

from migrator.infer.kinds import Kind, Tensor, scalar_type
from rules.below import children

_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_NUMBERS = (cst.Integer, cst.Float)
_TYPES = ("int", "float", "number")
_MOMENTUM = {"torch.nn.functional.batch_norm": 6}
"""Functions that compute with their ``momentum``, and its place."""
_SCALING = frozenset(
    f"Tensor.{name}{place}" for name in ("add", "sub", "mul", "div", "lerp") for place in ("", "_")
)
"""Methods that compute with a number, ``running.mul_(1 - factor).add_(mean, alpha=factor)``."""
_BOUNDS = {"torch.clamp": 1, "torch.clip": 1, "Tensor.clamp": 0, "Tensor.clip": 0}
"""Functions that compare a tensor with two numbers, and the place of the first."""


def computed_with(
    node: cst.Call,
    parents: Sequence[cst.CSTNode],
    is_tensor: Callable[[cst.BaseExpression], bool],
    callee: Callable[[cst.Call], str | None],
    is_number: Callable[[cst.BaseExpression], bool] = lambda node: isinstance(node, _NUMBERS),
    bounds: bool = False,
    is_factor: Callable[[cst.BaseExpression], bool] | None = None,
    seen: frozenset[str] = frozenset(),
) -> bool:
    """Whether ``float(x)`` takes part in arithmetic and nothing else: ``1.0 / float(self.num_batches_tracked)``.

    The result meets a tensor, bounds one, is the momentum of a batch norm, or the value of a local name of which the
    same holds wherever it is read; or it is put into a list that nobody reads.

    Args:
      parents: the nodes around ``node``, the file first.
      is_factor: which numbers it may be multiplied by, if not by all that it may meet.
      seen: local names whose reads are being looked at.
    """
    inner: cst.CSTNode = node
    above = list(parents)
    while above:
        outer = above[-1]
        if isinstance(outer, cst.Arg) and len(above) > 1:
            if bounds and _is_bound(outer, above[-2], is_tensor, callee):
                return True
            sides = extremes(above[-2], callee)
            others = [one for one in sides or () if one is not outer.value]
            if len(others) != 1 or not (is_tensor(others[0]) or isinstance(others[0], _NUMBERS)):
                break
            above.pop()
        elif not isinstance(outer, cst.BinaryOperation):
            break
        else:
            other = outer.right if outer.left is inner else outer.left
            if not isinstance(outer.operator, _ARITHMETIC):
                return False
            if is_tensor(other):
                return True
            times = isinstance(outer.operator, cst.Multiply) and is_factor is not None
            if not (is_factor if times and is_factor is not None else is_number)(other):
                return False
        inner = above.pop()
    if above and isinstance(above[-1], cst.Arg) and _into_unread(above):
        return True
    if not above or not isinstance(assign := above[-1], cst.Assign) or len(assign.targets) != 1:
        return False
    target = assign.targets[0].target
    functions = [one for one in above if isinstance(one, cst.FunctionDef)]
    if not isinstance(target, cst.Name) or not functions:
        return False
    if _read_for_arithmetic(target.value, functions[0].body, is_tensor, callee):
        return True
    if target.value in seen:
        return False

    def bounded(call: cst.Call, around: Sequence[cst.CSTNode]) -> bool:
        """``x / max(n, 1)``."""
        names = seen | {target.value}
        return computed_with(
            call, around, is_tensor, callee, is_number, bounds, is_factor, frozenset(names)
        )

    around = parents[: list(parents).index(functions[0]) + 1]
    return _read_for_arithmetic(
        target.value,
        functions[0].body,
        is_tensor,
        callee,
        _limited(target.value, around, callee, bounded),
    )


def _limited(
    name: str,
    around: Sequence[cst.CSTNode],
    callee: Callable[[cst.Call], str | None],
    bounded: Callable[[cst.Call, Sequence[cst.CSTNode]], bool],
) -> set[int]:
    """The reads of a name that a function binds once in ``max(n, 1)``, whose result is only computed with."""
    function = around[-1]
    assert isinstance(function, cst.FunctionDef)
    found: set[int] = set()
    if _taken_once(name, function, callee) is None:
        return found
    pending = [(function.body, list(around))]
    while pending:
        node, above = pending.pop()
        sides = extremes(node, callee)
        for one, other in (sides, sides[::-1]) if sides is not None else ():
            read = isinstance(one, cst.Name) and one.value == name
            if read and isinstance(other, cst.Integer) and bounded(node, above):  # type: ignore[arg-type]
                found.add(id(one))
        pending += [(child, [*above, node]) for child in children(node)]  # type: ignore[misc]
    return found


def _taken_once(
    name: str, function: cst.FunctionDef, callee: Callable[[cst.Call], str | None]
) -> cst.Call | None:
    """The call that takes a number out of a tensor of integers, where a local name is bound to it and nothing else."""
    bindings = 0
    value: cst.BaseExpression | None = None
    for node in _below(function):
        if isinstance(node, (cst.Param, cst.AsName)):
            target: cst.CSTNode = node.name
        elif isinstance(node, cst.NameItem):
            target = node
        elif isinstance(node, _BINDING):
            target = node.target
        else:
            if isinstance(node, cst.Assign) and len(node.targets) == 1:
                one = node.targets[0].target
                if isinstance(one, cst.Name) and one.value == name:
                    value = node.value
            continue
        bindings += _binds(target, name)
    if bindings != 1 or not isinstance(value, cst.Call):
        return None
    return value if taken_from(value, callee) is not None else None


def _binds(target: cst.CSTNode, name: str) -> bool:
    """Whether a target binds a name: ``x[i] = …`` binds neither x nor i."""
    if isinstance(target, (cst.Subscript, cst.Attribute)):
        return False
    if isinstance(target, cst.Name):
        return target.value == name
    return any(_binds(child, name) for child in children(target))


_BINDING = (
    cst.AssignTarget,
    cst.AnnAssign,
    cst.AugAssign,
    cst.CompFor,
    cst.For,
    cst.NamedExpr,
)


def _is_bound(
    arg: cst.Arg,
    call: cst.CSTNode,
    is_tensor: Callable[[cst.BaseExpression], bool],
    callee: Callable[[cst.Call], str | None],
) -> bool:
    """Whether an argument is a bound of ``x.clamp(min=…)``: a number that is compared with the elements of a tensor."""
    name = callee(call) if isinstance(call, cst.Call) else None
    place = _BOUNDS.get(name or "")
    if place is None or not isinstance(call, cst.Call) or any(one.star for one in call.args):
        return False
    x: cst.BaseExpression = call.func.value if isinstance(call.func, cst.Attribute) else call.func
    if place:  # torch.clamp(x, …)
        x = call.args[0].value
    if not is_tensor(x) or x is arg.value:
        return False
    if arg.keyword is not None:
        return arg.keyword.value in ("min", "max")
    return call.args.index(arg) >= place


def taken_from(
    node: cst.CSTNode, callee: Callable[[cst.Call], str | None]
) -> cst.BaseExpression | None:
    """``x`` of ``int(x)``, ``float(x)`` and ``x.item()``."""
    if not isinstance(node, cst.Call):
        return None
    name = callee(node)
    if name in ("builtins.float", "builtins.int") and len(node.args) == 1:
        return None if node.args[0].keyword or node.args[0].star else node.args[0].value
    if name == "Tensor.item" and isinstance(node.func, cst.Attribute):
        return node.func.value
    return None


def is_whole(
    node: cst.BaseExpression,
    kind: Callable[[cst.CSTNode], Kind],
    callee: Callable[[cst.Call], str | None],
) -> bool:
    """Whether an expression is an integer: written down, a tensor of some, or a number that is taken out of one."""
    x = taken_from(node, callee)
    if x is None:
        return isinstance(node, cst.Integer) or _dtype(kind(node)) == "int"
    name = callee(node)  # type: ignore[arg-type]
    return name == "builtins.int" or (name == "Tensor.item" and _dtype(kind(x)) == "int")


def only_computed_with(
    node: cst.Call,
    parents: Sequence[cst.CSTNode],
    kind: Callable[[cst.CSTNode], Kind],
    callee: Callable[[cst.Call], str | None],
) -> bool:
    """Whether a number that is taken out of a tensor may as well stay an array."""
    x = taken_from(node, callee)
    if x is None or not isinstance(kind(x), Tensor):
        return False
    whole, dtype = is_whole(node, kind, callee), _dtype(kind(x))
    if not whole and dtype != "int" and (dtype == "bool" or names_half(parents[0])):
        return False
    meets = _meeting(whole, kind)
    if whole or dtype == "int":  # Python's integers do not overflow, and widen no other
        return computed_with(node, parents, meets, callee, _numbers(kind), is_factor=_small(kind))
    return computed_with(node, parents, meets, callee, _numbers(kind), bounds=True)


def chosen(
    node: cst.Call,
    parents: Sequence[cst.CSTNode],
    kind: Callable[[cst.CSTNode], Kind],
    callee: Callable[[cst.Call], str | None],
) -> bool:
    """Whether ``max(x.sum(), 1)``, of tensors without axes and numbers, is only computed with: an array does as well."""
    sides = extremes(node, callee)
    if sides is None:
        return False
    sides = bound_once(sides, parents, callee)
    arrays = [one for one in sides if not isinstance(one, _NUMBERS)]
    for one in arrays:
        x = taken_from(one, callee)
        known = kind(one if x is None else x)
        if not isinstance(known, Tensor) or (x is None and known.rank != 0):
            return False  # torch gives a number or a tensor with axes, by their values
    whole = all(is_whole(one, kind, callee) for one in sides)
    if not arrays or (not whole and names_half(parents[0])):
        return False
    return computed_with(node, parents, _meeting(whole, kind), callee)


def bound_once(
    sides: tuple[cst.BaseExpression, cst.BaseExpression],
    parents: Sequence[cst.CSTNode],
    callee: Callable[[cst.Call], str | None],
) -> tuple[cst.BaseExpression, cst.BaseExpression]:
    """The sides of ``max(n, 1)``, a local name as the call that takes its number out of a tensor."""
    function = next((one for one in parents if isinstance(one, cst.FunctionDef)), None)
    names = [one.value for one in sides if isinstance(one, cst.Name)]
    numbers = [one for one in sides if isinstance(one, cst.Integer)]
    taken = _taken_once(names[0], function, callee) if function and names and numbers else None
    if taken is None:
        return sides
    left, right = (taken if isinstance(one, cst.Name) else one for one in sides)
    return left, right


def _meeting(
    whole: bool, kind: Callable[[cst.CSTNode], Kind]
) -> Callable[[cst.BaseExpression], bool]:
    """Which tensors a number may meet: an array of integers would widen one of shorter integers, a number does not."""

    def meets(other: cst.BaseExpression) -> bool:
        return isinstance(kind(other), Tensor) and not (whole and _dtype(kind(other)) == "int")

    return meets


def _numbers(kind: Callable[[cst.CSTNode], Kind]) -> Callable[[cst.BaseExpression], bool]:
    """Which expressions are numbers of Python, which JAX knows while it traces."""
    return lambda node: isinstance(node, _NUMBERS) or scalar_type(kind(node)) in _TYPES


def _small(kind: Callable[[cst.CSTNode], Kind]) -> Callable[[cst.BaseExpression], bool]:
    """Numbers whose product with one of 32 bits surely is of no more."""
    return lambda node: isinstance(node, _NUMBERS) or scalar_type(kind(node)) == "float"


def _dtype(kind: Kind) -> str | None:
    return kind.dtype if isinstance(kind, Tensor) else None


def extremes(
    node: cst.CSTNode, callee: Callable[[cst.Call], str | None]
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The sides of ``max(a, b)`` and ``min(a, b)``."""
    if not isinstance(node, cst.Call) or callee(node) not in ("builtins.max", "builtins.min"):
        return None
    if len(node.args) != 2 or any(a.star or a.keyword is not None for a in node.args):
        return None
    return node.args[0].value, node.args[1].value


def counts_up(
    node: cst.Call,
    callee: Callable[[cst.Call], str | None],
    is_integer: Callable[[cst.BaseExpression], bool],
) -> list[cst.Arg] | None:
    """The bounds in ``torch.arange(1, x.dim()).tolist()``, which are known: it is a list of Python's own; None for others."""
    made = node.func.value if isinstance(node.func, cst.Attribute) else None
    if callee(node) != "Tensor.tolist" or node.args or not isinstance(made, cst.Call):
        return None
    bounds = [a for a in made.args if a.keyword is None]
    if callee(made) != "torch.arange" or not 0 < len(bounds) < 4 or any(a.star for a in made.args):
        return None
    if any(a.keyword is not None and a.keyword.value != "device" for a in made.args):
        return None
    return bounds if all(is_integer(a.value) for a in bounds) else None


_SHIFTS = {"torch.roll": 1, "Tensor.roll": 0}
"""Functions that take a shift, and its place."""


def places(
    node: cst.BaseExpression,
    parents: Sequence[cst.CSTNode],
    is_tensor: Callable[[cst.BaseExpression], bool],
    callee: Callable[[cst.Call], str | None],
    wide: bool = True,
) -> bool:
    """Whether ``int(i)`` says where: ``x[:, int(i) + 1]``, ``torch.roll(x, -int(i), -1)``; an array does as well there.

    So does a local name that stands for it, and is read in such places alone.

    Args:
      parents: the nodes around ``node``, the file first.
      wide: whether ``int(i) + 1`` is a number of the array's dtype too: one of eight bits may not have it.
    """
    inner: cst.CSTNode = node
    above = list(parents)
    if len(above) > 1 and isinstance(above[-1], cst.Arg) and _makes_whole(above[-2], callee):
        inner, above = above[-2], above[:-2]  # ``int(i.item())``
    if above and isinstance(above[-1], cst.Assign):
        return _told_by_name(inner, above, is_tensor, callee, wide)
    while above and isinstance(outer := above[-1], (cst.UnaryOperation, cst.BinaryOperation)):
        if not wide:
            return False
        if isinstance(outer, cst.BinaryOperation):
            other = outer.right if outer.left is inner else outer.left
            if not isinstance(outer.operator, _ARITHMETIC[:3]) or not isinstance(
                other, cst.Integer
            ):
                return False
        elif not isinstance(outer.operator, cst.Minus):
            return False
        inner = above.pop()
    if len(above) > 2 and isinstance(above[-1], cst.Index):
        item = above[-3]
        return isinstance(item, cst.Subscript) and is_tensor(item.value) and _is_basic(item, inner)
    call = above[-2] if len(above) > 1 and isinstance(above[-1], cst.Arg) else None
    if not isinstance(call, cst.Call) or any(item.star for item in call.args):
        return False
    place = _SHIFTS.get(callee(call) or "")
    if place is None:
        return False
    keyword = above[-1].keyword  # type: ignore[attr-defined]
    if keyword is not None:
        return bool(keyword.value == "shifts")
    return place < len(call.args) and call.args[place] is above[-1]


def _makes_whole(call: cst.CSTNode, callee: Callable[[cst.Call], str | None]) -> bool:
    return isinstance(call, cst.Call) and callee(call) == "builtins.int" and len(call.args) == 1


def _told_by_name(
    node: cst.CSTNode,
    above: Sequence[cst.CSTNode],
    is_tensor: Callable[[cst.BaseExpression], bool],
    callee: Callable[[cst.Call], str | None],
    wide: bool,
) -> bool:
    """``i = n.item()`` of a name that is bound once, with ``x[i]`` and the like wherever it is read."""
    target = above[-1].targets[0].target  # type: ignore[attr-defined]
    functions = [i for i, one in enumerate(above) if isinstance(one, cst.FunctionDef)]
    if not isinstance(target, cst.Name) or not functions:
        return False
    function = above[functions[-1]]
    if _taken_once(target.value, function, callee) is not node:  # type: ignore[arg-type]
        return False
    reads = 0
    pending: list[tuple[cst.CSTNode, list[cst.CSTNode]]] = [
        (function.body, list(above[: functions[-1] + 1]))  # type: ignore[attr-defined]
    ]
    while pending:
        one, around = pending.pop()
        if isinstance(one, cst.Name) and one.value == target.value and one is not target:
            if isinstance(around[-1], cst.Attribute) and around[-1].attr is one:
                continue
            if isinstance(around[-1], cst.Arg) and around[-1].keyword is one:
                continue
            reads += 1
            if not places(one, around, is_tensor, callee, wide):
                return False
        pending += [(child, [*around, one]) for child in children(one)]
    return reads > 0


def _is_basic(item: cst.Subscript, number: cst.CSTNode) -> bool:
    """Whether the rest of an index is slices and numbers that are written down."""
    for element in item.slice:
        index = element.slice
        if isinstance(index, cst.Index) and index.value is not number:
            value = index.value
            if isinstance(value, cst.UnaryOperation):
                value = value.expression
            named = isinstance(value, cst.Name) and value.value == "None"
            if not named and not isinstance(value, (cst.Integer, cst.Ellipsis)):
                return False
    return True


@lru_cache(maxsize=1)  # it is asked for each number of one file after another
def names_half(file: cst.CSTNode) -> bool:
    """Whether a file names a float type of fewer digits than float32: a Python number would not widen it, an array does."""
    return any(isinstance(one, cst.Name) and one.value in HALF for one in _below(file))


HALF = frozenset("half bfloat16 float16 HalfTensor BFloat16Tensor".split())


def _into_unread(above: Sequence[cst.CSTNode]) -> bool:
    """``log.append(1.0 - dice.item())`` with a local ``log = []`` of which nothing else is ever asked."""
    call = above[-2] if len(above) > 1 else None
    func = call.func if isinstance(call, cst.Call) else None
    if not isinstance(func, cst.Attribute) or func.attr.value != "append":
        return False
    functions = [one for one in above if isinstance(one, cst.FunctionDef)]
    if not isinstance(func.value, cst.Name) or not functions:
        return False
    name, body = func.value.value, functions[-1].body
    allowed: set[int] = set()
    found: set[int] = set()
    made = False
    for node in _below(body):
        if isinstance(node, cst.Name) and node.value == name:
            found.add(id(node))
        elif isinstance(node, cst.Assign) and isinstance(node.value, cst.List):
            if not node.value.elements and isinstance(node.targets[0].target, cst.Name):
                allowed.add(id(node.targets[0].target))
                made = made or node.targets[0].target.value == name
        elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
            inner = node.value.func
            if isinstance(inner, cst.Attribute) and inner.attr.value == "append":
                allowed.add(id(inner.value))
    return made and found <= allowed


def _read_for_arithmetic(
    name: str,
    body: cst.CSTNode,
    is_tensor: Callable[[cst.BaseExpression], bool],
    callee: Callable[[cst.Call], str | None],
    allowed: set[int] | None = None,
) -> bool:
    """Whether a local name is computed with wherever it is read, but for some reads that are looked at elsewhere."""
    allowed = set(allowed or ())
    found: set[int] = set()
    for node in _below(body):
        if isinstance(node, cst.Name) and node.value == name:
            found.add(id(node))
        elif isinstance(node, cst.AssignTarget):
            allowed.add(id(node.target))
        elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _ARITHMETIC):
            allowed.update(
                one
                for side, other in ((node.left, node.right), (node.right, node.left))
                if is_tensor(other)
                for one in _of_numbers(side)
            )
        elif isinstance(node, cst.Call) and (callee(node) or "") in _SCALING:
            if isinstance(node.func, cst.Attribute) and is_tensor(node.func.value):
                plain = (item for item in node.args if not item.star)
                allowed.update(one for item in plain for one in _of_numbers(item.value))
        elif isinstance(node, cst.Call) and (place := _MOMENTUM.get(callee(node) or "")):
            allowed.update(
                id(item.value)
                for position, item in enumerate(node.args)
                if not item.star
                and (item.keyword.value == "momentum" if item.keyword else position == place)
            )
    return found <= allowed


def _of_numbers(side: cst.BaseExpression) -> Iterator[int]:
    """A name, and that in ``1 - factor``: what is computed of numbers that are written down and one name."""
    while isinstance(side, cst.BinaryOperation) and isinstance(side.operator, _ARITHMETIC):
        if isinstance(side.left, _NUMBERS):
            side = side.right
        elif isinstance(side.right, _NUMBERS):
            side = side.left
        else:
            return
    yield id(side)


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    pending: list[cst.CSTNode] = [node]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(children(one))

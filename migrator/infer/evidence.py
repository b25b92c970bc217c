"""What the uses of an unannotated parameter say about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.arrays import is_of_numpy
from migrator.infer.bounds import ORDERS, bounded
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.sizes import SHAPING, bounds, counts, place_of_called, sizes
from migrator.infer.symbols import takes_nothing, tensor_attribute, tensor_method, tensor_only
from migrator.tree import Tree

_CONTAINER = frozenset("items keys values get append pop extend insert update setdefault".split())
_SHAPED = frozenset("shape size dim ndim device dtype".split())


_LAYERS = frozenset(
    "Linear Conv1d Conv2d Conv3d Embedding BatchNorm1d BatchNorm2d LSTM GRU".split()
)
_SIZED = _LAYERS | frozenset("zeros ones empty randn rand Tensor FloatTensor".split())
"""Calls whose positional arguments are sizes."""
_TENSOR_CALLS = frozenset("size view numel dim flatten transpose repeat permute".split())
_REDUCING = frozenset("mean sum prod any all argmax argmin".split())
"""Methods of arrays too, whose second argument is another one there."""
_NUMPY = ("np", "numpy")
_OPTIONS = frozenset(
    "size output_size dim dims kernel_size stride padding dilation groups mode align_corners reduction eps dtype device "
    "keepdim descending stable unbiased rounding_mode approximate padding_mode is_causal indexing num_classes "
    "ignore_index".split()
)
"""Arguments of torch's functions that are never tensors."""
_RESIZING = frozenset(
    "interpolate upsample adaptive_avg_pool2d adaptive_max_pool2d avg_pool2d max_pool2d".split()
)
"""Functions whose second argument is a size."""
_OF_LAYERS = frozenset({"weight", "bias"})
ASKED = "asked"
"""The use of a name in ``isinstance``: it may be of one kind or another."""
_TELLING = (
    cst.Attribute,
    cst.Subscript,
    cst.Slice,
    cst.For,
    cst.CompFor,
    cst.Call,
    cst.BinaryOperation,
    cst.Assign,
    cst.If,
    cst.While,
    cst.IfExp,
    cst.Assert,
)


def other_receiver(node: cst.Call) -> cst.BaseExpression | None:
    """What a method is called of with an argument that the tensors' method of that name does not take."""
    func = node.func
    if not isinstance(func, cst.Attribute) or not takes_nothing(func.attr.value):
        return None
    return None if all(item.star for item in node.args) else func.value


def tensor_call(node: cst.Call, receiver: k.Kind, second: k.Kind = k.UNKNOWN) -> bool:
    """Whether a method call on something unknown can only be torch's: ``y.size(0)``, ``y.max(dim=1)``, ``y.sum(1, True)``.

    ``second`` is what the second positional argument is."""
    assert isinstance(node.func, cst.Attribute)
    if not isinstance(receiver, k.Unknown):
        return False
    name = node.func.attr.value
    if not tensor_attribute(name):
        return False
    if permutes(node):
        return False
    if any(a.keyword is not None and a.keyword.value in ("dim", "keepdim") for a in node.args):
        return True
    if keeps(node) is not None and k.scalar_type(second) == "bool":
        return True
    return name in _TENSOR_CALLS and (bool(node.args) or name in ("size", "numel", "dim"))


def permutes(node: cst.Call) -> bool:
    """``image.transpose(2, 0, 1)``, ``image.transpose((2, 0, 1))``: numpy's, as torch's takes two axes and raises here."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "transpose":
        return False
    return len(node.args) != 2 and not any(item.star for item in node.args)


def keeps(node: cst.Call) -> cst.BaseExpression | None:
    """The second argument of a reduction by position: for torch whether axes are kept, else a dtype or an output."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _REDUCING:
        return None
    if len(node.args) < 2 or any(item.star or item.keyword is not None for item in node.args[:2]):
        return None
    return node.args[1].value


def asked(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a test asks the truth of: ``a`` and ``b`` of ``not a and b``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return asked(test.expression)
    if isinstance(test, cst.BooleanOperation):
        return [*asked(test.left), *asked(test.right)]
    return [test]


def _compared(test: cst.BaseExpression) -> cst.BaseExpression:
    """``step`` of ``step == 0``, ``augment`` of ``augment == True``: what a branch compares with a word or a whole number."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return test
    only = test.comparisons[0]
    literal = isinstance(only.comparator, (cst.Integer, cst.SimpleString)) or (
        isinstance(only.comparator, cst.Name) and only.comparator.value in ("True", "False")
    )
    plain = isinstance(only.operator, (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot))
    return test.left if literal and plain else test


def gather(tree: Tree, function: cst.FunctionDef) -> dict[str, set[str]]:
    """Parameter or local name → how it is used: "tensor", "shaped", "iterated", "mapping", "called"…"""
    found: dict[str, set[str]] = {}
    called: set[cst.CSTNode] = set()
    others: set[cst.CSTNode] = set()  # methods that take an argument, which the tensors' do not
    copies: list[cst.Assign] = []
    numbered = _numbered(tree, function)
    ends = dict(_converted(tree, function))
    host = is_of_numpy(tree, function)

    def note(node: cst.CSTNode, use: str) -> None:
        if type(node) is cst.Name and not (
            node.value in ends and tree.place(node) > ends[node.value]
        ):
            found.setdefault(node.value, set()).add(use)

    def note_axis(node: cst.BaseExpression) -> None:
        """``d`` of ``x.max(d)[0]`` and ``m, _ = torch.max(x, d)``: of two tensors it would be one."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return
        func = node.func
        if func.attr.value in ("max", "min"):
            if isinstance(func.value, cst.Name) and func.value.value in ("self", *_NUMPY):
                return
            place = int(_is_torch(func.value))
            given = [item.value for item in node.args if item.keyword is None and not item.star]
            if len(given) in (place + 1, place + 2):
                note(given[place], "int")

    def look(node: Any) -> None:
        kind = type(node)
        if kind is cst.Attribute:
            name = node.attr.value
            if name in ("values", "indices") and node not in called:
                note_axis(node.value)
            if name in _OF_LAYERS:
                note(node.value, "layer")
            elif name == "__class__":
                note(node.value, "classed")
            if node in others or (node not in called and tensor_method(name)):
                note(
                    node.value, "attribute"
                )  # no tensor's, or a method of tensors that nobody calls
            elif tensor_only(name):
                note(node.value, "tensor")
                note(node.value, "torch")
            elif name in _CONTAINER:
                note(node.value, "container")
            elif name in _SHAPED:
                note(node.value, "shaped")
            elif not tensor_attribute(name):
                note(node.value, "attribute")
        elif kind is cst.Subscript:
            index = node.slice[0].slice
            if len(node.slice) > 1:
                note(node.value, "indexed" if host else "tensor")
            elif isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                note(node.value, "container")
            elif isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis):
                note(node.value, "indexed" if host else "tensor")
            else:
                note(node.value, "indexed")
            if _is_first_or_second(node):
                note_axis(node.value)
        elif kind is cst.Slice:
            for part in (node.lower, node.upper, node.step):
                inner = part.expression if isinstance(part, cst.UnaryOperation) else part
                if inner is not None:
                    note(inner, "int")
        elif kind is cst.For:
            note(node.iter, "iterated")
            if isinstance(node.iter, cst.Call):
                for item in node.iter.args:
                    note(item.value, "iterated")
        elif kind is cst.CompFor:
            note(node.iter, "iterated")
        elif kind is cst.Call:
            note(node.func, "called")
            called.add(node.func)
            if (index := place_of_called(node.func)) is not None:
                note(index, "option")
            if other_receiver(node) is not None:
                others.add(node.func)
            maker = node.func.attr.value if type(node.func) is cst.Attribute else ""
            if maker and type(node.func.value) is cst.Name and node.func.value.value in _NUMPY:
                for item in node.args[:1]:
                    note(item.value, "numpy")
            if maker in _SIZED:
                by_place = [item for item in node.args if item.keyword is None]
                if len(by_place) > 1 or maker in _LAYERS:  # a single one may be the whole shape
                    for item in by_place:
                        if not item.star:
                            note(item.value, "int")
            if _name_of(node.func) == "from_numpy":
                for item in node.args[:1]:
                    note(item.value, "ndarray")  # it takes nothing else
            if maker in SHAPING:
                for item in sizes(node):
                    note(item.value, "int")
            for item in bounds(node, maker):
                for one in counts(item.value):
                    note(one, "int")
            if isinstance(node.func, cst.Name) and node.func.value == "range":
                for item in node.args:
                    note(item.value, "int")
            if isinstance(node.func, cst.Name) and node.func.value in ("len", "isinstance", "list"):
                if node.args:
                    note(node.args[0].value, "iterated")
                    if node.func.value == "isinstance":
                        note(node.args[0].value, ASKED)
            if isinstance(node.func, cst.Name) and node.args:
                if node.func.value == "type" and len(node.args) == 1:
                    note(node.args[0].value, "classed")
                elif node.func.value == "hasattr" and _asks_for(node, _OF_LAYERS):
                    note(node.args[0].value, "classed")
                    note(node.args[0].value, "layer")
            for place, item in enumerate(node.args):
                if item.star:
                    note(item.value, "iterated")
                elif _is_option(node, place):
                    for one in _either(item.value):
                        note(one, "option")
        elif kind is cst.BinaryOperation:
            note(node.left, "arithmetic")
            note(node.right, "arithmetic")
        elif kind is cst.Assign and isinstance(node.targets[0].target, cst.Tuple):
            note(node.value, "unpacked")
            if len(node.targets[0].target.elements) == 2:
                note_axis(node.value)
        elif kind is cst.Assign and type(node.targets[0].target) is cst.Name:
            copies.append(node)
        elif kind is cst.Assert:
            for part in bounded(node):
                note(part, "bounded")
        elif kind is cst.If or kind is cst.While or kind is cst.IfExp:
            for part in bounded(node) if kind is cst.If else ():
                note(part, "bounded")
            for part in asked(node.test):
                note(_compared(part), "tested")
                for one in _counted(part, numbered):
                    note(one, "counted")

    inner = tree.within(function.body, cst.Param)  # of functions in it: they are run elsewhere
    apart = {id(node) for param in inner for node in tree.below(param)}
    for node in tree.within(function.body, *_TELLING):
        if id(node) not in apart:
            look(node)
    for copy in reversed(copies):  # ``out = default(x) if size is None else size``
        if "option" in found.get(copy.targets[0].target.value, ()):  # type: ignore[attr-defined]
            for one in _either(copy.value):
                note(one, "option")
    for name in [n for n, uses in found.items() if "ndarray" in uses]:
        if not _stays_itself(tree, function, name):
            found[name].discard("ndarray")  # something else may have been handed over
    return found


def _stays_itself(tree: Tree, function: cst.FunctionDef, name: str) -> bool:
    """Whether a function gives a parameter no other values than parts and the like of itself: ``w = w[i].flatten()``."""
    for one in tree.within(function, cst.For, cst.AnnAssign, cst.NamedExpr, cst.CompFor):
        if any(isinstance(n, cst.Name) and n.value == name for n in tree.below(one.target)):
            return False
    for assign in tree.within(function, cst.Assign):
        for target in assign.targets:
            if not isinstance(target.target, cst.Name):
                if isinstance(target.target, (cst.Tuple, cst.List)):
                    if any(isinstance(n, cst.Name) and n.value == name for n in tree.below(target)):
                        return False
                continue
            value = assign.value
            if target.target.value != name:
                continue
            if isinstance(value, cst.Call) and _name_of(value.func) == "from_numpy":
                continue
            while isinstance(value, (cst.Call, cst.Attribute, cst.Subscript)):
                value = value.func if isinstance(value, cst.Call) else value.value
            if not isinstance(value, cst.Name) or value.value != name:
                return False
    return True


def _numbered(tree: Tree, function: cst.FunctionDef) -> tuple[set[str], set[str]]:
    """The names that a function's loops count by, and its parameters that are None or a whole number by default."""
    params = function.params
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    numbers = {
        one.name.value
        for one in every
        if isinstance(one.default, cst.Integer)
        or (isinstance(one.default, cst.Name) and one.default.value == "None")
    }
    counters: set[str] = set()
    for loop in tree.within(function.body, cst.For) if numbers else ():
        target = loop.target
        name = _name_of(loop.iter.func) if isinstance(loop.iter, cst.Call) else ""
        if name == "enumerate" and isinstance(target, cst.Tuple) and target.elements:
            target = target.elements[0].value
        elif name != "range":
            continue
        if isinstance(target, cst.Name):
            counters.add(target.value)
    bound: dict[str, list[cst.CSTNode]] = {}
    for assign in tree.within(function.body, cst.Assign) if counters else ():
        for to in assign.targets:
            for name in syntax.names(to.target):
                bound.setdefault(name, []).append(assign.value)
    others = tree.within(function.body, cst.AugAssign, cst.For, cst.NamedExpr) if bound else ()
    changed = {name for one in others for name in syntax.names(one.target)}
    for name, values in bound.items():  # layer = i + 1
        if name not in changed and all(_is_count(value, counters) for value in values):
            counters.add(name)
    return counters, numbers - counters


def _is_count(node: cst.CSTNode, counters: set[str]) -> bool:
    """Whether an expression is what a loop counts by, or so many more or fewer: ``i + 1``."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.Add, cst.Subtract)):
        sides = [node.left, node.right]
        count, plain = sides if isinstance(node.right, cst.Integer) else sides[::-1]
        return isinstance(plain, cst.Integer) and _is_count(count, counters)
    return isinstance(node, cst.Name) and node.value in counters


def _counted(
    test: cst.BaseExpression, numbered: tuple[set[str], set[str]]
) -> Iterator[cst.BaseExpression]:
    """``layer`` of ``if i == layer:`` in ``for i, block in enumerate(blocks):``, which is None or a number by default."""
    counters, numbers = numbered
    if not counters or not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return
    only = test.comparisons[0]
    sides = [test.left, only.comparator]
    if isinstance(only.operator, (cst.Equal, cst.NotEqual, *ORDERS)):
        for one, other in (sides, sides[::-1]):
            if isinstance(other, cst.Name) and other.value in numbers:
                if _is_count(one, counters):
                    yield other


_CONVERTING = frozenset("as_tensor tensor from_numpy asarray array list tuple int float".split())


def _converted(tree: Tree, function: cst.FunctionDef) -> Iterator[tuple[str, int]]:
    """Parameters that a function makes something else of, ``f = torch.as_tensor(f)``, and where: that is used from then on."""
    for line in reversed(function.body.body):  # the first of several counts
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Call):
            continue
        target, call = small.targets[0].target, small.value
        given = call.args[0].value if call.args else None
        if isinstance(target, cst.Name) and isinstance(given, cst.Name):
            if target.value == given.value and _name_of(call.func) in _CONVERTING:
                yield target.value, tree.place(given)


def _asks_for(call: cst.Call, names: frozenset[str]) -> bool:
    """Whether ``hasattr`` asks for one of some names."""
    told = call.args[1].value if len(call.args) == 2 else None
    return isinstance(told, cst.SimpleString) and told.evaluated_value in names


def _is_torch(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value in ("torch", "th")


def _is_first_or_second(node: cst.Subscript) -> bool:
    index = node.slice[0].slice
    return (
        len(node.slice) == 1
        and isinstance(index, cst.Index)
        and isinstance(index.value, cst.Integer)
        and index.value.value in ("0", "1")
    )


def _is_option(call: cst.Call, place: int) -> bool:
    """Whether an argument is a size, a number of an axis or the like."""
    keyword = call.args[place].keyword
    if keyword is None and _name_of(call.func) == "split" and isinstance(call.func, cst.Attribute):
        return place == int(_is_torch(call.func.value))
    if keyword is None:
        return place == 1 and _name_of(call.func) in _RESIZING
    return keyword.value in _OPTIONS


def _either(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """What an expression may be: both sides of ``a or b`` and of ``a if c else b``."""
    if type(value) is cst.IfExp:
        return value.body, value.orelse
    return (value.left, value.right) if type(value) is cst.BooleanOperation else (value,)


def _name_of(func: cst.BaseExpression) -> str:
    last = func.attr if type(func) is cst.Attribute else func
    return last.value if type(last) is cst.Name else ""


def guess(uses: set[str], forward: bool, hinted: bool = False) -> k.Kind:
    """The kind of a parameter that nothing else describes; ``hinted``: its hint says that it is an array of numpy.

    A parameter of ``forward`` is a tensor unless a use speaks against it: that is what the layers it flows
    into accept. Any other parameter is one only when a use proves it.
    """
    against = uses & {"container", "iterated", "called", "unpacked"}
    if "ndarray" in uses and not against | uses & {"tensor", ASKED}:
        return k.Other("numpy.ndarray")
    if hinted and not forward and not uses & {"torch", "called", "container", ASKED}:
        return k.Other("numpy.ndarray")  # arrays have axes and `x[:, 0]`, too
    if not forward and uses >= {"classed", "layer"} and not against | uses & {"tensor", "indexed"}:
        return k.Module()  # its class is asked for, and its weight: ``init_weights(m)``
    if (
        "bounded" in uses
        and not forward
        and not against | uses & {"tensor", "shaped", "indexed", "attribute"}
    ):
        return k.Scalar("number")  # a branch asks whether it lies between two numbers
    if "tensor" in uses and not against & {"container", "called"}:
        return k.TENSOR
    if "shaped" in uses and not against and (forward or "numpy" not in uses):
        return k.TENSOR  # numpy's functions take no tensors
    if "int" in uses and not against:
        return k.INT
    if forward and not (against or uses & {"attribute", "tested", "option", "counted"}):
        return k.TENSOR
    return k.UNKNOWN


_BUILDERS = frozenset(
    "__init__ reset_parameters _reset_parameters _init_weights init_weights".split()
)


def asks_training(tree: Tree, node: cst.ClassDef) -> bool:
    """Whether a method of a class reads ``self.training``, or hands ``self`` to a function that may; or sets the mode."""
    if any(
        isinstance(one, cst.FunctionDef) and one.name.value == "train" for one in node.body.body
    ):
        return True
    if reads_training(tree, node.body):
        return True
    return any(
        isinstance(arg.value, cst.Name) and arg.value.value == "self"
        for item in tree.within(node.body, cst.Call)
        if not (isinstance(item.func, cst.Name) and item.func.value in ("super", "print"))
        for arg in item.args
    ) and any(
        isinstance(item.value, cst.Name) and item.value.value != "self"
        for item in tree.reading(tree.root, _MODE)
    )


def reads_training(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether a function or class reads the mode of something: ``model.training``."""
    return any(isinstance(item.value, cst.Name) for item in tree.reading(node, _MODE))


_MODE = "training"


def _is_constant(node: cst.BaseExpression) -> bool:
    """None or a number, of which nothing is written in place: a tensor that comes later takes its place."""
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    return isinstance(node, (cst.Integer, cst.Float)) or (
        isinstance(node, cst.Name) and node.value == "None"
    )


_WRITING = (cst.Assign, cst.AugAssign, cst.AssignTarget, cst.Call)


def written_attributes(tree: Tree, node: cst.ClassDef) -> frozenset[str]:
    """Attributes that ``__init__`` gives a tensor and that another method assigns or writes in place."""
    first: set[str] = set()
    later: set[str] = set()
    for method in node.body.body:
        if not isinstance(method, cst.FunctionDef):
            continue
        built = method.name.value in _BUILDERS
        for item in tree.within(method.body, *_WRITING):
            target: cst.CSTNode | None = None
            kind = type(item)
            if kind is cst.Assign and built:
                target = item.targets[0].target if not _is_constant(item.value) else None
            elif kind is cst.AugAssign or (kind is cst.AssignTarget and not built):
                target = item.target
            elif kind is cst.Call and type(item.func) is cst.Attribute:
                name = item.func.attr.value
                if name.endswith("_") and not name.endswith("__"):
                    target = item.func.value
            if target is None:
                continue
            while isinstance(target, cst.Subscript):
                target = target.value
            if (
                isinstance(target, cst.Attribute)
                and isinstance(target.value, cst.Name)
                and target.value.value == "self"
            ):
                (first if built else later).add(target.attr.value)
    return frozenset(first & later)


_USING = (cst.Assign, cst.Return, cst.BinaryOperation, cst.Attribute, cst.Arg, cst.Element)
"""Where an expression stands whose value is used, and not only asked whether it is true."""


def adds(facts: Facts, node: cst.Call) -> bool | None:
    """Whether ``y = x.add(z)`` of something unknown is a tensor's method: its result is used, and no class has it."""
    around = list(facts.tree.around(node)) if facts.tree.has(node) else []
    if not node.args or not around or not isinstance(around[-1], _USING):
        return False
    return None if any(one.short == "add" for one in facts.names.values()) else True


def applies(facts: Facts, asking: FunctionInfo | None, node: cst.Call) -> bool:
    """``net.apply(init)`` of something unknown: a module's, where a function of the program is handed over that returns nothing."""
    func, args = node.func, node.args
    if not isinstance(func, cst.Attribute) or func.attr.value != "apply" or len(args) != 1:
        return False
    kind = facts.kind(args[0].value)
    info = facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is not None and info.returns is None and asking is not None:
        info.callers.add(asking)  # which is looked at again once that is known
    return info is not None and info.returns == k.NONE

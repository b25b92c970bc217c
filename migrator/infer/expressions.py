"""Kinds of expressions: names, attributes, operators, displays and subscripts."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, ClassVar

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.annotations import instance
from migrator.infer.facts import ClassInfo, Facts, FunctionInfo
from migrator.infer.first import sliced_layers
from migrator.infer.observed import completed
from migrator.infer.static import present, truth
from migrator.infer.trailing import last_entry
from migrator.syntax import literal

Env = dict[str, k.Kind]
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict")
_DTYPE_ORDER = ("bool", "int", "float", "complex")
_BUILTINS = frozenset(
    "len range enumerate zip isinstance issubclass int float bool str list tuple dict set sorted sum max min "
    "abs map filter reversed getattr hasattr setattr super print type any all round divmod pow id repr vars "
    "iter next slice callable format open frozenset object property staticmethod classmethod eval exec".split()
)


class Handlers(dict[type, Callable[[Any, Any], Any] | None]):
    """Type of a node → the method of a walker that is named after it: ``eval_Call`` for a Call.

    One table for a class: instances hold no methods of their own, which would keep a tree alive in a cycle."""

    def __init__(self, walker: type, prefix: str) -> None:
        self._walker, self._prefix = walker, prefix

    def __missing__(self, kind: type) -> Callable[[Any, Any], Any] | None:
        self[kind] = getattr(self._walker, self._prefix + kind.__name__, None)
        return self[kind]


def promote(a: str | None, b: str | None) -> str | None:
    """The dtype class of a binary operation on two tensors."""
    if a is None or b is None:
        return None
    return max(a, b, key=_DTYPE_ORDER.index)


class Expressions:
    """Evaluates expressions to kinds; ``env`` maps names (and dotted ``self.x``) to kinds."""

    _evaluators: ClassVar[Handlers]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._evaluators = Handlers(cls, "eval_")

    def __init__(self, facts: Facts, module: str) -> None:
        self.facts = facts
        self.module = module
        self.env: Env = {}
        self._missed: set[str] = set()
        """Names that were read before anything was bound to them."""
        self._later: set[str] = set()
        """Names that are None when a loop begins, in its first round."""
        self._left_out = False
        self._first_rounds: list[cst.For | cst.While] = []
        """The loops around that are walked for the first time."""
        self._jumps: list[tuple[Env, bool]] = []
        """What is known at each break and continue of a loop."""
        self.function: FunctionInfo | None = None
        self.owner: ClassInfo | None = None
        self._observed = facts.observed
        self._rebound = facts.rebound

    def eval(self, node: cst.CSTNode) -> k.Kind:
        """The kind of an expression, recorded in the facts."""
        handler = self._evaluators[type(node)]
        kind = handler(self, node) if handler is not None else k.UNKNOWN
        if self._observed:
            kind = self.shown(node, kind)
        self.facts.kinds[node] = kind
        return kind

    def shown(self, node: cst.CSTNode, kind: k.Kind) -> k.Kind:
        """A kind with what it leaves open taken from a run of the original, where there was one."""
        seen = self._observed.get(node)
        if seen is None:
            return kind
        return seen if kind is k.PRESUMED else completed(kind, seen)

    def instance_of(self, name: str) -> k.Kind:
        """The kind of an instance of a class by qualified name."""
        info = self.facts.classes.get(name)
        if info is None:
            return instance(name)
        return k.Module(name) if info.torch_base else k.Other(name)

    # --- atoms ----------------------------------------------------------------------------------------------------

    def eval_Name(self, node: cst.Name) -> k.Kind:
        name = node.value
        if name in self.env:
            kind = self.env[name]
            if type(kind) is k.Function:
                self._hand_on(kind)
            if self._rebound and name in self._rebound and self.function is not None:
                return k.replaceable(kind)
            return kind
        if name in ("True", "False"):
            return k.Const(name == "True")
        if name == "None":
            return k.NONE
        self._missed.add(name)
        if name in _BUILTINS:
            return k.Function(f"builtins.{name}")
        if isinstance(getattr(builtins, name, None), type):
            return k.Class(f"builtins.{name}")
        return k.Device() if name == "device" else k.UNKNOWN

    def _hand_on(self, kind: k.Function) -> None:
        """Note a function of the project that is a value here: whoever gets it may call it."""
        info = self.facts.names.get(kind.name)
        if self.function is not None and info is not None and info.outer is None:
            if info not in self.function.hands:
                self.function.hands.append(info)

    def eval_Integer(self, node: cst.Integer) -> k.Kind:
        return k.Const(literal(node))

    def eval_Float(self, node: cst.Float) -> k.Kind:
        return k.Const(literal(node))

    def eval_Imaginary(self, node: cst.Imaginary) -> k.Kind:
        return k.Scalar("complex")

    def eval_SimpleString(self, node: cst.SimpleString) -> k.Kind:
        return k.Const(literal(node)) if "b" not in node.prefix else k.Other("bytes")

    def eval_ConcatenatedString(self, node: cst.ConcatenatedString) -> k.Kind:
        self.eval(node.left)
        self.eval(node.right)
        return k.STR

    def eval_FormattedString(self, node: cst.FormattedString) -> k.Kind:
        for part in node.parts:
            if isinstance(part, cst.FormattedStringExpression):
                self.eval(part.expression)
        return k.STR

    def eval_Ellipsis(self, node: cst.Ellipsis) -> k.Kind:
        return k.Other("ellipsis")

    # --- displays -------------------------------------------------------------------------------------------------

    def eval_Tuple(self, node: cst.Tuple) -> k.Kind:
        items: list[k.Kind] = []
        known = True
        for element in node.elements:
            kind = self.eval(element.value)
            if isinstance(element, cst.StarredElement):
                if isinstance(kind, k.Tuple):
                    items.extend(kind.items)
                else:
                    known = False
                    items.append(k.element(kind))
            else:
                items.append(kind)
        made = k.Tuple(tuple(items))
        return made if known else k.Sequence(k.element(made), "tuple")

    def eval_List(self, node: cst.List) -> k.Kind:
        item: k.Kind | None = None
        for element in node.elements:
            kind = self.eval(element.value)
            if isinstance(element, cst.StarredElement):
                kind = k.element(kind)
            item = kind if item is None else k.join(item, kind)
        return k.Sequence(item if item is not None else k.UNKNOWN, "list")

    def eval_Set(self, node: cst.Set) -> k.Kind:
        for element in node.elements:
            self.eval(element.value)
        return k.Other("set")

    def eval_Dict(self, node: cst.Dict) -> k.Kind:
        value: k.Kind | None = None
        items: list[tuple[Any, k.Kind]] = []
        keys: list[k.Kind] = []
        for element in node.elements:
            kind = self.eval(element.value)
            if isinstance(element, cst.DictElement):
                key = self.eval(element.key)
                scalar = k.scalar_type(key)
                keys.append(k.Scalar(scalar) if scalar is not None else key)
                if isinstance(key, k.Const):
                    items.append((key.value, kind))
            else:  # {**layers}
                kind = kind.value if isinstance(kind, k.Mapping) else k.UNKNOWN
            value = kind if value is None else k.join(value, kind)
        known = tuple(items) if len(items) == len(node.elements) else ()
        other = [one for one in keys if not isinstance(one, k.Unknown) and one != k.STR]
        keyed = k.joined(keys) if other else None
        return k.Mapping(value if value is not None else k.UNKNOWN, known, keyed)

    def _comprehension(self, clause: cst.CompFor) -> None:
        self.bind_target(clause.target, k.element(self.eval(clause.iter)))
        for test in clause.ifs:
            self.eval(test.test)
            self.env.update(self.narrow(test.test, True))
        if clause.inner_for_in is not None:
            self._comprehension(clause.inner_for_in)

    def _comp(self, node: Any, type_: str) -> k.Kind:
        saved = dict(self.env)
        self._comprehension(node.for_in)
        item = self.eval(node.elt)
        self.env = saved
        return k.Sequence(item, type_)

    def eval_ListComp(self, node: cst.ListComp) -> k.Kind:
        return self._comp(node, "list")

    def eval_GeneratorExp(self, node: cst.GeneratorExp) -> k.Kind:
        return self._comp(node, "iter")

    def eval_SetComp(self, node: cst.SetComp) -> k.Kind:
        self._comp(node, "iter")
        return k.Other("set")

    def eval_DictComp(self, node: cst.DictComp) -> k.Kind:
        saved = dict(self.env)
        self._comprehension(node.for_in)
        self.eval(node.key)
        value = self.eval(node.value)
        self.env = saved
        return k.Mapping(value)

    def eval_Lambda(self, node: cst.Lambda) -> k.Kind:
        saved = dict(self.env)
        for param in node.params.params:
            if param.default is not None:
                self.eval(param.default)
        for name in self.facts.lambdas:
            if self.facts.lambdas[name][0] is node:
                break
        else:
            name = f"<lambda {len(self.facts.lambdas)}>"
            self.facts.lambdas[name] = (node, {})
        if self.function is None:  # it runs when all of the file is defined
            self.env = {**self.facts.module_env, **self.env}
        self.facts.around[name] = (self.function, dict(self.env))
        for param in node.params.params:
            self.env[param.name.value] = self.facts.lambdas[name][1].get(
                param.name.value, k.UNKNOWN
            )
        self.eval(node.body)
        self.env = saved
        return k.Function(name)

    # --- operators ------------------------------------------------------------------------------------------------

    def eval_BinaryOperation(self, node: cst.BinaryOperation) -> k.Kind:
        return self.binary(
            self.eval(node.left), self.eval(node.right), type(node.operator).__name__
        )

    def binary(self, left: k.Kind, right: k.Kind, operator: str) -> k.Kind:
        """The kind of ``left operator right``."""
        a = left.inner if isinstance(left, k.Optional) else left
        b = right.inner if isinstance(right, k.Optional) else right
        if isinstance(a, k.Tensor) or isinstance(b, k.Tensor):
            return self._tensor_operation(a, b, operator)
        if isinstance(a, k.Tuple) and isinstance(b, k.Tuple) and operator == "Add":
            return k.Tuple(a.items + b.items)
        if isinstance(a, k.Module) and isinstance(b, k.Module) and operator == "Add":
            return k.chained(a, b)
        for one, other in ((a, b), (b, a)):
            if isinstance(one, (k.Tuple, k.Sequence)):
                if isinstance(other, (k.Tuple, k.Sequence)):
                    names = {type_name(one), type_name(other)}
                    both = "size" if "size" in names else None  # of torch.Size and a tuple too
                    return k.join(
                        k.Sequence(k.element(one), both or type_name(one)),
                        k.Sequence(k.element(other), both or type_name(other)),
                    )
                if operator == "Multiply":
                    return k.Sequence(k.element(one), type_name(one))
        either = [k.perhaps_tensor(a), k.perhaps_tensor(b)]
        if any(either) and all(
            t or k.is_number(one) for t, one in zip(either, (a, b), strict=True)
        ):
            computed = self._tensor_operation(either[0] or a, either[1] or b, operator)
            return k.NumberOrTensor(k.Tensor(computed.rank, None))
        x, y = k.scalar_type(a), k.scalar_type(b)
        if k.NUMPY in (a, b) and all(one == k.NUMPY or k.scalar_type(one) for one in (a, b)):
            return k.NUMPY  # np.arange(n) / n
        if x == "str" and operator in ("Add", "Modulo"):
            return k.STR
        if x and y and "str" not in (x, y):
            if operator == "Divide":
                return k.FLOAT
            if x == y:
                return k.Scalar("int" if x == "bool" else x)
            return k.FLOAT if "float" in (x, y) else k.Scalar("number")
        return k.UNKNOWN

    def _tensor_operation(self, a: k.Kind, b: k.Kind, operator: str) -> k.Tensor:
        dtypes = []
        rank: int | None = -1
        for kind in (a, b):
            if isinstance(kind, k.Tensor):
                dtypes.append(kind.dtype)
                if kind.rank is None or rank is None:
                    rank = None
                else:
                    rank = max(rank, kind.rank)
            else:
                scalar = k.scalar_type(kind)
                if scalar in ("int", "bool") and len(dtypes) + 1 <= 2:
                    dtypes.append("bool" if scalar == "bool" else "int")
                elif scalar == "float":
                    dtypes.append("float")
                else:
                    dtypes.append(None)
        dtype = promote(dtypes[0], dtypes[1])
        if (
            "float" in dtypes
            and "complex" not in dtypes
            and all(isinstance(x, k.Tensor) or k.scalar_type(x) for x in (a, b))
        ):
            dtype = "float" if None not in dtypes else dtype
        if operator == "Divide":
            dtype = "float" if dtype in ("int", "bool") else dtype
        if operator == "MatrixMultiply":
            rank = None
        return k.Tensor(rank, dtype)

    def eval_UnaryOperation(self, node: cst.UnaryOperation) -> k.Kind:
        kind = self.eval(node.expression)
        if isinstance(node.operator, cst.Not):
            return k.BOOL
        if isinstance(kind, k.Const) and isinstance(kind.value, (int, float)):
            if isinstance(node.operator, cst.Minus):
                return k.Const(-kind.value)
            return k.Scalar(type(kind.value).__name__)
        return k.without_role(kind)

    def eval_BooleanOperation(self, node: cst.BooleanOperation) -> k.Kind:
        left = self.eval(node.left)
        if truth(self.facts, node.left) is isinstance(node.operator, cst.Or):
            if node.right not in self.facts.dead:
                self.facts.dead.append(node.right)
            return k.BOOL
        saved = dict(self.env)
        self.env.update(self.narrow(node.left, isinstance(node.operator, cst.And)))
        right = self.eval(node.right)
        self.env = saved
        if isinstance(node.operator, cst.Or) and present(self.facts, node.left):
            return left
        if isinstance(node.operator, cst.Or) and self._is_option(node.left, left, right):
            type_ = k.scalar_type(right)
            left = k.Scalar(type_) if type_ else k.loosened(right)
            self.facts.kinds[node.left] = k.Optional(left)
        if isinstance(node.operator, cst.Or) and isinstance(left, k.Optional):
            left = left.inner
        elif left == k.NONE and isinstance(node.operator, cst.Or):
            return right
        if isinstance(node.operator, cst.Or) and isinstance(left, k.Unknown):
            if isinstance(right, (k.Tuple, k.Sequence)):  # a default, like what it stands for
                kind = right.type if isinstance(right, k.Sequence) else "tuple"
                return k.Sequence(k.element(right), kind)
        if k.scalar_type(left) == "bool" and isinstance(right, k.Tensor):
            return right  # or a bool of Python, which is asked for no more than its truth
        return k.join(left, right)

    def _is_option(self, node: cst.BaseExpression, left: k.Kind, right: k.Kind) -> bool:
        """``scale = scale or self.scale``: an argument that is None unless it stands for a number or text is no tensor."""
        inner = left.inner if isinstance(left, k.Optional) else left
        if not isinstance(inner, k.Tensor) or not isinstance(node, cst.Name):
            return False
        plain = k.scalar_type(right) is not None or isinstance(
            right, (k.Tuple, k.Sequence, k.Mapping)
        )
        if not plain or self.function is None or node.value not in self.function.params:
            return False
        handed = self.function.sites.get(node.value)
        handed = handed.inner if isinstance(handed, k.Optional) else handed
        params = self.function.node.params
        given = {p.name.value: p for p in (*params.params, *params.kwonly_params)}
        param = given.get(node.value)
        if param is None or param.annotation is not None or isinstance(handed, k.Tensor):
            return False  # somebody says what it is
        return isinstance(param.default, cst.Name) and param.default.value == "None"

    def eval_Comparison(self, node: cst.Comparison) -> k.Kind:
        kinds = [self.eval(node.left)]
        identity = False
        for target in node.comparisons:
            kinds.append(self.eval(target.comparator))
            identity |= isinstance(target.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        if identity or k.NONE in kinds:
            return k.BOOL
        inner = [kind.inner if isinstance(kind, k.Optional) else kind for kind in kinds]
        texts = any(k.scalar_type(kind) == "str" for kind in inner)
        if texts and all(isinstance(kind, k.Tensor) or k.scalar_type(kind) for kind in inner):
            return k.BOOL  # also of what was taken for a tensor; an array of numpy may hold texts
        ranks = [kind.rank for kind in inner if isinstance(kind, k.Tensor)]
        if not ranks:
            arrays = [
                one for one in inner if isinstance(one, k.Other) and one.type == "numpy.ndarray"
            ]
            if arrays:
                return arrays[0]
            found = [one for one in map(k.perhaps_tensor, inner) if one is not None]
            if found:
                return k.NumberOrTensor(k.Tensor(None, "bool"))
            # what is compared may be tensors, and the result a mask
            return k.UNKNOWN if k.UNKNOWN in inner else k.BOOL
        known = all(isinstance(kind, k.Tensor) or k.scalar_type(kind) for kind in inner)
        rank = max(r for r in ranks if r is not None) if known and None not in ranks else None
        return k.Tensor(rank, "bool")

    def eval_IfExp(self, node: cst.IfExp) -> k.Kind:
        self.eval(node.test)
        known = truth(self.facts, node.test)
        if known is not None:
            return self.eval(node.body if known else node.orelse)
        saved = dict(self.env)
        told = self.narrow(node.test, True), self.narrow(node.test, False)
        self.env.update(told[0])
        body = self.eval(node.body)
        self.env = {**saved, **told[1]}
        orelse = self.eval(node.orelse)
        self.env = saved
        if self._later and self._leave_out(told[1]):
            return body
        return orelse if self._later and self._leave_out(told[0]) else k.either(body, orelse)

    def _leave_out(self, told: Env) -> bool:
        """Whether the first round of a loop never gets where a test says this: a name is None there until it has run."""
        left = any(
            name in self._later and kind == k.UNKNOWN and self.env.get(name) == k.NONE
            for name, kind in told.items()
        )
        self._left_out = self._left_out or left
        return left

    def eval_NamedExpr(self, node: cst.NamedExpr) -> k.Kind:
        kind = self.eval(node.value)
        self.bind_target(node.target, kind)
        return kind

    def eval_Await(self, node: cst.Await) -> k.Kind:
        self.eval(node.expression)
        return k.UNKNOWN

    def eval_Yield(self, node: cst.Yield) -> k.Kind:
        if self.function is not None:
            self.function.generator = True
        if isinstance(node.value, cst.From):
            self.eval(node.value.item)
        elif node.value is not None:
            self.eval(node.value)
        return k.UNKNOWN

    # --- subscripts -----------------------------------------------------------------------------------------------

    def eval_Slice(self, node: cst.Slice) -> k.Kind:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.eval(part)
        return k.Other("slice")

    def eval_Subscript(self, node: cst.Subscript) -> k.Kind:
        value = self.eval(node.value)
        if isinstance(value, k.Optional):
            value = value.inner
        if isinstance(value, k.NumberOrTensor):
            value = value.tensor  # numbers have no items; what asks one for them may be caught
        indices = []
        for element in node.slice:
            index = element.slice
            indices.append(
                self.eval(index.value) if isinstance(index, cst.Index) else self.eval(index)
            )
        if isinstance(value, k.Tensor):
            return self._tensor_index(value, indices)
        only = indices[0]
        sliced = isinstance(node.slice[0].slice, cst.Slice)
        if isinstance(value, k.Tuple):
            if isinstance(only, k.Const) and isinstance(only.value, int):
                if -len(value.items) <= only.value < len(value.items):
                    return value.items[only.value]
                return k.UNKNOWN
            if sliced:
                return self._slice_tuple(value, node.slice[0].slice)
            return k.element(value)
        if isinstance(value, k.Sequence):
            if sliced:
                return value
            return self._ends_with(value.item, only, node) or k.replaceable(value.item)
        if isinstance(value, k.Mapping):
            if isinstance(only, k.Const):
                for key, kind in value.items:
                    if key == only.value:
                        return k.replaceable(kind)
            return k.replaceable(value.value)
        if isinstance(value, k.Module) and value.item is not None:
            if isinstance(only, k.Const) and isinstance(only.value, int) and not sliced:
                count = sum(key.isdigit() for key, _ in value.args)
                place = str(only.value % count) if count else ""
                child = dict(value.args).get(place)
                return child if isinstance(child, k.Kind) else value.item
            if isinstance(only, k.Const) and only.value in dict(value.args):
                child = dict(value.args)[only.value]
                return child if isinstance(child, k.Kind) else value.item
            return sliced_layers(self.facts, value, node.slice[0].slice) if sliced else value.item
        if isinstance(value, k.Class) or (value == k.NUMPY and k.scalar_type(only) is None):
            return value
        return self.own_item(value, only, node)

    def _ends_with(self, item: k.Kind, index: k.Kind, node: cst.Subscript) -> k.Kind | None:
        """The layer that a list of several has just been given there."""
        if not isinstance(item, k.Module) or not item.among:
            return None
        if not isinstance(index, k.Const) or not isinstance(index.value, int) or index.value >= 0:
            return None
        return last_entry(self.facts, node, -index.value)

    def own_item(self, value: k.Kind, index: k.Kind, node: cst.Subscript) -> k.Kind:
        """The kind of an item of an object whose class the project defines."""
        return k.UNKNOWN

    def _slice_tuple(self, value: k.Tuple, node: cst.BaseSlice) -> k.Kind:
        if not isinstance(node, cst.Slice):
            return k.UNKNOWN
        bounds: list[int | None] = []
        for part in (node.lower, node.upper, node.step):
            kind = self.facts.kind(part) if part is not None else k.NONE
            if not isinstance(kind, k.Const):
                return k.Sequence(k.element(value), "tuple")
            bounds.append(kind.value)
        return k.Tuple(value.items[slice(*bounds)])

    @staticmethod
    def _tensor_index(value: k.Tensor, indices: list[k.Kind]) -> k.Kind:
        rank = value.rank
        for kind in indices:
            if k.scalar_type(kind) == "int":
                rank = rank - 1 if rank else None
            elif kind == k.NONE:
                rank = rank + 1 if rank is not None else None
            elif kind not in (k.Other("slice"), k.Other("ellipsis")):
                rank = None
        return k.Tensor(rank, value.dtype)

    # --- provided by the subclasses -------------------------------------------------------------------------------

    def bind_target(self, target: cst.CSTNode, kind: k.Kind) -> None:
        """Assign a kind to a target."""
        raise NotImplementedError

    def narrow(self, test: cst.CSTNode, truth: bool) -> Env:
        """What a test says about names when it is true or false."""
        raise NotImplementedError


def type_name(kind: k.Kind) -> str:
    """The name of the Python type of a value."""
    if isinstance(kind, k.Sequence):
        return kind.type
    if isinstance(kind, k.Tuple):
        return "tuple"
    if isinstance(kind, k.Mapping):
        return "dict"
    return k.scalar_type(kind) or "object"

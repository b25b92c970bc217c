"""Kinds of what is built: instances of torch's layers and of the file's own classes, and what they return."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.annotations import from_definition, is_mean_loss
from migrator.infer.facts import ClassInfo, Facts, FunctionInfo
from migrator.infer.first import begins_in_place
from migrator.infer.host import carries_numbers
from migrator.infer.norms import AFFINE, TRACKING
from migrator.infer.places import displayed
from migrator.infer.python import Python
from migrator.infer.signatures import Args
from migrator.infer.symbols import LAYERS
from rules import definitions

PARAMETERS = ("torch.nn.ParameterList", "torch.nn.ParameterDict")
"""Containers that make parameters of the tensors they are given."""
CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict", *PARAMETERS)


class Construction(Python):
    """Adds constructors, and calls of modules."""

    _call_node: cst.CSTNode | None

    def call_own(self, info: FunctionInfo, args: Args, bound: k.Kind | None) -> k.Kind:
        """The kind of the result of calling a function of the project."""
        raise NotImplementedError

    def construct(self, name: str, args: Args, node: cst.Call | None) -> k.Kind:
        """The kind of an instance made by calling a class."""
        info = self.facts.classes.get(name)
        if info is not None:
            return self._construct_own(info, args)
        name = k.on_host(name)
        if name in ("torch.nn.Parameter", "torch.nn.Buffer"):
            role = "param" if name == "torch.nn.Parameter" else "buffer"
            first = args[0][1] if args else k.UNKNOWN
            tensor = first if isinstance(first, k.Tensor) else k.TENSOR
            rank = 0 if node is not None and node.args and _one_number(node.args[0].value) else None
            return k.Tensor(rank if tensor.rank is None else tensor.rank, tensor.dtype, role)
        if name == "torch.autograd.Variable" and args:
            return args[0][1]
        if name in PARAMETERS:
            return k.Module(name, as_parameter(self._children(args)))
        if name in CONTAINERS:
            first = args[0][1] if args and args[0][0] is None else k.UNKNOWN
            if name == "torch.nn.ModuleDict" and isinstance(first, k.Mapping):
                named = tuple((str(key), kind) for key, kind in first.items)
                return k.Module(name, first.value, named)
            if name == "torch.nn.ModuleDict" and isinstance(self._pairs(first), k.Module):
                return k.Module(name, self._pairs(first))  # of a list of pairs
            if self.function is not None and isinstance(self._children(args), k.Unknown):
                self.function.builds = (
                    True  # perhaps: what its parameters are called for is not known
                )
            children = begins_in_place(self.facts, self.function, node, args)
            if name == "torch.nn.Sequential" and all(keyword is None for keyword, _ in args):
                children += tuple((str(i), kind) for i, (_, kind) in enumerate(args))
            if name == k.LIST and node is not None and node.args:
                children += k.at_places(displayed(self.facts, node.args[0].value))
            # an empty one says nothing of what comes
            empty = name == k.LIST and (not args or _is_empty(node))
            return k.Module(name, None if empty else self._children(args), children)
        if name == k.PARALLEL:
            given = [kind for keyword, kind in args if keyword in (None, "module")]
            whole = given[0] if given and isinstance(given[0], k.Module) else None
            return k.Module(name, whole or k.Module("torch.nn.Module"))
        if name.startswith(LAYERS):
            rules = definitions.layers(name)
            if self.function is not None and (not rules or any(rule.draws for rule in rules)):
                self.function.builds = True
            return k.Module(name, None, self._constant_args(name, args))
        if name in ("torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor"):
            return k.TENSOR
        if name in ("torch.LongTensor", "torch.IntTensor"):
            host = node is not None and carries_numbers(self.facts, node)
            return k.Other("numpy.ndarray") if host else k.Tensor(dtype="int")
        if name == "torch.BoolTensor":
            return k.Tensor(dtype="bool")
        if name == "torch.Size":
            return k.Sequence(k.INT, "size")
        if name == "torch.device":
            return k.Device()
        if name == "torch.Generator":
            return k.Generator()
        if name == "collections.OrderedDict":
            return (
                args[0][1]
                if args and isinstance(args[0][1], k.Mapping)
                else (k.Mapping(self._pairs(args[0][1])) if args else k.Mapping())
            )
        if not name:
            if self.function is not None and not passes_on(self.function, node):
                self.function.builds = True
            return k.UNKNOWN
        if self.function is not None and any(rule.draws for rule in definitions.ops(name)):
            self.function.draws = True  # a distribution draws from the generator it is made with
        return k.Other(name)

    def construct_one(self, names: Sequence[str], args: Args, node: cst.Call | None) -> k.Kind:
        """The kind of an instance of one of several classes: a module, if all of them are modules."""
        if len(names) == 1:
            return self.construct(names[0], args, node)
        made = [self.construct(name, args, node) for name in names]
        if self.function is not None and not passes_on(self.function, node):
            self.function.builds = True
        if all(isinstance(kind, k.Module) for kind in made):
            return functools.reduce(k.join, made)
        return k.UNKNOWN

    @staticmethod
    def _pairs(kind: k.Kind) -> k.Kind:
        item = k.element(kind)
        return item.items[1] if isinstance(item, k.Tuple) and len(item.items) == 2 else k.UNKNOWN

    def _construct_own(self, info: ClassInfo, args: Args) -> k.Kind:
        if self.function is not None:
            if info not in self.function.calls:
                self.function.calls.append(info)
            if info.torch_base:
                self.function.builds = True
        init = info.method("__init__")
        if init is not None:
            self.call_own(init, args, k.Module(info.name))
        if info.torch_base:
            item = self._children(args) if info.torch_base in CONTAINERS else None
            if init is not None and info.torch_base in CONTAINERS:
                item = info.statics.get("<item>", k.Module())
            elif isinstance(item, k.Module):
                self._holds(info, item)
                if info.torch_base == "torch.nn.Sequential":
                    node = self._call_node if isinstance(self._call_node, cst.Call) else None
                    begins = begins_in_place(self.facts, self.function, node, args)
                    return k.Module(info.name, item, begins)
            return k.Module(info.name, item)
        return k.Other(info.name)

    @staticmethod
    def _holds(info: ClassInfo, item: k.Module) -> None:
        """Note the children of a container of the file without a constructor, for the methods that run them."""
        known = info.statics.get("<item>", k.UNKNOWN)
        made = k.joined([known, item])
        if made != known:
            info.statics["<item>"] = made
            for method in info.methods.values():
                method.dirty = True

    @staticmethod
    def _children(args: Args) -> k.Kind:
        """The joined kind of the modules handed to a container."""
        found: k.Kind | None = None
        for keyword, kind in args:
            if keyword == "*" or isinstance(kind, (k.Sequence, k.Tuple)):
                kind = k.element(kind)
            elif isinstance(kind, k.Mapping):
                kind = kind.value
            found = kind if found is None else k.join(found, kind)
        return found if found is not None else k.UNKNOWN

    @staticmethod
    def _constant_args(name: str, args: Args) -> tuple[tuple[str, object], ...]:
        rules = definitions.layers(name)
        names = [p.name for p in rules[0].params if p.mode == "positional"] if rules else []
        found = []
        for i, (keyword, kind) in enumerate(args):
            key = keyword if keyword is not None else names[i] if i < len(names) else None
            if key and isinstance(kind, k.Const):
                found.append((key, kind.value))
            elif key in _TELLING:
                found.append((key, kind))
            elif key == "inplace":
                found.append((key, "maybe"))
        return tuple(found)

    # --- modules --------------------------------------------------------------------------------------------------

    def call_module(self, module: k.Module, args: Args) -> k.Kind:
        """The kind of the result of ``module(…)``."""
        info = self.facts.classes.get(module.cls)
        own = [one for one in module.among if one.cls in self.facts.classes]
        found = [self.call_module(one, args) for one in own]  # it may be each of them
        if found and len(found) == len(module.among):
            result = functools.reduce(k.join, found)
            return self._presumed(args) if isinstance(result, k.Unknown) else result
        if info is not None:
            forward = info.method("forward")
            if forward is not None:
                return self.call_own(forward, args, module)
            module = k.Module(info.torch_base or "torch.nn.Module", module.item, module.args)
        if module.cls == "torch.nn.Sequential":
            return self._call_sequential(module, args)
        if module.cls == k.PARALLEL:
            return self.call_module(k.inside(module), args)
        first = args[0][1] if args else k.UNKNOWN
        for rule in definitions.layers(module.cls):
            result = from_definition(rule.call, first)
            if isinstance(result, k.Tensor) and is_mean_loss(module.cls, module.args):
                return k.Tensor(0, result.dtype or "float")
            if isinstance(result, k.Tensor) and result.rank is None and isinstance(first, k.Tensor):
                if module.cls.rpartition(".")[2] in _SAME_RANK:
                    result = k.Tensor(first.rank, result.dtype or "float")
            return result
        return self._presumed(args) if module.cls == "torch.nn.Module" else k.UNKNOWN

    def _call_sequential(self, module: k.Module, args: Args) -> k.Kind:
        item = module.item
        if isinstance(item, k.Module):
            if not all(one.cls in self.facts.classes for one in item.among):
                item = replace(item, among=())  # only the first of them is handed the arguments
            return self.call_module(item, args)
        if isinstance(item, k.Function) or item is None or isinstance(item, k.Unknown):
            return k.PRESUMED
        return self._presumed(args)

    @staticmethod
    def _presumed(args: Args) -> k.Kind:
        """What a module of unknown class returns for a tensor: a tensor, since only then do methods apply."""
        return k.PRESUMED if args and isinstance(args[0][1], k.Tensor) else k.UNKNOWN


_TELLING = frozenset(("bias", "reduction", "reduce", "size_average", "*", "**", TRACKING, *AFFINE))
"""Arguments of layers that decide what a call returns also where their value is not known."""
_SAME_RANK = frozenset(
    "Linear LayerNorm Dropout Conv1d Conv2d Conv3d BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm ReLU GELU "
    "SiLU Sigmoid Tanh RMSNorm InstanceNorm2d MaxPool2d AvgPool2d ConvTranspose2d Identity".split()
)


def passes_on(function: FunctionInfo, node: cst.Call | None) -> bool:
    """Whether a wrapper calls what it wraps with its own ``**kwargs``, which hold the generator already."""
    star = function.node.params.star_kwarg
    if function.outer is None or star is None or node is None:
        return False
    last = [a.value for a in node.args if a.star == "**"]
    return any(isinstance(v, cst.Name) and v.value == star.name.value for v in last)


def as_parameter(kind: k.Kind) -> k.Kind:
    """The kind of a tensor that a container of parameters keeps."""
    return replace(kind, role="param") if isinstance(kind, k.Tensor) else kind


_FILLED = frozenset("ones zeros empty randn rand full".split())
_OF_NUMBERS = frozenset("cos exp log log10 log2 sin sqrt tan".split())


def _is_empty(node: cst.Call | None) -> bool:
    """``nn.ModuleList([])``."""
    given = node.args[0].value if node is not None and len(node.args) == 1 else None
    return isinstance(given, (cst.List, cst.Tuple)) and not given.elements


def makes_empty(facts: Facts, value: cst.BaseExpression) -> bool:
    """``[]``, ``{}``, ``list()``."""
    if isinstance(value, (cst.List, cst.Dict)):
        return not value.elements
    if not isinstance(value, cst.Call) or value.args:
        return False
    return facts.callee(value) == "builtins.list"


def _one_number(node: cst.BaseExpression) -> bool:
    """Whether an expression makes a tensor of no dimensions: ``torch.tensor(1.5)``, ``torch.ones([]) * s``."""
    if isinstance(node, cst.BinaryOperation):
        sides = (node.left, node.right)
        return any(map(_written, sides)) and any(map(_one_number, sides))
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or not node.args:
        return False
    name, first = node.func.attr.value, node.args[0].value
    if name == "tensor":
        return _written(first)
    return name in _FILLED and isinstance(first, (cst.List, cst.Tuple)) and not first.elements


def _written(node: cst.BaseExpression) -> bool:
    """Whether an expression is a number made of numbers that are written down: ``1 / 0.07``, ``math.log(10)``."""
    if isinstance(node, cst.BinaryOperation):
        return _written(node.left) and _written(node.right)
    func = node.func if isinstance(node, cst.Call) else None
    if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name):
        known = func.value.value in ("math", "np", "numpy") and func.attr.value in _OF_NUMBERS
        return known and all(_written(item.value) for item in node.args)  # type: ignore[attr-defined]
    return syntax.is_number(node)

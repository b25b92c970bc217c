"""Kinds of calls of Python's own functions and methods."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce

import libcst as cst

from migrator import texts
from migrator.infer import kinds as k
from migrator.infer.attributes import Attributes
from migrator.infer.facts import ClassInfo
from migrator.infer.recurrent import is_recurrent, names_weight
from migrator.infer.signatures import Args
from migrator.infer.static import choices, exists
from rules import definitions


def widen(kind: k.Kind) -> k.Kind:
    """Forget a constant's value: what is true of one call need not be of the next."""
    if isinstance(kind, k.Const) and kind.value is not None:
        return k.Scalar(type(kind.value).__name__)
    if isinstance(kind, k.Tuple):
        return k.Tuple(tuple(widen(i) for i in kind.items), kind.fields)
    if isinstance(kind, k.Sequence):
        return k.Sequence(widen(kind.item), kind.type)
    return kind


def is_self(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def class_of_object(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``m`` of ``type(m)`` and of ``m.__class__``; None for anything else."""
    if isinstance(node, cst.Attribute) and node.attr.value == "__class__":
        return node.value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and len(node.args) == 1:
        return node.args[0].value if node.func.value == "type" else None
    return None


class Python(Attributes):
    """Adds builtins and the methods of strings, lists and dicts."""

    def call(self, callee: k.Kind, args: Args, node: cst.Call | None = None) -> k.Kind:
        """The kind of the result of calling a value."""
        raise NotImplementedError

    def assign_attribute(self, name: str, kind: k.Kind) -> None:
        """Join a kind into an attribute of the class being walked."""
        raise NotImplementedError

    # --- Python ---------------------------------------------------------------------------------------------------

    def _builtin(self, name: str, args: Args, node: cst.Call | None) -> k.Kind:
        first = args[0][1] if args else k.UNKNOWN
        if name in ("len", "id", "ord", "hash"):
            return k.INT
        if name == "int":
            return k.INT
        if name in ("float", "bool", "str", "repr"):
            return {"float": k.FLOAT, "bool": k.BOOL}.get(name, k.STR)
        if name in ("isinstance", "issubclass", "hasattr", "callable", "any", "all"):
            return k.BOOL
        if name == "range":
            return k.Sequence(k.INT, "range")
        if name == "enumerate":
            return k.Sequence(k.Tuple((k.INT, k.element(first))), "iter")
        if name == "zip" and any(keyword == "*" for keyword, _ in args):
            # of rows whose number is not known: a column holds an element of each
            rows = [k.element(kind) if keyword == "*" else kind for keyword, kind in args]
            return k.Sequence(k.Sequence(reduce(k.join, map(k.element, rows)), "tuple"), "iter")
        if name == "zip":
            return k.Sequence(k.Tuple(tuple(k.element(kind) for _, kind in args)), "iter")
        key = next((kind for keyword, kind in args if keyword == "key"), None)
        if key is not None and args[0][0] is None:
            several = [kind for keyword, kind in args if keyword is None]
            self.call(
                key, [(None, reduce(k.join, several) if len(several) > 1 else k.element(first))]
            )
        if name in ("reversed", "sorted", "filter", "iter"):
            item = args[-1][1] if name == "filter" else first
            if name == "filter" and len(args) == 2:
                self.call(first, [(None, k.element(item))])
            return k.Sequence(k.element(item), "list" if name == "sorted" else "iter")
        if name in ("list", "tuple"):
            if isinstance(first, k.Tuple) and name == "tuple":
                return first
            return k.Sequence(k.element(first) if args else k.UNKNOWN, name)
        if name == "map" and len(args) > 1:
            item = self.call(first, [(None, k.element(kind)) for _, kind in args[1:]])
            return k.Sequence(item, "iter")
        if name == "dict":
            if isinstance(first, k.Mapping) and args[0][0] != "**":
                return first if len(args) == 1 else k.Mapping(first.value)
            value: k.Kind | None = None
            pairs = []
            pair = k.element(first) if len(args) == 1 and args[0][0] is None else k.UNKNOWN
            if isinstance(pair, k.Tuple) and len(pair.items) == 2:
                return k.Mapping(pair.items[1])  # ``dict(model.named_parameters())``
            for keyword, kind in args:
                if keyword not in (None, "*", "**"):
                    pairs.append((keyword, kind))
                    value = kind if value is None else k.join(value, kind)
            known = tuple(pairs) if len(pairs) == len(args) else ()
            return k.Mapping(value if value is not None else k.UNKNOWN, known)
        if name in ("max", "min", "sum"):
            items = [kind for _, kind in args if _ is None]
            if len(items) == 1 or name == "sum":
                return widen(k.element(items[0])) if items else k.UNKNOWN
            if node is not None and _compares_with_number(node, items):
                return k.Scalar("number")
            result = items[0] if items else k.UNKNOWN
            for kind in items[1:]:
                result = k.join(result, kind)
            return widen(result)
        if name == "abs" and isinstance(first, k.Tensor) and first.dtype == "complex":
            return replace(first, dtype="float", role="")
        if name in ("abs", "round"):
            return (
                widen(first)
                if name == "abs" or len(args) > 1
                else (k.INT if k.scalar_type(first) else widen(first))
            )
        if name == "getattr" and len(args) >= 2 and isinstance(args[1][1], k.Const):
            if isinstance(first, k.Namespace) and len(args) == 3:
                if exists(first.name, str(args[1][1].value)) is False:
                    return args[2][1]
            return self.attribute(first, str(args[1][1].value))
        if name == "getattr" and isinstance(first, k.Namespace) and node is not None:
            kinds = [self.attribute(first, one) for one in choices(self.facts, node)]
            return reduce(k.join, kinds) if kinds else k.UNKNOWN
        if (
            name == "getattr"
            and len(args) == 2
            and isinstance(first, k.Module)
            and node is not None
        ):
            if is_recurrent(first) and names_weight(self.facts, node):
                return k.Tensor(dtype="float", role="param")
            return self._one_of_the_layers(first, node.args[1].value)
        if name == "next":
            return k.element(first)
        if name == "divmod":
            tensors = any(isinstance(kind, k.Tensor) for _, kind in args)
            return k.Tuple(((k.TENSOR if tensors else k.INT),) * 2)
        if name == "pow" and len(args) == 2:
            return self.binary(first, args[1][1], "Power")
        if name == "staticmethod" and isinstance(first, k.Function):
            return first
        if name == "setattr" and len(args) == 3 and node is not None:
            key = args[1][1]
            if isinstance(key, k.Const) and is_self(node.args[0].value):
                self.assign_attribute(str(key.value), args[2][1])
        return k.UNKNOWN

    def _one_of_the_layers(self, module: k.Module, told: cst.BaseExpression) -> k.Kind:
        """``getattr(self, f"conv{i}")``: one of the layers whose names are like that, where all are known."""
        info = self.facts.classes.get(module.cls)
        shape = texts.pattern(told)
        if info is None or not shape.replace(".*", ""):
            return k.UNKNOWN
        found = [
            kind
            for one in info.lineage()
            for name, kind in one.attributes.items()
            if re.fullmatch(shape, name)
            and (isinstance(kind, k.Module) or re.fullmatch(shape.replace(".*", ".+"), name))
        ]
        if self.facts.names_made_up:
            made = self._made_up(info, shape)
            if made is None:
                return k.UNKNOWN
            found += made
        if not found or not all(isinstance(kind, k.Module) for kind in found):
            return k.UNKNOWN
        return reduce(k.join, found)

    def _made_up(self, info: ClassInfo, shape: str) -> list[k.Kind] | None:
        """The kinds of what a class keeps under names that it makes up and that may be like these; None if not known.

        ``setattr(self, f"fc{i}", nn.Linear(n, n))``, ``self.add_module("fc%d" % i, layer)``."""
        tree = self.facts.tree
        if any(one.attr.value == "__dict__" for one in tree.of_type(cst.Attribute)):
            return None
        own = {id(n) for c in info.lineage() if c.settled is None for n in tree.below(c.node)}
        found = list[k.Kind]()
        for call in tree.of_type(cst.Call):
            given = [item.value for item in call.args if item.keyword is None and not item.star]
            func = call.func
            if isinstance(func, cst.Name) and func.value in ("setattr", "vars"):
                if func.value == "vars" or len(given) != 3:
                    return None
                holder, name, value = given
            elif isinstance(func, cst.Attribute) and func.attr.value in _ADDING:
                if len(given) < 2:
                    return None
                holder, (name, value) = func.value, given[:2]
            else:
                continue
            if isinstance(self.facts.kind(name), k.Const) or not _alike(texts.pattern(name), shape):
                continue
            if id(call) not in own or not is_self(holder):
                if is_self(holder) and self._is_apart(info, call):
                    continue
                return None
            found.append(self.facts.kind(value))
        return found

    def _is_apart(self, info: ClassInfo, node: cst.CSTNode) -> bool:
        """Whether a node stands in a module of which no instance is one of a class, either."""
        around = [one for one in self.facts.tree.around(node) if isinstance(one, cst.ClassDef)]
        classes = list(self.facts.classes.values())
        other = next((c for c in classes if around and c.node is around[-1]), None)
        if other is None or other.torch_base is None or info.torch_base is None:
            return False  # a mixin is a part of who knows what
        return not any({info, other} <= set(one.lineage()) for one in classes)

    @staticmethod
    def _python_method(name: str, bound: k.Kind | None, args: Args) -> k.Kind:
        short = name.rpartition(".")[2]
        if name.startswith("str."):
            return (
                k.Sequence(k.STR)
                if short in ("split", "rsplit", "splitlines")
                else (k.BOOL if short.startswith(("starts", "ends", "is")) else k.STR)
            )
        if short in ("index", "count", "numel", "bit_length"):
            return k.INT
        if isinstance(bound, k.Mapping):
            if short == "items":
                return k.Sequence(k.Tuple((k.element(bound), bound.value)), "iter")
            if short == "values":
                return k.Sequence(bound.value, "iter")
            if short == "keys":
                return k.Sequence(k.element(bound), "iter")
            if short in ("get", "pop"):
                other = args[1][1] if len(args) == 2 else k.NONE
                return bound.value if other == k.NONE else k.join(bound.value, other)
        if short == "pop" and bound is not None:
            return k.element(bound)
        if short == "copy" and bound is not None:
            return bound
        return k.UNKNOWN


_ADDING = frozenset({"add_module", "register_module", "register_buffer", "register_parameter"})


def _alike(one: str, other: str) -> bool:
    """Whether two made-up names may be the same: neither begins nor ends otherwise than the other."""
    first, second = one.split(".*"), other.split(".*")
    begins = first[0].startswith(second[0]) or second[0].startswith(first[0])
    ends = first[-1].endswith(second[-1]) or second[-1].endswith(first[-1])
    return begins and ends


PARTIAL = "partial "
"""Prefix of the name of a torch function some of whose arguments are bound."""


def partial(args: Args) -> k.Kind:
    """``functools.partial(F.gelu, …)``: no longer the function, for what it is called with is not all."""
    function = args[0][1]
    if function == k.Function("torch.utils.checkpoint.checkpoint") and args[1:]:
        return partial(args[1:])  # which computes what its function does
    if isinstance(function, k.Function) and function.name.startswith("torch.") and args[1:]:
        return k.Function(f"{PARTIAL}{function.name}")
    return function


def partial_result(name: str) -> k.Kind:
    """The kind of the result of calling a partial torch function."""
    rules = definitions.ops(name.removeprefix(PARTIAL))
    single = rules and all(rule.returns.startswith("Tensor") for rule in rules)
    return k.TENSOR if single else k.UNKNOWN


def _compares_with_number(node: cst.Call, items: list[k.Kind]) -> bool:
    """``min(n, self.limit)`` of a number and attributes of which nothing is known: Python compares numbers."""
    if len(items) != len(node.args):
        return False
    unknown = [a.value for a, kind in zip(node.args, items, strict=True) if kind == k.UNKNOWN]
    numbers = [kind for kind in items if k.scalar_type(kind) in ("int", "float", "number")]
    told = all(isinstance(one, cst.Attribute) for one in unknown)
    return bool(unknown and numbers) and told and len(unknown) + len(numbers) == len(items)

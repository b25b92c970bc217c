"""What a test says about names and attributes in the branches it decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.calls import Calls
from migrator.infer.expressions import Env
from migrator.infer.python import class_of_object
from migrator.infer.symbols import LAYERS
from migrator.source import dotted


def exact_class_test(
    test: cst.Comparison,
) -> tuple[cst.BaseExpression, list[cst.BaseExpression], bool] | None:
    """``type(m) == nn.Linear``, ``m.__class__ in (nn.Conv1d, nn.Conv2d)``: what is asked, for which classes.

    The third is False where the test is true of other classes. None for any other comparison.
    """
    target = test.comparisons[0]
    tested, classes = class_of_object(test.left), target.comparator
    if tested is None or len(test.comparisons) > 1:
        return None
    positive = isinstance(target.operator, (cst.Equal, cst.Is, cst.In))
    if isinstance(target.operator, (cst.Equal, cst.Is, cst.NotEqual, cst.IsNot)):
        return tested, [classes], positive
    if isinstance(classes, (cst.Tuple, cst.List, cst.Set)):
        return tested, [e.value for e in classes.elements], positive
    return None


_OF_TENSORS = frozenset("size shape dtype device dim".split())
"""What is asked of something to find out whether it is a tensor."""


class Narrowing(Calls):
    """Adds what ``is None``, ``isinstance`` and ``callable`` tell."""

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self._heads: set[str] = set()
        """Names of which an attribute may be in the environment."""

    def narrow(self, test: cst.CSTNode, truth: bool) -> Env:
        """What a test says about names and attributes where it is true, or where it is false."""
        found = self._said_by(test, truth)
        self._heads.update(path.partition(".")[0] for path in found)
        return found

    def _said_by(self, test: cst.CSTNode, truth: bool) -> Env:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._said_by(test.expression, not truth)
        if isinstance(test, cst.BooleanOperation):
            if isinstance(test.operator, cst.And) is truth:
                return {**self._said_by(test.left, truth), **self._said_by(test.right, truth)}
            return {}
        if isinstance(test, (cst.Name, cst.Attribute)):
            path = dotted(test)
            kind = self.facts.kind(test)
            if path and isinstance(kind, k.Optional) and truth:
                return {path: kind.inner}
            return {}
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            asked = exact_class_test(test)
            if asked is not None:
                return self._narrow_instance(*asked[:2]) if asked[2] is truth else {}
            return self._narrow_none(test, truth)
        if isinstance(test, cst.Call):
            found = self._narrow_exists(test, truth)
            if truth and isinstance(test.func, cst.Name) and test.func.value == "callable":
                return self._narrow_callable(test)
            if truth and self.facts.callee(test) == "torch.is_tensor" and len(test.args) == 1:
                return self._narrow_tensor(test.args[0].value)
            if not truth and not found and self._asks_for_tensor(test):
                return self._narrow_other(test.args[0].value)
            return self._narrow_isinstance(test) if truth and not found else found
        return {}

    def _narrow_tensor(self, tested: cst.BaseExpression) -> Env:
        """``if torch.is_tensor(x):`` whatever the calls seen so far hand over."""
        path, known = dotted(tested), self.facts.kind(tested)
        known = known.inner if isinstance(known, k.Optional) else known
        return {path: known if isinstance(known, k.Tensor) else k.TENSOR} if path else {}

    def _asks_for_tensor(self, test: cst.Call) -> bool:
        """``torch.is_tensor(x)``, ``isinstance(x, torch.Tensor)``, ``hasattr(x, "size")``."""
        if self.facts.callee(test) == "torch.is_tensor":
            return len(test.args) == 1
        if not isinstance(test.func, cst.Name) or len(test.args) != 2:
            return False
        asked = test.args[1].value
        if test.func.value == "hasattr":
            return isinstance(asked, cst.SimpleString) and asked.raw_value in _OF_TENSORS
        kind = self.facts.kind(asked)
        named = isinstance(kind, k.Class) and kind.name == "torch.Tensor"
        return test.func.value == "isinstance" and named

    def _narrow_other(self, tested: cst.BaseExpression) -> Env:
        """What is no tensor after all, whatever its uses say."""
        path, known = dotted(tested), self.facts.kind(tested)
        known = known.inner if isinstance(known, k.Optional) else known
        return {path: k.UNKNOWN} if path and isinstance(known, k.Tensor) else {}

    def _narrow_callable(self, test: cst.Call) -> Env:
        """``if callable(name):`` no string nor number, whatever the calls seen so far hand over."""
        path = dotted(test.args[0].value) if test.args else None
        kind = self.facts.kind(test.args[0].value) if test.args else k.UNKNOWN
        return {path: k.UNKNOWN} if path and k.scalar_type(kind) is not None else {}

    def _narrow_exists(self, test: cst.Call, truth: bool) -> Env:
        """``exists(x)``, where the file's own function is ``x is not None``."""
        kind = self.facts.kind(test.func)
        info = self.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        none = info.tests_none if info is not None else None
        path = dotted(test.args[0].value) if len(test.args) == 1 else None
        if none is None or not path:
            return {}
        return self._narrowed(path, self.facts.kind(test.args[0].value), none is truth)

    @staticmethod
    def _narrowed(path: str, kind: k.Kind, none: bool) -> Env:
        if none:
            return {path: k.NONE}
        if isinstance(kind, k.Optional):
            return {path: kind.inner}
        return {path: k.UNKNOWN} if kind == k.NONE else {}

    def _narrow_none(self, test: cst.Comparison, truth: bool) -> Env:
        target = test.comparisons[0]
        path = dotted(test.left)
        none = isinstance(target.comparator, cst.Name) and target.comparator.value == "None"
        if not path or not none or not isinstance(target.operator, (cst.Is, cst.IsNot)):
            return {}
        kind = self.facts.kind(test.left)
        return self._narrowed(path, kind, isinstance(target.operator, cst.Is) is truth)

    def _narrow_isinstance(self, test: cst.Call) -> Env:
        if not (isinstance(test.func, cst.Name) and test.func.value == "isinstance"):
            return {}
        if len(test.args) != 2:
            return {}
        classes = test.args[1].value
        nodes = [e.value for e in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
        return self._narrow_instance(test.args[0].value, nodes)

    def _narrow_instance(
        self, tested: cst.BaseExpression, nodes: Sequence[cst.BaseExpression]
    ) -> Env:
        path = dotted(tested)
        names = []
        for node in nodes:
            kind = self.facts.kind(node)
            if isinstance(kind, k.Class) and kind.name:
                names.append(kind.name)
            elif isinstance(node, cst.Name) and node.value in ("int", "float", "bool", "str"):
                if path and len(nodes) == 1:
                    return {path: k.Scalar(node.value)}
                return {path: k.Scalar("number")} if path and node.value != "str" else {}
            elif isinstance(node, cst.Name) and node.value in ("list", "tuple"):
                known = self.facts.kind(tested)
                if path and not isinstance(known, (k.Sequence, k.Tuple)):
                    return {path: k.Sequence(k.UNKNOWN, node.value if len(nodes) == 1 else "iter")}
                return {}
            elif isinstance(node, cst.Name) and node.value == "dict":
                return {path: k.Mapping()} if path else {}
            else:
                return {}
        if not path or not names:
            return {}
        if len(names) > 1 and all(n.startswith(LAYERS) for n in names):
            return {path: k.Module("|".join(names))}
        if len(names) > 1:
            several = [self.instance_of(name) for name in names]
            own = [m for m in several if isinstance(m, k.Module) and m.cls in self.facts.classes]
            if len(own) < len(several):
                return {}
            return {path: k.Module("torch.nn.Module", among=tuple(own))}
        made, known = self.instance_of(names[0]), self.facts.kind(tested)
        known = known.inner if isinstance(known, k.Optional) else known
        # what is known of a tensor already says more: its rank, that it is a parameter
        both = isinstance(made, k.Tensor) and isinstance(known, k.Tensor)
        return {path: known if both else made}

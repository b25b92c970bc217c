"""Numbers of what a mask selects: ``((x[m] - y[m]) ** 2).mean()`` and losses, whose shape does not depend on the data.

What is computed of the selections, element by element, is computed everywhere, and the mean, the sum or the loss is taken
over the mask. A name for what is selected, ``active = logits[m]``, is then one for all of it, if it is read nowhere but in
what is reduced by the same mask. Where the mask does not hold, what is computed may be infinite or have no derivative:
the gradient is stopped before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k
from rules.flags._selected import CASTS, LIKE, POINTWISE, index_of, is_flag

_ELEMENT_LOSSES = frozenset(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split()
)
_CLASS_LOSSES = frozenset("cross_entropy nll_loss".split())
_OF_TENSORS = frozenset(f"Tensor.{name}" for name in ("mean", "sum", "max", "min"))
_OF_TORCH = frozenset(f"torch.{name}" for name in ("mean", "sum", "max", "min"))
_CRITERIA = {
    "torch.nn.CrossEntropyLoss": "cross_entropy",
    "torch.nn.NLLLoss": "nll_loss",
    "torch.nn.MSELoss": "mse_loss",
    "torch.nn.L1Loss": "l1_loss",
    "torch.nn.SmoothL1Loss": "smooth_l1_loss",
    "torch.nn.HuberLoss": "huber_loss",
    "torch.nn.BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
}
_OPTIONS = {
    "cross_entropy": {"ignore_index", "reduction", "label_smoothing"},
    "nll_loss": {"ignore_index", "reduction"},
}
_COPIES = frozenset("Tensor.detach Tensor.clone Tensor.contiguous".split())
_PURE = frozenset(
    f"{owner}.{name}"
    for owner in ("torch", "Tensor")
    for name in "bool byte eq ne gt lt ge le isnan isfinite isinf logical_not logical_and logical_or view reshape flatten "
    "squeeze unsqueeze any all detach contiguous".split()
)
_ORDERS = (
    *(cst.Equal, cst.NotEqual, cst.LessThan),
    *(cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual),
)
_ADDING = (cst.Add, cst.Subtract)


@dataclass
class Reduction:
    """A number of what a mask selects."""

    name: str
    """``mean``, ``sum``, ``max``, ``min`` or that of a loss."""
    operands: tuple[cst.BaseExpression, ...]
    mask: cst.BaseExpression
    options: list[cst.Arg] = field(default_factory=list)
    unsure: bool = False
    """Whether the mask, by all that is known, may be numbers of places instead."""

    @property
    def of_classes(self) -> bool:
        """Whether it is a loss of class numbers."""
        return self.name in _CLASS_LOSSES


class _No(Exception):
    """Not element by element, or not by one mask."""


@dataclass
class _Look:
    """What an expression has in it."""

    masks: list[cst.BaseExpression] = field(default_factory=list)
    selections: list[cst.Subscript] = field(default_factory=list)
    reads: list[cst.Name] = field(default_factory=list)
    stopped: list[cst.BaseExpression] = field(default_factory=list)
    """The largest linear parts of what is not linear."""


def is_unsure(ctx: Context, mask: cst.BaseExpression) -> bool:
    """Whether what is called a mask may, by its dtype, be numbers of places."""
    kind = ctx.kind(mask)
    return not isinstance(kind, k.Tensor) or kind.dtype != "bool"


class Masked:
    """The reductions over masks in a file, by node."""

    def __init__(self, ctx: Context) -> None:
        self.reductions: dict[cst.CSTNode, Reduction] = {}
        self.named: dict[cst.CSTNode, list[cst.BaseExpression]] = {}
        """Assignments of what is selected, or computed of it, and the values in them."""
        self.selections: dict[cst.CSTNode, cst.BaseExpression] = {}
        self.stopped: dict[cst.CSTNode, cst.BaseExpression] = {}
        """Parts that get no gradient where a mask does not hold, and the mask."""
        self.within: dict[cst.CSTNode, _Look] = {}
        flagged = [node for node, (rule, _, _) in ctx.blocked.items() if rule == "DYN001"]
        tree = ctx.source.index
        self.flagged = frozenset(flagged)
        functions = {
            around[-1]: None
            for node in flagged
            if (around := [n for n in tree.around(node) if isinstance(n, cst.FunctionDef)])
        }
        for function in functions:
            _Function(ctx, function, self).follow()
        for node in flagged:
            if node in self.selections:
                del ctx.blocked[node]


class _Function:
    """The statements of one function."""

    def __init__(self, ctx: Context, node: cst.FunctionDef, found: Masked) -> None:
        self.ctx = ctx
        self.node = node
        self.found = found
        self.tree = ctx.source.index
        self.bound: dict[str, int] = {}
        self.written: set[str] = set()
        self.names: dict[str, tuple[cst.BaseExpression, cst.Assign]] = {}
        """Name → mask of what it holds, and where it gets it."""

    def follow(self) -> None:
        """Note what can be reduced over a mask."""
        self._bindings()
        candidates = self._candidates()
        while True:
            looks, reductions, named = self._looked(candidates)
            covered = {one for look in looks.values() for one in look.reads}
            read: set[str] = set()
            loose: set[str] = set()
            for one in self.tree.within(self.node.body, cst.Name):
                if one in self._targets or self._is_label(one) or not self._holds_selected(one):
                    continue
                (read.add if one in covered else loose.add)(one.value)
            loose |= {name for name in self.names if name not in read}
            lost = [one for one in candidates if one[0].value in loose]
            if not lost:
                break
            whole = {statement for _, _, statement in lost}
            candidates = [one for one in candidates if one[2] not in whole]
        self.found.reductions |= reductions
        for statement, values in named.items():
            self.found.named[statement] = values
        for node, look in looks.items():
            mask = look.masks[0]
            self.found.within[node] = look
            self.found.selections |= dict.fromkeys(look.selections, mask)
            self.found.stopped |= dict.fromkeys(look.stopped, mask)

    # --- names ------------------------------------------------------------------------------------------------------

    def _bindings(self) -> None:
        count: list[cst.CSTNode] = list(self.tree.within(self.node.params, cst.Param))
        count = [one.name for one in count if isinstance(one, cst.Param)]
        for node in self.tree.within(
            self.node.body, cst.AssignTarget, cst.For, cst.AsName, cst.NamedExpr, cst.CompFor
        ):
            target = node.name if isinstance(node, cst.AsName) else node.target
            count += [n for n in syntax.walk(target) if isinstance(n, cst.Name)]
            if isinstance(target, cst.Subscript):
                self.written |= set(syntax.names(target.value))
        for node in self.tree.within(self.node.body, cst.AugAssign, cst.AnnAssign, cst.Del):
            self.written |= set(syntax.names(node.target))
        for call in self.tree.within(self.node.body, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value.endswith("_"):
                self.written |= set(syntax.names(func.value))
        self._targets = set(count)
        for one in count:
            name = one.value  # type: ignore[attr-defined]
            self.bound[name] = self.bound.get(name, 0) + 1

    def _is_steady(self, name: str) -> bool:
        return self.bound.get(name, 0) == 1 and name not in self.written

    def _lasts(self, name: str, statement: cst.Assign) -> bool:
        """Whether a name gets nothing else after a statement, and is read after it only in its suite."""
        if name in self.written:
            return False
        if self._is_steady(name):
            return True
        around = self.tree.around(statement)
        inner = around[[one is self.node for one in around].index(True) :]
        if any(isinstance(one, (cst.For, cst.While, cst.CompFor)) for one in inner):
            return False
        place = self.tree.place(statement)
        own = {n for target in statement.targets for n in syntax.walk(target)}
        for one in self.tree.within(self.node.body, cst.Name):
            if one.value != name or one in own or self.tree.place(one) < place:
                continue
            if self.tree.holds(statement, one) or self._is_label(one):
                continue
            if one in self._targets or not self.tree.holds(around[-2], one):
                return False
        return True

    def _holds_selected(self, read: cst.Name) -> bool:
        """Whether a name is read after it got what is selected."""
        if read.value not in self.names:
            return False
        statement = self.names[read.value][1]
        later = self.tree.place(read) > self.tree.place(statement)
        return later and not self.tree.holds(statement, read)

    def _is_label(self, node: cst.Name) -> bool:
        """An attribute's name, or a keyword."""
        parent = self.tree.parent(node)
        if isinstance(parent, cst.Attribute):
            return parent.attr is node
        return isinstance(parent, cst.Arg) and parent.keyword is node

    def _candidates(self) -> list[tuple[cst.Name, cst.BaseExpression, cst.Assign]]:
        """Names that get, once and for all, what may be computed of selections."""
        found = []
        for statement in self.tree.within(self.node.body, cst.Assign):
            if len(statement.targets) != 1:
                continue
            target, value = statement.targets[0].target, statement.value
            pairs = [(target, value)]
            if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
                if len(target.elements) != len(value.elements):
                    continue
                both = zip(target.elements, value.elements, strict=True)
                pairs = [(one.value, given.value) for one, given in both]
            if all(isinstance(n, cst.Name) and self._lasts(n.value, statement) for n, _ in pairs):
                found += [(one, given, statement) for one, given in pairs]
        return found

    def _looked(
        self, candidates: list[tuple[cst.Name, cst.BaseExpression, cst.Assign]]
    ) -> tuple[
        dict[cst.CSTNode, _Look],
        dict[cst.CSTNode, Reduction],
        dict[cst.CSTNode, list[cst.BaseExpression]],
    ]:
        self.names = {}
        looks: dict[cst.CSTNode, _Look] = {}
        named: dict[cst.CSTNode, list[cst.BaseExpression]] = {}
        by_statement: dict[cst.Assign, list[tuple[cst.Name, cst.BaseExpression]]] = {}
        for name, value, statement in candidates:
            by_statement.setdefault(statement, []).append((name, value))
        for statement, pairs in by_statement.items():
            made = []
            for name, value in pairs:
                try:
                    look, _ = self._look(value)
                except _No:
                    break
                if not look.masks or not self._stays(look.masks[0], statement):
                    break
                made.append((name, value, look))
            if len(made) != len(pairs):
                continue
            for name, value, look in made:
                self.names[name.value] = (look.masks[0], statement)
                looks[value] = look
                named.setdefault(statement, []).append(value)
        reductions = {}
        for call in self.tree.within(self.node.body, cst.Call):
            reduction = self._reduction(call)
            if reduction is not None:
                reductions[call] = reduction[0]
                looks |= reduction[1]
        return looks, reductions, named

    def _stays(self, mask: cst.BaseExpression, statement: cst.Assign) -> bool:
        """Whether a mask is, from a statement on, what it is there."""
        if any(isinstance(n, cst.Attribute) for n in syntax.walk(mask)):
            return False
        around = self.tree.around(statement)
        inner = around[[one is self.node for one in around].index(True) :]
        again = any(isinstance(n, (cst.For, cst.While)) for n in inner)
        names = syntax.names(mask)
        if names.keys() & self.written:
            return False
        if again:
            return all(self._is_steady(name) for name in names)
        place = self.tree.place(statement)
        later = [n for n in self._targets if self.tree.place(n) >= place]
        return not names.keys() & {n.value for n in later}  # type: ignore[attr-defined]

    # --- expressions ------------------------------------------------------------------------------------------------

    def _look(self, node: cst.BaseExpression) -> tuple[_Look, str]:
        """What a value has in it, and whether it is linear in what is selected.

        Raises:
          _No: it is not computed element by element, by one mask.
        """
        look = _Look()
        how = self._part(node, look)
        if any(not one.deep_equals(look.masks[0]) for one in look.masks):
            raise _No
        return look, how

    def _part(self, node: cst.BaseExpression, look: _Look) -> str:
        """``none``, ``linear`` or ``steep``."""
        if isinstance(node, cst.Name) and self._holds_selected(node):
            look.masks.append(self.names[node.value][0])
            look.reads.append(node)
            return "linear"
        mask = index_of(node)
        if isinstance(node, cst.Subscript) and mask is not None and self._is_selection(node, mask):
            look.masks.append(mask)
            look.selections.append(node)
            return "linear"
        kind = self.ctx.kind(node)
        if k.scalar_type(kind) is not None:
            return "none"
        if isinstance(node, cst.UnaryOperation) and isinstance(
            node.operator, (cst.Minus, cst.Plus)
        ):
            return self._part(node.expression, look)
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node, look)
        if isinstance(node, cst.Call):
            return self._call(node, look)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return self._comparison(node, look)
        raise _No

    def _comparison(self, node: cst.Comparison, look: _Look) -> str:
        """``a[m] == b[m]``, which has no gradient."""
        only = node.comparisons[0]
        if not isinstance(only.operator, _ORDERS):
            raise _No
        how = {self._part(node.left, look), self._part(only.comparator, look)}
        return "linear" if how != {"none"} else "none"

    def _is_selection(self, node: cst.Subscript, mask: cst.BaseExpression) -> bool:
        kind, base = self.ctx.kind(mask), self.ctx.kind(node.value)
        if not isinstance(kind, k.Tensor) or kind.rank == 0:
            return False
        if kind.dtype != "bool" and not (kind.dtype is None and node in self.found.flagged):
            return False
        return isinstance(base, k.Tensor) and all(map(self._is_same_again, syntax.walk(mask)))

    def _is_same_again(self, node: cst.CSTNode) -> bool:
        """Whether a part of a mask gives the same however often it is asked."""
        if isinstance(node, cst.Call):
            return (self.ctx.facts.callee(node) or "") in _PURE
        return not isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda))

    def _operation(self, node: cst.BinaryOperation, look: _Look) -> str:
        if not isinstance(
            node.operator, (*_ADDING, cst.Multiply, cst.Divide, cst.Power, cst.Modulo)
        ):
            raise _No
        left, right = self._part(node.left, look), self._part(node.right, look)
        alike = isinstance(node.operator, _ADDING)
        if isinstance(node.operator, cst.Multiply):
            alike = "none" in (left, right)
        elif isinstance(node.operator, cst.Divide):
            alike = right == "none"
        if alike:
            if "steep" not in (left, right):
                return "linear" if "linear" in (left, right) else "none"
            return "steep"
        self._stop(look, (node.left, left), (node.right, right))
        return "steep"

    def _call(self, node: cst.Call, look: _Look) -> str:
        name = self.ctx.facts.callee(node) or ""
        short = name.rpartition(".")[2]
        func = node.func
        if name in LIKE or (name in _COPIES and not node.args):
            assert isinstance(func, cst.Attribute)
            return self._part(func.value, look)
        if not name.startswith(("torch.", "Tensor.")) or short not in CASTS | POINTWISE:
            raise _No
        if short in ("bool", "long", "int"):
            raise _No
        parts = [item.value for item in node.args if not is_flag(item)]
        if name.startswith("Tensor.") and isinstance(func, cst.Attribute):
            parts.append(func.value)
        how = [(one, self._part(one, look)) for one in parts]
        if short in CASTS and all(found != "steep" for _, found in how):
            return "linear"
        self._stop(look, *how)
        return "steep"

    def _stop(self, look: _Look, *parts: tuple[cst.BaseExpression, str]) -> None:
        look.stopped += [node for node, how in parts if how == "linear"]

    # --- reductions -------------------------------------------------------------------------------------------------

    def _reduction(self, call: cst.Call) -> tuple[Reduction, dict[cst.CSTNode, _Look]] | None:
        parsed = self._parsed(call)
        if parsed is None:
            return None
        name, operands, options = parsed
        looks: dict[cst.CSTNode, _Look] = {}
        for one in operands:
            try:
                look, how = self._look(one)
            except _No:
                return None
            plain = name not in _CLASS_LOSSES or how == "linear"
            if not look.masks or not plain:
                return None
            looks[one] = look
        masks = [look.masks[0] for look in looks.values()]
        if any(not one.deep_equals(masks[0]) for one in masks):
            return None
        unsure = is_unsure(self.ctx, masks[0])
        return Reduction(name, operands, masks[0], options, unsure), looks

    def _parsed(
        self, call: cst.Call
    ) -> tuple[str, tuple[cst.BaseExpression, ...], list[cst.Arg]] | None:
        name = self.ctx.facts.callee(call) or ""
        short = name.rpartition(".")[2]
        if any(a.star for a in call.args):
            return None
        if name in _OF_TENSORS and not call.args:
            return short, (call.func.value,), []  # type: ignore[attr-defined]
        if name in _OF_TORCH and len(call.args) == 1:
            return short, (call.args[0].value,), []
        if len(call.args) < 2 or any(a.keyword is not None for a in call.args[:2]):
            return None
        operands = call.args[0].value, call.args[1].value
        options = list(call.args[2:])
        if not name.startswith("torch.nn.functional."):
            made = self._criterion(call)
            if made is None or options:
                return None
            short, options = made
        if short not in _ELEMENT_LOSSES | _CLASS_LOSSES:
            return None
        return (short, operands, options) if self._fits(short, options) else None

    def _fits(self, name: str, options: list[cst.Arg]) -> bool:
        allowed = _OPTIONS.get(name, {"reduction"})
        for one in options:
            if one.keyword is None or one.keyword.value not in allowed:
                return False
            constant = self.ctx.kind(one.value)
            if not isinstance(constant, k.Const):
                return False
            if one.keyword.value == "reduction" and constant.value not in ("mean", "sum"):
                return False
        return True

    def _criterion(self, call: cst.Call) -> tuple[str, list[cst.Arg]] | None:
        """The loss and the options of ``loss_fct(…)`` after ``loss_fct = CrossEntropyLoss(ignore_index=0)``."""
        kind = self.ctx.kind(call.func)
        if not isinstance(kind, k.Module) or kind.cls not in _CRITERIA:
            return None
        if isinstance(call.func, cst.Name) and self._is_steady(call.func.value):
            made = self._made(self.node, call.func)
        elif isinstance(call.func, cst.Attribute):
            made = self._made(self.ctx.source.tree, call.func)
        else:
            made = None
        return None if made is None else (_CRITERIA[kind.cls], list(made.args))

    def _made(self, around: cst.CSTNode, target: cst.BaseExpression) -> cst.Call | None:
        """The call whose result is assigned to a target, wherever that is."""
        found = [
            one.value
            for one in self.tree.within(around, cst.Assign)
            if any(t.target.deep_equals(target) for t in one.targets)
        ]
        value = found[0] if found else None
        if any(not one.deep_equals(found[0]) for one in found) or not isinstance(value, cst.Call):
            return None
        return value if (self.ctx.facts.callee(value) or "") in _CRITERIA else None

"""Imports, functions and classes: what their names mean, and the walk into their bodies."""

from __future__ import annotations

import re
from dataclasses import replace

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.annotations import from_hint
from migrator.infer.asked_of_type import asked_of_type
from migrator.infer.counting import counts_for, counts_items
from migrator.infer.evidence import (
    ASKED,
    asks_training,
    gather,
    guess,
    reads_training,
    written_attributes,
)
from migrator.infer.expressions import Env
from migrator.infer.facts import ClassInfo, FunctionInfo
from migrator.infer.python import widen
from migrator.infer.starred import layers_of
from migrator.infer.statements import Statements
from migrator.infer.symbols import AUTOGRAD, LAYERS, starred, symbol
from migrator.source import dotted

_PUBLIC = {
    "torch.nn.modules.batchnorm._BatchNorm": "BatchNorm2d BatchNorm1d BatchNorm3d",
    "torch.nn.modules.instancenorm._InstanceNorm": "InstanceNorm2d InstanceNorm1d InstanceNorm3d",
    "torch.nn.modules.dropout._DropoutNd": "Dropout",
}


def _names_given(statement: cst.CSTNode) -> set[str]:
    """The names that a line gives a value."""
    lines = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    targets = [target for line in lines for target in syntax.assigned_to(line)]
    return {target.value for target in targets if isinstance(target, cst.Name)}


class Definitions(Statements):
    """Executes definitions over kinds."""

    # --- imports --------------------------------------------------------------------------------------------------

    def do_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            name = dotted(alias.name) or ""
            linked = self.facts.linked
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                name = linked.head(self.module, name) if linked is not None else name
                self.env[alias.asname.name.value] = self.lookup(name)
            else:
                head = name.partition(".")[0]
                meant = linked.head(self.module, head) if linked is not None else head
                self.env[head] = k.Namespace(meant)

    def do_ImportFrom(self, node: cst.ImportFrom) -> None:
        module = (dotted(node.module) or "") if node.module is not None else ""
        linked, level = self.facts.linked, len(node.relative)
        if isinstance(node.names, cst.ImportStar):
            self.env.update(starred(module) if not level else {})
            if linked is not None:
                self.env.update(linked.star(self.facts, self.module, module, level))
            return
        for alias in node.names:
            name = alias.name.value if isinstance(alias.name, cst.Name) else ""
            local = alias.asname.name.value if alias.asname else name  # type: ignore[union-attr]
            if linked is not None and isinstance(local, str):
                kind = linked.bound(self.facts, self.module, module, level, name)
                if kind is not None:
                    self.env[local] = kind
                    continue
            if module == "__future__" or node.relative or not isinstance(local, str):
                if isinstance(local, str):
                    self.env[local] = k.UNKNOWN
                continue
            if module in ("typing", "typing_extensions", "collections.abc"):
                self.env[local] = k.Other(f"typing.{name}")
                continue
            self.env[local] = symbol(f"{module}.{name}")

    # --- functions and classes --------------------------------------------------------------------------------------

    def do_FunctionDef(self, node: cst.FunctionDef) -> None:
        for decorator in node.decorators:
            self.eval(decorator.decorator)
        info = self.facts.functions.get(node)
        if info is None:
            prefix = self.function.name if self.function else self.module
            info = FunctionInfo(f"{prefix}.{node.name.value}", node, None, self.function)
            info.shared = self._shared(info.name) and self.function is None
            self.facts.functions[node] = info
            self.facts.names[info.name] = info
        info.closure = self.env
        self.env[node.name.value] = k.Function(info.name)
        if self.function is not None:
            self.enter(info, dict(self.env))

    def _base(self, node: cst.ClassDef, base: cst.BaseExpression) -> k.Kind:
        """What a class derives from: of the private bases of torch's layers one that is made in the same way."""
        kind = self.eval(base)
        several = _PUBLIC.get(kind.name, "") if isinstance(kind, (k.Class, k.Function)) else ""
        if not several:
            return kind
        # the one that is taken must not be asked for: isinstance(m, nn.BatchNorm2d)
        words = {one.value for one in self.facts.tree.of_type(cst.Name)}
        public = next((f"torch.nn.{one}" for one in several.split() if one not in words), None)
        runs = [f for f in node.body.body if isinstance(f, cst.FunctionDef)]
        runs = [f for f in runs if f.name.value == "forward" and "super" not in syntax.names(f)]
        if public is None or (not runs and "BatchNorm" not in public):
            return kind  # torch's own forward pass looks at the shape
        self.facts.kinds[base] = k.Class(public)
        return k.Class(public)

    def do_ClassDef(self, node: cst.ClassDef) -> None:
        within = self.owner if self._is_in_body() else None
        name = f"{within.name if within is not None else self.module}.{node.name.value}"
        for decorator in node.decorators:
            self.eval(decorator.decorator)
        info = self.facts.classes.get(name)
        if info is None or info.node is not node:
            info = ClassInfo(name, node, asks_training=asks_training(self.facts.tree, node))
            self.facts.classes[name] = info
        info.bases = [self._base(node, base.value) for base in node.bases]
        info.parents = []
        info.torch_base, info.gradient = None, False
        written = (syntax.code(base.value) for base in node.bases)
        info.lightning = any(one.split(".")[-1] == "LightningModule" for one in written)
        for base in info.bases:
            if not isinstance(base, k.Class):
                continue
            info.gradient = info.gradient or base.name in AUTOGRAD
            parent = self.facts.classes.get(base.name)
            if parent is not None and parent is not info:
                info.parents.append(parent)
                info.torch_base = _nearest(info.torch_base, parent.torch_base)
                info.gradient = info.gradient or parent.gradient
                info.lightning = info.lightning or parent.lightning
            elif base.name == "torch.jit.ScriptModule":
                info.torch_base = info.torch_base or "torch.nn.Module"
            elif base.name.startswith(LAYERS) and not base.name.startswith("torch.nn.utils"):
                info.torch_base = _nearest(info.torch_base, base.name)
        self.env[node.name.value] = k.Class(name)
        if info.torch_base is not None and info.state is None:
            info.asked = asked_of_type(self.facts.tree, node)
            info.state = written_attributes(self.facts.tree, node) - info.asked
        self._class_body(info, node)

    def _is_in_body(self) -> bool:
        """Whether what is walked stands in the body of a class, and in no method of it."""
        return self.function is None or self.function.owner is not self.owner

    def _shared(self, name: str) -> bool:
        """Whether another file reads a definition, or the class in whose body it stands."""
        if self.facts.linked is None:
            return False
        outer = name.rpartition(".")[0]
        within = outer in self.facts.classes and self._shared(outer)
        return within or self.facts.linked.shared(name)

    def _class_body(self, info: ClassInfo, node: cst.ClassDef) -> None:
        saved, outer = dict(self.env), self.owner
        self.owner = info
        # what stands in the body of one is an object of the class, not the number or text written there
        enumerated = _enumerates(node)
        for statement in node.body.body:
            if isinstance(statement, cst.FunctionDef):
                for decorator in statement.decorators:
                    self.eval(decorator.decorator)
                    info.asks_training |= self._asked_by(decorator.decorator)
                short = _method_name(statement)
                method = self.facts.functions.get(statement)
                if method is None:
                    method = FunctionInfo(f"{info.name}.{short}", statement, info)
                    method.nested = self.function is not None
                    method.shared = self._shared(info.name)
                    self.facts.functions[statement] = method
                self.facts.names[method.name] = method
                method.closure = saved
                info.methods[short] = method
            else:
                before = dict(self.env)
                self.statement(statement)
                given = _names_given(statement)  # as what a global of the same name is, perhaps
                for name, kind in self.env.items():
                    if "." not in name and (name in given or before.get(name) != kind):
                        member = enumerated and not name.startswith("_")
                        info.statics[name] = (
                            k.Other(info.name) if member else k.replaceable(widen(kind))
                        )
        self.env, self.owner = saved, outer

    def _asked_by(self, decorator: cst.BaseExpression) -> bool:
        """Whether a decorator of a method is a function of the project that reads the mode of what it is given."""
        target = decorator.func if isinstance(decorator, cst.Call) else decorator
        kind = self.facts.kind(target)
        function = self.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        if function is None:
            return False
        if function.settled is not None:
            return function.settled.reads_training
        return reads_training(self.facts.tree, function.node)

    def enter(self, info: FunctionInfo, env: Env) -> None:
        """Walk a function body with what is known of its parameters."""
        saved = self.env, self.function, self.owner, self._returns, self._ended
        self.env, self.function = env, info
        self.owner = info.owner if info.owner is not None else self.owner
        self._returns, self._ended = None, False
        info.calls, info.hands, info.draws, info.builds = [], [], False, False
        info.calls_unknown = False
        info.dirty = False
        self._parameters(info)
        self.statement(info.node.body)
        returns: k.Kind = self._returns if self._returns is not None else k.NONE
        if not self._ended and self._returns is not None and not _ends(info.node.body):
            returns = k.join(returns, k.NONE)
        left_open = _ends(info.node.body) or _left_open(info.node.body)
        if info.generator or (self._returns is None and left_open):
            returns = k.UNKNOWN  # what a derived class makes of it, for one that is left open
        if info.node.returns is not None:
            hinted = from_hint(info.node.returns.annotation, self.eval)
            if isinstance(returns, k.Unknown) or (self._returns is None):
                returns = hinted if not isinstance(hinted, k.Unknown) else returns
        if widen(returns) != info.returns:
            info.returns = widen(returns)
            for caller in info.callers:
                caller.dirty = True
        self.env, self.function, self.owner, self._returns, self._ended = saved

    def _parameters(self, info: FunctionInfo) -> None:
        params = info.node.params
        every = [*params.posonly_params, *params.params, *params.kwonly_params]
        owner = info.owner
        if owner is not None and info.receivers > 1 and len(every) > 1:
            self.env[every.pop(1).name.value] = k.Other(owner.name)
        if owner is not None and info.has_receiver and every:
            first = every.pop(0)
            if "classmethod" in info.decorators or info.short == "__new__":
                self.env[first.name.value] = k.Class(owner.name)
            else:
                item = owner.statics.get("<item>")
                self.env[first.name.value] = (
                    k.Module(owner.name, item) if owner.torch_base else k.Other(owner.name)
                )
        if info.uses is None:
            info.uses = gather(self.facts.tree, info.node)
        uses = info.uses
        forward = owner is not None and (
            (owner.torch_base is not None and info.short == "forward")
            or (owner.gradient and info.short in ("forward", "backward"))
        )
        self._given_to_context(info, [p.name.value for p in every])
        for param in every:
            kind = self.shown(param.name, self._parameter(param, info, uses, forward))
            if k.is_parameter(info.sites.get(param.name.value)):  # whose shape others may decide
                kind = k.in_role_of(kind, info.sites[param.name.value])
            if isinstance(kind, k.Function) and kind.name.startswith("torch."):
                # what writes to its argument is converted by what it is known to be
                kind = replace(kind, given=not kind.name.endswith("_"))
            self.env[param.name.value] = kind
            info.params[param.name.value] = kind
            self.facts.kinds[param.name] = kind
        if isinstance(params.star_arg, cst.Param):
            item = k.TENSOR if forward and not params.star_arg.annotation else k.UNKNOWN
            if item == k.TENSOR and counts_items(self.facts.tree, info.node, uses):
                item = k.INT
            layers = None if forward else layers_of(info)
            self.env[params.star_arg.name.value] = k.Sequence(layers or item, "tuple")
        if params.star_kwarg is not None:
            self.env[params.star_kwarg.name.value] = k.Mapping()

    def _given_to_context(self, info: FunctionInfo, names: list[str]) -> None:
        """What ``setup_context(ctx, inputs, output)`` and ``backward(ctx, *grads)`` of an autograd function get."""
        owner = info.owner
        forward = owner.method("forward") if owner is not None and owner.gradient else None
        if forward is None:
            return
        if info.short == "backward":
            info.sites.update(dict.fromkeys(names, k.TENSOR))
        elif info.short == "setup_context" and len(names) == 2:
            forward.callers.add(info)
            given = (k.Tuple(tuple(forward.params.values())), forward.returns or k.UNKNOWN)
            info.sites.update(zip(names, given, strict=True))

    def _parameter(
        self, param: cst.Param, info: FunctionInfo, uses: dict[str, set[str]], forward: bool
    ) -> k.Kind:
        name = param.name.value
        sites = info.sites
        if info.shared:  # what the calls in this file hand over says little about other files
            sites = {n: k.loosened(s) for n, s in sites.items()}
        default = widen(self.eval(param.default)) if param.default is not None else None
        hinted: k.Kind = k.UNKNOWN
        if param.annotation is not None:
            hinted = from_hint(param.annotation.annotation, self.eval)
        called = info.short == "__init__" and "called" in uses.get(name, ())
        if _is_module(hinted) and (_makes(default) or _makes(sites.get(name)) or called):
            hinted = k.UNKNOWN  # ``norm: nn.Module = nn.LayerNorm``: the class is meant
        if default is not None and isinstance(_plain(hinted), k.Tensor):
            if k.scalar_type(default) == "bool":
                hinted = (
                    k.UNKNOWN
                )  # ``output_attentions: torch.Tensor | None = False`` is an option
        if _is_one_number(_plain(hinted)) and not uses.get(name, set()) & _OF_SEQUENCES:
            hinted = k.UNKNOWN  # ``size: tuple[int]`` of what may well be given as a number
        if isinstance(_plain(hinted), (k.Sequence, k.Tuple)):
            found = uses.get(name, set())
            if not found & _OF_SEQUENCES and (
                "tensor" in found or isinstance(sites.get(name), k.Tensor)
            ):
                hinted = (
                    k.TENSOR
                )  # ``x: tuple[torch.Tensor]`` of what is used as one tensor, and given as one
        if not isinstance(hinted, k.Unknown) and not k.is_any_class(hinted):
            if default == k.NONE:
                return k.join(hinted, k.NONE)
            if isinstance(hinted, (k.Function,)) and isinstance(default, (k.Class, k.Function)):
                return default
            site = sites.get(name)
            if isinstance(hinted, k.Function) and isinstance(site, (k.Class, k.Module)):
                return site
            if (
                isinstance(hinted, k.Module)
                and hinted.cls == "torch.nn.Module"
                and isinstance(site, k.Module)
            ):
                return site
            if (
                isinstance(hinted, k.Sequence)
                and isinstance(hinted.item, k.Unknown)
                and isinstance(site, (k.Sequence, k.Tuple))
            ):
                return site
            return hinted
        if info.shared and ASKED in uses.get(name, ()):
            return k.UNKNOWN  # what this file hands over need not be what others do
        kind = sites.get(name)
        if "container" in uses.get(name, ()) and isinstance(_plain(kind), k.Tensor):
            kind = None  # whoever calls it only hands on what is guessed to be a tensor
        if uses.get(name, set()) & {"counted", "tensor", "shaped"} == {"counted"}:
            kind = None if _plain(kind) == k.TENSOR else kind  # a place among the rounds of a loop
        if default is not None:
            if kind is None or isinstance(kind, k.Unknown):
                kind = default
                if default == k.NONE:
                    kind = k.join(k.NONE, self._guessed(param, info, uses, forward))
            else:
                kind = k.join(kind, default)
            if isinstance(kind, k.Scalar) and kind.type in ("int", "float") and kind == default:
                # a number by default, and a tensor where its shape is asked for
                return k.UNKNOWN if uses.get(name, set()) & {"tensor", "shaped"} else kind
        if kind is None or isinstance(kind, k.Unknown):
            kind = self._guessed(param, info, uses, forward)
        elif isinstance(kind, k.Optional) and isinstance(kind.inner, k.Unknown):
            guessed = self._guessed(param, info, uses, forward)
            kind = k.join(k.NONE, guessed) if not isinstance(guessed, k.Unknown) else kind
        if isinstance(kind, k.Unknown) and k.is_any_class(hinted):
            return hinted
        if name == "device" and isinstance(kind, k.Unknown):
            return k.Device()
        return kind

    def _guessed(
        self, param: cst.Param, info: FunctionInfo, uses: dict[str, set[str]], forward: bool
    ) -> k.Kind:
        """The kind of a parameter that nothing describes: what a run showed, else what its uses suggest."""
        name = param.name.value
        seen = self.facts.observed.get(param.name)
        found = uses.get(name, set())
        hinted = param.annotation is not None and _is_of_numpy(param.annotation)
        if hinted:
            found = found | {"numpy"}  # that it has a shape says nothing then
        array = hinted and param.annotation is not None and _is_array(param.annotation)
        kind = seen or info.evidence.get(name) or guess(found, forward, array)
        if forward and kind == k.TENSOR and not found and counts_for(self.facts, info, name):
            return k.INT
        return kind


def _is_one_number(hinted: k.Kind | None) -> bool:
    """A tuple of one number, which hardly anybody means."""
    return isinstance(hinted, k.Tuple) and [k.scalar_type(one) for one in hinted.items] == ["int"]


_OF_SEQUENCES = frozenset("iterated unpacked indexed container tested".split())
"""What is done with several tensors."""


def _is_of_numpy(hint: cst.Annotation) -> bool:
    """``x: np.ndarray``, ``x: Optional[np.ndarray]``."""
    text = syntax.code(hint.annotation)
    return _ARRAYS.search(text) is not None and "Tensor" not in text


def _is_array(hint: cst.Annotation) -> bool:
    """``x: np.ndarray``, ``x: NDArray[np.float32]``: that and nothing else."""
    return _ARRAY.fullmatch(syntax.code(hint.annotation).strip("\"'")) is not None


_ARRAYS = re.compile(r"\b(?:np|numpy)\.ndarray\b|\bNDArray\b")
_ARRAY = re.compile(r"(?:(?:np|numpy)\.)?ndarray|(?:[\w.]+\.)?NDArray(?:\[[^|]*\])?")


def _plain(kind: k.Kind | None) -> k.Kind | None:
    return kind.inner if isinstance(kind, k.Optional) else kind


def _left_open(body: cst.BaseSuite) -> bool:
    """Whether a body is a docstring, ``pass`` or ``...``."""
    lines = [n.body if isinstance(n, cst.SimpleStatementLine) else [n] for n in body.body]
    return all(
        isinstance(one, cst.Pass)
        or (isinstance(one, cst.Expr) and isinstance(one.value, (cst.Ellipsis, cst.BaseString)))
        for line in lines
        for one in line
    )


def _ends(body: cst.BaseSuite) -> bool:
    """Whether a body surely ends in a return or raise."""
    if not body.body:
        return False
    last = body.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        return isinstance(last.body[-1], (cst.Return, cst.Raise))
    if isinstance(last, cst.If) and last.orelse is not None:
        other = last.orelse.body if isinstance(last.orelse, cst.Else) else None
        rest = _ends(other) if other is not None else _ends(cst.IndentedBlock([last.orelse]))  # type: ignore[list-item]
        return _ends(last.body) and rest
    return isinstance(last, cst.With) and _ends(last.body)


def _nearest(first: str | None, then: str | None) -> str | None:
    """The layer of torch that two bases in turn are of: what only adds methods to a Module says nothing of it."""
    return then if first in (None, "torch.nn.Module") and then is not None else first


def _enumerates(node: cst.ClassDef) -> bool:
    """Whether the members of a class are objects of it: ``Enum``, ``IntEnum`` and ``(str, Enum)`` where it has methods.

    Without any, those of the latter are as good as the numbers and texts that they are."""
    bases = [syntax.code(base.value).split(".")[-1] for base in node.bases if base.keyword is None]
    if bases == ["Enum"]:
        return True
    if not bases or bases[-1] not in ("Enum", "IntEnum", "StrEnum"):
        return False
    methods = [one.name.value for one in node.body.body if isinstance(one, cst.FunctionDef)]
    return any(not name.startswith("__") for name in methods)


def _method_name(node: cst.FunctionDef) -> str:
    """``x.setter`` of what writes a property: ``x`` stands for what reads it."""
    for decorator in node.decorators:
        part = decorator.decorator
        if isinstance(part, cst.Attribute) and part.attr.value in ("setter", "deleter"):
            return f"{node.name.value}.{part.attr.value}"
    return node.name.value


def _is_module(kind: k.Kind) -> bool:
    return isinstance(kind.inner if isinstance(kind, k.Optional) else kind, k.Module)


def _makes(kind: k.Kind | None) -> bool:
    """Whether a value is a class, or a function that may stand for one."""
    return isinstance(kind, (k.Class, k.Function))

"""The flow-sensitive walk over statements: bindings, branches, loops, functions and classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.annotations import from_hint
from migrator.infer.calls import PARAMETER
from migrator.infer.construction import CONTAINERS, PARAMETERS
from migrator.infer.evidence import asks_training, gather, guess, written_attributes
from migrator.infer.expressions import Env
from migrator.infer.facts import ClassInfo, FunctionInfo
from migrator.infer.narrowing import Narrowing
from migrator.infer.optional import fallback
from migrator.infer.python import widen
from migrator.infer.static import truth
from migrator.infer.symbols import AUTOGRAD, LAYERS, starred, symbol
from migrator.source import dotted


class Statements(Narrowing):
    """Executes statements over kinds."""

    _returns: k.Kind | None = None
    _ended: bool = False

    def __init__(self, *known: Any) -> None:
        super().__init__(*known)
        self._walkers: dict[type, Callable[[Any], None] | None] = {}

    def block(self, body: Sequence[cst.CSTNode]) -> None:
        """Walk statements in order; what follows a return, raise, break or continue adds nothing."""
        for statement in body:
            self.statement(statement)

    def statement(self, node: cst.CSTNode) -> None:
        """Walk one statement."""
        kind = type(node)
        try:
            handler = self._walkers[kind]
        except KeyError:
            handler = self._walkers[kind] = getattr(self, f"do_{kind.__name__}", None)
        if handler is not None:
            handler(node)

    def do_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.block(node.body)

    def do_SimpleStatementSuite(self, node: cst.SimpleStatementSuite) -> None:
        self.block(node.body)

    def do_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self.block(node.body)

    def do_Expr(self, node: cst.Expr) -> None:
        self.eval(node.value)

    def do_Return(self, node: cst.Return) -> None:
        kind = self.held(node.value, self.eval(node.value)) if node.value is not None else k.NONE
        self._returns = kind if self._returns is None else k.join(self._returns, kind)
        self._ended = True

    def do_Raise(self, node: cst.Raise) -> None:
        if node.exc is not None:
            self.eval(node.exc)
        self._ended = True

    def do_Break(self, node: cst.Break) -> None:
        self._ended = True

    def do_Continue(self, node: cst.Continue) -> None:
        self._ended = True

    def do_Assert(self, node: cst.Assert) -> None:
        self.eval(node.test)
        if node.msg is not None:
            self.eval(node.msg)
        self.env.update(self.narrow(node.test, True))

    def do_Del(self, node: cst.Del) -> None:
        self.eval(node.target)

    # --- bindings -------------------------------------------------------------------------------------------------

    def do_Assign(self, node: cst.Assign) -> None:
        kind = self.eval(node.value)
        for target in node.targets:
            if type(node.value) is cst.Tuple and type(target.target) is cst.Tuple:
                kind = self._spread(node.value, kind, len(target.target.elements))
            # a local name holds the value; only an attribute is the parameter or buffer itself
            plain = type(target.target) is not cst.Attribute
            bound = _value(kind) if plain else self.held(node.value, kind)
            self.bind_target(target.target, bound)
            made = type(node.value) is cst.Call and type(target.target) is cst.Name
            if made and isinstance(kind, k.Tensor) and kind.role == "param":
                self.env[f"{target.target.value}.{PARAMETER}"] = kind  # type: ignore[attr-defined]

    def do_AnnAssign(self, node: cst.AnnAssign) -> None:
        hinted = from_hint(node.annotation.annotation, self.eval)
        if node.value is not None:
            kind = self.eval(node.value)
            if isinstance(kind, k.Unknown) or kind == k.Sequence(k.UNKNOWN, "list"):
                kind = hinted if not isinstance(hinted, k.Unknown) else kind
            self.bind_target(node.target, kind)
        else:
            self.bind_target(node.target, hinted)

    def do_AugAssign(self, node: cst.AugAssign) -> None:
        left, right = self.eval(node.target), self.eval(node.value)
        operator = type(node.operator).__name__.removesuffix("Assign")
        kind = self.binary(left, right, operator)
        if not isinstance(node.target, cst.Subscript):
            self.bind_target(node.target, kind)

    def bind_target(self, target: cst.CSTNode, kind: k.Kind) -> None:
        if type(target) is cst.Name:
            self.env[target.value] = kind
            self._forget(target.value)
            self.facts.kinds[target] = kind
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target, kind)
        elif isinstance(target, cst.Attribute):
            receiver = self.eval(target.value)
            kind = self._registered(receiver, target.attr.value, kind)
            self.facts.kinds[target] = kind
            path = dotted(target)
            if path is not None:
                self._know(path, kind)
            if isinstance(receiver, k.Module) and receiver.cls in self.facts.classes:
                info = self.facts.classes[receiver.cls]
                self.join_attribute(info, target.attr.value, kind)
                joined = info.attributes.get(target.attr.value)
                if (
                    path
                    and isinstance(kind, k.Tensor)
                    and isinstance(joined, k.Tensor)
                    and joined.role
                ):
                    self._know(path, k.Tensor(kind.rank, kind.dtype, joined.role))
            elif isinstance(receiver, k.Other) and receiver.type in self.facts.classes:
                self.join_attribute(self.facts.classes[receiver.type], target.attr.value, kind)
        elif isinstance(target, cst.Subscript):
            value = self.eval(target.value)
            for element in target.slice:
                index = element.slice
                self.eval(index.value if isinstance(index, cst.Index) else index)
            self.facts.kinds[target] = kind
            if isinstance(value, k.Mapping):
                new = kind if isinstance(value.value, k.Unknown) else k.join(value.value, kind)
                self.bind_target(target.value, k.Mapping(new))
            elif isinstance(value, k.Module) and value.cls in PARAMETERS:
                new = k.Tensor(role="param")
                self.bind_target(target.value, k.Module(value.cls, new))
            elif isinstance(value, k.Module) and value.cls in CONTAINERS:
                new = kind if value.item in (None, k.UNKNOWN) else k.join(value.item or kind, kind)
                self.bind_target(target.value, k.Module(value.cls, new))
        elif isinstance(target, cst.StarredElement):
            self.bind_target(target.value, kind)

    def _spread(self, display: cst.Tuple, kind: k.Kind, count: int) -> k.Kind:
        """``*x.shape, x.device`` unpacked into ``count`` targets: one star takes what the others leave."""
        stars = [isinstance(e, cst.StarredElement) for e in display.elements]
        if isinstance(kind, k.Tuple) or sum(stars) != 1:
            return kind
        items: list[k.Kind] = []
        for element in display.elements:
            one = self.facts.kind(element.value)
            if isinstance(element, cst.StarredElement):
                items += [k.element(one)] * (count - len(stars) + 1)
            else:
                items.append(one)
        return k.Tuple(tuple(items))

    def _forget(self, name: str) -> None:
        if name in self._heads:
            for path in [p for p in self.env if p.startswith(f"{name}.")]:
                del self.env[path]

    def _know(self, path: str, kind: k.Kind) -> None:
        """Note what an attribute is from here on."""
        self._heads.add(path.partition(".")[0])
        self.env[path] = kind

    def _unpack(self, target: cst.Tuple | cst.List, kind: k.Kind) -> None:
        if isinstance(kind, k.Optional):
            kind = kind.inner
        elements = target.elements
        star = next((i for i, e in enumerate(elements) if isinstance(e, cst.StarredElement)), None)
        for i, element in enumerate(elements):
            item = k.element(kind)
            if isinstance(kind, k.Tuple) and kind.items:
                if star is None and len(kind.items) == len(elements):
                    item = kind.items[i]
                elif star is not None and i < star:
                    item = kind.items[min(i, len(kind.items) - 1)]
                elif star is not None and i > star:
                    item = kind.items[max(i - len(elements), -len(kind.items))]
            if isinstance(element, cst.StarredElement):
                item = k.Sequence(k.element(kind), "list")
            self.bind_target(element.value, item)

    def _registered(self, receiver: k.Kind, name: str, kind: k.Kind) -> k.Kind:
        """A tensor assigned to the name of a parameter or buffer is that parameter's or buffer's new value."""
        info = self.facts.classes.get(receiver.cls) if isinstance(receiver, k.Module) else None
        known = info.attribute(name) if info is not None else None
        if known is None and info is not None and info.torch_base not in (None, "torch.nn.Module"):
            known = self.attribute(k.Module(info.torch_base or ""), name)
        known = known.inner if isinstance(known, k.Optional) else known
        if isinstance(kind, k.Tensor) and not kind.role and isinstance(known, k.Tensor):
            return k.Tensor(kind.rank, kind.dtype, known.role)
        return kind

    def assign_attribute(self, name: str, kind: k.Kind) -> None:
        if self.owner is not None:
            self.join_attribute(self.owner, name, kind)
            self._know(f"self.{name}", kind)

    def join_attribute(self, info: ClassInfo, name: str, kind: k.Kind) -> None:
        before = info.attributes.get(name)
        Statements._joined(info, name, kind)
        if info.attributes.get(name) != before:
            for reader in info.readers:
                reader.dirty = True

    @staticmethod
    def _joined(info: ClassInfo, name: str, kind: k.Kind) -> None:
        known = info.attributes.get(name)
        kind = widen(kind)
        if info.state and name in info.state and isinstance(kind, k.Tensor) and not kind.role:
            kind = k.Tensor(kind.rank, kind.dtype, "buffer")
        if known is None or (isinstance(known, k.Unknown)):
            info.attributes[name] = kind
        elif known == k.Sequence(k.UNKNOWN, "list") and isinstance(kind, k.Sequence):
            info.attributes[name] = kind
        elif isinstance(known, k.Sequence) and isinstance(kind, k.Module) and kind.item is not None:
            info.attributes[name] = kind  # the list was only gathered for the container
        elif (
            isinstance(known, k.Module) and known.item is not None and isinstance(kind, k.Sequence)
        ):
            pass
        elif (
            isinstance(known, k.Module)
            and isinstance(kind, k.Module)
            and known.cls == kind.cls
            and known.item in (None, k.UNKNOWN)
        ):
            info.attributes[name] = kind
        elif kind != k.Sequence(k.UNKNOWN, "list"):
            info.attributes[name] = k.join(known, kind)

    # --- flow -----------------------------------------------------------------------------------------------------

    def _branch(self, env: Env, body: Callable[[], None]) -> tuple[Env, bool]:
        self.env, self._ended = dict(env), False
        body()
        ended, self._ended = self._ended, False
        return self.env, ended

    def _merge(self, branches: Sequence[tuple[Env, bool]]) -> None:
        alive = [env for env, ended in branches if not ended]
        if not alive:
            self.env, self._ended = branches[0][0] if branches else self.env, True
            return
        merged = dict(alive[0])
        for env in alive[1:]:
            # most of what stands in both is the module's and the very same
            for name, kind in [(n, x) for n, x in merged.items() if env.get(n) is not x]:
                if name not in env:
                    if "." in name:
                        del merged[name]
                elif kind != env[name]:
                    merged[name] = k.join(kind, env[name])
            for name, kind in env.items():
                if name not in merged and "." not in name:
                    merged[name] = kind
        self.env = merged

    def do_If(self, node: cst.If) -> None:
        self.eval(node.test)
        base = dict(self.env)
        known = self._static_truth(node.test)
        then = {**base, **self.narrow(node.test, True)}
        other = {**base, **self.narrow(node.test, False)}
        first = self._branch(then, lambda: self.statement(node.body))
        orelse = node.orelse
        second = self._branch(
            other, (lambda: self.statement(orelse)) if orelse is not None else lambda: None
        )
        if known is True:
            self._merge([first])
            self._never(orelse)
        elif known is False:
            self._merge([second])
            self._never(node.body)
        else:
            self._merge([first, second])

    def _never(self, branch: cst.CSTNode | None) -> None:
        if branch is not None and branch not in self.facts.dead:
            self.facts.dead.append(branch)

    def _static_truth(self, test: cst.CSTNode) -> bool | None:
        """What a test that asks about torch itself comes to; a default's value is no fact."""
        return truth(self.facts, test)

    def do_Else(self, node: cst.Else) -> None:
        self.statement(node.body)

    def _loop(self, enter: Callable[[], None], node: cst.For | cst.While) -> None:
        before = dict(self.env)
        for _ in range(2):
            enter()
            body, _ = self._branch(self.env, lambda: self.statement(node.body))
            self._merge([(before, False), (body, False)])
            after = self.env
            if all(after.get(n) is kind or after.get(n) == kind for n, kind in before.items()):
                break  # a second walk would see what the first one saw
            before = dict(self.env)
        if node.orelse is not None:
            self.statement(node.orelse)

    def do_For(self, node: cst.For) -> None:
        def enter() -> None:
            self.bind_target(node.target, widen(k.element(self.eval(node.iter))))

        self._loop(enter, node)

    def do_While(self, node: cst.While) -> None:
        self._loop(lambda: void(self.eval(node.test)), node)

    def do_With(self, node: cst.With) -> None:
        for item in node.items:
            kind = self.eval(item.item)
            if item.asname is not None:
                self.bind_target(item.asname.name, kind)
        self.statement(node.body)

    def do_Try(self, node: cst.Try) -> None:
        handler = fallback(self.facts, node)
        if handler is not None:
            self._never(node.body)
            self._never(node.orelse)
            self.statement(handler.body)
            return
        base = dict(self.env)
        branches = [self._branch(base, lambda: self.statement(node.body))]
        for handler in node.handlers:
            start = {**base, **branches[0][0]} if not branches[0][1] else base
            branches.append(self._branch(start, partial(self.statement, handler.body)))
        # An import that fails binds None or a flag in its handler: the first branch is the one that runs.
        self._merge(branches)
        for name, kind in branches[0][0].items():
            if isinstance(kind, (k.Namespace, k.Class, k.Function)):
                self.env[name] = kind
        if node.orelse is not None:
            self.statement(node.orelse)
        if node.finalbody is not None:
            self.statement(node.finalbody.body)

    def do_Match(self, node: cst.Match) -> None:
        self.eval(node.subject)
        base = dict(self.env)
        branches = [self._branch(base, partial(self.statement, c.body)) for c in node.cases]
        self._merge([*branches, (base, False)])

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

    def do_ClassDef(self, node: cst.ClassDef) -> None:
        name = f"{self.module}.{node.name.value}"
        for decorator in node.decorators:
            self.eval(decorator.decorator)
        info = self.facts.classes.get(name)
        if info is None or info.node is not node:
            info = ClassInfo(name, node, asks_training=asks_training(self.facts.tree, node))
            self.facts.classes[name] = info
        info.bases = [self.eval(base.value) for base in node.bases]
        info.parents = []
        info.torch_base, info.gradient = None, False
        for base in info.bases:
            if not isinstance(base, k.Class):
                continue
            info.gradient = info.gradient or base.name in AUTOGRAD
            parent = self.facts.classes.get(base.name)
            if parent is not None and parent is not info:
                info.parents.append(parent)
                info.torch_base = info.torch_base or parent.torch_base
                info.gradient = info.gradient or parent.gradient
            elif base.name.startswith(LAYERS) and not base.name.startswith("torch.nn.utils"):
                info.torch_base = info.torch_base or base.name
        self.env[node.name.value] = k.Class(name)
        if info.torch_base is not None and info.state is None:
            info.state = written_attributes(self.facts.tree, node)
        self._class_body(info, node)

    def _shared(self, name: str) -> bool:
        return self.facts.linked is not None and self.facts.linked.shared(name)

    def _class_body(self, info: ClassInfo, node: cst.ClassDef) -> None:
        saved, outer = dict(self.env), self.owner
        self.owner = info
        for statement in node.body.body:
            if isinstance(statement, cst.FunctionDef):
                for decorator in statement.decorators:
                    self.eval(decorator.decorator)
                method = self.facts.functions.get(statement)
                if method is None:
                    method = FunctionInfo(f"{info.name}.{statement.name.value}", statement, info)
                    method.nested = self.function is not None
                    method.shared = self._shared(info.name)
                    self.facts.functions[statement] = method
                self.facts.names[method.name] = method
                method.closure = saved
                info.methods[statement.name.value] = method
            else:
                before = dict(self.env)
                self.statement(statement)
                for name, kind in self.env.items():
                    if "." not in name and before.get(name) != kind:
                        info.statics[name] = widen(kind)
        self.env, self.owner = saved, outer

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
            kind = self._parameter(param, info, uses, forward)
            self.env[param.name.value] = kind
            info.params[param.name.value] = kind
            self.facts.kinds[param.name] = kind
        if isinstance(params.star_arg, cst.Param):
            item = k.TENSOR if forward and not params.star_arg.annotation else k.UNKNOWN
            self.env[params.star_arg.name.value] = k.Sequence(item, "tuple")
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
        sites = info.sites if not info.shared else {n: _loose(s) for n, s in info.sites.items()}
        default = widen(self.eval(param.default)) if param.default is not None else None
        hinted: k.Kind = k.UNKNOWN
        if param.annotation is not None:
            hinted = from_hint(param.annotation.annotation, self.eval)
        if not isinstance(hinted, k.Unknown) and hinted != k.Class(""):
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
        kind = sites.get(name)
        if default is not None:
            if kind is None or isinstance(kind, k.Unknown):
                kind = default
                if default == k.NONE:
                    guessed = info.evidence.get(name) or guess(uses.get(name, set()), forward)
                    kind = k.join(k.NONE, guessed)
            else:
                kind = k.join(kind, default)
            if isinstance(kind, k.Scalar) and kind.type in ("int", "float") and kind == default:
                return kind
        if kind is None or isinstance(kind, k.Unknown):
            kind = info.evidence.get(name) or guess(uses.get(name, set()), forward)
        elif isinstance(kind, k.Optional) and isinstance(kind.inner, k.Unknown):
            guessed = info.evidence.get(name) or guess(uses.get(name, set()), forward)
            kind = k.Optional(guessed) if not isinstance(guessed, k.Unknown) else kind
        if isinstance(kind, k.Unknown) and hinted == k.Class(""):
            return hinted
        if name == "device" and isinstance(kind, k.Unknown):
            return k.Device()
        return kind


def _loose(kind: k.Kind) -> k.Kind:
    """A kind without rank and dtype: what the calls in this file hand over says little about other files."""
    if isinstance(kind, k.Tensor):
        return k.Tensor(role=kind.role)
    if isinstance(kind, k.Optional):
        return k.Optional(_loose(kind.inner))
    if isinstance(kind, k.Tuple):
        return k.Tuple(tuple(_loose(i) for i in kind.items), kind.fields)
    return k.Sequence(_loose(kind.item), kind.type) if isinstance(kind, k.Sequence) else kind


def _value(kind: k.Kind) -> k.Kind:
    """A kind without the role of a registered attribute, inside Optional and tuples too."""
    if isinstance(kind, k.Optional):
        return k.Optional(_value(kind.inner))
    if isinstance(kind, k.Tuple):
        return k.Tuple(tuple(_value(i) for i in kind.items), kind.fields)
    return k.without_role(kind)


def void(_: object) -> None:
    """Evaluate for its effect."""


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

"""The flow-sensitive walk over statements: bindings, branches, loops, functions and classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import libcst as cst

from migrator.assignments import bound
from migrator.infer import kinds as k
from migrator.infer.annotations import from_hint
from migrator.infer.attributes import PARAMETER
from migrator.infer.construction import CONTAINERS, PARAMETERS, makes_empty
from migrator.infer.expressions import Env, Handlers
from migrator.infer.facts import ClassInfo
from migrator.infer.first import grown, with_item
from migrator.infer.narrowing import Narrowing
from migrator.infer.optional import fallback, imports_another, without
from migrator.infer.python import is_self, widen
from migrator.infer.recurrent import holds_weights
from migrator.infer.static import leaves, settled_by_calls, truth
from migrator.infer.symbols import of_torch
from migrator.infer.tied import in_turn, kept_of, kept_whole
from migrator.infer.told_later import begins_clearly, gathers
from migrator.infer.unclear import stays_unclear
from migrator.source import dotted


class Statements(Narrowing):
    """Executes statements over kinds."""

    _returns: k.Kind | None = None
    _ended: bool = False

    _walkers: ClassVar[Handlers]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._walkers = Handlers(cls, "do_")

    def block(self, body: Sequence[cst.CSTNode]) -> None:
        """Walk statements in order; what follows a return, raise, break or continue adds nothing."""
        for i, statement in enumerate(body):
            self.statement(statement)
            if isinstance(statement, cst.If) and self._always_leaves(statement):
                rest = body[i + 1 :]
                if not any(self.facts.tree.within(one, cst.Yield) for one in rest):
                    for one in rest:
                        self._never(one)
                    break

    def _always_leaves(self, node: cst.If) -> bool:
        """``if torch.jit.is_scripting(): … else: return x``, where it is known which of the two runs."""
        known = self._static_truth(node.test)
        return known is not None and leaves(node.body if known else node.orelse)

    def statement(self, node: cst.CSTNode) -> None:
        """Walk one statement."""
        handler = self._walkers[type(node)]
        if handler is not None:
            handler(self, node)

    def do_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        self.block(node.body)

    def do_SimpleStatementSuite(self, node: cst.SimpleStatementSuite) -> None:
        self.block(node.body)

    def do_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self.block(node.body)

    def do_Expr(self, node: cst.Expr) -> None:
        self._statement = node.value
        self.eval(node.value)

    def do_Return(self, node: cst.Return) -> None:
        kind = self.held_each(node.value, self.eval(node.value)) if node.value else k.NONE
        if not self._calls_itself(node.value):  # which gives what the other lines give
            self._returns = kind if self._returns is None else k.join(self._returns, kind)
        self._ended = True

    def _calls_itself(self, node: cst.BaseExpression | None) -> bool:
        if not isinstance(node, cst.Call) or self.function is None:
            return False
        return self.facts.names.get(self.facts.callee(node) or "") is self.function

    def do_Raise(self, node: cst.Raise) -> None:
        if node.exc is not None:
            self.eval(node.exc)
        self._ended = True

    def do_Break(self, node: cst.Break) -> None:
        self._jumps.append((dict(self.env), False))
        self._ended = True

    def do_Continue(self, node: cst.Continue) -> None:
        self._jumps.append((dict(self.env), False))
        self._ended = True

    def do_Assert(self, node: cst.Assert) -> None:
        self.eval(node.test)
        if node.msg is not None:
            self.eval(node.msg)
        self.env.update(self.narrow(node.test, True))

    def do_Del(self, node: cst.Del) -> None:
        self.eval(node.target)
        if isinstance(node.target, cst.Subscript):
            held = self.eval(node.target.value)
            if k.children(held):
                self.bind_target(node.target.value, k.without_places(held))

    # --- bindings -------------------------------------------------------------------------------------------------

    def do_Assign(self, node: cst.Assign) -> None:
        kind = self.eval(node.value)
        if in_turn(node) and any(self._is_kept_whole(e.value) for e in node.value.elements):  # type: ignore[attr-defined]
            for to, one in zip(node.targets[0].target.elements, node.value.elements, strict=True):  # type: ignore[attr-defined]
                self.do_Assign(cst.Assign([cst.AssignTarget(to.value)], one.value))
            return
        for to in (target.target for target in node.targets):
            if type(node.value) is cst.Tuple and type(to) is cst.Tuple:
                kind = self._spread(node.value, kind, len(to.elements))
            # a local name holds the value; only an attribute is the parameter or buffer itself
            plain = type(to) is not cst.Attribute and not self._is_kept_whole(to)
            weight = plain and k.is_parameter(kind) and self._names_weight(to, node)
            bound = self.held(node.value, kind)
            if plain and not weight:
                bound = kept_of(to, node.value, kind)
            if type(to) is cst.Attribute and self._is_kept_whole(node.value) and self.owner:
                self.owner.declared.add(to.attr.value)
            self.bind_target(to, bound)
            self._attached(to, node.value, kind)
            self._note_empty(to, node.value)
            self._note_rank(to, node.value)
            made = type(node.value) is cst.Call and type(to) is cst.Name
            if made and isinstance(kind, k.Tensor) and kind.role == "param":
                self.env[f"{to.value}.{PARAMETER}"] = kind

    def _is_kept_whole(self, target: cst.CSTNode) -> bool:
        """Whether a name is that of a parameter that a constructor may be handed, and that it keeps as it is."""
        info = self.function
        if type(target) is not cst.Name or info is None or target.value not in info.params:
            return False
        return target.value in kept_whole(self.facts, info)

    def _names_weight(self, target: cst.CSTNode, node: cst.Assign) -> bool:
        """Whether a local name stands for the weight of a recurrent layer that is asked for by name."""
        if self.function is None or type(node.value) is not cst.Call:
            return False
        return holds_weights(self.facts, self.function.node.body, target, node.value)

    def _note_empty(self, target: cst.CSTNode, value: cst.BaseExpression) -> None:
        """``layers = []``: until something is put into it, the list says nothing of what it will hold."""
        if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List)):
            for one, given in zip(target.elements, value.elements, strict=False):
                self._note_empty(one.value, given.value)
        elif makes_empty(self.facts, value):
            if isinstance(target, cst.Name):
                self._know(f"{target.value}{_EMPTY}", k.NONE)
            elif isinstance(target, cst.Attribute) and self.owner and is_self(target.value):
                self._know(f"self.{target.attr.value}{_EMPTY}", k.NONE)

    def _note_rank(self, target: cst.CSTNode, value: cst.BaseExpression) -> None:
        """``b, n, d = x.shape`` runs for nothing but a tensor with three axes."""
        if not isinstance(target, (cst.Tuple, cst.List)):
            return
        if any(isinstance(e, cst.StarredElement) for e in target.elements):
            return
        if isinstance(value, cst.Call) and not value.args:
            value, name = value.func, "size"
        else:
            name = "shape"
        if not isinstance(value, cst.Attribute) or value.attr.value != name:
            return
        known = self.env.get(value.value.value) if isinstance(value.value, cst.Name) else None
        bound = {one.value.value for one in target.elements if isinstance(one.value, cst.Name)}
        if isinstance(known, k.Tensor) and known.rank is None and value.value.value not in bound:  # type: ignore[attr-defined]
            self.env[value.value.value] = k.Tensor(len(target.elements), known.dtype, known.role)  # type: ignore[attr-defined]

    def _attached(self, target: cst.CSTNode, value: cst.BaseExpression, kind: k.Kind) -> None:
        """``Model.build = staticmethod(build)`` behind a class: a function that is reached by the class."""
        if not isinstance(target, cst.Attribute) or not isinstance(kind, k.Function):
            return
        owner = self.facts.kind(target.value)
        info = self.facts.classes.get(owner.name) if isinstance(owner, k.Class) else None
        if info is None or not isinstance(value, cst.Call):
            return
        if self.facts.callee(value) == "builtins.staticmethod" and self.function is None:
            info.statics[target.attr.value] = kind

    def do_AnnAssign(self, node: cst.AnnAssign) -> None:
        hinted = from_hint(node.annotation.annotation, self.eval)
        if node.value is not None:
            kind = self.eval(node.value)
            if isinstance(kind, k.Unknown) or kind == k.Sequence(k.UNKNOWN, "list"):
                kind = hinted if not isinstance(hinted, k.Unknown) else kind
            elif self.function is None and self.owner is not None and isinstance(kind, k.Const):
                # a field: the value is a default, ``rank: int | str = "auto"``
                kind = kind if isinstance(hinted, k.Unknown) else k.join(hinted, kind)
            self.bind_target(node.target, kind)
        else:
            in_class = self.function is None and self.owner is not None
            kind = self._declared(hinted) if in_class else hinted
            told = kind.inner if isinstance(kind, k.Optional) else kind
            if not in_class or not isinstance(told, k.Unknown):  # of a class that comes later
                self._declare(node.target, kind)

    def _declare(self, target: cst.CSTNode, kind: k.Kind) -> None:
        """``self.bank: Tensor`` gives no value: what it says of a tensor holds until one is registered."""
        name = target.attr.value if isinstance(target, cst.Attribute) else ""
        receiver = self.eval(target.value) if isinstance(target, cst.Attribute) else None
        cls = receiver.cls if isinstance(receiver, k.Module) else ""
        info = self.facts.classes.get(cls)
        new = info is not None and name not in info.attributes
        self.bind_target(target, kind)
        if info is not None and new:
            info.declared.add(name)

    def _declared(self, hinted: k.Kind) -> k.Kind:
        """What a class says of an attribute, ``encoder: Encoder | None``: instances of own classes may be modules."""
        if isinstance(hinted, k.Optional):
            return k.Optional(self._declared(hinted.inner))
        return self.instance_of(hinted.type) if isinstance(hinted, k.Other) else hinted

    def do_AugAssign(self, node: cst.AugAssign) -> None:
        left, right = self.eval(node.target), self.eval(node.value)
        operator = type(node.operator).__name__.removesuffix("Assign")
        # what is written in place stays what it is: its dtype, its shape, a parameter
        kept = left == k.Other("numpy.ndarray") or isinstance(left, k.Tensor)
        kind = left if kept else self.binary(left, right, operator)
        if isinstance(left, k.Sequence) and left.type == "list" and operator == "Add":
            kind = k.Sequence(k.join(left.item, k.element(right)))  # it stays one, of whatever
        if isinstance(right, k.Sequence) and f"{dotted(node.target)}{_EMPTY}" in self.env:
            kind = right if isinstance(left, k.Sequence) and left.type == right.type else kind
        if isinstance(left, k.Module) and left.cls in CONTAINERS and operator == "Add":
            kind = grown(left, k.element(right), with_item(left.item, k.element(right)))
        if not isinstance(node.target, cst.Subscript):
            self.bind_target(node.target, kind)

    def bind_target(self, target: cst.CSTNode, kind: k.Kind) -> None:
        if type(target) is cst.Name:
            kind = self.shown(target, kind)
            self.env[target.value] = kind
            self._forget(target.value)
            self.facts.kinds[target] = kind
        elif isinstance(target, (cst.Tuple, cst.List)):
            self._unpack(target, kind)
        elif isinstance(target, cst.Attribute):
            receiver = self.eval(target.value)
            kind = k.UNKNOWN if isinstance(kind, k.NumberOrTensor) else kind
            kind = self._registered(receiver, target.attr.value, kind)
            self.facts.kinds[target] = kind
            path = dotted(target)
            if path is not None:
                self._know(path, kind)
                self.env.pop(f"{path}{_EMPTY}", None)
            if isinstance(receiver, k.Module) and receiver.cls in self.facts.classes:
                info = self.facts.classes[receiver.cls]
                self._set(info, target.attr.value, kind, receiver)
                self.join_attribute(info, target.attr.value, kind)
                joined = info.attributes.get(target.attr.value)
                role = getattr(joined, "role", "")
                if path and isinstance(kind, k.Tensor) and role:
                    self._know(path, k.Tensor(kind.rank, kind.dtype, role))
            elif isinstance(receiver, k.Other) and receiver.type in self.facts.classes:
                info = self.facts.classes[receiver.type]
                self._set(info, target.attr.value, kind, receiver)
                self.join_attribute(info, target.attr.value, kind)
        elif isinstance(target, cst.Subscript):
            value = self.eval(target.value)
            for element in target.slice:
                index = element.slice
                self.eval(index.value if isinstance(index, cst.Index) else index)
            self.facts.kinds[target] = kind
            if isinstance(value, k.Mapping):
                new = kind if isinstance(value.value, k.Unknown) else k.join(value.value, kind)
                self.bind_target(target.value, k.Mapping(new))
            elif isinstance(value, k.Sequence) and value.type == "list":
                sliced = isinstance(target.slice[0].slice, cst.Slice)
                item = k.join(value.item, k.element(kind) if sliced else kind)
                if item != value.item:
                    self.bind_target(target.value, k.Sequence(item, "list"))
            elif isinstance(value, k.Module) and value.cls in PARAMETERS:
                new = kind if isinstance(kind, k.Module) else k.Tensor(role="param")
                if isinstance(new, k.Module) or isinstance(value.item, k.Module):  # one in another
                    new = new if value.item in (None, k.UNKNOWN) else k.join(value.item, new)
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
            item = k.unpacked(kind, i, len(elements), star)
            if isinstance(element, cst.StarredElement):
                item = k.Sequence(k.element(kind), "list")
            self.bind_target(element.value, item)

    def _set(self, info: ClassInfo, name: str, kind: k.Kind, receiver: k.Kind) -> None:
        """What is assigned to a property is handed to its setter."""
        setter = info.method(f"{name}.setter")
        if setter is None:
            return
        params = [*setter.node.params.posonly_params, *setter.node.params.params]
        if len(params) != 2:
            return
        before = setter.handed.get(params[1].name.value, {}).get(None)
        node, self._call_node = self._call_node, None
        self.call_own(setter, [(None, kind if before is None else k.join(before, kind))], receiver)
        self._call_node = node

    def _registered(self, receiver: k.Kind, name: str, kind: k.Kind) -> k.Kind:
        """A tensor assigned to the name of a parameter or buffer is that parameter's or buffer's new value."""
        info = self.facts.classes.get(receiver.cls) if isinstance(receiver, k.Module) else None
        known = info.attribute(name) if info is not None else None
        if known is None and info is not None and info.torch_base not in (None, "torch.nn.Module"):
            known = self.attribute(k.Module(info.torch_base or ""), name)
        known = known.inner if isinstance(known, k.Optional) else known
        if isinstance(kind, k.Tensor) and not kind.role and isinstance(known, k.Tensor):
            return k.Tensor(kind.rank, kind.dtype, known.role)
        built = self.function is not None and self.function.short != "__init__"
        if built and getattr(kind, "role", "") == "buffer" and not k.is_registered(known):
            return k.without_role(kind)  # under another name a tensor is no buffer
        if built and isinstance(kind, k.Unknown) and isinstance(known, k.Tensor):
            # torch lets only a tensor, or None, take the place of a registered one
            return k.Tensor(role="buffer") if known.role == "buffer" else kind
        return kind

    def assign_attribute(self, name: str, kind: k.Kind) -> None:
        if self.owner is not None:
            self.join_attribute(self.owner, name, kind)
            self._know(f"self.{name}", kind)

    def join_attribute(self, info: ClassInfo, name: str, kind: k.Kind) -> None:
        before = info.attributes.get(name)
        if begins_clearly(self.facts, info, name, kind):
            info.attributes[name] = kind  # what it is made of was not known before
        Statements._joined(info, name, kind)
        if info.attributes.get(name) != before:
            for reader in info.readers:
                reader.dirty = True

    @staticmethod
    def _joined(info: ClassInfo, name: str, kind: k.Kind) -> None:
        known = info.attributes.get(name)
        kind = widen(kind)
        if known is not None and name in info.declared:
            known = k.in_role_of(known, kind)
        if isinstance(kind, k.Tensor) and not kind.role and info.is_state(name):
            kind = k.Tensor(kind.rank, kind.dtype, "buffer")
        if stays_unclear(info, name, kind):
            return
        if known is None or (isinstance(known, k.Unknown)):
            info.attributes[name] = kind
        elif known == k.Sequence(k.UNKNOWN, "list") and isinstance(kind, k.Sequence):
            info.attributes[name] = kind
        elif gathers(known, kind):
            info.attributes[name] = kind  # the list was only gathered for the container
        elif gathers(kind, known):
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

    def _branch(
        self, env: Env, body: Callable[[], None], later: bool | None = None
    ) -> tuple[Env, bool]:
        """What is known behind a branch, and whether it leaves.

        Args:
          later: for a branch of an ``if``, whether its test is never so in the first round of a loop.
        """
        if self._first_rounds and later is not None:
            return self._first_branch(env, body, later)
        self.env, self._ended = dict(env), False
        body()
        ended, self._ended = self._ended, False
        return self.env, ended

    def _first_branch(self, env: Env, body: Callable[[], None], later: bool) -> tuple[Env, bool]:
        """A branch in the first round of a loop, which does not run then if it reads what the loop has yet to bind."""
        missed, self._missed = self._missed, set()
        jumps = len(self._jumps)
        end, ended = self._branch(env, body)
        unbound = {name for name in self._missed if name not in env}
        self._missed |= missed
        if later or (unbound and not unbound.isdisjoint(self._bound_in_rounds())):
            del self._jumps[jumps:]
            self._left_out = True
            return end, True
        return end, ended

    def _bound_in_rounds(self) -> set[str]:
        return {
            name
            for loop in self._first_rounds
            for line in self.facts.tree.within(loop.body, cst.Assign)
            for one in line.targets
            for name in bound(one.target)
        }

    def _merge(self, branches: Sequence[tuple[Env, bool]]) -> None:
        alive = [env for env, ended in branches if not ended]
        if not alive:
            self.env, self._ended = branches[0][0] if branches else self.env, True
            return
        merged = dict(alive[0])
        for env in alive[1:]:
            # most of what stands in both is the module's and the very same
            differing = [(n, x) for n, x in merged.items() if env.get(n) is not x]
            gone = [name for name, _ in differing if name not in env and "." in name]
            for name, kind in differing:
                if name in env and kind != env[name]:
                    merged[name] = _either(name, merged, env)
            for name in gone:
                del merged[name]
            for name, kind in env.items():
                if name not in merged and "." not in name:
                    merged[name] = kind
        self.env = merged

    def do_If(self, node: cst.If) -> None:
        self.eval(node.test)
        base = dict(self.env)
        known = self._static_truth(node.test)
        told = self.narrow(node.test, True), self.narrow(node.test, False)
        later = [self._leave_out(one) for one in told]
        then, other = {**base, **told[0]}, {**base, **told[1]}
        first = self._branch(then, lambda: self.statement(node.body), later[0])
        orelse = node.orelse
        second = self._branch(
            other,
            (lambda: self.statement(orelse)) if orelse is not None else lambda: None,
            later[1],
        )
        if known is True:
            self._merge([first])
            self._never(orelse)
        elif known is False:
            self._merge([second])
            self._never(node.body)
        else:
            holds = settled_by_calls(self.function, node.test)
            self._merge([first, second] if holds is None else [first if holds else second])

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
        outer = self._jumps, self._missed, self._later, self._left_out
        given = self.function.params if self.function is not None else {}
        nothing = {n for n, kind in before.items() if kind == k.NONE and n not in given}
        self._later = outer[2] | nothing
        self._first_rounds.append(node)
        for _ in range(_ROUNDS):
            self._jumps, self._missed, self._left_out = [], set(), False
            enter()
            body = self._branch(self.env, lambda: self.statement(node.body))
            self._merge([(before, False), body, *self._jumps])
            self._later = outer[2]
            if self._first_rounds and self._first_rounds[-1] is node:
                self._first_rounds.pop()
            outer[1].update(self._missed)
            after = self.env
            same = all(after.get(n) is kind or after.get(n) == kind for n, kind in before.items())
            known = not any(n in after and n not in before for n in self._missed)
            if same and known and not self._left_out:
                break  # a second walk would see what the first one saw
            before = dict(self.env)
        self._jumps, self._missed, self._later, self._left_out = outer
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
            never, run = without(self.facts, node)
            for one in never:
                self._never(one)
            self.block([*run, handler.body])
            return
        base = dict(self.env)
        branches = [self._branch(base, lambda: self.statement(node.body))]
        for handler in node.handlers:
            start = {**base, **branches[0][0]} if not branches[0][1] else base
            branches.append(self._branch(start, partial(self.statement, handler.body)))
        # An import that fails binds None or a flag in its handler: the first branch is the one that runs.
        self._merge(branches)
        may_fail = imports_another(node.body)
        for name, kind in branches[0][0].items():
            if not isinstance(kind, (k.Namespace, k.Class, k.Function)):
                continue
            others = [end[name] for end, _ in branches[1:] if name in end]
            instead = any(o != kind and isinstance(o, (k.Class, k.Function)) for o in others)
            if (
                not instead
                or (of_torch(kind.name) and not may_fail)
                or kind.name in (*self.facts.classes, *self.facts.names)
            ):
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


_ROUNDS = 3
"""Walks over the body of a loop: a name that one binds tells another in the next."""
_EMPTY = ".[]"
"""Behind the name of a list or dict: nothing has been put into it."""


def _either(name: str, first: Env, second: Env) -> k.Kind:
    """What a name is behind two branches; a list that is empty behind one holds what the other has put into it."""
    a, b = first[name], second[name]
    if type(a) is type(b) and isinstance(a, (k.Sequence, k.Mapping)):
        empty = f"{name}{_EMPTY}"
        if (empty in first) != (empty in second):
            return b if empty in first else a
    return k.join(a, b) if "." in name else k.either(a, b)


def void(_: object) -> None:
    """Evaluate for its effect."""

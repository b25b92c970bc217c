"""Which names may share memory: torch's views, assignments and containers do; JAX arrays never change."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property, partial

import libcst as cst

from migrator import syntax
from migrator.convert import of_callable
from migrator.convert.bindings import begins_as_number
from migrator.convert.context import Context
from migrator.convert.free_names import of_around
from migrator.convert.own_state import given_state, kept_by_call, property_of
from migrator.convert.parts import (
    NOT_KNOWN,
    OBJECT,
    OVERLAP,
    TWICE,
    as_kind,
    boxes,
    gives_tensor,
    holds,
    holds_layers,
    in_another,
    is_plain,
    is_tensor,
    lists,
    paths,
    piece,
    pieces,
    runs,
    separable,
    shared,
    takes_slice,
    together,
)
from migrator.convert.passing import makes_new, passes
from migrator.convert.results import Returned, each_result
from migrator.convert.returned import ANY, returned_arguments, returns_state
from migrator.convert.sharing import (
    CONTAINERS,
    COPIES,
    KEEPING,
    NUMPY_VIEWS,
    OVERLAPPING,
    PLAIN,
    STORING,
    VIEWS,
    called_layer,
    is_view,
    is_view_index,
    kept_as,
    may_be_shared,
    of_copy,
    of_scipy,
    without_forward,
)
from migrator.convert.starred import spread_arguments
from migrator.convert.states import State, all_memory, going_on, merged, rejoin, stands
from migrator.convert.trips import Step, read_in_turns, run_after, surely_runs
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.distributions import DISTRIBUTIONS

LIBRARIES = ("torch.", "einops.")


class Aliases:
    """May-alias facts of one function: before each statement, the memory each name may stand for."""

    def __init__(self, ctx: Context, info: FunctionInfo) -> None:
        self.ctx = ctx
        self.info = info
        self.before: dict[cst.CSTNode, State] = {}
        self.order: list[Step] = []  # the statements as they stand
        self.given = Returned()
        self._fresh = 0
        self._closures: dict[str, set[str]] = {}  # and what they read
        self._parted: dict[cst.CSTNode, int] = {}
        self._runs: dict[cst.Assign, tuple[cst.Assign, int]] = {}
        self._storing: dict[cst.CSTNode, list[cst.Call | cst.NamedExpr]] = {}
        state: State = {}
        params = info.node.params
        stars = [s for s in (params.star_arg, params.star_kwarg) if isinstance(s, cst.Param)]
        for param in (*params.posonly_params, *params.params, *params.kwonly_params, *stars):
            state[param.name.value] = frozenset({f"param:{param.name.value}"})
        self.after = self._block(info.node.body, state, ())

    # --- the walk -------------------------------------------------------------------------------------------------

    def _block(self, body: cst.CSTNode, state: State, loops: tuple[cst.CSTNode, ...]) -> State:
        statements = (
            body.body if isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)) else [body]
        )
        if len(statements) > 1:
            self._runs |= runs(self.ctx, statements)
        dead, given = body in self.ctx.facts.dead, copy(self.given)
        for statement in statements:
            state = self._statement(statement, state, loops)
        self.given = given if dead else self.given
        return {} if dead else state

    def _note(
        self,
        node: cst.CSTNode,
        parts: Sequence[cst.CSTNode],
        state: State,
        loops: tuple[cst.CSTNode, ...],
    ) -> None:
        if node not in self.before:
            self.order.append((node, parts, loops))
        self.before[node] = dict(state)  # the last time round a loop begins with all of the others
        for part in parts:
            self._keep(part, state)

    def _statement(self, node: cst.CSTNode, state: State, loops: tuple[cst.CSTNode, ...]) -> State:
        if isinstance(node, cst.SimpleStatementLine):
            self._note(node, node.body, state, loops)
            for small in node.body:
                state = self._small(small, state)
            return state
        if isinstance(node, cst.BaseSmallStatement):
            self._note(node, [node], state, loops)
            return self._small(node, state)
        if isinstance(node, cst.If):
            self._note(node, [node.test], state, loops)
            tree, other = self.ctx.facts.tree, dict(state)
            first = going_on(tree, node.body, self._block(node.body, dict(state), loops))
            if isinstance(node.orelse, cst.If):
                other = self._statement(node.orelse, other, loops)
            elif node.orelse is not None:
                block = node.orelse.body
                other = going_on(tree, block, self._block(block, other, loops))
            return merged(first, other)
        if isinstance(node, (cst.For, cst.While)):
            parts = [node.iter] if isinstance(node, cst.For) else [node.test]
            self._note(node, parts, state, loops)
            for _ in range(3):  # what the second time hands on is seen in the third
                inner = dict(state)
                if isinstance(node, cst.For):
                    self._bind_round(node.target, node.iter, state, inner)
                after = self._block(node.body, inner, (*loops, node))
                state = merged(state, after)
            if isinstance(node, cst.For) and surely_runs(self.ctx, self.info, node):
                state = after  # what it rebinds is no longer what it was
            return state if node.orelse is None else self._block(node.orelse.body, state, loops)
        if isinstance(node, cst.With):
            self._note(node, [i.item for i in node.items], state, loops)
            for item in node.items:
                if item.asname is not None:
                    self._bind(item.asname.name, self.memory(item.item, state), state)
            return self._block(node.body, state, loops)
        if isinstance(node, cst.Try):
            self._note(node, [], state, loops)
            after = self._block(node.body, dict(state), loops)
            ended = after if node.orelse is None else self._block(node.orelse.body, after, loops)
            for one in node.handlers:
                ended = merged(ended, self._block(one.body, merged(state, after), loops))
            return (
                ended if node.finalbody is None else self._block(node.finalbody.body, ended, loops)
            )
        if isinstance(node, cst.Match):
            return self._match(node, state, loops)
        self._note(node, [node], state, loops)
        if isinstance(node, cst.FunctionDef):  # it holds what it reads
            state[node.name.value] = self._held(node, state)
            self._closures.setdefault(node.name.value, set()).update(syntax.names(node.body))
        return state

    def _bind_round(
        self, target: cst.CSTNode, node: cst.BaseExpression, state: State, inner: State
    ) -> None:
        """What a round of a loop gets: each of ``for a, b in zip(first, second)`` is of its own sequence."""
        zipped = isinstance(node, cst.Call) and self.ctx.facts.callee(node) == "builtins.zip"
        args = node.args if isinstance(node, cst.Call) and zipped else []
        plain = isinstance(target, cst.Tuple) and not any(a.star or a.keyword for a in args)
        if not plain or len(target.elements) != len(args):  # type: ignore[attr-defined]
            return self._bind(target, self._elements(node, state), inner)
        for element, item in zip(target.elements, args, strict=True):  # type: ignore[attr-defined]
            self._bind_round(element.value, item.value, state, inner)

    def _elements(self, node: cst.BaseExpression, state: State) -> frozenset[str]:
        """The memory of what a loop goes over: that of the arguments of ``zip(…)``, not of the pairs it makes."""
        if isinstance(node, cst.Call) and self.ctx.facts.callee(node) in CONTAINERS:
            return frozenset().union(*(self._elements(a.value, state) for a in node.args))
        return self.memory(node, state)

    def _match(self, node: cst.Match, state: State, loops: tuple[cst.CSTNode, ...]) -> State:
        self._note(node, [node.subject], state, loops)
        memory, after = self.memory(node.subject, state), dict(state)
        for case in node.cases:
            inner = dict(state)
            for name in syntax.names(case.pattern):
                inner[name] = memory
            after = merged(after, self._block(case.body, inner, loops))
        return after

    def _small(self, node: cst.CSTNode, state: State) -> State:
        for given in of_callable.yielded(self.ctx, self.info, node):
            self.given.all |= self.memory(given, state)
        if isinstance(node, cst.Assign):
            memory = self.memory(node.value, state)
            to = {n for t in node.targets for n in syntax.names(t.target)}
            lambdas = self.ctx.facts.tree.within(node.value, cst.Lambda)
            read = [{*syntax.names(one.body)} for one in lambdas]
            if isinstance(node.value, (cst.Name, cst.IfExp)):  # f = go
                named = self._closures.keys() & syntax.names(node.value).keys()
                read += [{*self._closures[one]} for one in named]
            for called in to if read else ():
                self._closures.setdefault(called, set()).update(*read)
            for target in node.targets:
                each = of_callable.mapped(self.ctx, target.target, node.value, state, self.memory)
                each = each or self._taken_apart(node, target.target, state)
                if each:
                    for name, one in each:
                        self._bind(name, one, state)
                elif isinstance(target.target, (cst.Tuple, cst.List)) and isinstance(
                    node.value, cst.Tuple
                ):
                    pairs = zip(target.target.elements, node.value.elements, strict=False)
                    for name, one in [(a.value, self.memory(b.value, state)) for a, b in pairs]:
                        self._bind(name, one, state)
                elif of_callable.gives_new(self.ctx, target.target, node.value, memory):
                    self._bind_new(target.target, state)
                else:
                    self._bind(target.target, memory, state)
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            self._bind(node.target, self.memory(node.value, state), state)
        elif isinstance(node, cst.AugAssign):
            number = begins_as_number(self.ctx.facts.tree, self.info.node, node.target)
            added = syntax.code(node.target)
            if added in state and (number or not state[added]):  # what is added to a number is new
                state[added] |= {f"new:+{added}"}
            memory = frozenset[str]() if number else self.memory(node.value, state)
            if holds(self.ctx.kind(node.target), memory):  # feats += [x]
                self._put(node.target, memory, state)
        elif isinstance(node, cst.Return) and node.value is not None:
            self.given.add(node.value, lambda value: self.memory(value, state))
        return state

    def _taken_apart(
        self, node: cst.Assign, target: cst.BaseExpression, state: State
    ) -> list[tuple[cst.CSTNode, frozenset[str]]]:
        """``a, b = x.chunk(2)``: each name and the part that it is given."""
        if isinstance(target, (cst.Tuple, cst.List)) and isinstance(node.value, cst.Call):
            each = self._results(node.value, state)
            plain = not any(isinstance(e, cst.StarredElement) for e in target.elements)
            if each and plain and len(each) == len(target.elements):
                return [(e.value, one) for e, one in zip(target.elements, each, strict=True)]
        in_run = self._runs.get(node)
        if in_run is not None:
            return [(target, self._in_run(node.value, *in_run, state))]
        found = pieces(self.ctx, target, node.value)
        if found is None:
            return []
        number = self._parted.setdefault(node, len(self._parted))
        rejoin(state, number)
        memory = self.memory(found[0], state)
        if not separable(memory, is_tensor(self.ctx, found[0])):
            return []
        return [(one, piece(memory, number, i)) for i, one in enumerate(found[1])]

    def _in_run(
        self, value: cst.BaseExpression, first: cst.Assign, place: int, state: State
    ) -> frozenset[str]:
        """The memory of one of the slices that assignments in a row take."""
        number = self._parted.setdefault(first, len(self._parted))
        if place == 0:
            rejoin(state, number)
        memory = self.memory(value, state)
        return piece(memory, number, place) if separable(memory, tensor=True) else memory

    def _results(self, call: cst.Call, state: State) -> Sequence[frozenset[str]]:
        """The memory of each result of a function of the file."""
        info, memory = self._called(call), partial(self.memory, state=state)
        return [] if info is None else each_result(self.ctx, info, call, memory, self._count)

    def _count(self) -> int:
        self._fresh += 1
        return self._fresh

    def _called(self, call: cst.Call) -> FunctionInfo | None:
        """The function of the project that a call runs."""
        kind = self.ctx.kind(call.func)
        if not isinstance(kind, k.Module):
            return self.ctx.facts.names.get(self.ctx.facts.callee(call) or "")
        own = self.ctx.facts.classes.get(kind.cls)
        return own.method("forward") if own is not None else None

    def _bind_new(self, target: cst.CSTNode, state: State) -> None:
        """Each name is given a tensor of its own, those of ``out, (h, c) = self.lstm(x)`` too."""
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._bind_new(element.value, state)
        else:
            self._bind(target, self._new(), state)

    def _bind(self, target: cst.CSTNode, memory: frozenset[str], state: State) -> None:
        kind = self.ctx.kind(target)
        if isinstance(target, cst.Name):
            state[target.value] = as_kind(kind, memory)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._bind(element.value, memory, state)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value, memory, state)
        elif isinstance(target, cst.Attribute) and not is_plain(kind):
            self._put(target, memory, state)
        elif isinstance(target, cst.Subscript):
            holder = self.ctx.kind(target.value)
            if not isinstance(holder, k.Tensor):  # a tensor copies what it gets
                self._put(target.value, memory, state)

    # --- containers -----------------------------------------------------------------------------------------------

    def _keep(self, part: cst.CSTNode, state: State) -> None:
        """What a statement's expressions bind, and what they hand to containers to keep."""
        calls = self._storing.get(part)
        if calls is None:
            calls = self.ctx.facts.tree.within(part, cst.Call, cst.NamedExpr)
            self._storing[part] = calls
        for call in calls:
            if isinstance(call, cst.NamedExpr):
                self._bind(call.target, self.memory(call.value, state), state)
            else:
                self._store(call, state)

    def _store(self, call: cst.Call, state: State) -> None:
        """``feats.append(x)``; and a function that is handed a list may put there what it is handed beside it."""
        func, name = call.func, self.ctx.facts.callee(call) or ""
        own = name in self.ctx.facts.names
        if isinstance(func, cst.Attribute) and func.attr.value in STORING and not own:
            kind = self.ctx.kind(func.value)
            if not isinstance(kind, (k.Tensor, k.Module)):
                self._put(func.value, self._arguments(call, state), state)
        if isinstance(func, cst.Attribute) and func.attr.value in KEEPING:
            self._put(kept_as(func, call), self._arguments(call, state), state)
        info = self._called(call)
        for value, attribute in kept_by_call(self.ctx, info, call) if info is not None else ():
            self._hold(attribute, self.memory(value, state), state)
        if len(call.args) < 2 or name.startswith(("torch.", "Tensor.", "builtins.", "einops.")):
            return
        memory = [self.memory(a.value, state) for a in call.args]
        for i, item in enumerate(call.args):
            if isinstance(item.value, cst.Name) and boxes(memory[i]):
                others = [m for j, m in enumerate(memory) if j != i]
                self._put(item.value, frozenset().union(*others), state)

    def _put(self, holder: cst.BaseExpression, memory: frozenset[str], state: State) -> None:
        """A container or object holds this memory from now on, under each name it has."""
        while isinstance(holder, cst.Subscript):
            holder = holder.value
        if isinstance(holder, cst.Attribute):
            for path in paths(holder, self.memory(holder.value, state)):
                self._hold(path, memory, state)
            holder = holder.value
            if not isinstance(holder, cst.Name) or not boxes(state.get(holder.value, frozenset())):
                return
        if not isinstance(holder, cst.Name):
            return
        mine = state.get(holder.value, frozenset())
        again = {TWICE} if shared(mine, memory) else set()
        containers = boxes(mine)
        for name, theirs in state.items():
            if name == holder.value or containers & theirs:
                state[name] = theirs | memory | again

    def _hold(self, attribute: str, memory: frozenset[str], state: State) -> None:
        """An attribute holds this memory from now on: who writes to a name of it writes to what the attribute holds."""
        for name, theirs in state.items():
            if shared(theirs, memory):
                state[name] = theirs | {f"attr:{attribute}"}

    def _held(self, node: cst.CSTNode, state: State) -> frozenset[str]:
        """The memory of the names that a function or lambda reads around itself."""
        return frozenset().union(*[state.get(name, frozenset()) for name in syntax.names(node)])

    # --- expressions ----------------------------------------------------------------------------------------------

    def memory(self, node: cst.CSTNode, state: State) -> frozenset[str]:
        """The memory an expression's result may share."""
        kind = self.ctx.kind(node)
        if is_plain(kind) or holds_layers(kind):
            return frozenset()
        if isinstance(node, cst.Name):
            known = state.get(node.value)
            return of_around(self.ctx, self.info, node) if known is None else known
        if isinstance(node, cst.Attribute):
            if is_view(self.ctx.kind(node.value), node.attr.value):
                tensor = isinstance(self.ctx.kind(node.value), k.Tensor)
                kept = () if tensor else self._attribute(node.value, node, state)
                return self.memory(node.value, state).union(kept)
            read = property_of(self.ctx, node)
            if read is not None:
                held = self.memory(node.value, state)
                made = of_callable.is_made_here(held) and returns_state(self.ctx, read)
                return held if made else self._given_state(read, node)
            return self._attribute(node.value, node, state)
        if isinstance(node, cst.Subscript):
            if not is_view_index(self.ctx, node):
                return self._new()
            held = as_kind(kind, self.memory(node.value, state))
            return in_another(kind, held, self._new("box")) if takes_slice(node) else held
        if isinstance(node, cst.Call):
            return self._call(node, state)
        return self._composed(node, state)

    def _composed(self, node: cst.CSTNode, state: State) -> frozenset[str]:
        """The memory of what is put together of other expressions."""
        if isinstance(node, cst.IfExp):
            return self.memory(node.body, state) | self.memory(node.orelse, state)
        if isinstance(node, cst.BooleanOperation):
            return self.memory(node.left, state) | self.memory(node.right, state)
        if isinstance(node, (cst.Tuple, cst.List, cst.Dict, cst.Set)):
            return self._new("box") | together([self.memory(e.value, state) for e in node.elements])
        if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Plus):
            return self._new()
        if isinstance(node, (cst.NamedExpr, cst.Await, cst.UnaryOperation)):  # +x is x itself
            value = node.value if isinstance(node, cst.NamedExpr) else node.expression
            return self.memory(value, state)
        if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)):
            inner, clause = dict(state), node.for_in
            while clause is not None:
                self._bind(clause.target, self.memory(clause.iter, inner), inner)
                clause = clause.inner_for_in  # type: ignore[assignment]
            element = node.value if isinstance(node, cst.DictComp) else node.elt
            memory = self.memory(element, inner)
            names = inner.keys() & syntax.names(element).keys()
            each = any(inner[name] is not state.get(name) for name in names)
            again = (
                frozenset() if each or not shared(memory, all_memory(state)) else frozenset({TWICE})
            )
            return self._new("box") | memory | again
        if isinstance(node, cst.Lambda):  # all that a call of it gives, but for what it is handed
            params = [p for p in syntax.children(node.params) if isinstance(p, cst.Param)]
            told = [(p.name.value, p.default) for p in params]
            own = {n: self.memory(d, state) if d else frozenset() for n, d in told}
            return self.memory(node.body, {**state, **own})
        if isinstance(node, cst.BinaryOperation):
            both = together([self.memory(node.left, state), self.memory(node.right, state)])
            if isinstance(node.operator, cst.Multiply) and len(both) > 1:  # [x] * 3
                both |= {TWICE}
            tensor = isinstance(self.ctx.kind(node), k.Tensor) or gives_tensor(self.ctx, node)
            if lists(both) and not tensor:  # feats + [x]
                return both
        return self._new()

    def _given_state(self, info: FunctionInfo, node: cst.BaseExpression) -> frozenset[str]:
        """The memory of a module's state that a function gives, or else new memory."""
        return given_state(self.ctx, info, node) or self._new()

    def _attribute(self, owner: cst.CSTNode, node: cst.CSTNode, state: State) -> frozenset[str]:
        held = self.memory(owner, state)
        if of_callable.is_made_here(held):
            return held
        of_module = isinstance(self.ctx.kind(owner), k.Module)
        mine = {f"{kind}:{syntax.code(owner)}" for kind in ("param", "attr")}
        given = {one for one in held - mine if not of_module or one.startswith("new:")}
        return frozenset(f"attr:{path}" for path in paths(node, held)) | given

    def _new(self, what: str = "new") -> frozenset[str]:
        return frozenset({f"{what}:{self._count()}"})

    def _arguments(self, node: cst.Call, state: State) -> frozenset[str]:
        args = of_callable.given_to(self.ctx, node)
        given = may_be_shared(self.ctx.facts.callee(node) or "", args)
        return frozenset().union(*[self.memory(one, state) for one in given])

    def _call(self, node: cst.Call, state: State) -> frozenset[str]:
        ctx = self.ctx
        node = without_forward(ctx, node)
        name = called_layer(ctx, node) or ctx.facts.callee(node) or ""
        short = name.rpartition(".")[2]
        if name in COPIES or of_scipy(ctx, node):
            return self._new()
        if name == "builtins.getattr" and node.args:
            return self._attribute(node.args[0].value, node, state)
        out = [a.value for a in node.args if a.keyword is not None and a.keyword.value == "out"]
        if out and name.startswith("torch."):
            return self.memory(out[0], state)
        if isinstance(ctx.kind(node), k.Other) and name.startswith(DISTRIBUTIONS):
            # its parameters are what it is made with
            return self._arguments(node, state) | self._new("box")
        if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
            if short in VIEWS or (short.endswith("_") and not short.endswith("__")):
                overlap = {OVERLAP} if short in OVERLAPPING else set()
                return self.memory(node.func.value, state) | overlap
            return self._new()
        if name == "torch.nn.Module()":
            return self._of_one(ctx.kind(node.func), node, state)
        if name.startswith(LIBRARIES):
            overlap = {OVERLAP} if short in OVERLAPPING or name == "einops.repeat" else set()
            new = makes_new(ctx, node, name) or (short == "from_numpy" and of_copy(node))
            return (self._new() if new else self._arguments(node, state)) | overlap
        kind, info = ctx.kind(node.func), self._called(node)
        if isinstance(kind, k.Class) and name in ctx.facts.classes:  # it holds what it is made of
            passed = self._passed(info, node, state) if info is not None else None
            return (self._arguments(node, state) if passed is None else passed) | self._new(OBJECT)
        memory = partial(self.memory, state=state)
        held = of_callable.held_by_called(
            ctx, self.info, node.func, info, self._closures, state, memory
        )
        if info is not None:
            kept = self._given_state(info, node)
            if held and isinstance(node.func, cst.Attribute) and not of_callable.writes(ctx, info):
                kept = frozenset()  # of what is made here
            held |= of_callable.held_by_handed(ctx, node, self._closures, memory)
            return held | kept | self._passed(info, node, state) | _overlapping(ctx, info)
        arguments = self._arguments(node, state)
        if name.startswith("numpy."):  # torch.from_numpy shares it
            if short not in NUMPY_VIEWS:
                return self._new()
            method = name.startswith("numpy.ndarray.") and isinstance(node.func, cst.Attribute)
            return self.memory(node.func.value, state) if method else arguments  # type: ignore[attr-defined]
        if name.startswith(PLAIN):
            return frozenset()
        if name in CONTAINERS or name == "copy.copy":
            arguments |= self._new("box")
        receiver: frozenset[str] = frozenset()
        if isinstance(node.func, cst.Attribute):
            # a layer that is an attribute gives memory of what it is handed, not of the module around it; the
            # `parameters()` of what is not known are Variables, which are read through the module
            owners = (
                kind,
                ctx.kind(node.func.value),
                kind.bound if isinstance(kind, k.Function) else None,
            )
            if not any(isinstance(one, k.Module) for one in owners):
                receiver = self.memory(node.func.value, state)
            if node.func.attr.value == "copy":  # which tensors do not have
                receiver |= self._new("box")
        return held | arguments | receiver

    def _of_one(self, kind: k.Kind, node: cst.Call, state: State) -> frozenset[str]:
        """What a module that is of one of several classes gives, or of any: ``nn.Identity`` gives its argument."""
        if not isinstance(kind, k.Module) or not kind.among:
            return self._arguments(node, state)
        found, arguments = frozenset[str](), self._arguments(node, state)
        for one in kind.among:
            own = self.ctx.facts.classes.get(one.cls)
            forward = own.method("forward") if own is not None else None
            if forward is None:
                found |= arguments if passes(self.ctx, one) else frozenset()
                continue
            found |= self._given_state(forward, node) | _overlapping(self.ctx, forward)
            found |= self._passed(forward, node, state)
        return found or self._new()

    def _passed(self, info: FunctionInfo, node: cst.Call, state: State) -> frozenset[str]:
        """The memory of the arguments that a function may return."""
        returned = returned_arguments(self.ctx, info)
        if ANY in returned or not of_callable.calls_by_name(node, info):
            return self._arguments(node, state) if returned else frozenset()
        given = [
            item.value for name, item in spread_arguments(self.ctx, node, info) if name in returned
        ]
        return frozenset().union(*[self.memory(one, state) for one in given])

    # --- questions ------------------------------------------------------------------------------------------------

    def read_after(self, statement: cst.CSTNode) -> frozenset[str]:
        """Names read once a statement has run, in it again when it stands in a loop."""
        position = next((i for i, (n, _, _) in enumerate(self.order) if stands(n, statement)), None)
        if position is None:
            return frozenset().union(*self._reads)
        behind = run_after(self.ctx.facts.tree, self.order, position)
        found = frozenset[str]().union(*(self._reads[i] for i in behind))
        return found | read_in_turns(self.order, self._reads, position)

    @cached_property
    def _reads(self) -> list[frozenset[str]]:
        """The names that each statement reads, in order."""
        found = [frozenset().union(*map(syntax.reads, parts)) for _, parts, _ in self.order]
        for _ in self._closures:  # functions that call functions
            found = [one.union(*(self._closures.get(n, ()) for n in one)) for one in found]
        return found


def aliases(ctx: Context, info: FunctionInfo) -> Aliases:
    """The alias facts of a function, computed once."""
    if info not in ctx.aliases:
        ctx.aliases[info] = None
        ctx.aliases[info] = Aliases(ctx, info)
    found = ctx.aliases[info]
    assert isinstance(found, Aliases)
    return found


def _overlapping(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """Whether parts of what a function returns may share memory with one another."""
    if info.settled is not None or (info in ctx.aliases and ctx.aliases[info] is None):
        return frozenset({NOT_KNOWN})
    return aliases(ctx, info).given.all & {OVERLAP, NOT_KNOWN, TWICE}

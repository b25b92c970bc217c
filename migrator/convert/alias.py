"""Who else sees an in-place write: which names may share memory, and which of them are read later.

torch's views and assignments share memory; JAX arrays never change. A write may become a rebinding only when
nothing that shares the written memory is read afterwards under another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules import definitions

VIEWS = frozenset(
    "view view_as reshape reshape_as flatten unflatten transpose t permute squeeze unsqueeze expand expand_as "
    "narrow select split chunk unbind tensor_split contiguous detach unfold movedim moveaxis swapaxes swapdims "
    "diagonal as_strided ravel to type float double half long int bool bfloat16 type_as cpu cuda requires_grad_ "
    "view_as_real view_as_complex hsplit vsplit dsplit adjoint real imag T mT H mH data numpy broadcast_to "
    "rearrange values indices relu_ squeeze_ unsqueeze_ transpose_ t_ detach_".split()
)
"""Names whose result may share memory with their first argument."""
_PASSING_LAYERS = frozenset(
    "Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout "
    "Sequential".split()
)
State = dict[str, frozenset[str]]


class Aliases:
    """May-alias facts of one function: before each statement, the memory each name may stand for."""

    def __init__(self, ctx: Context, info: FunctionInfo) -> None:
        self.ctx = ctx
        self.info = info
        self.before: dict[cst.CSTNode, State] = {}
        self.order: list[tuple[cst.CSTNode, frozenset[str], tuple[cst.CSTNode, ...]]] = []
        self.returned: frozenset[str] = frozenset()
        self._fresh = 0
        state: State = {}
        params = info.node.params
        for param in (*params.posonly_params, *params.params, *params.kwonly_params):
            state[param.name.value] = frozenset({f"param:{param.name.value}"})
        for star in (params.star_arg, params.star_kwarg):
            if isinstance(star, cst.Param):
                state[star.name.value] = frozenset({f"param:{star.name.value}"})
        self._block(info.node.body, state, ())

    # --- the walk -------------------------------------------------------------------------------------------------

    def _block(self, body: cst.CSTNode, state: State, loops: tuple[cst.CSTNode, ...]) -> State:
        statements = (
            body.body if isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)) else [body]
        )
        for statement in statements:
            state = self._statement(statement, state, loops)
        return state

    def _note(
        self,
        node: cst.CSTNode,
        parts: Sequence[cst.CSTNode],
        state: State,
        loops: tuple[cst.CSTNode, ...],
    ) -> None:
        known = self.before.get(node)
        self.before[node] = _merged(known, state) if known is not None else dict(state)
        reads: set[str] = set()
        for part in parts:
            reads |= _reads(part)
        if known is None:
            self.order.append((node, frozenset(reads), loops))

    def _statement(self, node: cst.CSTNode, state: State, loops: tuple[cst.CSTNode, ...]) -> State:
        if isinstance(node, cst.SimpleStatementLine):
            self._note(node, list(node.body), state, loops)
            for small in node.body:
                state = self._small(small, state)
            return state
        if isinstance(node, cst.BaseSmallStatement):
            self._note(node, [node], state, loops)
            return self._small(node, state)
        if isinstance(node, cst.If):
            self._note(node, [node.test], state, loops)
            first = self._block(node.body, dict(state), loops)
            other = dict(state)
            if isinstance(node.orelse, cst.If):
                other = self._statement(node.orelse, other, loops)
            elif node.orelse is not None:
                other = self._block(node.orelse.body, other, loops)
            return _merged(first, other)
        if isinstance(node, (cst.For, cst.While)):
            parts = [node.iter] if isinstance(node, cst.For) else [node.test]
            self._note(node, parts, state, loops)
            for _ in range(2):
                inner = dict(state)
                if isinstance(node, cst.For):
                    self._bind(node.target, self.memory(node.iter, state), inner)
                state = _merged(state, self._block(node.body, inner, (*loops, node)))
            return state
        if isinstance(node, cst.With):
            self._note(node, [i.item for i in node.items], state, loops)
            return self._block(node.body, state, loops)
        if isinstance(node, cst.Try):
            self._note(node, [], state, loops)
            after = self._block(node.body, dict(state), loops)
            for handler in node.handlers:
                after = _merged(after, self._block(handler.body, dict(after), loops))
            if node.finalbody is not None:
                after = self._block(node.finalbody.body, after, loops)
            return after
        self._note(node, [node], state, loops)
        return state

    def _small(self, node: cst.CSTNode, state: State) -> State:
        if isinstance(node, cst.Assign):
            memory = self.memory(node.value, state)
            for target in node.targets:
                if isinstance(target.target, (cst.Tuple, cst.List)) and isinstance(
                    node.value, cst.Tuple
                ):
                    pairs = zip(target.target.elements, node.value.elements, strict=False)
                    found = [(a.value, self.memory(b.value, state)) for a, b in pairs]
                    for name, one in found:
                        self._bind(name, one, state)
                elif self._gives_new(target.target, node.value, memory):
                    for element in target.target.elements:
                        self._bind(element.value, self._new(), state)
                else:
                    self._bind(target.target, memory, state)
        elif isinstance(node, cst.AnnAssign) and node.value is not None:
            self._bind(node.target, self.memory(node.value, state), state)
        elif isinstance(node, cst.Return) and node.value is not None:
            self.returned |= self.memory(node.value, state)
        return state

    def _gives_new(
        self, target: cst.CSTNode, value: cst.CSTNode, memory: frozenset[str]
    ) -> TypeGuard[cst.Tuple | cst.List]:
        """``w, i = torch.topk(x, 2)``: each result of a function of torch that makes no view is a tensor of its own."""
        if not isinstance(target, (cst.Tuple, cst.List)) or not isinstance(value, cst.Call):
            return False
        called = self.ctx.facts.callee(value) or ""
        fresh = all(one.startswith("new:") for one in memory)
        return fresh and called.startswith(("torch.", "Tensor.")) and len(memory) == 1

    def _bind(self, target: cst.CSTNode, memory: frozenset[str], state: State) -> None:
        if isinstance(target, cst.Name):
            state[target.value] = frozenset() if _is_plain(self.ctx.kind(target)) else memory
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._bind(element.value, memory, state)
        elif isinstance(target, cst.Attribute) and not _is_plain(self.ctx.kind(target)):
            for name, theirs in state.items():
                if theirs & memory:  # who writes to the name writes to what the attribute now holds
                    state[name] = theirs | {f"attr:{syntax.code(target)}"}

    # --- expressions ----------------------------------------------------------------------------------------------

    def memory(self, node: cst.CSTNode, state: State) -> frozenset[str]:
        """The memory an expression's result may share."""
        kind = self.ctx.kind(node)
        if _is_plain(kind):
            return frozenset()
        if isinstance(node, cst.Name):
            return state.get(node.value, frozenset())
        if isinstance(node, cst.Attribute):
            if node.attr.value in VIEWS or not self._is_object(node.value):
                return self.memory(node.value, state)
            owner = self.memory(node.value, state)
            if owner and all(one.startswith("new:") for one in owner):
                return owner  # part of a value made here
            return frozenset({f"attr:{syntax.code(node)}"})
        if isinstance(node, cst.Subscript):
            return self.memory(node.value, state) if _is_view_index(self.ctx, node) else self._new()
        if isinstance(node, cst.IfExp):
            return self.memory(node.body, state) | self.memory(node.orelse, state)
        if isinstance(node, cst.BooleanOperation):
            return self.memory(node.left, state) | self.memory(node.right, state)
        if isinstance(node, (cst.Tuple, cst.List, cst.Dict)):
            return frozenset().union(*[self.memory(e.value, state) for e in node.elements])
        if isinstance(node, cst.NamedExpr):
            return self.memory(node.value, state)
        if isinstance(node, cst.Call):
            return self._call(node, state)
        return self._new()

    def _is_object(self, node: cst.CSTNode) -> bool:
        return not isinstance(self.ctx.kind(node), k.Tensor)

    def _new(self) -> frozenset[str]:
        self._fresh += 1
        return frozenset({f"new:{self._fresh}"})

    def _call(self, node: cst.Call, state: State) -> frozenset[str]:
        ctx = self.ctx
        name = ctx.facts.callee(node) or ""
        short = name.rpartition(".")[2]
        arguments = frozenset().union(*[self.memory(a.value, state) for a in node.args])
        if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
            if short in VIEWS or (short.endswith("_") and not short.endswith("__")):
                return self.memory(node.func.value, state)
            return self._new()
        if name == "einops.pack":
            return self._new()  # always a copy; the shapes beside it share nothing
        if name.startswith(("torch.", "einops.")):
            in_place = inplace_argument(name, node) is not None
            cls = short.removesuffix("()")
            if name.endswith("()"):
                passing = _may_pass(ctx, node, cls) or ("inplace", True) in _module_args(ctx, node)
                return arguments if passing else self._new()
            in_place = in_place or (short.endswith("_") and not short.endswith("__"))
            return arguments if short in VIEWS or in_place or short == "dropout" else self._new()
        kind = ctx.kind(node.func)
        info = ctx.facts.names.get(name)
        if isinstance(kind, k.Module):
            own = ctx.facts.classes.get(kind.cls)
            info = own.method("forward") if own is not None else None
        if info is not None:
            kept = (
                frozenset({f"attr:{syntax.code(node)}"})
                if returns_state(ctx, info)
                else self._new()
            )
            return kept | (arguments if returns_argument(ctx, info) else frozenset())
        if name.startswith(("builtins.len", "builtins.int", "builtins.range", "math.", "numpy.")):
            return frozenset()
        receiver: frozenset[str] = frozenset()
        if isinstance(node.func, cst.Attribute):
            # a layer that is an attribute gives memory of what it is handed, not of the module around it
            if not isinstance(ctx.kind(node.func.value), k.Module):
                receiver = self.memory(node.func.value, state)
        return arguments | receiver if isinstance(kind, k.Unknown) else arguments

    # --- questions ------------------------------------------------------------------------------------------------

    def read_after(self, statement: cst.CSTNode) -> frozenset[str]:
        """Names read once a statement has run, in it again when it stands in a loop."""
        position = next((i for i, (n, _, _) in enumerate(self.order) if n is statement), None)
        if position is None:
            return frozenset().union(*[reads for _, reads, _ in self.order])
        loops = self.order[position][2]
        found: frozenset[str] = frozenset()
        for i, (_, reads, around) in enumerate(self.order):
            if i > position or (loops and loops[0] in around):
                found |= reads
        return found


def _may_pass(ctx: Context, node: cst.Call, cls: str) -> bool:
    """Whether a layer may return memory of its input: a Sequential does only if all of its children may."""
    if cls != "Sequential":
        return cls in _PASSING_LAYERS
    kind = ctx.kind(node.func)
    if not isinstance(kind, k.Module):
        return True
    children = [child for name, child in kind.args if name.isdigit()]
    if children:
        return all(_passes(ctx, child) for child in children)
    return _passes(ctx, kind.item)


def _passes(ctx: Context, kind: object) -> bool:
    """Whether a layer of a Sequential may return memory of its input."""
    if not isinstance(kind, k.Module) or kind.cls == "torch.nn.Module":
        return not isinstance(kind, k.Module)
    own = ctx.facts.classes.get(kind.cls)
    forward = own.method("forward") if own is not None else None
    if forward is not None:
        return returns_argument(ctx, forward)
    return kind.cls.rpartition(".")[2] in _PASSING_LAYERS or ("inplace", True) in kind.args


def _module_args(ctx: Context, node: cst.Call) -> tuple[tuple[str, object], ...]:
    kind = ctx.kind(node.func)
    return kind.args if isinstance(kind, k.Module) else ()


def inplace_argument(name: str, node: cst.Call) -> cst.Arg | None:
    """The ``inplace`` argument of a call of a torch function, by keyword or by place; None for False."""
    found = next((a for a in node.args if a.keyword and a.keyword.value == "inplace"), None)
    for rule in definitions.ops(name) if found is None else ():
        places = [p.name for p in rule.params if p.mode == "positional"]
        at = places.index("inplace") if "inplace" in places else len(node.args)
        if at < len(node.args) and all(a.keyword is None for a in node.args[: at + 1]):
            found = node.args[at]
    if found is None or (isinstance(found.value, cst.Name) and found.value.value == "False"):
        return None
    return found


def _is_view_index(ctx: Context, node: cst.Subscript) -> bool:
    """Whether an index makes a view: integers, slices, None and Ellipsis do; tensors and lists copy."""
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Index):
            kind = ctx.kind(index.value)
            if isinstance(kind, k.Tensor) or isinstance(index.value, cst.List):
                return False
    return True


def _reads(node: cst.CSTNode) -> set[str]:
    """Names an expression or statement reads; what a plain assignment binds is not read."""
    if isinstance(node, cst.Assign):
        found = set(syntax.names(node.value))
        for target in node.targets:
            if not isinstance(target.target, (cst.Name, cst.Tuple, cst.List)):
                found |= set(syntax.names(target.target))
        return found
    return set(syntax.names(node))


def _is_plain(kind: k.Kind) -> bool:
    """Whether a value holds no memory of a tensor: a number, a shape, a list of shapes."""
    if isinstance(kind, k.Tuple):
        return bool(kind.items) and all(map(_is_plain, kind.items))
    if isinstance(kind, k.Sequence):
        return _is_plain(kind.item)
    return k.scalar_type(kind) is not None or isinstance(kind, (k.DType, k.Device))


def _merged(a: State, b: State) -> State:
    return {n: a.get(n, frozenset()) | b.get(n, frozenset()) for n in {**a, **b}}


def aliases(ctx: Context, info: FunctionInfo) -> Aliases:
    """The alias facts of a function, computed once."""
    if info not in ctx.aliases:
        ctx.aliases[info] = None
        ctx.aliases[info] = Aliases(ctx, info)
    found = ctx.aliases[info]
    assert isinstance(found, Aliases)
    return found


def returns_argument(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function may return memory of one of its arguments (a recursive one is taken to)."""
    if info.settled is not None:
        return info.settled.returns_argument
    if info in ctx.aliases and ctx.aliases[info] is None:
        return True
    return any(m.startswith("param:") for m in aliases(ctx, info).returned)


def returns_state(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function may return an attribute, which others read too (a recursive one is judged without)."""
    if info.settled is not None:
        return info.settled.returns_state
    if info in ctx.aliases and ctx.aliases[info] is None:
        return False
    return any(m.startswith("attr:") for m in aliases(ctx, info).returned)


def root_name(node: cst.CSTNode) -> cst.Name | None:
    """The name at the root of ``x``, ``x[i]``, ``x[i][j]``, ``x.data``; None for other targets."""
    while isinstance(node, cst.Subscript) or (
        isinstance(node, cst.Attribute) and node.attr.value == "data"
    ):
        node = node.value
    return node if isinstance(node, cst.Name) else None


def check_mutation(ctx: Context, node: cst.CSTNode, target: cst.CSTNode) -> None:
    """Raise a Failure when somebody else may see the write to a target."""
    frame = ctx.frame
    name = root_name(target)
    if frame is None or name is None or not ctx.statements:
        return
    facts = aliases(ctx, _outermost(ctx))
    statement = ctx.statements[-1].node
    state = facts.before.get(statement)
    if state is None:
        return
    memory = state.get(name.value, frozenset())
    later = facts.read_after(statement)
    for other, theirs in state.items():
        if other != name.value and other in later and memory & theirs:
            raise Failure(
                node,
                "MUT001",
                f"writing `{name.value}` in place also changes `{other}`, which is read later",
                f"copy first (`{name.value} = {name.value}.clone()`) or write the change to both",
            )
    kind = ctx.kind(name)
    variable = isinstance(kind, k.Tensor) and bool(kind.role)  # written where everybody reads it
    buffer = state_of(ctx, name)
    for one in sorted(memory):  # a set of strings has another order in every process
        if one.startswith("attr:") and not variable and one != buffer:
            raise Failure(
                node,
                "MUT001",
                f"writing `{name.value}` in place also changes `{one.removeprefix('attr:')}`",
                "assign the new value to the attribute",
            )
        if one.startswith("param:"):
            _check_callers(ctx, node, one.removeprefix("param:"))


def state_of(ctx: Context, name: cst.Name) -> str | None:
    """The buffer that a name stands for, which is given its new value too."""
    from migrator.convert.passes.state_alias import named_state

    found = named_state(ctx, name)
    return f"attr:{syntax.code(found)}" if found is not None else None


def _outermost(ctx: Context) -> FunctionInfo:
    return ctx.frames[-1].info


def _check_callers(ctx: Context, node: cst.CSTNode, param: str) -> None:
    """A function that writes to its argument is safe when no caller reads that argument afterwards."""
    _check_calls(ctx, node, param, ctx.frames[-1].info)


def _check_calls(ctx: Context, node: cst.CSTNode, param: str, info: FunctionInfo) -> None:
    known = ctx.mutated.setdefault(info, set())
    if param in known and info is not ctx.frames[-1].info:
        return
    known.add(param)
    if info.owner is not None and info.owner.gradient and info.short == "backward":
        raise Failure(
            node,
            "MUT003",
            f"the gradient `{param}` is changed in place, and others may get the same tensor in torch",
            f"work on a copy (`{param} = {param}.clone()`)",
        )
    for call, caller in info.call_sites.items():
        if not isinstance(call, cst.Call):
            continue
        for name, item in bound_arguments(call, info):
            if name != param or not isinstance(ctx.kind(item.value), (k.Tensor, k.Unknown)):
                continue
            if caller is None:
                if root_name(item.value) is not None:
                    raise _seen(node, param, item.value, "the code around its call")
                continue
            if not taken_back(ctx, call, info, item):
                _check_call(ctx, node, param, info, caller, call, item)


def _check_call(
    ctx: Context,
    node: cst.CSTNode,
    param: str,
    info: FunctionInfo,
    caller: FunctionInfo,
    call: cst.Call,
    item: cst.Arg,
) -> None:
    """One caller of a function that writes to an argument."""
    facts = aliases(ctx, caller)
    statement = _statement_of(facts, call)
    if statement is None:
        if root_name(item.value) is not None:
            raise _seen(node, param, item.value, f"{caller.short}()")
        return
    state = facts.before[statement]
    memory = facts.memory(item.value, state)
    later = facts.read_after(statement) - rebound(statement)
    inside = syntax.names(call)
    later |= {n for n in state if reads_in(statement, n) > inside.get(n, 0)}
    if any(n in later and (m & memory) for n, m in state.items()):
        raise _seen(node, param, item.value, f"{caller.short}()")
    for one in sorted(memory):
        if one.startswith("attr:"):
            raise _seen(node, param, item.value, f"{caller.short}()")
        if one.startswith("param:") and caller is not info:
            _check_calls(ctx, node, one.removeprefix("param:"), caller)


def _seen(node: cst.CSTNode, param: str, value: cst.BaseExpression, where: str) -> Failure:
    text = " ".join(syntax.code(value).split())[:40]
    return Failure(
        node,
        "MUT003",
        f"the argument `{param}` is changed in place and `{text}` is read later by {where}",
        "work on a copy, or return the changed tensor",
    )


def taken_back(ctx: Context, call: cst.Call, info: FunctionInfo, item: cst.Arg) -> bool:
    """Whether a call is a statement of its own whose result becomes the argument's new value."""
    from migrator.convert.passes import targets
    from migrator.convert.passes.initializers import writes_first_parameter

    first = call.args[0] if call.args else None
    if item is not first or item.keyword is not None or not writes_first_parameter(ctx, info):
        return False
    if not any(s.value is call for s in ctx.source.index.of_type(cst.Expr)):
        return False
    value = item.value
    while isinstance(value, cst.Attribute) and value.attr.value == "data":
        value = value.value
    return (
        isinstance(ctx.kind(value), k.Tensor) or targets.found_at_run_time(ctx, value) is not None
    )


def bound_arguments(node: cst.Call, info: FunctionInfo) -> list[tuple[str, cst.Arg]]:
    """The arguments of a call with the parameters they go to, up to the first starred one."""
    queue = list(info.params)
    if not info.has_receiver:
        params = info.node.params
        queue = [p.name.value for p in (*params.posonly_params, *params.params)]
    found = []
    for item in node.args:
        if item.star:
            break
        if item.keyword is not None:
            found.append((item.keyword.value, item))
        elif queue:
            found.append((queue.pop(0), item))
    return found


def reads_in(statement: cst.CSTNode, name: str) -> int:
    """How often a statement reads a name; what it binds is not read."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return syntax.names(statement).get(name, 0)
    parts = [s.value if isinstance(s, cst.Assign) else s for s in statement.body]
    return sum(syntax.names(part).get(name, 0) for part in parts)


def rebound(statement: cst.CSTNode) -> set[str]:
    found = set()
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Assign):
            for target in small.targets:
                if isinstance(target.target, cst.Name):
                    found.add(target.target.value)
                elif isinstance(target.target, cst.Tuple):
                    found |= {
                        e.value.value
                        for e in target.target.elements
                        if isinstance(e.value, cst.Name)
                    }
    return found


def _statement_of(facts: Aliases, call: cst.CSTNode) -> cst.CSTNode | None:
    for statement, _, _ in facts.order:
        if call in set(syntax.walk(statement)) and isinstance(
            statement, (cst.SimpleStatementLine, cst.BaseSmallStatement)
        ):
            return statement
    return None


def check_in_place_layer(ctx: Context, node: cst.Call) -> None:
    """``relu(x, inplace=True)``: the result replaces x, which must not be read as it was."""
    if not node.args or not ctx.statements:
        return
    name = root_name(node.args[0].value)
    if name is None:
        return
    check_mutation(ctx, node, name)
    frame = ctx.frame
    if frame is None:
        return
    statement = ctx.statements[-1]
    facts = aliases(ctx, frame.info)
    again = reads_in(statement.node, name.value) > syntax.names(node).get(name.value, 0)
    later = statement.target != name.value and name.value in facts.read_after(statement.node)
    if again or later:
        raise Failure(
            node,
            "MUT002",
            f"`{name.value}` is changed by inplace=True and read again later",
            f"assign the result back to `{name.value}`, or drop inplace=True if the old value is meant",
        )

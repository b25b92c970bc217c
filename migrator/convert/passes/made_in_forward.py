"""Layers that a forward pass makes: their weights are drawn then, by torch and by JAX from different numbers.

What is carried over from torch comes too early for them, so that no two runs can be compared; and a layer that is kept
changes what the model consists of while it is traced.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.containing import levels
from migrator.convert.context import Context, Failure
from migrator.convert.passes.freezing import forward_reaches
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

DRAWN = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Embedding EmbeddingBag Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
        "RNN LSTM GRU RNNCell LSTMCell GRUCell MultiheadAttention Transformer TransformerEncoder TransformerDecoder "
        "TransformerEncoderLayer TransformerDecoderLayer"
    ).split()
)
"""Layers of torch whose constructors draw weights."""
_WRITING = frozenset(
    "weight bias weights data load_state_dict copy_ parameters named_parameters init deepcopy".split()
)
"""What a function names that gives the layers it makes weights of its own."""


@converts(cst.Call, of=(k.Class, k.Function))
def drawn_in_forward(rw: Rewriter, node: cst.Call) -> None:
    """``self.proj = nn.Linear(x.shape[1], 4)`` in ``forward``, or in what it calls.

    Raises:
      Failure: the layer is one whose weights are drawn, and nothing here writes them.
    """
    ctx = rw.ctx
    frame = ctx.frame
    if frame is None:
        return
    made = _made(ctx, node)
    if not made:
        return
    info: FunctionInfo | None = frame.info
    while info is not None and not forward_reaches(ctx, info):
        info = info.outer
    if info is None or _WRITING & _words(ctx, info):
        return
    what = f"the forward pass makes {made}, whose weights are drawn then"
    raise Failure(node, "API003", what, "make it in the constructor")


_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


@converts(cst.Call, called=_PARAMETERS)
def parameter_in_forward(rw: Rewriter, node: cst.Call) -> None:
    """``self.scores = nn.Parameter(torch.zeros(n))`` in ``forward``, or in what it calls.

    Raises:
      Failure: the constructor has not surely made it before: what is asked for its gradient in that very pass has none.
        Or it has: what is asked then is another one than the one that an optimiser knows.
    """
    ctx = rw.ctx
    if ctx.frame is None or not ctx.facts.tree.has(node):
        return
    if not forward_reaches(ctx, ctx.frame.info):
        return
    name, owner = _kept_as(ctx, node), ctx.frame.owner
    place = _stored_in(ctx, node, ctx.frame.info) if name is None else f"self.{name}"
    if place is None or _is_made_here(ctx, place.partition(".")[0], ctx.frame.info):
        return
    makers = () if name is None or owner is None else owner.lineage()
    if not makers or any(_surely_makes(one.method("__init__"), str(name)) for one in makers):
        what = f"the forward pass puts another parameter in the place of `{place}`, which has the gradient then"
        advice = (
            f"compute with a value of its own, or write to the parameter: `{place}.data.copy_(…)`"
        )
        raise Failure(node, "API003", what, advice)
    what = f"the forward pass makes the parameter `{name}`: no checkpoint, optimiser or gradient before it has it"
    raise Failure(node, "API003", what, "make it in the constructor")


@converts(cst.Assign, targets=(cst.Attribute,))
def parameter_of_a_layer(rw: Rewriter, node: cst.Assign) -> None:
    """``self.fc.weight = nn.Parameter(w)`` in ``forward``, which is asked as a whole."""
    if isinstance(node.value, cst.Call) and rw.ctx.facts.callee(node.value) in _PARAMETERS:
        parameter_in_forward(rw, node.value)


def _kept_as(ctx: Context, made: cst.Call) -> str | None:
    """The attribute of the module that a parameter is kept under, if it is."""
    above, parent = [None, *ctx.facts.tree.around(made)][-2:]
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        if isinstance(target, cst.Attribute) and ctx.is_self(target.value):
            return target.attr.value
    if isinstance(parent, cst.Arg) and isinstance(above, cst.Call) and len(above.args) == 2:
        first, func = above.args[0].value, above.func
        named = isinstance(func, cst.Attribute) and func.attr.value == "register_parameter"
        if named and isinstance(first, cst.SimpleString):
            return str(first.evaluated_value)
    return None


def _stored_in(ctx: Context, made: cst.CSTNode, info: FunctionInfo) -> str | None:
    """What a parameter is put into, as the code says it: ``self.fc.weight``, ``self.ws[0]``; also by way of a name."""
    parent = ctx.facts.tree.around(made)[-1]
    if isinstance(parent, (cst.Assign, cst.AnnAssign)):
        whole = parent.targets if isinstance(parent, cst.Assign) else [parent]
        for target in (one.target for one in whole):
            if isinstance(target, (cst.Attribute, cst.Subscript)):
                return syntax.code(target)
            for one in ctx.facts.tree.within(info.node.body, cst.Assign):
                if isinstance(target, cst.Name) and target.deep_equals(one.value):
                    to = one.targets[0].target
                    if isinstance(to, (cst.Attribute, cst.Subscript)):
                        return syntax.code(to)
    return None


def _is_made_here(ctx: Context, root: str, info: FunctionInfo) -> bool:
    """Whether a name stands for a layer that the function itself makes: ``blur = nn.Conv2d(1, 1, 3)``."""
    bound = ctx.facts.tree.within(info.node.body, cst.Assign, cst.For)
    values = [
        None if isinstance(one, cst.For) else one.value
        for one in bound
        for target in (
            [one.target] if isinstance(one, cst.For) else [t.target for t in one.targets]
        )
        if root in syntax.names(target) and not isinstance(target, (cst.Attribute, cst.Subscript))
    ]
    calls = [one for one in values if isinstance(one, cst.Call)]
    made = all(isinstance(ctx.facts.kind(one.func), k.Class) for one in calls)
    return bool(values) and len(calls) == len(values) and made


def _surely_makes(init: FunctionInfo | None, name: str) -> bool:
    """Whether a constructor assigns an attribute under no condition something else than None."""
    for line in init.node.body.body if init is not None else ():
        for one in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(one, cst.Assign) and syntax.code(one.value) != "None":
                targets = [t.target for t in one.targets if isinstance(t.target, cst.Attribute)]
                if any(t.attr.value == name and isinstance(t.value, cst.Name) for t in targets):
                    return True
    return False


def _words(ctx: Context, info: FunctionInfo) -> set[str]:
    """The names that a function reads, those of attributes too."""
    found = ctx.facts.tree.within(info.node, cst.Attribute, cst.Name)
    return {one.attr.value if isinstance(one, cst.Attribute) else one.value for one in found}


def _made(ctx: Context, node: cst.Call) -> str:
    """What a call makes of which the weights are drawn: the name of a layer, or what a function of another file does."""
    kind = ctx.facts.kind(node.func)
    if isinstance(kind, k.Class) and _only_keeps(ctx, kind.name):
        return ""
    if isinstance(kind, k.Class):
        return (
            f"a {kind.name.rpartition('.')[2]}" if _draws(ctx, k.Module(kind.name), set()) else ""
        )
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or not info.builds or info.short == "__init__":
        return ""
    if info.settled is None and not ctx.plan.builds_time(info):
        return ""  # which is told there
    keeps = info.owner is not None and info.owner.torch_base is not None and info.returns == k.NONE
    drawn = info.returns is not None and _draws(ctx, info.returns, set())
    return f"layers in {info.short}()" if keeps or drawn else ""


def _only_keeps(ctx: Context, name: str) -> bool:
    """Whether a class that is no module makes nothing: ``Solver(self.func, x)`` keeps the layers it is handed."""
    info = ctx.facts.classes.get(name)
    if info is None or any(one.torch_base for one in info.lineage()):
        return False
    makers = [one.methods.get("__init__") for one in info.lineage()]
    return all(
        one is None or not (one.builds or one.draws or one.settled or _calls_unknown(ctx, one))
        for one in makers
    )


def _calls_unknown(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function itself, functions within it aside, calls what is not known: a class perhaps."""
    calls = [n for n in syntax.own_nodes(info.node.body) if isinstance(n, cst.Call)]
    return info.calls_unknown and any(ctx.facts.callee(one) is None for one in calls)


def _draws(ctx: Context, kind: k.Kind, seen: set[str]) -> bool:
    """Whether layers whose weights are drawn are in a value of a kind."""
    for one in levels(kind):
        if not isinstance(one, k.Module):
            continue
        parts = [part for _, part in one.args if isinstance(part, k.Kind)]
        parts += [one.item] if isinstance(one.item, k.Kind) else []
        if one.cls in DRAWN or any(_draws(ctx, part, seen) for part in [*parts, *one.among]):
            return True
        info = ctx.facts.classes.get(one.cls)
        if info is not None and info.name not in seen:
            seen.add(info.name)
            if info.torch_base in DRAWN or _keeps_drawn(ctx, info, seen):
                return True
    return False


def _keeps_drawn(ctx: Context, info: ClassInfo, seen: set[str]) -> bool:
    kept = (kind for one in info.lineage() for kind in one.attributes.values())
    init = info.method("__init__")
    return (init is not None and init.draws) or any(_draws(ctx, kind, seen) for kind in kept)

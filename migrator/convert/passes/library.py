"""What published packages do around their models: loading checkpoints, marks for tracers, ``torch._assert``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.checkpoints import always_built, callee, checkpoint_read
from migrator.convert.context import Context, Failure
from migrator.convert.handed_state import loads_state, saves_state
from migrator.convert.passes.freezing import forward_reaches, in_forward
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.annotations import says_types
from migrator.infer.facts import FunctionInfo
from migrator.infer.symbols import BASED_ON_TORCH, CHECKS
from rules.definitions import module_file
from rules.elsewhere import WEIGHTS, advice_for

_SIGNATURES = {"inspect.signature": "signature_of", "inspect.getfullargspec": "argspec_of"}
_MARKS = frozenset(["torch.fx.wrap", "torch._C._log_api_usage_once"])
"""Calls that change nothing of what a model computes."""
_SEEDS = frozenset(
    [
        "torch.manual_seed",
        "torch.random.manual_seed",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
    ]
)
_LOADING = frozenset(["_load_from_state_dict"])
LOADING_HOOKS = frozenset(
    ["register_load_state_dict_pre_hook", "_register_load_state_dict_pre_hook"]
)
"""What registers a function that changes the names in a checkpoint before torch reads it."""


@converts(cst.Expr, called=_MARKS, values=(cst.Call,))
def mark(rw: Rewriter, node: cst.Expr) -> Any:
    """``torch.fx.wrap("f")`` goes."""
    return [] if _callee(rw, node.value) in _MARKS else None


@converts(cst.Expr, called=_SEEDS, values=(cst.Call,))
@converts(cst.Assign, called=_SEEDS, values=(cst.Call,))
def seed(rw: Rewriter, node: cst.Expr | cst.Assign) -> Any:
    """``torch.manual_seed(0)`` around a model goes: its numbers come from the ``rngs`` it is built with.

    So does ``self.seed = torch.manual_seed(0)``, where nobody asks for what that is."""
    if _callee(rw, node.value) not in _SEEDS:
        return None
    if isinstance(node, cst.Assign) and _is_asked_for(rw.ctx, node):
        return None
    if _computes(rw.ctx):
        what = "the global random generator is seeded while the model runs"
        raise Failure(node, "API003", what, "seed the nnx.Rngs that the model is built with")
    what = "the seed of torch's global random generator is left out"
    advice = "give the seed to nnx.Rngs"
    rw.ctx.report(node, "TRC013", what, advice, severity="info", blocks=False)
    return []


def _is_asked_for(ctx: Context, node: cst.Assign) -> bool:
    """Whether something may read what an assignment gives a name; it counts all that has that name."""
    target = node.targets[0].target
    name = (
        target.attr if isinstance(target, cst.Attribute) and ctx.is_self(target.value) else target
    )
    if len(node.targets) > 1 or not isinstance(name, cst.Name):
        return True
    if ctx.frame is None or isinstance(target, cst.Name):
        return sum(one.value == name.value for one in ctx.source.index.of_type(cst.Name)) > 1
    asked = sum(one.attr.value == name.value for one in ctx.source.index.of_type(cst.Attribute))
    return asked > _given(ctx, name.value) or asked_by_text(ctx, name.value)


def _given(ctx: Context, name: str) -> int:
    """How often an attribute of that name is only written, by a plain assignment: several classes may keep their seed."""
    targets = (
        target.target for one in ctx.source.index.of_type(cst.Assign) for target in one.targets
    )
    return sum(isinstance(one, cst.Attribute) and one.attr.value == name for one in targets)


_BY_TEXT = frozenset(
    "getattr setattr hasattr delattr attrgetter __getattribute__ __dict__ __slots__ vars eval exec".split()
)


def asked_by_text(ctx: Context, name: str) -> bool:
    """Whether a text may name an attribute: in a file that never asks for one so, it is the key of a dict, say."""
    if ctx.words.isdisjoint(_BY_TEXT):
        return False
    if f'"{name}"' in ctx.source.text or f"'{name}'" in ctx.source.text:
        return True
    for call in ctx.source.index.of_type(cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value in _BY_TEXT and len(call.args) > 1:
            held, asked = call.args[0].value, call.args[1].value
            own = isinstance(held, cst.Name) and held.value == "self" and _of_modules(ctx, call)
            if (own or isinstance(ctx.kind(held), k.Module)) and _may_say(ctx, asked, name):
                return True
    return False


def _of_modules(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether the class around a node is one of modules, or one that they may derive from."""
    classes = [n for n in ctx.source.index.around(node) if isinstance(n, cst.ClassDef)]
    info = next((c for c in ctx.facts.classes.values() if classes and c.node is classes[-1]), None)
    if info is None:
        return True
    return any(c.torch_base and info in c.lineage() for c in ctx.facts.classes.values())


def _may_say(ctx: Context, text: cst.BaseExpression, name: str) -> bool:
    """Whether a text that is put together may be a name: ``"op" + "t"``, ``f"{kind}_optimizer"``."""
    kind = ctx.kind(text)
    if isinstance(kind, k.Const):
        return kind.value == name
    parts: list[cst.CSTNode] = [text]
    if isinstance(text, cst.FormattedString):
        parts = [text.parts[0], text.parts[-1]] if text.parts else []
    elif isinstance(text, cst.BinaryOperation) and isinstance(text.operator, cst.Add):
        parts = [text.left, text.right]
        while isinstance(parts[0], cst.BinaryOperation):
            parts[0] = parts[0].left
    said = [_said(one) for one in parts]
    if not said:
        return not name
    lead, end = said[0] or "", said[-1] or ""
    return name.startswith(lead) and name.endswith(end) and len(name) >= max(len(lead), len(end))


def _said(part: cst.CSTNode) -> str | None:
    if isinstance(part, cst.FormattedStringText):
        return part.value
    return str(part.evaluated_value) if isinstance(part, cst.SimpleString) else None


def _computes(ctx: Context) -> bool:
    """Whether the code is part of what a model computes, where a seed decides the numbers that are drawn."""
    frame, owner = ctx.frame, ctx.owner
    if frame is None or ctx.in_init:
        return False
    if owner is not None and owner.torch_base:
        return True
    takes_tensors = any(isinstance(kind, k.Tensor) for kind in frame.info.params.values())
    return takes_tensors or in_forward(ctx)


@converts(cst.Expr, called=("torch._assert",), values=(cst.Call,))
def assertion(rw: Rewriter, node: cst.Expr) -> Any:
    """``torch._assert(test, message)`` → ``assert test, message``."""
    call = node.value
    if _callee(rw, call) != "torch._assert" or not isinstance(call, cst.Call):
        return None
    if len(call.args) != 2 or any(a.star or a.keyword is not None for a in call.args):
        return None
    test, message = (a.value for a in call.args)
    if isinstance(rw.ctx.facts.kind(test), k.Tensor) and not rw.ctx.in_init:
        advice = "use jax.experimental.checkify to keep it"
        what = "an assertion on a tensor's value is left out: it cannot be traced"
        rw.ctx.report(node, "TRC011", what, advice, severity="info", blocks=False)
        return []
    made = rw.visit(cst.Assert(test, message))
    if not isinstance(made, cst.Assert):
        return made
    # between the brackets of the call a line break meant nothing
    return syntax.changed(made, test=_on_one_line(made.test), msg=_on_one_line(made.msg))


@converts(cst.Expr, called=tuple(CHECKS), values=(cst.Call,))
def checked(rw: Rewriter, node: cst.Expr) -> Any:
    """``torch._check(test, lambda: message)`` → ``if not test: raise RuntimeError(message)``."""
    call, name = node.value, _callee(rw, node.value) or ""
    if not isinstance(call, cst.Call) or name not in CHECKS or not call.args:
        return None
    first, *more = call.args
    named = [a.keyword.value if a.keyword is not None else "message" for a in more]
    if first.star or first.keyword is not None or named not in ([], ["message"]):
        return None
    if (more and more[0].star) or isinstance(rw.ctx.facts.kind(first.value), k.Tensor):
        return None
    text: cst.BaseExpression = cst.SimpleString('"Expected cond to be True, but got False."')
    if more:
        given = more[0].value
        text = given.body if isinstance(given, cst.Lambda) else cst.Call(given)
    error = syntax.with_args(cst.Call(cst.Name(CHECKS[name])), [cst.Arg(_on_one_line(text))])
    if name.endswith("is_size"):
        size = _on_one_line(first.value)
        holds: cst.BaseExpression = syntax.substitute(syntax.parse("__i__ < 0"), {"__i__": size})
    else:
        holds = syntax.substitute(syntax.parse("not (__test__)"), {"__test__": first.value})
    body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Raise(error)])])
    return rw.visit(cst.If(holds, body))


def _on_one_line(node: Any) -> Any:
    if node is None or getattr(node, "lpar", None) or "\n" not in syntax.code(node):
        return node
    return syntax.parenthesized(node)


@converts(
    cst.Expr,
    named=("load_state_dict",),
    called=("Module.load_state_dict", "torch.save"),
    values=(cst.Call,),
)
@converts(cst.Return)
@converts(cst.Assign, values=(cst.Call,))
def loaded(rw: Rewriter, node: cst.Expr | cst.Return | cst.Assign) -> Any:
    """``model.load_state_dict(…)``, ``state_dict = torch.load(…)``: what reads or writes a torch checkpoint raises."""
    if rw.ctx.frame is None or not isinstance(node.value, cst.Call):
        return None
    reading = checkpoint_read(rw.ctx.facts, rw.ctx.frame.info, node)
    if reading is None:
        return None
    if reading.built:
        raise Failure(reading.place, "API001", reading.what, WEIGHTS)
    advice = advice_for("torch.save") if reading.writes else WEIGHTS
    rw.ctx.report(reading.place, "API001", reading.what, advice, severity="warning", blocks=False)
    return raising(_WRITES if reading.writes else _READS)


@converts(cst.Assign, called=("Module.state_dict",), values=(cst.Call,))
def filled_in(rw: Rewriter, node: cst.Assign) -> Any:
    """``own = self.state_dict()`` beside ``torch.load(…)``, which raises: what is made of both is never loaded."""
    call, tree, frame = node.value, rw.ctx.facts.tree, rw.ctx.frame
    if frame is None or not isinstance(call, cst.Call) or not tree.has(node) or call.args:
        return None
    if rw.ctx.facts.callee(call) != "Module.state_dict" or not isinstance(call.func, cst.Attribute):
        return None
    around = tree.around(node)
    block = around[-2] if len(around) > 1 else None
    if not isinstance(block, cst.IndentedBlock):
        return None
    beside = [
        small
        for line in block.body
        if isinstance(line, cst.SimpleStatementLine)
        for small in line.body
        if isinstance(small, (cst.Assign, cst.Expr)) and isinstance(small.value, cst.Call)
    ]
    readings = [checkpoint_read(rw.ctx.facts, frame.info, one) for one in beside]
    if not any(one is not None and not one.built and not one.writes for one in readings):
        return None
    rw.ctx.helpers.use("nnx")
    state = syntax.substitute(
        syntax.parse("nnx.state(__m__)"), {"__m__": rw.visit(call.func.value)}
    )
    return syntax.changed(node, value=state)


_READS = "this reads a torch checkpoint; convert its weights instead"
_WRITES = "this writes a torch checkpoint; save nnx.state(model) with Orbax instead"


def raising(what: str = _READS) -> cst.Raise:
    text = cst.SimpleString(f'"{what}"')
    return cst.Raise(syntax.with_args(cst.Call(cst.Name("NotImplementedError")), [cst.Arg(text)]))


@converts(cst.FunctionDef)
def loader(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """``_load_from_state_dict``, which torch calls to read checkpoints of older versions, goes.

    So does a method that is only registered as a hook for that.
    """
    info = rw.ctx.facts.functions.get(node)
    if info is None or info.owner is None or info.owner.torch_base is None:
        return None
    if node.name.value not in _LOADING:
        return [] if _only_loads(rw.ctx, info) else None
    _left_out(rw, node.name)
    return []


@converts(cst.Expr, named=LOADING_HOOKS, values=(cst.Call,))
def loading_hook(rw: Rewriter, node: cst.Expr) -> Any:
    """``self._register_load_state_dict_pre_hook(hook)``: the hook reads checkpoints of older versions."""
    func = node.value.func if isinstance(node.value, cst.Call) else None
    if not isinstance(func, cst.Attribute) or func.attr.value not in LOADING_HOOKS:
        return None
    if not isinstance(rw.ctx.kind(func.value), k.Module):
        raise Failure(
            node, "TRC006", "a hook is registered", "rename the keys before the state is loaded"
        )
    _left_out(rw, node)
    return []


def _only_loads(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a file speaks of a method once, where it is registered as a hook that reads checkpoints."""
    if LOADING_HOOKS.isdisjoint(ctx.words):
        return False
    tree, name = ctx.facts.tree, info.node.name
    named = [n for n in tree.of_type(cst.Name) if n.value == name.value and n is not name]
    texts = [t for t in tree.of_type(cst.SimpleString) if name.value in t.value]
    if len(named) != 1 or texts or not name.value.startswith("_"):
        return False
    around = tree.around(named[0])[::-1]
    call = around[2] if len(around) > 2 and isinstance(around[1], cst.Arg) else None
    within = any(one is info.owner.node for one in around) if info.owner is not None else False
    func = call.func if isinstance(call, cst.Call) else None
    return within and isinstance(func, cst.Attribute) and func.attr.value in LOADING_HOOKS


def _left_out(rw: Rewriter, node: cst.CSTNode) -> None:
    rw.ctx.report(
        node,
        "API001",
        "how checkpoints of older versions are read is left out",
        WEIGHTS,
        severity="warning",
        blocks=False,
    )


@converts(cst.FunctionDef)
def called_as_torch_does(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """``def __call__(self, x): return super().__call__(x)`` beside ``forward``, which is what is called, goes."""
    info = rw.ctx.facts.functions.get(node)
    owner = info.owner if info is not None else None
    if node.name.value != "__call__" or owner is None or not owner.torch_base:
        return None
    if "forward" not in owner.methods or node.decorators:
        return None
    classes = rw.ctx.facts.classes.values()
    family = [one for one in classes if owner in one.lineage() or one in owner.lineage()]
    if sum("__call__" in one.methods for one in family) != 1:
        return None
    lines = [line for line in node.body.body if not syntax.is_docstring(line)]
    only = lines[0] if len(lines) == 1 else None
    made = only.body[0] if isinstance(only, cst.SimpleStatementLine) else only
    if not isinstance(made, cst.Return) or not isinstance(made.value, cst.Call):
        return None
    given = [
        a.star + a.value.value
        for a in made.value.args
        if isinstance(a.value, cst.Name) and (a.keyword is None or a.keyword.value == a.value.value)
    ]
    params = node.params
    starred = [p for p in (params.star_arg, params.star_kwarg) if isinstance(p, cst.Param)]
    named = [*params.posonly_params, *params.params, *params.kwonly_params]
    wanted = [f"{one.star or ''}{one.name.value}" for one in [*named, *starred]][1:]
    if syntax.code(made.value.func) != "super().__call__" or len(given) != len(made.value.args):
        return None
    return [] if given == wanted and not any(p.default for p in named) else None


@converts(cst.FunctionDef)
def unpickled(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """``__setstate__``, by which a module reads pickles of older versions of itself, goes with torch's."""
    info = rw.ctx.facts.functions.get(node)
    if node.name.value != "__setstate__" or info is None or info.owner is None:
        return None
    calls = rw.ctx.source.index.within(node.body, cst.Call)
    names = [c.func.attr.value for c in calls if isinstance(c.func, cst.Attribute)]
    if info.owner.torch_base is None or "__setstate__" not in names:
        return None
    what = "how pickles of older versions are read is left out"
    rw.ctx.report(node.name, "API001", what, WEIGHTS, severity="info", blocks=False)
    return []


@converts(cst.Assign, targets=(cst.Name,))
def script_types(rw: Rewriter, node: cst.Assign) -> Any:
    """``__annotations__ = {"bias_k": torch._jit_internal.Optional[Tensor]}``, words for TorchScript, goes."""
    return [] if says_types(node) and rw.ctx.frame is None else None


@converts(cst.FunctionDef)
def checkpoint_reader(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """A function that loads a torch checkpoint or translates its keys, where that cannot be converted."""
    ctx = rw.ctx
    info = ctx.facts.functions.get(node)
    if info is None:
        return None
    if saves_state(ctx, info):
        advice = advice_for("torch.save")
        return or_raising(rw, node, info, "writes a torch checkpoint", advice, raising(_WRITES))
    if not _reads_checkpoint(rw, info) and not loads_state(ctx, info):
        return None
    return or_raising(rw, node, info, "reads a torch checkpoint", WEIGHTS, raising())


def or_raising(
    rw: Rewriter,
    node: cst.FunctionDef,
    info: FunctionInfo,
    does: str,
    advice: str,
    error: cst.Raise,
) -> cst.FunctionDef:
    """A function that is beside the model, which raises where it cannot be converted."""
    ctx = rw.ctx
    from migrator.convert.passes.functions import function_def, head

    before, saved = len(ctx.findings), ctx.helpers.snapshot()
    made = function_def(rw, node)
    if not any(finding.blocks for finding in ctx.findings[before:]):
        return made
    del ctx.findings[before:]
    ctx.helpers.restore(saved)
    what = f"{info.short}() {does} and raises in the converted code"
    ctx.report(node.name, "API001", what, advice, severity="warning", blocks=False)
    statements: list[cst.BaseStatement] = []
    first = node.body.body[0] if node.body.body else None
    if isinstance(first, cst.SimpleStatementLine) and isinstance(first.body[0], cst.Expr):
        if isinstance(first.body[0].value, cst.SimpleString):
            statements.append(first)
    statements.append(cst.SimpleStatementLine([error]))
    return syntax.changed(head(rw, node, info), body=cst.IndentedBlock(statements))


def _reads_checkpoint(rw: Rewriter, info: FunctionInfo) -> bool:
    """Whether a function does nothing that a converted model needs: it reads a checkpoint, and no more than that.

    What builds a model, or belongs to what one computes, has to convert, whatever its parameters are called."""
    if _is_from_pretrained(rw.ctx, info) or _needs_checkpoint(rw.ctx, info):
        return True
    if not _CHECKPOINTS & set(info.params) or info.builds:
        return False
    if info.short in ("__init__", "__new__", "forward", "__call__"):
        return False
    if isinstance(info.returns, (k.Tensor, k.Module)) or forward_reaches(rw.ctx, info):
        return False
    if always_built(info):
        return False
    called = (_callee(rw, node) or "" for node in syntax.walk(info.node))
    return "state_dict" in info.params or any(name.endswith(_READERS) for name in called)


def _is_from_pretrained(ctx: Context, info: FunctionInfo) -> bool:
    """A way to get a module beside its constructor, which ends with the weights of a torch model."""
    beside = {"classmethod", "staticmethod"} & set(info.decorators)
    if info.short != "from_pretrained" or not beside or info.owner is None:
        return False
    return bool(info.owner.torch_base) and not (forward_reaches(ctx, info) or always_built(info))


def _needs_checkpoint(ctx: Context, info: FunctionInfo) -> bool:
    """``def build_model(state_dict)``: nobody calls it who has no checkpoint, and it always reads that."""
    params = info.node.params
    wanted = {p.name.value for p in (*params.posonly_params, *params.params) if p.default is None}
    if not _CHECKPOINTS & wanted or info.owner is not None:
        return False
    if forward_reaches(ctx, info) or always_built(info):
        return False
    lines = ctx.facts.tree.within(info.node.body, cst.Expr)
    found = (checkpoint_read(ctx.facts, info, line) for line in lines)
    return any(one is not None and one.built and not one.writes for one in found)


_READERS = ("torch.load", "load_state_dict", "load_file", "load_checkpoint", "safe_open")
"""How the names of functions end that read a checkpoint."""

_CHECKPOINTS = frozenset(
    "state_dict checkpoint checkpoint_path ckpt ckpt_path weights_path pretrained_path".split()
)
"""Names of parameters that hold the weights of a torch model, or say where they lie."""


@converts(cst.FunctionDef)
def overload(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """A signature for TorchScript alone goes."""
    for decorator in node.decorators:
        if rw.ctx.facts.qualified_name(decorator.decorator) in _OVERLOADS:
            return []
    return None


@converts(cst.Expr, values=(cst.Call,))
def missing(rw: Rewriter, node: cst.Expr) -> Any:
    """``register()`` at the top of a file, of a function that no converted file defines."""
    linked, here = rw.ctx.facts.linked, rw.ctx.source.module
    call = node.value
    if linked is None or rw.ctx.frames or rw.ctx.classes or not isinstance(call, cst.Call):
        return None
    if isinstance(call.func, cst.Name) and linked.is_missing(here, call.func.value):
        raise Failure(
            node,
            "API004",
            f"{call.func.value} is not among the files that are converted",
            "convert the file that defines it as well",
        )
    return None


@converts(cst.Call)
def named_import(rw: Rewriter, node: cst.Call) -> Any:
    """``importlib.import_module("torch.fft")``, ``optional_import("einops.layers.torch")``: a library by its name."""
    func = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    first = node.args[0].value if node.args else None
    if not isinstance(func, cst.Name) or not isinstance(first, cst.SimpleString):
        return None
    module = first.raw_value
    if "import" not in func.value.lower() or not all(p.isidentifier() for p in module.split(".")):
        return None
    top = module.partition(".")[0]
    if top != "torch" and top not in BASED_ON_TORCH and not module.startswith("einops.layers"):
        return None
    raise Failure(
        node,
        "API004",
        f"{module}, which is torch's or built on it, is imported by its name",
        "write an import, which can be converted",
    )


@converts(cst.Call, called=_SIGNATURES)
def signature(rw: Rewriter, node: cst.Call) -> Any:
    """``inspect.signature(norm_layer)``, ``inspect.getfullargspec(norm_layer)``: of a class of modules Python sees that of the metaclass of Flax."""
    ctx = rw.ctx
    asked = _SIGNATURES.get(ctx.facts.qualified_name(node.func) or "")
    if asked is None or len(node.args) != 1:
        return None
    kind = ctx.kind(node.args[0].value)
    if isinstance(kind, k.Function) and kind.name:
        return None
    if isinstance(kind, k.Class) and kind.name.startswith("torch."):
        what = f"what {kind.name} becomes takes other arguments"
        raise Failure(node, "API001", what, "write down the answer")
    helper = ctx.helpers.need(module_file("rules.compat.factories"), asked)
    return syntax.changed(node, func=cst.Name(helper), args=[rw.visit(node.args[0])])


_OVERLOADS = frozenset(["torch.jit._overload", "torch.jit._overload_method"])


def _callee(rw: Rewriter, node: cst.CSTNode) -> str | None:
    return callee(rw.ctx.facts, node)

"""``nn.Module`` classes become ``nnx.Module`` classes with a keyword-only ``rngs``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.children import gives_names, is_named, root_of
from migrator.convert.context import Context, Failure
from migrator.convert.edits import edited
from migrator.convert.gone_over import handed
from migrator.convert.own_modes import with_mode
from migrator.convert.passes.annotations import layer_class
from migrator.convert.passes.first_kept import with_declarations
from migrator.convert.passes.foreign import NEUTRAL, lives_on_torch
from migrator.convert.passes.layer_classes import as_torch, constructor, mixed_in, needs_signature
from migrator.convert.passes.making_functions import check_decorator
from migrator.convert.passes.plain_bases import check_plain_bases, with_data_of_bases
from migrator.convert.passes.redrawing import replaced_reset
from migrator.convert.returned_data import is_returned_data, registered
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.recomputing import recomputes
from migrator.infer.symbols import AUTOGRAD
from migrator.source import dotted
from rules import definitions
from rules.definitions import module_file

DATASETS = frozenset(
    f"torch.utils.data.{place}{name}"
    for place in ("", "dataset.")
    for name in ("Dataset", "IterableDataset")
)
_BASES = {
    "torch.nn.Module": "nnx.Module",
    "torch.jit.ScriptModule": "nnx.Module",
    "torch.nn.Sequential": "nnx.Sequential",
    "torch.nn.ModuleList": "nnx.List",
    "torch.nn.ModuleDict": "nnx.Dict",
}


@converts(cst.ClassDef)
def class_def(rw: Rewriter, node: cst.ClassDef) -> Any:
    """Convert a class of the file, module or not."""
    ctx = rw.ctx
    info = next((c for c in ctx.facts.classes.values() if c.node is node), None)
    if info is None:
        return rw.rebuild(node)
    if info.gradient and recomputes(node):
        return _recomputing(node)
    _check_metaclass(ctx, info)
    _check_mixed_in(ctx, info)
    _check_behind(ctx, info)
    _check_hidden(ctx, info)
    check_plain_bases(ctx, info)
    _check_dataclass(ctx, info)
    ctx.class_being_read = info
    named = [base for base in node.bases if not _is_protocol(ctx, info, base)]
    bases = [_base(rw, base) for base in named if not _is_dataset(rw, base)]
    keywords = [rw.visit(keyword) for keyword in node.keywords]
    for one in node.decorators:
        check_decorator(ctx, one)
    decorators = [rw.visit(d) for d in node.decorators]
    ctx.classes.append(info)
    frames, ctx.frames = ctx.frames, []
    try:
        body = rw.block(node.body)
    finally:
        ctx.frames = frames
        ctx.classes.pop()
    written = body
    if isinstance(body, cst.SimpleStatementSuite):  # class Conv(nn.Conv2d): pass
        body = cst.IndentedBlock([cst.SimpleStatementLine(body.body)])
    block = body
    if is_mixed_in(ctx, info):
        body = _with_call(ctx, info, body)
    if info.torch_base is not None:
        body = with_mode(rw, info, _with_constructor(rw, info, body))
        body = with_data_of_bases(rw, info, with_declarations(rw, info, body))
    body = written if body is block else body
    if is_returned_data(ctx, info):
        decorators = registered(ctx, decorators)
    if len(bases) < len(named):
        return _host_class(info, node, bases, decorators, body)
    if bases and len(named) < len(node.bases) and not keywords:
        bases[-1] = syntax.changed(bases[-1], comma=cst.MaybeSentinel.DEFAULT)
    return syntax.changed(node, bases=bases, keywords=keywords, decorators=decorators, body=body)


@converts(cst.Assign, targets=(cst.Name,), when=lambda ctx: "__slots__" in ctx.words)
def slots(rw: Rewriter, node: cst.Assign) -> Any:
    """``__slots__`` of a module goes: nn.Module has a dict beside them, and Flax takes none."""
    info, target = rw.ctx.class_being_read, node.targets[0].target
    ours = info is not None and info.torch_base is not None and rw.ctx.frame is None
    if not ours or not isinstance(target, cst.Name) or target.value != "__slots__":
        return None
    if any(one.attr.value == "__slots__" for one in rw.ctx.source.index.of_type(cst.Attribute)):
        raise Failure(node, "API001", "`__slots__` of a module is read", "give the names a name")
    return []


def _is_protocol(ctx: Context, info: ClassInfo, arg: cst.Arg) -> bool:
    """Whether a module derives from a class of typing.Protocol that only says what methods there are.

    What has those methods is of that type without it; and Python allows no second metaclass beside that of Flax.

    Raises:
      Failure: the class has code that the module may inherit, or stands in another file.
    """
    kind = ctx.facts.kind(arg.value)
    base = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    if info.torch_base is None or base is None or base.torch_base is not None:
        return False
    protocols = [one for one in base.lineage() if any(b in _PROTOCOLS for b in one.bases)]
    if not protocols:
        return False
    own = {name for one in info.lineage() if one not in base.lineage() for name in one.methods}
    said = {name for one in base.lineage() for name in one.methods}
    if said <= own and all(one.settled is None and _says_only(one.node) for one in base.lineage()):
        return True
    what = f"{info.short} derives from a Protocol for methods it lacks, and modules of Flax have a metaclass of their own"
    raise Failure(arg.value, "API001", what, f"let {base.short} be a plain class")


_PROTOCOLS = (k.Other("typing.Protocol"), k.Other("typing_extensions.Protocol"))


def _says_only(node: cst.ClassDef) -> bool:
    """Whether a class has nothing but methods without code, and names with their types."""
    for line in node.body.body:
        if isinstance(line, cst.FunctionDef):
            if not all(_is_no_code(one) for one in line.body.body):
                return False
        elif not _is_no_code(line):
            return False
    return True


def _is_no_code(line: cst.CSTNode) -> bool:
    """A docstring, ``...``, ``pass``, ``name: Type`` or ``raise NotImplementedError``."""
    if isinstance(line, cst.SimpleStatementLine):
        return all(map(_is_no_code, line.body))
    if isinstance(line, cst.Expr):
        return isinstance(line.value, (cst.Ellipsis, cst.SimpleString, cst.ConcatenatedString))
    if isinstance(line, cst.AnnAssign):
        return line.value is None
    return isinstance(line, (cst.Pass, cst.Raise))


def _check_dataclass(ctx: Context, info: ClassInfo) -> None:
    """A module whose constructor is made of its fields has no line where a generator could be handed on."""
    for decorator in info.node.decorators if info.torch_base is not None else ():
        inner = decorator.decorator
        name = dotted(inner.func if isinstance(inner, cst.Call) else inner) or ""
        if name in ("dataclass", "dataclasses.dataclass"):
            what = f"{info.short} is a module and a dataclass, whose constructor is not written out"
            raise Failure(decorator, "API001", what, "write an __init__ that takes the fields")


def _recomputing(node: cst.ClassDef) -> cst.BaseStatement:
    """Gradient checkpointing by hand: JAX finds the gradient of the function itself."""
    made = syntax.statement(
        f"class {node.name.value}:\n"
        '    """Runs a function; XLA decides what is kept for its gradient, or ``jax.checkpoint`` around it."""\n\n'
        "    @staticmethod\n    def apply(run_function, length, *args):\n"
        "        return run_function(*args[:length])\n"
    )
    return syntax.changed(made, leading_lines=node.leading_lines)


def _check_metaclass(ctx: Context, info: ClassInfo) -> None:
    """A module of Flax has a metaclass already, which wraps how it is built; Python allows no second one."""
    for one in info.lineage() if info.torch_base is not None else ():
        keywords = one.node.keywords if one.settled is None else ()  # another file's says nothing
        for keyword in keywords:
            if keyword.keyword is None or keyword.keyword.value != "metaclass":
                continue
            if (dotted(keyword.value) or "").rpartition(".")[2] not in ("ABCMeta", "type"):
                what = "the class has a metaclass, and modules of Flax have one of their own"
                advice = "do what it does in a class decorator or in `__init_subclass__`"
                raise Failure(info.node, "API001", what, advice)


def _check_mixed_in(ctx: Context, info: ClassInfo) -> None:
    """torch's layers and nn.Module hand on to the next constructor; those of Flax end there."""
    init = info.methods.get("__init__")
    if init is not None and not ctx.facts.tree.naming(init.node, "super"):
        return
    for one in mixed_in(info):
        if one.method("__init__") is not None or needs_constructor(ctx, one):
            what = f"{info.short} derives from {info.torch_base} and from {one.short}, of whose constructors one runs in the output"
            advice = f"let {one.short} have no constructor, no mode and no random numbers, or hold the layer"
            raise Failure(info.node.name, "API005", what, advice)


def _check_behind(ctx: Context, info: ClassInfo) -> None:
    """``class D(Mixin, Builder)`` of plain classes: whoever makes one hands the generator to the first constructor alone.

    Where that one takes none, but runs the next by ``super()``, which builds modules, the generator is missing there."""
    own = info.methods.get("__init__")
    if info.torch_base is not None or info.settled is not None:
        return
    if own is not None and not ctx.facts.tree.naming(own.node, "super"):
        return
    bases = info.lineage()[1:]
    inits = [(one, one.methods["__init__"]) for one in bases if "__init__" in one.methods]
    if len(inits) < 2 or inits[1][0] in inits[0][0].lineage():
        return  # a constructor and that of its own base, which is looked after where it calls it
    (first, init), rest = inits[0], inits[1:]
    runs_next = init.settled is not None or ctx.facts.tree.naming(init.node, "super")
    builders = [one for one, other in rest if ctx.plan.how(other) == "param"]
    if ctx.plan.how(init) != "param" and runs_next and builders:
        what = f"{first.short} has a constructor without a generator, which runs that of {builders[0].short}, and that builds modules"
        advice = f"derive from {builders[0].short} first, or give {info.short} a constructor that calls both"
        raise Failure(info.node.name, "API005", what, advice)


def _check_hidden(ctx: Context, info: ClassInfo) -> None:
    """``class M(Noise, Root)`` of modules: the constructor that Noise gets in Flax would run in place of that of Root."""
    bases = info.lineage()[1:] if info.torch_base is not None and info.settled is None else ()
    own = info.methods.get("__init__")
    if own is not None and not ctx.facts.tree.naming(own.node, "super"):
        return
    for place, one in enumerate(bases):
        if "__init__" in one.methods:
            return
        gets = one.torch_base is not None and one.method("__init__") is None
        behind = [c for c in bases[place + 1 :] if "__init__" in c.methods and c.torch_base]
        if gets and behind and needs_constructor(ctx, one):
            what = f"{one.short} gets a constructor for its generator here, which runs in place of that of {behind[0].short}"
            advice = f"derive from {behind[0].short} first"
            raise Failure(info.node.name, "API005", what, advice)


def is_mixed_in(ctx: Context, info: ClassInfo) -> bool:
    """Whether a class that is no module has a ``forward`` which modules may inherit."""
    own = info.methods
    return (
        info.torch_base is None
        and not info.gradient
        and "forward" in own
        and "__call__" not in own
        and "staticmethod" not in own["forward"].decorators
    )


def _with_call(ctx: Context, info: ClassInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    """``__call__ = forward``, which a module that inherits it runs in the output."""
    forward = info.methods["forward"]
    modules = [c for c in ctx.facts.classes.values() if c.torch_base and info in c.lineage()]
    if modules and ctx.plan.how(forward) == "param":
        what = "a module inherits a forward() that draws random numbers, and no module has it"
        raise Failure(forward.node.name, "API003", what, "derive the class from nn.Module")
    reads = ctx.facts.tree.within(info.node, cst.Attribute)
    if modules and any(dotted(one) == "self.training" for one in reads):
        what = "a module inherits a forward() that asks for its mode, and no module has it"
        raise Failure(forward.node.name, "API010", what, "derive the class from nn.Module")
    lines = [cst.EmptyLine(indent=False)]
    line = syntax.changed(syntax.statement("__call__ = forward\n"), leading_lines=lines)
    return syntax.changed(body, body=[*body.body, line])


def _host_class(
    info: ClassInfo,
    node: cst.ClassDef,
    bases: list[cst.Arg],
    decorators: list[cst.Decorator],
    body: cst.BaseSuite,
) -> cst.ClassDef:
    """A dataset without torch's base class; one that is gone through by index says itself where it ends."""
    own = info.methods
    if "__getitem__" in own and "__len__" in own and "__iter__" not in own:
        function = syntax.statement(_ITERATION)
        lines = [cst.EmptyLine(indent=False)]
        body = syntax.changed(
            body, body=[*body.body, syntax.changed(function, leading_lines=lines)]
        )
    changes: dict[str, Any] = {"bases": bases, "decorators": decorators, "body": body}
    if not bases and not node.keywords:
        changes |= {"lpar": cst.MaybeSentinel.DEFAULT, "rpar": cst.MaybeSentinel.DEFAULT}
    return syntax.changed(node, **changes)


_ITERATION = """def __iter__(self):
    # by its length: an index behind the end of an array raises nothing in JAX
    return (self[index] for index in range(len(self)))
"""


@converts(cst.BinaryOperation)
def concatenated(rw: Rewriter, node: cst.BinaryOperation) -> None:
    """``train + extra`` of datasets is torch's ConcatDataset."""
    for side in (node.left, node.right) if isinstance(node.operator, cst.Add) else ():
        kind = rw.ctx.kind(side)
        info = rw.ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
        bases = [base for one in info.lineage() for base in one.bases] if info is not None else []
        if any(isinstance(base, k.Class) and base.name in DATASETS for base in bases):
            raise Failure(
                node,
                "API001",
                "adding datasets has no conversion",
                "go through one after the other",
            )


def _is_dataset(rw: Rewriter, arg: cst.Arg) -> bool:
    """``class Pairs(Dataset):``, which is any class with a length and items: JAX's loaders ask for no base.

    Only adding two of them needs torch's class.
    """
    value = arg.value.value if isinstance(arg.value, cst.Subscript) else arg.value
    kind = rw.ctx.facts.kind(value)
    return isinstance(kind, k.Class) and kind.name in DATASETS


def _base(rw: Rewriter, arg: cst.Arg) -> cst.Arg:
    kind = rw.ctx.facts.kind(arg.value)
    name = kind.name if isinstance(kind, k.Class) else ""
    if name == "torch.nn.Sequential" and is_named(rw.ctx, rw.ctx.class_being_read):
        file = module_file("rules.compat.containers")
        return syntax.changed(arg, value=cst.Name(rw.ctx.helpers.need(file, "NamedSequential")))
    _check_names(rw, arg)
    if name.startswith("builtins."):
        return arg
    if name == "torch.nn.ModuleDict":
        file = module_file("rules.compat.containers")
        return syntax.changed(arg, value=cst.Name(rw.ctx.helpers.need(file, "ModuleDict")))
    if name in AUTOGRAD:
        if arg.value in rw.ctx.blocked:
            raise Failure(arg.value, *rw.ctx.blocked[arg.value])
        file = module_file("rules.compat.autograd")
        return syntax.changed(arg, value=cst.Name(rw.ctx.helpers.need(file, "Function")))
    if name == "torch.nn.ModuleList" and (edited(rw.ctx) or _is_shared(rw.ctx)):
        file = module_file("rules.compat.containers")
        return syntax.changed(arg, value=cst.Name(rw.ctx.helpers.need(file, "ModuleList")))
    if name == "torch.nn.Sequential" and rw.ctx.class_being_read in handed(rw.ctx).classes:
        file = module_file("rules.compat.containers")
        return syntax.changed(arg, value=cst.Name(rw.ctx.helpers.need(file, "Sequential")))
    if name in _BASES:
        rw.ctx.helpers.use("nnx")
        return syntax.changed(arg, value=syntax.parse(_BASES[name]))
    own = as_torch(rw.ctx, rw.ctx.class_being_read)
    if own is not None and rw.ctx.class_being_read and name == rw.ctx.class_being_read.torch_base:
        helper = rw.ctx.helpers.need(module_file(own[0]), own[1])
        return syntax.changed(arg, value=cst.Name(helper))
    if name.startswith("torch."):
        target = layer_class(rw, name) if definitions.layers(name) else None
        if target is None:
            raise Failure(
                arg.value,
                "API001",
                f"a class that derives from {name} has no conversion",
                "rewrite it by hand",
            )
        # the order of the passes is that of their imports, which is the package's to say
        from migrator.convert.passes.layers import of_input

        return syntax.changed(arg, value=of_input(rw, target))
    if isinstance(arg.value, cst.Call) and rw.ctx.facts.callee(arg.value) in _TUPLES:
        return rw.visit(arg)
    info, unknown = rw.ctx.class_being_read, isinstance(kind, k.Unknown)
    unknown = unknown and not isinstance(arg.value, cst.Subscript)
    unknown = unknown and not _is_of_neutral(rw.ctx, arg.value)
    if unknown or (name and info is not None and lives_on_torch(rw.ctx, info, name)):
        raise Failure(
            arg.value,
            "API005",
            "the base class is not known here, so it cannot be told whether this is a module",
            "convert it together with the file that defines its base",
        )
    return rw.visit(arg)


def _is_of_neutral(ctx: Context, node: cst.BaseExpression) -> bool:
    """``collections.abc.Mapping``: of a part of a library that has nothing to do with torch."""
    while isinstance(node, cst.Attribute):
        node = node.value
    kind = ctx.facts.kind(node)
    return isinstance(kind, k.Namespace) and kind.name.partition(".")[0] in NEUTRAL


def _check_names(rw: Rewriter, arg: cst.Arg) -> None:
    """A class whose children have names derives from one of another file whose children have numbers."""
    ctx, info = rw.ctx, rw.ctx.class_being_read
    root = root_of(info) if info is not None else None
    if info is None or root is None or root is info or root.settled is None:
        return
    if gives_names(ctx, info) and not is_named(ctx, root):
        raise Failure(
            arg.value,
            "API007",
            f"children get names here, and those of {root.short}, a Sequential of another file, have none",
            f"derive from nn.Sequential itself, or let {root.short} add its layers by name",
        )


def _is_shared(ctx: Context) -> bool:
    """Whether another file reads the class at hand: it may take layers out of one."""
    info, linked = ctx.class_being_read, ctx.facts.linked
    return info is not None and linked is not None and linked.shared(info.name)


_TUPLES = frozenset({"collections.namedtuple", "typing.NamedTuple"})
"""Functions that make a class of tuples."""


def needs_constructor(ctx: Context, info: ClassInfo) -> bool:
    """Whether a module class without ``__init__`` must get one."""
    if info.settled is not None:
        return info.settled.constructor
    if needs_signature(info) is not None or _skips_bases(info):
        return True
    if info.method("__init__") is not None and "__init__" not in info.methods:
        return sets_mode(ctx, info) or ctx.plan.keeps(info)
    if info.asks_training or ctx.plan.stores(info) or info.name in ctx.class_values:
        return True
    return any(c.asks_training or ctx.plan.stores(c) for c in ctx.plan.passed_over(info))


def sets_mode(ctx: Context, info: ClassInfo) -> bool:
    """Whether the constructor of a module is where it gets a mode: it asks for one, and no constructor before it does."""
    passed = ctx.plan.passed_over(info)
    before = [c for c in info.lineage()[1:] if c not in passed]
    asks = any(c.asks_training for c in (info, *passed))
    return asks and not any(c.asks_training for c in before)


def ends_at_module(owner: ClassInfo) -> bool:
    """Whether the constructor behind a class's own is ``nn.Module.__init__``, which calls none of the bases behind it."""
    if len(owner.bases) < 2 or any(p.torch_base for p in owner.parents[1:]):
        return False
    info: ClassInfo | None = owner
    while info is not None and info.bases:
        first = info.bases[0]
        if isinstance(first, k.Class) and first.name == "torch.nn.Module":
            return True
        info = next(
            (p for p in info.parents if isinstance(first, k.Class) and p.name == first.name), None
        )
        if info is None or "__init__" in info.methods:
            return False
    return False


def _skips_bases(info: ClassInfo) -> bool:
    """Whether Python would find the constructor of a base that torch never comes to."""
    own = "__init__" in info.methods
    return not own and info.method("__init__") is not None and ends_at_module(info)


def takes_rngs(ctx: Context, info: ClassInfo) -> bool:
    """Whether the constructor of a module class of the file takes ``rngs``."""
    for one in info.lineage():
        if "__init__" in one.methods or (one.torch_base and needs_constructor(ctx, one)):
            return True
    return info.torch_base not in ("torch.nn.Module", *_BASES)


def extra_lines(ctx: Context, info: ClassInfo) -> list[cst.BaseStatement]:
    """What a module's constructor sets up beyond the user's own statements."""
    lines = []
    if sets_mode(ctx, info):
        lines.append("self.deterministic = False")
    if ctx.plan.keeps(info):
        lines.append("self.rngs = rngs")
    return [syntax.statement(line) for line in lines]


def _with_constructor(rw: Rewriter, info: ClassInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    ctx = rw.ctx
    if "__init__" in info.methods:
        return body
    resets = replaced_reset(ctx, info)
    if not resets and not needs_constructor(ctx, info):
        return body
    ctx.helpers.use("nnx")
    inherited = info.method("__init__") is not None or info.torch_base != "torch.nn.Module"
    inherited = inherited and not _skips_bases(info)
    first = extra_lines(ctx, info)
    inside = [*first, *(cst.SimpleStatementLine([one]) for one in resets)]
    lines = inside
    if inherited:
        header = "def __init__(self, *args, rngs: nnx.Rngs, **kwargs):"
        beside = mixed_in(info)
        parents = [p for p in info.parents if p.torch_base and p not in beside]
        container = not parents and info.torch_base in _BASES
        if container or (parents and not takes_rngs(ctx, parents[0])):
            call = "super().__init__(*args, **kwargs)"
        else:
            call = "super().__init__(*args, rngs=rngs, **kwargs)"
        base = syntax.statement(call)
        at = len(first) if ctx.plan.stores_first(info) else 0
        lines = [*inside[:at], base, *inside[at:]]
    else:
        header = "def __init__(self, *, rngs: nnx.Rngs):"
    made = syntax.statement(f"{header}\n    pass\n")
    rule = needs_signature(info)
    own = constructor(rw, info, rule) if rule is not None else None
    if own is not None:
        made, lines = own, [*own.body.body, *inside]
    assert isinstance(made, cst.FunctionDef)
    if lines:
        made = syntax.changed(made, body=cst.IndentedBlock(lines))
    statements: list[Any] = list(body.body)
    at = 0
    while at < len(statements) and not isinstance(statements[at], cst.FunctionDef):
        at += 1
    if at < len(statements):
        following = statements[at]
        made = syntax.changed(made, leading_lines=following.leading_lines)
        blank = cst.EmptyLine(indent=False)
        comments = [x for x in following.leading_lines if x.comment is not None]
        statements[at] = syntax.changed(following, leading_lines=[blank, *comments])
        made = syntax.changed(
            made, leading_lines=[x for x in made.leading_lines if x.comment is None]
        )
    statements.insert(at, made)
    return syntax.changed(body, body=statements)

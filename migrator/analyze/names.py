"""API001, API002, API004: torch names without a conversion, and uses that a definition does not cover.

The same questions the converter asks, put to every name in one walk without converting anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.analyze.walk import Found, load_flags, one_line
from migrator.convert.bindings import imported
from migrator.convert.checkpoints import HANDLERS, callee, checkpoint_read
from migrator.convert.expand import failure, is_strided
from migrator.convert.inline import CallArg, NoConversion, expand
from migrator.convert.neighbours import left_beside
from migrator.convert.passes.running_statistics import updated_statistics
from migrator.infer import Facts
from migrator.infer import kinds as k
from migrator.infer.annotations import says_types
from migrator.infer.named import activation_helper, known_by_name
from migrator.infer.optional import doing_without, fallback, idle, missing_library, runs_before
from migrator.infer.recomputing import saves_memory
from migrator.infer.static import asked_name, choices, exists, names_dtype
from migrator.infer.switches import kept
from migrator.infer.symbols import (
    CHECKS,
    COMPILER,
    COMPILERS,
    STORAGE,
    built_on_torch,
    of_torch,
)
from migrator.infer.without_torch import (
    TENSORS_ASKED,
    asks_for_tensors,
    brought_by,
    import_needs_torch,
)
from migrator.source import Source, dotted
from rules import definitions
from rules.definitions import Rule
from rules.elsewhere import CONTEXT, WEIGHTS, advice_for
from rules.registry import FLAGS

_BY_PASSES = frozenset(
    [
        *(*CHECKS, *COMPILER, *COMPILERS),
        "torch.nn.Module",
        "torch.nn.Parameter",
        "torch.nn.Buffer",
        "torch.nn.Sequential",
        "torch.nn.ModuleList",
        "torch.nn.ModuleDict",
        "torch.nn.ParameterList",
        "torch.nn.ParameterDict",
        "torch.Tensor",
        "torch.FloatTensor",
        "torch.DoubleTensor",
        "torch.LongTensor",
        "torch.IntTensor",
        "torch.BoolTensor",
        "torch.Size",
        "torch.dtype",
        "torch.device",
        "torch.Generator",
        "torch.no_grad",
        "torch.inference_mode",
        "torch.enable_grad",
        "torch.set_grad_enabled",
        "torch.compile",
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch.jit._unwrap_optional",
        "torch.jit.annotate",
        "torch.jit.script",
        "torch.jit.export",
        "torch.jit.isinstance",
        "torch.jit.ignore",
        "torch.jit.unused",
        "torch.jit.script_method",
        "torch.jit.script_if_tracing",
        "torch.jit._script_if_tracing",
        "torch.jit._overload",
        "torch.jit._overload_method",
        "torch.fx.wrap",
        "torch._assert",
        "torch.manual_seed",
        "torch.random.manual_seed",
        "torch._C._log_api_usage_once",
        "torch.newaxis",
        "torch.pi",
        "torch.inf",
        "torch.nan",
        "torch.e",
        "torch.profiler.record_function",
        "torch.autograd.profiler.record_function",
        "torch.autograd.profiler.profile",
        "torch.nn.attention.sdpa_kernel",
        "torch.backends.cuda.sdp_kernel",
        "torch.utils.checkpoint.checkpoint",
        "torch.autograd.Variable",
        "torch.autograd.Function",
        "torch.autograd.function.Function",
        "torch.autograd.function.once_differentiable",
        "torch.cuda.amp.custom_fwd",
        "torch.cuda.amp.custom_bwd",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
    ]
)
"""Names that a pass of the converter knows, without a definition."""
_COVERED = frozenset(["Tensor.item", "Tensor.tolist"])
"""Refused by their definitions, but allowed while a module is built; DYN004 looks at them."""
_SKIPPED = (cst.Import, cst.ImportFrom, cst.Annotation, cst.Decorator)


def unknown_names(source: Source, facts: Facts, taken: Collection[cst.CSTNode]) -> Iterator[Found]:
    """What has no conversion, in the order of the source.

    Args:
      taken: nodes at which a flag rule has found something; what stands there is not reported twice.
    """
    load_flags()
    seen = set(taken)
    imports = imported(source.index)
    attributes = source.index.of_type(cst.Attribute)
    for node in source.index.of_type(cst.Import, cst.ImportFrom):
        told = left_beside(facts, source.path, node, attributes)
        if told is not None:
            yield _found(node, "API004", *told)
    for found in _visit(source.tree, facts, seen):
        # a variable that holds a torch function was reported where it was given its value
        named = found.node.func if isinstance(found.node, cst.Call) else found.node
        variable = isinstance(named, cst.Name) and named.value not in (*imports, "getattr")
        if found.code != "API001" or not variable:
            yield found


def _visit(root: cst.CSTNode, facts: Facts, taken: set[cst.CSTNode]) -> Iterator[Found]:
    pending: list[cst.CSTNode] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, _SKIPPED):
            found = _import(node, facts) if isinstance(node, (cst.Import, cst.ImportFrom)) else None
            if found is not None and node not in taken:
                yield found
            continue
        if isinstance(node, cst.Try) and (handler := fallback(facts, node)) is not None:
            what, advice = doing_without(missing_library(facts, node))
            yield Found(node.body, "API004", what, advice, "info", 0.0, False)
            pending += [handler.body, *runs_before(facts, node)]
            continue
        if isinstance(node, cst.With):
            taken.update(item.item for item in node.items)
            pending.extend(reversed(syntax.children(node.body)))
            for item in node.items:
                found = _context(item.item, facts) if item.item not in taken else None
                if found is not None:
                    yield found
            continue
        if node in taken or node in facts.dead or says_types(node):
            continue
        if isinstance(node, cst.BooleanOperation) and (rest := saves_memory(facts, node)):
            pending.append(rest)
            continue
        if isinstance(node, cst.Assign) and kept(facts, node):
            assert isinstance(node.value, cst.IfExp)
            pending.append(node.value.test)
            continue
        found = None
        if isinstance(node, (cst.Expr, cst.Return, cst.Assign)):
            found = _checkpoint(node, facts)
            if found is not None:
                yield found
                continue
        if isinstance(node, cst.Call):
            found = _call(node, facts)
        elif isinstance(node, (cst.Name, cst.Attribute)):
            found = _name(node, facts)
        elif isinstance(node, cst.Arg) and asks_for_tensors(node):
            found = _found(node, "API004", *TENSORS_ASKED)
        if found is not None:
            yield found
            if isinstance(node, cst.Call) and facts.callee(node) != "builtins.getattr":
                pending.extend(reversed([item.value for item in node.args]))
                if isinstance(node.func, cst.Attribute) and not _is_namespace(
                    node.func.value, facts
                ):
                    pending.append(node.func.value)
            continue
        pending.extend(reversed(_parts(node, facts)))


def _parts(node: cst.CSTNode, facts: Facts) -> list[cst.CSTNode]:
    """The children that are read: not the names of a namespace before a dot, not what a call names."""
    if isinstance(node, cst.Attribute):
        return [] if _is_namespace(node.value, facts) else [node.value]
    if isinstance(node, cst.Arg):
        return [node.value]
    if isinstance(node, cst.AssignTarget):
        return _target(node.target)
    if isinstance(node, cst.Call) and facts.callee(node) == "builtins.hasattr":
        return []
    if isinstance(node, cst.Call) and facts.callee(node) == "builtins.getattr":
        return [a for a in node.args if not _is_namespace(a.value, facts)]
    if isinstance(node, cst.Call) and _torch_name(node.func, facts):
        inner = [node.func.value] if isinstance(node.func, cst.Attribute) else []
        receiver = [n for n in inner if not _is_namespace(n, facts)]
        return [*receiver, *node.args]
    return syntax.children(node)


def _is_namespace(node: cst.CSTNode, facts: Facts) -> bool:
    return isinstance(facts.kind(node), k.Namespace)


def _target(node: cst.CSTNode) -> list[cst.CSTNode]:
    """What an assignment target reads."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return [part for element in node.elements for part in _target(element.value)]
    if isinstance(node, cst.Attribute):
        return [node.value]
    return [node] if isinstance(node, cst.Subscript) else []


def _torch_name(node: cst.CSTNode, facts: Facts) -> str | None:
    """The name of a torch function, method or class that an expression stands for."""
    kind = facts.kind(node)
    if isinstance(kind, (k.Function, k.Class)) and kind.name.startswith(("torch.", "Tensor.")):
        return kind.name
    return None


def _has_conversion(name: str) -> bool:
    if name in _BY_PASSES or name in STORAGE or definitions.ops(name) or definitions.layers(name):
        return True
    if name.endswith("_") and not name.endswith("__") and definitions.ops(name[:-1]):
        return True
    return name.startswith("torch.nn.init.") and bool(definitions.ops(f"{name}_"))


def _found(node: cst.CSTNode, code: str, what: str, advice: str) -> Found:
    flag = FLAGS[code]
    return Found(node, code, what, advice, flag.severity, flag.effort, flag.blocks)


def _unknown(node: cst.CSTNode, name: str) -> Found:
    return _found(node, "API001", f"{name} has no conversion", advice_for(name))


def _call(node: cst.Call, facts: Facts) -> Found | None:
    """A call of a name without definition, or with arguments that its definition refuses."""
    name = _torch_name(node.func, facts)
    if name is None:
        return _namespace(node.func, facts) or _getattr(node, facts)
    if isinstance(node.func, (cst.Subscript, cst.IfExp)):
        return None  # found where the functions are written
    if not _has_conversion(name):
        return _unknown(node, name)
    if name in _BY_PASSES or name in _COVERED or name.startswith("torch.nn.init."):
        return None
    if updated_statistics(facts, node) is not None:
        return None
    rules = definitions.ops(name) or definitions.layers(name)
    base = name
    if not rules:
        base, rules = name[:-1], definitions.ops(name[:-1])
    args = []
    if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
        func = facts.kind(node.func)
        bound = func.bound if isinstance(func, k.Function) else None
        if bound is not None or not isinstance(facts.kind(node.func.value), k.Class):
            args.append(CallArg(None, node.func.value, node.func.value, bound or k.TENSOR))
    for item in node.args:
        keyword = item.star or (item.keyword.value if item.keyword else None)
        kind = facts.kind(item.value)
        if keyword != "out" and not is_strided(keyword, kind):
            args.append(CallArg(keyword, item.value, item.value, kind))
    return _refused(node, base, rules, args)


def _checkpoint(node: cst.Expr | cst.Return | cst.Assign, facts: Facts) -> Found | None:
    """A statement that reads a torch checkpoint into a model, or writes one."""
    if callee(facts, node.value) not in HANDLERS:
        return None
    around = reversed(facts.tree.around(node))
    function = next((one for one in around if isinstance(one, cst.FunctionDef)), None)
    info = facts.functions.get(function) if function is not None else None
    reading = checkpoint_read(facts, info, node) if info is not None else None
    if reading is None:
        return None
    if reading.built:
        return _found(reading.place, "API001", reading.what, WEIGHTS)
    advice = advice_for("torch.save") if reading.writes else WEIGHTS
    return Found(reading.place, "API001", reading.what, advice, "warning", 0.0, False)


def _refused(
    node: cst.CSTNode, name: str, rules: Sequence[Rule], args: list[CallArg]
) -> Found | None:
    """Whether the definitions of a name refuse these arguments."""
    try:
        expand(name, rules, args)
    except NoConversion as problem:
        refused = failure(node, name, str(problem))
        return _found(node, refused.rule, refused.message, refused.advice)
    return None


def _namespace(node: cst.CSTNode, facts: Facts) -> Found | None:
    """A package of torch, or a name nobody knows, where a value is read."""
    kind = facts.kind(node)
    if isinstance(kind, k.Namespace) and kind.name.partition(".")[0] == "torch":
        return _unknown(node, f"{kind.name} as a value")
    return None


def _getattr(node: cst.Call, facts: Facts) -> Found | None:
    """``getattr(F, name)`` with a name that is not known."""
    if facts.callee(node) != "builtins.getattr" or len(node.args) < 2:
        return None
    namespace = facts.kind(node.args[0].value)
    if not isinstance(namespace, k.Namespace) or not of_torch(namespace.name):
        return None
    name = _torch_name(node, facts)
    if name is not None:
        return None if _has_conversion(name) else _unknown(node, name)
    asked = asked_name(facts, node)
    absent = asked is not None and len(node.args) == 3 and exists(*asked) is False
    if absent or names_dtype(facts, node) or choices(facts, node):
        return None
    helper = activation_helper(facts, node)
    if helper is not None:
        what, advice = known_by_name(helper)
        return Found(node, "API001", what, advice, "warning", 0.0, False)
    text = f"a name of {namespace.name} is computed: {one_line(node)}"
    return _found(node, "API001", text, "choose among functions by a dict")


def _name(node: cst.Name | cst.Attribute, facts: Facts) -> Found | None:
    """A torch name used as a value, or an attribute of a tensor."""
    name = _torch_name(node, facts)
    if name is not None:
        return None if _has_conversion(name) else _unknown(node, name)
    if isinstance(node, cst.Attribute) and isinstance(facts.kind(node.value), k.Tensor):
        name = f"Tensor.{node.attr.value}"
        role = getattr(facts.kind(node.value), "role", "")
        if name == "Tensor.requires_grad" and role == "param":
            return None  # what is trained is of a class of its own
        receiver = CallArg(None, node.value, node.value, facts.kind(node.value))
        rules = definitions.ops(name)
        return _refused(node, name, rules, [receiver]) if rules else None
    return _namespace(node, facts)


def _context(node: cst.BaseExpression, facts: Facts) -> Found | None:
    """``with torch.…:``."""
    target = node.func if isinstance(node, cst.Call) else node
    name = _torch_name(target, facts)
    if name is None or name in _BY_PASSES or name.endswith("autocast"):
        return None
    what = f"the context manager {name} has no conversion"
    return _found(node, "API001", what, CONTEXT)


def _import(node: cst.Import | cst.ImportFrom, facts: Facts) -> Found | None:
    """Imports of packages built on torch."""
    linked = facts.linked
    several: list[tuple[str, Sequence[cst.ImportAlias] | cst.ImportStar]]
    if isinstance(node, cst.Import):
        several = [(brought_by(alias), [alias]) for alias in node.names]
    elif node.module is not None and not node.relative:
        several = [(dotted(node.module) or "", node.names)]
    else:
        return None
    for module, names in several:
        if linked is not None and linked.place(facts.module, module, 0, None) != "outside":
            continue
        parts = names if isinstance(node, cst.ImportFrom) else None
        if import_needs_torch(module, parts) and not idle(facts, names):
            return _found(node, "API004", *built_on_torch(module))
    return None

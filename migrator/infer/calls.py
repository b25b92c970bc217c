"""Kinds of calls: torch's definitions, the file's own functions and classes, Python's builtins."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.annotations import (
    OTHER_RANK,
    from_definition,
    has_no_axes,
    moved_dtype,
    of_dtype,
    of_known_rank,
)
from migrator.infer.arrays import numpy_result
from migrator.infer.construction import passes_on
from migrator.infer.distributions import is_transform, result
from migrator.infer.einops import einops_result
from migrator.infer.evidence import adds, applies, other_receiver, tensor_call
from migrator.infer.facts import ClassInfo, FunctionInfo
from migrator.infer.inverses import is_of_no_tensor
from migrator.infer.items import is_of_items
from migrator.infer.module_methods import ModuleMethods, drops_layers
from migrator.infer.named_tuples import OBJECTS, RECORD_CLASS, made_by, record_of
from migrator.infer.pullbacks import of_pullback
from migrator.infer.python import (
    PARTIAL,
    class_of_object,
    is_self,
    partial,
    partial_result,
    widen,
)
from migrator.infer.repeated import given_layers
from migrator.infer.signatures import (
    Args,
    adds_up,
    moves_new_parameter,
    of_integers,
    signature_fits,
)
from migrator.infer.starred import hand_on
from migrator.infer.static import parses_version
from migrator.infer.symbols import CASTS, LAYERS, TORCH_VERSION, tensor_only
from migrator.infer.tables import CREATING, initialises, is_model, note_lookup
from migrator.infer.tied import kept_whole
from migrator.infer.timm import timm_result
from rules import definitions
from rules.definitions import Rule

_TWOFOLD = frozenset("max min sort topk median mode kthvalue cummax cummin".split())


def _selected(node: cst.BaseExpression) -> cst.BaseExpression:
    """``output`` of ``output.max(1)[1]``, which a tensor is that has such a method; anything else as it is."""
    call = node.value if isinstance(node, cst.Subscript) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.args:
        if call.func.attr.value in _TWOFOLD:
            return call.func.value
    return node


class Calls(ModuleMethods):
    """Adds calls to the expression walk."""

    _call_node: cst.CSTNode | None = None
    _statement: cst.CSTNode | None = None
    """The last expression that was a statement, whose value nobody uses."""

    def arguments(self, node: cst.Call) -> Args:
        """Evaluate the arguments of a call."""
        found: Args = []
        for item in node.args:
            kind = self.held(item.value, self.eval(item.value))
            keyword = item.star or (item.keyword.value if item.keyword else None)
            if item.star == "*" and isinstance(kind, k.Tuple):
                found.extend((None, one) for one in kind.items)
                continue
            if item.star == "**" and isinstance(kind, k.Mapping) and kind.items:
                found.extend((str(key), one) for key, one in kind.items)
                continue
            found.append((keyword, kind))
        return found

    def eval_Call(self, node: cst.Call) -> k.Kind:
        if syntax.is_super(node):
            self.facts.kinds[node.func] = k.Function("builtins.super")
            for item in node.args:
                self.eval(item.value)
            return k.SUPER
        callee = self.eval(node.func)
        args = self.arguments(node)
        self._call_node = node
        if isinstance(callee, k.Unknown):
            callee = self._class_of_layer(node.func)
        elif isinstance(node.func, cst.Attribute) and tensor_only(node.func.attr.value):
            held = _selected(node.func.value)
            if held is not node.func.value:
                self._prove(held, k.TENSOR)
        unclear = callee.inner if isinstance(callee, k.Optional) else callee
        unknown = isinstance(unclear, k.Unknown)
        named = (unknown or unclear == k.NAMELESS) and self._named_class(node.func)
        if named and not passes_on(self.function, node):  # type: ignore[arg-type]
            self.function.builds = True  # type: ignore[union-attr]
        if unknown or unclear == k.NAMELESS:
            note_lookup(self.facts, self.function, node, args)
            if unknown and is_model(self.facts, self.function, node.func):
                return k.Module()
        if isinstance(callee, k.Unknown) and isinstance(node.func, cst.Attribute):
            second = args[1][1] if len(args) > 1 else k.UNKNOWN
            proven = tensor_call(node, self.facts.kind(node.func.value), second)
            if proven:
                self._prove(_selected(node.func.value), k.TENSOR)
            proven = proven or is_of_items(self.facts, self.function, node)
            if proven or self._casts(node) or self._is_computed_with(node):
                callee = k.Function(f"Tensor.{node.func.attr.value}", k.TENSOR)
                self.facts.kinds[node.func] = callee
        if isinstance(callee, k.Unknown) and applies(self.facts, self.function, node):
            callee = self.facts.kinds[node.func] = k.Function("Module.apply", k.Module())
        if unknown and self.function is not None and isinstance(node.func, cst.Attribute):
            self.function.builds |= initialises(self.facts, node.func.attr.value)
        other = other_receiver(node)
        of_another = other is not None and isinstance(self.facts.kind(other), k.Unknown)
        if of_another or is_of_no_tensor(self.facts, self.function, node):
            callee = self.facts.kinds[node.func] = k.UNKNOWN
        self._learn(node, callee)
        if args and parses_version(self.facts, node, args[0][1]):
            return TORCH_VERSION
        if isinstance(node.func, cst.Attribute):
            receiver = self.facts.kind(node.func.value)
            if receiver == k.SUPER:
                return self._super_call(node, node.func.attr.value, args)
            if self._calls_base(receiver, args):  # nn.Linear.__init__(self, …)
                return self._super_call(node, node.func.attr.value, args[1:])
            if isinstance(receiver, k.Optional):
                receiver = receiver.inner
            self._saves(node.func, receiver, args)
            if moves_new_parameter(node.func, receiver, args):
                return receiver
            special = self._container_method(node.func, receiver, node, args)
            if special is not None:
                return special
        return self.call(callee, args, node)

    def _class_of_layer(self, func: cst.BaseExpression) -> k.Kind:
        """The class that ``type(self.fc)(4, 4)`` and ``self.fc.__class__(4, 4)`` build another layer of."""
        layer = class_of_object(func)
        kind = self.facts.kind(layer) if layer is not None else k.UNKNOWN
        if not isinstance(kind, k.Module) or "|" in kind.cls or is_self(layer):  # type: ignore[arg-type]
            return k.UNKNOWN
        if kind.cls not in self.facts.classes:
            heirs = any(one.torch_base == kind.cls for one in self.facts.classes.values())
            if heirs or not isinstance(layer, cst.Attribute) or not definitions.layers(kind.cls):
                return k.UNKNOWN
        found = self.facts.kinds[func] = k.Class(kind.cls)
        return found

    def _casts(self, node: cst.Call) -> bool:
        """``y.to(x.dtype)``, ``y.float()`` of something unknown whose result is used, where nothing is built.

        Modules have these methods too and return themselves; they are moved and cast where they are made. The
        ``add`` of a set returns nothing.
        """
        func = node.func
        assert isinstance(func, cst.Attribute)
        if func.attr.value not in CASTS | {"add"} or node is self._statement:
            return False
        if self.function is None or self.function.builds or self.function.short == "__init__":
            return False
        receiver = self.facts.kind(func.value)
        told = adds(self.facts, node) if func.attr.value == "add" else None
        if told is not None:
            return told and isinstance(receiver, k.Unknown)
        return isinstance(receiver, k.Unknown) and all(
            isinstance(self.facts.kind(a.value), (k.DType, k.Device, k.Const, k.Scalar, k.Tensor))
            for a in node.args
        )

    def _is_computed_with(self, node: cst.Call) -> bool:
        """Whether ``y.to(dtype)`` of something unknown can only be a tensor: it is added to, or made a buffer of.

        A module has the method as well, and is neither."""
        func = node.func
        assert isinstance(func, cst.Attribute)
        if func.attr.value not in CASTS or not isinstance(self.facts.kind(func.value), k.Unknown):
            return False
        if not self.facts.tree.has(node):  # of a hint in a text
            return False
        match self.facts.tree.around(node):
            case [*_, cst.BinaryOperation()]:
                return True
            case [*_, cst.Call() as call, cst.Arg() as arg]:
                if self.facts.callee(call) == "torch.nn.Parameter":
                    return arg is call.args[0]
                named = isinstance(call.func, cst.Attribute) and len(call.args) > 1
                registers = named and syntax.code(call.func).endswith(".register_buffer")
                return registers and arg is call.args[1]
        return False

    def _saves(self, func: cst.Attribute, receiver: k.Kind, args: Args) -> None:
        """``ctx.save_for_backward(x, w)`` of an autograd function: what ``ctx.saved_tensors`` holds."""
        info = self.facts.classes.get(receiver.type) if isinstance(receiver, k.Other) else None
        if info is None or not info.gradient or func.attr.value != "save_for_backward":
            return
        starred = any(keyword == "*" for keyword, _ in args)
        saved = k.Sequence(k.TENSOR, "tuple") if starred else k.Tuple(tuple(a for _, a in args))
        for name in ("saved_tensors", "saved_variables"):
            self.join_attribute(info, name, saved)

    def join_attribute(self, info: ClassInfo, name: str, kind: k.Kind) -> None:
        """Join a kind into an attribute of a class."""
        raise NotImplementedError

    def _named_class(self, node: cst.BaseExpression) -> bool:
        """Whether something is called that is by its name a class: ``model_cls(**kwargs)``.

        ``act_layer()`` may be a class or a layer; in a function that creates layers it is a class.
        """
        if self.function is None:
            return False
        short = self.function.short.lstrip("_").partition("_")[0]
        if isinstance(node, cst.Attribute):
            creates, name = is_self(node.value) and short == "init", node.attr.value
        elif isinstance(node, cst.Name):
            creates, name = short in CREATING and self.function.owner is None, node.value
            creates = creates and name in self.env
        else:
            return False
        last = name.rpartition("_")[2]
        named = last in _CLASS_NAMES and isinstance(node, cst.Name) and name in self.env
        return named or (creates and last in (*_CLASS_NAMES, "layer", "block"))

    def _prove(self, node: cst.CSTNode, kind: k.Kind) -> None:
        """Remember what a use says about an unannotated parameter."""
        if self.function is None or not isinstance(node, cst.Name):
            return
        if isinstance(self.facts.kind(node), k.Unknown) and node.value in self.function.params:
            if node.value not in self.function.evidence:
                self.function.evidence[node.value] = kind
                self.function.dirty = True

    def _learn(self, node: cst.Call, callee: k.Kind) -> None:
        """Layers and torch functions say what their arguments are."""
        if isinstance(callee, k.Module) and callee.cls.startswith(LAYERS) and node.args:
            self._prove(node.args[0].value, k.TENSOR)
        if not isinstance(callee, k.Function):
            return
        info = self.facts.names.get(callee.name)
        if info is not None:
            names = list(info.params)
            for i, item in enumerate(node.args):
                name = item.keyword.value if item.keyword is not None else None
                if name is None and not item.star and i < len(names):
                    name = names[i]
                kind = info.params.get(name or "")
                if isinstance(kind, k.Tensor):
                    self._prove(item.value, k.without_role(kind))
            return
        rules = definitions.ops(callee.name)
        if not callee.name.startswith(("torch.", "Tensor.")) or not rules:
            return
        names = rules[0].positional
        shift = 1 if callee.name.startswith("Tensor.") and callee.bound is not None else 0
        for i, item in enumerate(node.args):
            name = item.keyword.value if item.keyword is not None else None
            if name is None and not item.star and i + shift < len(names):
                name = names[i + shift]
            if name in _TENSOR_PARAMS:
                self._prove(item.value, k.TENSOR)
            elif name == "tensors":
                self._prove(item.value, k.Sequence(k.TENSOR))

    def call(self, callee: k.Kind, args: Args, node: cst.Call | None = None) -> k.Kind:
        """The kind of the result of calling a value."""
        if isinstance(callee, k.Optional):
            callee = callee.inner
        func = node.func if node is not None else None
        if isinstance(callee, k.Unknown) or (isinstance(callee, k.Function) and not callee.name):
            if self.function is not None and type(func) in (cst.Name, cst.Subscript):
                self.function.calls_unknown = True
        if isinstance(callee, k.Function):
            return self._call_function(callee, args, node)
        if isinstance(callee, k.Class):
            names = callee.among or (callee.name,)
            return self.construct_one(names, args, node)
        if isinstance(callee, k.Module):
            return self.call_module(callee, args)
        called = self.facts.classes.get(callee.type) if isinstance(callee, k.Other) else None
        method = called.method("__call__") if called is not None else None
        if method is not None:
            return self.call_own(method, args, callee)
        if is_transform(callee):
            return k.TENSOR
        if callee == RECORD_CLASS:
            return record_of(args)
        if callee == k.Other("typing.TypeVar"):
            bound = dict(args).get("bound", k.UNKNOWN)
            return bound if isinstance(bound, k.Class) else k.UNKNOWN
        asked = func.func if isinstance(func, cst.Call) else None
        child = isinstance(asked, cst.Name) and asked.value == "getattr"
        return self._presumed(args) if child or isinstance(func, cst.Attribute) else k.UNKNOWN

    # --- functions ------------------------------------------------------------------------------------------------

    def _call_function(self, callee: k.Function, args: Args, node: cst.Call | None) -> k.Kind:
        name = callee.name
        if name.startswith("builtins."):
            return self._builtin(name.removeprefix("builtins."), args, node)
        if name in self.facts.names:
            info = self.facts.names[name]
            general = self.call_own(info, args, callee.bound)
            return self._specific(info, args, callee.bound) or general
        if name in self.facts.lambdas:
            return self._call_lambda(name, args)
        if name.startswith("Tensor."):
            receiver = callee.bound if callee.bound is not None else k.TENSOR
            method = args if callee.bound is None else [(None, receiver), *args]
            return self.call_op(name, method)
        if name.startswith("torch."):
            return result(name) or self._torch_function(name, args)
        if name.startswith("timm_layers."):
            return self.call_op(name, args) if definitions.ops(name) else timm_result(name, args)
        if name.startswith("Module."):
            return self._module_method(name.removeprefix("Module."), callee.bound, args)
        if name.startswith("math."):
            return k.INT if name.removeprefix("math.") in _WHOLE else k.FLOAT
        if name.startswith("einops."):
            return einops_result(name, args)
        if name in ("copy.deepcopy", "copy.copy") and args:
            return args[0][1] if k.is_parameter(args[0][1]) else k.without_role(args[0][1])
        if name == "itertools.starmap" and args:
            return k.Sequence(self.call(args[0][1], []), "iter")
        if name == "functools.reduce" and len(args) > 1:
            item = k.element(args[1][1])
            start = args[2][1] if len(args) > 2 else item
            return k.join(start, self.call(args[0][1], [(None, start), (None, item)]))
        if name in ("functools.partial",) and args:
            return partial(args)
        if name.startswith(PARTIAL):
            return partial_result(name)
        if name.startswith("dataclasses.") or name in OBJECTS:
            return made_by(name)
        if name.startswith(("numpy.random.", "random.")) and node is not None:
            if self.function is not None and drops_layers(self.facts, self.function, node):
                self.function.draws = True
        if name.startswith("numpy."):
            return numpy_result(name, args)
        if name.startswith(("str.", "list.", "dict.", "tuple.", "size.", "int.", "float.")):
            return self._python_method(name, callee.bound, args)
        return k.UNKNOWN

    def _call_lambda(self, name: str, args: Args) -> k.Kind:
        """Walk a lambda's body with what its call sites hand to it."""
        node, sites = self.facts.lambdas[name]
        saved = self.env
        function, seen = self.facts.around.get(name, (self.function, {}))
        self.env = dict(saved if function is self.function else seen)  # of where it stands
        names = [p.name.value for p in node.params.params]
        for param, (keyword, kind) in zip(names, args, strict=False):
            if keyword is None:
                kind = widen(k.without_role(kind) if isinstance(kind, k.Optional) else kind)
                sites[param] = k.join(sites[param], kind) if param in sites else kind
        self.env |= {param: sites.get(param, k.UNKNOWN) for param in names}
        result = self.eval(node.body)
        self.env = saved
        return result

    _depth = 0

    def _specific(self, info: FunctionInfo, args: Args, bound: k.Kind | None) -> k.Kind | None:
        """The result of a one-line function for these very arguments (``default(context, x)``)."""
        body = [s for s in info.node.body.body if not syntax.is_docstring(s)]
        returns = [
            s.body[0].value
            for s in body
            if isinstance(s, cst.SimpleStatementLine) and isinstance(s.body[0], cst.Return)
        ]
        if info.owner is not None or not body or self._depth > 2 or len(body) > 2:
            return None
        if not all(isinstance(s, cst.SimpleStatementLine) for s in body):
            return None  # a function in it belongs to this one, not to the caller
        if len(returns) != 1 or returns[0] is None or body[-1].body[0].value is not returns[0]:  # type: ignore[union-attr]
            return None
        params = [p.name.value for p in info.node.params.params]
        env = {**self.env, **info.closure}
        env.update(dict.fromkeys(params, k.UNKNOWN))
        for i, (keyword, kind) in enumerate(args):
            if keyword in ("*", "**"):
                return None
            name = keyword or (params[i] if i < len(params) else None)
            if name is not None:
                env[name] = kind
        kinds, saved, caller = self.facts.kinds, self.env, self.function
        self.facts.kinds, self.env, self._depth = {}, env, self._depth + 1
        self.function = info  # the calls in it are its own, not the caller's
        try:
            for statement in body:
                self.statement(statement) if statement is not body[-1] else None
            result = self.eval(returns[0])
        finally:
            self.facts.kinds, self.env, self._depth = kinds, saved, self._depth - 1
            self.function = caller
        return None if isinstance(result, k.Unknown) else widen(result)

    def statement(self, node: cst.CSTNode) -> None:
        """Walk one statement."""
        raise NotImplementedError

    def call_op(self, name: str, args: Args) -> k.Kind:
        """The result kind of a torch function or method by its definitions."""
        rules = definitions.ops(name)
        in_place = not rules and name.endswith("_") and not name.endswith("__")
        if in_place:
            rules = definitions.ops(name[:-1])
        chosen: list[Rule] = []
        for rule in rules:
            fit = signature_fits(rule, args)
            if fit is not False:
                chosen.append(rule)
            if fit:
                if any(keyword == "*" for keyword, _ in args):
                    chosen = [rule]
                break
        self._mark_draws(chosen)
        if name == "Tensor.item":
            return k.Scalar("number")
        if name in ("Tensor.numpy", "Tensor.__array__"):
            return k.Other("numpy.ndarray")
        if name == "Tensor.tolist":
            return k.Sequence(k.Scalar("number"), "list")
        first = args[0][1] if args else k.UNKNOWN
        if isinstance(first, k.Tensor) and name.rpartition(".")[2] in OTHER_RANK:
            first = replace(first, rank=None)
        if in_place or (
            name.endswith("_") and not name.endswith("__") and isinstance(first, k.Tensor)
        ):
            return first
        if not chosen:
            return k.UNKNOWN
        result: k.Kind | None = None
        for rule in chosen:
            kind = from_definition(rule.returns, first, rule.fields)
            result = kind if result is None else k.join(result, kind)
        if isinstance(result, k.Tensor) and adds_up(name, first, args):
            result = replace(result, dtype="int")
        if isinstance(result, k.Tensor) and result.dtype == "float":
            if any(isinstance(kind, k.Tensor) and kind.dtype == "complex" for _, kind in args):
                result = replace(result, dtype=None)  # of floats, which may be complex too
        if name in ("Tensor.size",) and isinstance(first, k.Tensor):
            return self._size(first, args)
        return self._refine(name, result or k.UNKNOWN, args)

    @staticmethod
    def _size(first: k.Tensor, args: Args) -> k.Kind:
        if len(args) > 1 or first.rank is None:
            return k.INT if len(args) > 1 else k.Sequence(k.INT, "size")
        return k.Tuple((k.INT,) * first.rank)

    def _refine(self, name: str, kind: k.Kind, args: Args) -> k.Kind:
        """Ranks and dtypes that a return annotation cannot say."""
        short = name.rpartition(".")[2]
        kind = of_known_rank(short, kind, args)
        if isinstance(kind, k.Tensor):
            if kind.dtype is None:
                kind = replace(kind, dtype=moved_dtype(short, args))
            if has_no_axes(short, args):
                kind = replace(kind, rank=0)
            told = [value for keyword, value in args if keyword == "dtype"]
            told += [value for _, value in args[1:]] if short in ("to", "type") else []
            given = [one for value in told if (one := of_dtype(kind, value)) is not None]
            if given:
                kind = given[0]
            elif name == "torch.arange" and of_integers(args):
                return replace(kind, dtype="int")
            if short in _SHAPED_BY_SIZES:
                sizes = (
                    [] if any(key == "*" for key, _ in args) else [v for key, v in args if not key]
                )
                if name.startswith("Tensor."):
                    sizes = sizes[1:]
                if len(sizes) == 1 and isinstance(sizes[0], k.Tuple):
                    return replace(kind, rank=len(sizes[0].items))
                if sizes and all(k.scalar_type(s) == "int" for s in sizes):
                    return replace(kind, rank=len(sizes))
                return kind if short == "permute" else replace(kind, rank=None)
        chunks = args[1][1] if len(args) > 1 else k.UNKNOWN
        if short == "unbind" and isinstance(kind, k.Sequence):
            return k.Sequence(k.Tensor(dtype=moved_dtype(short, args)), kind.type)
        if short == "chunk" and isinstance(chunks, k.Const) and isinstance(kind, k.Sequence):
            return k.Sequence(kind.item, kind.type)
        return kind

    def _mark_draws(self, rules: list[Rule]) -> None:
        if self.function is not None and any(rule.draws for rule in rules):
            self.function.draws = True

    def _torch_function(self, name: str, args: Args) -> k.Kind:
        if name in ("torch.device",):
            return k.Device()
        if name == "torch.utils.checkpoint.checkpoint" and args:
            return self.call(args[0][1], [a for a in args[1:] if a[0] is None])
        if name == "torch.func.vjp" and args:
            made = self.call(args[0][1], [one for one in args[1:] if one[0] is None])
            return of_pullback(made, any(keyword == "has_aux" for keyword, _ in args))
        if name == "torch.jit.annotate" and len(args) == 2:
            return args[1][1]
        if name == "torch.jit._unwrap_optional" and len(args) == 1:
            kind = args[0][1]
            return kind.inner if isinstance(kind, k.Optional) else kind
        if name in ("torch.jit.script", "torch.compile", "torch.jit.export") and args:
            return args[0][1]
        return self.call_op(name, args)

    def own_item(self, value: k.Kind, index: k.Kind, node: cst.Subscript) -> k.Kind:
        """``ACTIVATIONS[name]``: a call of the class's ``__getitem__``."""
        info = self.facts.classes.get(value.type) if isinstance(value, k.Other) else None
        method = info.method("__getitem__") if info is not None else None
        if method is None:
            return k.UNKNOWN
        saved, self._call_node = self._call_node, node
        result = self.call_own(method, [(None, index)], value)
        self._call_node = saved
        return result

    # --- own functions and classes --------------------------------------------------------------------------------

    def call_own(self, info: FunctionInfo, args: Args, bound: k.Kind | None) -> k.Kind:
        """Record a call site of one of the file's functions and return what it is known to return."""
        if self.function is not None and info not in self.function.calls:
            self.function.calls.append(info)
        if self._call_node is not None:
            info.call_sites[self._call_node] = self.function
        if self.function is not None:
            info.callers.add(self.function)
        params = info.node.params
        queue = [p.name.value for p in (*params.posonly_params, *params.params)]
        if info.has_receiver and queue:
            if bound is not None or "classmethod" in info.decorators:
                del queue[: info.receivers]
        hand_on(self.facts, self.function, info, self._call_node, args, len(queue))
        keywords = {p.name.value for p in (*params.params, *params.kwonly_params)}
        for keyword, kind in args:
            name = None
            if keyword is None and queue:
                name = queue.pop(0)
            elif keyword in keywords:
                name = keyword
                queue = [q for q in queue if q != name]
            elif keyword in ("*", "**"):
                break
            if name is not None:
                handed = info.handed.setdefault(name, {})
                known = info.sites.get(name)
                whole = name in kept_whole(self.facts, info) and k.is_parameter(kind)
                kind = widen(kind if whole else k.without_role(kind))
                if known is not None and handed.get(self._call_node) == kind:
                    continue  # nothing new; joining all sites again would cost their number squared
                handed[self._call_node] = kind
                joined = k.joined(handed.values())
                if joined != known:
                    info.sites[name] = joined
                    info.dirty = True
        if info.settled is None and info.owner is not None and syntax.is_left_open(info.node):
            return k.UNKNOWN  # what a class that derives from its own says there
        made = given_layers(self.facts, info, args) or info.returns or k.UNKNOWN
        return self.or_of_heirs_method(info, made) if isinstance(made, k.Module) else made

    def call_from_outside(
        self, info: FunctionInfo, args: Args, bound: k.Kind, place: cst.CSTNode
    ) -> None:
        """Record a call that no expression of the file makes; ``place`` is where its arguments stand."""
        self._call_node = place
        self.call_own(info, args, bound)


_WHOLE = frozenset("floor ceil prod gcd isqrt comb factorial".split())
"""Functions of ``math`` that give an int."""


_CLASS_NAMES = ("cls", "class", "klass")
_SHAPED_BY_SIZES = frozenset(
    "view reshape zeros ones empty rand randn full expand repeat permute new_zeros new_ones new_full".split()
)
_TENSOR_PARAMS = frozenset(
    "input target index src mask query key mat1 mat2 tensor1 tensor2 source vec2 batch1 batch2".split()
)
"""Names that torch's signatures give to arguments that can only be tensors."""

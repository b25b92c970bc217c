"""Methods of modules and containers: the kinds they give, and those they add to a module."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.construction import (
    CONTAINERS,
    PARAMETERS,
    Construction,
    as_parameter,
)
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.first import grown, inserted, with_item
from migrator.infer.norms import MAYBE_AFFINE, surely_affine, tracking
from migrator.infer.python import is_self
from migrator.infer.signatures import Args
from migrator.infer.symbols import CASTS, LAYERS
from migrator.infer.tables import note_kept


class ModuleMethods(Construction):
    """Adds the methods of modules, and calls of those that a class inherits from torch's."""

    _call_node: cst.CSTNode | None

    def _calls_base(self, receiver: k.Kind, args: Args) -> bool:
        """Whether a method of the torch layer that a class derives from is called by the layer's name."""
        if self.owner is None or not args or not isinstance(receiver, k.Class):
            return False
        torchs = receiver.name.startswith(LAYERS) and receiver in self.owner.bases
        return torchs and args[0] == (None, k.Module(self.owner.name))

    def _super_call(self, node: cst.Call, name: str, args: Args) -> k.Kind:
        if self.owner is None:
            return k.UNKNOWN
        for parent in self.facts.after(node.func, self.owner):
            if name in parent.methods:
                return self.call_own(parent.methods[name], args, k.Module(self.owner.name))
        base = self.owner.torch_base
        if name == "reset_parameters" and self.function is not None:
            self.function.builds = True
        if name == "forward" and base:
            return self.call_module(k.Module(base), args)
        if name == "__init__" and base in CONTAINERS:
            self.owner.statics["<item>"] = self._children(args)
        if name == "__init__" and base is not None and base not in CONTAINERS:
            starred = any(keyword in ("*", "**") for keyword, _ in args)
            given = dict(self._constant_args(base, args)).get("bias", k.BOOL if starred else True)
            self.owner.statics["<bias>"] = given if isinstance(given, k.Kind) else k.Const(given)
            if base in MAYBE_AFFINE and not surely_affine(base, args, starred):
                self.owner.statics["<weight>"] = k.BOOL
            if base in MAYBE_AFFINE:
                self.owner.statics["<statistics>"] = tracking(base, args)
        return k.NONE if name == "__init__" else k.UNKNOWN

    def _reads_own_state(self) -> bool:
        """Whether the call being evaluated is a constructor's ``self.state_dict()``."""
        call, info = self._call_node, self.function
        func = call.func if isinstance(call, cst.Call) and not call.args else None
        built = info is not None and ("init" in info.short or info.short == "reset_parameters")
        return built and isinstance(func, cst.Attribute) and syntax.code(func.value) == "self"

    def _module_method(self, name: str, bound: k.Kind | None, args: Args) -> k.Kind:
        if name in ("parameters", "buffers"):
            return k.Sequence(k.Tensor(role="param"), "iter")
        if name == "state_dict" and self._reads_own_state():
            return k.Mapping(k.Tensor(role="param"))
        if name in ("named_parameters", "named_buffers"):
            return k.Sequence(k.Tuple((k.STR, k.Tensor(role="param"))), "iter")
        item = bound.item if isinstance(bound, k.Module) and bound.item is not None else k.Module()
        if name in ("modules", "children", "values"):
            return k.Sequence(item if name != "modules" else k.Module(), "iter")
        if name in ("named_modules", "named_children", "items"):
            return k.Sequence(
                k.Tuple((k.STR, item if name != "named_modules" else k.Module())), "iter"
            )
        if name in ("keys", "state_dict"):
            return k.Sequence(k.STR, "iter") if name == "keys" else k.Mapping(k.TENSOR)
        if name in CASTS or name in ("eval", "train", "apply", "requires_grad_", "share_memory"):
            return bound or k.UNKNOWN
        if name in ("forward", "__call__") and isinstance(bound, k.Module):
            return self.call_module(bound, args)
        return k.UNKNOWN

    def _container_method(
        self, func: cst.Attribute, receiver: k.Kind, node: cst.Call, args: Args
    ) -> k.Kind | None:
        """``append`` and friends, which change what a container holds, and registrations on self."""
        name = func.attr.value
        if name in ("append", "insert", "extend", "add") and args:
            item = args[-1][1]
            if name == "extend":
                item = k.element(item)
            if isinstance(receiver, k.Sequence) and receiver.type == "list":
                known = receiver.item
                new = item if isinstance(known, k.Unknown) else k.join(known, item)
                self.bind_target(func.value, k.Sequence(new, "list"))
                return k.NONE
            if isinstance(receiver, k.Module) and receiver.cls in CONTAINERS:
                item = as_parameter(item) if receiver.cls in PARAMETERS else item
                joined = with_item(receiver.item, item)
                made = grown(receiver, item, joined)
                if name == "insert":
                    made = inserted(receiver, args[0][1], item, joined)
                self.bind_target(func.value, made)
                note_kept(self.facts, self.function, node.args[-1].value)
                return made if name != "insert" else k.UNKNOWN
        if k.children(receiver) and name in ("pop", "add_module", "register_module"):
            self.bind_target(func.value, k.without_places(receiver))
        if isinstance(receiver, k.Module) and args:
            if name in ("register_buffer", "register_parameter") and self.owner is not None:
                key = args[0][1]
                if isinstance(key, k.Const) and len(args) > 1:
                    role = "buffer" if name == "register_buffer" else "param"
                    value = args[1][1]
                    if isinstance(value, k.Unknown):
                        left_out = is_left_out(self.facts, self.function, node.args[1].value)
                        value = k.Optional(k.TENSOR) if left_out else k.TENSOR
                    none = value == k.NONE or isinstance(value, k.Optional)
                    if none and name == "register_buffer" and _is_saved(args):
                        self.owner.statics[f"<none:{key.value}>"] = k.BOOL
                    if isinstance(value, k.Tensor):
                        value = replace(value, role=role)
                    elif isinstance(value, k.Optional) and isinstance(value.inner, k.Tensor):
                        value = k.Optional(replace(value.inner, role=role))
                    self.assign_attribute(str(key.value), value)
                return k.NONE
            if name in ("add_module", "register_module") and len(args) > 1:
                key = args[0][1]
                note_kept(self.facts, self.function, node.args[-1].value)
                if isinstance(key, k.Const) and self.owner is not None and is_self(func.value):
                    self.assign_attribute(str(key.value), args[1][1])
                elif receiver.cls in CONTAINERS:
                    new = with_item(receiver.item, args[1][1])
                    self.bind_target(func.value, grown(receiver, args[1][1], new))
                return k.NONE
        return None


def _is_saved(args: Args) -> bool:
    """Whether ``register_buffer`` is not told to leave the buffer out of the state_dict."""
    given = dict(args[2:]).get("persistent", args[2][1] if len(args) > 2 else k.Const(True))
    return given == k.Const(True)


def is_left_out(facts: Facts, function: FunctionInfo | None, node: cst.BaseExpression) -> bool:
    """Whether a value is an argument that is None where no caller gives it, as it came in."""
    if function is None or not isinstance(node, cst.Name):
        return False
    params = function.node.params
    given = {p.name.value: p.default for p in (*params.params, *params.kwonly_params)}
    default = given.get(node.value)
    if not isinstance(default, cst.Name) or default.value != "None":
        return False
    written = facts.tree.within(function.node, cst.AssignTarget, cst.AnnAssign, cst.AugAssign)
    return not any(syntax.code(one.target) == node.value for one in written)


def drops_layers(facts: Facts, function: FunctionInfo | None, node: cst.Call) -> bool:
    """Whether Python or numpy draws in a loop of a module that asks for the mode: some layers may be left out by it."""
    if function is None or function.owner is None or not function.owner.torch_base:
        return False
    if not facts.tree.has(node) or not facts.tree.reading(function.node.body, "training"):
        return False
    return any(isinstance(one, cst.For) for one in facts.tree.around(node))

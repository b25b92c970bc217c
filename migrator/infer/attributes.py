"""Kinds of attributes: of tensors, modules, classes and what the project defines."""

from __future__ import annotations

from functools import reduce

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.annotations import from_definition
from migrator.infer.distributions import DISTRIBUTIONS, of_distribution
from migrator.infer.expressions import Expressions, type_name
from migrator.infer.facts import ClassInfo, FunctionInfo
from migrator.infer.inverses import is_child
from migrator.infer.named_tuples import ANEW, RECORD
from migrator.infer.norms import MAYBE_AFFINE, TRACKING, is_affine, may_lack
from migrator.infer.recurrent import TABLES
from migrator.infer.symbols import TORCH_VERSION, symbol, tensor_attribute, tensor_only
from migrator.source import dotted
from rules import definitions

RECURRENT = frozenset(
    f"torch.nn.{name}{cell}" for name in ("RNN", "LSTM", "GRU") for cell in ("", "Cell")
)
"""Layers whose ``bias`` says whether they have any."""


def _of_tensors(name: str) -> bool:
    """Whether a tensor has an attribute that no Python number has."""
    return tensor_attribute(name) and not any(hasattr(one, name) for one in (bool, float, complex))


PARAMETER = "<parameter>"
"""Below a local name in the environment: the parameter it was given."""


class Attributes(Expressions):
    """Adds attributes to the expression walk."""

    def eval_Attribute(self, node: cst.Attribute) -> k.Kind:
        value = self.eval(node.value)
        path = dotted(node)
        if path is not None and path in self.env:
            return self.env[path]
        if isinstance(value, k.NumberOrTensor) and _of_tensors(node.attr.value):
            value = self.facts.kinds[node.value] = value.tensor
        if isinstance(value, k.Unknown) and tensor_only(node.attr.value):
            if is_child(self.facts, self.function, node.value):
                return k.UNKNOWN  # what stands in a ModuleList is a module
        kind = self.attribute(value, node.attr.value)
        if type(kind) is k.Unknown and self.owner is not None and _is_own_class(node.value):
            told = self._class_attribute(k.Class(self.owner.name), node.attr.value)
            kind = told if isinstance(told, k.Tensor) else kind
        if type(kind) is k.Function and isinstance(value, k.Module):
            self._hand_on(kind)
        if isinstance(kind, k.Unknown) and node.attr.value == "device":
            return k.Device()  # nobody calls anything else so
        if isinstance(kind, k.Unknown) and node.attr.value == "dtype":
            return k.DType()
        if isinstance(kind, k.Unknown) and node.attr.value == "training":
            return k.BOOL
        return kind

    def attribute(self, value: k.Kind, name: str) -> k.Kind:
        """The kind of ``value.name``."""
        if isinstance(value, k.Optional):
            value = value.inner
        if isinstance(value, k.Namespace):
            return self.lookup(f"{value.name}.{name}")
        if isinstance(value, k.Tensor):
            return self._tensor_attribute(value, name)
        if isinstance(value, k.Device):
            return {"type": k.STR, "index": k.NONE}.get(name, k.UNKNOWN)
        if isinstance(value, k.DType) and name in ("is_floating_point", "is_complex", "is_signed"):
            return k.BOOL
        if isinstance(value, k.Module):
            return self._module_attribute(value, name)
        if isinstance(value, k.Class):
            return self._class_attribute(value, name)
        if isinstance(value, k.Tuple) and name in value.fields:
            return value.items[value.fields.index(name)]
        if value == TORCH_VERSION:
            value = k.STR
        if isinstance(value, k.Other) and "|" in value.type:
            return self._of_any(value.type.split("|"), name)
        if isinstance(value, k.Other) and value.type in self.facts.classes:
            info = self.facts.classes[value.type]
            method = info.method(name)
            if method is not None:
                if "property" in method.decorators:
                    return method.returns or k.UNKNOWN
                return k.Function(method.name, value)
            if info.gradient:
                return self._context_attribute(info, name)
            found = info.attribute(name) or self._of_derived(info, name)
            if isinstance(found, k.Unknown) and name in _MODULE_ONLY:
                return k.Function(
                    f"Module.{name}", k.Module()
                )  # modules that derive from it have it
            return found
        if isinstance(value, k.Other) and value.type == "numpy.random.RandomState":
            return k.Function(f"numpy.random.{name}")
        if isinstance(value, k.Other) and value.type == "numpy.ndarray":
            return k.Function(f"numpy.ndarray.{name}", value)
        if isinstance(value, k.Other) and value.type.startswith(DISTRIBUTIONS):
            return of_distribution(value, name)
        if value == RECORD and name == "_replace":
            return k.Function(ANEW, value)
        if isinstance(value, k.Other):
            return k.UNKNOWN
        if isinstance(value, k.Unknown) and tensor_only(name):
            return self._tensor_attribute(k.TENSOR, name)
        if isinstance(value, k.Unknown) and name in _MODULE_ONLY:
            return k.Function(f"Module.{name}", k.Module())
        if isinstance(value, (k.Sequence, k.Tuple, k.Mapping, k.Scalar, k.Const)):
            return k.Function(f"{type_name(value)}.{name}", value)
        return k.UNKNOWN

    def _context_attribute(self, info: ClassInfo, name: str) -> k.Kind:
        """The kind of ``ctx.name`` in an autograd function."""
        if self.function is not None:
            info.readers.add(self.function)
        if name == "needs_input_grad":
            return k.Sequence(k.BOOL, "tuple")
        return info.attribute(name) or k.UNKNOWN

    def _of_derived(self, info: ClassInfo, name: str) -> k.Kind:
        """The kind of an attribute that a plain class reads of the modules which derive from it."""
        found: k.Kind | None = None
        for cls in self.facts.classes.values():
            if cls.torch_base is None or info not in cls.lineage():
                continue
            kind = self._module_attribute(k.Module(cls.name), name)
            heirs = (one for one in self.facts.classes.values() if one is not cls)
            if isinstance(kind, k.Unknown) and any(cls in one.lineage() for one in heirs):
                continue  # those may have it
            if isinstance(kind, (k.Unknown, k.Function)):
                return k.UNKNOWN
            found = kind if found is None else k.join(found, kind)
        return found if found is not None else k.UNKNOWN

    def _of_any(self, classes: list[str], name: str) -> k.Kind:
        """The kind of an attribute of an object of one of several classes."""
        found: k.Kind | None = None
        for cls in classes:
            kind = self.attribute(k.Other(cls), name)
            if isinstance(kind, k.Function):
                return k.UNKNOWN
            found = kind if found is None else k.join(found, kind)
        return found if found is not None else k.UNKNOWN

    def lookup(self, name: str) -> k.Kind:
        """The kind of a qualified name, in the project or outside."""
        if name in self.facts.classes:
            return k.Class(name)
        if name in self.facts.names:
            return k.Function(name)
        linked = self.facts.linked
        kind = linked.lookup(self.facts, name) if linked is not None else None
        return kind if kind is not None else symbol(name)

    def _tensor_attribute(self, value: k.Tensor, name: str) -> k.Kind:
        if name == "shape":
            if value.rank is not None:
                return k.Tuple((k.INT,) * value.rank)
            return k.Sequence(k.INT, "size")
        if name == "dtype":
            return k.DType()
        if name == "device":
            return k.Device()
        if name in ("T", "mT", "H", "mH"):
            return k.Tensor(value.rank, value.dtype)
        if name in ("data", "grad"):
            return k.Tensor(value.rank, value.dtype)
        for rule in definitions.ops(f"Tensor.{name}"):
            if len(rule.params) == 1 and not _is_method(name):
                return from_definition(rule.returns, value)
        if tensor_attribute(name) or (name[:2] == "__" and definitions.ops(f"Tensor.{name}")):
            return k.Function(f"Tensor.{name}", k.without_role(value))
        return k.UNKNOWN

    def _module_attribute(self, value: k.Module, name: str) -> k.Kind:
        if name == "training":
            return k.BOOL
        if name == "module" and value.cls == k.PARALLEL:
            return k.inside(value)
        if name == "_modules" and self._is_container(value.cls):
            return k.Mapping(value.item or k.Module())
        if name == "_modules" and value.cls in self.facts.classes:
            if self.facts.classes[value.cls].attribute(name) is None:
                return k.Mapping(k.Module())
        if value.cls == "torch.nn.ModuleDict" and name not in _MODULE_API:
            return dict(value.args).get(name) or value.item or k.UNKNOWN
        info = self.facts.classes.get(value.cls)
        if info is not None:
            if self.function is not None:
                for one in info.lineage():
                    one.readers.add(self.function)
            method = info.method(name)
            if method is not None:
                if {"property", "cached_property"} & set(method.decorators):
                    return method.returns or k.UNKNOWN
                return k.Function(method.name, value)
            found = info.attribute(name)
            if found is None and value.cls == getattr(self.owner, "name", ""):
                found = self._of_heirs(info, name)
            if isinstance(found, k.Module):
                return self._or_of_heirs(info, name, found)
            if found is not None:
                return found
            base = info.torch_base or "torch.nn.Module"
            if base != "torch.nn.Module":
                built = any("<bias>" in c.statics for c in info.lineage())
                maybe = any("<weight>" in c.statics for c in info.lineage()) or not built
                if name in ("weight", "bias") and base in MAYBE_AFFINE and maybe:
                    return k.Optional(k.Tensor(dtype="float", role="param"))
                given = next(
                    (c.statics["<bias>"] for c in info.lineage() if "<bias>" in c.statics), k.BOOL
                )
                args = value.args if given == k.Const(True) else (("bias", given),)
                own = [c.statics for c in info.lineage() if "<statistics>" in c.statics]
                if base in MAYBE_AFFINE:
                    kept = own[0]["<statistics>"] if own else k.BOOL
                    args = (*args, (TRACKING, kept.value if isinstance(kept, k.Const) else kept))
                return self._module_attribute(k.Module(base, value.item, args), name)
        elif "|" not in value.cls and value.cls != "torch.nn.Module":
            if name in _PARTS.get(value.cls, {}):
                return k.Module(_PARTS[value.cls][name])
            if name in TABLES and value.cls in RECURRENT:
                item = k.STR if name == "_all_weights" else k.Tensor(dtype="float", role="param")
                return k.Sequence(k.Sequence(item))
            if name == "bias" and value.cls in RECURRENT:
                return k.BOOL
            if name.startswith("bias") and dict(value.args).get("bias", True) is not True:
                return k.Optional(k.Tensor(dtype="float", role="param"))
            if name in ("weight", "bias") and value.cls in MAYBE_AFFINE:
                if not is_affine(value):
                    return k.Optional(k.Tensor(dtype="float", role="param"))
            if name in ("weight", "pos_weight") and value.cls.endswith("Loss"):
                return k.Optional(k.Tensor(dtype="float", role="buffer"))
            if name in ("weight", "bias") or name.startswith(("weight_", "bias_", "in_proj")):
                return k.Tensor(dtype="float", role="param")
            if name.startswith("running_") or name == "num_batches_tracked":
                made = k.Tensor(dtype="float", role="buffer")
                if name == "num_batches_tracked":
                    made = k.Tensor(0, "int", "buffer")
                return k.Optional(made) if may_lack(value, name) else made
            if name.startswith(_SIZES):
                return k.INT
        elif "|" in value.cls and name in ("weight", "bias"):
            return k.Tensor(dtype="float", role="param")
        if definitions.ops(f"{value.cls}.{name}"):
            return k.Function(f"{value.cls}.{name}")  # a static method of a torch layer
        return k.Function(f"Module.{name}", value) if name in _MODULE_API else k.UNKNOWN

    def held(self, node: cst.CSTNode, kind: k.Kind) -> k.Kind:
        """The kind of a value that is handed on: the parameter itself, where a name was given a new one."""
        if type(node) is not cst.Name:
            return kind
        return self.env.get(f"{node.value}.{PARAMETER}", kind)

    def held_each(self, node: cst.CSTNode, kind: k.Kind) -> k.Kind:
        """The same for each element of a tuple that is written out."""
        if not isinstance(node, cst.Tuple) or not isinstance(kind, k.Tuple) or kind.fields:
            return self.held(node, kind)
        if len(node.elements) != len(kind.items):
            return kind
        pairs = zip(node.elements, kind.items, strict=True)
        return k.Tuple(tuple(self.held(element.value, item) for element, item in pairs))

    def _or_of_heirs(self, info: ClassInfo, name: str, found: k.Kind) -> k.Kind:
        """A layer, or one that a class which derives from this one has in its place."""
        for heir in self.facts.classes.values():
            if not heir.parents or heir is info or heir.settled is not None:
                continue  # most derive from none
            if info not in heir.lineage():
                continue
            if self.function is not None:
                heir.readers.add(self.function)
            one = heir.attributes.get(name)
            if one is not None and one != found:
                joined = k.join(found, one)
                found = joined if isinstance(joined, (k.Module, k.Optional)) else found
        return found

    def or_of_heirs_method(self, info: FunctionInfo, made: k.Kind) -> k.Kind:
        """The layer that a method makes, or that one makes which heirs have in its place."""
        for heir in self.facts.classes.values() if info.owner is not None else ():
            one = heir.methods.get(info.short)
            if one is None or one is info or one.settled is not None:
                continue
            if info.owner in heir.lineage() and one.returns is not None:
                made = k.join(made, one.returns)
                if self.function is not None:
                    one.callers.add(self.function)
        return made

    def _of_heirs(self, info: ClassInfo, name: str) -> k.Kind | None:
        """What the classes that derive from this one give an attribute, which its own methods read."""
        heirs = [c for c in self.facts.classes.values() if c is not info and info in c.lineage()]
        if self.function is not None:
            for heir in heirs:
                heir.readers.add(self.function)
        if any(heir.method(name) is not None or heir.settled is not None for heir in heirs):
            return None  # a property of one of them
        if any(self._computes_names(one) for one in (*heirs, *info.lineage())):
            return None
        if self.facts.linked is not None and self.facts.linked.shared(info.name):
            return None  # other files may derive from it, too
        kinds = [heir.attributes[name] for heir in heirs if name in heir.attributes]
        return reduce(k.join, kinds) if kinds else None

    def _computes_names(self, info: ClassInfo) -> bool:
        """Whether a class gives its instances attributes by names that it computes."""
        if info.settled is not None:  # of another file
            return False
        return self.facts.tree.spells(info.node, ("setattr", "__dict__", "add_module"))

    def _is_container(self, cls: str) -> bool:
        info = self.facts.classes.get(cls)
        return (info.torch_base if info is not None else cls) in _LISTS

    def _class_attribute(self, value: k.Class, name: str) -> k.Kind:
        info = self.facts.classes.get(value.name)
        if info is not None:
            method = info.method(name)
            if method is not None:
                return k.Function(method.name)
            if name == "apply" and info.gradient:
                forward = info.method("forward")
                bound = k.Other(info.name)
                return k.Function(forward.name, bound) if forward is not None else k.UNKNOWN
            for parent in info.lineage():
                if name in parent.statics:
                    return parent.statics[name]
        if value.name == "torch.Tensor" and tensor_attribute(name):
            return k.Function(f"Tensor.{name}")
        if value.name.startswith("torch."):
            return symbol(f"{value.name}.{name}")
        return k.UNKNOWN


_LISTS = frozenset(["torch.nn.Sequential", "torch.nn.ModuleList"])
_MODULE_API = frozenset(
    "apply parameters named_parameters buffers named_buffers modules named_modules children named_children "
    "state_dict load_state_dict train eval to cuda cpu float half double bfloat16 requires_grad_ zero_grad "
    "register_buffer register_parameter add_module register_module append extend insert items keys values "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook get_parameter get_submodule "
    "_get_name extra_repr forward __call__ type share_memory compile update pop".split()
)


_MODULE_ONLY = frozenset(
    "named_parameters parameters buffers named_buffers modules named_modules children named_children "
    "state_dict load_state_dict zero_grad register_forward_hook register_forward_pre_hook".split()
)


def _is_method(name: str) -> bool:
    from rules.torch_names import table

    return name in table()["method"]


_SIZES = ("in_", "out_", "num_", "embedding_dim", "groups", "hidden_size")
"""How the names of the arguments begin that layers keep and that are sizes."""

_ENCODER = {
    "self_attn": "torch.nn.MultiheadAttention",
    **dict.fromkeys(("linear1", "linear2"), "torch.nn.Linear"),
    **dict.fromkeys(("norm1", "norm2"), "torch.nn.LayerNorm"),
}
_DECODER = {
    **_ENCODER,
    "multihead_attn": "torch.nn.MultiheadAttention",
    "norm3": "torch.nn.LayerNorm",
}
_PARTS = {
    "torch.nn.MultiheadAttention": {"out_proj": "torch.nn.Linear"},
    "torch.nn.TransformerEncoderLayer": _ENCODER,
    "torch.nn.TransformerDecoderLayer": _DECODER,
}
"""The layers that torch's composite layers are made of."""


def _is_own_class(node: cst.BaseExpression) -> bool:
    """``type(self)``, ``self.__class__``."""
    if isinstance(node, cst.Call):
        asked = node.args[0].value if len(node.args) == 1 else None
        called = isinstance(node.func, cst.Name) and node.func.value == "type"
    else:
        asked = node.value if isinstance(node, cst.Attribute) else None
        called = isinstance(node, cst.Attribute) and node.attr.value == "__class__"
    return called and isinstance(asked, cst.Name) and asked.value == "self"

"""Classes that derive from a torch layer: they take torch's arguments, and know what torch's layer knows."""

from __future__ import annotations

import ast
import re
from functools import cache, lru_cache
from typing import Any

import libcst as cst

from migrator import python_tree, syntax
from migrator.convert.base_arguments import hands_on, over_axes, pads_otherwise
from migrator.convert.context import Context, Failure
from migrator.convert.passes.targets import check_loss
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.signature import plain_class
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.attributes import RECURRENT
from migrator.infer.python import is_self
from migrator.infer.tables import INITIALISING
from rules import definitions
from rules.definitions import Rule, RuleFile, module_file

_SAME = {
    "torch.nn.Linear": frozenset({"in_features", "out_features"}),
    "torch.nn.Embedding": frozenset({"num_embeddings"}),
}
"""Attributes that Flax's layers have under torch's names."""
CONVOLUTIONS = ("torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.Conv3d")
"""Layers whose copied classes take torch's own arguments up to ``bias``, by place and by name."""
_LEFT_OUT = frozenset({"device", "dtype", "rngs"})


_AS_TORCH = {
    "torch.nn.LayerNorm": ("rules.compat.norm", "LayerNormNd"),
    "torch.nn.RMSNorm": ("rules.compat.norm", "RMSNormNd"),
    "torch.nn.Linear": ("rules.compat.linear", "LinearAsTorch"),
}
"""Layers of Flax with other arguments than torch's, and the classes that take torch's."""


_OF_FUNCTIONS = {
    **{
        f"torch.nn.{name.removesuffix('AsTorch')}": ("rules.compat.pooling_layers", name)
        for name in "MaxPool1dAsTorch MaxPool2dAsTorch MaxPool3dAsTorch".split()
    },
    **{
        f"torch.nn.{name.removesuffix('AsTorch')}": ("rules.compat.functions_as_torch", name)
        for name in (
            "GLUAsTorch HardtanhAsTorch ReLU6AsTorch SELUAsTorch MishAsTorch HardsigmoidAsTorch "
            "HardswishAsTorch CELUAsTorch ThresholdAsTorch HardshrinkAsTorch SoftshrinkAsTorch "
            "TanhshrinkAsTorch SoftsignAsTorch LogSigmoidAsTorch Softmax2dAsTorch SoftminAsTorch "
            "UnfoldAsTorch FoldAsTorch ChannelShuffleAsTorch PixelUnshuffleAsTorch "
            "UpsamplingNearest2dAsTorch UpsamplingBilinear2dAsTorch LPPool1dAsTorch LPPool2dAsTorch"
        ).split()
    },
    "torch.nn.AvgPool2d": ("rules.compat.pooling_layers", "AvgPool2dAsTorch"),
    "torch.nn.modules.loss._WeightedLoss": ("rules.compat.as_torch", "WeightedLossAsTorch"),
    **{
        f"torch.nn.{name.removesuffix('AsTorch')}": ("rules.compat.as_torch", name)
        for name in (
            "IdentityAsTorch GELUAsTorch SigmoidAsTorch SoftmaxAsTorch LogSoftmaxAsTorch TanhAsTorch "
            "ReLUAsTorch SiLUAsTorch LeakyReLUAsTorch ELUAsTorch SoftplusAsTorch PixelShuffleAsTorch "
            "FlattenAsTorch UpsampleAsTorch AdaptiveAvgPool2dAsTorch ConstantPad1dAsTorch "
            "ConstantPad2dAsTorch ZeroPad2dAsTorch ReflectionPad2dAsTorch MSELossAsTorch "
            "L1LossAsTorch SmoothL1LossAsTorch KLDivLossAsTorch NLLLossAsTorch "
            "CrossEntropyLossAsTorch BCELossAsTorch BCEWithLogitsLossAsTorch"
        ).split()
    },
}
"""Layers that are plain functions in the output, and the classes that stand for them where a class derives from one."""


def as_torch(ctx: Context, info: ClassInfo | None) -> tuple[str, str] | None:
    """The class with torch's arguments and attributes that a subclass of a layer needs as its base.

    Its constructor hands on arguments that are not known here, or its methods read what Flax's layer does not keep.
    """
    if info is not None and info.torch_base in CONVOLUTIONS and not _inherits(info):
        if pads_otherwise(ctx) or "_reversed_padding_repeated_twice" in ctx.words:
            return "rules.compat.conv", info.torch_base.replace("torch.nn.", "Padded")
        return None
    if info is not None and info.torch_base in _OF_FUNCTIONS:
        if info.torch_base in _IN_PLACE and _may_be_in_place(ctx, info):
            return None  # whose instances may write to what they are handed
        return _OF_FUNCTIONS[info.torch_base]
    if info is not None and info.torch_base == "torch.nn.Embedding" and not _inherits(info):
        return _EMBEDDING if _asks_more(ctx, info) else None
    made = _AS_TORCH.get(info.torch_base or "") if info is not None else None
    init = info.methods.get("__init__") if info is not None else None
    if info is None or made is None or init is None or _inherits(info):
        return None
    rule = layer_rule(info)
    if rule is None:
        return None
    norm = made[0] == "rules.compat.norm"
    asks = hands_on(ctx, init.node) or (norm and over_axes(ctx, init.node))
    return made if asks or _read(ctx, info, rule) else None


_IN_PLACE = {
    **{f"torch.nn.{name}": 0 for name in "ReLU ReLU6 SiLU SELU Mish Hardsigmoid Hardswish".split()},
    **{f"torch.nn.{name}": 1 for name in "LeakyReLU ELU CELU".split()},
    **{f"torch.nn.{name}": 2 for name in "Hardtanh Threshold".split()},
}
"""Layers with the number of arguments before ``inplace``."""


def _may_be_in_place(ctx: Context, info: ClassInfo) -> bool:
    """Whether a file may make instances of a class with ``inplace=True``."""
    linked = ctx.facts.linked
    if "inplace" in ctx.words or info.settled is not None:
        return True
    if linked is not None and linked.shared(info.name):
        return True  # other files may
    before = _IN_PLACE[info.torch_base or ""]
    for call in ctx.source.index.of_type(cst.Call):
        func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        if isinstance(func, cst.Name) and func.value in (info.short, "__init__"):
            if len(call.args) > before or any(one.star for one in call.args):
                return True
    return False


_EMBEDDING = ("rules.compat.embedding", "EmbeddingAsTorch")


def _asks_more(ctx: Context, info: ClassInfo) -> bool:
    """Whether a class derived from an embedding is made with more than its two sizes, or reads what it was made with."""
    init = info.methods.get("__init__")
    if init is None or hands_on(ctx, init.node):
        return True
    made = [
        call
        for call in ctx.source.index.within(init.node, cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__"
    ]
    named = {a.keyword.value for call in made for a in call.args if a.keyword is not None}
    return (
        any(len(call.args) > _SIZES for call in made)
        or bool(named & _READ_OF_EMBEDDING)
        or any(
            isinstance(node.value, cst.Name)
            and node.value.value == "self"
            and node.attr.value in _READ_OF_EMBEDDING
            for method in info.methods.values()
            for node in ctx.source.index.within(method.node, cst.Attribute)
        )
    )


_SIZES = 2
_READ_OF_EMBEDDING = frozenset(
    "embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse".split()
)


def _inherits(info: ClassInfo) -> bool:
    """Whether a class derives from one of torch's layers through another class."""
    return any(p.torch_base not in (None, "torch.nn.Module") for p in info.parents)


def mixed_in(info: ClassInfo) -> list[ClassInfo]:
    """The modules without a layer of their own that a class derives from beside one of torch's layers."""
    if info.torch_base in (None, "torch.nn.Module") or _inherits(info):
        return []
    return [p for p in info.parents if p.torch_base == "torch.nn.Module"]


def layer_rule(info: ClassInfo) -> Rule | None:
    """The definition of the torch layer that a class derives from, where Flax's takes other arguments."""
    rules = definitions.layers(info.torch_base or "")
    if len(rules) != 1 or plain_class(rules[0]) is not None:
        return None
    return rules[0] if rules[0].returns.strip("'\"") not in ("", "Callable") else None


def needs_signature(info: ClassInfo) -> Rule | None:
    """The definition whose arguments a class without a constructor must take; None where one is inherited."""
    if info.method("__init__") is not None or _inherits(info):
        return None
    return layer_rule(info) if info.torch_base != "torch.nn.Embedding" else None


def _read(ctx: Context, info: ClassInfo, rule: Rule) -> list[str]:
    """The arguments of the layer that the methods of a class read as attributes."""
    found = set()
    for method in info.methods.values():
        for node in ctx.source.index.within(method.node, cst.Attribute):
            if isinstance(node.value, cst.Name):
                if node.value.value == "self" and _is_argument(info, rule, node.attr.value):
                    found.add(node.attr.value)
    made = rule.returns.strip("'\"")
    return [p.name for p in rule.params if p.name in found and not _keeps(rule.file, made, p.name)]


def _is_argument(info: ClassInfo, rule: Rule, name: str) -> bool:
    known = _SAME.get(info.torch_base or "", frozenset()) | set(rule.weights) | _LEFT_OUT
    return name in rule.by_name and name not in known and info.attribute(name) is None


def constructor(rw: Rewriter, info: ClassInfo, rule: Rule) -> cst.FunctionDef | None:
    """``__init__`` with torch's arguments; None where Flax's layer may be handed them as they are.

    Raises:
      Failure: the layer is one of Flax itself, which would take them for something else.
    """
    from migrator.convert.passes.modules import layer_super

    taken = [p for p in rule.params if p.name not in _LEFT_OUT and p.mode == "positional"]
    text = ", ".join(
        p.name if p.default is None else f"{p.name}={ast.unparse(p.default)}" for p in taken
    )
    given = ", ".join(p.name if p.default is None else f"{p.name}={p.name}" for p in taken)
    call = cst.parse_expression(f"super().__init__({given})")
    assert isinstance(call, cst.Call)
    for item in (
        call.args
    ):  # a subclass of a norm is of one over a single axis, unless torch's class says more
        if syntax.code(item.value) == "normalized_shape":
            rw.ctx.facts.kinds[item.value] = k.INT
    rngs = rw.ctx.module_rngs
    try:
        made = layer_super(rw, info.torch_base or "", call)
    except Failure as failure:
        if not rule.returns.strip("'\"").startswith("nnx."):
            return None
        raise Failure(info.node, failure.rule, failure.message, failure.advice) from failure
    finally:
        rw.ctx.module_rngs = rngs
    rw.ctx.helpers.use("nnx")
    lines = [syntax.code(made), *(_kept(name) for name in _read(rw.ctx, info, rule))]
    body = "".join(f"    {line}\n" for line in lines)
    function = cst.parse_statement(f"def __init__(self, {text}, *, rngs: nnx.Rngs):\n{body}")
    assert isinstance(function, cst.FunctionDef)
    return function


def _kept(name: str) -> str:
    if name == "normalized_shape":
        one = "(normalized_shape,) if isinstance(normalized_shape, int)"
        return f"self.normalized_shape = {one} else tuple(normalized_shape)"
    return f"self.{name} = {name}"


_FLAX_NAMES = {
    "torch.nn.Embedding": {"embedding_dim": "features"},
    "torch.nn.LayerNorm": {"eps": "epsilon"},
    "torch.nn.RMSNorm": {"eps": "epsilon"},
    "torch.nn.Dropout": {"p": "rate"},
}
"""Arguments that Flax's layers keep under names of their own."""


_PADDING = ("torch.nn.Embedding", "padding_idx")
"""What an embedding without it, which is one of Flax's own, does not know."""


@converts(cst.Attribute, of=(k.Module,))
def layer_argument(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.emb.embedding_dim``: an argument of a layer, which the layer in the output may not keep."""
    kind = rw.ctx.kind(node.value)
    if isinstance(kind, k.Module):
        check_loss(node, kind.cls)
    if isinstance(rw.ctx.kind(node), (k.Tensor, k.Function)):
        return None
    if isinstance(kind, k.Module) and (kind.cls, node.attr.value) == _PADDING:
        given = [rw.visit(node.value), cst.SimpleString('"padding_idx"'), cst.Name("None")]
        return syntax.with_args(cst.Call(cst.Name("getattr")), [cst.Arg(one) for one in given])
    told = _told(rw, node)
    if told is not None:
        return told
    name = name_in_flax(rw.ctx, node)
    if name == node.attr.value:
        return None
    value = syntax.fitted(node, "value", rw.visit(node.value))
    return syntax.changed(node, value=value, attr=cst.Name(name))


_NORMS = re.compile(r"torch\.nn\.(Sync)?(Batch|Instance|Group)Norm(\dd)?")


def _told(rw: Rewriter, node: cst.Attribute) -> cst.BaseExpression | None:
    """``self.bn.affine``, ``self.padding_mode``: what the output says by having a weight, or another class."""
    if node.attr.value not in _TOLD:
        return None
    kind = rw.ctx.kind(node.value)
    info = rw.ctx.class_of(kind)
    layer = info.torch_base if info is not None else getattr(kind, "cls", None)
    if layer is None or (info is not None and _is_its_own(info, node.attr.value)):
        return None
    if node.attr.value == "affine" and _may_be_norm(rw.ctx, layer):
        told = "(x.weight is not None)"
    elif node.attr.value == "transposed" and layer in (*CONVOLUTIONS, *_TRANSPOSED):
        told = str(layer in _TRANSPOSED)
    elif node.attr.value == "output_padding" and layer in CONVOLUTIONS:
        told = f"(0,) * {layer[-2]}"
    elif node.attr.value == "padding_mode" and layer in CONVOLUTIONS:
        told = 'getattr(x, "padding_mode", "zeros")'
    else:
        return None
    return syntax.substitute(syntax.parse(told), {"x": rw.visit(node.value)})


_TOLD = ("affine", "padding_mode", "transposed", "output_padding")
_TRANSPOSED = tuple(f"torch.nn.ConvTranspose{n}d" for n in (1, 2, 3))


def _has_own(ctx: Context, name: str) -> bool:
    """Whether a class of the project gives its instances an attribute of a name."""
    return any(
        name in info.attributes or name in info.statics for info in ctx.facts.classes.values()
    )


def _may_be_norm(ctx: Context, layer: str) -> bool:
    """Whether a layer is one of batch, instance or group norm, or any, of which only these have ``affine``."""
    own = layer == "torch.nn.Module" and not _has_own(ctx, "affine")
    return own or _NORMS.fullmatch(layer) is not None


def name_in_flax(ctx: Context, node: cst.Attribute, written: bool = False) -> str:
    """The name under which what a layer becomes keeps an attribute, be it read or given a new value.

    Raises:
      Failure: it is not kept, so that reading it fails and writing it changes nothing.
    """
    name = node.attr.value
    kind = ctx.kind(node.value)
    if written and name == "__bases__":
        info = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
        if info is None or info.torch_base is not None:
            what = "a class gets other bases, which Python refuses where they are Flax's"
            raise Failure(node, "API001", what, "derive from them where the class is defined")
    layers = kind.cls.split("|") if isinstance(kind, k.Module) else []
    if not layers:
        return name
    if written and layers == ["torch.nn.Module"]:  # one layer or another
        known = _assigned_layers(ctx, node.value) or _among(kind)
        layers = [one for one in known if _name_in_flax(ctx, one, name, written) is None] or layers
    names = {_name_in_flax(ctx, layer, name, written) for layer in layers}
    if names == {name} or is_asked_for_class(ctx, node.value):
        return name
    found = names.pop()
    if (names or found is None) and any(name in _weights(layer) for layer in layers):
        raise Failure(
            node,
            "API006",
            f"`{name}` of {' and '.join(layers)} has another name in Flax, and may be laid out otherwise",
            "write one branch for each class, and hand it an nn.Parameter",
        )
    if names or found is None:
        raise Failure(
            node,
            "API001",
            f"`{name}` of {' and '.join(layers)} is not kept by what it becomes",
            "keep the argument in an attribute of its own, or hand it to the constructor",
        )
    return found


def _assigned_layers(ctx: Context, node: cst.BaseExpression) -> list[str]:
    """torch's layers that the file gives an attribute of this name: ``self.pool = nn.MaxPool2d(2)``."""
    if not isinstance(node, cst.Attribute):
        return []
    found = {
        kind.cls
        for line in ctx.source.index.of_type(cst.Assign)
        for one in line.targets
        if isinstance(one.target, cst.Attribute) and one.target.attr.value == node.attr.value
        if isinstance(kind := ctx.kind(line.value), k.Module) and kind.cls.startswith("torch.nn.")
    }
    return sorted(found - {"torch.nn.Module"})


def _among(kind: k.Kind) -> list[str]:
    """The layers that one of another file is known to be one of."""
    return [one.cls for one in kind.among] if isinstance(kind, k.Module) else []


def _name_in_flax(ctx: Context, layer: str, name: str, written: bool) -> str | None:
    info = ctx.facts.classes.get(layer)
    if (
        info is not None
    ):  # its own attributes are its own business, unless torch's forward pass reads them
        if info.settled is None and as_torch(ctx, info) is not None:
            return name
        base = info.torch_base or ""
        own_forward = base in ("", "torch.nn.Module") or info.method("forward") is not None
        inherits = base != "torch.nn.Module" and not _is_its_own(info, name) and _taking(base, name)
        own_base = {**_AS_TORCH, **_OF_FUNCTIONS, "torch.nn.Embedding": _EMBEDDING}
        if inherits and base not in _BY_NAME and base not in own_base:
            layer = base
        else:
            layer = "" if own_forward or name not in info.attributes else base
    given = not written and not _taking(layer, name) and _is_given(ctx, name)
    return _of_layer(layer, name, written, given)


def _is_its_own(info: ClassInfo, name: str) -> bool:
    """Whether a class derived from one of torch's layers gives its instances an attribute of a name."""
    return info.attribute(name) is not None or info.method(name) is not None


@lru_cache(maxsize=4096)
def _taking(layer: str, name: str) -> list[Rule]:
    """The definitions of a layer that have an argument of a name."""
    return [rule for rule in definitions.layers(layer) if name in rule.by_name]


@lru_cache(maxsize=4096)
def _of_layer(layer: str, name: str, written: bool, given: bool) -> str | None:
    """What one of torch's layers calls an attribute in Flax.

    ``given``: the file gives something an attribute of that name.
    """
    if name == "dropout" and layer.startswith("torch.nn.") and layer not in _BY_NAME:
        return None  # a number in torch, a layer in the classes that take one
    if name == "bias" and layer in RECURRENT:
        return None  # whether it has any
    weights = _weights(layer)
    if name in weights:
        return name if not written or weights[name] == name else None  # read by other passes
    rules = _taking(layer, name)
    if name in _SAME.get(layer, ()) or any(name in {*rule.weights, "bias"} for rule in rules):
        return name
    if not rules and (written or name.startswith("__") or given):
        return name
    rules = rules or list(definitions.layers(layer))  # a method of torch's, or what it computes
    if all(_keeps(rule.file, rule.returns.strip("'\""), name) for rule in rules):
        return name
    return _FLAX_NAMES.get(layer, {}).get(name)


_BY_NAME = frozenset({"torch.nn.ModuleDict", "torch.nn.Module"})
"""Whose attributes are the children that they were given."""


def is_asked_for_class(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a test around an expression says that it is of a class that is not known: not what it seemed to be."""
    if "isinstance" not in ctx.words or not ctx.facts.tree.has(node):
        return False
    for outer in ctx.facts.tree.around(node):
        test = outer.test if type(outer) is cst.If or type(outer) is cst.IfExp else None
        for call in ctx.facts.tree.within(test, cst.Call) if test is not None else ():
            if len(call.args) != 2:
                continue
            asked = isinstance(call.func, cst.Name) and call.func.value == "isinstance"
            if asked and call.args[0].value.deep_equals(node):
                kind = ctx.facts.kind(call.args[1].value)
                if not isinstance(kind, (k.Class, k.Tuple, k.Sequence)):
                    return True
    return False


def _is_given(ctx: Context, name: str) -> bool:
    """Whether the file gives some object an attribute of that name itself, or asks for it with ``getattr``."""
    if ctx.given_names is None:
        targets = [node.target for node in ctx.source.index.of_type(cst.AssignTarget)]
        others = (t for t in targets if type(t) is cst.Attribute and not is_self(t.value))
        ctx.given_names = {t.attr.value: True for t in others}
    if name not in ctx.given_names:
        text = ctx.source.text
        ctx.given_names[name] = f'"{name}"' in text or f"'{name}'" in text
    return ctx.given_names[name]


@cache
def _weights(layer: str) -> dict[str, str]:
    """torch's names of the weights of a layer → those in Flax, with ``.T`` where it is stored transposed."""
    if layer == "torch.nn.Module":  # any layer
        return _renamed()
    rules = definitions.layers(layer)
    return dict(rules[0].weights) if rules else {}


@cache
def _renamed() -> dict[str, str]:
    """The weights that some layer keeps under another name."""
    every = [rule for rules in definitions.index("layer").values() for rule in rules]
    return {name: flax for r in every for name, flax in r.weights.items() if name != flax}


def keeps_argument(layer: str, name: str) -> bool:
    """Whether what a layer of torch becomes keeps an argument of the layer under its name, if it has it."""
    return not _taking(layer, name) or _of_layer(layer, name, False, False) == name


def is_kept(layer: str, name: str) -> bool:
    """Whether what a layer of torch becomes has an attribute or method of this name."""
    rules = definitions.layers(layer)
    return all(_keeps(rule.file, rule.returns.strip("'\""), name) for rule in rules)


def _keeps(file: RuleFile, made: str, name: str) -> bool:
    """Whether instances of a class that rules make have an attribute of this name."""
    module, attribute = file.imports.get(made, ("", None))
    if module.startswith("rules.compat"):
        return _keeps(module_file(module), attribute or made, name)
    definition = file.definitions.get(made)
    if not isinstance(definition, ast.ClassDef):
        return False
    for item in python_tree.walk(definition):
        if isinstance(item, ast.Attribute) and item.attr == name:
            if isinstance(item.ctx, ast.Store):
                return True
        elif isinstance(item, ast.FunctionDef) and item.name == name:
            return True
    return any(_keeps(file, ast.unparse(base), name) for base in definition.bases)


@converts(cst.Attribute)
def argument(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.eps`` of a class that calls its layer's constructor itself: Flax's layer has no such attribute."""
    ctx = rw.ctx
    owner = ctx.owner
    if owner is None or not ctx.is_self(node.value) or owner.method("__init__") is None:
        return None
    rule = layer_rule(owner)
    if rule is None or not rule.returns.strip("'\"").startswith("nnx."):
        return None
    if not _is_argument(owner, rule, node.attr.value):
        return None
    if isinstance(ctx.facts.kind(node), k.Function) or as_torch(ctx, owner) is not None:
        return None
    raise Failure(
        node,
        "API001",
        f"`{node.attr.value}` of {owner.torch_base} has another name in Flax",
        "keep the argument in an attribute of its own",
    )


@converts(cst.Expr, named=("_check_input_dim",), values=(cst.Call,))
def checks(rw: Rewriter, node: cst.Expr) -> Any:
    """``self._check_input_dim(x)`` of a batch norm raises or does nothing."""
    if not isinstance(node.value, cst.Call) or not isinstance(node.value.func, cst.Attribute):
        return None
    func, owner = node.value.func, rw.ctx.owner
    if func.attr.value != "_check_input_dim" or not rw.ctx.is_self(func.value) or owner is None:
        return None
    return [] if _is_the_layers(rw.ctx, owner, func) else None


@converts(cst.Call)
def method_of_the_layer(rw: Rewriter, node: cst.Call) -> Any:
    """``self._output_padding(…)`` of a class that derives from a layer: what that becomes has no such method."""
    func, owner = node.func, rw.ctx.owner
    if owner is None or not isinstance(func, cst.Attribute) or not rw.ctx.is_self(func.value):
        return None
    name = func.attr.value
    if name in INITIALISING or not _is_the_layers(rw.ctx, owner, func):
        return None
    if is_kept(owner.torch_base or "", name):
        return None
    raise Failure(node, "API001", f"`{name}` is {owner.torch_base}'s own", "write it out")


def _is_the_layers(ctx: Context, owner: ClassInfo, func: cst.Attribute) -> bool:
    """Whether ``self.name`` is known neither to the file nor as a method of all modules, but perhaps to a layer."""
    if isinstance(ctx.facts.kind(func), (k.Function, k.Module, k.Class)):
        return False
    name = func.attr.value
    if owner.method(name) is not None or owner.attribute(name) is not None:
        return False
    return bool(definitions.layers(owner.torch_base or ""))

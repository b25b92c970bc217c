"""What a ``PreTrainedModel`` of transformers has and its stand-in has not: said where it is asked for."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.absent import REFUSED
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.pretrained import BASE, OVERRIDES, READERS, SETTERS
from migrator.source import dotted

_MISSING = (
    "post_init init_weights initialize_weights tie_weights _tie_weights _tie_or_clone_weights "
    "set_input_embeddings get_output_embeddings set_output_embeddings set_decoder "
    "resize_position_embeddings get_position_embeddings prune_heads num_parameters "
    "estimate_tokens floating_point_ops gradient_checkpointing_enable gradient_checkpointing_disable "
    "is_gradient_checkpointing _set_gradient_checkpointing enable_input_require_grads "
    "save_pretrained push_to_hub can_generate dummy_inputs name_or_path generation_config warnings_issued "
    "set_attn_implementation get_memory_footprint retrieve_modules_from_names register_for_auto_class framework "
    "_gradient_checkpointing_func _convert_head_mask_to_5d _initialize_weights "
    "add_memory_hooks reset_memory_hooks_state _backward_compatibility_gradient_checkpointing"
).split()


@converts(cst.Attribute, named=tuple(_MISSING))
def missing(rw: Rewriter, node: cst.Attribute) -> None:
    """``self.loss_function(…)``, ``Model.from_pretrained(…)``.

    Raises:
      Failure: neither the class nor those of the project that it derives from have it.
    """
    ctx, name = rw.ctx, node.attr.value
    kind = ctx.kind(node.value)
    cls = kind.cls if isinstance(kind, k.Module) else kind.name if isinstance(kind, k.Class) else ""
    info = ctx.owner if ctx.is_self(node.value) else ctx.facts.classes.get(cls)
    if info is None:
        return
    if not _derives(info):
        return
    every = info.lineage()
    if any(name in one.methods or name in one.attributes or name in one.statics for one in every):
        return
    what = f"PreTrainedModel.{name} of transformers is not converted"
    raise Failure(node, "API004", what, "write what is needed of it into the class")


_LOSSES = ("ForSegmentation", "ForObjectDetection")
"""What the class of a model is called whose loss does not stand here."""


@converts(cst.Call, named=("loss_function",))
def loss(rw: Rewriter, node: cst.Call) -> None:
    """``self.loss_function(…)``, which goes by the name of the class.

    Raises:
      Failure: the loss of such a class is not known here.
    """
    info, func = rw.ctx.owner, node.func
    if info is None or not isinstance(func, cst.Attribute) or not rw.ctx.is_self(func.value):
        return
    if not _derives(info):
        return
    own = any("loss_function" in (*one.methods, *one.attributes) for one in _own(info))
    if not own and any(word in info.node.name.value for word in _LOSSES):
        what = f"the loss of {info.node.name.value} is chosen by transformers and not converted"
        raise Failure(node, "API004", what, "call the loss itself")


@converts(cst.Call, named=SETTERS)
def set_anew(rw: Rewriter, node: cst.Call) -> None:
    """``model.set_input_embeddings(layer)`` of a model whose setters refuse (``migrator.pretrained``).

    Raises:
      Failure: it is one.
    """
    ctx, func = rw.ctx, node.func
    kind = ctx.kind(func.value) if isinstance(func, cst.Attribute) else None
    cls = kind.cls if isinstance(kind, k.Module) else getattr(kind, "type", "")
    info = ctx.facts.classes.get(cls)
    if info is None or not isinstance(func, cst.Attribute) or not _derives(info):
        return
    own = info.method(func.attr.value)
    known = own is not None and own.settled is None
    if not known or "NotImplementedError" in syntax.names(own.node.body):  # type: ignore[union-attr]
        what = "the embeddings of a model of transformers are those of its configuration"
        raise Failure(node, "API004", what, "build the model with a configuration that says so")


@converts(cst.Call, named=("StaticCache",))
def static(rw: Rewriter, node: cst.Call) -> None:
    """``StaticCache(…)``, whose stand-in is there for ``isinstance`` alone.

    Raises:
      Failure: one is made.
    """
    kind = rw.ctx.kind(node.func)
    if isinstance(kind, k.Class) and _stands_in(kind.name):
        what = "StaticCache of transformers is not converted"
        raise Failure(node, "API004", what, "take a DynamicCache")


@converts(cst.Call, named=("from_pretrained",))
def drawn(rw: Rewriter, node: cst.Call) -> None:
    """``BertModel.from_pretrained(name)``: the port takes the configuration that was saved, and no weights."""
    func = node.func
    kind = rw.ctx.kind(func.value) if isinstance(func, cst.Attribute) else None
    info = rw.ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    if info is not None and _derives(info):
        what = "from_pretrained() of the port draws its weights: it reads no checkpoint"
        advice = "load the state_dict of the torch model into the port (migrator.load_state_dict)"
        rw.ctx.report(node, "API004", what, advice, severity="warning", blocks=False)


@converts(cst.Assign, named=("loss_type", "_loss_function"))
def chosen_loss(rw: Rewriter, node: cst.Assign) -> None:
    """``self.loss_type = "ForMaskedLM"``: the loss goes by the name of the class here.

    Raises:
      Failure: a model of transformers chooses another.
    """
    info, target = rw.ctx.owner, node.targets[0].target
    if info is None or not isinstance(target, cst.Attribute) or not rw.ctx.is_self(target.value):
        return
    if _derives(info):
        what = "the loss of a model of transformers goes by the name of its class"
        raise Failure(node, "API004", what, "call the loss itself")


@converts(cst.FunctionDef, when=lambda ctx: "check_model_inputs" in ctx.words)
def recorded(rw: Rewriter, node: cst.FunctionDef) -> None:
    """``@check_model_inputs`` records hidden states and attentions by hooks, where they are asked for."""
    if any("check_model_inputs" in syntax.names(one.decorator) for one in node.decorators):
        what = "output_hidden_states and output_attentions are recorded by hooks here: the port refuses them"
        advice = "return what is needed from the layers"
        rw.ctx.report(node, "API004", what, advice, severity="warning", blocks=False)


@converts(cst.Raise, when=lambda ctx: "_attn_implementation" in ctx.words)
def kernel(rw: Rewriter, node: cst.Raise) -> None:
    """The branch of a model that is told to take a kernel (``migrator.absent``)."""
    if syntax.code(node) == REFUSED:
        what = "a model that is told to take kernels for attention is refused by the port"
        advice = 'say attn_implementation="sdpa" or "eager" in its configuration'
        rw.ctx.report(node, "API004", what, advice, severity="warning", blocks=False)


@converts(cst.FunctionDef, when=lambda ctx: any(word.startswith(READERS) for word in ctx.words))
def reading(rw: Rewriter, node: cst.FunctionDef) -> None:
    """A function that reads checkpoints of TensorFlow (``migrator.pretrained``)."""
    if node.name.value.startswith(READERS) and "NotImplementedError" in syntax.names(node.body):
        what = "checkpoints of TensorFlow are read into models of torch: the port refuses them"
        advice = "read one with transformers and torch, and save a state_dict"
        rw.ctx.report(node, "API004", what, advice, severity="warning", blocks=False)


@converts(cst.ClassDef, when=lambda ctx: "GenerationMixin" in ctx.words)
def generating(rw: Rewriter, node: cst.ClassDef) -> None:
    """A model that transformers generates with: its port has no generate()."""
    for base in node.bases:
        kind = rw.ctx.kind(base.value)
        if isinstance(kind, k.Class) and _stands_in(kind.name):
            if kind.name.endswith(".GenerationMixin"):
                what = "generate() is transformers' own, and not converted: the port refuses it"
                advice = "write the loop that generates"
                rw.ctx.report(base, "API004", what, advice, severity="warning", blocks=False)


@converts(cst.ClassDef, when=lambda ctx: any(word.startswith("GenericFor") for word in ctx.words))
def headed(rw: Rewriter, node: cst.ClassDef) -> None:
    """A class with one of the heads that models share, whose model is not known.

    Raises:
      Failure: no constructor makes it.
    """
    info = next((c for c in rw.ctx.facts.classes.values() if c.node is node), None)
    if info is None or _stands_in(info.name):
        return
    every = info.lineage()
    shared = any("GenericFor" in one.name and _stands_in(one.name) for one in every)
    if shared and not any({"score", "qa_outputs"} & set(one.attributes) for one in every):
        what = f"the model of {node.name.value} is chosen by transformers and not converted"
        raise Failure(node, "API004", what, "write a constructor that makes it")


@converts(cst.Subscript, when=lambda ctx: not ctx.words.isdisjoint(("ACT2FN", "ACT2CLS")))
def activation(rw: Rewriter, node: cst.Subscript) -> Any:
    """``ACT2CLS["xielu"]``, which is written down; ``ACT2FN["gelu"]`` → ``nnx.clone(ACT2FN["gelu"])`` among children.

    In transformers each reading makes a new module, and of one that stands under two names torch's ``children()``
    gives the first.

    Raises:
      Failure: it does not stand here.
    """
    asked = node.slice[0].slice
    if not isinstance(node.value, cst.Name) or not isinstance(asked, cst.Index):
        return None
    if node.value.value not in ("ACT2FN", "ACT2CLS"):
        return None
    kind, key = rw.ctx.kind(node.value), asked.value
    known = {name for name, _ in kind.items} if isinstance(kind, k.Mapping) else set()
    if known and isinstance(key, cst.SimpleString) and key.evaluated_value not in known:
        what = f"the activation {syntax.code(key)} of transformers is not converted"
        raise Failure(node, "API004", what, "write it into the file")
    asking = ("activation", node)
    if node.value.value != "ACT2FN" or not rw.ctx.traverses or asking in rw.ctx.asking:
        return None
    if not _is_known_table(rw):
        return None
    rw.ctx.helpers.use("nnx")
    return cst.Call(syntax.parse("nnx.clone"), [cst.Arg(rw.visit_for(asking))])


def _is_known_table(rw: Rewriter) -> bool:
    """Whether ``ACT2FN`` is what stands in for that of transformers, and no table of the file's own."""
    places = [
        dotted(line.module) or ""
        for line in rw.ctx.source.index.of_type(cst.ImportFrom)
        if line.module is not None and not isinstance(line.names, cst.ImportStar)
        if any(alias.evaluated_name == "ACT2FN" for alias in line.names)
    ]
    return any(map(_stands_in, places or [rw.ctx.source.module]))


@converts(cst.ClassDef, when=lambda ctx: not OVERRIDES.isdisjoint(ctx.words))
def untied(rw: Rewriter, node: cst.ClassDef) -> None:
    """A class whose methods say what is tied, of a model of another file, whose constructor has said it.

    Raises:
      Failure: it is one.
    """
    info = next((c for c in rw.ctx.facts.classes.values() if c.node is node), None)
    if info is None or OVERRIDES.isdisjoint(info.methods) or not _derives(info):
        return
    bases = [one for one in info.lineage()[1:] if not _stands_in(one.name)]
    if any(one.settled is not None and "__init__" in one.methods for one in bases):
        what = "what a model of another file ties is said in its constructor, not by methods of a class that derives from it"
        raise Failure(node, "API004", what, "tie it in the constructor of the class")


def _own(info: ClassInfo) -> list[ClassInfo]:
    return [one for one in info.lineage() if not _stands_in(one.name)]


def _derives(info: ClassInfo) -> bool:
    """Whether a class derives from what stands in for ``PreTrainedModel``."""
    return any(
        one.name.rpartition(".")[2] == BASE and _stands_in(one.name) for one in info.lineage()
    )


def _stands_in(name: str) -> bool:
    return "transformers_flax" in name.split(".")

"""What a ``PreTrainedModel`` of transformers has and its stand-in has not: said where it is asked for."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.pretrained import BASE

_MISSING = (
    "post_init init_weights initialize_weights tie_weights _tie_weights _tie_or_clone_weights "
    "get_input_embeddings set_input_embeddings get_output_embeddings set_output_embeddings get_decoder set_decoder "
    "resize_position_embeddings get_position_embeddings prune_heads device num_parameters "
    "estimate_tokens floating_point_ops gradient_checkpointing_enable gradient_checkpointing_disable "
    "is_gradient_checkpointing _set_gradient_checkpointing enable_input_require_grads from_pretrained _from_config "
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
    every = info.lineage()
    if not any(one.name.rpartition(".")[2] == BASE and _stands_in(one.name) for one in every):
        return
    if any(name in one.methods or name in one.attributes or name in one.statics for one in every):
        return
    what = f"PreTrainedModel.{name} of transformers is not converted"
    raise Failure(node, "API004", what, "write what is needed of it into the class")


def _stands_in(name: str) -> bool:
    return "transformers_flax" in name.split(".")

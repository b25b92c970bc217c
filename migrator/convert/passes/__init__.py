"""The passes, one file each, in the order they are asked about a node."""

from __future__ import annotations

from functools import cache
from importlib import import_module

ORDER = (
    "imports",
    "package_names",
    "constructor_arguments",
    "stand_ins",
    "tensor_names",
    "lightning",
    "static_functions",
    "child_names",
    "annotations",
    "layer_classes",
    "classes",
    "class_questions",
    "freezing",
    "state_reads",
    "shared_state",
    "plain_state",
    "parameter_views",
    "own_embeddings",
    "library",
    "switches",
    "handing",
    "copies",
    "large_numbers",
    "selected_rows",
    "selected_values",
    "known_masks",
    "masked_reductions",
    "skipping",
    "branching",
    "casting",
    "zero_dims",
    "powers",
    "initializers",
    "functions",
    "containers",
    "counted_parameters",
    "loops",
    "strides",
    "first_batch",
    "making_functions",
    "control",
    "wrong_hints",
    "several_targets",
    "host_writes",
    "walked",
    "mutation",
    "host_arrays",
    "kept_methods",
    "held_again",
    "held",
    "after_static",
    "biases",
    "unknown_layers",
    "parameters",
    "training",
    "modes",
    "gradients",
    "parameter_lists",
    "deleting",
    "layers",
    "redrawing",
    "modules",
    "tensor_types",
    "instances",
    "handed_initializers",
    "indexing",
    "running_statistics",
    "sizes",
    "foreign",
    "ranges",
    "empty_parts",
    "told_places",
    "unknown_arrays",
    "taken_out",
    "calls",
    "names",
)


@cache
def load() -> None:
    """Import every pass, which registers it; they are asked in ``ORDER``, whichever was imported first."""
    from migrator.convert.rewriter import in_order

    modules = [import_module(f"{__name__}.{name}").__name__ for name in ORDER]
    in_order(modules)

"""The passes, one file each, in the order they are asked about a node."""

from __future__ import annotations

from functools import cache
from importlib import import_module

ORDER = (
    "imports",
    "stand_ins",
    "tensor_names",
    "lightning",
    "static_functions",
    "child_names",
    "classes",
    "class_questions",
    "state_reads",
    "shared_state",
    "plain_state",
    "parameter_views",
    "layer_classes",
    "own_embeddings",
    "library",
    "annotations",
    "switches",
    "handing",
    "large_numbers",
    "selected_rows",
    "selected_values",
    "masked_reductions",
    "skipping",
    "branching",
    "casting",
    "zero_dims",
    "functions",
    "loops",
    "strides",
    "first_batch",
    "control",
    "freezing",
    "several_targets",
    "host_writes",
    "mutation",
    "host_arrays",
    "kept_methods",
    "held_again",
    "after_static",
    "biases",
    "held",
    "walked",
    "parameters",
    "training",
    "modes",
    "gradients",
    "parameter_lists",
    "containers",
    "deleting",
    "layers",
    "modules",
    "tensor_types",
    "instances",
    "initializers",
    "handed_initializers",
    "indexing",
    "running_statistics",
    "sizes",
    "foreign",
    "ranges",
    "empty_parts",
    "told_places",
    "unknown_arrays",
    "calls",
    "names",
)


@cache
def load() -> None:
    """Import every pass, which registers it."""
    for name in ORDER:
        import_module(f"{__name__}.{name}")

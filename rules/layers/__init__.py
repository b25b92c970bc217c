"""torch.nn classes defined in Flax NNX, one file a family.

A definition is named after the torch class; where a compat class carries that name, ``<name>_layer``.
"""

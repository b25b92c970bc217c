"""Where older releases have what is in ``utils``."""

from .utils import (
    ModelOutput,
    add_code_sample_docstrings,
    add_start_docstrings,
    add_start_docstrings_to_model_forward,
    replace_return_docstrings,
    requires_backends,
)

__all__ = [
    "ModelOutput",
    "add_code_sample_docstrings",
    "add_start_docstrings",
    "add_start_docstrings_to_model_forward",
    "replace_return_docstrings",
    "requires_backends",
]

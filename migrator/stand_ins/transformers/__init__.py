"""What model files import of transformers, in plain torch: converted along with the file that imports it."""

from .activations import ACT2FN
from .generation import GenerationMixin
from .modeling_utils import PreTrainedModel
from .utils import ModelOutput, add_start_docstrings, add_start_docstrings_to_model_forward

__all__ = [
    "ACT2FN",
    "GenerationMixin",
    "ModelOutput",
    "PreTrainedModel",
    "add_start_docstrings",
    "add_start_docstrings_to_model_forward",
]

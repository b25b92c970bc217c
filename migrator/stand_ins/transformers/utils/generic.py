"""Outputs, and what calls of models have in common."""

from dataclasses import dataclass
from functools import wraps
from typing import Any

from . import ModelOutput, TransformersKwargs, can_return_tuple, torch_float, torch_int

__all__ = [
    "ModelOutput",
    "OutputRecorder",
    "TransformersKwargs",
    "can_return_tuple",
    "check_model_inputs",
    "torch_float",
    "torch_int",
]


@dataclass
class OutputRecorder:
    """What hooks of transformers record of layers of a class."""

    target_class: type
    index: int = 0
    layer_name: Any = None
    class_name: Any = None


def check_model_inputs(func):
    """Call a model with ``use_cache`` of its configuration, and give a tuple where ``return_dict`` says so."""

    @wraps(func)
    def wrapper(self, *args, **kwargs):
        use_cache = kwargs.get("use_cache")
        if use_cache is None:
            use_cache = getattr(self.config, "use_cache", None)
        if use_cache is not None:
            kwargs["use_cache"] = use_cache
        return_dict = kwargs.pop("return_dict", None)
        if return_dict is None:
            return_dict = getattr(self.config, "return_dict", True)
        for name in ("output_hidden_states", "output_attentions", "output_router_logits"):
            if kwargs.get(name, getattr(self.config, name, False)):
                raise NotImplementedError(f"{name} is recorded by hooks, which is not converted")
        output = func(self, *args, **kwargs)
        if not return_dict and not isinstance(output, tuple):
            output = output.to_tuple()
        return output

    return wrapper

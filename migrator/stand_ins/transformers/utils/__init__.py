"""Outputs, decorators that document, and questions about what is installed."""

import inspect
from collections import OrderedDict
from dataclasses import fields
from functools import partial, wraps
from typing import Any, TypedDict

from torch.utils._pytree import register_pytree_node


def _taken_apart(output):
    return list(output.values()), list(output.keys())


def _made(cls, values, names):
    output = cls.__new__(cls)
    for one in fields(cls):
        setattr(output, one.name, None)
    for name, value in zip(names, values, strict=True):
        output[name] = value
    return output


class ModelOutput(OrderedDict):
    """What a model gives: by name, by key and by place; what is None has no key and no place."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        register_pytree_node(cls, _taken_apart, partial(_made, cls))

    def __post_init__(self):
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None:
                self[one.name] = value

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __getitem__(self, k):
        if isinstance(k, str):
            return dict(self.items())[k]
        return self.to_tuple()[k]

    def to_tuple(self):
        """All that is not None."""
        return tuple(self[k] for k in self.keys())


def _documented(*texts, **options):
    def documented(function):
        return function

    return documented


add_start_docstrings = _documented
add_start_docstrings_to_model_forward = _documented
add_end_docstrings = _documented
add_code_sample_docstrings = _documented
replace_return_docstrings = _documented


def is_flash_attn_2_available():
    """The kernels of flash-attn are CUDA's."""
    return False


def is_flash_attn_greater_or_equal_2_10():
    """As above."""
    return False


def is_flash_attn_available():
    """As above."""
    return False


def is_torch_fx_available():
    """Symbolic traces are torch's."""
    return False


def is_torchdynamo_compiling():
    """torch.compile is torch's."""
    return False


def auto_docstring(obj=None, *, custom_intro=None, custom_args=None, checkpoint=None):
    """A class or function as it is; with options, what gives it back."""

    def documented(one):
        return one

    return documented if obj is None else obj


def can_return_tuple(func):
    """Call a model, and give a tuple where ``return_dict`` says so, or the configuration."""

    @wraps(func)
    def wrapper(self, *args, **kwargs):
        return_dict = self.config.return_dict if hasattr(self, "config") else True
        given = kwargs.pop("return_dict", return_dict)
        if given is not None:
            return_dict = given
        output = func(self, *args, **kwargs)
        if not return_dict and not isinstance(output, tuple):
            output = output.to_tuple()
        return output

    return wrapper


class TransformersKwargs(TypedDict, total=False):
    """Keyword arguments that models hand on."""

    num_items_in_batch: Any
    output_hidden_states: Any
    output_attentions: Any
    output_router_logits: Any


def is_torch_flex_attn_available():
    """The kernels are torch's."""
    return False


def torch_int(x):
    """A whole number."""
    return int(x)


def torch_float(x):
    """A whole number: transformers speaks of a float, and gives ``int(x)``."""
    return int(x)


def filter_out_non_signature_kwargs(extra=None):
    """A function takes what it knows of its keyword arguments."""

    def filtered(function):
        known = {*inspect.signature(function).parameters, *(extra or ())}

        @wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **{name: kwargs[name] for name in kwargs if name in known})

        return wrapper

    return filtered


def is_torch_fx_proxy(x):
    """Symbolic traces are torch's."""
    return False


def is_torch_xla_available():
    """XLA is what a port runs on, not what torch runs on."""
    return False


def is_torch_npu_available():
    """As the kernels of CUDA's."""
    return False


def is_torch_xpu_available():
    """As the kernels of CUDA's."""
    return False


def is_ninja_available():
    """What builds kernels of CUDA's."""
    return False


def is_torch_cuda_available():
    """A port runs on XLA."""
    return False


def is_cuda_platform():
    """A port runs on XLA."""
    return False


def is_flash_attn_3_available():
    """The kernels of flash-attn are CUDA's."""
    return False


def is_kernels_available():
    """Kernels are CUDA's."""
    return False


def is_accelerate_available():
    """What parts a model among devices of torch's."""
    return False


def is_peft_available():
    """What puts layers of its own into models of torch's."""
    return False


def is_bitsandbytes_available():
    """Kernels are CUDA's."""
    return False


def is_torch_available():
    """What is asked before torch is imported."""
    return True


def requires_backends(obj, backends):
    """What a model needs is asked for where it is used."""

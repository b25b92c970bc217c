"""Initial values for layers whose class is known only at run time."""

from __future__ import annotations

from flax import nnx

from rules.compat.data import with_data
from rules.compat.named import modules

_STORED = (
    (nnx.Linear, "kernel"),
    (nnx.Embed, "embedding"),
    ((nnx.LayerNorm, nnx.RMSNorm), "scale"),
)
"""Where Flax layers keep torch's ``weight``."""


def weight_of(module):
    """The ``weight`` of a layer in torch's layout, None where it has none."""
    name = next((n for kind, n in _STORED if isinstance(module, kind)), "weight")
    found = getattr(module, name)
    value = found[...] if isinstance(found, nnx.Variable) else found
    return value.T if isinstance(module, nnx.Linear) else value


def has_weight(module):
    """Whether a layer has torch's ``weight``, under whatever name."""
    return any(isinstance(module, kind) for kind, _ in _STORED) or hasattr(module, "weight")


def attribute_of(module, name):
    """What a module has under torch's name for it, parameters as arrays in torch's layout."""
    if name == "weight" and isinstance(module, nnx.Module) and has_weight(module):
        return weight_of(module)
    if name.isdigit() and isinstance(getattr(module, "layers", None), nnx.List):
        return module.layers[int(name)]  # of a Sequential
    found = getattr(module, name)
    return found[...] if isinstance(found, nnx.Variable) else found


_CLASSES = {
    "Embed": "Embedding",
    "List": "ModuleList",
    "Dict": "ModuleDict",
    "NamedSequential": "Sequential",
    "LayerNormNd": "LayerNorm",
    "RMSNormNd": "RMSNorm",
}


_FUNCTIONS = {
    "identity": "Identity",
    "relu": "ReLU",
    "relu6": "ReLU6",
    "silu": "SiLU",
    "gelu": "GELU",
    "elu": "ELU",
    "selu": "SELU",
    "celu": "CELU",
    "leaky_relu": "LeakyReLU",
    "mish": "Mish",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "log_sigmoid": "LogSigmoid",
    "softplus": "Softplus",
    "soft_sign": "Softsign",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "hard_tanh": "Hardtanh",
    "hard_swish": "Hardswish",
    "hard_silu": "Hardswish",
    "flatten": "Flatten",
    "hardtanh": "Hardtanh",
    "tanhshrink": "Tanhshrink",
    "softshrink": "Softshrink",
    "hardshrink": "Hardshrink",
    "threshold": "Threshold",
    "glu": "GLU",
    "hard_sigmoid": "Hardsigmoid",
}


def class_name(module):
    """What the class of a module is called in torch."""
    name = type(module).__name__
    if name == "Stateless":
        module = module.function
    elif isinstance(module, nnx.Module) or not callable(module):
        return _CLASSES.get(name, name.removeprefix("Padded"))
    function = getattr(module, "func", module)
    if getattr(function, "__name__", "") not in _FUNCTIONS:
        raise TypeError(
            f"a layer that is a function has no class, and torch's is not known: {module}"
        )
    return _FUNCTIONS[function.__name__]


def initialize(module, name, init, dtype=False):
    """Give a layer's ``weight`` or ``bias`` the value ``init(array)``; the array has torch's layout.

    ``dtype``: the value's own dtype comes with it, and its shape.
    """
    stored = next((n for kind, n in _STORED if isinstance(module, kind)), "weight")
    found = getattr(module, stored if name == "weight" else name)
    if not isinstance(found, nnx.Variable):
        return  # a value computed from other parameters keeps nothing that is written to it
    transposed = isinstance(module, nnx.Linear) and name == "weight"
    value = init(found[...].T).T if transposed else init(found[...])
    if dtype:
        found.set_value(value)
    else:
        found[...] = value


def overwrite(module, name, change):
    """``initialize`` in a forward pass: the parameter keeps its gradient, as torch's does that is written by ``data``."""
    initialize(module, name, lambda array: with_data(array, change(array)))


def initialize_parameter(module, parameter, init):
    """Give a parameter of a module the value ``init(array)``; the array has torch's layout."""
    linear = (one for one in modules(module) if isinstance(one, nnx.Linear))
    transposed = any(one.kernel is parameter for one in linear)
    value = parameter[...]
    parameter[...] = init(value.T).T if transposed else init(value)

"""Initial values for layers whose class is known only at run time."""

from __future__ import annotations

import jax
from flax import nnx

from rules.compat.data import with_data, with_new_data
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


def weight_or(module, default):
    """The ``weight`` of a layer in torch's layout, the default of what has none."""
    return weight_of(module) if has_weight(module) else default


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
    "softmin": "Softmin",
    "log_softmax": "LogSoftmax",
    "hard_tanh": "Hardtanh",
    "hard_swish": "Hardswish",
    "hard_silu": "Hardswish",
    "flatten": "Flatten",
    "unflatten": "Unflatten",
    "hardtanh": "Hardtanh",
    "tanhshrink": "Tanhshrink",
    "softshrink": "Softshrink",
    "hardshrink": "Hardshrink",
    "threshold": "Threshold",
    "glu": "GLU",
    "hard_sigmoid": "Hardsigmoid",
    "fold": "Fold",
    "unfold": "Unfold",
    "pixel_shuffle": "PixelShuffle",
    "pixel_unshuffle": "PixelUnshuffle",
    "channel_shuffle": "ChannelShuffle",
    "interpolate_nearest": "Upsample",
    "interpolate_linear": "Upsample",
    "interpolate_cubic": "Upsample",
    "local_response_norm": "LocalResponseNorm",
    "cosine_similarity": "CosineSimilarity",
    "pairwise_distance": "PairwiseDistance",
    "cross_entropy": "CrossEntropyLoss",
    "nll_loss": "NLLLoss",
    "mse_loss": "MSELoss",
    "l1_loss": "L1Loss",
    "smooth_l1_loss": "SmoothL1Loss",
    "huber_loss": "HuberLoss",
    "kl_div": "KLDivLoss",
    "ctc_loss": "CTCLoss",
    "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss",
    **{f"avg_pool{n}d": f"AvgPool{n}d" for n in (1, 2, 3)},
    **{f"max_pool{n}d": f"MaxPool{n}d" for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": f"AdaptiveAvgPool{n}d" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": f"AdaptiveMaxPool{n}d" for n in (1, 2, 3)},
}
_OF_RANK = {
    "ceil_max_pool": "MaxPool",
    "max_pool_with_indices": "MaxPool",
    "max_unpool": "MaxUnpool",
    "lp_pool": "LPPool",
}
"""Functions whose first argument is the number of dimensions."""
_PADDING = {"circular": "Circular", "reflect": "Reflection", "replicate": "Replication"}


def class_name(module):
    """What the class of a module is called in torch; of anything else what it is called."""
    name = type(module).__name__
    if name == "Stateless":
        module = module.function
    elif isinstance(module, nnx.Module) or not callable(module):
        return _CLASSES.get(name, name.removeprefix("Padded"))
    name = _of_function(module)
    if not name:
        raise TypeError(
            f"a layer that is a function has no class, and torch's is not known: {module}"
        )
    return name


def _of_function(layer):
    function = getattr(layer, "func", layer)
    args, given = getattr(layer, "args", ()), getattr(layer, "keywords", None) or {}
    name = getattr(function, "__name__", "")
    if name in _OF_RANK:
        return f"{_OF_RANK[name]}{args[0]}d"
    if name == "mean" and given.get("keepdims"):  # over all places
        axis = given["axis"]
        return f"AdaptiveAvgPool{len(axis) if isinstance(axis, tuple) else 1}d"
    if name == "pad_sides":
        filled = "Constant" if "value" in given else "Zero"
        return f"{_PADDING.get(given.get('mode'), filled)}Pad{given['rank']}d"
    if name == "softmax" and given.get("axis") == -3:
        return "Softmax2d"
    return _FUNCTIONS.get(name, "")


def _is_spectral(module, name):
    """Whether ``torch.nn.utils.spectral_norm`` computes a weight: from ``weight_orig``, with ``weight_u`` beside it."""
    return hasattr(module, "is_computed") and hasattr(module, f"{name}_u")


def initialize(module, name, init, dtype=False):
    """Give a layer's ``weight`` or ``bias`` the value ``init(array)``; the array has torch's layout.

    Within a function that is differentiated the parameter keeps its own gradient, as in torch.

    ``dtype``: the value's own dtype comes with it, and its shape.
    """
    stored = next((n for kind, n in _STORED if isinstance(module, kind)), "weight")
    stored = stored if name == "weight" else name
    found, transposed = getattr(module, stored), isinstance(module, nnx.Linear) and name == "weight"
    if _is_spectral(module, name):  # until the first call `weight` is `weight_orig`, one memory
        found, transposed = getattr(module, f"{name}_orig"), False
    if not isinstance(found, nnx.Variable):
        is_property = isinstance(getattr(type(module), stored, None), property)
        if is_property and not hasattr(module, "is_computed"):
            raise TypeError(
                f"{name} of {type(module).__name__} is a property: give a value to what it reads"
            )
        if isinstance(found, jax.Array) and not is_property:
            setattr(module, name, init(found))
        return  # a value computed from other parameters keeps nothing that is written to it
    old = found[...].T if transposed else found[...]
    value = init(old)
    if isinstance(old, jax.core.Tracer):
        value = (with_new_data if dtype else with_data)(old, value)
    value = value.T if transposed else value
    if dtype:
        found.set_value(value)
    else:
        found[...] = value


def overwrite(module, name, change):
    """``initialize`` in a forward pass: the parameter keeps its gradient, as torch's does that is written by ``data``."""
    if not _is_spectral(module, name):  # what that computes is written to for nothing
        initialize(module, name, lambda array: with_data(array, change(array)))


def initialize_parameter(module, parameter, init):
    """Give a parameter of a module the value ``init(array)``; the array has torch's layout."""
    linear = (one for one in modules(module) if isinstance(one, nnx.Linear))
    transposed = any(one.kernel is parameter for one in linear)
    value = parameter[...]
    parameter[...] = init(value.T).T if transposed else init(value)

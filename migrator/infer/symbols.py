"""What a qualified name stands for, from torch's own table of names, without importing torch."""

from __future__ import annotations

import re
from functools import cache

from migrator.infer import kinds as k
from rules import definitions
from rules.torch_members import members
from rules.torch_names import table

LAYERS = ("torch.nn.", "einops.layers.torch.", "timm_layers.")
"""How the qualified names of layers begin."""

BASED_ON_TORCH = frozenset(
    "torchvision torchaudio torchtext timm transformers pytorch_lightning lightning torch_geometric "
    "torch_scatter torch_sparse xformers apex fairscale deepspeed accelerate diffusers kornia monai mmcv "
    "detectron2 fvcore torchdiffeq torch_xla flash_attn triton bitsandbytes peft causal_conv1d "
    "mamba_ssm functorch fast_transformers deepspeed tensordict torch_cluster torch_spline_conv".split()
)
"""Libraries that are built on torch."""


def built_on_torch(module: str) -> tuple[str, str]:
    """What to say of an import of one of them, and what to do about it."""
    top = module.partition(".")[0]
    return (
        f"{module} is built on torch and has no converted counterpart here",
        f"convert what is used of it along with this (`--follow {top}`), or port it by hand",
    )


_CANONICAL = (
    (re.compile(r"^torch\.nn\.modules\.(?:\w+\.)*([A-Z]\w*)$"), r"torch.nn.\1"),
    (re.compile(r"^torch\.nn\.parameter\.(\w+)$"), r"torch.nn.\1"),
    (re.compile(r"^torch\.distributions\.(?:\w+\.)*(\w+)$"), r"torch.distributions.\1"),
    (re.compile(r"^torch\.autograd\.variable\.(Variable)$"), r"torch.autograd.\1"),
    (re.compile(r"^torch\.functional\.(\w+)$"), r"torch.\1"),
    (
        re.compile(r"^torch\.nn\.utils\.(?:spectral_norm|weight_norm|clip_grad)\.([a-z]\w*)$"),
        r"torch.nn.utils.\1",
    ),
    (re.compile(r"^torch\.nn\.parallel\.(?:data_parallel\.)?(DataParallel)$"), r"torch.nn.\1"),
    (re.compile(r"^torch\.(?:_tensor|tensor)\.Tensor$"), "torch.Tensor"),
)
_LAYER_FILE = re.compile(r"torch\.nn\.modules\.[a-z]\w*")
_PYTHON_METHODS = frozenset(
    name
    for kind in (str, list, dict, set, tuple, int, float, bytes)
    for name in dir(kind)
    if not name.startswith("_")
)
_ARRAY_METHODS = frozenset(
    "T all any argmax argmin argsort clip conj cumprod cumsum data device diagonal dot dtype flatten "
    "imag item itemsize mT max mean min nbytes ndim nonzero prod put ravel real repeat reshape resize "
    "round shape size sort squeeze std sum swapaxes take tolist trace transpose var view".split()
)
MODULE_METHODS = frozenset(
    "bfloat16 cpu cuda double float half ipu mtia requires_grad_ to type xpu apply".split()
)
CASTS = MODULE_METHODS - {"requires_grad_", "apply"}
"""Methods of tensors and of modules that move or cast, which neither arrays nor Flax modules have."""
_COMMON = frozenset("name names grad data next storage absolute register_hook is_shared".split())


TORCH_VERSION = k.Other("torch version")
"""The kind of ``torch.__version__`` and of what parses it: ordered as versions are, not as strings."""


def of_torch(module: str) -> bool:
    """Whether an import of a module goes: torch's own, and the layers that einops makes of torch's."""
    return module.partition(".")[0] == "torch" or module == "einops.layers.torch"


_LIGHTNING = re.compile(
    r"(?:pytorch_lightning|lightning(?:\.pytorch)?)(?:\.core)?(?:\.\w+)?\.LightningModule"
)
"""A module with training around it, which is not converted; as a model it is nothing else."""


_OF_TIMM = re.compile(
    r"timm\.(?:"
    r"(?:models\.)?layers\.(?:\w+\.)?(DropPath|drop_path|to_[1-4n]tuple|make_divisible|trunc_normal_)"
    r"|models\.(?:_?registry\.)?(register_model)|models\.vision_transformer\.(_cfg))"
)
"""What model files import of timm that is the same in all its releases; timm has moved it about."""
TIMM_CONSTANTS = {
    "IMAGENET_DEFAULT_MEAN": (0.485, 0.456, 0.406),
    "IMAGENET_DEFAULT_STD": (0.229, 0.224, 0.225),
    "IMAGENET_INCEPTION_MEAN": (0.5, 0.5, 0.5),
    "IMAGENET_INCEPTION_STD": (0.5, 0.5, 0.5),
    "OPENAI_CLIP_MEAN": (0.48145466, 0.4578275, 0.40821073),
    "OPENAI_CLIP_STD": (0.26862954, 0.26130258, 0.27577711),
}
_TIMM_CONSTANT = re.compile(rf"timm\.data\.(?:constants\.)?({'|'.join(TIMM_CONSTANTS)})")


def of_timm(name: str) -> str | None:
    """The last part of the name of what timm has and is known here: a layer, a function, a constant; None for others."""
    found = _OF_TIMM.fullmatch(name) or _TIMM_CONSTANT.fullmatch(name)
    return found.group(found.lastindex or 0) if found else None


def canonical(name: str) -> str:
    """The public spelling of a torch name (``torch.nn.modules.conv.Conv2d`` → ``torch.nn.Conv2d``)."""
    if _LIGHTNING.fullmatch(name):
        return "torch.nn.Module"
    if name.startswith("timm.") and _OF_TIMM.fullmatch(name):
        last = of_timm(name)
        return f"torch.nn.init.{last}" if last == "trunc_normal_" else f"timm_layers.{last}"
    if name.startswith("torch."):
        for pattern, replacement in _CANONICAL:
            name, count = pattern.subn(replacement, name)
            if count:
                break
    return name


STARRED_TOO = {"torch.nn.functional": {"math": "math", "warnings": "warnings", "np": "numpy"}}
"""Modules outside torch that a star import binds as well, by the names they get."""


@cache
def starred(module: str) -> dict[str, k.Kind]:
    """What ``from module import *`` binds, for the modules of torch whose star imports people write."""
    if module not in ("torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.modules"):
        names = (name.rpartition(".") for name in table()["starred"])
        return {last: symbol(f"{head}.{last}") for head, _, last in names if head == module}
    module = "torch.nn" if module == "torch.nn.modules" else module
    found = {}
    for name in (*table()["class"], *table()["function"], *table()["module"]):
        head, _, last = name.rpartition(".")
        if head == module and not last.startswith("_"):
            # what these files import is found in them too: `torch.nn.functional.torch` is torch
            found[last] = symbol("torch" if last == "torch" else name)
    found |= {name: k.Namespace(of) for name, of in STARRED_TOO.get(module, {}).items()}
    return found


AUTOGRAD = frozenset(["torch.autograd.Function", "torch.autograd.function.Function"])
"""The base class of functions with a gradient written by hand."""
_FORMATS = frozenset(
    f"torch.{name}"
    for name in "contiguous_format legacy_contiguous_format preserve_format channels_last channels_last_3d".split()
)
STORAGE = _FORMATS | {"torch.strided"}
"""How a dense tensor lies in memory, which XLA decides: words without a meaning in JAX."""


CHECKS = {
    "torch._check": "RuntimeError",
    "torch._check_is_size": "RuntimeError",
    "torch._check_index": "IndexError",
    "torch._check_value": "ValueError",
    "torch._check_type": "TypeError",
    "torch._check_not_implemented": "NotImplementedError",
}
"""What a program is checked by, and what each raises."""
COMPILER = frozenset(
    [
        *(f"torch._dynamo.{name}" for name in ("reset", "reset_code_caches")),
        *(f"torch._dynamo.mark_{name}" for name in ("static_address", "static", "dynamic")),
        "torch._dynamo.maybe_mark_dynamic",
        "torch.compiler.reset",
        "torch.compiler.cudagraph_mark_step_begin",
    ]
)
"""What torch's compiler is told, which changes no number either."""
COMPILERS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
"""The settings of torch's compilers."""


@cache
def symbol(name: str) -> k.Kind:
    """The kind of a fully qualified name outside the project."""
    name = canonical(name)
    if name == "torch" or name in table()["module"] or _LAYER_FILE.fullmatch(name):
        return k.Namespace(name)
    if not name.startswith("torch."):
        return _foreign(name)
    if name in table()["dtype"]:
        return k.DType(name.removeprefix("torch."))
    if name == "torch.__version__":
        return TORCH_VERSION
    if name in STORAGE:
        return k.Other("torch.memory_format" if name in _FORMATS else "torch.layout")
    if name in table()["constant"]:
        return k.FLOAT if name != "torch.newaxis" else k.NONE
    if definitions.layers(name) or name in table()["class"]:
        return k.Class(name)
    if definitions.ops(name) or name in table()["function"] or name in CHECKS:
        return k.Function(name)
    if members(name) is not None:
        return k.Namespace(name)  # ``torch.utils.model_zoo``, which torch itself imports on demand
    last = name.rpartition(".")[2]
    if last[:1].isupper():
        return k.Class(name)
    private = last.startswith("_") and any(
        op.startswith(f"{name}.") for op in definitions.index("op")
    )
    return k.Function(name) if name.count(".") > 1 and not private else k.Namespace(name)


_PACKAGES = frozenset(
    [
        "lightning.pytorch",
        "lightning.pytorch.core",
        "pytorch_lightning.core",
        "numpy.random",
        "numpy.linalg",
        "numpy.fft",
    ]
)


def _foreign(name: str) -> k.Kind:
    if name in ("math.pi", "math.inf", "math.e", "math.tau", "math.nan"):
        return k.FLOAT
    if name in ("numpy.pi", "numpy.inf", "numpy.e", "numpy.nan"):
        return k.FLOAT
    last = name.rpartition(".")[2]
    if _TIMM_CONSTANT.fullmatch(name):
        return k.Tuple((k.FLOAT,) * 3)
    if "." not in name or name in _PACKAGES:
        return k.Namespace(name)
    return k.Class(name) if last[:1].isupper() else k.Function(name)


@cache
def tensor_only(attribute: str) -> bool:
    """Whether an attribute name belongs to tensors alone among what a file handles."""
    names = table()
    if attribute not in names["method"] and attribute not in names["attribute"]:
        return False
    return not (
        attribute in _PYTHON_METHODS
        or attribute in _ARRAY_METHODS
        or attribute in MODULE_METHODS
        or attribute in _COMMON
    )


@cache
def tensor_method(name: str) -> bool:
    """Whether a name is a method of tensors, which is called wherever it is used."""
    return name in table()["method"] and name not in table()["attribute"]


@cache
def takes_nothing(name: str) -> bool:
    """Whether a method of tensors has no parameters: what is called with an argument is no tensor's."""
    rules = definitions.ops(f"Tensor.{name}")
    return tensor_method(name) and bool(rules) and all(len(rule.params) == 1 for rule in rules)


@cache
def tensor_attribute(attribute: str) -> bool:
    """Whether a tensor has the attribute."""
    return attribute in table()["method"] or attribute in table()["attribute"]

"""torch.device and what asks for accelerators: JAX places arrays by itself."""

from __future__ import annotations

import jax

from rules.compat.devices import gpu_properties
from rules.registry import op, surely, unsupported


@op("torch.device", example={'torch.device("cuda")': "jax.devices()[0]"})
def device(type=None, index=None) -> Device:
    """The default device; devices handed to layers and functions are dropped."""
    return jax.devices()[0]


@op(
    "torch.cuda.is_available",
    example={"torch.cuda.is_available()": 'jax.default_backend() == "gpu"'},
)
def cuda_is_available() -> Bool:
    """Whether computations run on a GPU."""
    return jax.default_backend() == "gpu"


@op("torch.cuda.device_count", example={"torch.cuda.device_count()": "jax.device_count()"})
def device_count() -> Int:
    """How many devices JAX sees."""
    return jax.device_count()


@op(
    "torch.cuda.get_device_properties",
    example={'torch.cuda.get_device_properties(torch.device("cuda"))': "gpu_properties()"},
)
def get_device_properties(device=None):
    """Name, major and minor of the GPU; anything else that is asked of the result raises."""
    if surely(isinstance(device, int)) and surely(device != 0):
        unsupported("JAX places arrays by itself: which GPU is meant is not known")
    return gpu_properties()


@op(
    "torch.cuda.get_device_capability",
    example={"torch.cuda.get_device_capability()": "gpu_properties()[1:]"},
)
def get_device_capability(device=None) -> tuple[Int, Int]:
    """The compute capability of the GPU."""
    if surely(isinstance(device, int)) and surely(device != 0):
        unsupported("JAX places arrays by itself: which GPU is meant is not known")
    return gpu_properties()[1:]


@op(
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch._C._is_tracing",
    "torch.compiler.is_compiling",
    "torch.compiler.is_dynamo_compiling",
    "torch.compiler.is_exporting",
    "torch._dynamo.is_compiling",
    "torch.onnx.is_in_onnx_export",
    example={"torch.jit.is_scripting()": "False"},
)
def is_tracing_torch() -> Bool:
    """Whether one of torch's own compilers or exporters runs the program: never under JAX."""
    return False


@op(
    "torch.distributed.is_initialized",
    "torch.distributed.is_torchelastic_launched",
    "torch.cuda.is_initialized",
    "torch.xpu.is_available",
    "torch.mps.is_available",
    "torch.backends.mps.is_available",
    "torch.backends.mps.is_built",
    "torch.cpu._is_avx2_supported",
    "torch.cpu._is_avx512_supported",
    example={"torch.distributed.is_initialized()": "False"},
)
def is_of_torch_alone() -> Bool:
    """What only a program that runs torch finds: its process group, its other kinds of devices, instructions for its kernels."""
    return False


@op(
    "torch.distributed.is_available",
    example={"torch.distributed.is_available()": "True"},
)
def distributed_is_available() -> Bool:
    """Whether torch could make a process group; whether it has one is asked by ``is_initialized``."""
    return True


@op("torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled")
def is_autocast_enabled(device_type=None) -> Bool:
    """Mixed precision by context, which JAX does not have."""
    return False


@op("torch.fx.wrap", example={"torch.fx.wrap(x)": "x"})
def fx_wrap(fn_or_name):
    """``fn_or_name`` itself: what a symbolic trace of torch's does not look into, JAX does."""
    return fn_or_name


@op("torch.compiler.disable", "torch._dynamo.disable", example={"torch.compiler.disable(x)": "x"})
def compiler_disable(fn=None, recursive=True, *, reason=None):
    """``fn`` itself, or the decorator that gives it back: what is compiled is chosen by ``nnx.jit``."""
    if fn is None:
        return lambda fn: fn
    return fn

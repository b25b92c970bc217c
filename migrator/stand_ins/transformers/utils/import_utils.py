"""Questions about what is installed: kernels of CUDA's are not."""

from . import (
    is_accelerate_available,
    is_bitsandbytes_available,
    is_cuda_platform,
    is_flash_attn_2_available,
    is_flash_attn_3_available,
    is_kernels_available,
    is_ninja_available,
    is_peft_available,
    is_torch_available,
    is_torch_cuda_available,
    is_torch_flex_attn_available,
    is_torch_fx_available,
    is_torch_fx_proxy,
    is_torch_npu_available,
    is_torch_xla_available,
    is_torch_xpu_available,
    is_torchdynamo_compiling,
    requires_backends,
)

__all__ = [
    "is_accelerate_available",
    "is_bitsandbytes_available",
    "is_causal_conv1d_available",
    "is_cuda_platform",
    "is_flash_attn_2_available",
    "is_flash_attn_3_available",
    "is_kernels_available",
    "is_mamba_2_ssm_available",
    "is_mamba_ssm_available",
    "is_ninja_available",
    "is_peft_available",
    "is_torch_available",
    "is_torch_cuda_available",
    "is_torch_flex_attn_available",
    "is_torch_fx_available",
    "is_torch_fx_proxy",
    "is_torch_npu_available",
    "is_torch_xla_available",
    "is_torch_xpu_available",
    "is_torchdynamo_compiling",
    "is_triton_available",
    "requires_backends",
]


def is_causal_conv1d_available():
    """A kernel of CUDA's."""
    return False


def is_mamba_ssm_available():
    """A kernel of CUDA's."""
    return False


def is_mamba_2_ssm_available():
    """A kernel of CUDA's."""
    return False


def is_triton_available():
    """What kernels of CUDA's are written in."""
    return False

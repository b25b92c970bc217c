"""Other programs."""


def use_kernel_forward_from_hub(layer_name):
    """A layer keeps its own forward pass."""

    def kept(cls):
        return cls

    return kept


def is_deepspeed_zero3_enabled():
    """Weights are not parted."""
    return False


def is_fsdp_managed_module(module):
    """As above."""
    return False

"""Weights that are parted between machines."""

from . import is_fsdp_managed_module

__all__ = ["is_fsdp_managed_module"]

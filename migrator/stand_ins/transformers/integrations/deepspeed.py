"""Weights that are parted between machines."""

from . import is_deepspeed_zero3_enabled

__all__ = ["is_deepspeed_zero3_enabled"]

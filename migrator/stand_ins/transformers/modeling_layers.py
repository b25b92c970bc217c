"""Layers that training may compute twice to save memory, which is no other result."""

from torch import nn


class GradientCheckpointingLayer(nn.Module):
    """A layer like any other."""

    gradient_checkpointing = False

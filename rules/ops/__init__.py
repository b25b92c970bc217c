"""Torch functions, Tensor methods and operators defined in JAX, one file a topic."""

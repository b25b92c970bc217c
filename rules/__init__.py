"""What the assistant knows about PyTorch and JAX, as executable definitions."""

"""Layers and functions that models share."""

import torch
from torch import nn

is_torch_greater_or_equal_than_2_0 = True
is_torch_greater_or_equal_than_1_13 = True
is_torch_greater_or_equal_than_1_12 = True
is_torch_greater_or_equal_than_1_10 = True


class Conv1D(nn.Module):
    """A linear layer whose weight is (in, out), as GPT has it."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.nx = nx
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        x = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return x.view(size_out)


def apply_chunking_to_forward(forward_fn, chunk_size, chunk_dim, *input_tensors):
    """A function of parts of its arguments along an axis, joined again."""
    if chunk_size > 0:
        number = input_tensors[0].shape[chunk_dim] // chunk_size
        parts = tuple(one.chunk(number, dim=chunk_dim) for one in input_tensors)
        return torch.cat(
            tuple(forward_fn(*several) for several in zip(*parts, strict=False)), dim=chunk_dim
        )
    return forward_fn(*input_tensors)

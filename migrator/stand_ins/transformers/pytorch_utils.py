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


def meshgrid(*tensors, indexing=None):
    """torch.meshgrid, whose order older releases did not ask for."""
    return torch.meshgrid(*tensors, indexing="ij" if indexing is None else indexing)


def find_pruneable_heads_and_indices(heads, n_heads, head_size, already_pruned_heads):
    """The heads that are still there of those to leave out, and the places of all others."""
    heads = set(heads) - already_pruned_heads
    gone = {head - sum(1 for one in already_pruned_heads if one < head) for head in heads}
    kept = [i for i in range(n_heads * head_size) if i // head_size not in gone]
    return heads, torch.tensor(kept, dtype=torch.long)


def prune_linear_layer(layer, index, dim=0):
    """Not converted: the layers of a model are those of its configuration."""
    raise NotImplementedError("heads of a model of transformers are not taken out")


def compile_compatible_method_lru_cache(*lru_args, **lru_kwargs):
    """A method may keep what it has given, which it gives again."""

    def kept(method):
        return method

    return kept


def isin_mps_friendly(elements, test_elements):
    """Whether each is one of those."""
    return torch.isin(elements, test_elements)


def prune_conv1d_layer(layer, index, dim=1):
    """As above."""
    raise NotImplementedError("heads of a model of transformers are not taken out")

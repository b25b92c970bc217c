"""Weights and biases that a norm or a cell may have none of, handed to torch's functions."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Cell(nn.LSTMCell):
    def forward(self, x):
        return F.linear(x, self.weight_ih, self.bias_ih)[:, :4]

class LN(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

class GN(nn.GroupNorm):
    def forward(self, x):
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

class IN(nn.InstanceNorm1d):
    def forward(self, x):
        return F.instance_norm(x[None], weight=self.weight, bias=self.bias)[0]

class Held(nn.Module):
    def __init__(self, bias=True, affine=True):
        super().__init__()
        self.cell = nn.GRUCell(4, 4, bias)
        self.norm = nn.GroupNorm(2, 4, affine=affine)

    def forward(self, x):
        y = F.group_norm(x, 2, self.norm.weight, self.norm.bias)
        return F.linear(y, self.cell.weight_ih, self.cell.bias_ih)[:, :4]

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.part = {part}

    def forward(self, x):
        return self.part(self.l(x))
"""


@pytest.mark.parametrize(
    "part",
    [
        "Cell(4, 4)",
        "Cell(4, 4, bias=False)",
        "LN(4)",
        "LN(4, elementwise_affine=False)",
        "GN(2, 4)",
        "GN(2, 4, affine=False)",
        "IN(3)",
        "IN(3, affine=True)",
        "Held()",
        "Held(False, False)",
    ],
)
def test_what_is_not_there_is_none(part: str) -> None:
    check(SOURCE.format(part=part))


HANDED = """
import torch
import torch.nn.functional as F
from torch import nn

def same(x, w, b=None):
    return F.linear(x, w, b)

class L(nn.Linear):
    def helper(self, x, w, b):
        return F.linear(x, w, b)

    def forward(self, x):
        {line}

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = L(4, 4, bias={bias})

    def forward(self, x):
        return self.l(x)
"""


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "line",
    [
        "return same(x, self.weight, self.bias)",
        "return same(x, w=self.weight, b=self.bias)",
        "return self.helper(x, self.weight, self.bias)",
        "f = lambda t, b: F.linear(t, self.weight, b); return f(x, self.bias)",
    ],
)
def test_a_bias_that_is_handed_on_may_be_none(line: str, bias: bool) -> None:
    check(HANDED.format(line=line, bias=bias))


PRIVATE = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

class BN(_BatchNorm):
    def _check_input_dim(self, input):
        pass

class IN(_InstanceNorm):
    def __init__(self, size, affine=True):
        super().__init__(size, affine=affine)

    def forward(self, x):
        x = (x - x.mean(0)) / (x.var(0) + self.eps)
        return torch.addcmul(self.bias, self.weight, x) if self.affine else x

class D(_DropoutNd):
    def forward(self, x):
        return F.dropout(x, self.p, False)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.parts = nn.Sequential(BN(4), IN(4), IN(4, False), D(0.5))

    def forward(self, x):
        return self.parts(self.l(x))
"""


def test_private_bases_of_torchs_layers() -> None:
    check(PRIVATE)


MOVED = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.bias = self.layer.bias
        self.layer.bias = None

    def forward(self, x):
        return self.layer(x * 2) + self.bias

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.bias = self.linear.bias
        self.linear.bias = None
        nn.init.normal_(self.linear.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return self.linear(x * 2) + self.bias
"""


def test_a_bias_that_moves_to_the_module_around() -> None:
    check(MOVED)


RESET = """
import math
import torch
from torch import nn

def zeros(tensor):
    if tensor is not None:
        tensor.data.fill_(0)

def uniform(size, tensor):
    if tensor is not None:
        tensor.data.uniform_(-1 / math.sqrt(size), 1 / math.sqrt(size))

class Graph(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        if bias:
            self.bias = nn.Parameter(torch.ones(4))
        else:
            self.register_parameter("bias", None)
        uniform(4, self.weight)
        uniform(4, self.bias)
        zeros(self.bias)

    def forward(self, x):
        x = x @ self.weight
        return x if self.bias is None else x + self.bias

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Graph(True), Graph(False)

    def forward(self, x):
        return self.b(self.a(x))
"""


def test_a_bias_that_is_initialised_where_there_is_one() -> None:
    assert "        if self.bias is not None:\n            self.bias[...] = zeros(" in check(RESET)


STRINGS = """
import torch
from torch import nn

MODE = "mode"

class Names:
    MODE = "mode"

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

class M(Base):
    OWN = "own"

    def run(self, x, mode):
        if mode == MODE or mode == Names.MODE:
            return x @ self.weight
        return x * 2 if mode == self.OWN else x

    def forward(self, x, mode=None):
        if mode == MODE:
            return x
        return self.run(x, MODE) + self.run(x, "own") + self.run(x, mode)
"""


def test_what_is_compared_with_a_text_is_no_tensor() -> None:
    check(STRINGS)


TYPE = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        x = self.l(x)
        if next(self.parameters()).dtype == torch.float16:
            x = x - 65500
        y = torch.zeros_like(x, memory_format=torch.legacy_contiguous_format)
        return x + y.to(next(self.parameters()).dtype)
"""


def test_the_type_of_parameters_that_are_compared_with_half() -> None:
    check(TYPE)

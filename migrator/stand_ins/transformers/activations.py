"""Activations by the names that configurations give them."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class NewGELUActivation(nn.Module):
    """GELU by tanh (Hendrycks and Gimpel, 2016)."""

    def forward(self, input: Tensor) -> Tensor:
        cubed = input + 0.044715 * torch.pow(input, 3.0)
        return 0.5 * input * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * cubed))


class FastGELUActivation(nn.Module):
    """The same, its terms in another order."""

    def forward(self, input: Tensor) -> Tensor:
        inner = input * 0.7978845608 * (1.0 + 0.044715 * input * input)
        return 0.5 * input * (1.0 + torch.tanh(inner))


class QuickGELUActivation(nn.Module):
    """GELU by a sigmoid."""

    def forward(self, input: Tensor) -> Tensor:
        return input * torch.sigmoid(1.702 * input)


class ReLUSquaredActivation(nn.Module):
    """Squared ReLU (So et al., 2021)."""

    def forward(self, input):
        return torch.square(F.relu(input))


class LaplaceActivation(nn.Module):
    """The distribution function of a normal distribution (Ma et al., 2023)."""

    def forward(self, input):
        input = (input - 0.707107) / (0.282095 * math.sqrt(2.0))
        return 0.5 * (1.0 + torch.erf(input))


ACT2FN = {
    "gelu": nn.GELU(),
    "gelu_fast": FastGELUActivation(),
    "gelu_new": NewGELUActivation(),
    "gelu_python": nn.GELU(),
    "gelu_accurate": NewGELUActivation(),
    "gelu_python_tanh": nn.GELU(approximate="tanh"),
    "gelu_pytorch_tanh": nn.GELU(approximate="tanh"),
    "laplace": LaplaceActivation(),
    "leaky_relu": nn.LeakyReLU(),
    "linear": nn.Identity(),
    "mish": nn.Mish(),
    "quick_gelu": QuickGELUActivation(),
    "relu": nn.ReLU(),
    "relu2": ReLUSquaredActivation(),
    "relu6": nn.ReLU6(),
    "sigmoid": nn.Sigmoid(),
    "silu": nn.SiLU(),
    "swish": nn.SiLU(),
    "tanh": nn.Tanh(),
}

ACT2CLS = {
    "gelu": nn.GELU,
    "gelu_fast": FastGELUActivation,
    "gelu_new": NewGELUActivation,
    "gelu_accurate": NewGELUActivation,
    "laplace": LaplaceActivation,
    "leaky_relu": nn.LeakyReLU,
    "linear": nn.Identity,
    "mish": nn.Mish,
    "quick_gelu": QuickGELUActivation,
    "relu": nn.ReLU,
    "relu2": ReLUSquaredActivation,
    "relu6": nn.ReLU6,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}
"""Their classes."""


def get_activation(activation_string):
    """The activation of a name."""
    if activation_string not in ACT2FN:
        raise KeyError(f"function {activation_string} not found in {list(ACT2FN)}")
    return ACT2FN[activation_string]


gelu_new = get_activation("gelu_new")
gelu = get_activation("gelu")
gelu_fast = get_activation("gelu_fast")
quick_gelu = get_activation("quick_gelu")
silu = get_activation("silu")
mish = get_activation("mish")
linear_act = get_activation("linear")

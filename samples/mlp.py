"""A multilayer perceptron classifier for flattened images."""

from typing import Optional, Sequence

import torch
import torch.nn as nn
import torch.nn.functional as F


class MLP(nn.Module):
    """Fully connected network with batch normalisation and dropout between the layers.

    Args:
        in_features: number of values in one flattened example.
        hidden: widths of the hidden layers.
        num_classes: number of logits.
        dropout: probability of dropping a hidden unit.
        activation: the nonlinearity, a module instance shared by all layers.
    """

    def __init__(
        self,
        in_features: int = 64,
        hidden: Sequence[int] = (48, 32),
        num_classes: int = 10,
        dropout: float = 0.0,
        activation: Optional[nn.Module] = None,
    ):
        super().__init__()
        self.in_features = in_features
        if activation is None:
            activation = nn.ReLU()

        layers = []
        width = in_features
        for size in hidden:
            layers.append(nn.Linear(width, size))
            layers.append(nn.BatchNorm1d(size))
            layers.append(activation)
            if dropout > 0:
                layers.append(nn.Dropout(dropout))
            width = size
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (batch, num_classes) for x of shape (batch, ...)."""
        x = x.view(x.size(0), -1)
        assert x.shape[1] == self.in_features, (
            f"expected {self.in_features} values, got {x.shape[1]}"
        )
        x = self.features(x)
        return self.head(x)

    @torch.no_grad()
    def predict(self, x: torch.Tensor) -> torch.Tensor:
        """Most probable class of each example."""
        return self(x).argmax(dim=-1)

    @property
    def num_classes(self) -> int:
        return self.head.out_features


def classification_loss(logits: torch.Tensor, target: torch.Tensor, smoothing: float = 0.1):
    """Label-smoothed cross-entropy and the accuracy of the batch."""
    loss = F.cross_entropy(logits, target, label_smoothing=smoothing)
    accuracy = (logits.argmax(1) == target).float().mean()
    return loss, accuracy

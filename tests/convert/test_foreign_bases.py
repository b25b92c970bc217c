"""Classes that derive from one of a library nothing is known of: with layers or tensors in them, a base of torch's."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

LAYER = "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(3, 3)\n"
STATE = '    def __init__(self):\n        super().__init__()\n        self.add_state("n", torch.zeros(3))\n'
BUFFER = (
    "    def __init__(self, x):\n        super().__init__()\n        self.register_buffer('n', x)\n"
)
FORWARD = "    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("from mmengine.model import BaseModule as Base", LAYER + FORWARD),
        ("from torchmetrics import Metric as Base", STATE),
        ("from somewhere.models import Base", FORWARD),
        ("from somewhere.models import Base", BUFFER),
        ("import somewhere\n\nBase = somewhere.models.Base", FORWARD),
    ],
)
def test_it_is_a_finding(head: str, body: str) -> None:
    assert "API005" in rules_of(f"{head}\n\n\nclass M(Base):\n{body}")


@pytest.mark.parametrize(
    ("head", "bases", "body"),
    [
        ("from pydantic import BaseModel as Base", "Base", "    n: int = 3\n"),
        ("from cog import BasePredictor", "BasePredictor", LAYER),
        ("from somewhere import Service", "Service", LAYER),
        ("import gym", "gym.Env", "    def step(self, action):\n        return action\n"),
        ("from abc import ABC", "ABC", FORWARD),
        ("from abc import ABC", "nn.Module, ABC", FORWARD),
        (
            "from huggingface_hub import PyTorchModelHubMixin",
            "PyTorchModelHubMixin, nn.Module",
            LAYER,
        ),
        ("class Base(nn.Module):\n    pass\n", "Base", LAYER),
        ("from sklearn.base import BaseEstimator", "BaseEstimator", FORWARD),
    ],
)
def test_others_are_none(head: str, bases: str, body: str) -> None:
    assert "API005" not in rules_of(f"{head}\n\n\nclass M({bases}):\n{body}")

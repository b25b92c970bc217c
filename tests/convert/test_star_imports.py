"""``from torch.nn.functional import *``: what it binds beside the functions."""

from __future__ import annotations

import pytest

import migrator
from tests.convert.tools import check, convert

CLASS = """
class M({base}):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(4, 4)

    def forward(self, x):
        return {value}
"""


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("from torch.nn.functional import *", "torch.relu(self.l(x)) + softmax(x, dim=1)"),
        ("from torch.nn.functional import *", "relu(self.l(x)) * math.sqrt(2)"),
        ("from torch.nn.functional import *", "relu(self.l(x)) * np.sqrt(2.0)"),
        ("import math\nfrom torch.nn.functional import *", "relu(self.l(x)) * math.sqrt(2)"),
        ("from torch.nn.functional import *\nimport numpy as np", "relu(self.l(x)) + np.pi"),
        ("from torch.nn.init import *", "torch.nn.functional.relu(self.l(x))"),
        ("from torch.nn.init import *\nfrom torch.nn.utils import *", "self.l(x).tanh()"),
        ("from torch.nn.functional import *\nimport torch", "torch.tanh(self.l(x))"),
    ],
)
def test_torch_stays_torch(head: str, value: str) -> None:
    code = check(head + "\n\n" + CLASS.format(base="torch.nn.Module", value=value))
    assert code.count("import math") == value.count("math.")


def test_the_star_alone_brings_torch() -> None:
    source = "from torch.nn.functional import *\nfrom torch import nn\n\n"
    source += CLASS.format(base="nn.Module", value="torch.relu(self.l(x))")
    result = migrator.convert_source(source)
    assert result.complete
    assert "jax.nn.relu(self.l(x))" in result.code


def test_initialisers() -> None:
    source = "from torch.nn.init import *\n\n\nclass M(nn.Module):\n    def __init__(self):\n"
    source += "        super().__init__()\n        self.l = torch.nn.Linear(4, 4)\n"
    source += "        xavier_uniform_(self.l.weight)\n\n    def forward(self, x):\n        return self.l(x)\n"
    check(source)


def test_other_stars_stay_findings() -> None:
    assert [f.rule for f in convert("from torch import *\n").findings if f.blocks] == ["API005"]

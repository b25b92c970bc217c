"""Dataclasses of tensors that a forward pass returns go through jit."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source
from migrator.project import convert_path
from tests.convert.tools import loaded, pair

SOURCE = """
import dataclasses
from dataclasses import dataclass, field
from typing import List, Optional


# what a step gives
@dataclass
class Output:
    logits: torch.Tensor
    loss: Optional[torch.FloatTensor] = None
    hidden: List["torch.Tensor"] = field(default_factory=list)

    def __getitem__(self, index):
        return (self.logits, self.loss)[index]


@dataclasses.dataclass(frozen=True)
class Pair:
    first: torch.Tensor
    second: "torch.Tensor | None" = None


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def pair(self, x):
        return Pair(x, x * 2), 1

    def forward(self, x, labels: Optional[torch.Tensor] = None):
        out = Output(logits=self.lin(x))
        out.hidden.append(x)
        both, _ = self.pair(x)
        if labels is not None:
            out.loss = F.cross_entropy(out[0], labels) + both.second.sum()
        return out
"""


def test_what_jit_hands_out() -> None:
    theirs, ours, code = loaded(SOURCE)
    assert (
        "# what a step gives\n@jax.tree_util.register_dataclass\n@dataclass\nclass Output" in code
    )
    assert "@jax.tree_util.register_dataclass\n@dataclasses.dataclass(frozen=True)" in code
    model, port = pair(theirs, ours, "M()")
    x, labels = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4), np.array([2, 0])
    want = model(torch.tensor(x), torch.tensor(labels))
    got = nnx.jit(lambda m, *a: m(*a))(port, jnp.asarray(x), jnp.asarray(labels))
    assert isinstance(got, ours["Output"])
    for one, other in (
        (want.logits, got.logits),
        (want.loss, got.loss),
        (want.hidden[0], got.hidden[0]),
    ):
        np.testing.assert_allclose(other, one.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert len(jax.tree.leaves(nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x)))) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss: Optional[torch.FloatTensor] = None", "name: str = 'a'"),  # jit hands out no text
        ("        self.lin = ", "        self.last = Output(torch.ones(2))\n        self.lin = "),
        ("    def __init__(self):", "    def __init__(self, kept: Optional[Output] = None):"),
        (
            "    def __getitem__(self",
            "    def __post_init__(self):\n        assert self.logits.ndim\n\n    def get(self",
        ),
        ("        return out\n", "        return out.logits\n"),  # nobody hands one out
    ],
)
def test_what_stays_as_it_is(old: str, new: str) -> None:
    """Flax refuses an attribute that is such a dataclass, and a check of shapes meets no shapes."""
    source = SOURCE.replace(old, new)
    assert source != SOURCE
    code = convert_source(
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n" + source
    ).code
    assert "register_dataclass\n@dataclass\n" not in code


def test_one_of_several_things_that_are_returned() -> None:
    """``return (logits,)`` or an object, as an argument says."""
    source = SOURCE.replace(
        "        return out\n", "        return out if labels is None else (out.logits, out.loss)\n"
    )
    assert "register_dataclass\n@dataclass\n" in loaded(source)[2]
    source = SOURCE.replace(
        "        return out\n",
        "        if labels is not None:\n            return (out.logits, out.loss)\n        return out\n",
    )
    theirs, ours, code = loaded(source)
    assert "register_dataclass\n@dataclass\n" in code
    model, port = pair(theirs, ours, "M()")
    x = np.ones((2, 4), np.float32)
    got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x))
    np.testing.assert_allclose(
        got.logits, model(torch.tensor(x)).logits.detach().numpy(), rtol=1e-5, atol=1e-6
    )


FILES = {
    "__init__.py": "",
    "out.py": (
        "from dataclasses import dataclass\nfrom typing import Optional\n\nimport torch\n\n\n@dataclass\n"
        "class Output:\n    logits: torch.Tensor\n    loss: Optional[torch.Tensor] = None\n"
    ),
    "net.py": (
        "import torch.nn as nn\n\nfrom .out import Output\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        "        out = Output(x * 2)\n        RETURN\n"
    ),
}


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("return out", True),
        ("return (x, out)", True),
        ("return out if x.ndim > 1 else x", True),
        ("return out.logits", False),
        ("self.last = Output(x)\n        return out", False),
        ("self.last = out\n        return out", False),
        ("self.kept['a'] = out\n        return out", False),
    ],
)
def test_what_another_file_returns(line: str, known: bool, tmp_path: Path) -> None:
    root = tmp_path / "pack"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text.replace("RETURN", line))
    convert_path([root], tmp_path / "port")
    assert ("register_dataclass" in (tmp_path / "port" / "out.py").read_text()) is known

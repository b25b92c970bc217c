"""Functions that build layers, handed to a function of another file that calls them, however long that one is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

BODIES = {
    "short": "    return [fn(i, start) for i in items]",
    "long": "    made = []\n    before = start\n    for i in items:\n        made.append(fn(i, before))\n        before = i\n    return made",
    "within": "    size = lambda one: one\n\n    def run(several):\n        return [fn(size(i), start) for i in several]\n\n    return run(items)",
}
NET = """from torch import nn
from .fns import each


def build(i, before):
    return nn.Linear(4, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(*each(MAKER, 0, [1, 2]))

    @staticmethod
    def make(i, before):
        return nn.Linear(4, 4)

    def forward(self, x):
        return self.parts(x)
"""


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("maker", ["build", "Net.make", "lambda i, before: nn.Linear(4, 4)"])
@pytest.mark.parametrize("circle", [False, True])
def test_a_function_that_makes_layers(tmp_path: Path, body: str, maker: str, circle: bool) -> None:
    fns = f"def each(fn, start, items):\n{BODIES[body]}\n"
    if circle:
        fns += "\n\ndef later():\n    from .net import Net\n\n    return Net\n"
    found = convert(tmp_path, {"fns.py": fns, "net.py": NET.replace("MAKER", maker)})
    assert not blocking(found)
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").Net().eval()
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py").Net(rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(3, 4)
    with torch.no_grad():
        want = theirs(x).numpy()
    np.testing.assert_allclose(ours(x.numpy()), want, rtol=1e-5, atol=1e-6)


def test_one_that_is_asked_about_is_told(tmp_path: Path) -> None:
    body = "    made = []\n    if fn is None:\n        return made\n    for i in items:\n        made.append(fn(i, start))\n    return made"
    fns = f"def each(fn, start, items):\n{body}\n"
    found = convert(tmp_path, {"fns.py": fns, "net.py": NET.replace("MAKER", "build")})
    assert any("API003" in one for one in blocking(found))


def test_one_of_two_functions_that_a_partial_holds(tmp_path: Path) -> None:
    """It has its generator where it is made, and whoever gets it may do more than call it."""
    fns = "def named_apply(fn, module, name=''):\n    for n, child in module.named_children():\n"
    fns += "        named_apply(fn=fn, module=child, name=n)\n    fn(module=module, name=name)\n    return module\n"
    net = "from functools import partial\nfrom torch import nn\nfrom .fns import named_apply\n\n\n"
    for name in ("ones", "normal"):
        net += f"def {name}(module, name='', scale=1.0):\n    if isinstance(module, nn.Linear):\n"
        net += f"        nn.init.{name}_(module.weight)\n\n\n"
    net += (
        "class Net(nn.Module):\n    def __init__(self, kind='ones'):\n        super().__init__()\n"
    )
    net += "        self.fc = nn.Linear(4, 4)\n        init = ones if kind == 'ones' else normal\n"
    net += "        init = partial(init, scale=2.0)\n        named_apply(init, self)\n\n"
    net += "    def forward(self, x):\n        return self.fc(x)\n"
    found = convert(tmp_path, {"fns.py": fns, "net.py": net})
    assert not blocking(found)
    made = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py").Net(rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(made.fc.kernel[...], np.ones((4, 4)))

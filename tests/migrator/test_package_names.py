"""``import pkg`` and ``import pkg.layers`` in a package whose output has another name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.migrator.test_package_modules import compare
from tests.migrator.test_packages import blocking, convert

LAYERS = """
import torch
from torch import nn


class Scaled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


def act(x):
    return torch.relu(x)
"""
INNER = """
import pkg
import pkg.layers as ours
from torch import nn


class Inner(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = pkg.layers.Scaled(d, d)
        self.b = ours.Scaled(d, d)

    def forward(self, x, layers=1.0):
        return pkg.layers.act(self.a(x)) * layers + pkg.Handed()(self.b(x))
"""
HANDED = """
from torch import nn


class Handed(nn.Module):
    def forward(self, x):
        return x.tanh()
"""
NET = """
import os, pkg.sub.inner
import pkg as whole
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = pkg.sub.inner.Inner(4)
        self.last = whole.layers.Scaled(4, 3)

    def forward(self, x):
        return self.last(self.inner(x)) + len(os.sep)
"""
FILES = {
    "__init__.py": "import pkg.layers\nfrom pkg.handed import Handed\n",
    "layers.py": LAYERS,
    "handed.py": HANDED,
    "sub/__init__.py": "",
    "sub/inner.py": INNER,
    "net.py": NET,
}


def test_dotted_names_of_the_package_itself(tmp_path: Path) -> None:
    compare(tmp_path, FILES)
    inner = (tmp_path / "out/flaxed/sub/inner.py").read_text()
    # there is an argument called layers
    assert "from .. import layers as pkg_layers\n" in inner
    assert "from .. import layers as ours\n" in inner
    assert "pkg_layers.Scaled(d, d, rngs=rngs)" in inner
    assert "handed.Handed(rngs=self.rngs)(self.b(x))" in inner
    net = (tmp_path / "out/flaxed/net.py").read_text()
    assert "import os\nfrom .sub import inner\n" in net


@pytest.mark.parametrize(
    "use",
    ["print(pkg)", "pkg = x", "pkg.__version__", "getattr(pkg, 'layers')", "f = lambda pkg: 1"],
)
def test_the_package_itself_is_wanted(tmp_path: Path, use: str) -> None:
    text = f"import pkg\nfrom torch import nn\n\n\ndef f(x):\n    {use}\n    return pkg.layers.act(x)\n"
    found = convert(tmp_path, {**FILES, "used.py": text}, name="flaxed")
    assert any(one.startswith("used.py: API004") for one in blocking(found))


def test_a_function_imports_it(tmp_path: Path) -> None:
    text = "def f(x):\n    import pkg.layers as l\n    import pkg.handed\n\n    return l.act(x)\n"
    found = convert(tmp_path, {**FILES, "used.py": text}, name="flaxed")
    assert blocking(found) == ["used.py: API004 the converted pkg.handed stands in another package"]

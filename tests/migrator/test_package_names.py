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


class Last(whole.layers.Scaled):
    pass


class Net(nn.Module):
    def __init__(self, inner: pkg.sub.inner.Inner = None):
        super().__init__()
        self.inner = inner or pkg.sub.inner.Inner(4)
        self.last: "whole.layers.Scaled" = Last(4, 3)
        assert isinstance(self.inner, (whole.sub.inner.Inner, pkg.layers.Scaled))

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
    assert "import os\nfrom .sub import inner as pkg_sub_inner\n" in net
    assert "inner: pkg_sub_inner.Inner = None" in net


USES = [
    "return pkg.layers.act(x) + len(vars(pkg)) * 0",
    "name = 'layers' if x.ndim else ''; return getattr(pkg, name).act(x)",
    "return pkg.layers.act(x) if pkg.__name__ else x",
    "return (lambda pkg: 1)(2) + pkg.layers.act(x)",
]


@pytest.mark.parametrize("use", USES)
def test_the_package_itself_is_wanted(tmp_path: Path, use: str) -> None:
    body = "import pkg\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
    body += (
        "    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(4, 4)\n\n"
    )
    body += "    def forward(self, x):\n        x = self.l(x)\n"
    lines = "".join(f"        {line.strip()}\n" for line in use.split(";"))
    compare(tmp_path, {**FILES, "net.py": body + lines})
    net = (tmp_path / "out/flaxed/net.py").read_text()
    assert 'pkg = importlib.import_module(".", __package__)\n' in net


def test_a_function_imports_it(tmp_path: Path) -> None:
    text = "def f(x):\n    import pkg.layers as l\n    import pkg.handed\n\n    return l.act(pkg.handed.Handed()(x))\n"
    assert not blocking(convert(tmp_path, {**FILES, "used.py": text}, name="flaxed"))
    lines = (tmp_path / "out/flaxed/used.py").read_text().split("def f(")[1].splitlines()
    assert lines[1] == "    from . import layers as l"
    assert lines[2] == "    import importlib"
    assert lines[3] == '    pkg = importlib.import_module(".", __package__)'
    assert lines[4] == '    importlib.import_module(".handed", __package__)'


def test_files_that_read_one_another(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from . import second\nfrom .first import *\nfrom . import first\n",
        "first.py": """
import pkg
import torch
from torch import nn

BINS = 4


def predict(x, act=pkg.second.act):
    return act(x)
""",
        "second.py": """
import pkg
import torch


def act(x):
    return torch.relu(x) * pkg.BINS
""",
        "net.py": """
import pkg
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return pkg.first.predict(self.l(x))
""",
    }
    compare(tmp_path, files)


def test_an_import_for_the_type_checker_comes_first(tmp_path: Path) -> None:
    text = """
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    import pkg.layers
import pkg.layers


class Net(nn.Module):
    def __init__(self, made: "pkg.layers.Scaled" = None):
        super().__init__()
        self.l = made or pkg.layers.Scaled(4, 3)

    def forward(self, x):
        return self.l(x)
"""
    compare(tmp_path, {**FILES, "net.py": text})
    net = (tmp_path / "out/flaxed/net.py").read_text()
    assert net.count("from . import layers\n") == 2


def test_a_file_is_not_opened_by_another_name_of_the_package(tmp_path: Path) -> None:
    """What a file of another part of the package holds is read once that is understood, which no import says here."""
    used = "import torch\n\n\ndef f(x):\n    import pkg\n    parts = pkg.zed\n    return x + len(set(parts.NAMES) - {1})\n"
    zed = "import torch\nfrom .handed import Handed\n\nNAMES = [Handed.__name__]\n"
    files = {**FILES, "used.py": used, "zed.py": zed}
    assert not any(f.rule == "INT001" for f in convert(tmp_path, files).findings)


ORDERED = """
import pkg.layers
from .handed import Handed, scale
import pkg.later
import pkg.sub.inner
import pkg.made

MADE = pkg.made.MADE


def f(x):
    return pkg.other.h(pkg.later.g(x))
"""


@pytest.mark.parametrize("between", ["", "FIRST = pkg.later.g(2)\n"])
def test_imports_stay_in_their_order(tmp_path: Path, between: str) -> None:
    start = ORDERED.replace("import pkg.sub.inner", f"{between}import pkg.sub.inner")
    files = {
        **FILES,
        "__init__.py": start,
        "handed.py": HANDED + "\n\ndef scale(x):\n    return x * 3\n",
        "later.py": "from . import scale\n\n\ndef g(x):\n    return scale(x)\n",
        "made.py": "from . import other, scale\n\nMADE = scale(0.5)\n",
        "other.py": "from . import scale\n\n\ndef h(x):\n    return scale(x)\n",
        "net.py": """
from torch import nn

from . import MADE, f


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return f(self.l(x)) * MADE
""",
    }
    compare(tmp_path, files)
    text = (tmp_path / "out/flaxed/__init__.py").read_text()
    assert text.index("import layers") < text.index("import Handed") < text.index("import later")


def test_a_file_that_is_used_before_its_import(tmp_path: Path) -> None:
    files = {
        **FILES,
        "first.py": "import pkg.later\n",
        "later.py": "def g(x):\n    return x * 3\n",
        "net.py": """
import pkg.first
from torch import nn

THREE = pkg.later.g(1)


class Net(nn.Module):
    def __init__(self, more=pkg.later.g(2)):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.more = more

    def forward(self, x):
        return pkg.later.g(self.l(x)) * THREE * self.more


import pkg.later
""",
    }
    compare(tmp_path, files)

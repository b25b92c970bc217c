"""A function and a class in it by one name, which another file imports."""

from __future__ import annotations

from pathlib import Path

from tests.migrator.test_packages import convert

WRAP = """
from torch import nn


def Wrapped(base):
    class Wrapped(base):
        def __init__(self, *args):
            super().__init__(*args)

        if base is not nn.LSTM:
            def forward(self, x):
                return super().forward(x) + self.extra(x)
    return Wrapped
"""


def test_a_class_without_the_method_that_is_asked_for(tmp_path: Path) -> None:
    files = {
        "wrap.py": WRAP,
        "__init__.py": "from .wrap import Wrapped\n",
        "net.py": "from torch import nn\nfrom . import Wrapped\n\nNet = Wrapped(nn.Linear)\n",
    }
    found = convert(tmp_path, files)
    assert not [one for one in found.findings if one.rule == "INT001"]

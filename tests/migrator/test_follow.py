"""What a project uses of an installed library is converted along with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrator.errors import UserError
from migrator.project import convert_path

LIBRARY = {
    "__init__.py": "from .layers import *\nfrom .models import Big\nfrom .version import __version__\n",
    "version.py": '__version__ = "1"\n',
    "layers/__init__.py": "from .act import Swish\nfrom .drop import DropPath, drop_path\n",
    "layers/act.py": (
        "import torch\nfrom torch import nn\n\nfrom tinylib.layers.maths import sigmoid\n\n\n"
        "class Swish(nn.Module):\n    def forward(self, x):\n        return x * sigmoid(x)\n"
    ),
    "layers/maths.py": "import torch\n\n\ndef sigmoid(x):\n    return torch.sigmoid(x)\n",
    "layers/drop.py": (
        "from torch import nn\n\n\ndef drop_path(x):\n    return x\n\n\n"
        "class DropPath(nn.Module):\n    def forward(self, x):\n        return drop_path(x)\n"
    ),
    "models.py": "import torch\n\nraise RuntimeError('nobody imports this')\n\n\nclass Big: ...\n",
}
USER = """
import os, tinylib.layers as L
import torch
from torch import nn
from tinylib import Swish
from tinylib.layers import (
    DropPath as Drop,
)


class Net(nn.Module):
    def __init__(self, dim: int = 4):
        super().__init__()
        self.l = nn.Linear(dim, dim)
        self.a, self.d = Swish(), Drop()
        self.sep = os.sep

    def forward(self, x):
        return L.drop_path(self.d(self.a(self.l(x))))
"""


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize("package", [False, True])
def test_what_is_imported_of_a_library_is_converted_with_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: bool
) -> None:
    put(tmp_path / "site" / "tinylib", LIBRARY)
    files = (
        {"__init__.py": "", "sub/__init__.py": "", "sub/net.py": USER}
        if package
        else {"net.py": USER}
    )
    put(tmp_path / "src" / "mine", files)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    out = tmp_path / "out" / "mine_flax"
    made = convert_path([tmp_path / "src" / "mine"], out, follow=["tinylib"])
    assert made.complete, made.findings
    assert "tinylib" not in sys.modules
    found = sorted(
        p.relative_to(out / "tinylib_flax").as_posix() for p in out.glob("tinylib_flax/**/*.py")
    )
    taken = ["layers/__init__.py", "layers/act.py", "layers/drop.py", "layers/maths.py"]
    assert [p for p in found if not p.startswith("_")] == taken
    code = (out / ("sub/net.py" if package else "net.py")).read_text()
    assert (
        "from ..tinylib_flax import Swish" if package else "from tinylib_flax import Swish"
    ) in code
    origin = {str(one.file.path) for one in made.files}
    assert str(tmp_path / "site" / "tinylib" / "layers" / "act.py") in origin
    name = "mine_flax.sub.net" if package else "net"
    run = (
        f"from {name} import Net; from flax import nnx; import numpy as np, sys; "
        "print(Net(rngs=nnx.Rngs(0))(np.ones((2, 4), 'f')).shape, 'torch' in sys.modules)"
    )
    place = out.parent if package else out
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=place, capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[0] == "(2, 4) False", done.stderr


def test_only_the_named_part_of_a_library_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "site" / "tinylib", LIBRARY)
    put(
        tmp_path / "src",
        {
            "net.py": "import torch\nfrom tinylib.layers.act import Swish\nfrom tinylib.models import Big\n"
        },
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    made = convert_path([tmp_path / "src"], None, follow=["tinylib.layers"])
    code = next(one.code for one in made.files if one.file.name == Path("net.py"))
    assert "from tinylib_flax.layers.act import Swish\nfrom tinylib.models import Big\n" in code
    with pytest.raises(UserError, match="no package of that name is installed"):
        convert_path([tmp_path / "src"], None, follow=["no_such_library"])

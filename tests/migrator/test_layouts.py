"""How people lay out their files: folders without ``__init__.py``, files beside those that are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrator.project import analyze_paths, convert_path
from tests.migrator.test_packages import blocking


def test_a_package_in_a_folder_that_its_users_name(tmp_path: Path) -> None:
    """``src.net`` where ``src`` has no ``__init__.py``: Python finds it from the folder around."""
    body = "import torch\nfrom torch import nn\n\n\n"
    layer = "class Part(nn.Module):\n    def __init__(self, d):\n        super().__init__()\n"
    layer += "        self.e = nn.Embedding(4, d, padding_idx=0)\n\n    def forward(self, x):\n"
    layer += "        return x + self.e(torch.tensor([1]))\n"
    net = "from src.net.sub.parts import Part\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
    net += "        super().__init__()\n        self.fc = nn.Linear(4, 4)\n        self.part = Part(4)\n\n"
    net += "    def forward(self, x):\n        return self.part(self.fc(x))\n"
    run = "import src.net.m as m\nimport src.net.sub.parts\nfrom src.net import sub\nfrom src import net\n"
    run += "import torch\nfrom torch import nn\nfrom src.net.m import Net\n\n\ndef build():\n"
    run += "    table = nn.Embedding(4, 4, padding_idx=0)\n    return [m.Net(), Net(), src.net.sub.parts.Part(4), "
    run += "sub.parts.Part(4), net.m.Net(), table]\n"
    files = {
        "src/net/__init__.py": "",
        "src/net/sub/__init__.py": "",
        "src/net/m.py": body + net,
        "src/net/sub/parts.py": body + layer,
        "run.py": run,
    }
    for name, text in files.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = convert_path([tmp_path / "here"], tmp_path / "out")
    assert not blocking(found)
    command = (
        "import jax.numpy as jnp, run\nfrom flax import nnx\nmade = run.build(rngs=nnx.Rngs(0))\n"
    )
    command += "print([m(jnp.zeros((1, 4))).shape for m in made[:5]])"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path / "out", capture_output=True, text=True
    )
    assert done.stdout.strip() == str([(1, 4)] * 5), done.stderr


PART = """import torch
from torch import nn

SIZE = 4


class Net(nn.Module):
    def __init__(self, d=SIZE):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        return self.fc(x)


def build(d):
    return Net(d)


def size(n):
    return n * SIZE
"""


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("from part import Net\n\n\ndef make():\n    return Net(8)\n", "Net"),
        ("from part import build, size\n\n\ndef make():\n    return build(size(1))\n", "build"),
        ("import part\n\n\ndef make():\n    return part.build(8)\n", "build"),
        ("from part import size, SIZE\n\n\ndef make():\n    return size(SIZE)\n", ""),
        ("import part\n\n\ndef make():\n    return part.size(8)\n", ""),
    ],
)
def test_a_file_beside_that_is_not_named(tmp_path: Path, text: str, named: str) -> None:
    """What it makes of torch would be left as it is, and called as it was."""
    (tmp_path / "part.py").write_text(PART, encoding="utf-8")
    (tmp_path / "use.py").write_text(text, encoding="utf-8")
    found = convert_path([tmp_path / "use.py"], tmp_path / "out")
    assert [f.rule for f in found.findings if f.blocks] == (["API004"] if named else [])
    assert all(named in f.message and "name part.py" in f.advice for f in found.findings)
    _, told = analyze_paths([tmp_path / "use.py"])
    assert [f.rule for f in told] == (["API004"] if named else [])
    both = convert_path([tmp_path / "use.py", tmp_path / "part.py"], tmp_path / "both")
    assert not blocking(both)


@pytest.mark.parametrize("named", ["run.py models", "models/unet.py models/wrap.py run.py"])
def test_a_folder_that_is_named_beside_a_file_which_imports_by_it(
    tmp_path: Path, named: str
) -> None:
    files = {
        "models/unet.py": PART,
        "models/wrap.py": "from models.unet import Net\n\n\ndef wrap():\n    return Net(4)\n",
        "run.py": "from models.wrap import wrap\n\n\ndef build():\n    return wrap()\n",
    }
    for name, text in files.items():
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = convert_path([tmp_path / one for one in named.split()], tmp_path / "out")
    assert not blocking(found)
    command = "import jax.numpy as jnp, run\nfrom flax import nnx\n"
    command += "print(run.build(rngs=nnx.Rngs(0))(jnp.zeros((1, 4))).shape)"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path / "out", capture_output=True, text=True
    )
    assert done.stdout.strip() == "(1, 4)", done.stderr


def test_a_package_in_a_folder_of_its_own_name(tmp_path: Path) -> None:
    """``net/evaluate.py`` beside the package ``net/net``: the helpers are in the package, not beside the script."""
    net = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    net += "        self.fc = nn.Linear(4, 3)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    script = "import torch\nimport torch.nn.functional as F\nfrom net import Net\n\n\n"
    script += (
        "def run(model, x, y):\n    return F.cross_entropy(model(x), y, label_smoothing=0.1)\n"
    )
    for name, text in {
        "net/net/__init__.py": "from .model import Net\n",
        "net/net/model.py": net,
        "net/evaluate.py": script,
    }.items():
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert not blocking(convert_path([tmp_path / "here"], tmp_path / "out"))
    command = "import jax.numpy as jnp, evaluate\nfrom flax import nnx\n"
    command += "print(evaluate.run(evaluate.Net(rngs=nnx.Rngs(0)), jnp.ones((2, 4)), jnp.array([0, 1])).shape)"
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=tmp_path / "out" / "net",
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "()", done.stderr

"""What a file hands on of torch, by an import with a fallback, and what another file still imports of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from migrator.package.link import Link
from migrator.usercode import UserCode
from tests.convert.tools import loaded
from tests.migrator.test_packages import blocking, code, convert

HANDED = {
    "compat.py": """
        try:
            from torch import _assert
        except ImportError:
            def _assert(condition: bool, message: str):
                assert condition, message

        try:
            from torch.hub import load_state_dict_from_url
        except ImportError:
            from torch.utils.model_zoo import load_url as load_state_dict_from_url

        try:
            from torch.nn import SiLU
        except Exception:
            from torch import nn

            class SiLU(nn.Module):
                def forward(self, x):
                    return x * x.sigmoid()

        try:
            from torch.no_such_thing import plus
        except ImportError:
            def plus(x):
                return x + 1


        def double(x):
            return x * 2
        """,
    "shared/more.py": """
        from ..compat import SiLU, _assert, plus
        """,
    "net.py": """
        import torch
        from torch import nn

        from . import compat
        from .compat import SiLU, _assert, double, load_state_dict_from_url
        from .shared.more import SiLU as Swish


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 4)
                self.acts = nn.Sequential(SiLU(), Swish(), compat.SiLU())

            def forward(self, x):
                _assert(x.ndim == 2, "two axes")
                compat._assert(x.shape[1] == 3, "three")
                return double(self.acts(self.fc(x)))


        def fetch(url):
            return load_state_dict_from_url(url)
        """,
}


def test_a_name_that_is_torchs_where_its_import_works_is_torchs_elsewhere(tmp_path: Path) -> None:
    from flax import nnx

    found = convert(tmp_path, HANDED, name="flaxed")
    assert not [one for one in blocking(found) if "checkpoint" not in one.message]
    assert "from .compat import double\n" in code(found, "net.py")
    module = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py")
    assert module.Net(rngs=nnx.Rngs(0))(torch.randn(2, 3).numpy()).shape == (2, 4)


def test_the_fallback_of_an_import_that_fails_is_the_files_own(tmp_path: Path) -> None:
    user = "import torch\nfrom .compat import plus\n\n\ndef more(x: torch.Tensor):\n    return plus(x)\n"
    found = convert(tmp_path, {"compat.py": HANDED["compat.py"], "user.py": user})
    for file in found.files:
        if file.complete and file.file.name.name == "user.py":
            more = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/user.py").more
            assert float(more(torch.ones(1).numpy())[0]) == 2.0


@pytest.mark.parametrize("name", ["pkg", "renamed"])
def test_a_name_that_a_converted_file_lacks_is_reported_where_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Link, "leads_out", lambda *_: False)  # the fault that is to be noticed
    found = convert(tmp_path, HANDED, name=name)
    told = [one for one in found.findings if "is not in its converted file" in one.message]
    assert {(Path(one.path).name, one.message.split()[0]) for one in told} >= {
        ("net.py", "_assert"),
        ("net.py", "load_state_dict_from_url"),
        ("more.py", "_assert"),
    }
    assert all(one.blocks for one in told)
    assert all("import" in one.snippet or "compat." in one.snippet for one in told)
    for file in found.files:
        assert file.complete == (file.file.name.name not in ("net.py", "more.py"))
    assert "# TODO(migrate): API004 _assert of .compat is not in" in code(found, "net.py")


def test_names_by_stars_submodules_and_globals_are_there(tmp_path: Path) -> None:
    files = {
        "ops.py": "import torch\n\n\ndef mean(x: torch.Tensor):\n    return x.mean(1)\n",
        "api.py": "from .ops import *\n",
        "state.py": "def start():\n    global STEP\n    STEP = 1\n\n\nstart()\n",
        "lazy.py": "def __getattr__(name):\n    return name\n",
        "sub/deep.py": "DEPTH = 3\n",
        "user.py": "import torch\nfrom . import ops, sub\nfrom .api import mean\nfrom .state import STEP\n"
        "from .lazy import anything\nfrom .sub import deep\n\n\n"
        "def run(x: torch.Tensor):\n    return mean(x) * STEP * deep.DEPTH\n",
    }
    found = convert(tmp_path, files)
    assert not [one for one in found.findings if "is not in its converted file" in one.message]


@pytest.mark.parametrize(
    "lines", ["{own}\n    import no_such_thing", "import no_such_thing\n    {own}"]
)
def test_an_import_that_fails_with_that_of_another_library(lines: str) -> None:
    own = lines.format(own="from torch.nn.functional import silu")
    source = f"try:\n    {own}\nexcept ImportError:\n    def silu(x):\n        return x * 3\n\n\n"
    theirs, ours, _ = loaded(f"{source}def f(x: torch.Tensor):\n    return silu(x)\n")
    x = torch.linspace(-1, 1, 4)
    assert ours["f"](x.numpy()).tolist() == theirs["f"](x).tolist()


@pytest.mark.parametrize(("listed", "blocks"), [('"act", "Blk"', True), ('"Blk"', False)])
def test_a_star_import_of_a_list_that_names_what_is_gone(
    tmp_path: Path, listed: str, blocks: bool
) -> None:
    files = {
        "a.py": f"""
            import torch.nn as nn
            from torch.nn.functional import relu as act

            __all__ = [{listed}]


            class Blk(nn.Linear):
                pass
            """,
        "b.py": """
            from .a import *
            """,
    }
    assert bool(blocking(convert(tmp_path, files))) is blocks


@pytest.mark.parametrize("read", ["utils.gradient(u, x)", "u if utils.gradient else x", "u"])
def test_what_a_file_lacks_is_reported_where_it_is_read_of_its_module(
    tmp_path: Path, read: str
) -> None:
    files = {
        "utils.py": """
            import torch
            from torch import nn


            def gradient(y, x):
                return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.fc = nn.Linear(3, 1)

                def forward(self, x):
                    x.requires_grad_()
                    u = self.fc(x).sin()
                    return gradient(u, x)
            """,
        "net.py": f"""
            import torch
            from torch import nn

            from . import utils


            class Outer(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = utils.Net()

                def forward(self, x):
                    u = self.net(x)
                    return {read}
            """,
    }
    found = convert(tmp_path, files)
    told = [one for one in found.findings if "is not in its converted file" in one.message]
    assert len(told) == (read != "u")
    assert all("utils.gradient" in one.snippet and one.blocks for one in told)
    assert bool(blocking(found)) == (read != "u")

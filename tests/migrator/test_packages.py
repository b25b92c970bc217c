"""Files that import one another: what one defines, the others know, and the outputs fit together."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

from migrator.project import Conversion, analyze_paths, convert_path
from migrator.usercode import UserCode

LAYERS = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim: int, act: type[nn.Module] = nn.ReLU):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.act = act()

    def forward(self, x):
        return self.act(self.fc(x))


class Double(nn.Module):
    def forward(self, x):
        return x * 2


def pool(x: torch.Tensor):
    return x.mean(1)


def make(dim: int):
    return Block(dim)


def halve_(x: torch.Tensor):
    x.div_(2)
    return x.sum()
"""
NET = """
from torch import nn

from .layers import Block, make, pool


class Net(nn.Module):
    def __init__(self, dim: int = 4):
        super().__init__()
        self.a = Block(dim)
        self.b = make(dim)

    def forward(self, x):
        return pool(self.b(self.a(x))).max(1).values
"""


def write(root: Path, files: dict[str, str]) -> Path:
    """A package ``pkg`` below ``root``; ``__init__`` files are added."""
    for name, text in files.items():
        path = root / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        for folder in path.parents:
            if folder.is_relative_to(root / "pkg"):
                (folder / "__init__.py").touch()
    return root / "pkg"


def convert(
    tmp_path: Path, files: dict[str, str], name: str = "pkg", **options: object
) -> Conversion:
    return convert_path([write(tmp_path / "src", files)], tmp_path / "out" / name, **options)  # type: ignore[arg-type]


def code(conversion: Conversion, name: str) -> str:
    return next(f.code for f in conversion.files if f.file.name.as_posix() == name)


def blocking(conversion: Conversion) -> list[str]:
    return [f"{Path(f.path).name}: {f.rule} {f.message}" for f in conversion.findings if f.blocks]


def test_classes_and_functions_of_another_file_get_rngs(tmp_path: Path) -> None:
    found = convert(tmp_path, {"layers.py": LAYERS, "net.py": NET})
    assert not blocking(found)
    text = code(found, "net.py")
    assert "self.a = Block(dim, rngs=rngs)" in text
    assert "self.b = make(dim, rngs=rngs)" in text
    assert "return max_along(pool(self.b(self.a(x))), 1)" in text, "pool() gives a tensor"


def test_a_converted_package_computes_what_the_original_does(tmp_path: Path) -> None:
    import torch
    from flax import nnx

    import migrator

    convert(tmp_path, {"layers.py": LAYERS, "net.py": NET}, name="flaxed")
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").Net().eval()
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py").Net(rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(3, 5, 4)
    with torch.no_grad():
        expected = theirs(x).numpy()
    np.testing.assert_allclose(ours(x.numpy()), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("files", "importer"),
    [
        pytest.param(
            {"api.py": "from .layers import Block"}, "from .api import Block", id="reexport"
        ),
        pytest.param({"__init__.py": "from .layers import *"}, "from . import Block", id="star"),
        pytest.param({}, "from pkg.layers import Block", id="absolute"),
        pytest.param({}, "from . import layers\nBlock = layers.Block", id="module"),
        pytest.param({}, "import pkg.layers as L\nBlock = L.Block", id="module alias"),
        pytest.param(
            {},
            "try:\n    from .layers import Block\nexcept ImportError:\n    Block = None",
            id="conditional",
        ),
        pytest.param(
            {"__init__.py": "import pkg.nets\nimport pkg.layers\n", "nets.py": ""},
            "import pkg\nfrom pkg.layers import Block",
            id="several imports of one name",
        ),
        pytest.param(
            {"layers.py": LAYERS + "\n__all__ = ['Block']\n"}, "from .layers import *", id="__all__"
        ),
    ],
)
def test_a_base_class_is_found_through(
    tmp_path: Path, files: dict[str, str], importer: str
) -> None:
    net = (
        f"{importer}\n\n\nclass Net(Block):\n    def forward(self, x):\n        return x.size(0)\n"
    )
    found = convert(tmp_path, {"layers.py": LAYERS, **files, "net.py": net})
    assert not blocking(found)
    assert "def __call__(self, x):\n        return x.shape[0]" in code(found, "net.py")


def test_torch_names_that_another_file_hands_on_are_spelled_out(tmp_path: Path) -> None:
    files = {
        "common.py": "import torch\nimport torch.nn as nn\nSCALE = 2.0\n",
        "net.py": "from .common import SCALE, nn, torch\n\n\ndef f(x: torch.Tensor):\n"
        "    return nn.functional.relu(x.size(0) * x) * SCALE\n",
    }
    text = code(convert(tmp_path, files), "net.py")
    assert "from .common import SCALE\n" in text
    assert "jax.nn.relu(x.shape[0] * x) * SCALE" in text


def test_a_name_that_a_star_import_brings_and_the_file_binds_too(tmp_path: Path) -> None:
    net = "import torch\nfrom .layers import *\n\nSCALE = 2\n\n\ndef f(x: torch.Tensor):\n"
    files = {"__init__.py": net + "    return x.size(0) * SCALE\n", "layers.py": "SCALE = 1\n"}
    assert "return x.shape[0] * SCALE" in code(convert(tmp_path, files), "__init__.py")


def test_files_that_import_one_another_in_a_circle(tmp_path: Path) -> None:
    files = {
        "a.py": "import torch\nfrom torch import nn\nfrom . import b\n\n\nclass A(nn.Module):\n"
        "    def forward(self, x):\n        return b.twice(x).size(0)\n\n\n"
        "def scale(x: torch.Tensor):\n    return x * 3\n",
        "b.py": "import torch\nfrom .a import scale\n\n\ndef twice(x: torch.Tensor):\n"
        "    return scale(x) * 2\n",
    }
    found = convert(tmp_path, files)
    assert not blocking(found)
    assert "return b.twice(x).shape[0]" in code(found, "a.py")


def test_a_lambda_over_parts_of_a_module_in_a_circle_of_files(tmp_path: Path) -> None:
    files = {
        "a.py": "import torch\nfrom torch import nn\nfrom . import b\n\n\nclass A(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
        "        m = self.fc\n        self.run = lambda x: m(x)\n\n"
        "    def forward(self, x):\n        return b.twice(self.run(x))\n\n\n"
        "def scale(x: torch.Tensor):\n    return x * 3\n",
        "b.py": "import torch\nfrom torch import nn\nfrom . import a\n\n\n"
        "def twice(x: torch.Tensor):\n    return a.scale(x) * 2\n\n\nclass B(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.run = twice\n\n"
        "    def forward(self, x):\n        return self.run(x)\n",
    }
    found = convert(tmp_path, files)
    assert not [finding for finding in found.findings if finding.rule == "INT001"]
    assert "self.run" in code(found, "a.py")


def test_parameters_that_a_function_of_a_circle_of_files_hands_out(tmp_path: Path) -> None:
    files = {
        "a.py": "import torch\nfrom torch import nn\nfrom .b import trained\n\n\nclass A(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        return self.fc(x)\n\n\n"
        "def show(net: A):\n    return f'{len(trained(net))} of {len(list(net.parameters()))}'\n",
        "b.py": "import torch\nfrom torch import nn\nfrom . import a\n\n\n"
        "def trained(net: nn.Module):\n    return [p for p in net.parameters() if p.requires_grad]\n\n\n"
        "def more(net: nn.Module):\n    return a.show(net)\n",
    }
    found = convert(tmp_path, files)
    assert not [finding for finding in found.findings if finding.rule == "INT001"]
    assert "def show(net: A)" in code(found, "a.py")


def test_parameters_read_by_made_up_names_whose_base_is_in_another_file(tmp_path: Path) -> None:
    base = """
    from torch import nn


    class Base(nn.Module):
        def __init__(self, n: int):
            super().__init__()
            self.n = n
    """
    net = """
    import torch
    from torch import nn

    from .base import Base


    class Net(Base):
        def __init__(self, n: int = 2):
            super().__init__(n)
            for i in range(n):
                self.register_buffer(f"b{i}", torch.full((4,), float(i + 1)))

        def forward(self, x):
            for i in range(self.n):
                x = x * getattr(self, f"b{i}")
            return x
    """
    from flax import nnx

    found = convert(tmp_path, {"base.py": base, "net.py": net}, name="flaxed")
    assert not blocking(found)
    port = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py").Net(rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(port(np.ones((2, 4))), np.full((2, 4), 2.0))


def test_a_type_checking_import_gives_a_hint(tmp_path: Path) -> None:
    net = """
    from typing import TYPE_CHECKING
    import torch

    if TYPE_CHECKING:
        from .layers import Block


    def run(block: "Block", x: torch.Tensor):
        return block(x).size(0)
    """
    found = convert(tmp_path, {"layers.py": LAYERS, "net.py": net})
    assert "return block(x).shape[0]" in code(found, "net.py")


def test_helpers_stand_in_one_module(tmp_path: Path) -> None:
    files = {
        "a.py": "from torch import nn\n\n\nclass A(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.conv = nn.Conv2d(3, 4, 3)\n",
        "sub/b.py": "from torch import nn\n\n\ndef is_conv(m: nn.Module):\n"
        "    return isinstance(m, nn.Conv2d)\n",
    }
    found = convert(tmp_path, files)
    assert "from ._torch_compat import Conv2d\n" in code(found, "a.py")
    assert "from .._torch_compat import Conv2d\n" in code(found, "sub/b.py")
    written = (tmp_path / "out/pkg/_torch_compat.py").read_text()
    assert written.count("class Conv2d(") == 1
    compile(written, "_torch_compat.py", "exec")


def test_helpers_stand_where_every_file_finds_them(tmp_path: Path) -> None:
    layer = "import torch\nfrom torch import nn\nMORE\n\nclass A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.LeakyReLU(0.2)\n\n    def forward(self, x):\n        return self.act(x)\n"
    files = {
        "pkg/__init__.py": "",
        "pkg/a.py": layer.replace("MORE", ""),
        "pkg/examples/run/alib/__init__.py": "from .agent import A\n",
        "pkg/examples/run/alib/agent.py": layer.replace("MORE", "from pkg.a import A as Base\n"),
        "pkg/examples/run/main.py": "import alib\nprint(alib.A)\n",
    }
    for name, text in files.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    convert_path([tmp_path / "in"], tmp_path / "out")
    assert [p.parent.name for p in (tmp_path / "out").rglob("_torch_compat.py")] == ["pkg"]
    inner = (tmp_path / "out/pkg/examples/run/alib/agent.py").read_text()
    assert "from pkg._torch_compat import leaky_relu\n" in inner


@pytest.mark.parametrize("imported", [True, False])
def test_a_folder_without_init_in_a_package(tmp_path: Path, imported: bool) -> None:
    """It is a part of the package where the package imports from it, else it may hold scripts."""
    text = "from torch import nn\n\n\nclass {}(nn.Module):\n    def __init__(self):\n"
    text += "        super().__init__()\n        self.conv = nn.Conv2d(3, 4, 3)\n"
    first = "from .parts.net import B\n" if imported else ""
    root = write(tmp_path, {"a.py": first + text.format("A"), "parts/net.py": text.format("B")})
    (root / "parts/__init__.py").unlink()
    found = code(convert_path([root], None), "parts/net.py")
    assert ("from .._torch_compat import Conv2d\n" in found) == imported
    assert ("class Conv2d(" in found) != imported


def test_loose_files_that_have_nothing_to_do_with_each_other_carry_their_own(
    tmp_path: Path,
) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(
            "from torch import nn\n\n\ndef f():\n    return nn.Conv2d(1, 2, 3)\n"
        )
    found = convert_path([tmp_path], None)
    assert not found.helpers
    assert all("class Conv2d(" in file.code for file in found.files)


def test_a_package_that_is_renamed_imports_itself_relatively(tmp_path: Path) -> None:
    files = {"layers.py": LAYERS, "sub/net.py": NET.replace("from .layers", "from pkg.layers")}
    assert "from pkg.layers import" in code(convert(tmp_path, files), "sub/net.py")
    renamed = convert(tmp_path, files, name="flaxed")
    assert "from ..layers import Block, make, pool" in code(renamed, "sub/net.py")


def test_a_class_that_another_file_hands_on_takes_rngs(tmp_path: Path) -> None:
    files = {
        "layers.py": LAYERS,
        "net.py": "from .layers import Block, Double\n\n\ndef f():\n    return Block(3, act=Double)\n",
    }
    text = code(convert(tmp_path, files), "layers.py")
    assert "class Double(nnx.Module):\n    def __init__(self, *, rngs: nnx.Rngs):" in text


# --- what is not known for sure is a finding ---------------------------------------------------------------------


def caller(body: str) -> dict[str, str]:
    head = "import torch\nfrom .layers import halve_, pool\n\n\ndef f(x: torch.Tensor, n: int):\n"
    return {"layers.py": LAYERS, "net.py": head + textwrap.indent(body, "    ")}


def test_an_argument_that_another_file_writes_to_must_not_be_read_again(tmp_path: Path) -> None:
    found = convert(tmp_path, caller("s = halve_(x)\nreturn s * x\n"))
    assert [t for t in blocking(found) if "MUT003" in t and "`x` is read later" in t]
    view = convert(tmp_path, caller("y = x.view(-1)\ns = halve_(y)\nreturn s * x\n"), name="view")
    assert any("MUT003" in text for text in blocking(view))
    last = convert(tmp_path, caller("y = x + 1\nreturn halve_(y)\n"), name="last")
    assert not blocking(last)


PERHAPS = """
from torch import nn
from .layers import Before, Behind


class Net(nn.Module):
    def __init__(self, flag=1):
        super().__init__()
        self.layer = LAYER

    def forward(self, x):
        h = x * 2
        y = self.layer(h)
        return h + y
"""
BEFORE = """
from torch import nn


class Before(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(self.relu(x))


class Behind(Before):
    def forward(self, x):
        return self.relu(self.fc(x))
"""


@pytest.mark.parametrize(
    ("layer", "writes"),
    [
        ("Before()", True),
        ("Before() if flag else nn.GELU()", True),
        ("Before() if flag else Behind()", True),
        ("nn.ModuleList([nn.GELU(), Before()])[flag]", True),
        ("{'a': Before(), 'b': nn.GELU()}[flag]", True),
        ("Behind() if flag else nn.GELU()", False),
        ("nn.Sequential(nn.Linear(4, 4), Before())", False),
        ("nn.ModuleList([Behind(), Before()])[0]", False),
    ],
)
def test_what_may_be_a_layer_of_another_file_may_write(
    tmp_path: Path, layer: str, writes: bool
) -> None:
    files = {"layers.py": BEFORE, "net.py": PERHAPS.replace("LAYER", layer)}
    found = blocking(convert(tmp_path, files))
    assert any("MUT003 forward() changes" in text for text in found) is writes


def test_arguments_go_to_the_parameters_of_another_file_in_their_order(tmp_path: Path) -> None:
    layers = (
        "import torch\nfrom torch import nn\n\n\nclass Base(nn.Module):\n"
        "    def twice_(self, x: torch.Tensor, a: torch.Tensor):\n        x.mul_(2)\n        return a\n"
    )
    net = (
        "from .layers import Base\n\n\nclass Net(Base):\n    def forward(self, x, y):\n"
        "        n = self.twice_(x, y)\n        return x + n\n"
    )
    found = blocking(convert(tmp_path, {"layers.py": layers, "net.py": net}))
    assert [line[:16] for line in found] == ["net.py: MUT003 t"]


def test_a_write_is_known_through_a_function_in_between(tmp_path: Path) -> None:
    body = "s = between(x)\nreturn s * x\n"
    files = caller(body)
    files["middle.py"] = (
        "import torch\nfrom .layers import halve_\n\n\ndef between(y: torch.Tensor):\n"
        "    return halve_(y)\n"
    )
    files["net.py"] = files["net.py"].replace(
        "from .layers import halve_, pool", "from .middle import between"
    )
    assert any("MUT003 between()" in text for text in blocking(convert(tmp_path, files)))


def test_a_function_that_gets_what_it_was_not_converted_for(tmp_path: Path) -> None:
    found = convert(tmp_path, caller("return pool(n)\n"))
    assert any("API005 `x` of pool() is a tensor" in text for text in blocking(found))


def test_a_function_that_asks_what_it_gets(tmp_path: Path) -> None:
    layers = (
        "import torch\n\n\ndef total(x, n=1):\n    if isinstance(x, torch.Tensor):\n"
        "        return x.max(0).values\n    return sum(x) * n\n\n\ndef three():\n    return total([1, 2])\n"
    )
    net = "import torch\nfrom .layers import total\n\n\ndef f(x: torch.Tensor):\n    return total(x)\n"
    found = convert(tmp_path, {"layers.py": layers, "net.py": net})
    assert not blocking(found)
    assert "return max_along(x, 0)" in code(found, "layers.py")


def test_a_name_that_no_converted_file_defines(tmp_path: Path) -> None:
    files = {"net.py": "import torch\nfrom .missing import f\n\n\ndef g(x):\n    return f(x)\n"}
    assert any("API004 f of .missing" in text for text in blocking(convert(tmp_path, files)))
    files = {"layers.py": LAYERS, "net.py": NET.replace("pool\n", "pool, absent\n")}
    assert any(
        "API004 absent of .layers" in t for t in blocking(convert(tmp_path, files, name="b"))
    )


def test_an_overriding_method_gets_rngs_as_the_base_hands_them(tmp_path: Path) -> None:
    files = {
        "base.py": """
        from torch import nn


        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = self._make(4)

            def _make(self, n):
                return nn.Linear(n, n)

            def forward(self, x):
                return self.body(x)
        """,
        "net.py": """
        from torch import nn
        from .base import Base


        class Net(Base):
            def _make(self, n):
                return nn.Identity()
        """,
    }
    found = convert(tmp_path, files)
    assert "self._make(4, rngs=rngs)" in code(found, "base.py")
    assert "def _make(self, n, *, rngs: nnx.Rngs):" in code(found, "net.py")


def test_analyze_knows_other_files_too(tmp_path: Path) -> None:
    root = write(tmp_path, {"layers.py": LAYERS, "net.py": NET, "sub/x.py": "import pkg.layers\n"})
    assert [f.rule for f in analyze_paths([root])[1] if f.blocks] == []


def test_children_of_a_package_are_modules_in_their_order(tmp_path: Path) -> None:
    """A layer without state is a module, a function that a module keeps is none."""
    files = {
        "net.py": """
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self, norm=nn.Identity):
                super().__init__()
                self.make = lambda n: n
                self.z = nn.Linear(3, 3)
                self.act = nn.ReLU()
                self.a = norm()
        """,
        "walk.py": """
        from torch import nn


        class Walk(nn.Module):
            def __init__(self, net: nn.Module):
                super().__init__()
                self.names = [name for name, _ in net.named_children()]
                self.layers = nn.Sequential(*net.children())

            def forward(self, x):
                return self.layers(x)
        """,
    }
    from flax import nnx

    assert not blocking(convert(tmp_path, files, name="flaxed"))
    code = UserCode(tmp_path / "out")
    net = code.load(tmp_path / "out/flaxed/net.py").Net(rngs=nnx.Rngs(0))
    walk = code.load(tmp_path / "out/flaxed/walk.py").Walk(net, rngs=nnx.Rngs(0))
    assert walk.names == ["z", "act", "a"]
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(walk(x), np.maximum(net.z(x), 0))


def test_a_package_is_importable_where_files_are_missing(tmp_path: Path) -> None:
    files = {
        "layers.py": LAYERS,
        "api.py": "from .native import op, register\nfrom . import layers, absent\n\nregister()\n",
    }
    found = convert(tmp_path, files, name="flaxed")
    assert len([text for text in blocking(found) if "API004" in text]) == 3
    module = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/api.py")
    assert module.layers.make


def test_a_class_that_does_not_convert_raises_when_it_is_used(tmp_path: Path) -> None:
    files = {
        "layers.py": LAYERS + "\n\nclass Pool(nn.CosineSimilarity):\n    pass\n",
        "api.py": "from .layers import Pool, pool\n\n\ndef f(x):\n    return Pool(2, 2)(x)\n",
    }
    found = convert(tmp_path, files, name="flaxed")
    assert any(
        "API001 a class that derives from torch.nn.CosineSimilarity" in t for t in blocking(found)
    )
    assert "# class Pool(nn.CosineSimilarity):\n#     pass\nclass Pool:" in code(found, "layers.py")
    module = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/api.py")
    with pytest.raises(
        NotImplementedError, match=r"^Pool: pkg/layers.py:33: API001 .*CosineSimilarity"
    ):
        module.f(np.ones(3), rngs=None)


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        ("from .net import Net", False),
        ("from .net import models", True),
        ("from .net import *", True),
        ("from . import net\nprint(net.models)", True),
    ],
)
def test_an_import_that_another_file_may_read_stays(tmp_path: Path, other: str, kept: bool) -> None:
    net = "import torch.nn as nn\nfrom torchvision import models\n\n\nclass Net(nn.Module):\n    pass\n"
    found = convert(tmp_path, {"net.py": net, "use.py": other + "\n"})
    assert any(text.startswith("net.py: API004") for text in blocking(found)) is kept


def test_a_file_that_is_missing_defines_nothing(tmp_path: Path) -> None:
    files = {
        "__init__.py": "from .models import a\n",
        "models/a.py": "import torch.nn as nn\nfrom pkg.core import Base\n\n\n"
        "class A(nn.Module, Base):\n    pass\n",
        "models/b.py": "from .a import A\n\n\nclass B(A):\n    def twice(self, x):\n        return 2 * self(x)\n",
        "common/other.py": "import torch\n",
    }
    done = convert(tmp_path, files)
    assert not [f for f in done.findings if f.rule == "INT001"]

"""What is not converted keeps no file from being imported: its names raise when they are used, and say why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.project import Conversion, convert_path
from migrator.usercode import UserCode
from rules.compat.not_converted import NotConverted

SOURCE = """
import torchaudio
import torchaudio.transforms as T
from typing import Optional
import torch
from torch import nn
from timm.layers import Mlp as DropPath, register

Optimizer = torch.optim.Adam
ACTS = {"relu": nn.ReLU, "adam": torch.optim.Adam, "tanh": nn.Tanh}
NAMED = dict(a=nn.ReLU, b=torch.optim.Adam)
if torchaudio is not None:
    load = torchaudio.load
WAVES = hasattr(torchaudio, "load") and T is not None
if WAVES:
    SPEC = T.Spectrogram
else:
    SPEC = None


@register
def build(n):
    return Net(n)


class Base(DropPath):
    def more(self):
        return self.drop_prob


class Both(DropPath, nn.Module):
    pass


class LARS(torch.optim.Optimizer):
    step_size = 1


lars = LARS.step_size


class Net(nn.Module):
    optimizer = torch.optim.Adam

    def __init__(self, n, act="relu", drop: Optional[DropPath] = None):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.act = ACTS[act]()
        self.drop = nn.Identity() if drop is None else drop(n)

    @property
    @torch.jit.unheard_of
    def size(self):
        return 3

    def forward(self, x):
        return self.drop(self.act(self.lin(x)))


class Odd(Net):
    @torch.jit.unheard_of
    def forward(self, x):
        return x
"""
API = """
from . import net
from .net import DropPath, Net, Optimizer, register, torchaudio

drop = DropPath(0.1)


@register()
def make(n):
    return Net(n)


class Heir(DropPath):
    pass


def is_drop(module):
    return isinstance(module, DropPath)
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The two files, converted and imported."""
    path = tmp_path_factory.mktemp("port")
    done = _converted(path, {"net.py": SOURCE, "api.py": API})
    assert not done.complete
    assert not any(f.rule.startswith("INT") for f in done.findings)
    return UserCode(path / "out").load(path / "out/pkg/api.py")


def _converted(path: Path, files: dict[str, str]) -> Conversion:
    (path / "pkg").mkdir()
    for name, text in {"__init__.py": "", **files}.items():
        (path / "pkg" / name).write_text(text)
    return convert_path([path / "pkg"], path / "out/pkg", cache=None)


def test_what_converts_computes_what_torch_does(port: Any) -> None:
    source = SOURCE.replace("import torchaudio\nimport torchaudio.transforms as T\n", "")
    head = source[: source.index("Optimizer =")].replace(
        "from timm.layers import Mlp as DropPath, register", "class DropPath: pass"
    )
    scope: dict[str, Any] = {"ACTS": {"relu": torch.nn.ReLU}}
    body = source[source.index("class Net") : source.index("    @property")]
    tail = source[source.index("    def forward(self, x):\n        return self.drop") :]
    exec(head + body + tail[: tail.index("class Odd")], scope)
    theirs = scope["Net"](4)
    ours = port.Net(4, rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(2, 4)
    np.testing.assert_allclose(ours(x.numpy()), theirs(x).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("DropPath", 7),
        ("torchaudio", 2),
        ("T", 3),
        ("Optimizer", 9),
        ("load", 13),
        ("WAVES", 14),
        ("SPEC", 15),
        ("build", 21),
        ("Base", 7),
        ("Both", 7),
        ("LARS", 35),
        ("lars", 39),
    ],
)
def test_what_does_not_raises_when_it_is_called_and_says_where(
    port: Any, name: str, line: int
) -> None:
    with pytest.raises(NotImplementedError, match=rf"^\w+: pkg/net\.py:{line}: \w+ \w"):
        getattr(port.net, name)(1)


def test_an_entry_of_a_table_raises_beside_others(port: Any) -> None:
    module = port.net
    assert sorted(module.ACTS) == ["adam", "relu", "tanh"]
    with pytest.raises(NotImplementedError, match=r"net\.py:10: API001 torch\.optim\.Adam"):
        module.Net(4, "adam", rngs=nnx.Rngs(0))
    assert callable(module.NAMED["a"])
    with pytest.raises(NotImplementedError, match=r"net\.py:11: API001 torch\.optim\.Adam"):
        module.NAMED["b"]()
    with pytest.raises(NotImplementedError, match=r"net\.py:43: API001 torch\.optim\.Adam"):
        module.Net.optimizer()


def test_a_property_stays_one_and_forward_is_what_a_call_runs(port: Any) -> None:
    module = port.net
    net = module.Net(4, rngs=nnx.Rngs(0))
    with pytest.raises(NotImplementedError, match=r"net\.py:52: "):
        _ = net.size
    odd = module.Odd(4, rngs=nnx.Rngs(0))
    with pytest.raises(NotImplementedError, match=r"net\.py:61: "):
        odd(np.ones((2, 4), np.float32))


def test_what_another_file_makes_of_it_while_it_is_imported_raises_later(port: Any) -> None:
    for name in ("drop", "make", "Heir"):
        with pytest.raises(NotImplementedError, match=r"^\w+: pkg/(api|net)\.py:\d+: API004 timm"):
            getattr(port, name)()
    with pytest.raises(NotImplementedError, match="timm"):
        port.is_drop(3)


def test_no_question_gets_a_wrong_answer() -> None:
    stub: Any = NotConverted("net.py:3: API001 why")
    other: Any = NotConverted("net.py:4: API001 why")
    asked = (
        lambda: bool(stub),
        lambda: stub == 1,
        lambda: stub != 1,
        lambda: stub == other,
        lambda: stub in [1, 2],
        lambda: 1 in [stub],
        lambda: 1 in stub,
        lambda: {stub: 1},
        lambda: hash(stub),
        lambda: hasattr(stub, "x"),
        lambda: getattr(stub, "x", None),
        lambda: isinstance(1, stub),
        lambda: isinstance(1, (str, stub)),
        lambda: issubclass(int, stub),
        lambda: list(stub),
        lambda: len(stub),
        lambda: stub["x"],
        lambda: f"{stub}",
        lambda: str(stub),
    )
    for question in asked:
        with pytest.raises(NotImplementedError, match=r"net\.py:[34]: API001 why"):
            question()

    class Heir(stub):
        pass

    class Module(stub, nnx.Module):
        pass

    assert not isinstance(1, Heir)
    for cls in (Heir, Module):
        with pytest.raises(NotImplementedError, match=r"net\.py:3"):
            cls()


def test_a_class_may_be_put_into_a_set_and_is_found_there_by_identity() -> None:
    stub: Any = NotConverted("FrozenNorm: net.py:3: API004 why")
    again: Any = NotConverted("FrozenNorm: other.py:9: API004 why")
    types = {dict, stub}
    assert stub in types
    assert list not in types
    with pytest.raises(NotImplementedError, match="FrozenNorm"):
        assert again in types  # it may be the same one
    for name in ("MODE", "mode"):
        with pytest.raises(NotImplementedError, match="why"):
            hash(NotConverted(f"{name}: net.py:3: API004 why"))


def test_a_statement_that_does_more_than_to_bind_names_stays(tmp_path: Path) -> None:
    source = (
        "import torch\nfrom torch import nn\n\nSEEN = []\n\n\ndef note(x):\n    SEEN.append(x)\n"
        "    return x\n\n\nX = note(torch.optim.Adam)\n"
        "Y = torch.optim.SGD if SEEN else None\nnn.Linear.reset_parameters = torch.optim.Adam\n"
        "for one in (nn.ReLU, torch.optim.SGD):\n    SEEN.append(one)\n"
        'if __name__ == "__main__":\n    Z = torch.optim.Adam\n'
    )
    done = _converted(tmp_path, {"net.py": source})
    code = (tmp_path / "out/pkg/net.py").read_text()
    assert not done.complete
    assert "NotConverted" not in code
    for line in source.splitlines()[-7:]:
        assert f"\n{line}" in code or line.strip() == "SEEN.append(one)"


def test_a_subclass_hook_that_does_not_convert(tmp_path: Path) -> None:
    source = (
        "import torch\nfrom torch import nn\n\n\nclass Base(nn.Module):\n"
        "    def __init_subclass__(cls, **kwargs):\n"
        "        super().__init_subclass__(**kwargs)\n        cls.made = torch.optim.Adam\n\n\n"
        "class Net(Base):\n    def forward(self, x):\n        return x + 1\n\n\n"
        "class Plain(nn.Module):\n    def __init_subclass__(cls, **kwargs):\n"
        "        super().__init_subclass__(**kwargs)\n        cls.made = 2\n\n"
        "    def forward(self, x):\n        return x + self.made\n\n\nclass Heir(Plain):\n    pass\n"
    )
    done = _converted(tmp_path, {"net.py": source})
    assert [f.line for f in done.findings if f.blocks] == [8]
    module = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    with pytest.raises(NotImplementedError, match=r"net\.py:\d+: API001 torch\.optim\.Adam"):
        module.Net()
    np.testing.assert_array_equal(module.Heir()(np.ones(2)), np.full(2, 3.0))


def test_one_file_carries_what_it_needs(tmp_path: Path) -> None:
    source = (
        '"""A file."""\n\nimport torchaudio\nimport math\nimport torch\nfrom torch import nn\n'
        "from timm.layers import Mlp as DropPath\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
        "        super().__init__()\n        self.lin = nn.Linear(n, n)\n\n"
        "    def forward(self, x):\n        return self.lin(x) * math.pi\n\n\n"
        "def load(path):\n    return torchaudio.load(path)\n"
    )
    (tmp_path / "net.py").write_text(source)
    convert_path([tmp_path / "net.py"], tmp_path / "out", cache=None)
    code = (tmp_path / "out/net.py").read_text()
    assert code.index("import math") < code.index("class NotConverted:")
    assert code.index("class NotConverted:") < code.index("torchaudio = NotConverted(")
    module = UserCode(tmp_path / "out").load(tmp_path / "out/net.py")
    assert module.Net(3, rngs=nnx.Rngs(0))(np.ones((1, 3), np.float32)).shape == (1, 3)
    with pytest.raises(NotImplementedError, match=r"^torchaudio: net\.py:3: API004 torchaudio"):
        module.load("a.wav")


def test_a_layer_of_torch_that_has_no_conversion_is_a_finding_as_a_value_too(
    tmp_path: Path,
) -> None:
    source = (
        "import torch\nfrom torch import nn\n\nNORMS = (nn.GroupNorm, nn.CrossMapLRN2d)\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.norm = NORMS[0](2, 4)\n\n    def forward(self, x):\n        return self.norm(x)\n"
    )
    done = _converted(tmp_path, {"net.py": source})
    assert [(f.rule, f.line) for f in done.findings if f.blocks] == [("API001", 4)]
    module = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    x = torch.randn(2, 4, 3)
    ours = module.Net(rngs=nnx.Rngs(0))(x.numpy())
    np.testing.assert_allclose(ours, torch.nn.GroupNorm(2, 4)(x).detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(NotImplementedError, match="CrossMapLRN2d: torch sums"):
        module.NORMS[1](2)


def test_hints_of_what_is_not_converted_keep_no_file_from_being_imported(tmp_path: Path) -> None:
    """A registry's: types of optimisers and datasets, tables of them, and variables bound to them."""
    kinds = """
from typing import Dict, Union
import torch.nn as nn
from torch.optim import Optimizer
from torch.utils.data import Dataset

TDataset = Dataset
TModel = nn.Module
TOptimizer = Union[Optimizer, Dict[str, Optimizer]]
"""
    registry = """
from typing import Callable, Dict, Optional, Type, TypeVar

import torch.nn as nn
from torch import optim

from .kinds import TDataset, TModel, TOptimizer

MODELS: Dict[str, Callable[..., TModel]] = {}
GIVEN: Dict[str, Callable[..., Optional[TOptimizer]]] = {}
OPTIMIZERS: Dict[str, Callable[..., TOptimizer]] = {
    k: v for k, v in optim.__dict__.items() if k[0].isupper()
}
Model = TypeVar("Model", bound=TModel)
Data = TypeVar("Data", bound=TDataset)
Optimizer = TypeVar("Optimizer", bound=TOptimizer)
Either = TypeVar("Either", TOptimizer, TDataset)
Text = TypeVar("Text", bound=str, covariant=True)


def register(cls: Type[Model]) -> Type[Model]:
    MODELS[cls.__name__] = cls
    OPTIMIZERS[cls.__name__] = None
    return cls


@register
class Net(nn.Module):
    def forward(self, x):
        return x + 1
"""
    done = _converted(tmp_path, {"kinds.py": kinds, "registry.py": registry})
    assert {f.rule for f in done.findings if f.blocks} == {"API001"}
    port = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/registry.py")
    assert port.MODELS["Net"](rngs=nnx.Rngs(0))(np.float32(1)) == 2
    assert port.Model.__bound__ is nnx.Module
    assert port.Text.__bound__ is str
    assert port.Text.__covariant__
    assert port.Optimizer.__bound__ is None
    assert not port.Either.__constraints__
    with pytest.raises(NotImplementedError, match=r"registry.py:12: API001 torch.optim.__dict__"):
        port.OPTIMIZERS["Adam"]


def test_what_a_library_makes_and_its_version_are_asked_for_when_they_are_used(
    tmp_path: Path,
) -> None:
    """A model of the file, and what depends on the version: neither keeps the model from being imported."""
    source = """
import torch
import timm
from packaging import version
from timm.models import VisionTransformer
from timm import __version__ as ours

NEW = version.parse(ours) >= version.parse("5.0.0")
NEWER = version.parse(timm.__version__) >= version.parse("6.0.0")
if NEW:
    from timm.layers import initialization as init
else:
    from torch.nn import init
teacher = VisionTransformer.of_size("base")


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x + 1


def taught(x):
    return teacher(x)


def filled(x):
    return init.ones_(x)
"""
    done = _converted(tmp_path, {"net.py": source})
    assert not done.complete
    module = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    np.testing.assert_array_equal(module.Net()(np.ones(2)), np.full(2, 2.0))
    with pytest.raises(NotImplementedError, match=r"teacher: pkg/net\.py:14: API004"):
        module.taught(np.ones(2))
    with pytest.raises(NotImplementedError, match=r"init: pkg/net\.py:10: API004"):
        module.filled(np.ones(2))
    with pytest.raises(NotImplementedError, match=r"NEWER: pkg/net\.py:9: API004"):
        bool(module.NEWER)


def test_a_stand_in_stays_before_an_import_of_the_project_that_needs_it(tmp_path: Path) -> None:
    """Two files that import one another: what one takes from the other is there by then in torch."""
    types = (
        "import math\n\nfrom torch import Tensor\nfrom torchvision.models._api import WeightsEnum\n"
        "from typing import Callable, List, Union\nfrom .model import Net\n\nModel = Net\n"
        "Some = Union[WeightsEnum, Net]\nFn = Callable[[WeightsEnum], Net]\nMany = List[Some]\n"
    )
    model = (
        "import torch\nfrom .types import Tensor, WeightsEnum\n\n\nclass Net(torch.nn.Module):\n"
        "    weights = WeightsEnum\n\n    def forward(self, x: Tensor):\n        return x + 1\n"
    )
    _converted(tmp_path, {"types.py": types, "model.py": model})
    code = (tmp_path / "out/pkg/types.py").read_text()
    assert code.index("WeightsEnum = NotConverted(") < code.index("\nfrom .model import Net\n")
    assert "Some = typing.Any" in code
    assert "Fn = typing.Any" in code
    assert "Many = List[Some]" in code
    module = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/types.py")
    np.testing.assert_array_equal(module.Model(rngs=nnx.Rngs(0))(np.ones(2)), np.full(2, 2.0))
    assert isinstance(module.Model.weights, module.NotConverted)

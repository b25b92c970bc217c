"""What a program asks about torch and about libraries built on it is answered while it is converted."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from migrator.analyze import analyze_source
from migrator.infer.named import NAMES
from migrator.infer.static import _OBJECTS, exists
from migrator.project import convert_path
from migrator.usercode import UserCode
from rules.compat.by_name import activation, activation_layer
from rules.torch_names import VERSION
from tests.convert.tools import HEADER, X, body, both, check, convert, rules_of


def module_text(source: str) -> str:
    """What stands behind the imports and helpers of a converted file."""
    code = convert("MARK = 0\n" + textwrap.dedent(source).strip("\n") + "\n").code
    return code.partition("MARK = 0\n")[2]


@pytest.mark.parametrize(
    ("test", "known"),
    [
        ('hasattr(F, "silu")', True),
        ('hasattr(torch, "channels_last")', True),
        ('not hasattr(torch, "no_such_name")', True),
        ('"no_such_name" in dir(nn)', False),
        ("torch.jit.is_scripting() or torch.jit.is_tracing()", False),
        ('torch.__version__ >= "2.2"', True),
        ("torch.__version__ < (1, 8)", False),
        ('"2.13.0" == torch.__version__', True),
        ('version.parse(torch.__version__) >= version.parse("2.9")', True),
        ('Version("2.2") < Version(torch.__version__)', True),
    ],
)
def test_only_the_branch_that_runs_is_left(test: str, known: bool) -> None:
    made = module_text(f"if {test}:\n    A = 1\nelse:\n    A = torch.no_such_name\n")
    other = module_text(f"if {test}:\n    A = torch.no_such_name\nelse:\n    A = 1\n")
    assert (made if known else other) == "A = 1\n"


def test_the_parser_of_versions_may_have_another_name() -> None:
    head = "from packaging.version import parse as V\n"
    test = "V(torch.__version__) >= V('2.1.0')"
    assert "no_such" not in module_text(
        head + f"if {test}:\n    A = 1\nelse:\n    A = torch.no_such_name\n"
    )
    flag = (
        head
        + f"NEW = {test}\n\n\ndef f(x):\n    if not NEW:\n        return torch.no_such(x)\n    return x\n"
    )
    assert rules_of(flag) == []
    assert rules_of(flag.replace("parse as V", "compare as V")) == ["API001"]
    assert rules_of(flag.replace("def f(x)", "def f(x, NEW)")) == ["API001"]
    assert rules_of(flag + "\n\ndef g():\n    global NEW\n    NEW = False\n") == ["API001"]


def test_versions_are_not_compared_as_strings() -> None:
    assert VERSION < "2.2" < torch.torch_version.TorchVersion(VERSION)
    assert rules_of("def f(v):\n    return torch.__version__ >= v\n") == ["API001"]
    assert rules_of('def f():\n    return torch.__version__ >= "2.1.0a0"\n') == ["API001"]
    assert module_text('V = int(torch.__version__.split(".")[0])\n').startswith("V = int(")


def test_elif_and_expressions() -> None:
    chain = "def f(n: int):\n    if n:\n        return 1\n    elif hasattr(nn, 'Nope'):\n        return 2\n    else:\n        return 3\n"
    assert body(chain, "def f").endswith(
        "    if n:\n        return 1\n    else:\n        return 3\n"
    )
    assert "return n\n" in body(
        "def f(n: int):\n    return n if hasattr(F, 'silu') else F.no()\n", "def f"
    )
    assert "return n > 1\n" in body(
        "def f(n: int):\n    return not torch.jit.is_tracing() and n > 1\n", "def f"
    )


def test_a_dead_branch_has_no_findings() -> None:
    source = (
        HEADER
        + "def f(x: torch.Tensor):\n    if torch.jit.is_scripting():\n        return x.cuda().nope(torch.nope)\n    return x\n"
    )
    assert analyze_source(source) == []


def test_names_of_torch_by_getattr() -> None:
    made = module_text(
        'a = getattr(getattr(torch, "compiler", None), "disable", None) or (lambda f: f)\n'
        'b = getattr(nn, "NoSuchLayer", None)\n'
        "def f(dtype: str):\n    return getattr(torch, dtype)\n"
    )
    assert "a = compiler_disable\nb = None\n" in made
    assert "return getattr(jnp, dtype)\n" in made
    assert rules_of("def f(name: str):\n    return getattr(torch, name)\n") == ["API001"]
    assert rules_of('a = getattr(torch, "_private", None)\n') == ["API001"]


ASKED = """
class M(nn.Module):
    def __init__(self, act="relu", layer="ReLU", out="tanh"):
        super().__init__()
        self.act = getattr(F, act)
        self.net = nn.Sequential(nn.Linear(4, 4), getattr(nn, layer)())
        self.out = out

    def forward(self, x):
        h = self.net(self.act(x))
        out = getattr(F, self.out)
        return out(h) + getattr(F, self.out)(h)
"""


LAYERS = sorted(NAMES["torch.nn"] - {"PReLU"})
PAIRS = list(zip(sorted(NAMES["torch.nn.functional"]), LAYERS, strict=True))


@pytest.mark.parametrize("names", PAIRS, ids=lambda names: names[0])
def test_activations_by_name(names: tuple[str, str]) -> None:
    function, layer = names
    if function == "glu":
        x = torch.randn(3, 4)
        np.testing.assert_allclose(activation(function)(x.numpy()), F.glu(x), rtol=1e-6)
        function = "relu"
    model, port, _ = both(ASKED, function, layer, function)
    expected = model(X).detach().numpy()
    np.testing.assert_allclose(port(X.numpy()), expected, rtol=1e-5, atol=1e-6)


RETURNED = """
def doubled(x):
    return 2 * x


def get_activation_fn(name):
    return doubled if name == "doubled" else torch.sigmoid if name == "sigmoid" else getattr(F, name)


class M(nn.Module):
    def __init__(self, act="relu"):
        super().__init__()
        self.act = get_activation_fn(act)
        self.last = torch.tanh if act == "tanh" else getattr(F, act)

    def forward(self, x):
        return self.act(x) + self.last(x)
"""


@pytest.mark.parametrize("name", ["gelu", "sigmoid", "tanh"])
def test_what_returns_an_activation(name: str) -> None:
    model, port, _ = both(RETURNED, name)
    np.testing.assert_allclose(port(X.numpy()), model(X), rtol=1e-5, atol=1e-6)


HANDED = """
def run(f, x):
    return f(x)


class Inner(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


class M(nn.Module):
    def __init__(self, activation_fn="relu"):
        super().__init__()
        self.last_activation = getattr(torch, activation_fn)
        activation_fn = getattr(F, activation_fn)
        self.inner = Inner(activation_fn)

    def forward(self, x):
        return self.inner(x) + run(self.last_activation, x)
"""


@pytest.mark.parametrize("name", ["relu", "sigmoid", "tanh", "selu"])
def test_what_its_name_calls_an_activation_may_be_handed_on(name: str) -> None:
    model, port, _ = both(HANDED, name)
    np.testing.assert_allclose(port(X.numpy()), model(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("space", ["torch", "F"])
def test_another_default_says_that_it_is_none(space: str) -> None:
    code = HANDED.replace("getattr(torch", f"getattr({space}").replace('"relu"', '"softmax"')
    assert "API001" in rules_of(code)


def test_a_name_that_says_nothing_is_not_looked_up_in_torch() -> None:
    code = "def f(x, name: str):\n    g = getattr(torch, name)\n    return g(x)\n"
    assert "API001" in rules_of(code)


@pytest.mark.parametrize("name", ["get_loss", "get_fn", "get_action", "exact"])
def test_what_returns_another_function(name: str) -> None:
    assert "API001" in rules_of(f"def {name}(name: str):\n    return getattr(F, name)\n")


def test_a_name_that_is_no_activation_raises() -> None:
    with pytest.raises(NotImplementedError, match="'softmax' is none of relu"):
        activation("softmax")
    with pytest.raises(NotImplementedError, match="'RReLU' is none of ReLU"):
        activation_layer("RReLU")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.act(x)", "self.act(x, x)"),
        ("self.act(x)", "self.act(input=x)"),
        ("out(h) + ", "out(h, -1) + "),
        ("(nn, layer)()", "(nn, layer)(4)"),
        ('"relu"', '"softmax"'),
        ('"ReLU"', '"RReLU"'),
    ],
)
def test_a_name_that_may_be_no_activation_is_a_finding(old: str, new: str) -> None:
    assert set(rules_of(ASKED.replace(old, new))) == {"API001"}
    assert {f.rule for f in analyze_source(HEADER + ASKED.replace(old, new))} == {"API001"}


def test_what_exists_is_what_torch_has() -> None:
    namespaces = {"torch": torch, "torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional}
    for name, namespace in namespaces.items():
        public = ["silu", "Linear", "vmap", "nope", "scaled_dot_product_attention"]
        assert [exists(name, n) for n in public] == [hasattr(namespace, n) for n in public]
    assert all(hasattr(torch, n.removeprefix("torch.")) for n in _OBJECTS)
    assert exists("torch", "_foreach_no_such") is None


OPTIONAL = """
try:
    import xformers.ops as xops
    HAS = True
except ImportError:
    xops = None
    HAS = False
try:
    from apex.normalization import FusedLayerNorm as Norm
except (ImportError, AttributeError):
    Norm = nn.LayerNorm


def f(x: torch.Tensor):
    if HAS:
        return xops.memory_efficient_attention(x, x, x)
    return x
"""


def test_the_way_without_a_library_is_taken() -> None:
    result = convert(OPTIONAL)
    assert result.complete
    assert [f.rule for f in result.findings] == ["API004", "API004"]
    assert "xops = None\nHAS = False\nNorm = LayerNorm\n" in result.code
    assert body(OPTIONAL, "def f").endswith("x: jax.Array):\n    return x\n")
    assert not [f for f in analyze_source(HEADER + OPTIONAL) if f.blocks]


def test_a_flag_that_something_else_sets_stays_open() -> None:
    for other in (
        "def switch():\n    global HAS\n    HAS = True",
        "HAS, y = True, 1",
        "from a import HAS",
    ):
        assert "if HAS:" in body(f"{OPTIONAL}\n\n{other}\n", "def f")


def test_a_library_that_is_needed_is_a_finding() -> None:
    raising = "try:\n    import xformers\nexcept ImportError as error:\n    raise RuntimeError from error\n"
    assert rules_of(raising) == ["CUDA002"]
    assert rules_of("try:\n    import xformers\nexcept ValueError:\n    pass\n") == ["CUDA002"]


def test_what_is_left_of_torch_does_not_stop_the_import_of_a_package(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import torch\nfrom torchvision.ops import Foo, Bar as Baz\n\nTABLE = dict(foo=Foo, baz=Baz)\n\n\n"
        "class M(torch.nn.Module):\n    @torch.no_grad()\n    def train(self, mode=True):\n"
        "        self.training = mode\n"
    )
    assert not convert_path([package], tmp_path / "out" / "net", cache=None).complete
    module = UserCode(tmp_path / "out").load(tmp_path / "out/net/__init__.py")
    with pytest.raises(NotImplementedError, match="Baz"):
        module.TABLE["baz"]()


def test_a_method_of_the_tensor_class_as_a_value() -> None:
    assert "TABLE = [relu]" in module_text("TABLE = [torch.Tensor.relu]\n").replace("jax.nn.", "")


@pytest.mark.parametrize(
    ("line", "use", "complete"),
    [
        ("from torchvision import models", "x", True),
        ("import torchvision, timm.layers as L", "x", True),
        ("from torchvision import models", "self.models", True),
        ("from torchvision import models", "models", False),
        ("from torchvision import models", "globals()", False),
        ("from torchvision import models", "[__all__ := ['models']]", False),
        ("from torchvision.models import *", "x", False),
    ],
)
def test_an_import_of_torchs_libraries_without_a_use_goes(
    line: str, use: str, complete: bool
) -> None:
    result = convert(f"{line}\n\n\ndef f(self, x: torch.Tensor):\n    return {use}\n")
    assert result.complete is complete
    assert ("torchvision" in result.code) is not complete
    assert [f.severity for f in result.findings][:1] == ["info" if complete else "error"]


@pytest.mark.parametrize("test", ["not flag", "flag", "flag and n > 1", "x.dim() > 1 and not flag"])
def test_an_argument_that_a_test_asks_is_no_tensor(test: str) -> None:
    source = f"""
class M(nn.Module):
    def forward(self, x, flag=None, n=2):
        if {test}:
            return F.relu(x)
        return x.tanh()
"""
    assert convert(source).complete


def test_a_port_has_no_process_group() -> None:
    source = (
        "import torch.distributed as dist\n\n\ndef shared():\n    return dist.is_initialized() and dist.get_world_size() > 1\n\n\n"
        "def mean(x: torch.Tensor):\n    if not shared():\n        return x\n    dist.all_reduce(x)\n"
        "    return x / dist.get_world_size()\n\n\n"
        "def f(x: torch.Tensor, n=None):\n    n = n if n is not None else dist.get_world_size() if dist.is_initialized() else 1\n"
        "    if dist.is_available() and dist.is_initialized():\n        dist.all_reduce(x)\n"
        "    return mean(x) * n, torch.xpu.is_available()\n"
    )
    result = convert(source)
    assert result.complete, result.findings
    assert {f.rule for f in result.findings} == {"TRC015"}
    names: dict[str, object] = {}
    exec(result.code, names)
    assert names["f"](2.0) == (2.0, False)  # type: ignore[operator]
    assert names["shared"]() is False  # type: ignore[operator]


WORLD = """import torch.distributed as dist


def is_there():
    \"\"\"Whether there is a process group.\"\"\"
    if not dist.is_available():
        return False
    if not dist.is_initialized():
        return False
    return True


def size():
    if is_there():
        return dist.get_world_size()
    else:
        return 1


def rank():
    if not is_there():
        return 0
    return dist.get_rank()


def is_main():
    return rank() == 0


def f(x: torch.Tensor, op=dist.ReduceOp.SUM):
    n = size()
    {line}
    dist.all_reduce(x, op=op)
    return x / n
"""


@pytest.mark.parametrize(
    "line",
    [
        "if n == 1:\n        return x * 2",
        "if size() < 2:\n        return x * 2",
        "if not is_there() or n > 3:\n        return x * 2",
        "if is_main():\n        return x * 2",
    ],
)
def test_the_size_of_no_process_group_is_what_the_file_says(line: str) -> None:
    result = convert(WORLD.format(line=line))
    assert result.complete, result.findings
    names: dict[str, Any] = {}
    exec(result.code, names)
    assert names["f"](2.0) == 4.0
    assert (names["size"](), names["rank"](), names["is_main"]()) == (1, 0, True)


@pytest.mark.parametrize(
    "line",
    [
        "if n > 1:\n        return x * 2",
        "n = n + 1\n    if n == 1:\n        return x * 2",
        "for n in range(3):\n        if n == 1:\n            return x * 2",
        "if n in (1, 2):\n        return x * 2",
    ],
)
def test_a_size_that_may_be_another_is_asked_when_it_runs(line: str) -> None:
    assert "API001" in {f.rule for f in convert(WORLD.format(line=line)).findings if f.blocks}


@pytest.mark.parametrize(
    "around",
    [
        "def shared():\n    return dist.is_initialized()\n\n\nshared = make(shared)\n",
        "def shared():\n    return dist.is_initialized()\n\n\ndef shared():\n    return True\n",
        "@wrap\ndef shared():\n    return dist.is_initialized()\n",
        "def shared(on=True):\n    return on\n",
    ],
)
def test_what_a_function_returns_is_no_fact_where_it_may_be_another(around: str) -> None:
    source = f"import torch.distributed as dist\n\n\n{around}\n\ndef f(x):\n    if shared():\n        x = torch.nope(x)\n    return x\n"
    assert "API001" in rules_of(source)


def test_what_follows_the_branch_that_leaves_is_left_out() -> None:
    source = "def f(x: torch.Tensor):\n    if not torch.jit.is_scripting():\n        return x + 1\n    return torch.nope(x)\n"
    assert body(source, "def f").endswith("    return x + 1\n")
    kept = source.replace("return torch.nope(x)", "yield torch.nope(x)")
    assert rules_of(kept) == ["API001"]


FFT = """try:
    import torch.fft as fft
except ImportError:
    fft = None

if fft is None:
    def spectrum(x: torch.Tensor):
        return torch.rfft(x, 1)
else:
    def spectrum(x: torch.Tensor):
        return fft.rfft(x).real

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x if fft is None else spectrum(x) if fft is not None else x)[:, :3]
"""


def test_a_module_of_torch_that_older_ones_had_not_is_there() -> None:
    source = FFT.replace("spectrum(x) if", "F.pad(spectrum(x), (0, 1)) if")
    code = check(source)
    assert "fft is" not in code
    assert "torch.rfft" not in code
    assert rules_of(source + "\nfft = choose(fft)\n")

"""What published packages do around their models, and who else sees a write to an argument."""

from __future__ import annotations

import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import body, check, convert, loaded, rules_of

HEAD = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"


def test_a_checkpoint_is_not_loaded_but_the_model_is_built() -> None:
    source = (
        HEAD + "        self.l = nn.Linear(2, 2)\n\n\n"
        "def build(pretrained: bool = False):\n    m = M()\n    if pretrained:\n"
        "        state = torch.hub.load_state_dict_from_url('x')\n        m.load_state_dict(state)\n"
        "    return m\n"
    )
    result = convert(source)
    assert result.complete
    assert [f.severity for f in result.findings] == ["warning", "warning"]
    assert result.code.count("raise NotImplementedError(") == 2


@pytest.mark.parametrize(
    "head", ["import torch.utils.model_zoo as zoo\n", "from torch.utils import model_zoo as zoo\n"]
)
def test_the_model_zoo_is_a_module_whose_checkpoint_is_not_loaded(head: str) -> None:
    result = convert(
        head + HEAD + "        self.l = nn.Linear(2, 2)\n\n\n"
        "def build(pretrained: bool = False):\n    m = M()\n    if pretrained:\n"
        "        state = zoo.load_url('x', model_dir='.')\n        m.load_state_dict(state)\n"
        "    return m\n"
    )
    assert result.complete
    assert "torch.utils" not in result.code


def test_reading_old_checkpoints_and_signatures_for_torchscript_go() -> None:
    made = body(
        HEAD + "\n    def _load_from_state_dict(self, state, prefix, *args):\n        pass\n\n"
        "    @torch.jit._overload_method\n    def forward(self, x):\n        pass\n\n"
        "    def forward(self, x):\n        return x.size(0)\n",
        "class M",
    )
    assert "_load_from_state_dict" not in made
    assert made.count("def __call__") == 1


def test_marks_go_and_torchs_assert_is_one() -> None:
    source = 'torch.fx.wrap("f")\n\n\ndef f(x: torch.Tensor):\n    torch._assert(\n        x.dim() == 3,\n        "three "\n        f"axes, not {x.dim()}",\n    )\n    return x\n'
    made = convert(source)
    assert made.complete
    assert "fx" not in made.code
    assert "assert x.ndim == 3, (" in made.code
    value = convert("def f(x: torch.Tensor):\n    torch._assert(x.sum() > 0, 'x')\n    return x\n")
    assert [(f.rule, f.line) for f in value.findings] == [("TRC011", 7)]


def test_a_sequential_gets_children_by_assignment() -> None:
    source = (
        "class T(nn.Sequential):\n    def __init__(self, n: int):\n        super().__init__()\n"
        "        self.norm = nn.LayerNorm(n)\n        self.act = nn.ReLU()\n        self.fc = nn.Linear(n, 2)\n"
    )
    scope: dict = {"torch": torch, "nn": torch.nn}
    exec(source, scope)
    theirs = scope["T"](3)
    result = convert(source)
    assert result.complete, result.findings
    exec(result.code, scope)
    ours = scope["T"](3, rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(4, 3)
    torch.testing.assert_close(torch.tensor(ours(x.numpy()).tolist()), theirs(x).detach())


def test_builders_of_modules_may_look_at_values() -> None:
    source = (
        HEAD + "        self.l = nn.Linear(2, 2)\n\n\ndef sizes(n: int):\n"
        "    return torch.linspace(0, 1, n).tolist()\n\n\ndef build():\n    s = sizes(3)\n    return M()\n"
    )
    assert rules_of(source) == []
    assert rules_of("def sizes(n: int):\n    return torch.linspace(0, 1, n).tolist()\n") == [
        "DYN004"
    ]


# --- writes to arguments -----------------------------------------------------------------------------------------

WRITER = "def g(y: torch.Tensor):\n    y.mul_(2)\n    return y.sum()\n\n\n"
BACK = "def g(y: torch.Tensor, z):\n    y += z\n    return y\n\n\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(
            WRITER + "def f(x: torch.Tensor):\n    s = g(x.view(-1))\n    return s * x\n",
            ["MUT003"],
            id="through a view",
        ),
        pytest.param(
            WRITER + "def h(a: torch.Tensor):\n    return g(a)\n\n\n"
            "def f(x: torch.Tensor):\n    s = h(x)\n    return s * x\n",
            ["MUT003"],
            id="through a function in between",
        ),
        pytest.param(
            WRITER + "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.register_buffer('b', torch.zeros(3))\n\n    def forward(self, x):\n"
            "        return x + g(self.b)\n",
            ["MUT003"],
            id="of an attribute",
        ),
        pytest.param(
            WRITER + "x = torch.zeros(3)\ns = g(x)\nprint(x)\n", ["MUT003"], id="at the top"
        ),
        pytest.param(
            WRITER + "def f(x: torch.Tensor):\n    return g(x + 1) * x\n", [], id="of a new tensor"
        ),
        pytest.param(
            "def g(a: torch.Tensor, b: torch.Tensor):\n    a += 1\n    b += 1\n    return a\n\n\n"
            "def f(x: torch.Tensor, y: torch.Tensor):\n    x = x * 2\n    y = y * 2\n"
            "    g(b=x, a=y)\n    return x + y\n",
            ["MUT003"],
            id="by keywords in another order",
        ),
        pytest.param(
            BACK + "def f(x: torch.Tensor):\n    x = x * 2\n    g(x, 1.0)\n    return x\n",
            [],
            id="taken back",
        ),
        pytest.param(
            BACK + "def f(x: torch.Tensor):\n    x = x * 2\n    y = g(x, 1.0)\n    return x + y\n",
            ["MUT003"],
            id="taken back under another name",
        ),
    ],
)
def test_who_sees_a_write_to_an_argument(source: str, expected: list[str]) -> None:
    assert sorted(set(rules_of(source))) == expected


def test_a_result_that_is_taken_back() -> None:
    made = body(
        BACK + "def f(x: torch.Tensor):\n    x = x * 2\n    g(x, 1.0)\n    return x\n", "def f"
    )
    assert "    x = g(x, 1.0)\n" in made


def test_a_sequential_with_a_layer_that_copies_gives_a_new_tensor() -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self, make):\n        super().__init__()\n"
        "        self.a = nn.Sequential(make(3), nn.BatchNorm2d(3), nn.ReLU(inplace=True))\n\n"
        "    def forward(self, x):\n        y = self.a(x)\n        y += x\n        return y\n"
    )
    assert [r for r in rules_of(source) if r.startswith("MUT")] == []


LAYERS = """
class A(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class B(nn.LayerNorm):
    def forward(self, x):
        y = F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps)
        return y.permute(0, 3, 1, 2)


class L(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight, self.bias) * self.in_features


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = A(4)
        self.b = B(4, eps=1e-2)
        self.l = L(4, 3)

    def forward(self, x):
        return self.l(self.b(self.a(x * 1e-3)).mean((2, 3)))
"""


def test_a_class_that_derives_from_a_layer_takes_torchs_arguments() -> None:
    result = convert(LAYERS)
    assert result.complete, result.findings
    scope: dict = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(LAYERS, scope)
    theirs = scope["M"]()
    exec(result.code, scope)
    ours = scope["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(2, 4, 3, 3)
    torch.testing.assert_close(torch.tensor(ours(x.numpy()).tolist()), theirs(x).detach())


def test_an_argument_that_flax_keeps_under_another_name() -> None:
    source = (
        "class A(nn.Dropout):\n    def __init__(self):\n        super().__init__(0.1)\n\n"
        "    def forward(self, x):\n        return self.p * super().forward(x)\n"
    )
    assert "self.rate * super().__call__(x)" in convert(source).code
    source = source.replace("self.p *", "self.inplace *")
    assert rules_of(source) == ["API001"]


def test_a_class_with_the_name_of_the_layer_it_derives_from() -> None:
    source = "class Conv2d(nn.Conv2d):\n    def forward(self, x):\n        return super().forward(x) * 2\n"
    result = convert(source)
    assert result.complete
    scope: dict = {}
    exec(result.code, scope)
    assert scope["Conv2d"](1, 2, 3, rngs=nnx.Rngs(0))(torch.ones(1, 1, 3, 3).numpy()).shape == (
        1,
        2,
        1,
        1,
    )


def test_a_function_that_hands_a_loaded_file_to_a_module_raises() -> None:
    head = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    head += "        self.fc = nn.Linear(2, 2)\n\n"
    load = "    def load(self, path):\n        state = torch.load(path, map_location='cpu')\n"
    result = convert(head + load + "        self.load_state_dict(state['model'])\n")
    assert result.complete, result.findings
    assert "torch.load" not in result.code
    assert "raise NotImplementedError" in result.code
    assert {f.rule for f in result.findings} == {"API001"}
    assert not convert(head + load + "        return state\n").complete
    built = "        self.fc.load_state_dict(torch.load('fc.pt'))\n"
    assert not convert(head.rstrip("\n") + "\n" + built).complete


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return x.view(x.size(0), -1)", "return x.reshape(x.shape[0], -1)"),
        ("return x.unsqueeze(0).numel()", "return x[None].size"),
        ("x.mul_(s)\n    return x", "x = x * s\n    return x"),
        ("return x.max(1)", "return x.max(1)"),
        ("return x.size() + s.dim()", "return x.size() + s.dim()"),
        ("return x.view(int)", "return x.view(int)"),
    ],
)
def test_a_text_that_never_says_torch_may_ask_what_only_tensors_answer(
    text: str, expected: str
) -> None:
    """What it asks for decides: objects of other kinds have sizes and maxima too."""
    result = migrator.convert_source(f"def f(x, s):\n    {text}\n")
    assert result.complete, result.findings
    assert result.code == f"def f(x, s):\n    {expected}\n"
    assert migrator.convert_source(result.code) == migrator.convert.ConvertResult(result.code)


def test_a_walk_over_parameters_never_says_torch() -> None:
    source = "def count(model):\n    return sum(p.numel() for p in model.parameters())\n"
    first = migrator.convert_source(source)
    assert first.complete
    assert "def parameters(module)" in first.code
    assert "\n\n\ndef count(model):\n" in first.code


LOADS = """
class M(nn.Module):
    def __init__(self, path=None, pretrained=True, kind="a"):
        super().__init__()
        self.l = nn.Linear(2, 2)
        {init}


def build(path, pretrained=False):
    m = M()
    {build}
    return m
"""
LOAD = "load_state_dict(torch.load(path))"


@pytest.mark.parametrize(
    ("init", "build", "complete"),
    [
        ("if pretrained: self." + LOAD, "pass", False),
        ("if path is None: self." + LOAD, "pass", False),
        (
            "if not pretrained:\n            pass\n        else:\n            self." + LOAD,
            "pass",
            False,
        ),
        ("if pretrained and kind == 'a': self." + LOAD, "pass", False),
        ("pass", "m." + LOAD, False),
        ("pass", "if not pretrained: m." + LOAD, False),
        ("if path: self." + LOAD, "pass", True),
        ("if path is not None: self." + LOAD, "pass", True),
        ("if kind == 'b': self." + LOAD, "pass", True),
        ("if pretrained and kind == 'b': self." + LOAD, "pass", True),
        ("pass", "if pretrained: m." + LOAD, True),
        ("pass", "if path: m." + LOAD, True),
    ],
)
def test_a_checkpoint_that_is_read_by_default_is_a_finding(
    init: str, build: str, complete: bool
) -> None:
    """The port raises there; where nobody asked for it, a model could not even be built."""
    result = convert(LOADS.format(init=init, build=build))
    assert result.complete is complete
    assert {f.rule for f in result.findings} == {"API001"}


@pytest.mark.parametrize(
    ("call", "complete"),
    [
        ('importlib.import_module("torch.fft")', False),
        ('optional_import("einops.layers.torch", name="Rearrange")', False),
        ('__import__("torchvision")', False),
        ('importlib.import_module("json")', True),
        ('optional_import("torch is what this needs")', True),
        ('find("torch")', True),
    ],
)
def test_an_import_by_name(call: str, complete: bool) -> None:
    source = (
        "import importlib\n\n\ndef optional_import(name, **options):\n"
        "    return importlib.import_module(name)\n\n\n"
        f"def find(name):\n    return name\n\n\nfound = {call}\n\n\n"
        "def f(x: torch.Tensor):\n    return x + 1\n"
    )
    assert convert(source).complete == complete


@pytest.mark.parametrize(
    ("line", "complete"),
    [
        ("self.act = act", True),
        ("self.width = factor * 2", True),
        ("self.some = [sizes] if factor else (sizes, sizes)", True),
        ("self.other = other", False),
        ("self.other = None if factor else other", False),
        ("act = make(act)\n        self.act = act", False),
        ("self.hinted = hinted", False),
    ],
)
def test_what_is_surely_no_module_is_no_child_of_a_sequential(line: str, complete: bool) -> None:
    source = (
        "from typing import Any, Callable, Sequence\n\n\n"
        "class M(nn.Sequential):\n"
        "    def __init__(self, act: tuple | str | None, other, hinted: Any, factor, sizes: Sequence[int], make):\n"
        "        super().__init__()\n"
        f"        {line}\n"
        "        self.add_module('a', nn.Linear(4, 4))\n"
    )
    result = convert(source)
    assert result.complete == complete, result.findings
    if complete:
        ours: dict = {}
        exec(result.code, ours)
        port = ours["M"]("relu", None, None, 3, [1, 2], None, rngs=nnx.Rngs(0))
        assert port(torch.ones(2, 4).numpy()).shape == (2, 4)
        assert set(migrator.to_state_dict(port)) == {"a.weight", "a.bias"}


LOADERS = """
class M(nn.Module):
    def __init__(self, width: int = 4):
        super().__init__()
        self.l = nn.Linear(4, width)
        {init}

    def forward(self, x):
        return self.l(x)

    {decorator}
    def {name}(cls, kind):
        from transformers import GPT2LMHeadModel
        theirs = GPT2LMHeadModel.from_pretrained(kind).state_dict()
        model = M()
        with torch.no_grad():
            for key, value in model.state_dict().items():
                value.copy_(theirs[key])
        return model


def build_model({params}):
    model = M(width=state_dict["l.weight"].shape[0])
    {load}
    return model.eval()
"""
LOADER = {
    "init": "pass",
    "decorator": "@classmethod",
    "name": "from_pretrained",
    "params": "state_dict: dict",
    "load": "model.load_state_dict(state_dict)",
}


def test_what_only_loads_weights_of_torch_raises() -> None:
    source = LOADERS.format(**LOADER)
    check(source)
    _, ours, code = loaded(source)
    assert "transformers" not in code
    for load in (ours["M"].from_pretrained, ours["build_model"]):
        with pytest.raises(NotImplementedError, match="convert its weights"):
            load({}, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    "other",
    [
        {"name": "made_of"},
        {"decorator": ""},
        {"init": "self.again = M.from_pretrained('gpt2') if width > 9 else None"},
        {"params": "state_dict=None"},
    ],
)
def test_what_may_do_more_than_load_weights_is_a_finding(other: dict[str, str]) -> None:
    assert rules_of(LOADERS.format(**{**LOADER, **other}))

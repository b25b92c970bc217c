"""What a program asks layers, parameters and containers for: by names, by their classes, by their truth."""

from __future__ import annotations

import pytest
import torch

from rules.torch_names import has
from tests.convert.tools import check, convert, rules_of

LAYERS = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.n = nn.LayerNorm(4)
        self.c = nn.Conv1d(4, 4, 1, bias=False)
        self.act = nn.ReLU()
        self.q = nn.Sequential()
        self.ts = [torch.ones(4), torch.zeros(4)]
        self.d = {{"a": torch.ones(4)}}
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        {line}
        return self.fc(x)
"""


@pytest.mark.parametrize(
    "line",
    [
        'x = x * 2 if hasattr(self.fc, "weight") else x',
        'x = x * 2 if hasattr(self.n, "scale") else x',
        'x = x * 2 if hasattr(self.fc, "kernel") else x',
        'x = x * 2 if hasattr(self.c, "bias") and self.c.bias is None else x',
        'x = x * getattr(self.n, "epsilon", 7.0)',
        'x = x * getattr(self.fc, "weight", None).sum()',
        'x = x * 2 if getattr(self.n, "weight", None) is not None else x',
        'x = x @ getattr(self.fc, "weight") + getattr(self.n, "bias")',
        'x = x * sum(getattr(self.fc, n).sum() for n in ["weight", "bias"])',
        'x = x * 2 if hasattr(self.act, "inplace") and hasattr(self.act, "forward") else x',
        'f = getattr(self.fc, "forward", None); x = f(x) if f else x',
        "x = x * 2 if isinstance(self.w, nn.Parameter) else x",
        "x = x * 2 if isinstance(self.fc.weight, nn.Parameter) else x",
        "x = x * 2 if isinstance(self.ts, list) and isinstance(self.d, dict) else x",
        "x = x * 2 if isinstance(self.ts, (tuple, dict)) else x",
        'x = x * 2 if hasattr(self, "forward") and hasattr(self.act, "parameters") else x',
        "x = x * 2 if not self.q else x",
        "x = x if self.q and x.ndim else x * 3",
        'x = x * 2 if type(self.act).__name__ == "ReLU" else x',
        'x = x * 2 if self.n.__class__.__name__ == "LayerNorm" else x',
        "x = torch.stack(self.ts + [x[0]]).sum(0) + torch.stack([x[0]] + self.ts).sum(0)",
        "x = torch.stack(self.ts * 2).sum(0) + torch.stack(self.ts.copy()).sum(0)",
        'x = x + self.d.get("a", x) + self.d.get("b", x)',
    ],
)
def test_the_answer_is_torchs(line: str) -> None:
    check(LAYERS.format(line=line))


def test_of_any_layer_it_is_asked_at_run_time() -> None:
    check(
        """NAMES = ["Linear", "LayerNorm", "ReLU", "GELU", "Identity", "Conv1d", "Dropout"]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU(), nn.GELU(), nn.Identity()]
        self.s = nn.ModuleList([*layers, nn.Conv1d(4, 4, 1), nn.Dropout(0.1)])
        self.hits = [type(m).__name__ == k for m, k in zip(self.s, NAMES)]

    def forward(self, x):
        return self.s[0](x) * sum(2**i for i, h in enumerate(self.hits) if h)
"""
    )


def test_a_layer_by_a_name_that_is_made_up() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 4)
        for i in (1, 2):
            nn.init.constant_(getattr(getattr(self, f"fc{i}"), "weight"), i * 0.25)

    def forward(self, x):
        for i in (1, 2):
            layer = getattr(self, "fc%d" % i)
            x = F.linear(x, layer.weight, layer.bias)
        return x
"""
    )


def test_a_weight_is_set_by_its_name() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        setattr(self.fc, "weight", nn.Parameter(torch.ones(4, 4)))

    def forward(self, x):
        return self.fc(x)
"""
    )


def test_an_argument_may_be_a_parameter_or_not() -> None:
    source = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def norm(self, w):
        return w * 2 if isinstance(w, nn.Parameter) else w

    def forward(self, x):
        return self.norm(self.fc.weight) + self.norm(x)
"""
    assert rules_of(source) == ["API005"]


@pytest.mark.parametrize(
    "build", ["self.a.__class__(4, 4, bias=False)", "type(self.a)(4, 4, True)"]
)
def test_a_layer_builds_another_of_its_class(build: str) -> None:
    check(
        f"""class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.c = {build}

    def forward(self, x):
        return self.c(self.a(x))
"""
    )


@pytest.mark.parametrize("bias", ["None", "b"])
def test_a_linear_layer_without_a_bias_by_none(bias: str) -> None:
    code = check(
        f"""class M(nn.Module):
    def __init__(self, b=None):
        super().__init__()
        self.a = nn.Linear(4, 4, bias={bias})

    def forward(self, x):
        return self.a(x)
"""
    )
    assert "use_bias=None" not in code


@pytest.mark.parametrize(
    ("base", "name"),
    [("LayerNorm(4)", "scale"), ("Linear(4, 4)", "kernel"), ("LayerNorm(4)", "epsilon")],
)
def test_names_that_the_layer_itself_goes_by_in_flax(base: str, name: str) -> None:
    layer, _, given = base.partition("(")
    derived = f"""class M(nn.{layer}):
    def __init__(self):
        super().__init__({given}
        self.{name} = 3.0

    def forward(self, x):
        return super().forward(x) * self.{name}
"""
    assert rules_of(derived) == ["API005"]
    outside = f"""class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.{base}
        self.n.{name} = 2.0

    def forward(self, x):
        return self.n(x)
"""
    assert "API005" in rules_of(outside)


@pytest.mark.parametrize(
    "line", ['self.__dict__["teacher"] = net', 'object.__setattr__(self, "teacher", net)']
)
def test_a_module_that_is_hidden_from_its_parent(line: str) -> None:
    source = f"""class M(nn.Module):
    def __init__(self):
        super().__init__()
        net = nn.Linear(4, 4)
        {line}

    def forward(self, x):
        return x
"""
    assert rules_of(source) == ["API008"]


@pytest.mark.parametrize(
    "line", ["skip = set(self.a.parameters())", "skip = {x, x}", 'skip = {x: "a"}']
)
def test_tensors_as_members_and_keys(line: str) -> None:
    source = f"""class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor):
        {line}
        return self.a(x), skip
"""
    assert rules_of(source) == ["API005"]


def test_what_layers_have_is_known() -> None:
    """Against instances of every layer that is built without arguments, and of some others."""
    built = []
    for name in dir(torch.nn):
        layer = getattr(torch.nn, name)
        if isinstance(layer, type) and issubclass(layer, torch.nn.Module):
            try:
                built.append((name, layer()))
            except TypeError:
                pass
    for name, args in {
        "Linear": (2, 2),
        "Conv2d": (2, 2, 1),
        "LayerNorm": (2,),
        "Embedding": (2, 2),
        "BatchNorm1d": (2,),
        "MultiheadAttention": (2, 1),
        "LSTM": (2, 2),
    }.items():
        built.append((name, getattr(torch.nn, name)(*args)))
    assert len(built) > 60
    for name, module in built:
        names = {*vars(module), *module._parameters, *module._buffers}
        names = {one for one in names if not one.startswith("_")}
        wrong = [one for one in names if has(f"torch.nn.{name}", one) is False]
        assert wrong == [], (name, wrong)
        assert has(f"torch.nn.{name}", "no_such_attribute") is False


def test_torchs_own_call_goes() -> None:
    code = check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def __call__(self, x):
        return super().__call__(x)

    def extra_repr(self):
        return super().extra_repr() + "more"

    def forward(self, x):
        return self.fc(x)
"""
    )
    assert code.count("def __call__") == 1


def test_anomaly_detection_goes() -> None:
    assert convert("torch.autograd.set_detect_anomaly(False)\n").complete


def test_a_layer_by_a_made_up_name_that_may_be_missing() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 4)

    def forward(self, x):
        for i in (1, 2):
            layer = getattr(self, f"fc{i}", None)
            x = layer(x) if layer is not None else x * 2
        return x
"""
    )


@pytest.mark.parametrize("asked", ["self.m", "self.m.forward", "getattr(self.m, 'forward', None)"])
@pytest.mark.parametrize("made", ["nn.ModuleList([nn.Tanh()])", "nn.Tanh()", "Own(4)"])
def test_every_module_can_be_called(asked: str, made: str) -> None:
    source = "class Own(nn.LayerNorm):\n    def forward(self, x):\n        return x\n\n\n"
    source += f"class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.m = {made}\n\n"
    source += f"    def forward(self, x):\n        return x * 2 if callable({asked}) else x\n"
    check(source)

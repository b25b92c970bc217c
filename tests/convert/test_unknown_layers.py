"""``def init_weights(m)`` that goes by the name of the class: what layer ``m`` is, only a run tells."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import check, convert, loaded, rules_of

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 2)
        self.table = nn.Embedding(5, 2)
        self.act = nn.ReLU()
        self.apply(start)

    def forward(self, x):
        return self.fc(self.bn(self.conv(x)).mean((2, 3))) + self.table(x.long()[:, 0, 0, 0])
"""

BODIES = {
    "by its class's name": """
    name = m.__class__.__name__
    if name.find("Linear") != -1:
        m.weight.data = torch.full((m.weight.size(0), m.weight.size(1)), 0.5) / m.weight.shape[1]
        m.bias.data.fill_(0)
    elif name == "Conv2d":
        m.weight.data = torch.ones_like(m.weight.data) * m.weight.data.numel()
        m.bias.data = torch.arange(m.bias.data.shape[0]).float()
    elif "Embedding" in name:
        m.weight.data.fill_(2)
""",
    "by its type's name": """
    if type(m).__name__ in ("Linear", "Conv2d", "Embedding"):
        w = m.weight.size(1)
        m.weight.data.fill_(w)
        if hasattr(m, "bias") and m.bias is not None:
            nn.init.constant_(m.bias, w + 1)
""",
    "by its weight": """
    if hasattr(m, "weight") and m.weight is not None:
        m.weight.data.fill_(0.25)
        if m.weight.dim() > 1:
            m.weight.data.copy_(torch.arange(m.weight.numel()).view(m.weight.shape))
        if hasattr(m, "bias"):
            nn.init.zeros_(m.bias)
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_layers_start_as_in_torch(name: str) -> None:
    theirs, ours, _ = loaded(f"def start(m):{BODIES[name]}\n{MODEL}")
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    pairs = [
        (model.fc.weight, port.fc.kernel[...].T),
        (model.fc.bias, port.fc.bias[...]),
        (model.conv.weight, port.conv.weight[...]),
        (model.conv.bias, port.conv.bias[...]),
        (model.table.weight, port.table.embedding[...]),
        (model.bn.weight, port.bn.weight[...]),
    ]
    with torch.no_grad():
        for mine, other in pairs:
            np.testing.assert_allclose(mine.numpy(), np.asarray(other))


def test_the_name_of_the_present_value_is_free() -> None:
    source = """
    def start(m: nn.Module):
        w = m.weight.size(1)
        m.weight.data.fill_(w)
    """
    assert "lambda old: jnp.full_like(old, w)" in convert(source).code


def test_in_a_constructor() -> None:
    theirs, ours, _ = loaded("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.other = nn.Linear(4, 2)
        for name, m in self.named_modules():
            if name == "fc" and hasattr(m, "weight"):
                m.weight.data = torch.ones_like(m.weight) * m.weight.size(1)
                m.bias.data = torch.zeros_like(m.bias.data)
""")
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(model.fc.weight.detach().numpy().T, port.fc.kernel[...])
    np.testing.assert_array_equal(model.fc.bias.detach().numpy(), port.fc.bias[...])


def test_a_forward_pass_that_writes_a_weight_leaves_it_its_gradient() -> None:
    theirs, ours, _ = loaded("""
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.utils.weight_norm(nn.Linear(4, 3, bias=False))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.prototypes = nn.Linear(4, 3, bias=False)

    def forward(self, x):
        with torch.no_grad():
            w = self.prototypes.weight.data.clone()
            self.prototypes.weight.copy_(w / w.norm(dim=1, keepdim=True))
        return self.prototypes(x)
""")
    torch.manual_seed(0)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    port.prototypes.kernel[...] = model.prototypes.weight.detach().numpy().T
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    model(x).square().sum().backward()
    grads = nnx.grad(lambda m: (m(x.numpy()) ** 2).sum())(port)
    want = model.prototypes.weight.grad.numpy().T
    np.testing.assert_allclose(grads["prototypes"]["kernel"][...], want, rtol=1e-5)


def test_a_class_is_called_as_in_torch() -> None:
    theirs, ours, _ = loaded("""
def name(m: nn.Module):
    return m.__class__.__name__ if m.__class__.__name__ != "Sequential" else "a " + type(m).__name__


class M(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(1, 1, 1, padding_mode="reflect"), nn.LayerNorm((2, 2)), nn.Embedding(2, 2)]
        self.layers = nn.ModuleList(layers)
        self.named = nn.Sequential()
        self.named.add_module("fc", nn.Linear(2, 2))
        self.names = [name(m) for m in self.layers] + [name(self.layers), name(self.named)]
""")
    assert theirs["M"]().names == ours["M"](rngs=nnx.Rngs(0)).names


def test_a_layer_of_which_its_function_says_little_has_a_weight() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(5, 4)
        self.fc = nn.Linear(4, 4)
        self.apply(self._init)

    def _init(self, m):
        if hasattr(m, "weight"):
            nn.init.constant_(m.weight, 0.2)
        if isinstance(m, nn.Linear):
            m.reset_parameters()

    def forward(self, x):
        return self.fc(x) + self.emb.weight.sum()
"""
    _, ours, _ = loaded(source)
    state = migrator.to_state_dict(ours["M"](rngs=nnx.Rngs(0)))
    np.testing.assert_allclose(state["emb.weight"], 0.2)
    assert len(np.unique(state["fc.weight"])) > 1


ELSEWHERE = """
def rows(layer):
    w = layer.weight
    return w / w.norm(dim=1, keepdim=True)


def sizes(model):
    return [one.weight.shape[0] for one in (model.fc, model.table)], model.fc.weight.size(1)


def tied(x, layer):
    return x @ layer.weight.t() + layer.weight[0].sum()


def shown(model, name):
    layer = getattr(model, name)
    return layer.weight.data * 2 + layer.bias.data[0]


class Adapter(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.ones(rank, base.weight.shape[1]))

    def forward(self, x):
        return F.linear(x, self.base.weight * 2, self.base.bias) + (x @ self.a.T).sum()
"""


def test_a_layer_that_another_file_hands_over() -> None:
    """Nothing in the file tells of the argument; its weight lies as in torch."""
    source = f"def start(m):\n    pass\n{MODEL}{ELSEWHERE}"
    theirs, ours, _ = loaded(source)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    x = torch.randn(5, 4)
    y = torch.randn(5, 2)
    given = x.numpy(), y.numpy()
    pairs = [
        (theirs["rows"](model.fc), ours["rows"](port.fc)),
        (theirs["rows"](model.table), ours["rows"](port.table)),
        (theirs["tied"](x, model.fc), ours["tied"](given[0], port.fc)),
        (theirs["tied"](y, model.table), ours["tied"](given[1], port.table)),
        (theirs["shown"](model, "fc"), ours["shown"](port, "fc")),
    ]
    outer = theirs["Adapter"](model.fc), ours["Adapter"](port.fc, rngs=nnx.Rngs(0))
    pairs.append((outer[0](x), outer[1](given[0])))
    for want, got in pairs:
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert theirs["sizes"](model) == ours["sizes"](port)


@pytest.mark.parametrize("line", ["m.weight[:2] = 0", "m.weight *= 2", "m.weight.data += 1"])
def test_parts_of_a_weight_that_is_not_known(line: str) -> None:
    assert rules_of(f"def scale(m):\n    {line}\n") == ["MUT002"]


@pytest.mark.parametrize("name", ["cfg", "args"])
def test_settings_have_a_weight_of_their_own(name: str) -> None:
    assert "weight_of" not in convert(f"def f({name}, x):\n    return x * {name}.weight\n").code


def test_data_of_another_shape() -> None:
    """A layer of which another class may stand there is cut to some of its rows."""
    source = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 10)

    def forward(self, x):
        return self.head(x)


class M(nn.Module):
    def __init__(self, plain=False):
        super().__init__()
        self.part = Part()
        if plain:
            self.part.head = nn.Identity()
        else:
            self.part.head.weight.data = self.part.head.weight.data[:5]
            self.part.head.bias.data = self.part.head.bias.data[:5]

    def forward(self, x):
        return self.part(x)
"""
    code = check(source)
    assert "initialize(" in code


GIVEN = """
def start(fc, w):
    fc.weight.data.copy_(w)


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.table = nn.Embedding(4, 4)
        self.tied = True

    def forward(self, x):
        return self.fc(x)


class Kept(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w


class M(nn.Module):
    def __init__(self, other{default}):
        super().__init__()
        self.given = other
        self.fc = nn.Linear(4, 4)
        {line}

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize("default", ["", "=None"])
@pytest.mark.parametrize(
    "line",
    [
        "self.fc.weight.data.copy_(self.given.fc.weight)",
        "self.fc.weight.data.zero_().add_(other.fc.weight)",
        "self.fc.weight.data.copy_(0.5 * torch.cat([self.given.fc.weight[:1], other.fc.weight.data[1:]], dim=0))",
        "self.fc.weight.data.copy_(other.table.weight if other.tied else other.fc.weight)",
        "w = other.fc.weight\n        self.fc.weight.data.copy_(w)",
        "with torch.no_grad():\n            self.fc.weight.copy_(torch.stack((other.fc.weight, other.table.weight)).sum(0))",
    ],
)
def test_values_of_the_weights_of_what_a_constructor_is_given(line: str, default: str) -> None:
    theirs, ours, _ = loaded(GIVEN.format(line=line, default=default))
    given, port = theirs["Other"](), ours["Other"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, given.state_dict())
    made = migrator.to_state_dict(ours["M"](port, rngs=nnx.Rngs(1)))
    np.testing.assert_allclose(made["fc.weight"], theirs["M"](given).fc.weight.detach(), rtol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "self.w = other.fc.weight",
        "self.w = nn.Parameter(other.fc.weight)",
        "self.w = nn.Parameter(self.given.fc.weight.data)",
        "self.fc.weight.data = other.fc.weight.data",
        "self.all = [other.fc.weight]",
        "start(self.fc, other.fc.weight)",
        "self.kept = {'w': other.fc.weight}",
        "w = other.fc.weight\n        self.w = w",
        "self.register_parameter('w', other.fc.weight)",
        "self.register_buffer('w', other.fc.weight.data)",
        "self.kept = Kept(other.fc.weight)",
    ],
)
def test_a_weight_of_what_a_constructor_is_given_is_not_kept_itself(line: str) -> None:
    assert rules_of(GIVEN.format(line=line, default="")) == ["API006"]


@pytest.mark.parametrize("name", ["args", "model_config"])
def test_settings_may_keep_a_weight(name: str) -> None:
    line = f"class S(nn.Module):\n    def __init__(self, {name}):\n        super().__init__()\n"
    assert not rules_of(f"{line}        self.w = {name}.weight\n")

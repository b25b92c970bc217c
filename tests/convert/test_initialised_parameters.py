"""Parameters that are initialised where they are made stay parameters; of what else is made of one torch keeps some."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, convert, loaded, rules_of, same

HEAD = """\
from torch.nn.init import xavier_uniform_


def given_back(w):
    nn.init.normal_(w)
    return w


def filled(w, std=0.1):
    with torch.no_grad():
        return w.normal_(0, std)


def made(n):
    return nn.init.normal_(nn.Parameter(torch.empty(n, 1)), 0, 0.1)


class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        {line}

    def own(self, w):
        nn.init.uniform_(w)
        return w

    def forward(self, x):
        return x @ self.w
"""
KEPT = [
    "self.w = nn.init.xavier_uniform_(nn.Parameter(torch.empty(n, 1)))",
    "self.w = xavier_uniform_(nn.Parameter(data=torch.empty(n, 1)))",
    "self.w = torch.nn.init.normal_(tensor=torch.nn.Parameter(torch.empty(n, 1)), std=0.2)",
    "self.w = nn.init.ones_(nn.Parameter(torch.empty(n, 1), requires_grad=False))",
    'self.register_parameter("w", nn.init.zeros_(nn.Parameter(torch.empty(n, 1))))',
    'setattr(self, "w", nn.init.normal_(nn.Parameter(torch.empty(n, 1))))',
    "self.w = nn.init.constant_(nn.Parameter(torch.empty(n, 1)), 0.5).requires_grad_(True)",
    "self.w = given_back(nn.Parameter(torch.empty(n, 1)))",
    "self.w = filled(nn.Parameter(torch.empty(n, 1)), std=0.5)",
    "self.w = self.own(nn.Parameter(torch.empty(n, 1)))",
    "self.w = made(n)",
    "self.w = nn.Parameter(torch.randn(n, 1)).contiguous()",
]


@pytest.mark.parametrize("line", KEPT)
def test_they_are_parameters(line: str) -> None:
    theirs, ours, _ = loaded(HEAD.format(line=line))
    model = theirs["M"]()
    takes = "rngs" in ours["M"].__init__.__annotations__
    port = ours["M"](**({"rngs": nnx.Rngs(0)} if takes else {}))
    assert set(migrator.to_state_dict(port)) == {"w"} == set(model.state_dict())
    migrator.load_state_dict(port, model.state_dict())
    same(model, port, X.numpy())


@pytest.mark.parametrize(
    "line",
    [
        "self.w = nn.Parameter(torch.randn(n, 1)).float()",
        "self.w = nn.Parameter(torch.randn(n, 1)).to(torch.float32)",
        "self.w = nn.Parameter(torch.randn(n, 1)).detach()",
        "self.w = nn.Parameter(torch.randn(n, 1)).contiguous().double()",
        "self.w = nn.Parameter(torch.randn(n, 1), requires_grad=False).mul_(2)",
        "self.w = torch.abs_(nn.Parameter(torch.randn(n, 1), requires_grad=False))",
        "self.w = (lambda w: w)(nn.Parameter(torch.randn(n, 1)))",
    ],
)
def test_what_may_be_the_parameter_or_not_is_said(line: str) -> None:
    assert "API009" in rules_of(HEAD.format(line=line))


def test_of_a_function_in_a_name_of_torchs_only_its_own_lines_tell() -> None:
    source = HEAD.replace("def made(n)", "def zeros_(w):\n    return w * 0\n\n\ndef made(n)")
    theirs, ours, _ = loaded(source.format(line="self.w = zeros_(nn.Parameter(torch.ones(n, 1)))"))
    assert "w" not in dict(theirs["M"]().named_parameters())
    assert not isinstance(ours["M"](rngs=nnx.Rngs(0)).w, nnx.Param)


def test_a_name_for_a_weight_that_is_initialised() -> None:
    theirs, ours, _ = loaded("""\
def branch_init(conv, branches):
    weight = conv.weight
    n = weight.size(0) * weight.size(1)
    nn.init.constant_(weight, 1.0 / (n * branches))
    nn.init.constant_(conv.bias, 0)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(4, 2)
        branch_init(self.conv, 3)

    def forward(self, x):
        return self.conv(x)
""")
    same(theirs["M"](), ours["M"](rngs=nnx.Rngs(0)), X.numpy())


@pytest.mark.parametrize("scale", ["None", "0.5"])
def test_a_list_of_parameters_or_none(scale: str) -> None:
    theirs, ours, _ = loaded(f"""\
class M(nn.Module):
    def __init__(self, scale={scale}):
        super().__init__()
        self.gamma = nn.ParameterList([
            nn.Parameter(scale * torch.ones(4)) if scale is not None else None for _ in range(2)
        ])
        self.more = nn.ParameterList([nn.Parameter(torch.ones(4)) if scale is not None else None])
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        for layer, gamma in zip(self.layers, self.gamma):
            y = layer(x)
            x = x + (y if gamma is None else gamma * y)
        return x if self.more[0] is None else x * self.more[0]
""")
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    same(model, port, X.numpy(), jit=True)


BIAS = """\
class M(nn.Module):
    def __init__(self, n=3, c=4):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(n, c))
        self.bias = None
        {more}
        self.reset_parameters()

    def later(self, n):
        {later}

    def reset_parameters(self):
        self.weight.data.uniform_(-1, 1)
        if self.bias is not None:
            self.bias.data.uniform_(-1, 1)

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)
"""


def test_a_bias_that_is_never_there_is_not_initialised() -> None:
    theirs, ours, code = loaded(BIAS.format(more="pass", later="return n"))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    same(model, port, X.numpy())
    assert "if self.bias is not None" not in code


def test_a_bias_that_comes_in_a_method_is_initialised() -> None:
    source = BIAS.format(more="self.later(n)", later="self.bias = nn.Parameter(torch.zeros(n))")
    theirs, ours, code = loaded(source)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    assert float(jnp.abs(port.bias[...]).max()) > 0
    migrator.load_state_dict(port, model.state_dict())
    same(model, port, X.numpy())
    assert "if self.bias is not None" in code


def test_a_function_that_keeps_what_it_initialises_is_handed_the_parameter() -> None:
    source = HEAD.replace(
        "def given_back(w):\n", "KEPT = []\n\n\ndef given_back(w):\n    KEPT.append(w)\n"
    )
    line = "self.w = given_back(nn.Parameter(torch.empty(n, 1)))"
    assert "API009" in rules_of(source.format(line=line))


@pytest.mark.parametrize(
    "lines",
    [
        "w = nn.Parameter(torch.empty(n, 1)); self.w = given_back(w)",
        "w = nn.Parameter(torch.empty(n, 1)); w = given_back(w); self.w = w",
        "self.w = kept(nn.Parameter(torch.empty(n, 1)))",
        "w = kept(nn.Parameter(torch.empty(n, 1))); self.w = w",
        "self.w = kept(nn.Parameter(torch.empty(n, 1))) if n else None",
        'self.register_parameter("w", kept(nn.Parameter(torch.empty(n, 1))))',
        'setattr(self, "w", kept(nn.Parameter(torch.empty(n, 1))))',
        "self.w, self.v = kept(nn.Parameter(torch.empty(n, 1))), 2",
    ],
)
def test_what_a_function_may_give_back_is_no_array(lines: str) -> None:
    kept = "KEPT = []\n\n\ndef kept(w):\n    KEPT.append(w)\n    nn.init.normal_(w)\n    return w\n\n\n"
    assert "API009" in rules_of(
        HEAD.replace("def made(n)", f"{kept}def made(n)").format(line=lines)
    )


@pytest.mark.parametrize(
    "lines",
    [
        "w = nn.Parameter(torch.empty(n, 1)); given_back(w); self.w = w",
        "self.w = nn.Parameter(torch.empty(n, 1)); given_back(self.w)",
        "self.w = nn.Parameter(given_back(torch.empty(n, 1)))",
    ],
)
def test_what_is_only_filled_stays_what_it_is(lines: str) -> None:
    theirs, ours, _ = loaded(HEAD.format(line=lines))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    same(model, port, X.numpy())


def test_a_method_of_another_object_by_that_name_is_not_ones_own() -> None:
    line = "self.w = n.own(nn.Parameter(torch.empty(n, 1)))"
    assert "n.own(nnx.Param(" in convert(HEAD.format(line=line)).code
    assert (
        "nnx.Param(self.own(" in convert(HEAD.format(line=line.replace("n.own", "self.own"))).code
    )

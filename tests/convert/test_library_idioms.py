"""Idioms that published model files share: option dicts, parameter lists, questions about torch itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

from migrator import load_state_dict
from rules.torch_names import VERSION
from tests.convert.tools import body, both, check, convert, module, rules_of, same


def test_a_dict_of_options_is_opened() -> None:
    made = module(
        'kw = {"device": None, "dtype": torch.float16}\n'
        "self.w = nn.Parameter(torch.zeros(dim, **kw))\nself.l = nn.Linear(2, 2, **kw)"
    )
    assert 'self.w = nnx.Param(jnp.zeros((dim,), dtype=kw["dtype"]))' in made
    assert 'param_dtype=kw["dtype"]' in made


def test_a_dict_that_changes_is_not_opened() -> None:
    made = body(
        "def f(n: int):\n    kw = dict(device=None)\n    kw.update(dtype=torch.int32)\n"
        "    return torch.zeros(n, **kw)\n",
        "def f",
    )
    assert "**kw" in made


def test_a_display_with_a_star_says_what_each_target_is() -> None:
    made = body(
        "def f(x: torch.Tensor):\n    _, h, w, device, dtype = *x.shape, x.device, x.dtype\n"
        "    return x.sum().type(dtype), torch.arange(h, device=device)\n",
        "def f",
    )
    assert "x.sum().astype(dtype), jnp.arange(h)" in made


def test_disabled_autocast_and_compile_go() -> None:
    source = '@torch.autocast("cuda", enabled=False)\ndef f(x: torch.Tensor):\n    return x\n'
    assert body(source, "def f") == "def f(x: jax.Array):\n    return x\n"
    assert rules_of(source.replace(", enabled=False", "")) == ["DTY005"]
    assert "return f" in body(
        "def g(f: nn.Module):\n    return torch.compile(f, fullgraph=True)\n", "def g"
    )


def test_questions_about_torch_are_answered() -> None:
    source = "def f():\n    return torch.__version__, torch.jit.is_scripting()\n"
    assert f'return "{VERSION}", False' in body(source, "def f")
    assert torch.__version__.partition("+")[0] == VERSION


def test_a_chain_on_a_new_tensor_is_written_in_place() -> None:
    made = body("def f(n: int):\n    return torch.zeros(n).float().uniform_(0, 1) < 0.5\n", "def f")
    assert "uniform(" in made
    source = "def f(x: torch.Tensor):\n    y = x.float().uniform_(0, 1) < 0.5\n    return y\n"
    assert rules_of(source) == []
    assert rules_of(source.replace("return y", "return y, x")) == ["MUT001"]


def test_an_uncalled_method_name_is_an_attribute_of_something_else() -> None:
    made = module("pass\n\ndef __init__(self, net):\n    self.l = nn.Linear(net.dim, 2)")
    assert "Linear(net.dim, 2" in made


PARAMETERS = """
class M(nn.Module):
    def __init__(self, n: int = 2):
        super().__init__()
        self.a = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(n)])
        self.b = nn.ParameterList([torch.ones(3)])
        self.b.append(torch.zeros(3))
        self.c = nn.ParameterDict({"u": nn.Parameter(torch.zeros(3)), "b": nn.Parameter(torch.ones(3))})
        for p in self.a:
            nn.init.normal_(p)
        nn.init.ones_(self.b[1])

    def forward(self, x):
        for s in self.a:
            x = x * s
        for name, value in self.c.items():
            x = x * 2 + value
        return x + self.b[0] - self.b[-1] * self.c["u"]
"""


def test_parameter_lists() -> None:
    scope: dict = {"torch": torch, "nn": torch.nn}
    exec(PARAMETERS, scope)
    theirs = scope["M"]()
    result = convert(PARAMETERS)
    assert result.complete, result.findings
    exec(result.code, scope)
    ours = scope["M"](rngs=nnx.Rngs(0))
    state = {key: torch.randn_like(value) for key, value in theirs.state_dict().items()}
    theirs.load_state_dict(state)
    load_state_dict(ours, state)
    assert len(nnx.to_flat_state(nnx.state(ours, nnx.Param))) == 6
    x = torch.randn(2, 3)
    torch.testing.assert_close(torch.tensor(ours(x.numpy()).tolist()), theirs(x).detach())


def test_what_a_parameter_list_is_given_must_be_known() -> None:
    assert rules_of(
        "class M(nn.Module):\n    def __init__(self, ps):\n        super().__init__()\n"
        "        self.ps = nn.ParameterList(ps)\n"
    ) == ["API005"]


ATTENTION = """
def attention(module: nn.Module, q, dropout=0.5):
    return F.dropout(q, p=dropout, training=module.training)


class M(nn.Module):
    def forward(self, x):
        return attention(self, x)
"""


def test_a_function_may_ask_the_mode_of_a_module_that_is_handed_to_it() -> None:
    result = convert(ATTENTION)
    assert result.complete, result.findings
    scope: dict = {}
    exec(result.code, scope)
    net = scope["M"](rngs=nnx.Rngs(0))
    x = torch.ones(100).numpy()
    assert 0 < float((net(x) == 0).sum()) < 100
    net.eval()
    assert (net(x) == x).all()
    assert rules_of("def f(x: torch.Tensor, net: nn.Module):\n    return net.training") == [
        "API010"
    ]


FACTORIES = """
class Block(nn.Module):
    def __init__(self, dim, norm_layer, act=None):
        super().__init__()
        self.norm = norm_layer(dim)
        self.act = act() if act is not None else nn.Identity()

    def forward(self, x):
        return self.act(self.norm(x))


def stack(block, n):
    return nn.Sequential(*[block(4) for _ in range(n)])
"""


def test_what_may_build_a_module_gets_rngs_where_it_takes_them() -> None:
    result = convert(FACTORIES)
    assert result.complete, result.findings
    scope: dict = {}
    exec(result.code, scope)
    norm = lambda dim: nnx.LayerNorm(dim, rngs=nnx.Rngs(0))
    for make in (nnx.LayerNorm, norm):
        net = scope["Block"](4, make, lambda: abs, rngs=nnx.Rngs(0))
        assert net(torch.randn(2, 4).numpy()).shape == (2, 4)
    net = scope["stack"](lambda dim: nnx.Linear(dim, 4, rngs=nnx.Rngs(0)), 2, rngs=nnx.Rngs(0))
    assert net(torch.randn(2, 4).numpy()).shape == (2, 4)
    assert len(scope["stack"](nnx.BatchNorm, 2, rngs=nnx.Rngs(0)).layers) == 2


def test_a_buffer_keeps_whether_it_is_stored() -> None:
    made = module(
        "self.b = nn.Buffer(torch.ones(dim), persistent=False)", "return x * self.b.to(x)"
    )
    assert "self.b = nnx.Variable(jnp.ones((dim,)), persistent=False)" in made
    assert "self.b[...].astype(x.dtype)" in made


def test_an_attribute_that_tensors_lack_shows_that_it_is_none() -> None:
    source = (
        "def f(net: nn.Module, x: torch.Tensor):\n    y = net(x)\n    return y.last_hidden_state\n"
    )
    assert "return y.last_hidden_state" in body(source, "def f")


def test_the_last_use_of_a_name_may_be_in_place() -> None:
    source = "def f(x: torch.Tensor, g, fast: bool):\n    return x.mul_(g) if fast else x * g\n"
    assert "return x * g if fast else x * g" in body(source, "def f")
    source = "def f(x: torch.Tensor, g, fast: bool):\n    return (x.mul_(g) if fast else g) + x\n"
    assert rules_of(source) == ["MUT002"]


def test_private_base_classes() -> None:
    source = """
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.loss import _Loss


class Dice(_Loss):
    def __init__(self, reduction="mean"):
        super().__init__(reduction=reduction)

    def forward(self, x):
        return x.mean() if self.reduction == "mean" else x.sum()


def is_norm(m: nn.Module):
    return isinstance(m, (_BatchNorm, nn.GroupNorm))
"""
    code = convert(source).code
    assert "class Dice(Loss):" in code
    assert "(BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm, GroupNorm))" in code


@pytest.mark.parametrize(
    "name", ["nn.modules.batchnorm._BatchNorm", "torch.nn.modules.batchnorm.BatchNorm2d"]
)
def test_a_class_by_the_file_it_is_in(name: str) -> None:
    result = convert(f"def is_norm(m: nn.Module):\n    return isinstance(m, {name})\n")
    assert result.complete
    assert "BatchNorm2d" in result.code.partition("def is_norm")[2]


@pytest.mark.parametrize("name", ["spectral_norm", "weight_norm"])
def test_a_norm_of_weights_by_the_file_it_is_in(name: str) -> None:
    source = f"""
from torch.nn.utils.{name} import remove_{name}, {name}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = {name}(nn.Linear(4, 4))

    def forward(self, x):
        return self.fc(x)
"""
    by_package = source.replace(f"utils.{name} import", "utils import")
    assert check(source) == check(by_package)


def test_backward_that_nobody_reads_goes() -> None:
    source = "def test():\n    net = nn.Linear(2, 2)\n    net(torch.ones(1, 2)).sum().backward()\n"
    assert rules_of(source) == []
    assert rules_of(source + "    print(net.weight.grad)\n") != []
    assert rules_of("def f(loss: torch.Tensor):\n    loss.backward()\n") == ["API002"]


def test_a_line_break_keeps_its_parentheses() -> None:
    source = "def f(x: torch.Tensor, y: torch.Tensor):\n    return torch.mul(x +\n        y, y)\n"
    assert convert(source).complete


def test_what_a_method_keeps_is_not_written_by_its_callers() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.ones(4))
        self.layer = nn.Linear(4, 4)

    def state(self):
        return self.kept

    def both(self, x):
        y = self.layer(x)
        return {"a": y, "b": y * 2}

    def forward(self, x):
        found = self.both(x)
        a = found["a"]
        a.clamp_(0, 1)
        return a
"""
    assert rules_of(source) == []
    shared = source.replace("found = self.both(x)", "found = {'a': self.state()}")
    assert rules_of(shared) == ["MUT001"]


def test_constants_of_torch_come_from_math() -> None:
    code = convert(
        "from torch import nn, pi, tensor\n\n\ndef f(x: torch.Tensor):\n    return x * pi\n"
    ).code
    assert "from math import pi\n" in code


def test_methods_that_no_forward_pass_calls_may_go_by_order() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def decayed(self):
        return [p for m in self.modules() for p in m.parameters()]

    def forward(self, x):
        return self.layer(x)
"""
    assert rules_of(source) == []
    assert rules_of(source.replace("self.layer(x)", "self.layer(x), self.decayed()")) == ["API007"]


def test_repeats_of_unknown_kind() -> None:
    made = body("def f(x: torch.Tensor, n):\n    return x.repeat_interleave(n)\n", "def f")
    assert "repeat" in made


NEW_PARAMETERS = """
def small(*shape, std=0.02):
    return nn.Parameter(torch.randn(*shape) * std)


def normal(n):
    p = nn.Parameter(torch.empty(n))
    nn.init.normal_(p)
    with torch.no_grad():
        p[0] = 1.0
        p *= 2
    return p


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.layer = small(4), nn.Linear(4, 4)
        self.b = normal(4)
        w = nn.Parameter(torch.empty(4))
        nn.init.uniform_(w)
        w.data.clamp_(0, 0.5)
        self.w = w
        v = nn.Parameter(torch.zeros(4))
        v.data.fill_(2.0)
        self.register_parameter("v", v)

    def forward(self, x):
        if isinstance(self.layer.weight, torch.Tensor) and x.dtype != self.layer.weight.dtype:
            x = x.to(self.layer.weight.dtype)
        return self.layer(x) * self.a + self.b + self.w * self.v
"""


def test_a_parameter_stays_one_while_it_is_given_its_first_value() -> None:
    result = convert(NEW_PARAMETERS)
    assert result.complete, result.findings
    scope: dict = {"torch": torch, "nn": torch.nn}
    exec(NEW_PARAMETERS, scope)
    theirs = scope["M"]()
    exec(result.code, scope)
    ours = scope["M"](rngs=nnx.Rngs(0))
    assert float(ours.b[...][0]) == 2.0
    assert float(ours.v[...].sum()) == 8.0
    load_state_dict(ours, theirs.state_dict())
    assert len(nnx.to_flat_state(nnx.state(ours, nnx.Param))) == 6
    x = torch.randn(2, 4)
    torch.testing.assert_close(torch.tensor(ours(x.numpy()).tolist()), theirs(x).detach())


def test_a_layer_may_be_replaced_by_one_without_state() -> None:
    source = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.act = nn.ReLU() if True else nn.Identity()

    def forward(self, x):
        return self.act(self.fc(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Base()
        self.net.fc = nn.Identity()

    def forward(self, x):
        return self.net(x)
"""
    code = convert(source).code
    assert "self.net.fc = nnx.static(identity)" in code
    scope: dict = {}
    exec(code, scope)
    net = scope["M"](rngs=nnx.Rngs(0))
    assert not nnx.to_flat_state(nnx.state(net))
    assert nnx.jit(lambda m, x: m(x))(net, torch.ones(1, 4).numpy()).sum() == 4


def test_data_of_a_weight_is_assigned() -> None:
    made = module("self.l = nn.Linear(4, 4)\nself.l.weight.data = torch.eye(4)", "return self.l(x)")
    assert "self.l.kernel.set_value(jnp.eye(4).T)" in made


def test_a_seed_around_a_model_is_left_out() -> None:
    result = convert("def get_inputs():\n    torch.manual_seed(0)\n    return [torch.randn(2)]\n")
    assert result.complete
    assert "seed" not in result.code
    assert [f.rule for f in result.findings] == ["TRC013"]
    source = "class M(nn.Module):\n    def forward(self, x):\n        torch.manual_seed(0)\n        return x\n"
    assert rules_of(source) == ["API003"]
    noise = (
        "def noise(x: torch.Tensor):\n    torch.manual_seed(0)\n    return torch.randn_like(x)\n"
    )
    assert rules_of(noise) == ["API003"]
    assert convert("def seed_all(n: int):\n    torch.manual_seed(n)\n").complete


def test_a_seed_that_several_models_keep_and_nobody_asks_for_is_left_out() -> None:
    keeps = """
class NAME(nn.Module):
    def __init__(self, seed: int):
        super().__init__()
        self.seed = torch.manual_seed(seed)
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)
"""
    source = keeps.replace("NAME", "Actor") + keeps.replace("NAME", "Critic")
    result = convert(source)
    assert result.complete
    assert "self.seed" not in result.code
    assert rules_of(source + "\n\ndef seed_of(net):\n    return net.seed\n") == ["API001"] * 2
    assert rules_of(source.replace("(seed)", "(seed); self.seed += 1", 1))


def test_a_new_value_for_an_argument_of_a_layer() -> None:
    """It reaches the layer under the name that Flax reads, or it is a finding: never without an effect."""
    made = module(
        "self.d = nn.Dropout(0.1)\nself.d.p = 0.5\nself.n = nn.LayerNorm(4)\nself.n.eps = 0.1"
    )
    assert "self.d.rate = 0.5" in made
    assert "self.n.epsilon = 0.1" in made
    made = module("self.c = nn.Conv2d(3, 3, 3)\nself.c.stride = (2, 2)")
    assert "self.c.stride = (2, 2)" in made
    for layer, name, value in (
        ("MaxPool2d(2)", "ceil_mode", True),
        ("LeakyReLU()", "negative_slope", 0.3),
        ("Upsample(scale_factor=2)", "align_corners", None),
        ("Embedding(4, 2)", "padding_idx", 0),
    ):
        source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        source += f"        self.l = nn.{layer}\n        self.l.{name} = {value}\n"
        assert rules_of(source) == ["API001"], layer


def test_a_new_weight_under_a_name_that_flax_has_not() -> None:
    for layer, value in (
        ("nn.Linear(2, 2)", "other[0]"),
        ("nn.Embedding(2, 2)", "other[0]"),
        ("nn.Conv1d(2, 2, 1) if other else nn.Linear(2, 2)", "nn.Parameter(torch.ones(2, 2))"),
    ):
        source = "class M(nn.Module):\n    def __init__(self, other):\n        super().__init__()\n"
        source += f"        self.l = {layer}\n        self.l.weight = {value}\n"
        assert rules_of(source) == ["API006"], layer


def test_arguments_that_layers_keep_under_other_names() -> None:
    head = "self.e = nn.Embedding(3, 2)\nself.p = nn.AvgPool2d(2)\n"
    assert "self.n = self.e.features" in module(head + "self.n = self.e.embedding_dim")
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.p = nn.AvgPool2d(2)\n        self.n = self.p.kernel_size\n"
    assert rules_of(source) == ["API001"]


def test_a_class_from_a_registry_gets_rngs() -> None:
    text = module("self.net = REGISTRY[dim](dim)").replace("\n", " ")
    assert "self.net = build(REGISTRY[dim], dim, rngs=rngs)" in text
    text = module("self.net = globals().get(dim)(dim)").replace("\n", " ")
    assert "self.net = build(globals().get(dim), dim, rngs=rngs)" in text
    text = module("self.net = REGISTRY[dim](nn.Dropout(p) for p in dim)").replace("\n", " ")
    assert "build(REGISTRY[dim], (nnx.Dropout(p, rngs=rngs) for p in dim), rngs=rngs)" in text


def test_unique_keeps_each_nan() -> None:
    init = "x = torch.tensor([float('nan'), 1.0, float('nan'), 1.0])\n"
    check(
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init}        values, counts = torch.unique(x, return_counts=True)\n"
        "        self.n, self.most = len(values), int(counts.max())\n        self.l = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        return self.l(x) * self.n + self.most\n"
    )


def test_an_assertion_about_autograd_is_left_out() -> None:
    result = convert(
        "def f(x: torch.Tensor, y: torch.Tensor):\n"
        "    assert not y.requires_grad and x.is_leaf\n    return x - y\n"
    )
    assert result.complete
    assert [f.rule for f in result.findings] == ["TRC011"]
    assert "assert" not in result.code
    branch = "def f(x: torch.Tensor):\n    if x.requires_grad:\n        x = x + 1\n    return x\n"
    assert rules_of(branch)


def test_what_numpy_functions_take_is_no_tensor() -> None:
    result = convert(
        "import numpy as np\n\n"
        "def normalize(pc):\n    n = pc.shape[0]\n    pc = pc - np.mean(pc, axis=0)\n"
        "    return pc / np.max(np.sqrt(np.sum(pc**2, axis=1))), n\n"
    )
    assert result.complete, result.findings
    assert "np.mean(pc, axis=0)" in result.code


def test_a_device_is_not_handed_on() -> None:
    source = """
class Causal(nn.Conv1d):
    def __init__(self, i, o, k, padding_mode="zeros", device=None, dtype=None):
        super(Causal, self).__init__(
            in_channels=i, out_channels=o, kernel_size=k, padding_mode=padding_mode, device=device, dtype=dtype
        )

    def forward(self, x):
        return super().forward(F.pad(x, (self.kernel_size[0] - 1, 0)))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = Causal(3, 4, 3)

    def forward(self, x):
        return self.conv(x)
"""
    module, port, _ = both(source)
    same(module, port, np.linspace(-1, 1, 30, dtype=np.float32).reshape(2, 3, 5))

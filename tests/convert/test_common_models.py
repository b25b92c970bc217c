"""Idioms that many published models share: each was complete and wrong, or a finding, before."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from tests.convert.tools import X, body, both, check, rules_of


def test_a_weight_that_is_set_untrained_is_not_trained() -> None:
    source = """
class M(nn.Module):
    def __init__(self, learnt=False):
        super().__init__()
        w = torch.arange(12.0).reshape(4, 3)
        self.fixed = nn.Embedding(4, 3)
        self.fixed.weight = nn.Parameter(w, requires_grad=False)
        self.either = nn.Linear(3, 4)
        self.either.weight = nn.Parameter(w.clone(), requires_grad=learnt)
        self.head = nn.Linear(4, 3)
        self.head.weight = nn.Parameter(w.T.clone())

    def forward(self, i):
        return self.head(self.either(self.fixed(i)))
"""
    module, port, _ = both(source, False)
    assert {name for name, p in module.named_parameters() if p.requires_grad} == set(
        migrator.to_state_dict(nnx.state(port, nnx.Param), like=port)
    )
    index = torch.tensor([0, 3])
    np.testing.assert_allclose(port(index.numpy()), module(index).detach(), rtol=1e-6)


ITEMS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)])

    def forward(self, x):
        for i in range(2):
            x[i] = self.head[i](x[i]).view(-1, 1, 2, 1)
        return x
"""


def test_an_argument_that_is_asked_for_items_alone_may_be_a_list() -> None:
    module, port, code = both(ITEMS)
    assert "x = with_item(x, i, " in code
    given = [X, 2 * X]
    expected = module(list(given))
    for ours, theirs in zip(port([x.numpy() for x in given]), expected, strict=True):
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-6)
    tensor = ITEMS.replace(".view(-1, 1, 2, 1)", "").replace("4, 2", "4, 4")
    module, port, _ = both(tensor)
    given = torch.stack([X, X + 1])
    np.testing.assert_allclose(
        port(jnp.asarray(given.numpy())), module(given.clone()).detach(), rtol=1e-6
    )
    assert ".at[i].set" in both(tensor.replace("for i", "b = x.shape[0]\n        for i"))[2]


REGISTERED = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("anchors", torch.ones(3))

    def forward(self, x):
        return x * self.anchors


class Other(nn.Module):
    anchors = 3


class M(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.layers = nn.Sequential(*[cls() for cls in table])
        last = self.layers[-1]
        last.anchors /= 4.0

    def forward(self, x):
        return self.layers(x)
"""


def test_a_buffer_of_a_module_that_is_not_known_stays_one() -> None:
    plain = REGISTERED.replace("class Other(nn.Module):\n    anchors = 3\n", "")
    assert "last.anchors[...] /= 4.0" in body(plain, "class M")
    either = REGISTERED.replace("anchors = 3", "def __init__(self):\n        self.anchors = 3")
    assert 'put(last, "anchors", last.anchors / 4.0, in_place=True)' in body(either, "class M")
    made = body(plain.replace("/= 4.0", "= torch.zeros(3)"), "class M")
    assert 'put(last, "anchors", jnp.zeros((3,)))' in made


TABLE = """
from collections import OrderedDict, namedtuple


class Layers(OrderedDict):
    def __getitem__(self, key):
        content = super().__getitem__(key)
        cls, options = content if isinstance(content, tuple) else (content, {})
        return cls(**options)


class Size(namedtuple("Size", ["wide", "deep"])):
    __slots__ = ()


LAYERS = Layers({"linear": (nn.Linear, {"in_features": 4, "out_features": 2}), "relu": nn.ReLU})


class M(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.size = Size(2, 1)
        self.layer = LAYERS[name]
        self.embed = nn.Embedding(3, self.size.wide)
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, nn.Embedding):
            m.weight.data.normal_()
            if m.padding_idx is not None:
                m.weight.data[m.padding_idx].zero_()

    def forward(self, x):
        return self.layer(x)
"""


def test_a_table_that_builds_its_layers_is_given_rngs() -> None:
    module, port, code = both(TABLE, "linear")
    assert "LAYERS.__getitem__(name, rngs=rngs)" in code
    np.testing.assert_allclose(port(X.numpy()), module(X).detach(), rtol=1e-6)
    assert 'if getattr(m, "padding_idx", None) is not None:' in code


def test_data_may_take_another_shape() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = x * 2
        y.data = y.data[0]
        return y
"""
    module, port, _ = both(source)
    assert port(jnp.asarray(X.numpy())).shape == module(X).shape == (4,)
    made = source.replace("y.data = y.data[0]", "y.data.unsqueeze_(0)")
    assert rules_of(made) == ["MUT001"]


def test_the_parts_of_attention_are_layers() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(4, 2)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0)
        nn.init.ones_(self.attn.in_proj_weight)
        nn.init.ones_(self.attn.out_proj.weight)
        nn.init.constant_(self.layer.linear1.weight, 0.5)
        nn.init.zeros_(self.layer.norm1.weight)
        self.wide = self.layer.linear1.out_features

    def forward(self, x):
        return self.layer(self.attn(x, x, x)[0]) * self.wide
"""
    module, port, _ = both(source)
    np.testing.assert_allclose(port(X.numpy()), module(X).detach(), rtol=1e-5, atol=1e-6)


def test_initialising_in_a_loop_inside_a_loop_over_modules() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.ones_(m.weight)
                for name, _ in m.named_parameters():
                    if name in ["bias"]:
                        nn.init.constant_(m.bias, 0)

    def forward(self, x):
        return self.conv(x)
"""
    x = torch.ones(1, 3, 2, 2)
    np.testing.assert_allclose(both(source)[1](x.numpy()), 3 * np.ones((1, 4, 2, 2)))


WRITTEN = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.c = nn.Parameter(torch.linspace(-1, 1, 4))
        self.w = nn.Parameter(torch.arange(16.0).reshape(4, 4) / 8)
        self.register_buffer("mask", torch.eye(4))

    def forward(self, x):
        self.c.data.clamp_(-0.5, 0.5)
        self.w.data *= self.mask
        self.a.weight.data.mul_(0.5).add_(0.1)
        with torch.no_grad():
            self.b.weight.copy_(torch.renorm(self.b.weight, 2, 0, 0.5))
            self.b.bias.mul_(0.5)
            self.a.bias.data[0] = 0
        y = self.a(x)
        y.data.clamp_(-0.5, 0.5)
        y.data[:, 0] = 0.25
        y.data = y.data * 2
        z = self.b(y)
        z.data *= 3
        with torch.no_grad():
            z.mul_(0.5)
            z.unsqueeze_(0)
            z.squeeze_(0)
        return z * self.c + F.linear(x, self.w)
"""


def test_gradients_pass_what_is_written_to_data() -> None:
    """torch differentiates by the tensor as it is after the write, which autograd does not see."""
    module, port, _ = both(WRITTEN)
    module(X).square().sum().backward()
    found = nnx.grad(lambda m: (m(jnp.asarray(X.numpy())) ** 2).sum())(port)
    found = migrator.to_state_dict(found, like=port)
    for name, parameter in module.named_parameters():
        expected = parameter.grad.numpy()
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_parameter_in_one_case_and_a_buffer_in_another_is_registered() -> None:
    source = """
class M(nn.Module):
    def __init__(self, learnt):
        super().__init__()
        self.start = 0.25
        self.learnt = learnt
        if learnt:
            self.eps = nn.Parameter(torch.Tensor(1))
        else:
            self.register_buffer("eps", torch.Tensor([0.25]))
        self.reset()

    def reset(self):
        if self.learnt:
            nn.init.constant_(self.eps, self.start)

    def forward(self, x):
        return x * self.eps.abs()
"""
    for learnt in (True, False):
        module, port, _ = both(source, learnt)
        assert len(nnx.state(port, nnx.Param)) == len(list(module.parameters()))
        np.testing.assert_array_equal(port(X.numpy()), X.numpy() / 4)


def test_the_legacy_constructor_of_something_unknown() -> None:
    source = """
class M(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.w = nn.Parameter(torch.Tensor(data["w"]))

    def forward(self, x):
        return x + self.w
"""
    given = {"w": np.linspace(0, 1, 4)}
    module, port, _ = both(source, given)
    np.testing.assert_array_equal(port(X.numpy()), module(X).detach())
    assert both(source, {"w": 4})[1].w.shape == (4,)


def test_a_normalisation_that_is_chosen_takes_a_generator_along() -> None:
    source = """
class M(nn.Module):
    def __init__(self, spectral):
        super().__init__()
        norm = torch.nn.utils.spectral_norm if spectral else torch.nn.utils.weight_norm
        self.layer = norm(nn.Linear(4, 2))

    def forward(self, x):
        return self.layer(x)
"""
    for spectral in (True, False):
        module, port, _ = both(source, spectral)
        port.eval()
        np.testing.assert_allclose(port(X.numpy()), module.eval()(X).detach(), rtol=1e-5)
    outside = "def f(x, deep):\n    drop = F.dropout if deep else F.relu\n    return drop(x)\n"
    assert rules_of(outside) == ["API001"]


def test_a_weight_that_is_initialised_and_assigned_to_where_it_is() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.line = nn.Linear(3, 4)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                m.weight = nn.init.constant_(m.weight, 0.5)
        self.line.weight = nn.init.ones_(self.line.weight)

    def forward(self, x):
        return self.line(self.conv(x).mean((2, 3))[:, :3])
"""
    module, port, _ = both(source)
    x = torch.linspace(0, 1, 24).reshape(2, 3, 2, 2)
    assert float(port.conv.weight[0, 0, 0, 0]) == 0.5
    np.testing.assert_allclose(port(x.numpy()), module(x).detach(), rtol=1e-5)


def test_weights_are_tied_by_a_method_of_the_constructor() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.tie_weights()

    def tie_weights(self):
        self.head.weight = self.embed.weight

    def forward(self, i):
        return self.head(self.embed(i))
"""
    module, port, code = both(source)
    assert "self.head = self.embed" in code
    index = torch.tensor([0, 5])
    np.testing.assert_allclose(port(index.numpy()), module(index).detach(), rtol=1e-5)


def test_a_weight_is_initialised_in_another_shape() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 2)
        self.linear = nn.Linear(4, 4)
        w = self.conv.weight.data
        nn.init.eye_(w.view([w.shape[0], -1]))
        nn.init.eye_(self.linear.weight.view(2, -1))

    def forward(self, x):
        return self.linear(x)
"""
    model, port, _ = both(source)
    fresh = migrator.to_state_dict(type(port)(rngs=nnx.Rngs(1)))
    for name in ("conv.weight", "linear.weight"):
        assert (fresh[name] == model.state_dict()[name].numpy()).all()
    used = source.replace("    def forward", "        self.total = w.sum()\n\n    def forward")
    assert "MUT001" in rules_of(used)


def test_the_shape_of_a_weight_of_some_layer() -> None:
    _, _, code = both("""
class Tiny(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.fc = nn.Linear(4, width)

    def forward(self, x):
        return self.fc(x)


class Contrast(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.q = base(width=8)
        n = self.q.fc.weight.shape[1]
        self.q.fc = nn.Sequential(nn.Linear(n, n), nn.ReLU(), self.q.fc)

    def forward(self, x):
        return self.q(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Contrast(Tiny)

    def forward(self, x):
        return self.net(x)
""")
    assert "n = weight_of(self.q.fc).shape[1]" in code


def test_functools_stays_imported_where_a_helper_is_decorated_by_it() -> None:
    check("""
from functools import partial

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.utils.weight_norm(nn.Linear(4, 3, bias=False))
        self.act = partial(torch.clamp, min=0)

    def forward(self, x):
        return self.act(self.last(x))
""")


def test_the_type_of_a_weight_of_a_named_child_of_an_unknown_sequential() -> None:
    code = check("""
from collections import OrderedDict


class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.mlp = nn.Sequential(OrderedDict([("fc", nn.Linear(4, 4)), ("act", act())]))

    def forward(self, x):
        return self.mlp(x)


class M(nn.Module):
    def __init__(self, act=nn.GELU):
        super().__init__()
        self.blocks = nn.ModuleList([Block(act) for _ in range(2)])

    def forward(self, x):
        return self.blocks[0](x.to(self.blocks[0].mlp.fc.weight.dtype))
""")
    assert "x.astype(weight_of(self.blocks[0].mlp.fc).dtype)" in code

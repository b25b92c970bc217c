"""Idioms of model packages: subclasses of layers, builders, initialisers that are handed around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import body, rules_of
from tests.convert.tools import convert as converted


def same(source: str, shape: tuple[int, ...]) -> str:
    """Convert, build both with the same weights and compare what ``M`` computes; returns the converted source."""
    result = converted(source)
    assert result.complete, result.findings
    scope: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(source, scope)
    theirs = scope["M"]()
    exec(result.code, scope)
    ours = scope["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(shape)
    expected = theirs(x).detach()
    np.testing.assert_allclose(ours(x.numpy()), expected, rtol=1e-4, atol=1e-5)
    return result.code


NORMS = """
class LN(nn.LayerNorm):
    def __init__(self, num_channels: int, eps: float = 1e-6, affine: bool = True, **kwargs):
        super().__init__(num_channels, eps=eps, elementwise_affine=affine, **kwargs)

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class GN(nn.GroupNorm):
    def __init__(self, num_channels: int, **kwargs):
        super().__init__(1, num_channels, **kwargs)


class L(nn.Linear):
    def __init__(self, a, b, r=2, **kw):
        nn.Linear.__init__(self, a, b, **kw)
        self.r = r

    def forward(self, x):
        return F.linear(x, self.weight * self.r, self.bias)


class RN(nn.RMSNorm):
    def __init__(self, dim, eps=1e-5):
        super().__init__(dim, eps=eps)

    def forward(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() * self.weight


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(LN(4), LN(4, affine=False), GN(4, eps=1e-3))
        self.l = nn.Sequential(L(4, 4), RN(4), L(4, 3, bias=False))

    def forward(self, x):
        return self.l(self.a(x * 1e-3).mean((2, 3)))
"""


def test_a_subclass_of_a_layer_hands_its_arguments_on() -> None:
    made = same(NORMS, (2, 4, 3, 3))
    assert "class LN(LayerNormNd):" in made
    assert "class L(LinearAsTorch):" in made


IDENTITIES = """
class Part(nn.Module):
    def __init__(self, down=None, act=nn.Identity):
        super().__init__()
        self.down = down if down is not None else nn.Identity()
        self.head = nn.Sequential(act(), nn.ReLU())
        self.k = 2 if not isinstance(self.head[0], nn.Identity) else 3

    def forward(self, x):
        if isinstance(self.down, nn.Identity):
            return x * self.k
        return self.head(self.down(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Part(), Part(nn.Linear(3, 3), nn.Sigmoid)

    def forward(self, x):
        return self.a(x) + self.b(x)
"""


def test_an_identity_is_told_from_other_layers() -> None:
    assert "if is_identity(self.down):" in same(IDENTITIES, (2, 3))
    assert rules_of(IDENTITIES.replace("self.down, nn.Identity", "self.down, nn.Softmax")) == [
        "API011"
    ]


INITIALISED = """
from functools import partial


def init_a(module, name="", std=0.02):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=std)


def init_b(module, name=""):
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.weight)


def get(mode):
    if mode == "a":
        return partial(init_a, std=0.5)
    return init_a if mode == "c" else init_b


def each(fn, module):
    fn = fn or init_a
    for name, child in module.named_children():
        each(fn=fn, module=child)
    fn(module=module)


class Net(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.l = nn.Linear(3, 3)
        each(get(mode), self)
        each(init_a, self)
        each(None, self)

    def forward(self, x):
        return self.l(x)


class M(nn.Sequential):
    def __init__(self):
        super().__init__(Net("a"), Net("b"), Net("c"))
"""


def test_a_function_that_draws_takes_its_generator_along() -> None:
    made = same(INITIALISED, (2, 3))
    assert "partial(init_a, std=0.5, rngs=rngs)" in made
    assert "each(partial(init_a, rngs=rngs), self" in made


BUILT = """
from typing import Callable, Optional


class Builder:
    def __init__(self, act=nn.ReLU):
        self.act = act

    def _one(self, c):
        return nn.Linear(c, c)

    def __call__(self, c, k):
        return [(f"b{i}", nn.Sequential(self._one(c), self.act())) for i in range(k)], {"n": k}


class Net(nn.Module):
    def __init__(self, norm: Optional[Callable] = None):
        super().__init__()
        build_blocks = Builder(nn.Tanh)
        blocks, info = build_blocks(3, 2)
        for one in blocks:
            self.add_module(*one)
        self.n = nn.Sequential(norm(3), nn.Linear(3, 3)) if norm else nn.Identity()

    def forward(self, x):
        return self.n(self.b1(self.b0(x)))


def make(model_cls, **kwargs):
    return model_cls(**kwargs)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Net(), make(Net, norm=nn.LayerNorm)

    def forward(self, x):
        return self.a(x) + self.b(x)
"""


def test_objects_that_are_called_and_classes_by_name_build() -> None:
    made = same(BUILT, (2, 3))
    assert "build_blocks(3, 2, rngs=rngs)" in made
    alone = "def make(model_cls, **kwargs):\n    return model_cls(**kwargs)\n"
    assert "return build(model_cls, rngs=rngs, **kwargs)" in body(alone, "def make")


OPTIONAL = """
from typing import Optional


class Net(nn.Module):
    def __init__(self, dynamic=False, n=3, layer=nn.Linear):
        super().__init__()
        self.dynamic, self.n, self.layer = dynamic, n, layer
        try:
            self.layer(3, 3, rd=2)
            self.k = 5
        except TypeError:
            self.k = 1
        self.l = self.layer(3, 3)
        mask = self.get_mask()
        self.register_buffer("a", None if self.dynamic else self.get_mask(), persistent=False)
        self.register_buffer("b", self.get_mask(), persistent=False)
        self.register_buffer("c", mask, persistent=False)
        self.apply(self.init)

    def init(self, m, name=""):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight) if "x" in name else nn.init.ones_(m.weight)

    def get_mask(self) -> Optional[torch.Tensor]:
        if self.n == 3:
            return torch.ones(3)
        return None

    def forward(self, x):
        for mask in (self.a, self.b, self.c):
            if mask is not None:
                x = x * 2 + mask * self.k
        return self.l(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = Net(), Net(n=4), Net(dynamic=True)

    def forward(self, x):
        return self.a(x) + self.b(x) + self.c(x)
"""


def test_buffers_that_may_be_none_and_classes_held_by_the_module() -> None:
    made = same(OPTIONAL, (2, 3))
    assert "self.a = None if self.dynamic else buffer(self.get_mask(), persistent=False)" in made
    assert "self.layer(3, 3, rd=2, rngs=rngs)" in made


CREATED = """
class Scaled(nn.Module):
    def __init__(self, act="relu", gamma=1.0):
        super().__init__()
        self.act, self.gamma = {"relu": F.relu, "silu": F.silu}[act], gamma

    def forward(self, x):
        return self.act(x) * self.gamma


def scaled(act, gamma=1.0):
    def create(inplace=False):
        return Scaled(act, gamma=gamma)

    return create


class M(nn.Module):
    def __init__(self, act_layer=scaled("relu", 3.0)):
        super().__init__()
        act = scaled("silu", gamma=2.0)
        self.a, self.b, self.l = act(), act_layer(), nn.Linear(3, 3)

    def forward(self, x):
        return self.l(self.a(x) + self.b(x))
"""


def test_a_function_that_makes_builders() -> None:
    assert "def scaled(act, gamma=1.0, *, rngs: nnx.Rngs):" in same(CREATED, (2, 3))


def test_what_reads_checkpoints_and_does_not_convert_raises() -> None:
    source = (
        'def remap(state_dict, model):\n    """Old keys."""\n'
        "    return {k: v.view(model.state_dict()[k].shape) for k, v in state_dict.items()}\n"
    )
    assert rules_of(source) == []
    made = body(source, "def remap")
    assert made.splitlines()[1:] == [
        '    """Old keys."""',
        '    raise NotImplementedError("this reads a torch checkpoint; convert its weights instead")',
    ]
    plain = "def remap(state_dict):\n    return {k[1:]: v for k, v in state_dict.items()}\n"
    assert body(plain, "def remap") == plain
    assert rules_of(source.replace("state_dict, model", "weights, model")) == ["API001"]


READS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, checkpoint=None):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        INIT

    def load(self, ckpt):
        self.proj.weight.data.copy_(torch.load(ckpt)["w"])

    def forward(self, x):
        return FORWARD

    def run(self, x, checkpoint):
        return torch.lobpcg(x)


def build(dim, checkpoint_path=None):
    net = Model(dim)
    BUILD
    return net
"""


@pytest.mark.parametrize(
    ("init", "forward", "build", "found"),
    [
        ("if checkpoint: self.load(checkpoint)", "self.proj(x)", "pass", ["API001"]),
        ("self.load(checkpoint)", "self.proj(x)", "pass", ["API001", "API001"]),
        ("self.load_state_dict(torch.load(checkpoint))", "self.proj(x)", "pass", ["API001"] * 2),
        ("pass", "self.run(x, None)", "pass", ["API001"]),
        ("self.proj.register_forward_hook(print)", "x", "pass", ["TRC006", "API001"]),
        ("pass", "x", "net.proj.register_forward_hook(print)", ["API001", "TRC006"]),
    ],
)
def test_what_a_model_needs_is_converted_whatever_its_parameters_are_called(
    init: str, forward: str, build: str, found: list[str]
) -> None:
    """``load`` and ``run`` are left out where nothing needs them; what builds or computes never is."""
    source = READS.replace("INIT", init).replace("FORWARD", forward).replace("BUILD", build)
    assert rules_of(source) == found


FACTORIES = """
import math
from torch.nn import init
from torch.nn.init import _calculate_fan_in_and_fan_out


def get(name):
    return {"a": Block, "b": nn.LayerNorm}.get(name)


def create(name, dim, **options):
    module_cls = get(name)
    if module_cls is not None:
        return module_cls(dim, **options)
    return None


def create_act_layer(name, **options):
    act_layer = get(name)
    return act_layer(3, **options)


class Holder:
    def __init__(self, name):
        self.se_layer = get(name)
        try:
            self.se_layer(8, rd=1.0)
            self.has = True
        except TypeError:
            self.has = False


class Block(nn.Module):
    def __init__(self, dim, rd=1):
        super().__init__()
        self.l = nn.Linear(dim, dim)
        self.w = nn.Parameter(torch.empty(dim, dim, 2))
        fan_in, fan_out = _calculate_fan_in_and_fan_out(self.w)
        init.uniform_(self.w, -1 / math.sqrt(fan_in), 1 / fan_out)
        self.f = fan_in + 10 * init._calculate_fan_in_and_fan_out(self.l.weight)[1]
        values, counts = torch.unique(torch.tensor([1, 2, 2]), return_counts=True)
        self.n = len(values) + int(counts.max().item())

    def init_weights(self, deep=False):
        init.normal_(self.l.weight)

    def forward(self, x):
        return self.l(x) * self.f + self.w.mean() * self.n


def start(module, name=""):
    if isinstance(module, nn.Conv2d):
        init.normal_(module.weight)
    elif hasattr(module, "init_weights"):
        module.init_weights(deep=True)


def each(fn, module):
    for name, child in module.named_children():
        fn(module=child, name=name)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b, self.c = create("a", 3), create_act_layer("b")
        each(start, self)
        self.k = 3 * Holder("a").has + 5 * Holder("b").has

    def forward(self, x):
        return self.c(self.b(x)) * self.k
"""


def test_functions_and_objects_that_create_layers_by_name() -> None:
    made = same(FACTORIES, (2, 3))
    assert "build(module.init_weights, deep=True, rngs=rngs)" in made
    assert "Holder('a', rngs=rngs)" in made.replace('"', "'")


STAGE = """
class Stage(nn.Module):
    def __init__(self, n=11):
        super().__init__()
        for i in range(n):
            self.add_module(f"b{i + 1}", nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
        self.act = nn.ReLU()

    def forward(self, x):
        for block in self.children():
            x = block(x)
        for name, block in self.named_children():
            x = x + len(name)
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Stage()

    def forward(self, x):
        return self.a(x)
"""


def test_a_forward_pass_that_goes_by_the_order_of_children_keeps_it_under_jit() -> None:
    result = converted(STAGE)
    assert result.complete
    scope: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(STAGE, scope)
    theirs = scope["M"]()
    exec(result.code, scope)
    ours = scope["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(2, 3)
    step = nnx.jit(lambda model, x: model(x))
    for _ in range(2):  # jit has sorted the attributes by then
        np.testing.assert_allclose(step(ours, x.numpy()), theirs(x).detach(), rtol=1e-4, atol=1e-5)
    outside = STAGE.replace("self.children()", "self.act.children()")
    assert "API007" in rules_of(outside)


WRAPPED = """
import functools
from typing import Callable, TypeVar

T = TypeVar("T", bound=nn.Module)


def legacy(**weights):
    def outer(builder: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(builder)
        def inner(*args, **kwargs):
            kwargs.pop("pretrained", None)
            return builder(*args, **kwargs)

        return inner

    return outer


class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.l = nn.Linear(3, n)

    def forward(self, x):
        return self.l(x)


@legacy(weights=3)
def make(n=3):
    return Net(n)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = make(3)

    def forward(self, x):
        return self.a(x)
"""


def test_a_wrapper_hands_the_generator_on_among_its_keywords() -> None:
    assert "return builder(*args, **kwargs)" in same(WRAPPED, (2, 3))


FILLED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential()
        for i in range(3):
            self.stages.append(nn.Linear(3, 3))
        self.mixed = nn.Sequential()
        self.mixed.add_module("x", nn.Linear(3, 3))
        self.mixed.append(nn.Linear(3, 3))

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.mixed(x)
"""


def test_an_empty_sequential_that_is_filled() -> None:
    made = same(FILLED, (2, 3))
    assert "self.stages = nnx.Sequential()" in made
    assert "self.mixed.append(Linear(3, 3, rngs=rngs))" in made
    assert rules_of(FILLED.replace("self.mixed.append(", "self.mixed.insert(0, ")) == ["API007"]


OVERRIDDEN = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fill()
        self.later()

    def fill(self):
        self.w = nn.Parameter(torch.rand(3))

    def later(self):
        self.k = 2

    def forward(self, x):
        return x * self.w * self.k


class Derived(Base):
    def fill(self):
        self.w = nn.Parameter(torch.ones(3))

    def later(self):
        self.k = nn.Parameter(torch.rand(3))


class M(nn.Sequential):
    def __init__(self):
        super().__init__(Base(), Derived())
"""


def test_a_method_that_draws_and_one_that_does_not_override_each_other() -> None:
    made = same(OVERRIDDEN, (2, 3))
    assert made.count("def fill(self, *, rngs: nnx.Rngs):") == 2
    assert made.count("def later(self, *, rngs: nnx.Rngs):") == 2

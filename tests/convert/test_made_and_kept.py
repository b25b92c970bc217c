"""Containers that make what they are handed: which code takes a generator, and what a class is asked."""

from __future__ import annotations

import inspect

import pytest
from flax import nnx

from tests.convert.tools import check, convert, loaded

SEQ = """import inspect

class Seq(nn.ModuleDict):
    def __init__(self, *layers, width=None):
        super().__init__()
        self.width = width
        for layer in layers:
            self.append(layer)

    def append(self, layer, *args, layer_name=None, **kwargs):
        layer_name = str(len(self)) if layer_name is None else layer_name
        if self.width:
            spec = inspect.getfullargspec(layer)
            if "width" in spec.args + spec.kwonlyargs:
                layer = layer(*args, width=self.width, **kwargs)
        self.add_module(layer_name, layer)

    def forward(self, x):
        for layer in self.values():
            x = layer(x)
        return x

class Counted(Seq):
    def append(self, *args, **kwargs):
        super().append(*args, **kwargs)
        self.count = len(self)

class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList()

    def append(self, layer, *args, **kwargs):
        self.blocks.append(Counted(width=4))
        self.blocks[-1].append(layer, *args, **kwargs)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

class Lin(nn.Module):
    def __init__(self, n, width):
        super().__init__()
        self.l = nn.Linear(width, n)

    def forward(self, x):
        return self.l(x)

"""


def test_a_container_that_makes_the_layers_it_is_handed() -> None:
    check(
        SEQ
        + """class M(Blocks):
    def __init__(self):
        super().__init__()
        self.append(Lin, 4)
        self.append(nn.ReLU())
        self.append(Lin, n=4, layer_name="last")
"""
    )
    outside = convert(SEQ).code  # who appends is in another file, and hands no generator on
    assert "layer = build(layer, *args, width=self.width, rngs=self.rngs, **kwargs)" in outside


@pytest.mark.parametrize(
    "made", ["Lin", "lambda n, *, width=3, **rest: n", "Counted", "M", "Seq()", "check"]
)
def test_the_arguments_of_what_is_called(made: str) -> None:
    theirs, ours, _ = loaded(
        SEQ
        + f"""def check(a, b: int = 2, *c, d=None):
    return a

class M(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.made = nn.Linear(n, n)

def asked():
    return inspect.getfullargspec({made})
"""
    )
    needs = {"rngs": nnx.Rngs(0)} if made == "Seq()" else {}
    got, want = ours["asked"](**needs), theirs["asked"]()
    assert isinstance(got, inspect.FullArgSpec)
    assert got == want


def test_a_forward_pass_that_runs_while_the_model_is_built_takes_no_generator() -> None:
    _, ours, code = loaded("""class M(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = layers
        self.out = nn.Linear(self.width(), 2)

    def width(self):
        with torch.no_grad():
            return self(torch.zeros(1, 4), last=False).shape[1]

    def forward(self, x, last=True):
        for layer in self.layers:
            x = layer(x)
        return self.out(x) if last else x
""")
    assert "def __call__(self, x, last=True):" in code
    assert ours["M"](lambda x: x[:, :3], rngs=nnx.Rngs(0)).out.kernel.shape == (3, 2)

"""Parameters and buffers registered under names that a loop makes up, and read by them."""

from __future__ import annotations

from tests.convert.tools import check, rules_of

MODEL = """class M(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.n = n
        for i in range(n):
            self.register_buffer("kernel_{}".format(i), torch.ones(1, 1, 3) * (i + 1))
            self.register_parameter(f"gain_{i}", nn.Parameter(torch.ones(1) * 2))
            setattr(self, "shift%d" % i, nn.Parameter(torch.ones(4)))
            setattr(self, "lin%d" % i, nn.Linear(4, 4))

    def forward(self, x):
        x = x[:, None]
        for i in range(self.n):
            x = F.conv1d(x, getattr(self, "kernel_{}".format(i)), padding=1)
            gain = getattr(self, f"gain_{i}")
            x = getattr(self, "lin%d" % i)(x) * gain + getattr(self, "kernel_" + str(i)).mean()
            layer, name = getattr(self, "lin%d" % i), "shift%d" % i
            x = layer(x) + getattr(self, name)
        return x
"""


def test_arrays_and_layers_are_read_by_their_names() -> None:
    code = check(MODEL)
    assert 'getattr(self, "lin%d" % i)(x)' in code


def test_items_of_an_array_that_are_written_by_its_name_are_a_finding() -> None:
    written = '        getattr(self, "kernel_{}".format(0))[0, 0, 1] = 5.0\n'
    assert rules_of(
        MODEL.replace("        x = x[:, None]\n", written + "        x = x[:, None]\n")
    ) == ["MUT001"]


PARTS = """class Up(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        for i in range(1, n):
            setattr(self, "proj_" + str(i), nn.Linear(4, 4))

    def forward(self, layers, start, end):
        for i in range(start + 1, end):
            layers[i] = getattr(self, "proj_" + str(i - start))(layers[i])


class Pyramid(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        for i in range(n - 1):
            setattr(self, "ida_{}".format(i), Up(n))

    def forward(self, layers):
        for i in range(len(layers) - 1):
            ida = getattr(self, "ida_{}".format(i))
            ida(layers, len(layers) - i - 2, len(layers))
        return layers[-1]


class Heads(BASE):
    def __init__(self, heads=("hm", "wh")):
        super().__init__()
        self.heads = heads
        for head in heads:
            setattr(self, head, nn.Linear(4, 4))


class M(Heads):
    def __init__(self):
        super().__init__()
        self.up = Pyramid()

    def forward(self, x):
        layers = [x * 2, x * 3]
        y = self.up(layers)
        return sum(getattr(self, head)(y) for head in self.heads) + layers[1]
"""
"""CenterNet: its heads are registered under names of which nothing is known, and its pyramid writes to a list."""


def test_names_that_another_class_makes_up_are_no_names_of_this_one() -> None:
    check(PARTS.replace("BASE", "nn.Module"))


def test_names_that_an_heir_makes_up_may_be_any() -> None:
    heir = "\n\nclass Of(Heads, Pyramid):\n    pass\n"
    assert "MUT003" in rules_of(PARTS.replace("BASE", "nn.Module") + heir)
    assert "MUT003" in rules_of(PARTS.replace("BASE", "object"))

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

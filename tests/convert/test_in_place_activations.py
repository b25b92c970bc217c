"""``F.leaky_relu(x, slope, inplace=…)``: what it gives is memory of what it rectifies, and of nothing else."""

from tests.convert.tools import check, rules_of

BY_CONFIG = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = [("leaky", [0.2, True]), ("double", [0.5, True]), ("leaky", [0.1, False])]

    def forward(self, x):
        x = x + 1
        for name, param in self.config:
            if name == "leaky":
                x = F.leaky_relu(x, negative_slope=param[0], inplace=param[1])
            else:
                x = F.relu(x * 2, inplace=param[1]) - name.count("d")
        return x
"""


def test_what_is_rectified_in_place_is_no_memory_of_the_slope() -> None:
    check(BY_CONFIG)
    own = BY_CONFIG.replace("x = x + 1", "y = x = x + 1").replace("return x", "return x + y")
    assert rules_of(own)[0] == "MUT001"
    by_name = own.replace("F.leaky_relu(x, ", "F.leaky_relu(input=x, ")
    assert rules_of(by_name)[0] == "MUT001"

"""``Net.load(path)`` reads a checkpoint that its caller names: it raises when called, and the model converts without it."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import check, loaded, rules_of

NET = """
class Net(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.fc = nn.Linear(dim, 4)

    def forward(self, x):
        return self.fc(x)

    def save(self, path):
        torch.save({"dim": 4, "state": self.state_dict()}, path)

    @classmethod
    def load(cls, ARGS):
        READ
        net = cls(bundle["dim"])
        net.load_state_dict(bundle["state"])
        return net
"""


def source(args: str = "path", read: str = "bundle = torch.load(path)") -> str:
    return NET.replace("ARGS", args).replace("READ", read)


def test_what_reads_the_file_it_is_handed_raises() -> None:
    check(source().replace("class Net", "class M"))
    _, ours, _ = loaded(source("path, map_location=None"))
    with pytest.raises(NotImplementedError, match="torch checkpoint"):
        ours["Net"].load("net.pt", rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    "code",
    [
        source('path="net.pt"'),
        source("", 'bundle = torch.load("net.pt")'),
        source("path", "bundle = {}\n        if path:\n            bundle = torch.load(path)"),
        source() + "\n\ndef build(path='net.pt'):\n    return Net.load(path)\n",
    ],
)
def test_what_builds_a_model_otherwise_is_a_finding(code: str) -> None:
    assert "API001" in rules_of(code)

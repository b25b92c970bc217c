"""What takes a torch checkpoint apart beside a model, or puts one together, raises; the model converts."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import check, loaded, rules_of

NET = """
class M(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.dim = dim
        self.fc = nn.Linear(dim, 4)

    @classmethod
    def load_model(cls, path):
        package = torch.load(path, map_location=lambda storage, loc: storage)
        return cls.of_package(package)

    @classmethod
    def of_package(cls, package):
        model = cls(package["dim"])
        model.load_state_dict(package["state"])
        return model

    @staticmethod
    def serialize(model, optimizer, epoch, loss=None):
        package = {"dim": model.dim, "state": model.state_dict(), "optim": optimizer.state_dict()}
        if loss is not None:
            package["loss"] = loss
        return package

    def forward(self, x):
        return self.fc(x)
"""


def test_the_model_converts_and_these_raise() -> None:
    check(NET)
    _, ours, _ = loaded(NET)
    rngs = nnx.Rngs(0)
    for call in (
        lambda: ours["M"].load_model("net.pt", rngs=rngs),
        lambda: ours["M"].of_package({}, rngs=rngs),
        lambda: ours["M"].serialize(ours["M"](rngs=rngs), None, 1),
    ):
        with pytest.raises(NotImplementedError, match="torch checkpoint"):
            call()


@pytest.mark.parametrize(
    "code",
    [
        NET.replace("(cls, package):", "(cls, package=None):"),
        NET.replace("(cls, path):", "(cls, path='net.pt'):"),
        NET + "\n\nnet = M.of_package({'dim': 4, 'state': {}})\n",
        NET.replace("self.fc = nn", "self.kept = M.serialize(self, None, 1)\n        self.fc = nn"),
        NET.replace("return self.fc(x)", "return self.serialize(self, None, 1), self.fc(x)"),
        NET.replace("    @staticmethod\n", "").replace("(model, ", "(self, model, "),
    ],
)
def test_what_a_model_is_built_or_runs_with_is_a_finding(code: str) -> None:
    assert "API001" in rules_of(code)

"""Objects that are no modules, in an attribute of a module."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import check, loaded, rules_of

HOLDER = """
class Controller:
    def __init__(self, n):
        self.agent = {held}
        self.scale = torch.ones(n) * 2

    def run(self, x):
        return self.agent(x) * self.scale


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.mac = Controller(4)

    def forward(self, x):
        return self.mac.run(self.fc(x))
"""


def test_an_object_that_holds_layers_is_found() -> None:
    assert rules_of(HOLDER.format(held="nn.Linear(n, n)")) == ["API008"]


@pytest.mark.parametrize("held", ["nn.ReLU()", "torch.sin"])
def test_functions_and_tensors_may_be_held(held: str) -> None:
    check(HOLDER.format(held=held))


STATE = """
class Mean:
    def __init__(self, n):
        self.mean, self.count = torch.zeros(n), 0

    def update(self, x):
        {write}
        self.count += 1
        return self


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {kept}

    def forward(self, x):
        {use}
        return self.fc(x) - mean
"""


@pytest.mark.parametrize("write", ["self.mean = x.mean(0)", "self.mean += x.mean(0)"])
def test_one_that_the_forward_pass_changes_is_found(write: str) -> None:
    kept, use = "self.rms = Mean(4)", "self.rms.update(x)\n        mean = self.rms.mean"
    assert "MUT004" in rules_of(STATE.format(write=write, kept=kept, use=use))


def test_one_that_lives_in_the_forward_pass_may_be_changed() -> None:
    use = "mean = Mean(4).update(x).mean"
    check(STATE.format(write="self.mean = x.mean(0)", kept="pass", use=use))


@pytest.mark.parametrize("test", ["id(m.weight) == id(p)", "not id(m.weight) != id(p)"])
def test_a_parameter_is_known_by_its_identity(test: str) -> None:
    theirs, ours, _ = loaded(f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                for name, p in self.named_parameters():
                    if {test}:
                        break
                nn.init.constant_(m.weight, 1.0 if name == "head.weight" else 2.0)
""")
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for mine, other in ((model.body, port.body), (model.head, port.head)):
        np.testing.assert_array_equal(mine.weight.detach().numpy().T, other.kernel[...])

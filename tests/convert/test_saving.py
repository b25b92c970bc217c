"""Methods that write a torch checkpoint of their module raise, as those do that read one."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import convert, loaded, rules_of

MODEL = """
class M(nn.Module):
    def __init__(self, path="m.pt"):
        super().__init__()
        self.path = path
        self.q = nn.Linear(4, 1)

    def forward(self, x):
        return self.q(x)

    def save(self, n: int = 3):
        torch.save({saved}, self.path)
"""


@pytest.mark.parametrize(
    "saved", ["self.state_dict()", '{"net": self.state_dict(), "n": n}', "self"]
)
def test_a_module_is_not_saved_in_torchs_format(saved: str) -> None:
    _, ours, _ = loaded(MODEL.format(saved=saved))
    with pytest.raises(NotImplementedError, match="Orbax"):
        ours["M"](rngs=nnx.Rngs(0)).save()
    (finding,) = convert(MODEL.format(saved=saved)).findings
    assert (finding.rule, finding.severity) == ("API001", "warning")


def test_other_things_that_are_saved_are_found() -> None:
    assert rules_of(MODEL.format(saved="n")) == ["API001"]
    assert not convert(MODEL.format(saved="n")).complete


def test_a_model_that_saves_itself_as_it_runs_is_found() -> None:
    source = MODEL.format(saved="self.state_dict()").replace(
        "return self.q(x)", "torch.save(self.state_dict(), self.path)\n        return self.q(x)"
    )
    assert not convert(source).complete

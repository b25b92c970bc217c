"""Parameters that are numbers by their hints or defaults, and that a call of the file hands a tensor."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

CALL = "\n\ndef use(x: torch.Tensor):\n    return helped(x, {given})\n"
BRANCH = "def helped(x: torch.Tensor, by{hint}):\n    if by > 1:\n        x = x.abs().sum(0)\n    return x\n"
SLICE = "def helped(x: torch.Tensor, n{hint}):\n    return torch.cat((x[n:], x[:n]))\n"
ROUNDS = "def helped(x, n{hint}):\n    for _ in range(n + 1):\n        x = x * 2\n    return x\n"
SIZE = "def helped(x: torch.Tensor, n{hint}):\n    return x + torch.zeros(n)\n"


@pytest.mark.parametrize(
    ("source", "rule"),
    [(BRANCH, "DYN002"), (SLICE, "DYN003"), (ROUNDS, "DYN003"), (SIZE, "DYN003")],
    ids=["branch", "slice", "rounds", "size"],
)
@pytest.mark.parametrize("hint", [": int", ": int = 1", "=1"])
def test_what_it_decides_is_decided_by_a_tensor(source: str, rule: str, hint: str) -> None:
    code = source.format(hint=hint)
    assert rule in rules_of(code + CALL.format(given="x.argmax()"))
    assert rules_of(code + CALL.format(given="x.shape[0]")) == []


@pytest.mark.parametrize(
    "source",
    [
        "def helped(x: torch.Tensor, by: float = 2.0):\n    return x * by + by\n",
        "def helped(x: torch.Tensor, by: float = 2.0):\n    return x if by is None else x * by\n",
        "def helped(x: torch.Tensor, by: float = 2.0):\n    if isinstance(by, float) and by > 1:\n"
        "        x = x.abs().sum(0)\n    return x\n",
    ],
    ids=["arithmetic", "none", "told apart"],
)
def test_what_a_tensor_is_as_good_for(source: str) -> None:
    assert rules_of(source + CALL.format(given="x.mean()")) == []


def test_a_call_on_the_host_hands_numbers() -> None:
    host = "\n\ndef main():\n    x = torch.ones(3)\n    print(helped(x, x.argmax()))\n"
    assert rules_of(SLICE.format(hint=": int") + host) == []

"""What a file does as it is run, outside of all functions, is not traced: numbers may be taken out of arrays."""

from __future__ import annotations

import numpy as np

from tests.convert.tools import HEADER, convert, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x).abs().sum()


if __name__ == "__main__":
    model = M()
    with torch.no_grad():
        model.fc.weight.fill_(1.0)
        model.fc.bias.fill_(0.5)
    out = model(torch.ones(1, 2))
    found = [out.item(), (out * torch.ones(2)).tolist(), float(out)]
    if out > 4:
        found.append("large")
    while out > 2:
        out = out - 1
    found += [(out * i).item() for i in range(2)]
"""


def test_numbers_of_a_script() -> None:
    result = convert(SOURCE)
    assert result.complete, result.findings
    theirs: dict = {"__name__": "__main__"}
    ours: dict = {"__name__": "__main__"}
    exec(HEADER + SOURCE, theirs)
    exec(result.code, ours)
    assert str(ours["found"]) == str(theirs["found"])
    np.testing.assert_equal(np.asarray(ours["out"]), theirs["out"].detach().numpy())


def test_a_function_of_a_script_may_be_traced() -> None:
    for line in (
        "take = lambda: torch.ones(1).item()",
        "class N(M):\n    def forward(self, x):\n        return self.fc(x).tolist()",
    ):
        assert {"API002", "DYN004"} & set(rules_of(SOURCE + f"\n\n{line}\n"))

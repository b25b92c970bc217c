"""Functions that give back Python numbers made of tensors run on the host: nothing of them is traced."""

from __future__ import annotations

import libcst as cst
import numpy as np
import pytest
import torch

from migrator import convert_source
from migrator.analyze import host_results
from tests.convert.tools import loaded, pair

HEAD = """
import random
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor):
        return self.fc(x)

"""


def found(lines: str) -> list[str]:
    text = HEAD + "".join(f"    {line}\n" for line in lines.strip().splitlines())
    return [f.rule for f in convert_source(text).findings if f.blocks]


HOST = {
    "a number": """
def act(self, x: torch.Tensor):
    q = self.forward(x)
    return q.max(1)[1].item()""",
    "a number or one that is drawn": """
def act(self, x: torch.Tensor, epsilon):
    if random.random() > epsilon:
        action = self(x).argmax().item()
    else:
        action = random.randrange(3)
    return action""",
    "lists of lists": """
def decode(self, x: torch.Tensor, mask: torch.Tensor):
    best = []
    history = list(x)
    for score, ends in zip(self(x), mask.long().sum(1)):
        path = [score.argmax().item()]
        for step in history[:ends]:
            path.append(int(step.sum()))
        path.reverse()
        best.append(path)
    return best""",
    "several numbers": """
@torch.no_grad()
def act(self, x: torch.Tensor):
    p = self(x).softmax(-1)
    a = p[0].argmax()
    return a.item(), p[0, a].log().item(), 3""",
    "what a mask selects": """
def accuracy(self, x: torch.Tensor, y: torch.Tensor):
    kept = self(x)[y >= 0]
    return float((kept.argmax(1) == y[y >= 0]).float().mean())""",
    "what is reckoned of numbers": """
def f1(self, x: torch.Tensor, y: torch.Tensor):
    hit = (self(x).argmax(1) * y).sum().item()
    missed = ((1 - self(x).argmax(1)) * y).sum().item()
    score = 2 * hit / (2 * hit + missed + 1e-8)
    return -score * 100 / len(y)""",
    "what a loop counts": """
def accuracy(self, batches: list):
    right, seen = 0, 0
    for x, y in batches:
        right += (self(x).argmax(1) == y).sum().item()
    return right / max(len(batches), 1)""",
    "the mean of a list of numbers": """
def errors(self, x: torch.Tensor, y: torch.Tensor):
    all_of_them = [(one - two).abs().sum().item() for one, two in zip(x, y)]
    return round(sum(all_of_them) / len(all_of_them), 3)""",
}
TRACED = {
    "a number of a tensor of its own": """
@staticmethod
def rates(top: float, depth: int):
    return [x.item() for x in torch.linspace(0, top, depth)]""",
    "a size": """
def head(self, x: torch.Tensor):
    n = int((x > 0).sum().item())
    return self(x)[:n]""",
    "only a number in the middle": """
def scaled(self, x: torch.Tensor):
    if x.max().item() > 3:
        x = x[:1]
    return self(x)""",
    "a number times a tensor": """
def scaled(self, x: torch.Tensor):
    return self(x[:1]) * (x.max().item() > 3) + x.sum().item()""",
    "a tensor is added to a number": """
def total(self, x: torch.Tensor):
    total = x.max().item()
    total += self(x).sum()
    return total * range(int(total.item()))[0]""",
    "the forward pass calls what is reckoned": """
def share(self, x: torch.Tensor):
    return x.max().item() / 3
def forward(self, x: torch.Tensor):
    return self.fc(x) * self.share(x)""",
    "the forward pass reads it": """
@property
def peak(self):
    return self.fc.weight.max().item()
def forward(self, x: torch.Tensor):
    return self.fc(x) * self.peak""",
    "the forward pass calls it": """
def peak(self, x: torch.Tensor):
    return x.max().item()
def forward(self, x: torch.Tensor):
    return self.fc(x) * self.peak(x)""",
    "one of two": """
def peak(self, x: torch.Tensor):
    top = x.max().item()
    if top > 3:
        top = x * 2
    return top""",
}

RETURNED = {
    "a number beside a tensor without a gradient": """
@torch.no_grad()
def act(self, x: torch.Tensor):
    p = self(x).softmax(-1)
    a = p[0].argmax()
    return a.item(), p[0, a].log()""",
    "a number beside a tensor of integers": """
def act(self, x: torch.Tensor):
    a = self(x).argmax(-1)
    return a[0].item(), a""",
    "a number beside what is not known": """
def act(self, x: torch.Tensor, y):
    return self(x).sum().item(), y""",
    "a number of a tensor of its own by another name": """
def rates(self, depth):
    steps = torch.arange(depth) / 3
    last = steps[-1].item()
    return last""",
    "a number beside what is differentiated": """
def act(self, x: torch.Tensor):
    p = self(x).softmax(-1)
    a = p[0].argmax()
    return a.item(), p[0, a].log()""",
    "the forward pass itself": """
def forward(self, x: torch.Tensor):
    return self.fc(x).max().item()""",
}


FREE = {
    "def rates(top, depth):\n    return [x.item() for x in torch.linspace(0, top, depth)]\n": [
        "DYN004"
    ],
    "def rates(x, depth):\n    steps = torch.arange(depth) * x\n    return steps.tolist()\n": [],
}


@pytest.mark.parametrize("text", FREE)
def test_numbers_of_own_tensors(text: str) -> None:
    assert [f.rule for f in convert_source(f"import torch\n\n\n{text}").findings] == FREE[text]


@pytest.mark.parametrize("name", HOST)
def test_numbers_for_python(name: str) -> None:
    assert found(HOST[name]) == []


@pytest.mark.parametrize("name", RETURNED)
def test_numbers_that_are_given_back_as_they_are(name: str) -> None:
    """They are Python's where nothing is traced: of the same type and value."""
    lines = "".join(f"    {line}\n" for line in RETURNED[name].strip().splitlines())
    theirs, ours, _ = loaded(HEAD + lines)
    model, port = pair(theirs, ours, "Net()")
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    method = "rates" if "rates" in lines else "act" if "act" in lines else "__call__"
    given = [5] if method == "rates" else [x, 7] if ", y)" in lines else [x]
    arrays = [one.numpy() if isinstance(one, torch.Tensor) else one for one in given]
    want, got = getattr(model, method)(*given), getattr(port, method)(*arrays)
    for one, other in zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]:
        if isinstance(one, torch.Tensor):
            np.testing.assert_allclose(other, one.detach().numpy(), rtol=1e-5)
        else:
            assert type(other) is type(one)
            assert other == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("name", TRACED)
def test_tensors_go_on(name: str) -> None:
    assert any(rule.startswith("DYN") for rule in found(TRACED[name]))


def test_a_name_that_is_given_itself_many_times_is_looked_into_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in the attention of a Swin: names of which each is made of the others took longer than anybody waits."""
    turns = "".join(f"    a, b = b + {i}, a\n    a += b\n    b += a\n" for i in range(40))
    source = f"import torch\n\n\ndef f(a: torch.Tensor, b: torch.Tensor):\n{turns}    return a, b\n"
    looked, is_read = [0], host_results._Body.is_read

    def counted(body: host_results._Body, node: cst.BaseExpression) -> bool:
        looked[0] += 1
        assert looked[0] < 2_000
        return is_read(body, node)

    monkeypatch.setattr(host_results._Body, "is_read", counted)
    assert convert_source(source).complete
    assert looked[0] > 100

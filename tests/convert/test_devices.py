"""Questions about devices have the answer that torch gives where all tensors lie on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.convert.tools import X, body, both, check, convert, rules_of

QUESTIONS = [
    ("x.device != self.w.device", False),
    ("x.device == self.w.device", True),
    ("x.device == torch.device('cpu')", True),
    ("torch.device('cuda:1') == x.device", False),
    ("x.device.type == 'cuda'", False),
    ("'cpu' == x.device.type", True),
    ("x.device.type in ('cuda', 'xpu')", False),
    ("x.device.type not in ['mps']", True),
    ("str(x.device) == 'cuda:0'", False),
    ("x.device is None", False),
    ("x.is_cuda or x.device.index is not None", False),
    ("isinstance(x.data, torch.cuda.FloatTensor)", False),
    ("not x.is_cuda and isinstance(x.device.type, str)", True),
]

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        device = x.device
        if QUESTION:
            x = x + 1
        return x + (self.w if QUESTION else 3 * self.w)
"""


HELD = [(q.replace("x.device", "device"), a) for q, a in QUESTIONS if "is None" not in q]


@pytest.mark.parametrize(("question", "answer"), [*QUESTIONS, *HELD], ids=str)
def test_the_branch_that_runs_stays(question: str, answer: bool) -> None:
    module, port, code = both(MODEL.replace("QUESTION", question))
    expected = module(X[:, :3])
    assert torch.equal(expected, X[:, :3] + (2 if answer else 3))
    np.testing.assert_array_equal(port(X[:, :3].numpy()), expected.detach().numpy())
    assert "if " not in code.partition("def __call__")[2] or "index" in question


def test_texts_about_devices_are_what_they_are_in_torch() -> None:
    source = "def f(x: torch.Tensor):\n    return x.device.type, x.device.index, str(x.device)\n"
    assert 'return "cpu", None, "cpu"' in body(source, "def f")
    source = (
        "def f(x: torch.Tensor, y: torch.Tensor):\n    assert x.device == y.device\n    return x\n"
    )
    assert "assert" not in body(source, "def f")
    assert rules_of("def f(x: torch.Tensor):\n    return x.device.other\n") == ["API001"]


@pytest.mark.parametrize(
    "call",
    [
        "to(device)",
        "to(self.device, non_blocking=True)",
        "to(args.local_rank)",
        'to("cuda:0")',
        'to(f"cuda:{args.gpu}")',
        "cuda(args.gpu, non_blocking=True)",
        "cpu()",
    ],
)
def test_what_only_moves_something_unknown_goes(call: str) -> None:
    source = f"""
class Trainer:
    def __init__(self, model, device, args):
        self.device = device
        self.model = model.{call}
        model.{call}
"""
    result = convert(source)
    assert result.complete
    assert result.code.rstrip().endswith("self.device = device\n        self.model = model")


@pytest.mark.parametrize("call", ["to(other)", "to(device, copy=True)", "to(device, torch.half)"])
def test_what_may_cast_something_unknown_is_a_finding(call: str) -> None:
    source = (
        f"class T:\n    def __init__(self, model, device, other):\n        self.m = model.{call}\n"
    )
    assert not convert(source).complete


def test_the_device_of_what_is_not_known_where_tensors_only_go_there() -> None:
    result = convert(
        """
def f(logits, mask=None):
    if isinstance(logits, tuple):
        where = logits[0].device
        every = torch.cat([one.to(where) for one in logits], dim=0)
    return every if mask is None else every * mask.to(where)
"""
    )
    assert result.complete
    assert ".device" not in result.code


FLIPPED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        names = ("sin", "cos")
        last = x.size(1) - 1
        back = getattr(torch.arange(last, -1, -1), ("cpu", "cuda")[x.is_cuda])().long()
        return self.fc(x[:, back])
"""


def test_a_device_by_its_name_is_where_the_values_are_anyway() -> None:
    check(FLIPPED)
    assert "API001" in rules_of(FLIPPED.replace('("cpu", "cuda")[x.is_cuda]', "names[x.is_cuda]"))
    other = FLIPPED.replace('("cpu", "cuda")[x.is_cuda]', '("cpu", "abs")[len(names) - 1]')
    assert "API001" in rules_of(other)

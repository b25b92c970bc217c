"""Texts that are full names of torch's layers: whoever looks them up gets torch's."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

SOURCE = """
import importlib

KNOWN = {{"torch.nn.Tanh": nn.Tanh}}


def find(name):
    space, _, last = name.rpartition(".")
    return getattr(importlib.import_module(space), last)


class M(nn.Module):
    def __init__(self, activation={text}):
        super().__init__()
        self.act = {found}

    def forward(self, x):
        return self.act(x) if str(x.dtype) == "torch.float32" else x
"""


@pytest.mark.parametrize("text", ['"torch.nn.GELU"', "'torch.nn.functional.relu'", '"torch.tanh"'])
def test_what_looks_it_up_gets_a_layer_of_torch(text: str) -> None:
    assert "API001" in rules_of(SOURCE.format(text=text, found="find(activation)()"))


@pytest.mark.parametrize("text", ['"torch.nn.Tanh"', '"torch.nn"', '"torch.float16"', '"GELU"'])
def test_other_texts(text: str) -> None:
    assert rules_of(SOURCE.format(text=text, found="KNOWN[activation]()")) == []


@pytest.mark.parametrize(
    "text",
    [
        "torch.nn.modules",
        "torch.optim.lr_scheduler",
        "torch.distributed",
        "torch.hub",
        "torch.version",
    ],
)
def test_a_module_by_its_name(text: str) -> None:
    source = f'import warnings\n\nwarnings.filterwarnings("ignore", module="{text}")\n\ndef f(x):\n    return x\n'
    assert rules_of(source) == []


def test_a_text_about_it() -> None:
    source = 'def f(x):\n    """torch.nn.GELU"""\n    "torch.nn.GELU"\n    return x, "torch.nn.GELU is meant"\n'
    assert rules_of(source) == []

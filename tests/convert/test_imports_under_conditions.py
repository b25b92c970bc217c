"""A name that is torch's where a condition holds, and something else where it does not."""

from __future__ import annotations

import pytest

from migrator.convert import convert_source

HEAD = """
import importlib.util
import torch

AVAILABLE = importlib.util.find_spec("torch") is not None

"""


@pytest.mark.parametrize(
    "otherwise",
    [
        "gelu = torch.relu",
        "def gelu(x):\n        return x",
        "from mylib import gelu",
        "gelu = None",
    ],
)
@pytest.mark.parametrize("read", ["gelu(x)", "isinstance(x, gelu)"])
def test_it_is_a_finding_where_the_name_is_read(otherwise: str, read: str) -> None:
    """The import would go, and the name would be bound in the other branch alone."""
    source = (
        f"{HEAD}if AVAILABLE:\n    from torch.nn.functional import gelu\nelse:\n    {otherwise}\n"
    )
    found = convert_source(f"{source}\n\ndef f(x: torch.Tensor):\n    return {read}\n")
    assert [f.rule for f in found.findings if f.blocks] == ["API001"]
    assert convert_source(source + "\n\ndef f(x: torch.Tensor):\n    return x + 1\n").complete


def test_an_annotation_reads_it_too() -> None:
    source = (
        f"{HEAD}if AVAILABLE:\n    from torch.nn.attention.flex_attention import BlockMask\n"
        "else:\n    BlockMask = torch.Tensor\n\n\ndef f(x: BlockMask):\n    return x\n"
    )
    assert not convert_source(source).complete


@pytest.mark.parametrize("condition", ["torch.__version__ >= '2.0'", "hasattr(torch, 'relu')"])
def test_a_condition_that_is_known_settles_it(condition: str) -> None:
    source = (
        f"{HEAD}if {condition}:\n    from torch.nn.functional import gelu\nelse:\n    gelu = None\n"
        "\n\ndef f(x: torch.Tensor):\n    return gelu(x)\n"
    )
    found = convert_source(source)
    assert found.complete, found.findings
    assert "jax.nn.gelu(x" in found.code


def test_a_name_that_nothing_else_binds_is_torchs() -> None:
    source = f"{HEAD}if AVAILABLE:\n    from torch.nn.functional import gelu\n"
    found = convert_source(f"{source}\n\ndef f(x: torch.Tensor):\n    return gelu(x)\n")
    assert found.complete, found.findings
    assert "jax.nn.gelu(x" in found.code

"""``if mask.any():`` around what does nothing where the mask is empty."""

from __future__ import annotations

import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import HEADER, convert, rules_of

HEAD = "def f(x: torch.Tensor, mask: torch.BoolTensor):\n    x = x * 2\n"


def _source(lines: str) -> str:
    return HEAD + textwrap.indent(lines, "    ") + "\n    return x\n"


@pytest.mark.parametrize(
    "lines",
    [
        "if mask.any():\n    x = x.masked_fill(mask, 0.0)",
        "if torch.any(mask):\n    x[mask] = float('-inf')",
        "if mask.any().item():\n    x.masked_fill_(mask, -1)",
        "if bool((x > 1).any()):\n    pass",
        "y = x\nif (y > 1).any():\n    x = torch.masked_fill(x, y > 1, 1e4)",
        "if mask is not None and mask.any().item():\n    x = x.float().masked_fill(mask[:, :], 0.0).type_as(x)",
        "if mask.any():\n    x[mask] = torch.log(1 + x[mask] ** 2)",
        "if (x > 0).sum() > 0:\n    x[x > 0] = 0",
        "if (x > 1).any():\n    print('large', x.max())\n    x = x.masked_fill(x > 1, 1.0)",
        "if (x > 1).any():\n    x[x > 1] = 0.5\n    x[x > 1] = x[x > 1] * 2",
        "if mask.sum() > 0:\n    x[mask] = x[mask] * 3",
        "if int(mask.sum()) != 0:\n    x[mask] += 1",
        "if x is not None and torch.sum(mask).item() >= 1:\n    x[mask] = 2",
        "if len(x[mask]) > 0:\n    x[mask] = 1 / (x[mask] + 3)",
        "if x[mask].numel() > 0:\n    x[mask] *= x[mask]",
        "if x[mask].shape[0] > 0:\n    x = x.masked_fill(mask, 1.5)",
        "if mask.any():\n    if x.dim() == 2:\n        x = x.masked_fill(mask, 1.0)\n    elif x.dim() == 3:\n"
        "        x = x.masked_fill(mask.unsqueeze(0), 2.0)\n    else:\n        x.masked_fill_(mask.bool(), 3)",
    ],
)
def test_the_body_runs_and_changes_what_the_mask_selects(lines: str) -> None:
    if "pass" in lines:
        assert rules_of(_source(lines)) == ["DYN002"]
        return
    result = convert(_source(lines))
    assert result.complete, result.findings
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + _source(lines), theirs)
    exec(result.code, ours)
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    for mask in (torch.zeros(2, 3, dtype=torch.bool), x > 0):
        got = jax.jit(ours["f"])(jnp.asarray(x.numpy()), jnp.asarray(mask.numpy()))
        np.testing.assert_array_equal(got, theirs["f"](x, mask))


@pytest.mark.parametrize(
    "lines",
    [
        "if mask.any():\n    x = x + mask",
        "if x.sum() > 0 and mask.any():\n    x = x.masked_fill(mask, 0)",
        "if mask is None or mask.any():\n    x = x.masked_fill(mask, 0)",
        "if mask.any() and x.dim() == 2:\n    x = x.masked_fill(mask, 0)",
        "if mask.any():\n    x = x.masked_fill(mask[:, ::-1], 0)",
        "if mask.any():\n    x = x.abs().masked_fill(mask, 0)",
        "if mask.any():\n    x = x.float().masked_fill(mask, 0)",  # a half stays one where the mask is empty
        "x = x.long()\nif mask.any():\n    x = x.float().masked_fill(mask, 0).type_as(x)",
        "if mask.any():\n    if x.dim() == 2:\n        x = x.masked_fill(mask, 1.0)\n    else:\n        x = x * 2",
        "if mask.any():\n    x = x.masked_fill(~mask, 0)",
        "if mask.any():\n    x = x.masked_fill(mask, x.mean())",
        "if mask.any():\n    x = x.masked_fill(mask, 0)\nelse:\n    x = x + 1",
        "if mask.any():\n    x[mask] = x[mask].mean()",
        "if mask.sum() > 1:\n    x[mask] = 0",
        "if x.sum() > 0:\n    x[mask] = 0",
        "if mask.all():\n    x = x.masked_fill(mask, 0)",
        "if (x > 0).any():\n    x = x.masked_fill(mask, 0)",
        "if (x > 1).any():\n    x[x > 1] = 0.5\n    x[x > 0.3] = 0",
    ],
)
def test_other_bodies_are_branches(lines: str) -> None:
    assert "DYN002" in rules_of(_source(lines))


def test_checks_of_numbers_that_are_taken_out() -> None:
    """``assert (x < 0).sum().item() == 0`` is no other check than ``assert not (x < 0).any()``."""
    source = """
    class M(nn.Module):
        def forward(self, x, n: int):
            assert (x < 0).sum().item() == 0, f"{x.min().item()}"
            if x.max().item() >= n:
                raise ValueError(f"{x.max().item()} is too large")
            if self.training and int(x.max()) > n:
                raise ValueError
            assert float(x.sum()) > 1
            return x * 2
    """
    assert rules_of(source) == []
    findings = migrator.analyze_source(HEADER + textwrap.dedent(source))
    assert [(f.rule, f.blocks) for f in findings] == [("TRC011", False)] * 4
    more = source.replace("raise ValueError\n", "n = x.max().item()\n")
    assert "DYN004" in rules_of(more)


@pytest.mark.parametrize(
    "message",
    [
        'print("nan", x.sum())',
        'logger.warning(f"{torch.isnan(x).sum()} of {x.numel()}")',
        'self.log.error("nan: %s", x.max().item())',
        'warnings.warn("nan: {}".format(x.max()))',
        'print("nan")\n    if x.dim() > 2:\n        raise ValueError("nan")',
    ],
)
def test_messages_that_go_by_a_value_are_left_out(message: str) -> None:
    """What is said of a value changes no result: nothing is known to say while JAX traces."""
    lines = f"""
if torch.isnan(x).any():
    {message}
x = x * 2
if x.sum() > 0:
    {message.splitlines()[0]}
    x = x + 1
"""
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.log = logging.getLogger()\n\n    def forward(self, x):\n"
    source = f"import logging, warnings\n\nlogger = logging.getLogger()\n\n\n{source}"
    source += textwrap.indent(lines.strip(), "        ") + "\n        return x\n"
    result = convert(source)
    assert result.complete, result.findings
    assert {f.rule for f in result.findings} == {"TRC011"}
    assert "nan" not in result.code.partition("def __call__")[2].replace("isnan", "")
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(result.code, ours)
    for number in (1.0, -1.0):
        x = np.full((2, 3), number, np.float32)
        want = theirs["M"]()(torch.from_numpy(x))
        got = jax.jit(lambda x: ours["M"](rngs=None)(x))(x)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "message",
    [
        'print("nan", self.told(x))',
        'print("nan", x.add_(1))',
        "print(y := x.sum())",
        'self.writer.log("nan")',
        'self.warn("nan")',
    ],
)
def test_what_may_do_more_than_say_something_stays(message: str) -> None:
    source = f"""
    class M(nn.Module):
        def __init__(self, writer):
            super().__init__()
            self.writer = writer

        def told(self, x):
            self.writer.add(1)
            return 1

        def forward(self, x):
            if torch.isnan(x).any():
                {message}
            return x
    """
    assert "DYN002" in rules_of(source)

"""What the tests of the passes share."""

from __future__ import annotations

import textwrap

from migrator.convert import ConvertResult, convert_source

HEADER = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


"""


def convert(source: str) -> ConvertResult:
    """Convert a snippet under the usual imports."""
    return convert_source(HEADER + textwrap.dedent(source).strip("\n") + "\n")


def body(source: str, name: str) -> str:
    """The converted definition called ``name``, without what stands before it."""
    code = convert(source).code
    start = code.index(f"{name}(")
    start = code.rindex("\n", 0, start) + 1
    lines = code[start:].splitlines()
    kept = [lines[0]]
    for line in lines[1:]:
        if line and not line[0].isspace() and not line.startswith(")"):
            break
        kept.append(line)
    return "\n".join(kept).rstrip() + "\n"


def function(*lines: str) -> str:
    """The converted lines of a function of two tensors ``x`` and ``y``, an int ``n`` and a mask."""
    head = "def f(x: torch.Tensor, y: torch.Tensor, n: int, mask: torch.BoolTensor):\n"
    text = body(head + "".join(f"    {line}\n" for line in lines), "def f")
    return textwrap.dedent("\n".join(text.splitlines()[1:])).strip("\n")


def module(init: str, forward: str = "return x") -> str:
    """The converted class of a module with these lines in ``__init__`` and ``forward``."""
    source = "class M(nn.Module):\n    def __init__(self, dim: int):\n        super().__init__()\n"
    source += textwrap.indent(textwrap.dedent(init), " " * 8) + "\n"
    source += (
        "    def forward(self, x):\n" + textwrap.indent(textwrap.dedent(forward), " " * 8) + "\n"
    )
    return body(source, "class M")


def rules_of(source: str) -> list[str]:
    """The codes of what blocks a conversion."""
    return [f.rule for f in convert(source).findings if f.blocks]

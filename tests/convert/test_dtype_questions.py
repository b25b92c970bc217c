"""``dtype.is_floating_point``: what torch's dtypes say of themselves, and JAX's do not."""

from __future__ import annotations

import pytest
import torch

from tests.convert.tools import convert, loaded

SOURCE = """
from typing import Optional

import torch
from torch import nn


def check(dtype: Optional[torch.dtype]) -> str:
    if dtype is None or dtype.is_floating_point:
        return "floating"
    return "complex" if dtype.is_complex else "whole"


def of(x: torch.Tensor) -> str:
    if x.dtype.is_floating_point and not x.dtype.is_complex:
        return check(x.dtype)
    return "no " + check(x.dtype)


CONSTANT = (torch.float16.is_floating_point, torch.int32.is_floating_point, torch.complex64.is_complex)
"""


@pytest.mark.parametrize("name", "float32 float16 bfloat16 int32 uint8 bool complex64".split())
def test_they_say_the_same(name: str) -> None:
    theirs, ours, _ = loaded(SOURCE)
    dtype = getattr(torch, name)
    x = torch.zeros(2, dtype=dtype)
    y = ours["jnp"].zeros(2, name)
    assert ours["of"](y) == theirs["of"](x)
    assert ours["check"](y.dtype) == theirs["check"](dtype)
    assert tuple(map(bool, ours["CONSTANT"])) == theirs["CONSTANT"]


def test_the_others_are_findings() -> None:
    source = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.dtype.is_signed\n"
    assert [f.rule for f in convert(source).findings if f.blocks] == ["API001"]

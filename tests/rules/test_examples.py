"""Each op definition's example is what the converter writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from migrator import convert_source
from rules.definitions import index

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def f(
    x: Tensor, y: Tensor, z: Tensor, i: torch.LongTensor, j: torch.LongTensor, mask: torch.BoolTensor, n: int
):
    """


def examples() -> Iterator[tuple[str, str]]:
    """(torch source, JAX source) of every op definition."""
    seen = set()
    for rules in index("op").values():
        for rule in rules:
            if id(rule) not in seen:
                seen.add(id(rule))
                yield from rule.example.items()


def convert(expression: str) -> str:
    """What an expression over the example names becomes; of an in-place call, what is assigned."""
    in_place = expression.partition("(")[0].endswith("_")
    text = f"{HEAD}{expression}\n    return x\n" if in_place else f"{HEAD}return {expression}\n"
    functions = [
        n for n in ast.parse(convert_source(text).code).body if isinstance(n, ast.FunctionDef)
    ]
    statement = next(f for f in functions if f.name == "f").body[0]
    assert isinstance(statement, (ast.Return, ast.Assign, ast.Expr))
    assert statement.value is not None
    return ast.unparse(statement.value)


@pytest.mark.parametrize(("source", "expected"), sorted(set(examples())))
def test_example(source: str, expected: str) -> None:
    wanted = ast.unparse(ast.parse(expected, mode="eval").body)
    assert convert(source).strip("()") == wanted.strip("()")

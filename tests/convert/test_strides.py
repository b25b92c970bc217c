"""``is_contiguous()``: what is the same for both answers converts, anything else is a finding."""

from __future__ import annotations

import textwrap

import pytest

from tests.convert.tools import function, rules_of


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("if not x.is_contiguous():\n    x = x.contiguous()\nreturn x + 1", "return x + 1"),
        ("if x.is_contiguous() is False:\n    raise ValueError('no')\nreturn x", None),
        ("if not x.is_contiguous():\n    raise ValueError('no')\nreturn x", "return x"),
        ("return (x if x.is_contiguous() else x.contiguous()) + 1", "return x + 1"),
        (
            "if x.is_contiguous():\n    y = x.view(-1)\nelse:\n    y = x.contiguous().view(-1)\nreturn y",
            "y = x.reshape(-1)\nreturn y",
        ),
        ("assert x.is_contiguous(), 'why'\nreturn x", "assert True, 'why'\nreturn x"),
        ("if x.is_contiguous():\n    return x * 2\nreturn x * 3", None),
        ("return x * 2 if x.is_contiguous() else x * 3", None),
        ("y = x.is_contiguous(memory_format=torch.channels_last)\nreturn x * y", None),
    ],
)
def test_answers_that_lead_to_the_same(source: str, made: str | None) -> None:
    if made is not None:
        assert function(*source.split("\n")) == made
    else:
        found = rules_of("def f(x: torch.Tensor):\n" + textwrap.indent(source, "    "))
        assert found == ["API002"]

"""Calls that say how a tensor lies in memory, how many pieces it is cut into, or nothing that JAX has to do."""

from __future__ import annotations

import pytest

from tests.convert.tools import function, rules_of


@pytest.mark.parametrize(
    "call",
    [
        "x.contiguous(memory_format=torch.channels_last)",
        "x.contiguous(torch.channels_last)",
        "x.to(memory_format=torch.channels_last)",
        'x.to("cuda", memory_format=torch.preserve_format)',
        "x.clone(memory_format=torch.contiguous_format)",
    ],
)
def test_memory_formats_go_away(call: str) -> None:
    assert function(f"return {call}") == "return x"


def test_a_memory_format_as_a_value_is_a_word() -> None:
    lines = (
        "form = torch.channels_last if n else torch.contiguous_format",
        "return x.to(memory_format=form)",
    )
    assert function(*lines) == ('form = "channels_last" if n else "contiguous_format"\nreturn x')


def test_layouts() -> None:
    assert function("return torch.zeros(n, layout=torch.strided)") == "return jnp.zeros((n,))"
    source = "def f(n: int):\n    return torch.zeros(n, layout=torch.sparse_coo)\n"
    assert rules_of(source) == ["API001"]


def test_an_assignment_that_says_nothing_goes_away() -> None:
    assert function("# dense", "x = x.contiguous()  # now", "return x") == (
        "# dense\n# now\nreturn x"
    )
    assert function("# dense", "x = x.cpu()", "if n:", "    x = x.cpu()", "return x") == (
        "# dense\nif n:\n    pass\nreturn x"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a, b = x.chunk(2)", "a, b = jnp.split(x, 2)"),
        ("a, *b = x.chunk(3)", "a, *b = chunk(x, 3)"),
        ("a = x.chunk(3, dim=-1)", "a = jnp.split(x, 3, axis=-1)"),
        ("a = x.chunk(3)", "a = chunk(x, 3)"),
        ("a = x.chunk(2, dim=n)", "a = chunk(x, 2, axis=n)"),
    ],
)
def test_pieces_that_need_not_be_equal(line: str, expected: str) -> None:
    assert function(line, "return a").splitlines()[0] == expected

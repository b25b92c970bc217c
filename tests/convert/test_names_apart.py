"""What a definition of an operation binds or calls is not what the file means by the same name."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import convert, loaded

BODIES = {
    "variables of a comprehension": """
    s = x[:1]
    i = sizes
    return s.expand(*i), s.expand(i)
""",
    "a generator": """
    return x[:1].expand(*(n for n in sizes))
""",
    "functions of Python": """
    len, tuple, enumerate = 1, 2, 3
    return x[:1].expand(sizes) * len + tuple - enumerate
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_expand(name: str) -> None:
    theirs, ours, _ = loaded(f"def f(x: torch.Tensor, sizes: list[int]):{BODIES[name]}")
    x = torch.arange(8.0).reshape(2, 4)
    want, got = theirs["f"](x, [3, -1]), ours["f"](jnp.asarray(x.numpy()), [3, -1])
    for one, other in zip(want, got, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


def test_a_function_of_the_file() -> None:
    source = """
    def len(x):
        return 2

    def f(x: torch.Tensor, sizes: list[int]):
        return x.expand(sizes)
    """
    assert "builtins.len(sizes)" in convert(source).code


def test_what_is_filled_as_it_is_made_is_made_full() -> None:
    source = """
    def f(b: int, n: int):
        a = torch.FloatTensor(b, n).fill_(0)
        c = torch.empty(b, dtype=torch.long).zero_()
        return a, c, torch.ones_like(torch.empty(b, n))
    """
    code = convert(source).code
    assert "jnp.full((b, n), 0, jnp.float32)" in code
    assert "jnp.zeros((b,), jnp.int32)" in code
    assert "jnp.ones((b, n), jnp.float32)" in code


def test_a_call_that_hands_over_rngs_already() -> None:
    source = (
        "from flax import nnx\n\n\nclass M(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.fc = nn.Linear(n, n)\n\n    def forward(self, x):\n        return self.fc(x)\n\n\n"
        "def made(n, key):\n    return M(n, rngs=nnx.Rngs(key))\n"
    )
    code = convert(source).code
    compile(code, "port.py", "exec")
    assert "return M(n, rngs=nnx.Rngs(key))" in code

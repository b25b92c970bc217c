"""Lists of a module that its forward pass puts tensors into."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import body, check, loaded

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = {start}

    def more(self, x):
        self.c.append(x)

    def forward(self, x):
        {lines}
        return torch.stack(tuple(self.c)).sum(0) * len(self.c)
"""


@pytest.mark.parametrize(
    ("start", "lines"),
    [
        ("[]", "self.c.append(x)"),
        ("[]", "self.c += [x]"),
        ("[]", "self.c = self.c + [x]"),
        ("[]", "self.c.extend([x, x * 2])"),
        ("[]", "self.c.insert(0, x); self.c = self.c[:2]"),
        ("[]", "self.c = []; [self.more(x * i) for i in range(3)]"),
        ("[]", "self.c.clear(); self.c.append(x)"),
        ("[]", "self.c.append(x); self.c.pop(0) if len(self.c) > 2 else None"),
        ("[]", "last, self.c = self.c, [x]"),
        ("list()", "self.more(x)"),
        ("[torch.zeros(4)]", "self.c.append(x[0])"),
        ("[torch.zeros(4)]", "self.c += [x[0]]"),
        ("()", "self.c += (x,)"),
        ("()", "self.c = self.c + (x,)"),
        ("[None] * 2", "self.c[0] = x; self.c[1] = x if self.c[1] is None else self.c[1] + x"),
        (
            "[None, None]",
            "for i in range(2): self.c[i] = x if self.c[i] is None else self.c[i] * 2",
        ),
        ("[None for _ in range(2)]", "self.c[1] = self.c[0]; self.c[0] = x; self.c[1] = x"),
    ],
)
def test_every_call_finds_what_the_last_has_left(start: str, lines: str) -> None:
    source = SOURCE.format(start=start, lines=lines.replace("; ", "\n        "))
    theirs, ours, _ = loaded(source)
    for jit in (True, False):
        model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
        run = nnx.jit(lambda m, x: m(x)) if jit else lambda m, x: m(x)
        for i in range(3):
            x = np.full((2, 4), i + 1.0, np.float32)
            np.testing.assert_allclose(run(port, jnp.asarray(x)), model(torch.tensor(x)))
        assert len(port.c) == len(model.c)


def test_a_list_that_nothing_is_put_into_later() -> None:
    source = SOURCE.format(start="[torch.ones(4), torch.ones(4)]", lines="n = [1]; n.append(2)")
    source = source.replace("self.c.append(x)", "return x")
    assert "nnx.List(" in check(source)


def test_numbers_are_no_data() -> None:
    source = SOURCE.format(start="[]", lines="self.n.append(len(x))").replace(
        "self.c = []", "self.c = [torch.ones(4)]\n        self.n = []"
    )
    assert "self.n = []" in body(source, "class M")

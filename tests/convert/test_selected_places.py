"""``x[index[mask]] = v``: one value at the places that a mask selects."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded, rules_of

BODIES = {
    "the nucleus of a row": """
    s, order = torch.sort(x[0], descending=True)
    remove = torch.cumsum(F.softmax(s, dim=-1), dim=-1) > 0.6
    remove[..., 1:] = remove[..., :-1].clone()
    remove[..., 0] = 0
    y = x[0].clone()
    chosen = order[remove]
    y[chosen] = -float("inf")
    return y
""",
    "row by row": """
    s, order = torch.sort(x, descending=True)
    remove = torch.cumsum(F.softmax(s, dim=-1), dim=-1) > 0.6
    y = x.clone()
    for i in range(x.size(0)):
        chosen = order[i][remove[i]]
        y[i][chosen] = -1.0
    return y
""",
    "in a column": """
    order = torch.argsort(x[:, 0])
    y = x.clone()
    y[order[x[:, 1] > 0], 1] = 7.0
    return y
""",
    "in the last axis": """
    order = torch.argsort(x[0])
    y = x.clone()
    y[..., order[x[0] > 0]] = 7
    return y
""",
    "rows of indices": """
    order = torch.argsort(x, dim=1)
    y = x[0].clone()
    y[order[x[:, 0] > 0]] = 0.5
    return y
""",
    "nothing": """
    order = torch.argsort(x[0])
    y = x[0].clone()
    y[order[x[0] > 100]] = 7
    return y
""",
    "where a mask holds": """
    y = x.clone()
    y[torch.where(x > 0)] = 7
    y[torch.where(x.sum(-1) > 0)] = 0
    y[(x < -1).nonzero(as_tuple=True)] = 3
    return y
""",
    "counted from the end": """
    order = torch.argsort(x[0]) - 6
    y = x[0].clone()
    y[order[x[0] > 0]] = 7
    return y
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_value_at_selected_places(name: str) -> None:
    theirs, ours, _ = loaded(f"def f(x: torch.Tensor):{BODIES[name]}")
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(3))
    got = jax.jit(ours["f"])(jnp.asarray(x.numpy()))
    np.testing.assert_allclose(got, theirs["f"](x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "y[chosen] = x[chosen]",  # placed by data
        "y[chosen] = 1\n    return y, chosen",
        "y[chosen] += 1",
        "y = y[:2]\n    y[chosen] = 1",
        "rows = [y]\n    rows[0] = z\n    rows[0][chosen] = 1",
        "z[chosen] = 1\n    y[chosen] = 1",
    ],
)
def test_what_is_more_than_places_is_found(lines: str) -> None:
    source = f"""
def f(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor):
    order = torch.argsort(x)
    chosen = order[x > 0]
    {lines}
    return y
"""
    assert "DYN001" in rules_of(source)

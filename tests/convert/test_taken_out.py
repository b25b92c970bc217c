"""Numbers taken out of tensors that are only computed with, and what Python chooses of two."""

from __future__ import annotations

import pytest
import torch

from tests.convert.tools import compare_gradients, loaded, rules_of, under

X = torch.linspace(-1, 1.7, 12).reshape(3, 4)
T = torch.tensor([[0, 1, 2, 3], [3, 3, 0, 1], [2, 0, 0, 1]])
HEAD = "def f(x: torch.Tensor, t: torch.LongTensor):\n"
LINES = {
    "an int and one": "n = max(int((t != 0).sum()), 1); return x.sum() / n",
    "one and an item": "n = max(1, (t > 7).sum().item()); return (x * 2).sum() / n",
    "a float": "n = max(float((t > 1).sum()), 1.0); return x.sum() / n",
    "an item of a float": "n = max(x.abs().sum().item(), 1e-8); return x / n",
    "a tensor that is larger": "return x / max(x.abs().sum(), 1)",
    "a tensor that is smaller": "return x / max((x * x).mean(), 2.0)",
    "as large": "return x.sum() / max((x * 0).sum() + 1, 1)",
    "as large, the other way": "return x.sum() / max(1, (x * 0).sum() + 1)",
    "the smaller of two": "return x * min(2.0, x.abs().sum()) + min(x.max(), x.abs().max()) * x",
    "a tensor of integers": "return x.sum() / max(t.sum(), 1)",
    "a truncated float": "return x * int(x.sum() * 4)",
    "a truncated float, bounded": "return x / max(int(x.abs().sum()), 1)",
    "used directly": "return x / (2 * max(t.max(), 1))",
    "a list of axes": "d = torch.arange(1, x.dim()).tolist(); return x.mean(dim=d)",
    "a list of positions": "return torch.stack([x[:, i] for i in torch.arange(4, device=x.device).tolist()])",
}


@pytest.mark.parametrize("name", list(LINES))
def test_values_and_gradients(name: str) -> None:
    compare_gradients(under(HEAD, LINES[name]), X, T)


def test_what_is_written_for_them() -> None:
    _, _, code = loaded(under(HEAD, LINES["an int and one"]))
    assert "n = jnp.maximum((t != 0).sum(), 1)\n" in code
    _, _, code = loaded(under(HEAD, LINES["a list of axes"]))
    assert "d = list(range(1, x.ndim))\n" in code


@pytest.mark.parametrize(
    "lines",
    [
        "return torch.zeros(max(t.max(), 3))",
        "n = max(int(t.max()), 3); return torch.zeros(n) + x.sum()",
        "return F.one_hot(t, max(t.max() + 1, 4))",
        "n = max(t.sum(), 1); return [x] * n",
        "n = max(t.sum(), t.max(), 1); return x / n",
        "n = max(x.sum(0)[:1], 1); return x.sum() / n",  # with axes, or a number without
        "return t * max(t.sum(), 1)",  # a number does not widen integers
        "return t * t.sum().item()",
        "return t.to(torch.uint8) * int(x.sum())",
        "return x.half() * max(x.abs().max(), 1)",
        "n = max([t.sum(), t.max()]); return x / n",
        "n = max(t[0]); return x / n",
        "losses = []; losses.append(x.sum()); losses.append(x.mean()); return x / min(losses)",
        "d = torch.arange(t.max()).tolist(); return x.sum() * len(d)",
        "d = torch.arange(0, 1, 0.25).tolist(); return x * d[1]",
    ],
)
def test_what_has_to_be_a_number(lines: str) -> None:
    assert {"DYN002", "DYN003", "DYN004"} & set(rules_of(under(HEAD, lines)))

"""``x.item()`` and ``float(x)`` in a forward pass, where a 0-d array without gradient does instead."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import X, both, loaded, rules_of

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        LINE
        return y * y
"""

COMPUTED = {
    "item": "y = y / y.abs().max().item()",
    "float": "scale = float((y * y).mean())\n        y = y * scale",
    "one element": "y = y * self.fc.weight[0, :1].item()",
    "name": "most = y.max().item()\n        y = y - most",
    "count": "y = y * float((x > 0).sum())",
    "unread list": "log = []\n        log.append(1.0 - y.mean().item())",
}


@pytest.mark.parametrize("line", COMPUTED.values(), ids=COMPUTED)
def test_what_is_computed_with_stays_an_array_that_has_no_gradient(line: str) -> None:
    module, port, _ = both(MODEL.replace("LINE", line))
    x = X.clone().requires_grad_()
    expected = module(x)
    np.testing.assert_allclose(jax.jit(port)(X.numpy()), expected.detach(), rtol=1e-5, atol=1e-6)
    expected.sum().backward()
    gradient = jax.grad(lambda x: port(x).sum())(jnp.asarray(X.numpy()))
    np.testing.assert_allclose(gradient, x.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "if y.max().item() > 3:\n            y = y[:1]",
        "y = y + torch.zeros(int(y.max().item()), 4).sum()",
        "log = []\n        log.append(y.mean().item())\n        y = y + len(log)",
        "log = []\n        log.append(y.mean().item())\n        y = y + sum(log)",
        "log = x\n        log.append(y.mean().item())",
        "scale = y.max().item()\n        y = y * max(scale, 1.0)",
        # a Python number would leave a half as it is
        "y = y.half() * y.max().item()",
    ],
)
def test_what_needs_the_number_is_a_finding(line: str) -> None:
    assert rules_of(MODEL.replace("LINE", line))


NUMPY = """def top(x: torch.Tensor):
    return x.topk(2)[1].detach().cpu().numpy()


class M(nn.Module):
    def forward(self, x):
        {forward}

    def act(self, x):
        return self(x).argmax(-1).numpy()
"""


def test_an_array_that_the_forward_pass_takes_to_numpy_is_a_finding() -> None:
    assert rules_of(NUMPY.format(forward="return x[top(x[0])]")) == ["TRC007"]
    assert rules_of(NUMPY.format(forward="return x[torch.as_tensor(x.numpy() > 0)]")) == ["TRC007"]


def test_an_array_that_is_taken_out_beside_the_forward_pass() -> None:
    _, ours, _ = loaded(NUMPY.format(forward="return x * 2"))
    x = jnp.asarray(X.numpy())
    np.testing.assert_array_equal(ours["M"]().act(x), [3, 3, 3])
    np.testing.assert_array_equal(ours["top"](x[1]), [3, 2])


DECODED = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x){more}

    def decode(self, x, lengths):
        return self._best(self.fc(x), lengths)

    def _best(self, x, lengths):
        history = [row.argsort() for row in x]
        paths = []
        for i in range(lengths.shape[0]):
            best = x[-1].argmax()
            path = [best.item()]
            for step in reversed(history[:lengths[i]]):
                best = step[path[-1]]
                path.append(best.item())
            path.reverse()
            paths.append(path)
        return paths
"""


def test_numbers_that_another_method_gives_back() -> None:
    theirs, ours, _ = loaded(DECODED.format(more=""))
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    lengths = [2, 0, 3]
    want = model.decode(X, torch.tensor(lengths))
    assert port.decode(jnp.asarray(X.numpy()), jnp.array(lengths)) == want


def test_numbers_that_the_forward_pass_asks_for() -> None:
    more = " * self.decode(x, torch.tensor([2]))[0][0]"
    assert "DYN003" in rules_of(DECODED.format(more=more))

"""Functions that ask for gradients of what they are handed: they are written out where they are called."""

from __future__ import annotations

import pytest

from migrator.findings import Finding
from tests.convert.test_asked_gradients import LEAF, U, outcome
from tests.convert.tools import convert

HELPERS = """
from torch.autograd import grad as torch_grad


def gradient(y, x, grad_outputs=None):
    '''Gradient of y by x.'''
    if grad_outputs is None:
        grad_outputs = torch.ones_like(y)
    grad = torch.autograd.grad(y, [x], grad_outputs=grad_outputs, create_graph=True)[0]
    return grad


def divergence(y, x):
    div = 0.
    for i in range(y.shape[-1]):
        div += torch_grad(y[..., i], x, torch.ones_like(y[..., i]), create_graph=True)[0][..., i:i + 1]
    return div


def laplace(y, x):
    grad = gradient(y, x)
    return divergence(grad, x)


def penalty(outputs, inputs, lam=10.0, norm=2):
    grads = torch_grad(outputs=outputs, inputs=inputs, grad_outputs=torch.ones_like(outputs),
                       create_graph=True, retain_graph=True, only_inputs=True)[0]
    grads = grads.view(grads.size(0), -1)
    return ((grads.norm(norm, dim=1) - 1) ** 2).mean() * lam


def of_twice(x, y):
    x = x * 2
    return torch_grad(x, y, torch.ones_like(x), create_graph=True)[0]

"""
CASES = {
    "one": U + "return gradient(u, x)",
    "with what is given": U + "w = u.detach() * 2; g = gradient(u, x, grad_outputs=w); return g",
    "with an expression": U + "g = gradient(u, x, torch.ones_like(u) * 3); return g",
    "with what may be None": U + "return gradient(u, x, self.h)",
    "twice": U + "g = gradient(u, x); return joined(g, gradient(gradient(u, x), x))",
    "within an expression": U + "return joined(u + gradient(u, x).sum(1, keepdim=True), u)",
    "of an expression": LEAF + "return gradient(torch.tanh(self.a(x)).sum(), x)",
    "by names": U + "return gradient(x=x, y=u)",
    "columns": LEAF + "u = self.a(torch.tanh(x)); "
    "return torch.cat([gradient(u[:, i:i + 1], x) for i in range(4)], 1)",
    "the divergence": LEAF + "u = self.a(torch.tanh(x)); return divergence(u, x)",
    "one that calls others": U + "return laplace(u, x)",
    "names that are taken": LEAF + "grads = self.net(x); norm = 3; i = penalty(grads, x, norm=1); "
    "return joined(i * norm, grads)",
    "a parameter that gets another value": U + "y = of_twice(u, x); return joined(y, u, x)",
    "the names of the parameters": LEAF + "y = x; x = self.net(y); return of_twice(x, y)",
    "under a condition": U + "g = u; if self.training: g = gradient(u, x); return joined(g, u)",
    "another function of its name": "gradient = lambda a, b: a * 2; return gradient(self.net(x), x)",
}
REFUSED = {
    "by choice": U + "h = self.a(x); return penalty(u, x) if self.training else h.sum()",
    "as a value": U + "f = gradient; return f(u, x)",
    "in an inner function": U + "f = lambda v: gradient(v, x); return f(u)",
    "with what is unpacked": U + "return gradient(*(u, x))",
}


@pytest.mark.parametrize("case", CASES)
def test_a_helper_is_written_out(case: str) -> None:
    assert outcome(CASES[case], _needed(CASES[case]))


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused(case: str) -> None:
    assert outcome(REFUSED[case], _needed(REFUSED[case])) is None


def _needed(body: str) -> str:
    """The helpers that a body may call; one that nobody calls has no conversion."""
    head, *functions = HELPERS.split("\n\n\n")
    bodies = {one.split("(")[0].strip().removeprefix("def "): one for one in functions}
    found: list[str] = []
    left = [name for name in bodies if f"{name}(" in body or f"{name};" in body]
    while left:
        name = left.pop()
        if name not in found:
            found.append(name)
            left += [n for n in bodies if n != name and f" {n}(" in bodies[name].partition(":")[2]]
    if "gradient = lambda" in body:
        found = []
    return head + "\n\n\n" + "\n\n\n".join(bodies[n] for n in bodies if n in found) + "\n\n\n"


METHODS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)

    def grad(self, u, x):
        return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]

    @staticmethod
    def by(u, x):
        return torch.autograd.grad(u.sum(), x, create_graph=True)[0]

    def forward(self, x: torch.Tensor):
        x.requires_grad_()
        u = torch.tanh(self.fc(x))
        CALL
"""


def _told(source: str) -> list[Finding]:
    return [one for one in convert(source).findings if one.blocks]


HEADER = "import torch\nfrom torch import nn\n\n\n"


def test_methods() -> None:
    call = "return self.grad(u, x) + self.by(u, x) + Net.by(u, x)"
    found = convert(HEADER + METHODS.replace("CALL", call))
    assert not [one for one in found.findings if one.blocks]
    assert "def grad" not in found.code
    assert "def by" not in found.code


@pytest.mark.parametrize("call", ["f = self.by; return self.grad(u, x) + f(u, x)", "return u"])
def test_methods_that_are_called_otherwise_stay(call: str) -> None:
    assert _told(HEADER + METHODS.replace("CALL", call))


def test_a_method_that_a_subclass_has_of_its_own_stays() -> None:
    other = "\n\nclass Other(Net):\n    def grad(self, u, x):\n        return u\n"
    call = "return self.grad(u, x) + self.by(u, x)"
    assert _told(HEADER + METHODS.replace("CALL", call) + other)


def test_a_helper_that_writes_is_refused() -> None:
    source = HEADER + METHODS.replace("CALL", "return self.grad(u, x) + self.by(u, x)")
    assert not _told(source)
    line = "return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]"
    for write in ("u.mul_(2)", "self.u = u", "x[0] = u"):
        assert _told(source.replace(line, f"{write}\n        {line}"))


def test_the_name_that_its_import_gives_it_does_not_matter() -> None:
    source = (
        "import torch\nfrom torch.autograd import grad as by\n\n\ndef f(net, x: torch.Tensor):\n"
        "    x.requires_grad_()\n    return by(net(x).sum(), x, create_graph=True)[0]\n"
    )
    assert not _told(source)

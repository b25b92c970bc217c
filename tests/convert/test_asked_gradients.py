"""``torch.autograd.grad`` where a program computes: JAX differentiates functions, so its lines become one."""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, sides

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(5))
PROGRAM = """
class Keeper:
    def keep(self, t):
        self.t = t

    def get(self):
        return self.t


def joined(*tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 1)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout()
        self.h = None

    def net(self, x):
        return self.b(torch.tanh(self.a(x)))

    def same(self, t):
        return t

    def keep(self, t):
        self.h = torch.sin(t)
        return self.h * 2

    def with_kept(self, t):
        return self.net(t * self.h)

    def forward(self, x):
        BODY
"""
LEAF = "x = x.detach().requires_grad_(True); "
U = LEAF + "u = self.net(x); "
LEAVES = {
    "detached": LEAF,
    "asked": "x.requires_grad_(True); ",
    "said": "x = x.detach(); x.requires_grad = True; ",
    "itself": "x = x.requires_grad_(); ",
    "variable": "x = torch.autograd.Variable(x, requires_grad=True); ",
    "computed": "x = (x * 2).clone(); x.requires_grad_(); ",
}
CHAINS = {
    "a line": ("u = self.net(x); ", "u"),
    "two lines": ("h = torch.tanh(self.a(x)); u = self.b(h); ", "u"),
    "a sum": ("u = self.net(x); ", "u.sum()"),
    "an expression": ("", "self.net(x).sum()"),
    "a number": ("u = self.net(x).sum(); ", "u"),
    "a loop": ("h = x; for f in (self.a, self.b): h = torch.tanh(f(h)); u = h; ", "u"),
    "writes": (
        "h = self.a(x) * 2; h += 1; h[:, 0] = 3.0; u = self.b(torch.tanh(h)); ",
        "u",
    ),
    "a choice": (
        "h = self.a(x); h = torch.tanh(h) if self.training else torch.sin(h); u = self.b(h); ",
        "u",
    ),
    "a list": (
        "hs = []; for i in range(3): hs.append(torch.tanh(self.a(x)) * i); u = self.b(sum(hs)); ",
        "u",
    ),
}
ONES, KEPT = "torch.ones_like(u)", "create_graph=True"
CASES = {
    "not kept": U + f"g = torch.autograd.grad(u, x, {ONES})[0]; return joined(g, u.detach())",
    "kept in training": U
    + f"g = torch.autograd.grad(u, x, {ONES}, create_graph=self.training)[0]; return g",
    "another reads a line": LEAF + "h = torch.tanh(self.a(x)); n = h.shape[0]; m = h.mean(); "
    f"u = self.b(h); g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return joined(g * m, h, u / n)",
    "unpacked": U + f"(g,) = torch.autograd.grad(u, x, {ONES}, {KEPT}); return g",
    "lists": U + f"g, = torch.autograd.grad([u], [x], [{ONES}], {KEPT}); return g",
    "named": U
    + "g = torch.autograd.grad(outputs=[u], inputs=[x], grad_outputs=[torch.ones_like(u)],"
    f" {KEPT}, retain_graph=True, only_inputs=True)[0]; return -g",
    "two outputs": U + f"v = self.b(torch.sin(x)); g = torch.autograd.grad([u, v], [x], [{ONES},"
    f" 2 * torch.ones_like(v)], {KEPT})[0]; return joined(g, u)",
    "two numbers": U + "u = u.sum(); v = self.b(torch.sin(x)).sum(); "
    f"g = torch.autograd.grad((u, v), x, {KEPT})[0]; return joined(g, u)",
    "two inputs": "t = x[:, :1].detach().requires_grad_(); " + LEAF + "u = self.net(x) * t; "
    f"gx, gt = torch.autograd.grad(u, (x, t), {ONES}, {KEPT}); return joined(gx, gt)",
    "two calls": "t = x[:, :1].detach().requires_grad_(); " + LEAF + "u = self.net(x) * t; "
    f"gx = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; "
    f"gt = torch.autograd.grad(u, t, {ONES}, {KEPT})[0]; return joined(gx, gt)",
    "two calls of which one is for both": "t = x[:, :1].detach().requires_grad_(); "
    + LEAF
    + f"u = self.net(x) * t; gs = torch.autograd.grad(u, (t, x), {ONES}, {KEPT}); "
    f"g = torch.autograd.grad(u, x, u, {KEPT})[0]; return joined(gs[0], gs[1], g)",
    "an inner tensor": LEAF + "h = torch.sin(x); u = self.net(h); "
    f"g = torch.autograd.grad(u, h, {ONES}, {KEPT})[0]; return g",
    "second": U + f"g = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; "
    f"k = torch.autograd.grad(g, x, torch.ones_like(g), {KEPT})[0]; return joined(g, k, u)",
    "mixed": "t = x[:, :1].detach().requires_grad_(); " + LEAF + "u = self.net(x * t); "
    f"u_x = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; "
    f"u_xt = torch.autograd.grad(u_x, t, torch.ones_like(u_x), {KEPT})[0]; "
    f"u_xtt = torch.autograd.grad(u_xt, t, torch.ones_like(u_xt), {KEPT})[0]; "
    "return joined(u_x, u_xt, u_xtt)",
    "beside one by another": "t = x[:, :1].detach().requires_grad_(); " + LEAF + "u = self.net(x); "
    f"v = self.a(x) * t; u_x = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; "
    f"v_t = torch.autograd.grad(v, t, torch.ones_like(v), {KEPT})[0]; return joined(u_x, v_t)",
    "third": U + f"g = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; "
    f"k = torch.autograd.grad(g, x, torch.ones_like(g), {KEPT})[0]; "
    f"l = torch.autograd.grad(k.pow(2).sum(), x, {KEPT})[0]; return joined(g, k, l)",
    "a row of the second": U + f"g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; "
    f"k = torch.autograd.grad(g[:, 0].sum(), x, {KEPT})[0][:, 1]; return joined(g, k)",
    "the Laplacian": U + f"g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; t = 0; "
    f"for i in range(4): t = t + torch.autograd.grad(g[:, i].sum(), x, {KEPT})[0][:, i]; return t",
    "the Laplacian in a line": U + f"g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return sum("
    f"torch.autograd.grad(g[:, i].sum(), x, {KEPT})[0][:, i] for i in range(4))",
    "the trace": LEAF + "s = self.a(torch.tanh(x)); t = 0.0; for i in range(4): "
    f"t = t + torch.autograd.grad(s[:, i], x, torch.ones_like(s[:, i]), {KEPT})[0][:, i]; "
    "return joined(t, s)",
    "in training": LEAF + "s = self.a(torch.tanh(x)); t = s; if self.training: "
    f"t = torch.autograd.grad((s ** 2).sum(), x, {KEPT})[0]; return joined(t, s)",
    "with gradients": "x = x.detach(); with torch.enable_grad(): x.requires_grad_(); "
    f"u = self.net(x); g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return joined(g, u)",
    "steps": "for i in range(3): x = x.detach().requires_grad_(True); e = self.net(x).sum(); "
    "x = x - 0.1 * torch.autograd.grad(e, x)[0]; return x",
    "steps that are trained": LEAF + "for i in range(3): e = self.net(x).sum(); "
    f"x = x - 0.1 * torch.autograd.grad(e, x, {KEPT})[0]; return x",
    "a line of the last round": LEAF
    + "h = torch.zeros(1); z = 0; for i in range(3): z = z + h.sum(); "
    f"h = torch.tanh(self.a(x)); e = self.b(h); g = torch.autograd.grad(e.sum(), x, {KEPT})[0]; "
    "x = (x - g).detach().requires_grad_(True); return joined(z, g)",
    "what begins as a number": LEAF + "u = 0; n = u + 1; u = u + self.net(x); "
    f"g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return g * n",
    "parts": LEAF + "q, p = torch.split(x, 2, dim=-1); e = self.net(torch.cat([q, p], -1)).sum(); "
    f"dq, dp = torch.autograd.grad(e, (q, p), {KEPT}); return torch.cat([dp, -dq], -1)",
    "a constant between": LEAF + "h = torch.tanh(self.a(x)); c = 3.0; u = self.b(h) * c; "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "a product of vectors": LEAF + "f = self.a(torch.tanh(x)); e = torch.ones_like(f) * 2; "
    f"v = torch.autograd.grad(f, x, e, {KEPT})[0]; return joined(f, (v * e).sum(-1))",
    "unused": U + f"g, = torch.autograd.grad(u.sum(), x, {KEPT}, allow_unused=True); return g",
    "asked for behind the lines": "h = torch.tanh(self.a(x.requires_grad_())); y = self.b(h); r = y.sum(); "
    "if self.training: ones = [torch.ones_like(y)]; g = torch.autograd.grad([y], [x], grad_outputs=ones,"
    f" {KEPT}, retain_graph=True)[0]; assert g is not None; r = -g; return r",
    "its shape is kept": "self.h = x.shape[1] // 2; x = x.requires_grad_(True); "
    f"return torch.autograd.grad(self.net(x).sum(), x, {KEPT})[0] * self.h",
    "a choice at the end": U + "u = u * 2 if self.training else u; "
    f"g = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; return joined(g, u)",
    "a constant by choice": LEAF
    + "s = torch.ones(4); s = torch.sin(self.a(x)) if self.training else s; "
    f"return torch.autograd.grad((s * x).sum(), x, {KEPT})[0]",
    "a name that gets another value": LEAF + "h = self.a(x); z = h.sum(); h = torch.ones(4); "
    f"u = self.net(x * h); g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return joined(g, z)",
    "what it does not go by": U + "g = torch.autograd.grad(u.sum(), x)[0]; "
    "with torch.no_grad(): y = x + 0.1 * g.sign(); return self.a(y)",
}
REFUSED = {
    "an input of an input": LEAF + "t = torch.sin(x); u = self.net(x) * t; "
    f"gx, gt = torch.autograd.grad(u, (x, t), {ONES}, {KEPT}); return joined(gx, gt)",
    "a line before the block": LEAF + "h = self.a(x); with torch.enable_grad(): u = self.b(h); "
    f"g = torch.autograd.grad(u, x, {ONES}, {KEPT})[0]; return g",
    "what the last round computed": LEAF + "h = x * 0; g = 0; for i in range(3): "
    f"e = self.net(x + h).sum(); g = g + torch.autograd.grad(e, x, {KEPT})[0]; h = torch.sin(x); "
    "return g",
    "another name": "y = x.detach().requires_grad_(True); x = y; u = self.net(y); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "an entry": "d = {'x': x.detach().requires_grad_(True)}; x = d['x']; u = self.net(d['x']); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "an entry of before": "x = x.detach(); h = [x]; x = x.requires_grad_(True); u = self.net(h[0]); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "an attribute": "self.h = x.detach().requires_grad_(True); x = self.h; u = self.net(self.h); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "a constant that changes": LEAF + "c = 2.0; h = torch.tanh(self.a(x)) * c; c = 3.0; "
    f"u = self.b(h) * c; return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "a constant that is written": LEAF + "c = torch.ones(4); h = torch.tanh(self.a(x)) * c; "
    f"c[0] = 3.0; u = self.b(h) * c; return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "state": LEAF + "self.h = torch.tanh(self.a(x)); u = self.b(self.h); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "statistics": LEAF + f"return torch.autograd.grad(self.norm(x).pow(3).sum(), x, {KEPT})[0]",
    "dropout": LEAF + f"return torch.autograd.grad(self.drop(x).pow(3).sum(), x, {KEPT})[0]",
    "noise": LEAF + f"return torch.autograd.grad((x * torch.rand(4)).sum(), x, {KEPT})[0]",
    "a line that runs by choice": LEAF + "h = self.a(x); e = 1 if self.training else torch.sin(h); "
    "u = self.b(torch.tanh(h)); [t for t in (1,) if t > 1 and (e := h)]; "
    f"g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return g + e",
    "what a method gives back": "y = x.detach().requires_grad_(True); x = self.same(y); "
    f"u = self.net(x * y); return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "what is a tensor already": "y = x.detach().requires_grad_(True); x = torch.as_tensor(y); "
    f"u = self.net(x * y); return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "what an object keeps": LEAF + "d = nn.Module(); d.pos = x; u = self.net(d.pos); "
    f"g = torch.autograd.grad(u.sum(), x, {KEPT})[0]; return joined(g, d.pos)",
    "through one of several": LEAF + "s = self.a(x); hs = [x, 2 * x]; "
    f"return sum(torch.autograd.grad((h * s).sum(), x, {KEPT})[0] for h in hs)",
    "through what is computed before": LEAF
    + "h = torch.sin(x); t = 0; if self.training: s = self.a(x); "
    f"t = torch.autograd.grad((s * h).sum(), x, {KEPT})[0]; return t",
    "by one of several": LEAF + "s = self.a(x); "
    f"return sum(torch.autograd.grad((s * 2).sum(), p, {KEPT})[0] for p in (x, x))",
    "a list of tensors": "ps = [self.a.weight * 1.0, self.a.bias * 1.0]; "
    "u = F.linear(x, ps[0], ps[1]).pow(2).sum(); "
    f"gs = torch.autograd.grad(u, ps, {KEPT}); return joined(*[p - g for p, g in zip(ps, gs)])",
    "a list that is unpacked": "ps = [self.a.weight * 1.0, self.a.bias * 1.0]; u = F.linear(x, *ps).sum(); "
    f"gs = torch.autograd.grad(u, ps, {KEPT}); return joined(gs[0], gs[1])",
    "a list of which nothing is said": "ps = self.same([self.a.weight * 1.0]); u = self.net(x).sum() + sum(t.sum() for t in ps); "
    f"gs = torch.autograd.grad(u, ps, {KEPT}); return joined(*gs)",
    "what a method keeps": LEAF + "self.keep(x); u = self.with_kept(x); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "what a method keeps beside": LEAF + "z = self.keep(x); u = self.with_kept(x); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0] + z.mean()",
    "what an object keeps of it": LEAF + "o = Keeper(); o.keep(x); u = self.net(x * o.get()); "
    f"return torch.autograd.grad(u.sum(), x, {KEPT})[0]",
    "an inner function": LEAF + "h = self.a(x); f = lambda: "
    f"torch.autograd.grad(self.b(h).sum(), x, {KEPT})[0]; return f()",
    "whether there is one": U
    + f"g = torch.autograd.grad(u.sum(), x, {KEPT}, allow_unused=True)[0]; "
    "return x if g is None else g",
    "parameters": "u = self.net(x).sum(); "
    f"g = torch.autograd.grad(u, list(self.parameters()), {KEPT}); return g[0]",
    "through two": LEAF + "s = self.a(torch.tanh(x)); t = 0; for w in (s, x): "
    f"t = t + torch.autograd.grad((s * w).sum(), x, {KEPT})[0]; return t",
    "through what changes": LEAF + "s = self.a(torch.tanh(x)); t = 0; for i in range(3): "
    f"t = t + torch.autograd.grad((s * i).sum(), x, {KEPT})[0]; s = s * 2; return t",
    "through what is added to": LEAF + "s = self.a(torch.tanh(x)); t = x * 0; for i in range(3): "
    f"t = t + torch.autograd.grad((s * t).sum(), x, {KEPT})[0]; return t",
    "through itself": LEAF + "s = self.a(torch.tanh(x)); t = 0; for i in range(3): "
    f"t = t + torch.autograd.grad((s * x).sum(), x, {KEPT})[0]; return t",
}


def _lines(body: str) -> str:
    """A body of ``;`` between its lines; those behind a ``:`` are in its block, up to a return."""
    made, depth = [], 0
    for line in body.split("; "):
        depth = 0 if line.startswith("return ") else depth
        head, colon, rest = line.partition(": ")
        if colon and head.split()[0] in ("for", "with", "if"):
            made.append("    " * depth + head + ":")
            depth += 1
            line = rest
        made.append("    " * depth + line)
        if line.startswith(("hs.append(", "h = torch.tanh(f(h))")):
            depth = 0
    return "\n        ".join(made)


def outcome(body: str, helpers: str = "") -> bool | None:
    """Whether the port gives what torch does, and its gradients; None where it is refused."""
    told, theirs, ours = sides(HEADER + helpers + PROGRAM.replace("BODY", _lines(body)))
    if told:
        return None
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for name in ("a", "b"):
        layer, own = getattr(model, name), getattr(port, name)
        own.kernel[...] = jnp.asarray(layer.weight.detach().numpy().T)
        own.bias[...] = jnp.asarray(layer.bias.detach().numpy())
    want, x = model(X.clone()), jnp.asarray(X.numpy())
    for call in (nnx.jit(lambda module, x: module(x)), lambda module, x: module(x)):
        np.testing.assert_allclose(call(port, x), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    grads = nnx.grad(lambda module: (module(x) ** 2).sum())(port)
    if want.requires_grad:
        (want**2).sum().backward()
    expected = model.a.weight.grad
    expected = torch.zeros(4, 4) if expected is None else expected
    np.testing.assert_allclose(grads["a"]["kernel"][...].T, expected, rtol=1e-4, atol=1e-4)
    return True


@pytest.mark.parametrize("case", CASES)
def test_gradients_in_a_forward_pass(case: str) -> None:
    assert outcome(CASES[case])


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_proven_is_refused(case: str) -> None:
    assert outcome(REFUSED[case]) is None


def _of(leaf: str, chain: str) -> str:
    lines, output = CHAINS[chain]
    ones = f", grad_outputs={ONES}" if output == "u" and chain != "a number" else ""
    return LEAVES[leaf] + lines + f"return torch.autograd.grad({output}, x{ones}, {KEPT})[0]"


@pytest.mark.parametrize("chain", CHAINS)
def test_what_leads_to_a_gradient(chain: str) -> None:
    assert outcome(_of("detached", chain))


@pytest.mark.parametrize("leaf", LEAVES)
def test_what_it_is_taken_by(leaf: str) -> None:
    assert outcome(_of(leaf, "two lines"))


@pytest.mark.sweep
@pytest.mark.parametrize(("leaf", "chain"), list(product(LEAVES, CHAINS)))
def test_every_chain_from_every_leaf(leaf: str, chain: str) -> None:
    assert outcome(_of(leaf, chain))


HELPERS = """
from torch import autograd
from torch.autograd import Variable, grad as gradient


def penalty(net, real, fake):
    alpha = torch.full((real.size(0), 1), 0.3).expand(real.size())
    mixed = Variable(alpha * real.data + (1 - alpha) * fake.data, requires_grad=True)
    prob = net(mixed)
    gradients = gradient(outputs=prob, inputs=mixed, grad_outputs=torch.ones(prob.size()),
                         create_graph=True, retain_graph=True)[0]
    gradients = gradients.view(real.size(0), -1)
    norm = torch.sqrt(torch.sum(gradients ** 2, dim=1) + 1e-12)
    return ((norm - 1) ** 2).mean()


def force(net, x):
    x = x.detach().requires_grad_()
    return -autograd.grad(net(x).sum(), x, create_graph=True)[0]

"""


@pytest.mark.parametrize("call", ["penalty(self.net, x, x + 1)", "force(self.net, x)"])
def test_functions_that_are_handed_a_network(call: str) -> None:
    assert outcome(f"return {call}", HELPERS)


SCRIPT = """
from torch import nn

layer = nn.Linear(4, 4)
x = torch.ones(1, 5, 4, requires_grad=True)
y = layer(x)
print(y.shape)
grad = torch.autograd.grad(y[:, 2, :].sum(), x)[0]


def shown():
    return y.shape, grad


if __name__ == "__main__":
    z = layer(x * 2)
    again = torch.autograd.grad(z.sum(), x)[0]
"""


def test_a_script() -> None:
    told, theirs, ours = sides(HEADER + SCRIPT)
    assert not told
    assert ours["shown"]()[0] == tuple(theirs["shown"]()[0]) == (1, 5, 4)
    assert ours["y_of_x"] is not None
    assert np.asarray(ours["grad"])[0, 3].any() == theirs["grad"].numpy()[0, 3].any()
    assert np.asarray(ours["grad"])[0, 2].any() == theirs["grad"].numpy()[0, 2].any()

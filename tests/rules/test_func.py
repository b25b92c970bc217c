"""Function transforms against torch.func, on functions written in both languages."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch

from rules.ops import func


def f_torch(x, y):
    return (torch.sin(x) * y**2).sum()


def f_jax(x, y):
    return (jnp.sin(x) * y**2).sum()


X, Y = np.linspace(0.1, 1, 3, dtype=np.float32), np.linspace(2, 3, 3, dtype=np.float32)
TX, TY = torch.from_numpy(X), torch.from_numpy(Y)


def same(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
    else:
        np.testing.assert_allclose(np.asarray(got), want.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_derivatives_agree():
    both = (0, 1)
    same(func.grad(f_jax, 1)(X, Y), torch.func.grad(f_torch, 1)(TX, TY))
    same(func.grad(f_jax, both)(X, Y), torch.func.grad(f_torch, both)(TX, TY))
    same(func.jacrev(f_jax)(X, Y), torch.func.jacrev(f_torch)(TX, TY))
    same(func.jacfwd(f_jax, both)(X, Y), torch.func.jacfwd(f_torch, both)(TX, TY))
    same(func.hessian(f_jax)(X, Y), torch.func.hessian(f_torch)(TX, TY))


def test_gradient_comes_before_the_value():
    same(func.gradient_and_value(f_jax)(X, Y), torch.func.grad_and_value(f_torch)(TX, TY))
    got = func.gradient_and_value(lambda x: (x.sum(), x), has_aux=True)(X)
    want = torch.func.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(TX)
    same(got, want)


def test_products_with_the_jacobian_agree():
    same(func.jvp(f_jax, (X, Y), (Y, X)), torch.func.jvp(f_torch, (TX, TY), (TY, TX)))
    for primals, others in (((X,), (TX,)), ((X, Y), (TX, TY))):
        got, pull = func.pullback(lambda *a: jnp.sin(a[0]) * a[-1], *primals)
        want, back = torch.func.vjp(lambda *a: torch.sin(a[0]) * a[-1], *others)
        same(got, want)
        same(pull(jnp.asarray(Y)), back(TY))


def test_vmap_takes_axes_by_torch_names():
    got = func.vmap(f_jax, in_dims=(0, None))(np.stack([X, Y]), Y)
    same(got, torch.vmap(f_torch, in_dims=(0, None))(torch.stack([TX, TY]), TY))
    got = func.vmap(jnp.sin, in_dims=1, out_dims=1)(np.stack([X, Y]))
    same(got, torch.vmap(torch.sin, in_dims=1, out_dims=1)(torch.stack([TX, TY])))


def test_autograd_functional_nests_its_results_alike():
    for inputs, others in ((X, TX), ((X, Y), (TX, TY))):
        one = isinstance(inputs, np.ndarray)
        fj = (lambda x: f_jax(x, x)) if one else f_jax
        ft = (lambda x: f_torch(x, x)) if one else f_torch
        same(func.jacobian(fj, inputs), torch.autograd.functional.jacobian(ft, others))
        same(func.hessian_at(fj, inputs), torch.autograd.functional.hessian(ft, others))


def test_control_flow():
    assert func.cond(True, lambda x: x + 1, lambda x: x - 1, (1,)) == 2
    n, total = func.loop(lambda n, t: n < 5, lambda n, t: [n + 1, t + n], (0, 0))
    assert (int(n), int(total)) == (5, 10)

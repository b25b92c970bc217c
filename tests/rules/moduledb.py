"""Runs every layer definition straight against torch on the samples of torch's own module database.

``python -m tests.rules.moduledb NAME…`` reports on single classes, without a name on all of them.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from torch.testing._internal.common_modules import ModuleInput, module_db

import rules.layers
from migrator.weights import load_state_dict, to_state_dict
from rules.registry import LAYERS, Unsupported

ROOT = Path(__file__).resolve().parents[2]
REFUSED = frozenset({"nn.Softmax", "nn.LogSoftmax", "nn.Softmin"})
"""Classes whose 0-d samples raise in JAX."""
FACTOR, FLOOR = 10, 16 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Outcome:
    """``status`` is "verified", "flagged", "missing" or "wrong"; ``why`` explains the last three."""

    name: str
    status: str
    why: str = ""
    samples: int = 0


@cache
def definitions() -> dict[str, Callable[..., Any]]:
    """torch class name → definition, every file under rules/layers imported."""
    for module in pkgutil.iter_modules(rules.layers.__path__):
        importlib.import_module(f"rules.layers.{module.name}")
    return {name: found[0].function for name, found in LAYERS.items()}


def infos() -> dict[str, Any]:
    """``nn.Conv2d`` → its entry in torch's module database."""
    return {info.name: info for info in module_db}


# --- values ---------------------------------------------------------------------------------------


def to_jax(value: Any) -> Any:
    """A constructor or forward argument of torch as its counterpart in JAX."""
    if isinstance(value, torch.Tensor):
        return jnp.asarray(value.detach().cpu().numpy())
    if isinstance(value, torch.nn.Module):
        return build(type(value), *constructor_arguments(value))
    if isinstance(value, torch.dtype):
        return jnp.dtype(str(value).removeprefix("torch.").replace("64", "32"))
    if type(value) in (tuple, list):
        return type(value)(to_jax(v) for v in value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, dict):
        return {k: to_jax(v) for k, v in value.items()}
    if value in (torch.nn.functional.relu, torch.relu):
        return jax.nn.relu
    if value is torch.nn.functional.gelu:
        return lambda x: jax.nn.gelu(x, approximate=False)
    if value is torch.nn.PairwiseDistance:
        raise TypeError(f"no counterpart of {value}")
    return value


def constructor_arguments(module: torch.nn.Module) -> tuple[tuple, dict]:
    """Arguments that build a module like the given one (only for classes that samples pass as arguments)."""
    if isinstance(module, torch.nn.TransformerEncoderLayer):
        attention = module.self_attn
        kwargs = {
            "d_model": attention.embed_dim,
            "nhead": attention.num_heads,
            "dim_feedforward": module.linear1.out_features,
            "dropout": module.dropout.p,
            "activation": module.activation,
            "batch_first": attention.batch_first,
            "norm_first": module.norm_first,
            "bias": attention.in_proj_bias is not None,
        }
        return (), kwargs
    if isinstance(module, torch.nn.LayerNorm):
        return (module.normalized_shape, module.eps), {}
    raise TypeError(f"no constructor arguments known for {type(module).__name__}")


def build(cls: type, args: tuple, kwargs: dict) -> Any:
    """The Flax counterpart of ``cls(*args, **kwargs)`` by its definition."""
    definition = definitions()[f"torch.nn.{cls.__name__}"]
    args = tuple(to_jax(a) for a in args)
    kwargs = {k: to_jax(v) for k, v in kwargs.items() if k not in ("device", "dtype")}
    return definition(*args, rngs=nnx.Rngs(0), **kwargs)


def leaves(tree: Any) -> list[Any]:
    """Tensors and arrays of nested tuples, lists and dicts, in order; None stays in place."""
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, (tuple, list)):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def fresh(tree: Any, dtype: torch.dtype = torch.float32) -> Any:
    """A copy whose floating tensors have ``dtype`` and are leaves, each its own."""
    if isinstance(tree, torch.Tensor):
        made = tree.detach().clone()
        made = made.to(dtype) if made.is_floating_point() else made
        return made.requires_grad_(tree.requires_grad)
    if type(tree) in (tuple, list):
        return type(tree)(fresh(v, dtype) for v in tree)
    if isinstance(tree, dict):
        return {k: fresh(v, dtype) for k, v in tree.items()}
    return copy.deepcopy(tree)


# --- the two sides ----------------------------------------------------------------------------------


def cotangents(outputs: list[Any]) -> list[np.ndarray | None]:
    """Fixed weights of the outputs in the loss that is differentiated; None for outputs without gradient."""
    random = np.random.default_rng(0)
    return [
        random.standard_normal(o.shape)
        if isinstance(o, torch.Tensor) and o.is_floating_point() and o.requires_grad
        else None
        for o in outputs
    ]


def run_torch(module: torch.nn.Module, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Outputs, gradients and buffers after one call, by name, as numpy."""
    outputs = leaves(module(*args, **kwargs))
    weights = cotangents(outputs)
    pairs = [
        (o, torch.from_numpy(w).to(o.dtype)) for o, w in zip(outputs, weights) if w is not None
    ]
    inputs = [t for t in leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
    parameters = dict(module.named_parameters())
    found: dict[str, Any] = {f"output {i}": o for i, o in enumerate(outputs)}
    if pairs and (inputs or parameters):
        over = [*inputs, *parameters.values()]
        grads = torch.autograd.grad(sum((o * w).sum() for o, w in pairs), over, allow_unused=True)
        filled = [torch.zeros_like(t) if g is None else g for t, g in zip(over, grads)]
        names = [f"gradient of input {i}" for i in range(len(inputs))]
        names += [f"gradient of {name}" for name in parameters]
        found |= dict(zip(names, filled))
    found |= {
        f"buffer {name}": b for name, b in module.named_buffers() if name in module.state_dict()
    }
    return {k: v.detach().numpy() if isinstance(v, torch.Tensor) else v for k, v in found.items()}


def run_flax(module: Any, torch_args: tuple, torch_kwargs: dict, weights: list) -> dict[str, Any]:
    """The same of the port. ``weights`` are the cotangents of the outputs."""
    flat, tree = jax.tree.flatten(
        (torch_args, torch_kwargs), is_leaf=lambda x: isinstance(x, (torch.Tensor, torch.Size))
    )
    tensors = [isinstance(t, torch.Tensor) for t in flat]
    wanted = [i for i, t in enumerate(flat) if tensors[i] and t.requires_grad]
    flat = [to_jax(t) for t in flat]
    is_module = isinstance(module, nnx.Module)
    graph, params, rest = nnx.split(module, nnx.Param, ...) if is_module else (None, {}, {})

    def loss(params: Any, inputs: list) -> Any:
        target = nnx.merge(graph, params, copy.deepcopy(rest)) if is_module else module
        values = list(flat)
        for i, value in zip(wanted, inputs):
            values[i] = value
        args, kwargs = jax.tree.unflatten(tree, values)
        outputs = leaves(target(*args, **kwargs))
        total = sum((o * w).sum() for o, w in zip(outputs, weights) if w is not None)
        after = (
            to_state_dict(target) if is_module and not isinstance(total, jax.core.Tracer) else {}
        )
        return total, (outputs, after)

    inputs = [flat[i] for i in wanted]
    _, (outputs, after) = loss(params, inputs)
    found: dict[str, Any] = {f"output {i}": o for i, o in enumerate(outputs)}
    if any(w is not None for w in weights):
        (grads, input_grads), _ = jax.grad(loss, argnums=(0, 1), has_aux=True)(params, inputs)
        found |= {f"gradient of input {i}": g for i, g in enumerate(input_grads)}
        if is_module:
            named = to_state_dict(grads, like=module)
            found |= {f"gradient of {name}": g for name, g in named.items()}
    found |= {f"buffer {name}": value for name, value in after.items()}
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def differences(own: dict, reference: dict, port: dict) -> Iterator[str]:
    """What is wrong with the port, in words.

    The floor knows the outputs' scale: JAX takes the slope of expm1 to be expm1(x) + 1, that of tanh to be
    1 - tanh²(x), both good to an ulp of 1.
    """
    outputs = [v for k, v in reference.items() if k.startswith("output") and _is_float(v)]
    context = max((float(np.abs(v[np.isfinite(v)]).max(initial=0)) for v in outputs), default=0.0)
    for name, expected in own.items():
        if name not in port:
            yield f"{name} is missing"
            continue
        got = port[name]
        if not isinstance(expected, np.ndarray):
            if not (got is expected or got == expected):
                yield f"{name} is {got} instead of {expected}"
            continue
        got, exact = np.asarray(got), reference[name]
        if got.shape != expected.shape:
            yield f"{name} has shape {got.shape} instead of {expected.shape}"
        elif not np.array_equal(np.isfinite(expected), np.isfinite(got)):
            yield f"{name}: not finite at other places"
        elif expected.dtype.kind not in "fc":
            if not np.array_equal(expected, got):
                yield f"{name} differs"
        elif expected.size:
            if got.dtype != expected.dtype:
                yield f"{name} has dtype {got.dtype} instead of {expected.dtype}"
            finite = np.isfinite(expected)
            scale = float(np.abs(exact[finite]).max(initial=0.0))
            error = float(np.abs(got - exact)[finite].max(initial=0.0))
            allowed = FACTOR * float(np.abs(expected - exact)[finite].max(initial=0.0))
            if not error <= allowed + FLOOR * (scale + 1e-1 * context + 1e-3):
                yield f"{name} is off by {error:.1e} (torch: {allowed / FACTOR:.1e}, scale {scale:.1e})"


# --- one class --------------------------------------------------------------------------------------


def samples(info: Any, training: bool) -> list[ModuleInput]:
    """The database's samples of a class, float32, always the same."""
    torch.manual_seed(0)
    return info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )


def check_sample(info: Any, sample: ModuleInput, training: bool) -> list[str]:
    """Differences between torch and the definition on one sample."""
    torch.manual_seed(1)
    args, kwargs = sample.constructor_input.args, sample.constructor_input.kwargs
    module = info.module_cls(*args, **kwargs).to(torch.float32).train(training)
    forward, options = sample.forward_input.args, dict(sample.forward_input.kwargs)
    if "input" in options:  # nnx names the first argument otherwise
        forward = (options.pop("input"), *forward)
    port = build(info.module_cls, args, kwargs)
    if info.is_lazy:
        module(*forward, **options)
        port(*(to_jax(a) for a in forward), **to_jax(options))
    return disagreements(module, port, forward, options, training)


def disagreements(
    module: torch.nn.Module, port: Any, forward: tuple, options: dict, training: bool
) -> list[str]:
    """Differences between a torch module and its port, given the same state, in one call."""
    if isinstance(port, nnx.Module):
        port.train() if training else port.eval()
        load_state_dict(port, module.state_dict())
    elif module.state_dict():
        return ["torch keeps arrays, the port is a function"]
    forward, options = fresh(forward), fresh(options)
    wide = fresh(forward, torch.float64), fresh(options, torch.float64)
    reference = run_torch(copy.deepcopy(module).double(), *wide)
    weights = cotangents(leaves(copy.deepcopy(module)(*forward, **options)))
    found = run_flax(port, forward, options, weights)
    return list(differences(run_torch(module, forward, options), reference, found))


def check(info: Any, limit: int | None = None, seed: int = 0) -> Outcome:
    """All samples of a class (``limit``: that many, drawn by ``seed``) in eval and train mode."""
    if f"torch.{info.name}" not in definitions():
        return Outcome(info.name, "missing")
    count, flagged, note = 0, "", ""
    for training in (False, True):
        found = list(enumerate(samples(info, training)))
        if limit is not None and len(found) > limit:
            picked = np.random.default_rng(seed).choice(len(found), limit, replace=False)
            found = [found[i] for i in sorted(picked)]
        for index, sample in found:
            if sample.forward_input is None:
                continue
            where = f"{'train' if training else 'eval'} sample {index} {sample.desc}"
            try:
                wrong = check_sample(info, sample, training)
            except Unsupported as reason:
                flagged = f"{where}: {reason}"
                continue
            except ValueError:
                if info.name not in REFUSED or sample.forward_input.args[0].ndim:
                    raise
                note = "a 0-d input raises"
                continue
            if wrong:
                return Outcome(info.name, "wrong", f"{where}: {'; '.join(wrong)}", count)
            count += 1
    return Outcome(info.name, "flagged" if flagged else "verified", flagged or note, count)


def result(outcome: Outcome, fingerprint: str, started: float) -> dict[str, Any]:
    """An outcome in the form in which the sweep keeps results."""
    notes = {f"{outcome.status}: {outcome.why}": ""} if outcome.why else {}
    counts = {outcome.status: 1} | ({"verified": outcome.samples} if outcome.samples else {})
    return {
        "status": outcome.status,
        "dtypes": {"float32": {"counts": counts, "notes": notes}},
        "fingerprint": fingerprint,
        "seconds": round(time.time() - started, 1),
    }


def attempt(info: Any) -> Outcome:
    """``check``, an exception being a wrong result."""
    try:
        return check(info)
    except Exception as error:  # the report goes on with the next class
        return Outcome(info.name, "wrong", f"{type(error).__name__}: {str(error)[:300]}")


def sweep(name: str, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """All samples of a class; ``known`` stands if the definition is what it was."""
    started = time.time()
    mark = fingerprint(definitions()[f"torch.{name}"].__module__)
    if known is not None and known["fingerprint"] == mark:
        return known
    return result(attempt(infos()[name]), mark, started)


def fingerprint(module: str) -> str:
    """A hash of a file of definitions, of the compat files it may use and of this file."""
    paths = [ROOT.joinpath(*module.split(".")).with_suffix(".py"), Path(__file__)]
    paths += sorted(ROOT.joinpath("rules", "compat").glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def main(names: list[str]) -> int:
    """Print a line for each class and the totals."""
    totals: dict[str, int] = {}
    for name, info in infos().items():
        if names and name.removeprefix("nn.") not in names:
            continue
        outcome = attempt(info)
        jax.clear_caches()
        totals[outcome.status] = totals.get(outcome.status, 0) + 1
        print(f"{name:32} {outcome.status:9} {outcome.samples:4} {outcome.why}", flush=True)
    print(totals)
    return 0 if set(totals) <= {"verified", "flagged"} else 1


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(sys.argv[1:]))

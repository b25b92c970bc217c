"""Run a torch module or a Flax module on the same numbers: outputs, gradients, state afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from flax import nnx
from torch.utils._pytree import tree_leaves

from numerics.division import DividesAsJax
from numerics.health import retraced
from numerics.nans import Test, origin
from numerics.parameters import copied
from numerics.randomness import Draw, Recorder, Replayer, replaying
from numerics.rounding import AsFloat32, Float64, RoundingNoise
from numerics.sharding import Placement
from numerics.states import ended, names_left, put
from numerics.tree import dtype_name, flatten, leaf_names, tensors

Load = Callable[[nnx.Module, Mapping[str, Any]], Any]
Dump = Callable[..., Mapping[str, Any]]
Rest = Callable[[nnx.Module], Mapping[str, Any]]
"""Gives a port's arrays that are in no state_dict, by torch's names."""


@dataclass
class Run:
    """What one run gave, by name: outputs by path, gradients and state by torch's names.

    ``state`` is what a state_dict has, ``rest`` the buffers and tensors in attributes that it has not, ``changed`` the
    names of those that the call changed; ``writes_inputs`` tells that torch changed an argument in place.
    Floats are held as float64 whatever they were computed in; ``dtypes`` says what that was for outputs,
    ``leaf_dtypes`` for gradients and state.
    """

    outputs: dict[str, np.ndarray]
    dtypes: dict[str, str]
    leaf_dtypes: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, np.ndarray] = field(default_factory=dict)
    state: dict[str, np.ndarray] = field(default_factory=dict)
    rest: dict[str, np.ndarray] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    writes_inputs: bool = False
    cotangents: dict[str, np.ndarray] = field(default_factory=dict)
    draws: list[Draw] = field(default_factory=list)
    raw_draws: list[torch.Tensor] = field(default_factory=list)
    unknown_draws: list[str] = field(default_factory=list)


def cotangent(seed: int, index: int, shape: tuple[int, ...]) -> np.ndarray:
    """The fixed random weights of output ``index`` in the scalar whose gradient is taken."""
    return np.random.default_rng([seed, index]).standard_normal(shape).astype(np.float32)


def _kept(value: torch.Tensor) -> np.ndarray:
    """A tensor of the state as it is now, whatever is written to it later."""
    converted = value.dtype.is_floating_point and value.dtype != torch.float64
    return to_numpy(value) if converted else to_numpy(value).copy()


def to_numpy(value: Any) -> np.ndarray:
    """A tensor or array as numpy, floats as float64 (bfloat16 has no numpy type of its own)."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = value.double() if value.dtype.is_floating_point else value
        return value.resolve_conj().resolve_neg().cpu().numpy()
    array = np.asarray(value)
    if array.dtype == ml_dtypes.bfloat16 or np.issubdtype(array.dtype, np.floating):
        return array.astype(np.float64)
    return array


# --- torch ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TorchMode:
    """How torch runs: ``noise`` seeds random rounding, ``seed`` what it draws; ``replay`` gives recorded draws again.

    ``grad`` differentiates with respect to parameters and, unless ``inputs`` is false, to inputs.
    """

    train: bool = False
    grad: bool = False
    inputs: bool = True
    float64: bool = False
    single: bool = False
    """Round what float64 computes to float32."""

    noise: int | None = None
    replay: tuple[torch.Tensor, ...] | None = None
    divides_as_jax: bool = False
    cotangent_seed: int = 0
    seed: int = 0


def run_torch(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    mode: TorchMode,
    watch: Callable[[torch.nn.Module], AbstractContextManager[Any]] | None = None,
) -> Run:
    """Run a copy of ``module`` once; what it draws is recorded, or replayed where the mode says so."""
    module = prepared(module, mode)
    leaves: dict[str, torch.Tensor] = {}
    call_args, call_kwargs = call_tensors(args, kwargs, mode, leaves)
    recorder, before = Recorder(), _unstored(module)
    with torch_context(mode, recorder), nullcontext() if watch is None else watch(module):
        outputs = flatten(module(*call_args, **call_kwargs))
        weights = _cotangents(outputs, mode) if mode.grad else {}
        gradients = _torch_gradients(module, outputs, leaves, weights)
    rest = _unstored(module)
    return Run(
        outputs={path: to_numpy(value) for path, value in outputs.items()},
        dtypes={path: dtype_name(value) for path, value in outputs.items()},
        leaf_dtypes={
            name: dtype_name(value)
            for name, value in {**module.state_dict(), **leaves}.items()
            if isinstance(value, torch.Tensor)
        },
        gradients=gradients,
        cotangents=weights,
        state={
            name: _kept(value)
            for name, value in module.state_dict().items()
            if isinstance(value, torch.Tensor)
        },
        rest=rest,
        changed=_changed(before, rest),
        writes_inputs=any(
            isinstance(value, torch.Tensor) and value._version > 0
            for value in tree_leaves((call_args, call_kwargs))
        ),
        draws=recorder.draws,
        raw_draws=recorder.raw,
        unknown_draws=recorder.unknown,
    )


def _unstored(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Copies of the tensors of a module that its state_dict has not got."""
    stored = module.state_dict()
    found = {name: value for name, value in tensors(module).items() if name not in stored}
    return {name: to_numpy(value).copy() for name, value in found.items()}


def _shared(after: Any, before: Any) -> Any:
    """A state without what the call put where None was, which a module that has None there cannot take."""
    known = {path for path, _ in nnx.to_flat_state(before)}
    items = [(path, value) for path, value in nnx.to_flat_state(after) if path in known]
    return nnx.from_flat_state(items)


def _changed(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> set[str]:
    """The names whose values are others, or new."""
    return {
        name
        for name, value in after.items()
        if name not in before or before[name].tobytes() != value.tobytes()
    }


@contextmanager
def torch_context(mode: TorchMode, recorder: Recorder) -> Iterator[None]:
    """What surrounds a run: precision, rounding, random numbers (``recorder`` notes those not replayed)."""
    with ExitStack() as stack:
        generator = torch.default_generator
        stack.callback(generator.set_state, generator.get_state())
        generator.manual_seed(mode.seed)
        if mode.float64:
            stack.enter_context(Float64())
        if mode.single:
            stack.enter_context(AsFloat32())
        if mode.noise is not None:
            stack.enter_context(RoundingNoise(mode.noise))
        if mode.divides_as_jax:
            stack.enter_context(DividesAsJax())
        stack.enter_context(recorder if mode.replay is None else Replayer(mode.replay))
        stack.enter_context(torch.set_grad_enabled(mode.grad))
        yield


def call_tensors(
    args: Sequence[Any], kwargs: Mapping[str, Any], mode: TorchMode, leaves: dict[str, torch.Tensor]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call's arguments as torch tensors; ``leaves`` gets those to differentiate by name."""
    positional = tuple(_tensors(arg, f"input {i}", mode, leaves) for i, arg in enumerate(args))
    by_name = {key: _tensors(arg, f"input {key}", mode, leaves) for key, arg in kwargs.items()}
    return positional, by_name


def prepared(module: torch.nn.Module, mode: TorchMode) -> torch.nn.Module:
    """A copy in the precision and mode of a run."""
    module = copied(module)
    module.train(mode.train)  # which may give nothing
    source, target = (
        torch.float64,
        torch.float32,
    )  # the port has no float64: torch is run without it too
    if mode.float64:
        source, target = target, source
        module = module.double()
    else:
        module._apply(lambda tensor: tensor.float() if tensor.dtype == source else tensor)
    for part in module.modules():
        for name, value in vars(part).items():
            if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point:
                continue
            if mode.float64 or value.dtype == source:
                setattr(part, name, value.to(target))
    return module


def _tensors(value: Any, name: str, mode: TorchMode, leaves: dict[str, torch.Tensor]) -> Any:
    """numpy → torch; float arrays become leaves to differentiate (the call gets a clone it may write to)."""
    if isinstance(value, dict):
        return {key: _tensors(part, f"{name}.{key}", mode, leaves) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [_tensors(part, f"{name}[{i}]", mode, leaves) for i, part in enumerate(value)]
        return type(value)(parts)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == ml_dtypes.bfloat16:
        tensor = torch.from_numpy(value.astype(np.float32)).bfloat16()
    else:
        tensor = torch.from_numpy(value.copy())
    if not tensor.dtype.is_floating_point:
        return tensor
    if mode.float64:
        tensor = tensor.double()
    elif tensor.dtype == torch.float64:
        tensor = tensor.float()
    if not (mode.grad and mode.inputs):
        return tensor
    leaves[name] = tensor.requires_grad_()
    return leaves[name].clone()


def _cotangents(outputs: Mapping[str, Any], mode: TorchMode) -> dict[str, np.ndarray]:
    """Weights for every float output; torch's gradient of one that it detaches is zero, and so must the port's be."""
    return {
        path: cotangent(mode.cotangent_seed, index, tuple(as_real(value).shape))
        for index, (path, value) in enumerate(outputs.items())
        if is_inexact(value)
    }


def _torch_gradients(
    module: torch.nn.Module,
    outputs: Mapping[str, Any],
    leaves: Mapping[str, torch.Tensor],
    weights: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Gradients by name: ``input 0`` and torch's parameter names; what is not reached is zero."""
    wanted = dict(leaves)
    wanted.update(
        (name, parameter)
        for name, parameter in module.named_parameters(remove_duplicate=False)
        if parameter.requires_grad and parameter.dtype.is_floating_point
    )
    if not weights or not wanted:
        return {}
    roots = [path for path in weights if outputs[path].requires_grad]
    found: Sequence[torch.Tensor | None] = [None] * len(wanted)
    if roots:
        found = torch.autograd.grad(
            [as_real(outputs[path]) for path in roots],
            list(wanted.values()),
            [torch.from_numpy(weights[path]).to(as_real(outputs[path])) for path in roots],
            allow_unused=True,
        )
    return {
        name: np.zeros(tuple(leaf.shape)) if grad is None else to_numpy(grad.to_dense())
        for (name, leaf), grad in zip(wanted.items(), found, strict=True)
    }


def is_inexact(value: Any) -> bool:
    """Whether a tensor is one of floats or of complex numbers."""
    if not isinstance(value, torch.Tensor):
        return False
    return value.dtype.is_floating_point or value.dtype.is_complex


def as_real(value: Any) -> Any:
    """A complex tensor or array with real and imaginary parts in a last axis of two; a real one as it is."""
    if isinstance(value, torch.Tensor):
        return torch.view_as_real(value.resolve_conj()) if value.dtype.is_complex else value
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        return jnp.stack([value.real, value.imag], -1)
    return value


# --- Flax -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Static:
    """The part of a call that is compiled in: structure, constants, mode."""

    treedef: Any
    constants: tuple[tuple[int, Any], ...]
    kinds: tuple[str, ...]
    train: bool
    grad: bool
    inputs: bool = True
    """Whether gradients are taken for inputs as well."""


_BESIDE = ThreadPoolExecutor(1, "port")


def _called(call: Any, given: tuple[Any, ...], precision: str) -> tuple[Any, Any, Any]:
    """Outputs, gradients and state, when they are there; JAX's settings are a thread's own."""
    with jax.default_matmul_precision(precision):
        outputs, gradients, after = jax.block_until_ready(call(*given))
    return outputs, gradients, after


class FlaxRunner:
    """A Flax module under ``jax.jit``, compiled once for each shape and mode.

    ``compiles`` counts compilations, ``signatures`` holds the distinct calls there were, ``compilations`` what made each
    compilation necessary, ``retraces`` the same for those of shapes that had been seen. ``placement`` spreads
    arrays over a mesh; ``matmul_precision`` is what products keep that do not say so themselves.

    Args:
      module: the port.
      load: ``load(module, state_dict)`` puts torch's numbers into it, in place.
      dump: ``dump(module)`` gives numbers by torch's names and in torch's layout;
        ``dump(gradients, like=module)`` does so for a state of gradients.
      rest: gives the arrays that no state_dict has, where there may be some.
    """

    def __init__(
        self, module: nnx.Module, load: Load, dump: Dump, rest: Rest | None = None
    ) -> None:
        self.module, self._load, self._dump, self._rest = module, load, dump, rest
        self.matmul_precision = "highest"
        self.placement: Placement | None = None
        self.compiles = 0
        self.signatures: set[Any] = set()
        self._functions: dict[Any, Any] = {}
        self._traces: dict[Any, dict[str, str]] = {}
        self._latest: dict[str, dict[str, str]] = {}
        self.compilations: list[str] = []
        self.retraces: list[str] = []

    def load(self, state_dict: Mapping[str, Any]) -> None:
        """Put torch's numbers into the port."""
        self._load(self.module, state_dict)

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], **how: Any) -> Run:
        """One compiled call, as of ``start``; the module keeps the state it had before.

        Raises:
          ReplayMismatch: the port's draws do not line up with those given.
        """
        return self.start(args, kwargs, **how)()

    def start(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        train: bool,
        grad: bool,
        inputs: bool = True,
        cotangents: Mapping[str, np.ndarray] | None = None,
        draws: Sequence[Draw] = (),
    ) -> Callable[[], Run]:
        """``run`` in two parts: what this gives is called for the result, once.

        The port's Python runs here, while it is traced. Only lowering, XLA's compilation and the run are left to a
        thread, so that torch can be at work meanwhile.
        """
        static, graphdef, operands = self._prepared(args, kwargs, train, grad, draws)
        static = replace(static, inputs=inputs)
        params, rest, floats, others = operands
        call = self._compiled(static, graphdef)
        shapes = tuple(x.shape for _, x in sorted((floats | others).items()))
        self.signatures.add((train, grad, repr(static.constants), static.kinds, shapes))
        # TPUs and GPUs multiply float32 in fewer bits unless told otherwise; on a CPU this changes nothing
        if self.placement is not None:
            params, rest = self.placement.state(params), self.placement.state(rest)
            floats, others = self.placement.inputs((floats, others))
        values = [draw.value for draw in draws]
        given = (params, rest, floats, others, dict(cotangents or {}), values)
        with jax.default_matmul_precision(self.matmul_precision):
            call.trace(*given)
        running = _BESIDE.submit(_called, call, given, self.matmul_precision)
        names = leaf_names(args, kwargs)
        return lambda: self._collect(*running.result(), floats, names)

    def origin(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        like: Run,
        test: Test,
        *,
        train: bool,
        grad: bool,
    ) -> str | None:
        """Where a NaN (or what ``test`` tells) in a result comes from, with ``like``'s draws and cotangents."""
        static, graphdef, operands = self._prepared(args, kwargs, train, grad, like.draws)
        call, compiles = self._traced(static, graphdef, noted=False), self.compiles
        with jax.default_matmul_precision(self.matmul_precision):
            found = origin(
                call, *operands, like.cotangents, [d.value for d in like.draws], test=test
            )
        self.compiles = compiles
        return found

    def beside(self, module: nnx.Module) -> FlaxRunner:
        """A runner of another module of the same kind."""
        return FlaxRunner(module, self._load, self._dump, self._rest)

    def once(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        like: Run,
        *,
        train: bool,
        grad: bool,
        inputs: bool,
    ) -> Run:
        """One call in this thread, under JAX's settings as they are, with ``like``'s draws and cotangents."""
        static, graphdef, operands = self._prepared(args, kwargs, train, grad, like.draws)
        call = jax.jit(self._traced(replace(static, inputs=inputs), graphdef, noted=False))
        values = [draw.value for draw in like.draws]
        outputs, gradients, after = call(*operands, dict(like.cotangents), values)
        return self._collect(outputs, gradients, after, operands[2], leaf_names(args, kwargs))

    def _prepared(
        self, args: Any, kwargs: Any, train: bool, grad: bool, draws: Sequence[Draw]
    ) -> tuple[_Static, Any, tuple[Any, Any, dict[int, jax.Array], dict[int, jax.Array]]]:
        """What is compiled in, the module's structure, and (parameters, other state, float and other inputs)."""
        leaves, treedef = jax.tree.flatten((tuple(args), dict(kwargs)), is_leaf=lambda x: x is None)
        arrays = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)}
        static = _Static(
            treedef,
            tuple((i, leaf) for i, leaf in enumerate(leaves) if i not in arrays),
            tuple(draw.kind for draw in draws),
            train,
            grad,
        )
        self.module.train() if train else self.module.eval()
        graphdef, params, rest = nnx.split(self.module, nnx.Param, ...)
        floats = {i: jnp.asarray(x) for i, x in arrays.items() if is_float(x)}
        others = {i: jnp.asarray(x) for i, x in arrays.items() if i not in floats}
        return static, graphdef, (params, rest, floats, others)

    def _compiled(self, static: _Static, graphdef: Any) -> Any:
        mode = static.train, static.grad, static.inputs
        key = (static.treedef, repr(static.constants), static.kinds, mode)
        if key not in self._functions:
            self._functions[key] = jax.jit(self._traced(static, graphdef))
        return self._functions[key]

    def _traced(self, static: _Static, graphdef: Any, noted: bool = True) -> Callable[..., Any]:
        def call(params: Any, rest: Any, floats: Any, others: Any, weights: Any, draws: Any) -> Any:
            self.compiles += 1
            if noted:
                self._note_trace(static, params, rest, {**floats, **others}, draws)

            def forward(params: Any, floats: Any) -> Any:
                module = nnx.merge(graphdef, params, rest, copy=True)
                leaves = {**dict(static.constants), **floats, **others}
                args, kwargs = jax.tree.unflatten(
                    static.treedef, [leaves[i] for i in range(len(leaves))]
                )
                with replaying(static.kinds, draws):
                    outputs = flatten(module(*args, **kwargs))
                outputs = {path: jnp.asarray(value) for path, value in outputs.items()}
                return {path: as_real(outputs[path]) for path in weights if path in outputs}, (
                    outputs,
                    nnx.state(module, nnx.Not(nnx.RngState)),
                )

            if not static.grad:
                _, (outputs, after) = forward(params, floats)
                return outputs, None, after
            given = (params, floats) if static.inputs else (params,)
            run = forward if static.inputs else partial(forward, floats=floats)
            seeds, pullback, (outputs, after) = jax.vjp(run, *given, has_aux=True)
            if {path: x.shape for path, x in seeds.items()} != {
                path: w.shape for path, w in weights.items()
            }:
                return outputs, None, after
            gradients = pullback({path: weights[path].astype(x.dtype) for path, x in seeds.items()})
            return outputs, gradients if static.inputs else (*gradients, {}), after

        return call

    def _note_trace(self, static: _Static, params: Any, rest: Any, inputs: Any, draws: Any) -> None:
        """Remember what is traced; where the same shapes were traced before, what is different now."""
        shapes = tuple((i, x.shape) for i, x in sorted(inputs.items()))
        kept = static.train, static.grad, static.inputs
        key = (repr(static.constants), static.kinds, kept, shapes)
        count = len(inputs) + len(static.constants)
        names = leaf_names(*jax.tree.unflatten(static.treedef, range(count)))
        arguments = {i: repr(value) for i, value in static.constants}
        arguments |= {i: _aval(value) for i, value in inputs.items()}
        now = {names[i]: arguments[i] for i in sorted(arguments)} | {
            name + jax.tree_util.keystr(path): _aval(leaf)
            for name, tree in (("parameters", params), ("state", rest), ("random numbers", draws))
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
            if hasattr(leaf, "dtype")
        }
        mode = ("train" if static.train else "eval") + (" with gradients" if static.grad else "")
        earlier = self._latest.get(mode)
        told = ["the first"] if earlier is None else retraced(earlier, now)
        asked = [cause for cause in told if cause.startswith("input ")]  # what is drawn follows
        self.compilations.append(f"{mode}: {_causes(asked or told)}")
        if key in self._traces:
            self.retraces.append(_causes(retraced(self._traces[key], now)))
        self._traces[key] = self._latest[mode] = now

    def _collect(
        self, outputs: Any, gradients: Any, after: Any, floats: Any, names: Sequence[str]
    ) -> Run:
        by_name: dict[str, np.ndarray] = {}
        if gradients is not None:
            dumped = self._dump(gradients[0], like=self.module)
            by_name = {name: to_numpy(value) for name, value in dumped.items()}
            by_name.update((names[i], to_numpy(value)) for i, value in gradients[1].items())
        order = list(outputs)
        before = self._unstored()
        state, rest = self._after(after)
        return Run(
            outputs={path: to_numpy(outputs[path]) for path in order},
            dtypes={path: dtype_name(outputs[path]) for path in order},
            gradients=by_name,
            state=state,
            rest=rest,
            changed=_changed(before, rest),
        )

    def named(self, params: Any) -> dict[str, Any]:
        """A state of parameters (values, gradients, directions) by torch's names, in torch's layout."""
        return dict(self._dump(params, like=self.module))

    def params_from(self, values: Mapping[str, np.ndarray]) -> Any:
        """The inverse of ``named``: a state of parameters with these numbers; a tied one under one name."""
        whole = nnx.clone(self.module)
        own = self.named(nnx.state(self.module, nnx.Param))
        buffers = {k: v for k, v in self._dump(self.module).items() if k not in own}
        self._load(whole, {**buffers, **values})
        return nnx.split(whole, nnx.Param, ...)[1]

    def state_after(self, after: Any) -> dict[str, np.ndarray]:
        """The numbers of a state of this module, by torch's names."""
        return self._after(after)[0]

    def _after(self, after: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The numbers of a state of this module: what a state_dict has, and the rest."""
        before = nnx.state(self.module, nnx.Not(nnx.RngState))
        before = jax.tree.map(lambda x: x, before)
        put(self.module, _shared(after, before))
        found = {name: to_numpy(value) for name, value in self._dump(self.module).items()}
        lost = ended(after, before)
        if lost:
            left = names_left(self.module, lost, self._dump)
            found = {name: value for name, value in found.items() if name in left}
        rest = self._unstored()
        put(self.module, before)
        return found, rest

    def _unstored(self) -> dict[str, np.ndarray]:
        found = {} if self._rest is None else self._rest(self.module)
        return {name: to_numpy(value).copy() for name, value in found.items()}


def _aval(value: Any) -> str:
    """dtype and shape of what is traced."""
    weak = " (weak)" if getattr(value, "weak_type", False) else ""
    return f"{value.dtype}{list(value.shape)}{weak}"


def _causes(found: Sequence[str]) -> str:
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(found[:3]) + more or "an attribute that is no array has changed"


def is_float(value: Any) -> bool:
    """Whether an array can be differentiated by."""
    return bool(jnp.issubdtype(value.dtype, jnp.floating))

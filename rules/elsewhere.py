"""What a person uses in place of torch names that have no definition: one text for every command."""

from __future__ import annotations

WEIGHTS = (
    "load the state_dict into the torch model, then it by load_state_dict into the converted one"
)
"""In place of reading a checkpoint of torch."""
CONTEXT = "write out what it changes; mixed precision becomes explicit dtypes"
"""In place of a context manager."""
BY_HAND = "write it by hand in JAX"

_ELSEWHERE = {
    "torch.optim.lr_scheduler": "use a schedule of optax",
    "torch.optim": "use the optimiser of the same name in optax",
    "torch.utils.data": "keep it on the host: a torch DataLoader feeds numpy arrays, or use grain",
    "torch.distributed": "use jax.sharding: a mesh and NamedSharding in place of process groups",
    "torch.nn.parallel": "use jax.sharding: a mesh and NamedSharding in place of wrapped modules",
    "torch.distributions": "use jax.random and jax.scipy.stats, or distrax",
    "torch.cuda.amp.GradScaler": "drop it and train in bfloat16",
    "torch.amp.GradScaler": "drop it and train in bfloat16",
    "torch.cuda": "drop it; jax.devices() tells what there is",
    "torch.profiler": "use jax.profiler",
    "torch.utils.tensorboard": "log numbers by a writer that does without torch",
    "torch.backends": "drop it; XLA chooses the algorithms",
    "torch.Generator": "make a key with jax.random.key(seed), or nnx.Rngs(seed), and hand it on",
    "torch.save": "save nnx.state(model) with Orbax",
    "torch.load": WEIGHTS,
    "torch.hub": WEIGHTS,
    "torch.utils.model_zoo": WEIGHTS,
    "torch.autograd.grad": "put the lines that lead from the inputs to the outputs into a function, and use jax.vjp on it",
    "Tensor.backward": "use nnx.value_and_grad on a loss function",
    "torch.nn.utils.clip_grad": "use optax.clip_by_global_norm",
    "torch.onnx": "use jax.export",
    "torch.fx": "use jax.make_jaxpr",
}
"""By the beginning of the name, the more particular first."""


def advice_for(name: str) -> str:
    """What to use in place of a torch name, by the package it lives in."""
    for prefix, advice in _ELSEWHERE.items():
        if name.startswith(prefix):
            return advice
    return BY_HAND

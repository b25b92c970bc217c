"""TRC: effects that happen once, while JAX traces, and not at every call."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.definitions import ops
from rules.flags import _lines as lines
from rules.flags._asked import gives_tensors
from rules.flags._kept import kept
from rules.flags._messages import LEVELS, LOGGERS, depends
from rules.registry import Advice, FlagContext, code, flag

_CLOCKS = frozenset(
    [
        "time.time",
        "time.perf_counter",
        "time.monotonic",
        "time.process_time",
        "time.time_ns",
        "time.perf_counter_ns",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.now",
        "timeit.default_timer",
    ]
)
_PYTHON_RANDOM = frozenset(
    [
        "random",
        "randint",
        "randrange",
        "uniform",
        "choice",
        "choices",
        "sample",
        "shuffle",
        "gauss",
        "normalvariate",
        "betavariate",
        "rand",
        "randn",
        "normal",
        "permutation",
        "beta",
        "binomial",
    ]
)
_HOOKS = frozenset(
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_backward_hook",
        "register_full_backward_pre_hook",
        "register_hook",
        "register_state_dict_pre_hook",
        "register_state_dict_post_hook",
        "_register_state_dict_hook",
        "register_load_state_dict_post_hook",
        "register_post_accumulate_grad_hook",
    ]
)


@flag(
    "TRC001",
    "print-in-forward",
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.1,
    what="print() runs once, while JAX traces, and shows tracers instead of values",
    why="Under jit the Python code of a function runs only when it is compiled.",
    example="def f(x: torch.Tensor):\n    print(x.sum())\n    return x",
    instead="def f(x: torch.Tensor):\n    return x",
)
def prints(node: cst.Call, ctx: FlagContext) -> str | None:
    """``print`` of tensors."""
    if ctx.callee(node) != "builtins.print" or not ctx.in_forward:
        return None
    if depends(ctx.parents, node, ctx.is_tensor):
        return None  # which is left out
    values = [ctx.text(a.value) for a in node.args if a.keyword is None and ctx.is_tensor(a.value)]
    if not values:
        return None if not ctx.in_module else "drop it, or use jax.debug.print"
    return f'write `jax.debug.print("{" ".join("{}" for _ in values)}", {", ".join(values)})`'


@flag(
    "TRC002",
    "logging-in-forward",
    cst.Call,
    severity="info",
    blocks=False,
    effort=0.1,
    what="logging runs once, while JAX traces",
    why="Under jit the Python code of a function runs only when it is compiled.",
    example='import logging\n\n\ndef f(x: torch.Tensor):\n    logging.info("called")\n    return x.relu()',
    instead="def f(x: torch.Tensor):\n    return x.relu()",
)
def logs(node: cst.Call, ctx: FlagContext) -> str | None:
    """``logging.info``, ``logger.info``, ``warnings.warn``."""
    parts = lines.method(node)
    if parts is None or parts[1] not in LEVELS or not ctx.in_forward:
        return None
    receiver = ctx.text(parts[0]).rpartition(".")[2]
    if receiver not in LOGGERS:
        return None
    if any(isinstance(p, cst.If) for p in ctx.parents):
        return None  # a complaint about a static condition is as good at trace time
    return "move it to the caller; values go through jax.debug.callback"


@flag(
    "TRC003",
    "python-state-in-forward",
    cst.AugAssign,
    cst.Assign,
    cst.Global,
    cst.Call,
    cst.Decorator,
    severity="warning",
    blocks=False,
    effort=0.5,
    what="Python state changes in the forward pass",
    why="Under jit it changes once, while JAX traces, and keeps tracers; only nnx.Variables carry values out.",
    example=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.calls = 0\n\n"
        "    def forward(self, x: torch.Tensor):\n        self.calls += 1\n        return x"
    ),
    instead=(
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("calls", torch.zeros(()))\n\n'
        "    def forward(self, x: torch.Tensor):\n        self.calls += 1\n        return x"
    ),
)
def state(node: Any, ctx: FlagContext) -> Advice | str | None:
    """``self.calls += 1``, ``self.seen.append(x)``, ``self.cache[key] = x``, ``global``."""
    if not ctx.in_forward:
        return None
    keeps = kept(node, ctx)
    if keeps is not None:
        return keeps
    if type(node) is cst.Global:
        if not (ctx.in_module or _takes_tensors(ctx)):
            return None
        names = ", ".join(item.name.value for item in node.names)
        return f"pass `{names}` in and return it"
    if not ctx.in_module:
        return None
    if type(node) is cst.AugAssign:
        if _on_self(node.target) and ctx.scalar(node.target) in ("int", "float", "number"):
            name = ctx.text(node.target)
            return f"make it a variable: `{name} = nnx.Variable(jnp.zeros((), int))` and `{name}[...] += …`"
        return None
    if type(node) is not cst.Call:
        return None
    parts = lines.method(node)
    if parts is not None and parts[1] in ("append", "extend", "insert") and _on_self(parts[0]):
        if type(ctx.kind(parts[0])).__name__ in ("Sequence", "Tuple"):
            return f"return what is collected, or keep it with `self.sow(nnx.Intermediate, ...)` in place of `{ctx.text(parts[0])}`"
    return None


def _on_self(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.Attribute)
        and isinstance(node.value, cst.Name)
        and node.value.value == "self"
    )


@flag(
    "TRC004",
    "clock-in-forward",
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.25,
    what="the clock is read while JAX traces, not when the program runs",
    why="Under jit the Python code of a function runs only when it is compiled, and results arrive later.",
    example="import time\n\n\ndef f(x: torch.Tensor):\n    start = time.time()\n    return x.relu(), start",
    instead="def f(x: torch.Tensor):\n    return x.relu()",
)
def clock(node: cst.Call, ctx: FlagContext) -> str | None:
    """``time.time()`` and friends in a forward pass."""
    if ctx.callee(node) in _CLOCKS and ctx.in_module and ctx.in_forward:
        return "time the jitted call from outside, with jax.block_until_ready(result), or use jax.profiler"
    if ctx.callee(node) in _CLOCKS and ctx.in_forward and _takes_tensors(ctx):
        return "time the jitted call from outside, with jax.block_until_ready(result), or use jax.profiler"
    return None


def _takes_tensors(ctx: FlagContext) -> bool:
    """Whether the function around the node has a tensor as a parameter's hint."""
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.FunctionDef):
            hints = [p.annotation for p in parent.params.params if p.annotation is not None]
            return any("Tensor" in ctx.text(h.annotation) for h in hints)
    return False


@flag(
    "TRC005",
    "python-random-in-forward",
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.5,
    what="a number drawn by Python or numpy becomes a constant of the compiled program",
    why="Under jit the draw happens once, while JAX traces; every later call uses the same number.",
    example=(
        "import random\n\n\nclass Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
        "        if random.random() < 0.5:\n            return x\n        return x * 2"
    ),
    instead=(
        "class Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
        "        return torch.where(torch.rand(()) < 0.5, x, x * 2)"
    ),
)
def python_random(node: cst.Call, ctx: FlagContext) -> str | None:
    """``random.random()``, ``np.random.rand()`` in a forward pass."""
    name = ctx.callee(node) or ""
    module, _, short = name.rpartition(".")
    if module not in ("random", "numpy.random") or short not in _PYTHON_RANDOM:
        return None
    if not ctx.in_forward or not (ctx.in_module or _takes_tensors(ctx)):
        return None
    inside = any(isinstance(p, cst.If) for p in ctx.parents[-3:])
    draw = (
        "`self.rngs.uniform(())`"
        if short in ("random", "rand", "uniform")
        else "one of the methods of `self.rngs`"
    )
    then = " and choose by jnp.where or lax.cond" if inside else ""
    return f"draw with {draw}{then}"


@flag(
    "TRC006",
    "hook",
    cst.Call,
    effort=1.0,
    what="a hook is registered",
    why="Flax modules have no hooks: what a hook did stands in the forward pass or around the call.",
    example=(
        "def watch(net: nn.Module, seen: list):\n"
        "    net.register_forward_hook(lambda module, args, out: seen.append(out))"
    ),
    instead="def watch(net: nn.Module, x: torch.Tensor):\n    return net(x)",
)
def hook(node: cst.Call, ctx: FlagContext) -> str | None:
    """``register_forward_hook``, ``register_hook`` and friends."""
    parts = lines.method(node)
    if parts is None or parts[1] not in _HOOKS:
        return None
    kind = type(ctx.kind(parts[0])).__name__
    if kind not in ("Module", "Tensor", "Unknown", "Other"):
        return None
    if parts[1] == "register_hook":
        return "change the gradient with jax.custom_vjp, or after jax.grad"
    if "state_dict" in parts[1]:
        return "rename the keys before the state is loaded"
    return "return the value from the forward pass, or keep it with `self.sow(nnx.Intermediate, name, value)`"


@flag(
    "TRC007",
    "host-array-in-forward",
    cst.Call,
    cst.Assign,
    cst.Subscript,
    effort=0.5,
    what="a tensor leaves the program for numpy",
    why="While JAX traces there is no array that numpy could read.",
    example="import numpy as np\n\n\ndef f(x: torch.Tensor):\n    return np.exp(x)",
    instead="def f(x: torch.Tensor):\n    return torch.exp(x)",
)
def host_array(node: Any, ctx: FlagContext) -> Advice | str | None:
    """``x.numpy()``, ``np.exp(x)`` on tensors in a forward pass, ``array[i] = x.sum()`` into an array of numpy."""
    if not ctx.in_forward:
        return None
    if isinstance(node, cst.Assign):
        return _into_host(node, ctx)
    if isinstance(node, cst.Subscript):
        return _of_host(node, ctx)
    name = ctx.callee(node) or ""
    if name == "Tensor.numpy":
        if ctx.parents and isinstance(ctx.parents[-1], cst.Attribute):
            if ctx.parents[-1].attr.value == "dtype":
                return None  # no number leaves
        x = node.func.value if isinstance(node.func, cst.Attribute) else node
        text = f"keep `{ctx.text(x)}` and use jax.numpy, or jax.pure_callback for what exists only in numpy"
        # a function of its own may run on the host, as the definition of .numpy() does
        return Advice(text, blocks=ctx.in_model or not ops(name))
    if name.startswith("numpy.") and name.count(".") == 1:
        if any(gives_tensors(a.value, ctx) for a in node.args if not a.star):
            if _told_apart(node, ctx):
                return None
            short = name.removeprefix("numpy.")
            return f"write `jnp.{short}(…)`, or jax.pure_callback for what exists only in numpy"
    return None


def _told_apart(node: cst.Call, ctx: FlagContext) -> bool:
    """``x.clone() if isinstance(x, torch.Tensor) else np.copy(x)``: what numpy gets there is no tensor."""
    given = {a.value.value for a in node.args if isinstance(a.value, cst.Name)}
    inner: cst.CSTNode = node
    for parent in reversed(ctx.parents):
        if isinstance(parent, (cst.IfExp, cst.If)) and inner is parent.orelse:
            test = parent.test
            if (
                isinstance(test, cst.Call)
                and test.args
                and isinstance(test.args[0].value, cst.Name)
            ):
                name = ctx.callee(test)
                kinds = [ctx.qualified_name(a.value) for a in test.args[1:]]
                asked = name == "builtins.isinstance" and kinds == ["torch.Tensor"]
                if (asked or name == "torch.is_tensor") and test.args[0].value.value in given:
                    return True
        if isinstance(parent, (cst.FunctionDef, cst.Lambda)):
            return False
        inner = parent
    return False


def _of_host(node: cst.Subscript, ctx: FlagContext) -> str | None:
    """``table[x.argmax()]`` of an array of numpy."""
    if getattr(ctx.kind(node.value), "type", None) != "numpy.ndarray":
        return None
    places = [one.slice.value for one in node.slice if isinstance(one.slice, cst.Index)]
    if not any(map(ctx.is_tensor, places)):
        return None
    return f"make `{ctx.text(node.value)}` an array of jnp, `jnp.asarray(…)`"


def _into_host(node: cst.Assign, ctx: FlagContext) -> str | None:
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Subscript) or not ctx.is_tensor(node.value):
            continue
        if getattr(ctx.kind(target.value), "type", None) == "numpy.ndarray":
            return f"make `{ctx.text(target.value)}` an array of jnp, or stack the values"
    return None


@flag(
    "TRC008",
    "torch-compiler",
    cst.Call,
    cst.Decorator,
    severity="info",
    blocks=False,
    effort=0.0,
    what="torch's compiler is asked for",
    why="JAX compiles with jit around the whole step; a decorator on a part of the model is dropped.",
    example="@torch.jit.script\ndef f(x: torch.Tensor):\n    return x.relu()",
    instead="def f(x: torch.Tensor):\n    return x.relu()",
)
def compiler(node: Any, ctx: FlagContext) -> str | None:
    """``torch.compile``, ``torch.jit.script``, ``@torch.jit.export``."""
    if isinstance(node, cst.Call):
        name = ctx.callee(node) or ""
        if type(ctx.parents[-1]) is cst.Decorator:
            return None
    else:
        inner = node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
        name = ctx.qualified_name(inner) or ""
    if name == "torch.compile" or (name.startswith("torch.jit.") and "annotate" not in name):
        if name.rpartition(".")[2] in ("is_scripting", "is_tracing"):
            return None
        return "put nnx.jit around the step that calls the model"
    return None


code(
    "TRC010",
    "activation-checkpointing",
    severity="info",
    blocks=False,
    effort=0.0,
    what="activation checkpointing is left out",
    why="It changes memory and time, not results; nnx.remat does the same where it is wanted.",
    example=(
        "from torch.utils.checkpoint import checkpoint\n\n\ndef block(x: torch.Tensor):\n    return x.relu()\n\n\n"
        "def f(x: torch.Tensor):\n    return checkpoint(block, x, use_reentrant=False)"
    ),
    instead="def block(x: torch.Tensor):\n    return x.relu()\n\n\ndef f(x: torch.Tensor):\n    return block(x)",
)


code(
    "TRC012",
    "unread-gradient",
    severity="info",
    blocks=False,
    effort=0.0,
    what="backward() is called where nothing reads a gradient",
    why="JAX differentiates functions; what only shows that backward() runs has no counterpart.",
    example="def test():\n    net = nn.Linear(2, 2)\n    net(torch.ones(1, 2)).sum().backward()",
    instead="def test():\n    net = nn.Linear(2, 2)\n    print(net(torch.ones(1, 2)).shape)",
)


code(
    "TRC013",
    "global-seed",
    severity="info",
    blocks=False,
    effort=0.0,
    what="the seed of torch's global random generator is left out",
    why="JAX has no global generator: random numbers come from the nnx.Rngs that a model is built with.",
    example="def inputs():\n    torch.manual_seed(0)\n    return torch.randn(2)",
    instead="def inputs():\n    return torch.randn(2)",
)


@flag(
    "TRC015",
    "process-group",
    cst.Call,
    severity="info",
    blocks=False,
    effort=0.0,
    what="code for torch's process group is left out",
    why=(
        "A JAX program has no process group: a sharded array is one array to all of its processes, and a sum or a "
        "mean of it goes over all of them."
    ),
    example=(
        "import torch.distributed as dist\n\n\ndef f(x: torch.Tensor):\n    if dist.is_initialized():\n"
        "        dist.all_reduce(x)\n    return x"
    ),
    instead="def f(x: torch.Tensor):\n    return x",
)
def process_group(node: Any, ctx: FlagContext) -> str | None:
    """``dist.is_initialized()``, which is False in the output."""
    if ctx.callee(node) != "torch.distributed.is_initialized":
        return None
    return "shard the batch with jax.sharding; random numbers are the same in every process, by their key"


_CAUGHT = frozenset(
    "RuntimeError ValueError IndexError LookupError TypeError AssertionError Exception BaseException "
    "OutOfMemoryError LinAlgError _LinAlgError".split()
)
"""What torch raises when tensors do not fit, or are not what an operation asks for; and what holds it."""


@flag(
    "TRC014",
    "error-of-tensor-code",
    cst.Try,
    cst.With,
    effort=0.5,
    what="an error of tensor code is caught and made up for",
    why="JAX raises other errors than torch, at other times, and none at all for an index that is out of range.",
    example=(
        "def f(x: torch.Tensor, y: torch.Tensor):\n    try:\n        return x + y\n"
        "    except RuntimeError:\n        return x + y.mT"
    ),
    instead=(
        "def f(x: torch.Tensor, y: torch.Tensor):\n    if x.shape == y.shape:\n        return x + y\n"
        "    return x + y.mT"
    ),
)
def error_of_tensor_code(node: Any, ctx: FlagContext) -> str | None:
    """``try: x + y`` with ``except RuntimeError:`` that goes on; ``with suppress(RuntimeError):``."""
    if isinstance(node, cst.With):
        calls = [i.item for i in node.items if isinstance(i.item, cst.Call)]
        given = [c for c in calls if ctx.callee(c) == "contextlib.suppress"]
        caught = any(_may_catch(arg.value) for call in given for arg in call.args)
    else:
        caught = any(_may_catch(h.type) and not _raises_again(h.body) for h in node.handlers)
    if caught and any(_may_raise(part, ctx) for part in lines.below(node.body)):
        return "ask beforehand for what makes the operation fail: a shape, a dtype, a length"
    return None


def _may_catch(node: cst.BaseExpression | None) -> bool:
    """Whether ``except`` of this catches what torch raises for tensors."""
    if node is None:
        return True
    if isinstance(node, cst.Tuple):
        return any(_may_catch(element.value) for element in node.elements)
    last = node.attr if isinstance(node, cst.Attribute) else node
    return not isinstance(last, cst.Name) or last.value in _CAUGHT


def _raises_again(body: cst.BaseSuite) -> bool:
    """Whether a handler ends in an error of its own."""
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, cst.Raise)


def _may_raise(node: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether a node computes with tensors, or calls what may."""
    if isinstance(node, cst.Call):
        name = ctx.callee(node) or ""
        if name in ("Tensor.size", "Tensor.dim"):
            return False  # an axis that is not there is an IndexError of the shape in JAX too
        if name.startswith(("Tensor.", "Module.")) or name.endswith("()") or ctx.is_tensor(node):
            return True
        return any(ctx.is_tensor(item.value) for item in node.args)
    if isinstance(node, (cst.BinaryOperation, cst.Subscript)):
        if isinstance(node, cst.Subscript) and all(_is_range(e.slice, ctx) for e in node.slice):
            return False  # too many of them are an IndexError in JAX too, and out of range is none
        return ctx.is_tensor(node.left if isinstance(node, cst.BinaryOperation) else node.value)
    return isinstance(node, cst.Assign) and any(
        isinstance(t.target, cst.Subscript) and ctx.is_tensor(t.target.value) for t in node.targets
    )


def _is_range(node: cst.BaseSlice, ctx: FlagContext) -> bool:
    """``a:b`` of numbers: a step may be negative for JAX."""
    if not isinstance(node, cst.Slice):
        return False
    bounds = [part for part in (node.lower, node.upper) if part is not None]
    return node.step is None and not any(ctx.is_tensor(bound) for bound in bounds)

"""How a rule is declared, and the few words its body may use.

A rule is a function with torch's documented signature whose body says what the name means in JAX. The
converter reads its *source* (``rules/definitions.py``); the tests import it and run it against torch. This
module is therefore importable without jax, torch or libcst.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Unsupported(NotImplementedError):
    """A use of a torch name that a definition declares it does not cover."""


@dataclass(frozen=True)
class Definition:
    """One executable definition, as the tests see it."""

    names: tuple[str, ...]
    function: Callable[..., Any]
    example: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    call: str = "Tensor"
    fields: tuple[str, ...] = ()


OPS: dict[str, list[Definition]] = {}
LAYERS: dict[str, list[Definition]] = {}
FLAGS: dict[str, Flag] = {}


def _declare(table: dict[str, list[Definition]], definition: Definition) -> None:
    for name in definition.names:
        table.setdefault(name, []).append(definition)


def op(
    *names: str,
    example: Mapping[str, str] | None = None,
    fields: Sequence[str] = (),
    general: bool = False,
) -> Callable[[F], F]:
    """Declare a torch function, Tensor method or operator.

    Args:
      names: every torch name the definition covers: ``"torch.var"``, ``"Tensor.var"``,
        ``"torch.nn.functional.gelu"``, ``"Tensor.__add__"``. Several definitions may carry one name; the first
        whose signature binds and whose annotations fit the argument kinds is used.
      example: torch source → the JAX source it becomes (names ``x y z`` float tensors, ``i j`` integer
        tensors, ``mask`` a boolean tensor, ``n`` an int). It is a test and the documentation.
      general: the definition covers at run time what the overloads before it cover one by one; it is copied
        and called where the argument kinds do not tell them apart.
      fields: names of the components of a tuple result (``("values", "indices")``).
    """

    def register(function: F) -> F:
        _declare(OPS, Definition(names, function, example or {}, fields=tuple(fields)))
        return function

    return register


def layer(
    *names: str,
    weights: Mapping[str, str] | None = None,
    call: str = "Tensor",
    example: Mapping[str, str] | None = None,
) -> Callable[[F], F]:
    """Declare a ``torch.nn`` class by a function that builds its Flax counterpart.

    Args:
      names: qualified torch classes, ``"torch.nn.LayerNorm"``.
      weights: torch parameter or buffer name → Flax attribute, with ``.T`` appended where the array is stored
        transposed (``{"weight": "kernel.T"}``). Names left out keep name and layout.
      call: the kind of the result of calling the layer, as an annotation: ``"Tensor"``,
        ``"tuple[Tensor, tuple[Tensor, Tensor]]"``.
      example: torch constructor source → Flax constructor source.
    """

    def register(function: F) -> F:
        definition = Definition(names, function, example or {}, dict(weights or {}), call)
        _declare(LAYERS, definition)
        return function

    return register


# --- words a definition's body may use; the converter decides them, the tests run them --------------------------


def unsupported(why: str) -> NoReturn:
    """This use has no conversion: a finding in the converter, an error in a test."""
    raise Unsupported(why)


def sizes(args: Sequence[Any], scalar: bool = False) -> Any:
    """The one sequence meant by ``f(2, 3)`` and by ``f((2, 3))``; use on a ``*args`` parameter.

    ``scalar`` says that an int would do where the result is used, so that a single argument of unknown kind
    can stand for itself.
    """
    if len(args) == 1 and not isinstance(args[0], int) and not hasattr(args[0], "__index__"):
        return args[0]
    if len(args) == 1 and getattr(args[0], "ndim", 0) == 1:
        return args[0]
    return tuple(args)


def surely(test: bool) -> bool:
    """A test that counts as false where the converter cannot decide it.

    Only for rare cases in which JAX raises if the guess is wrong (``surely(input.ndim == 0)``): the usual case
    then reads as a person would write it.
    """
    return bool(test)


def in_steps() -> bool:
    """Whether the local values of a definition may be statements of their own before the one that calls it.

    They may not where something is computed later or not at all (in a lambda, behind ``and``). Where the answer is
    yes, they are; each may be used once. Within ``surely`` only.
    """
    return True


def axes(dim: Any, input: Any) -> Any:
    """``dim`` of a reduction as JAX's ``axis``: a tuple for a list, None (all) for ``()`` and 0-d tensors."""
    if isinstance(dim, (tuple, list)):
        return tuple(dim) if dim and input.ndim else None
    return dim if input.ndim else None


def is_tensor(value: Any) -> bool:
    """Whether a value is an array (not a Python number)."""
    return hasattr(value, "dtype") and hasattr(value, "ndim")


def _is(value: Any, category: str) -> bool:
    import jax.numpy as jnp

    return bool(jnp.issubdtype(jnp.result_type(value), getattr(jnp, category)))


def is_float(value: Any) -> bool:
    """Whether the dtype is a real floating one."""
    return _is(value, "floating")


def is_integer(value: Any) -> bool:
    """Whether the dtype is an integer one (bool is not)."""
    return _is(value, "integer")


def is_bool(value: Any) -> bool:
    """Whether the dtype is bool."""
    return _is(value, "bool_")


def is_complex(value: Any) -> bool:
    """Whether the dtype is complex."""
    return _is(value, "complexfloating")


# --- flags ------------------------------------------------------------------------------------------------------


class FlagContext(Protocol):
    """What a flag rule may ask about the file. Nodes are libcst nodes."""

    @property
    def parents(self) -> list[Any]:
        """The ancestors of the node, outermost first."""

    memo: dict[str, Any]
    """What rules noted about names of the function around the node, in the order of the source."""

    def kind(self, node: Any) -> Any:
        """The kind (``migrator.infer.kinds``) of an expression."""

    def is_tensor(self, node: Any) -> bool:
        """Whether an expression is known to be a tensor."""

    def is_given_tensor(self, node: Any) -> bool:
        """Whether it is one, or a number by its hint or default that a traced call hands a tensor for."""

    def holds_tensor(self, node: Any) -> bool:
        """Whether it is a tensor or has one in it: a tuple, a dict, an object of a class of the project."""

    def is_object_of_tensors(self, node: Any) -> bool:
        """Whether it is an object of a plain class of the project that has tensors."""

    def outlives(self, node: Any) -> bool:
        """Whether what an expression names is there before the call and after it: ``self.cache``, ``CACHE``."""

    def keeps_results(self, decorator: Any) -> bool:
        """Whether a decorator keeps tensors that the function under it has made, and cannot be done without."""

    def dtype(self, node: Any) -> str | None:
        """ "float", "int", "bool", "complex" of a tensor, None where unknown."""

    def rank(self, node: Any) -> int | None:
        """The number of axes of a tensor, None where unknown."""

    def scalar(self, node: Any) -> str | None:
        """ "int", "float", "bool", "str"… of a Python scalar, None for anything else."""

    def qualified_name(self, node: Any) -> str | None:
        """``"torch.nn.functional.relu"`` for a Name or Attribute that resolves to it."""

    def callee(self, call: Any) -> str | None:
        """The name a Call reaches: ``"torch.relu"``, ``"Tensor.view"``, ``"builtins.int"``."""

    def text(self, node: Any) -> str:
        """The source of an expression on one line, shortened when it is long."""

    @property
    def in_forward(self) -> bool:
        """Whether the node lies in code that runs under ``jit`` once converted (not in ``__init__``)."""

    @property
    def in_module(self) -> bool:
        """Whether the node lies in a method of an ``nn.Module``."""

    @property
    def in_model(self) -> bool:
        """Whether the forward pass of a module comes to the node, itself or through what it calls."""


@dataclass(frozen=True)
class Advice:
    """What a flag rule found, where it says more than a sentence.

    ``node`` is the part that is meant when it is not the whole node; the other fields replace those of the flag.
    """

    text: str
    node: Any = None
    what: str | None = None
    severity: str | None = None
    blocks: bool | None = None
    effort: float | None = None


Check = Callable[[Any, FlagContext], "str | Advice | None"]


@dataclass(frozen=True)
class Flag:
    """A diagnostic: what stands in the way of TPU and JAX.

    ``check`` is None for those that the converter raises itself while it works on a statement."""

    code: str
    name: str
    severity: str
    blocks: bool
    effort: float
    nodes: tuple[Any, ...]
    what: str
    why: str
    example: str
    instead: str
    check: Check | None = None


def flag(
    code: str,
    name: str,
    *nodes: Any,
    severity: str = "error",
    blocks: bool = True,
    effort: float = 0.5,
    what: str,
    why: str,
    example: str,
    instead: str,
) -> Callable[[Check], Check]:
    """Declare a diagnostic.

    The decorated function looks at one node and returns None (nothing found) or the advice for that very line
    ("use jnp.where(mask, x, 0)"), in one sentence.

    Args:
      code: stable code in its family: ``DYN001``.
      name: kebab-case name: ``boolean-mask-indexing``.
      nodes: libcst node types it wants to see; of Name and Attribute those only that stand for a dtype.
      severity: ``"error"`` (does not run in JAX), ``"warning"`` (runs, may differ or be slow), ``"info"``.
      blocks: the statement cannot be converted as it stands.
      effort: hours of work a person should plan for one occurrence.
      what, why: one sentence each, for the documentation page and the message.
      example, instead: code that is found, and code that is not. ``torch``, ``nn`` and ``F`` are imported.
    """

    def register(check: Check) -> Check:
        FLAGS[code] = Flag(
            code, name, severity, blocks, effort, nodes, what, why, example, instead, check
        )
        return check

    return register


def code(
    code: str,
    name: str,
    *,
    severity: str = "error",
    blocks: bool = True,
    effort: float = 0.5,
    what: str,
    why: str,
    example: str,
    instead: str,
) -> None:
    """Document a diagnostic that the converter raises itself; arguments as for ``flag``."""
    FLAGS[code] = Flag(code, name, severity, blocks, effort, (), what, why, example, instead)

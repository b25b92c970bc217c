"""Building both sides of a case: the torch module, its port, the inputs they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrator.config import Case, Config, Reference, target_file
from migrator.convention import GROUPS, init_call, init_of_each, is_plain
from migrator.errors import UserError
from migrator.usercode import UserCode, describe

if TYPE_CHECKING:
    from numerics.spec import InputSpec


class PortError(UserError):
    """The converted file cannot be imported or its module not built: a fault of the port, not of the case."""


class MissingError(UserError):
    """No such file, or nothing of that name in it: a mistake in what was asked for."""


def require(package: str) -> None:
    """Import a package, or say in one line what it is needed for and how to get it."""
    try:
        import_module(package)
    except ImportError as error:
        raise UserError(
            f"{package} cannot be imported ({error}), and this command runs the model;"
            f" install it: pip install {package}"
        ) from error


def _attribute(case: Case, target: str, code: UserCode, config: Config) -> Any:
    """The object ``file.py:Name`` names.

    Raises:
      UserError: no such file or name.
    """
    where, _, name = target.partition(":")
    path = target_file(target, config)
    if where.endswith(".py") or path.is_file():
        module = code.load(path)
    else:
        module = code.load_name(where)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            near = _callables(module, name)
            raise MissingError(
                f"case {case.name}: {_shown(where)} has no {name!r}; it has {', '.join(near) or 'no class'}"
            )
        value = getattr(value, part)
    return value


def _shown(target: str) -> str:
    """A target as a person would write it where they are."""
    where, colon, name = target.partition(":")
    path = Path(where)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        where = path.relative_to(Path.cwd()).as_posix()
    return f"{where}{colon}{name}"


def _callables(module: Any, name: str = "") -> list[str]:
    """The names of what a file defines that can be called, those like ``name`` alone where there are some."""
    public = [n for n, v in vars(module).items() if callable(v)]
    public.sort(key=lambda n: getattr(vars(module)[n], "__module__", "") != module.__name__)
    shown = [n for n in public if not n.startswith("_")]
    more = [f"and {len(shown) - 6} more"] if len(shown) > 6 else []
    return get_close_matches(name, public, 3) or [*shown[:6], *more]


def _factory(case: Case, target: str, code: UserCode, config: Config) -> Any:
    """What makes the module of a case.

    Raises:
      UserError: no such file or name, or nothing that can be called.
    """
    found = _attribute(case, target, code, config)
    if not callable(found):
        where, _, name = target.partition(":")
        there = _callables(code.load(target_file(target, config))) if where.endswith(".py") else []
        what = "a module" if inspect.ismodule(found) else f"of type {type(found).__name__}"
        has = f"; {_shown(where)} has {', '.join(there)}" if there else ""
        raise UserError(f"case {case.name}: {name!r} is {what}, not a class or function{has}")
    return found


def _wanting(factory: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What to add to ``--init``, where a constructor has arguments that it is not given."""
    try:
        signature = inspect.signature(factory)
        given = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return ""
    positional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    wanting = [
        name
        for name, one in signature.parameters.items()
        if name not in given and one.default is one.empty and one.kind not in positional
    ]
    if not wanting:
        return ""
    return f'; give it with --init "{", ".join(f"{name}=…" for name in wanting)}"'


def _resolved(value: Any, lookup: Callable[[str], Any]) -> Any:
    """A constructor argument with its references looked up and called."""
    if isinstance(value, Reference):
        found = lookup(value.target)
        if not value.call:
            return found
        args = [_resolved(part, lookup) for part in value.args]
        return found(*args, **_resolved(dict(value.kwargs), lookup))
    if isinstance(value, list | tuple):
        return type(value)(_resolved(part, lookup) for part in value)
    if isinstance(value, Mapping):
        return {key: _resolved(part, lookup) for key, part in value.items()}
    return value


def _arguments(
    case: Case, factory: Any, code: UserCode, config: Config, lookup: Callable[[str], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The constructor's arguments: those of the table, or what the case's function makes."""
    if case.init_hook is None:
        return _resolved(case.init_args, lookup), _resolved(dict(case.init_kwargs), lookup)
    make = _attribute(case, case.init_hook, code, config)
    with code.active():
        return init_call(factory, _first(case, config, code, make()))


def _in_groups(case: Case) -> bool:
    """Whether the inputs of a case are those of several calls."""
    return case.hook is not None and case.hook.rpartition(":")[2] in GROUPS


def _first(case: Case, config: Config, code: UserCode, given: Any) -> Any:
    """What is said of the first group of inputs, where each has a constructor call of its own."""
    if not _in_groups(case):
        return given
    each = init_of_each(_factory(case, case.torch, code, config), given)
    return given if each is None else each[0]


def build_torch(case: Case, config: Config, code: UserCode, again: int = 0) -> Any:
    """The torch side of a case, with the random numbers of its seed; ``again`` draws others.

    Raises:
      UserError: it cannot be built, with what its construction raised and where.
    """
    import torch

    from numerics.recipes import kept_seed, seeded

    factory = _factory(case, case.torch, code, config)
    own = case.torch.partition(":")[0]

    def lookup(target: str) -> Any:
        return _attribute(case, target if ":" in target else f"{own}:{target}", code, config)

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    try:
        with code.active(), seeded(case.seed + again), kept_seed() if again else nullcontext():
            args, kwargs = _arguments(case, factory, code, config, lookup)
            module = factory(*args, **kwargs)
    except UserError:
        raise
    except Exception as error:
        where = describe(error, target_file(case.torch, config))
        hint = _wanting(factory, args, kwargs) if isinstance(error, TypeError) else ""
        raise UserError(
            f"case {case.name}: {_shown(case.torch)} cannot be built: {where}{hint}"
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise UserError(
            f"case {case.name}: {_shown(case.torch)} gives a {type(module).__name__}, not a torch.nn.Module"
        )
    return module


def _jax_target(case: Case, config: Config) -> str:
    if case.jax is not None:
        return case.jax
    where, _, name = case.torch.partition(":")
    source = target_file(case.torch, config)
    if source.is_relative_to(config.root):
        where = source.relative_to(config.root).as_posix()
    converted = config.converted(where)
    if converted is None:
        raise UserError(
            f'case {case.name}: where is the port? Write jax = "file.py:{name}" in the case,'
            " or [tool.migrate] output"
        )
    if not (config.root / converted).is_file():
        raise UserError(
            f"case {case.name}: {converted} does not exist; run"
            f" `migrate convert {where} -o {config.output}` first"
        )
    return f"{converted}:{name}"


def build_flax(case: Case, config: Config) -> Any:
    """The port of a case, constructed with fresh random numbers.

    Raises:
      MissingError: no such file, or no such name in it.
      PortError: its file cannot be imported, or its constructor raises.
    """
    from flax import nnx

    target = _jax_target(case, config)
    own = target.partition(":")[0]
    code = UserCode(config.root, target_file(target, config).parent)

    def lookup(name: str) -> Any:
        if ":" not in name:
            return _attribute(case, f"{own}:{name}", code, config)
        file, _, attribute = name.partition(":")
        converted = config.converted(file)
        exists = converted is not None and (config.root / converted).is_file()
        return _attribute(case, f"{converted}:{attribute}" if exists else name, code, config)

    factory = _port_factory(case, target, code, config)
    try:
        with code.active():
            args, kwargs = _port_arguments(case, factory, code, config, lookup)
            if _takes_rngs(factory):
                kwargs["rngs"] = nnx.Rngs(case.seed)
            module = factory(*args, **kwargs)
    except UserError as error:
        raise PortError(str(error)) from error
    except Exception as error:
        where = describe(error, target_file(target, config))
        raise PortError(f"{_shown(target)} cannot be built: {where}") from error
    if not isinstance(module, nnx.Module):
        raise PortError(f"{_shown(target)} gives a {type(module).__name__}, not an nnx.Module")
    return module


def _port_factory(case: Case, target: str, code: UserCode, config: Config) -> Any:
    """The port's class: one that is not there is a mistake of the case, one that cannot be imported is the port's."""
    where = target.partition(":")[0]
    if where.endswith(".py") and not target_file(target, config).is_file():
        raise MissingError(f"case {case.name}: {where} does not exist")
    try:
        return _attribute(case, target, code, config)
    except MissingError:
        raise
    except Exception as error:
        raise PortError(str(error)) from error


def _takes_rngs(factory: Any) -> bool:
    if inspect.isclass(factory) and factory.__init__ is object.__init__:
        return False  # nnx.Module's metaclass shows a signature that accepts everything
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.name == "rngs" or p.kind is p.VAR_KEYWORD for p in parameters)


def _port_arguments(
    case: Case, factory: Any, code: UserCode, config: Config, lookup: Callable[[str], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The torch side's arguments where they are plain values, else what the port's own function makes."""
    from flax import nnx

    if case.init_hook is None:
        return _arguments(case, factory, code, config, lookup)
    torch_code = UserCode(config.root, target_file(case.init_hook, config).parent)
    given = _arguments(case, factory, torch_code, config, lookup)
    if is_plain(given):
        return given
    make = lookup(case.init_hook.partition(":")[2])
    made = make(rngs=nnx.Rngs(case.seed)) if _takes_rngs(make) else make()
    return init_call(factory, _first(case, config, torch_code, made))


def _of_one_module(case: Case, config: Config, code: UserCode) -> Callable[[int], bool]:
    """Which groups of inputs are for a module that is built as the first one's is."""
    each: list[Any] | None = None
    if case.init_hook is not None:
        factory = _factory(case, case.torch, code, config)
        with code.active():
            each = init_of_each(factory, _attribute(case, case.init_hook, code, config)())

    def wanted(index: int) -> bool:
        if each is None or index == 0:
            return True
        return index < len(each) and is_plain(each[index]) and each[index] == each[0]

    return wanted


def spec_of(case: Case, config: Config, code: UserCode) -> InputSpec:
    """The inputs of a case, with its hook loaded; one that takes no arguments gets its values varied.

    Of a hook that makes the arguments of several calls, each example is one of these.

    Raises:
      UserError: no such hook; calling it raises one too, with what it raised.
    """
    if case.hook is None:
        return case.inputs
    from numerics.recipes import as_hook, one_of

    function = _attribute(case, case.hook, code, config)
    takes = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if _in_groups(case) and not takes:
        function = one_of(function, _of_one_module(case, config, code))
    hook = function if takes else as_hook(function)

    def make(*given: Any) -> Any:
        try:
            return hook(*given)
        except Exception as error:
            where = describe(error, target_file(case.hook or "", config))
            raise UserError(f"case {case.name}: {case.hook} makes no inputs: {where}") from error

    return replace(case.inputs, hook=make)

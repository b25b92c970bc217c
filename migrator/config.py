"""``[tool.migrate]`` in pyproject.toml → Config and Case."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrator.convention import INIT, outline
from migrator.errors import UserError
from numerics.spec import (
    DISTRIBUTIONS,
    DTYPES,
    FLOATS,
    Array,
    Choice,
    Constant,
    Group,
    InputSpec,
    Item,
    SpecError,
    evaluate,
    size_choices,
)

EXPECTATIONS = ("equal", "flagged")
PRECISIONS = ("f32", "bf16", "f16")
PROFILES = (
    *("normal", "zeros", "ties", "tiny", "large", "offset", "mixed"),
    *("denormal", "infinite", "nan"),
)

_CASE_KEYS = frozenset(
    [
        "name",
        "torch",
        "jax",
        "init",
        "dims",
        "inputs",
        "train",
        "grad",
        "examples",
        "shapes",
        "profiles",
        "expect",
        "seed",
        "train_steps",
        "vmap",
        "second_order",
        "precision",
        "initial",
        "where",
    ]
)
_TOOL_KEYS = frozenset({"output", "sources", "case"})
_INPUT_KEYS = frozenset(
    [
        "name",
        "shape",
        "dtype",
        "range",
        "min",
        "max",
        "sorted",
        "density",
        "distribution",
        "empty",
        "ragged",
        "optional",
        "choices",
        "value",
        "tuple",
        "list",
        "dict",
    ]
)


@dataclass(frozen=True)
class Reference:
    """``file.py:Name`` or ``pkg.mod:Name``; without a file, the module's own. ``call`` says to call it."""

    target: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    call: bool = False


@dataclass(frozen=True)
class Case:
    """One model and how to exercise it.

    ``init_args`` and ``init_kwargs`` hold plain values and ``Reference`` objects; ``init_hook`` names a function
    that makes them instead, ``hook`` one that makes the inputs; ``problem`` says why there is nothing to run.
    ``budget`` is the time in seconds after which no further example is started. ``outside`` is what of its
    file does not convert and the port does without.
    """

    name: str
    torch: str
    jax: str | None = None
    init_args: tuple[Any, ...] = ()
    init_kwargs: Mapping[str, Any] = field(default_factory=dict)
    inputs: InputSpec = field(default_factory=InputSpec)
    hook: str | None = None
    init_hook: str | None = None
    train: bool = True
    grad: bool = True
    examples: int = 12
    shapes: int = 3
    seed: int = 0
    expect: str = "equal"
    train_steps: int = 0
    vmap: bool = False
    second_order: bool = False
    precision: str = "f32"
    initial: bool = True
    problem: str | None = None
    budget: float | None = None
    outside: tuple[str, ...] = ()
    root: Path = field(default_factory=Path)


@dataclass(frozen=True)
class Config:
    """What ``[tool.migrate]`` says.

    ``root`` is the directory of pyproject.toml; ``output`` where converted files lie; ``sources`` the
    directories whose layout ``output`` repeats; ``path`` the file itself, None for a case made of flags.
    """

    root: Path = field(default_factory=Path)
    output: Path | None = None
    sources: tuple[Path, ...] = ()
    cases: tuple[Case, ...] = ()
    path: Path | None = None

    def converted(self, source: str) -> str | None:
        """The converted file of ``samples/mlp.py``, relative to the root: the first that exists, else a guess."""
        if self.output is None:
            return None
        path = Path(source)
        candidates = [
            self.output / path.relative_to(base)
            for base in self.sources
            if path.is_relative_to(base)
        ]
        candidates += [self.output / path.name, self.output / path]
        for candidate in candidates:
            if (self.root / candidate).is_file():
                return candidate.as_posix()
        return candidates[0].as_posix()


def find_pyproject(start: Path) -> Path | None:
    """The nearest pyproject.toml at or above a directory."""
    for directory in (start.resolve(), *start.resolve().parents):
        if (directory / "pyproject.toml").is_file():
            return directory / "pyproject.toml"
    return None


def target_file(target: str, config: Config) -> Path:
    """The file of ``"dir/file.py:Name"`` or ``"package.module:Name"``."""
    where = target.partition(":")[0]
    if where.endswith(".py"):
        return (config.root / where).resolve()
    relative = Path(*where.split("."))
    for candidate in (relative.with_suffix(".py"), relative / "__init__.py"):
        for base in (config.root, config.root / "src"):
            if (base / candidate).is_file():
                return (base / candidate).resolve()
    return (config.root / relative.with_suffix(".py")).resolve()


def load_config(path: Path | None = None) -> Config:
    """Read a pyproject.toml (default: the nearest above the working directory; none there: no cases).

    Raises:
      UserError: one line with the file, the key, what is wrong and what to write. Where only the table of one case
        is wrong, that line is the case's ``problem``.
    """
    path = path or find_pyproject(Path.cwd())
    if path is None:
        return Config(root=Path.cwd())
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    return _config(document.get("tool", {}).get("migrate", {}), path)


def configured_output() -> str | None:
    """Where ``convert`` writes by the nearest pyproject.toml, which says so by ``output``; None where none does.

    Raises:
      UserError: as ``load_config``.
    """
    config = load_config()
    return None if config.output is None else str(config.root / config.output)


def _config(table: Mapping[str, Any], path: Path) -> Config:
    where = f"{path}: tool.migrate"
    _known(table, _TOOL_KEYS, where)
    root = path.parent.resolve()
    cases = table.get("case", [])
    if not isinstance(cases, list):
        raise UserError(f"{where}.case is a list of tables; write [[tool.migrate.case]]")
    parsed: list[Case] = []
    for number, entry in enumerate(cases, 1):
        case = _case_or_problem(entry, root, f"{where}.case {entry.get('name') or number}")
        if any(case.name == other.name for other in parsed):
            raise UserError(f"{where}.case: two cases are named {case.name!r}; rename one")
        parsed.append(case)
    output = _take(table, "output", str, None, where)
    config = Config(
        root=root,
        output=None if output is None else Path(output),
        sources=tuple(Path(source) for source in _take(table, "sources", list, [], where)),
        path=path,
    )
    described = [_self_described(*pair, config) for pair in zip(parsed, cases, strict=True)]
    return replace(config, cases=tuple(described))


def _case_or_problem(entry: Mapping[str, Any], root: Path, where: str) -> Case:
    """The case, or one that says what is wrong with its table: the others are verified all the same.

    Raises:
      UserError: the table does not even say which model is meant.
    """
    try:
        return parse_case(entry, root, where)
    except UserError as error:
        torch, name = entry.get("torch"), entry.get("name")
        if not isinstance(torch, str) or ":" not in torch:
            raise
        name = name if isinstance(name, str) else torch.partition(":")[2]
        return Case(name, torch, problem=str(error), root=root)


def _self_described(case: Case, entry: Mapping[str, Any], config: Config) -> Case:
    """A case whose table says nothing of inputs takes them from its file, and constructor arguments likewise."""
    if "inputs" in entry or case.problem is not None:
        return case
    try:
        offered = outline(target_file(case.torch, config))
    except UserError:
        return case  # running it will tell
    if offered.inputs is None:
        return case
    where = case.torch.partition(":")[0]
    makes_init = "init" not in entry and INIT in offered.functions
    return replace(
        case,
        hook=f"{where}:{offered.inputs}",
        init_hook=f"{where}:{INIT}" if makes_init else case.init_hook,
    )


def parse_case(entry: Mapping[str, Any], root: Path, where: str) -> Case:
    """A case from its table (also used for cases made of command-line flags)."""
    _known(entry, _CASE_KEYS, where)
    torch = _take(entry, "torch", str, None, where)
    if torch is None or ":" not in torch:
        raise UserError(f'{where}: torch = "file.py:Class" or "package.module:factory" is needed')
    jax = _take(entry, "jax", str, None, where)
    if jax is not None and ":" not in jax:
        raise UserError(f'{where}: jax = {jax!r} names no class; write "file.py:Class"')
    expect = _take(entry, "expect", str, "equal", where)
    if expect not in EXPECTATIONS:
        raise UserError(f"{where}: expect = {expect!r}; write one of {', '.join(EXPECTATIONS)}")
    precision = _take(entry, "precision", str, "f32", where)
    if precision not in PRECISIONS:
        raise UserError(f"{where}: precision = {precision!r}; write one of {', '.join(PRECISIONS)}")
    init = entry.get("init", {})
    init_hook = init if isinstance(init, str) else None
    init = {} if init_hook else _take(entry, "init", dict, {}, where)
    _known(init, frozenset({"args", "kwargs"}), f"{where}, init")
    inputs = entry.get("inputs", [])
    dims = _dims(_take(entry, "dims", dict, {}, where), where)
    profiles = tuple(_take(entry, "profiles", list, [], where))
    for profile in profiles:
        if profile not in PROFILES:
            raise UserError(f"{where}: profile {profile!r}; write some of {', '.join(PROFILES)}")
    hook = inputs if isinstance(inputs, str) else None
    items = () if hook else tuple(_items(inputs, dims, f"{where}, inputs"))
    return Case(
        name=_take(entry, "name", str, torch.partition(":")[2], where),
        torch=torch,
        jax=jax,
        init_args=tuple(_value(value, f"{where}, init") for value in init.get("args", [])),
        init_kwargs={
            key: _value(value, f"{where}, init") for key, value in init.get("kwargs", {}).items()
        },
        inputs=_spec(items, dims, profiles, tuple(_take(entry, "where", list, [], where)), where),
        hook=hook,
        init_hook=init_hook,
        train=_take(entry, "train", bool, True, where),
        grad=_take(entry, "grad", bool, True, where),
        examples=_take(entry, "examples", int, 12, where),
        shapes=_take(entry, "shapes", int, 3, where),
        seed=_take(entry, "seed", int, 0, where),
        expect=expect,
        train_steps=_take(entry, "train_steps", int, 0, where),
        vmap=_take(entry, "vmap", bool, False, where),
        second_order=_take(entry, "second_order", bool, False, where),
        precision=precision,
        initial=_take(entry, "initial", bool, True, where),
        root=root,
    )


def _spec(
    items: tuple[Item, ...],
    dims: Mapping[str, Any],
    profiles: tuple[str, ...],
    conditions: tuple[str, ...],
    where: str,
) -> InputSpec:
    spec = InputSpec(items=items, dims=dims, profiles=profiles, where=conditions)
    try:
        sizes = size_choices(spec, 1)[0]
        for array in spec.arrays():
            for size in array.shape:
                evaluate(size, sizes)
    except SpecError as error:
        raise UserError(f"{where}: {error}") from None
    return spec


def _known(table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UserError(f"{where}: unknown key {key!r}; known: {', '.join(sorted(keys))}")


def _take(table: Mapping[str, Any], key: str, kind: type, default: Any, where: str) -> Any:
    value = table.get(key, default)
    if value is not default and (not isinstance(value, kind) or (kind is int and value is True)):
        words = {str: "a string", int: "an integer", bool: "true or false", list: "a list"}
        raise UserError(f"{where}: {key} = {value!r} should be {words.get(kind, 'a table')}")
    return value


def _value(value: Any, where: str) -> Any:
    """A constructor argument; ``{call = …}`` and ``{get = …}`` become references."""
    if isinstance(value, list):
        return [_value(part, where) for part in value]
    if not isinstance(value, dict):
        return value
    if "get" in value:
        _known(value, frozenset({"get"}), where)
        return Reference(value["get"])
    if "call" in value:
        _known(value, frozenset({"call", "args", "kwargs"}), where)
        kwargs = {key: _value(part, where) for key, part in value.get("kwargs", {}).items()}
        args = tuple(_value(part, where) for part in value.get("args", []))
        return Reference(value["call"], args, kwargs, call=True)
    return {key: _value(part, where) for key, part in value.items()}


def _dims(table: Mapping[str, Any], where: str) -> dict[str, tuple[int, ...]]:
    dims: dict[str, tuple[int, ...]] = {}
    for name, entry in table.items():
        choices = _choices(entry, f"{where}, dims.{name}")
        if not choices or not all(isinstance(size, int) and size >= 0 for size in choices):
            raise UserError(f"{where}: dims.{name} = {entry!r} leaves no size to choose")
        dims[name] = tuple(choices)
    return dims


def _choices(entry: Any, where: str) -> list[int]:
    if isinstance(entry, int):
        return [entry]
    if isinstance(entry, list) and len(entry) == 2 and all(isinstance(size, int) for size in entry):
        entry = {"min": entry[0], "max": entry[1]}
    if isinstance(entry, dict) and "choices" in entry:
        _known(entry, frozenset({"choices"}), where)
        return list(entry["choices"])
    if isinstance(entry, dict):
        _known(entry, frozenset({"min", "max", "multiple"}), where)
        low, step = entry.get("min", 1), entry.get("multiple", 1)
        if all(isinstance(size, int) for size in (low, step, entry.get("max"))) and step > 0:
            return [size for size in range(low, entry["max"] + 1) if size % step == 0]
    raise UserError(
        f"{where} = {entry!r}; write [low, high], a size, {{min=, max=, multiple=}} or {{choices=[…]}}"
    )


def _items(entries: Any, dims: Mapping[str, Any], where: str) -> list[Item]:
    if not isinstance(entries, list):
        raise UserError(f'{where}: write a list of tables, or "file.py:function" for a hook')
    return [_item(entry, dims, f"{where} {number}") for number, entry in enumerate(entries, 1)]


def _item(entry: Any, dims: Mapping[str, Any], where: str) -> Item:
    if not isinstance(entry, dict):
        raise UserError(f'{where}: {entry!r} is no table; write {{ shape = ["B", 3] }}')
    _known(entry, _INPUT_KEYS, where)
    name = _take(entry, "name", str, None, where)
    optional = _take(entry, "optional", bool, False, where)
    if "value" in entry:
        return Constant(entry["value"], name, optional)
    if "choices" in entry:
        return Choice(tuple(_take(entry, "choices", list, [], where)), name, optional)
    for kind in ("tuple", "list"):
        if kind in entry:
            return Group(kind, tuple(_items(entry[kind], dims, where)), name, optional)
    if "dict" in entry:
        parts = [_item({**part, "name": key}, dims, where) for key, part in entry["dict"].items()]
        return Group("dict", tuple(parts), name, optional)
    return _array(entry, dims, name, where)


def _array(entry: Mapping[str, Any], dims: Mapping[str, Any], name: Any, where: str) -> Array:
    shape = entry.get("shape")
    if not isinstance(shape, list) or not all(isinstance(size, int | str) for size in shape):
        raise UserError(f'{where}: shape = {shape!r}; write a list such as ["B", 3, 32, 32]')
    for size in shape:
        if isinstance(size, str) and size.isidentifier() and size not in dims:
            raise UserError(
                f"{where}: no dimension {size!r}; add it to dims = {{ {size} = [1, 4] }}"
            )
    dtype = entry.get("dtype", "float32")
    if dtype not in DTYPES:
        raise UserError(f"{where}: dtype = {dtype!r}; write one of {', '.join(DTYPES)}")
    low, high = _range(entry, where)
    distribution = _take(entry, "distribution", str, "", where)
    if distribution and (distribution not in DISTRIBUTIONS or dtype not in FLOATS):
        raise UserError(
            f"{where}: distribution = {distribution!r}; write one of {', '.join(DISTRIBUTIONS)}, for floats"
        )
    if distribution == "uniform" and (low is None or high is None):
        raise UserError(f"{where}: a uniform distribution needs its range, such as range = [0, 1]")
    if dtype not in FLOATS and dtype != "bool" and high is None and not entry.get("ragged"):
        raise UserError(f"{where}: an {dtype} input needs its range, such as range = [0, 100]")
    return Array(
        shape=tuple(shape),
        dtype=dtype,
        low=low,
        high=high,
        name=name,
        sorted=_take(entry, "sorted", bool, False, where),
        density=float(entry.get("density", 0.5)),
        empty=_take(entry, "empty", bool, False, where),
        ragged=_take(entry, "ragged", bool, False, where),
        optional=_take(entry, "optional", bool, False, where),
        distribution=distribution,
    )


def _range(entry: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    bounds = entry.get("range")
    if bounds is None:
        return entry.get("min"), entry.get("max")
    if isinstance(bounds, str) and bounds.count(":") == 1:
        bounds = [int(part) if part.lstrip("-").isdigit() else part for part in bounds.split(":")]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise UserError(f'{where}: range = {bounds!r}; write [low, high] or "low:high"')
    return bounds[0], bounds[1]

"""What the flags of ``verify`` and ``weights`` mean: a case without a pyproject.toml, a module by name."""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrator.building import PortError, build_flax, require, target_file
from migrator.changed import reach
from migrator.config import Case, Config, load_config, parse_case
from migrator.convention import (
    GROUPS,
    INIT,
    INPUTS,
    MAIN,
    main_class,
    missing_inputs,
    outline,
)
from migrator.errors import UserError
from migrator.findings import Finding
from migrator.folders import imports_itself
from migrator.project import Conversion, File, convert_with_stand_ins, discover, write_text
from migrator.shaken import defined, shaken, without_methods
from migrator.source import read_text
from migrator.verifying import select

DEFAULT_DIM = (2, 5)
"""Range of a named dimension that no ``--dim`` describes."""


def parse_init(text: str) -> dict[str, Any]:
    """``"32, heads=4"`` → ``{"args": [32], "kwargs": {"heads": 4}}``: literals as in a Python call."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        args = [ast.literal_eval(a) for a in call.args]
        return {
            "args": args,
            "kwargs": {str(k.arg): ast.literal_eval(k.value) for k in call.keywords},
        }
    except (SyntaxError, ValueError) as error:
        raise UserError(
            f"--init {text!r}: write constructor arguments as in a call, literals alone: 32, heads=4; objects are made"
            " by a function of the file that is named in place of the class, or by a case of pyproject.toml"
        ) from error


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_input(text: str) -> dict[str, Any]:
    """``"B,3,32"`` or ``"B,T:int64:0:100"``: sizes and dimension names, dtype, lowest value and the end of the range."""
    shape, *rest = text.split(":")
    written = [size.strip() for size in shape.split(",")]
    if not written[-1]:  # ``""`` is a scalar, ``3,`` may end as a tuple does
        written.pop()
    if not all(written):
        raise UserError(f"--input {text!r}: a size is missing between two commas")
    if any(re.fullmatch(r"-\d+", size) for size in written):
        raise UserError(f"--input {text!r}: a size is a number from 0, or a name such as B")
    sizes = [_number(size) for size in written]
    entry: dict[str, Any] = {"shape": sizes, "dtype": rest[0] if rest else "float32"}
    if len(rest) == 3:
        entry["range"] = [_number(rest[1]), _number(rest[2])]
    elif len(rest) > 1:
        raise UserError(f"--input {text!r}: write SHAPE:DTYPE:LOW:HIGH, such as B,T:int64:0:100")
    if len(rest) == 1 and re.fullmatch(r"u?int\d+", rest[0]):
        ends = f"{shape}:{rest[0]}:0:100"
        raise UserError(f"--input {text!r}: say from where to where its values go, such as {ends}")
    if not str(entry["dtype"]).isalnum():  # ``x:float32[2,8]``: no dtype that is merely misspelt
        raise UserError(f"--input {text!r}: write SHAPE or SHAPE:DTYPE, such as 2,8:float32")
    return entry


_TIMES = {"": 1.0, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_SIZES = {"b": 1.0, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}
_SIZES |= {"kb": 1e3, "mb": 1e6, "gb": 1e9, "k": 2.0**10, "m": 2.0**20, "g": 2.0**30}


def _quantity(option: str, text: str, units: Mapping[str, float], example: str) -> float:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if found is None or found[2].lower() not in units:
        raise UserError(f"{option} {text}: write a number and a unit, such as {example}")
    return float(found[1]) * units[found[2].lower()]


def seconds(text: str) -> float:
    """``"60s"``, ``"5min"`` or a plain number of seconds."""
    return _quantity("--budget", text, _TIMES, "60s")


def size(text: str) -> float:
    """``"4GiB"`` in bytes."""
    return _quantity("--memory", text, _SIZES, "4GiB")


def chips(text: str) -> tuple[str, ...]:
    """``"v5e,v6e"`` as names of TPU generations.

    Raises:
      UserError: one that is not known.
    """
    from numerics.lowering import CHIPS

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in CHIPS:
            raise UserError(f"--lower-for {name}: write some of {', '.join(CHIPS)}")
    return names


def _dims(inputs: Sequence[dict[str, Any]], given: Sequence[str]) -> dict[str, Any]:
    known = _size_names(inputs)
    dims: dict[str, Any] = {name: list(DEFAULT_DIM) for name in known}
    for text in given:
        name, _, bounds = text.partition("=")
        low, _, high = bounds.partition(":")
        if not (name.isidentifier() and low.isdigit() and (high or low).isdigit()):
            raise UserError(f"--dim {text!r}: write NAME=LOW:HIGH, such as B=1:8")
        if inputs and name not in known:  # without --input, a get_inputs(rng, sizes, …) may use any
            there = ", ".join(sorted(known)) or "none"
            raise UserError(f"--dim {text}: no --input has a size {name}; there is {there}")
        dims[name] = [int(low), int(high or low)]
    return dims


def _size_names(inputs: Sequence[dict[str, Any]]) -> list[str]:
    """The dimensions that sizes such as ``T`` or ``2*T+1`` speak of."""
    sizes = (size for entry in inputs for size in entry["shape"] if isinstance(size, str))
    return list(dict.fromkeys(n for size in sizes for n in re.findall(r"[^\W\d]\w*", size)))


BUDGET = 120.0
"""Seconds for a file that is named: the smallest number of examples is one."""


@contextmanager
def selection(
    config: str | None, names: Sequence[str], torch: str | None, *, port: bool = True, **flags: Any
) -> Iterator[tuple[Config, list[str]]]:
    """The configuration and the names of the cases to run.

    Names are those of pyproject.toml's cases, or files, directories and ``file:Class``, which become cases.
    Without ``port`` only the torch sides are meant: nothing is converted for the occasion.

    Raises:
      UserError: no such case or file, flags that cannot be read.
    """
    settings = load_config(Path(config) if config else None)
    targets = [torch] if torch is not None else [n for n in names if _is_target(n, settings)]
    named = [name for name in names if name not in targets]
    unused = [_FLAGS[flag] for flag in _FLAGS if flags.get(flag) and not targets]
    if unused:
        raise UserError(
            f"{unused[0]} goes with a file (migrate verify model.py:Class {unused[0]} …): a case of pyproject.toml"
            " says itself what its model takes"
        )
    chosen = [case.name for case in select(settings, named)] if named or not targets else []
    with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
        place = Path(directory) if port else None
        found = [c for target in targets for c in _cases(settings, target, place, flags)]
        new = {case.torch: case for case in found if case not in settings.cases}
        own = dict(zip(new, _named(list(new.values()), settings), strict=True))
        settings = replace(settings, cases=(*settings.cases, *own.values()))
        chosen += [own.get(case.torch, case).name for case in found]
        if not chosen:
            raise UserError(
                "no case to verify: name a file (migrate verify model.py), or add a"
                " [[tool.migrate.case]] to pyproject.toml"
            )
        yield settings, list(dict.fromkeys(chosen))


_FLAGS = {"jax": "--jax", "init": "--init", "inputs": "--input", "dims": "--dim"}
"""What describes a model that is named by its file."""


def _is_target(name: str, settings: Config) -> bool:
    if any(case.name == name for case in settings.cases):
        return False
    return ":" in name or name.endswith(".py") or Path(name).is_dir()


def _named(cases: Sequence[Case], settings: Config) -> list[Case]:
    """The cases under names of their own: the class, where several have it the file's name, or its path."""

    def names(case: Case) -> Iterator[str]:
        file, _, name = case.torch.partition(":")
        if case.problem is None or name != MAIN:  # which class is meant is not known
            yield name
        yield from (Path(file).stem, f"{Path(file).stem}:{name}")
        yield os.path.relpath(file)
        yield case.torch

    wanted = Counter(name for case in cases for name in set(names(case)))
    wanted.update(case.name for case in settings.cases)
    return [
        replace(case, name=next((n for n in names(case) if wanted[n] == 1), case.torch))
        for case in cases
    ]


def _cases(
    settings: Config, target: str, directory: Path | None, flags: Mapping[str, Any]
) -> Iterator[Case]:
    """The cases that a file, a directory or ``file:Class`` stands for: those of pyproject.toml, or new ones."""
    place, _, name = target.partition(":")
    if Path(place).is_dir() and not name:
        found = False
        for file in (file.path for file in discover([place])):
            try:
                if outline(file).inputs is not None:
                    found = True
                    yield from _cases(settings, str(file), directory, flags)
            except UserError as error:  # the other files are verified all the same
                found = True
                yield Case(file.stem, f"{file}:{MAIN}", problem=str(error), root=settings.root)
        if not found:
            raise UserError(f"{place}: no file with a {INPUTS}() in it")
        return
    path = _module_path(place, settings)
    own = [case for case in settings.cases if target_file(case.torch, settings) == path]
    if own and not name and not any(flags.values()):
        yield from own
    else:
        own_place = directory and Path(tempfile.mkdtemp(dir=directory))
        yield _file_case(settings, path, name, own_place, flags)


def _module_path(place: str, settings: Config) -> Path:
    """The file of ``dir/model.py`` (from here) or ``package.module`` (from the project's root)."""
    here = Path(place).resolve()
    return here if here.is_file() else target_file(place, settings)


def _file_case(
    settings: Config, path: Path, name: str, directory: Path | None, flags: Mapping[str, Any]
) -> Case:
    """A case for a class of a file: arguments and inputs from flags, else from the file's own functions.

    Where no port is named and none was converted before, the file is converted for the occasion, into ``directory``;
    without one the case has no port.

    Raises:
      UserError: flags that cannot be read, or inputs nobody describes.
    """
    if path.is_file() and _is_port(path):
        raise UserError(
            f"{path} is written for Flax: to compare it with what it was made of, "
            f"`migrate verify --torch FILE:CLASS --jax {path.name}:{name or 'CLASS'}`"
        )
    offered = outline(path)
    name = name or main_class(offered)
    jax = flags.get("jax")
    outside: tuple[str, ...] = ()
    try:
        if not jax and directory is not None:
            port, outside = _port_of(path, name, settings, directory)
            jax = f"{port}:{name}"
    except _Incomplete as error:  # the other cases are verified all the same
        return Case(name, f"{path}:{name}", problem=str(error), root=settings.root)
    inputs: Any = [parse_input(text) for text in flags.get("inputs") or ()]
    dims = _dims(inputs, flags.get("dims") or ())
    init: Any = parse_init(flags.get("init") or "")
    if not inputs and offered.inputs is not None:
        inputs = f"{path}:{offered.inputs}"
    elif not inputs and (message := missing_inputs(offered, name)) is not None:
        raise UserError(message)
    if not flags.get("init") and INIT in offered.functions:
        init = f"{path}:{INIT}"
    entry = {"name": name, "torch": f"{path}:{name}", "init": init, "inputs": inputs, "dims": dims}
    entry |= {"jax": jax} if jax else {}
    case = parse_case(entry, settings.root, "command line")
    return replace(case, budget=BUDGET, outside=outside)


def _port_of(
    path: Path, name: str, settings: Config, directory: Path
) -> tuple[Path, tuple[str, ...]]:
    """The converted file, where ``[tool.migrate] output`` has it; else one written to ``directory``.

    With it what of the file does not convert and is left out of the port: see ``_converted``.
    """
    if path.is_relative_to(settings.root):
        converted = settings.converted(path.relative_to(settings.root).as_posix())
        if converted is not None and (settings.root / converted).is_file():
            return settings.root / converted, ()
    return _converted(path, name, directory)


class _Incomplete(UserError):
    """A file that does not convert whole."""


def _is_port(path: Path) -> bool:
    """Whether a file imports Flax, and torch nowhere."""
    text = read_text(path)
    flax, torch = (
        re.search(rf"^\s*(from|import) {one}\b", text, re.M) for one in ("flax", "torch")
    )
    return flax is not None and torch is None


def _converted(source: Path, name: str, directory: Path) -> tuple[Path, tuple[str, ...]]:
    """A file converted into ``directory``, with the files of its project that it imports.

    Where something around the class ``name`` does not convert, the class and what it needs are taken alone; where one
    of its methods does not that ``forward`` has no need of, it goes without. What is left so is returned as well.
    """
    base = source.parent
    while (base / "__init__.py").is_file():
        base = base.parent
    for _ in imports_itself(base):
        base = base.parent

    def convert(parts: Mapping[Path, str]) -> Conversion:
        every = sorted(p for p in reach(base, [source], parts) if p.is_relative_to(base))
        files = [File(path, path.relative_to(base)) for path in every]
        return convert_with_stand_ins(files, parts=parts)

    conversion = whole = convert({})
    outside: list[str] = []
    text = read_text(source)
    there = defined(text) or []
    if not conversion.complete and name in there:
        alone = [name, *({INIT} & set(there))]
        # what makes the inputs tells what they are: it is left out where it alone does not convert
        makers = [one for one in (INPUTS, *GROUPS) if one in there]
        part = shaken(text, [*alone, *makers])
        conversion = convert({source: part})
        if not conversion.complete and makers:
            needed = shaken(text, alone)
            used = {i for i, line in enumerate(needed.splitlines(), 1) if line.strip()}
            if all(f.path == str(source) and f.line not in used for f in _left(conversion)):
                part, conversion = needed, convert({source: needed})
        if (around := len(_left(whole)) - len(_left(conversion))) > 0:
            outside.append(f"{around} place{'s' * (around > 1)} of its file outside it")
        lines = {finding.line for finding in _left(conversion) if finding.path == str(source)}
        if lines and len(lines) == len({(f.path, f.line) for f in _left(conversion)}):
            fewer = without_methods(part, lines)
            if fewer is not None:
                outside += fewer[1]
                conversion = convert({source: fewer[0]})
    if not conversion.complete:
        if not re.search(rf"\b{re.escape(name.partition('.')[0])}\b", text):
            raise UserError(f"{source} has no {name!r}; it has {', '.join(there) or 'no class'}")
        left = _left(conversion) or conversion.findings
        target = source if len(left) == len(_left(whole)) else f"{source}:{name}"
        raise _Incomplete(
            f"{target} does not convert whole, so there is nothing to compare yet: {left[0]}"
            f" ({len(left)} in all; `migrate convert {target} --diff` lists them)"
        )
    code = {file.file.name: file.code for file in conversion.files} | conversion.helpers
    for place, text in code.items():
        write_text(directory / place, text)
    return directory / source.relative_to(base), tuple(outside)


def _left(conversion: Conversion) -> list[Finding]:
    return [finding for finding in conversion.findings if finding.blocks]


def abstract_port(target: str, init: str) -> Any:
    """The converted module ``"file.py:Class"`` with shapes in place of arrays.

    A constructor that looks at values is run for real.

    Raises:
      UserError: no such file or class, or what its construction raised.
    """
    import jax
    from flax import nnx

    if ":" not in target:
        raise UserError(f"--module {target!r} names no class; write file.py:Class")
    options = parse_init(init)
    case = Case(target, target, target, tuple(options["args"]), options["kwargs"])
    config = Config(root=Path.cwd())
    try:
        return nnx.eval_shape(lambda: build_flax(case, config))
    except PortError as error:
        looks_at_values = (
            jax.errors.ConcretizationTypeError,
            jax.errors.TracerArrayConversionError,
            jax.errors.TracerIntegerConversionError,
        )
        if isinstance(error.__cause__, looks_at_values):
            return build_flax(case, config)
        raise


def convert_weights(
    file: str,
    target: str,
    init: str,
    out: str,
    *,
    key: str | None = None,
    force: bool = False,
    progress: Callable[[str], None] = lambda key: None,
) -> int:
    """``migrate weights``: see ``migrator.checkpoint.write_checkpoint``; errors are one line."""
    for package in ("jax", "flax", *(() if file.endswith(".safetensors") else ("torch",))):
        require(package)
    from migrator.checkpoint import write_checkpoint

    try:
        module = abstract_port(target, init)
        return write_checkpoint(
            Path(file), module, Path(out), key=key, force=force, progress=progress
        )
    except (KeyError, ValueError) as error:
        raise UserError(f"{file} does not fit {target}: {error.args[0]}") from error

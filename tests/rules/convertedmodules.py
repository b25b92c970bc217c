"""Converts a class that constructs and calls each layer of torch's module database and runs both on its samples.

``python -m tests.rules.convertedmodules NAME…`` reports on single classes; ``--show`` prints the conversion.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import torch
from flax import nnx
from torch.testing._internal.common_modules import ModuleInput

from tests.rules import (
    moduledb,
)
from tests.rules.converted import Pair, convert, crowded, harness, odd
from tests.rules.database import load
from tests.rules.judge import described
from tests.rules.moduledb import Outcome, constructor_arguments, disagreements, infos
from tests.rules.tracing import layer_traced_again
from tests.rules.values import leaves, to_jax
from tests.rules.written import Unwritable, Writer, parameters

HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"


class ModuleWriter(Writer):
    """Source text that may build modules."""

    def value(self, value: Any) -> str:
        """The source of an argument; a module by the constructor that makes one like it."""
        if isinstance(value, torch.nn.Module):
            args, kwargs = constructor_arguments(value)
            return f"nn.{type(value).__name__}({self.arguments(args, kwargs)})"
        if isinstance(value, type) and issubclass(value, torch.nn.Module):
            return f"nn.{value.__name__}"
        return super().value(value)


@dataclass
class WrittenModule:
    """A class of the source, and the sample it was written for."""

    name: str
    text: str
    sample: ModuleInput
    training: bool
    index: int
    built_from: list[torch.Tensor]
    called_with: list[torch.Tensor]

    @property
    def where(self) -> str:
        """Which sample it is."""
        mode = "train" if self.training else "eval"
        return f"{mode} sample {self.index} {self.sample.desc}"


def tensors_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """The distinct tensors among arguments, in order."""
    return list({id(t): t for t in leaves((list(args), dict(kwargs)))}.values())


def write(info: Any, sample: ModuleInput, training: bool, index: int) -> WrittenModule:
    """The class that builds the layer in its constructor and calls it in ``forward``."""
    built, called = sample.constructor_input, sample.forward_input
    built_from = tensors_of(built.args, built.kwargs)
    called_with = tensors_of(called.args, called.kwargs)
    make = ModuleWriter({id(t): f"a{i}" for i, t in enumerate(built_from)})
    run = ModuleWriter({id(t): f"a{i}" for i, t in enumerate(called_with)})
    layer = f"{info.module_cls.__name__}({make.arguments(built.args, built.kwargs)})"
    call = run.arguments(called.args, called.kwargs)
    first = f"self, {parameters(built_from, False)}" if built_from else "self"
    second = f"self, {parameters(called_with, False)}" if called_with else "self"
    text = (
        "(nn.Module):\n"
        f"    def __init__({first}):\n"
        "        super().__init__()\n"
        f"        self.layer = nn.{layer}\n\n"
        f"    def forward({second}):\n"
        f"        return self.layer({call})\n"
    )
    return WrittenModule("", text, sample, training, index, built_from, called_with)


def written(info: Any) -> Iterator[WrittenModule]:
    """The classes for all samples in eval and train mode."""
    for training in (False, True):
        for index, sample in enumerate(moduledb.samples(info, training)):
            if sample.forward_input is not None:
                yield write(info, sample, training, index)


def source_of(classes: list[WrittenModule]) -> str:
    """One file of all classes; equal texts share a name and stand once."""
    names: dict[str, str] = {}
    for one in classes:
        one.name = names.setdefault(one.text, f"M{len(names)}")
    return HEADER + "\n\n".join(f"class {name}{text}" for text, name in names.items())


def check_one(one: WrittenModule, pair: Pair) -> list[str]:
    """Differences between the class and its conversion on the sample, and why ``jit`` would trace it again."""
    torch.manual_seed(1)
    module = pair.original[one.name](*one.built_from).to(torch.float32).train(one.training)
    port = pair.port[one.name](*map(to_jax, one.built_from), rngs=nnx.Rngs(0))
    if any(isinstance(p, torch.nn.UninitializedParameter) for p in module.parameters()):
        module(*one.called_with)
        port(*map(to_jax, one.called_with))
    wrong = disagreements(module, port, tuple(one.called_with), {}, one.training)
    again = layer_traced_again(port, [to_jax(t) for t in one.called_with])
    return wrong + ([] if again is None else [again])


@dataclass
class Prepared:
    """The classes of one layer, converted and loaded; ``problem`` says why they could not be."""

    info: Any
    classes: list[WrittenModule]
    source: str = ""
    pair: Pair | None = None
    problem: str = ""


def prepare(info: Any, limit: int | None = None, seed: int = 0) -> Prepared:
    """Write and convert the source of a layer (``limit``: that many samples, drawn by ``seed``)."""
    classes = list(written(info))
    if limit is not None and len(classes) > limit:
        picked = np.random.default_rng(seed).choice(len(classes), limit, replace=False)
        classes = [classes[i] for i in sorted(picked)]
    made = Prepared(info, classes, source_of(classes))
    try:
        made.pair = convert(made.source, sorted({one.name for one in classes}))
    except Exception as error:  # a conversion that fails is the worst result there is
        made.problem = f"conversion: {described(error)}"
    return made


def check(made: Prepared) -> Outcome:
    """Run what was prepared in eval and train mode."""
    name = made.info.name
    if made.pair is None:
        return Outcome(name, "wrong", made.problem)
    if (call := crowded(made.pair.code)) is not None:
        return Outcome(name, "wrong", f"{call}: too many keyword arguments")
    count, flagged, raises = 0, "", ""
    for one in made.classes:
        if one.name in made.pair.flagged:
            flagged = f"{one.where}: {made.pair.flagged[one.name]}"
            continue
        try:
            wrong = check_one(one, made.pair)
        except Exception as error:
            if any(map(odd, one.called_with)):
                continue
            raises = f"{one.where}: {described(error)}\n{one.text}"
            continue
        if wrong:
            return Outcome(name, "wrong", f"{one.where}: {'; '.join(wrong)}\n{one.text}", count)
        count += 1
    status = "raises" if raises else "flagged" if flagged else "verified"
    return Outcome(name, status, raises or flagged, count)


def sweep(name: str, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """All samples of a class; ``known`` stands if source and conversion are what they were."""
    started = time.time()
    try:
        made = prepare(infos()[name])
    except Unwritable as reason:
        return moduledb.result(Outcome(name, "flagged", f"not written: {reason}"), "", started)
    after = repr((made.pair.code, made.pair.flagged)) if made.pair else made.problem
    text = made.source + after
    mark = hashlib.sha256(harness() + text.encode()).hexdigest()
    if known is not None and known["fingerprint"] == mark:
        return known
    return moduledb.result(check(made), mark, started)


def main(argv: list[str] | None = None) -> int:
    """Print a line for each class and the totals."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.rules.convertedmodules", description=__doc__
    )
    parser.add_argument("names", nargs="*", help="classes, without nn.; all by default")
    parser.add_argument("--show", action="store_true", help="print the converted source")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    load()
    totals: dict[str, int] = {}
    for name, info in infos().items():
        if options.names and name.removeprefix("nn.") not in options.names:
            continue
        try:
            made = prepare(info)
        except Unwritable as reason:
            print(f"{name:32} not written: {reason}")
            continue
        if options.show and made.pair:
            print(made.pair.code)
        outcome = check(made)
        jax.clear_caches()
        totals[outcome.status] = totals.get(outcome.status, 0) + 1
        print(f"{name:32} {outcome.status:9} {outcome.samples:4} {outcome.why}", flush=True)
    print(totals)
    return 0 if set(totals) <= {"verified", "flagged"} else 1


if __name__ == "__main__":
    sys.exit(main())

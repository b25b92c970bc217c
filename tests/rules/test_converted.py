"""The source a user would write for torch's ops and layers, converted, computes what torch computes.

A tenth of each database runs by default, another one each day, a few samples each; ``CONVERTED_SEED=3`` picks one.
``make sweep`` runs all of it.
"""

from __future__ import annotations

import datetime
import os
import zlib
from collections.abc import Iterator

import jax
import pytest
import torch

from tests.rules import converted, convertedmodules, database, moduledb
from tests.rules.judge import Wrong
from tests.rules.written import Unwritable, Writer

database.load()
SEED = int(os.environ.get("CONVERTED_SEED", datetime.date.today().toordinal() % 10))


@pytest.fixture(autouse=True)
def _forget_programs() -> Iterator[None]:
    """Thousands of small programs are made; none is needed again."""
    yield
    jax.clear_caches()


def chosen(names: list[str]) -> list[str]:
    """Today's tenth."""
    return [name for name in sorted(names) if zlib.crc32(name.encode()) % 10 == SEED]


@pytest.mark.parametrize("name", chosen(list(database.entries())))
def test_converted_op_agrees_with_torch(name: str) -> None:
    result = converted.sweep(name, ["float32"], limit=2)
    wrong = {n: where for one in result["dtypes"].values() for n, where in one["notes"].items()}
    assert result["status"] != "wrong", wrong


@pytest.mark.parametrize("name", chosen(list(moduledb.infos())))
def test_converted_layer_agrees_with_torch(name: str) -> None:
    try:
        made = convertedmodules.prepare(moduledb.infos()[name], limit=1, seed=SEED)
    except Unwritable:
        pytest.skip("its samples cannot be written as source")
    outcome = convertedmodules.check(made)
    assert outcome.status != "wrong", outcome.why


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text"),
    [
        ("torch.var", (0, 1), {"keepdim": True}, "torch.var(a0, 1, keepdim=True)"),
        ("torch.nn.functional.pad", (0, (1, 2)), {}, "F.pad(a0, (1, 2))"),
        ("Tensor.add_", (0, 1), {}, "a0.add_(a1)"),
        ("Tensor.__rsub__", (0, 2.5), {}, "2.5 - a0"),
        ("Tensor.__getitem__", (0, (slice(1, None), None)), {}, "a0[1:, None]"),
        ("Tensor.mT", (0,), {}, "a0.mT"),
        ("torch.full", ((2,), float("-inf")), {}, "torch.full((2,), float('-inf'))"),
        ("torch.cat", ([0, 1],), {"dim": 0}, "torch.cat([a0, a1], dim=0)"),
    ],
)
def test_what_is_written(name: str, args: tuple, kwargs: dict, text: str) -> None:
    tensors = [torch.ones(2), torch.ones(2)]
    place = {0: tensors[0], 1: tensors[1]} if name in ("Tensor.add_",) else {0: tensors[0]}
    made = tuple(place.get(a, a) if type(a) is int else a for a in args)
    made = ([tensors[0], tensors[1]],) if name == "torch.cat" else made
    writer = Writer({id(t): f"a{i}" for i, t in enumerate(tensors)})
    assert writer.call(name, made, kwargs) == text


def test_a_wrong_conversion_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """``add`` converted as ``subtract`` is wrong, one that is left is flagged, one that fails raises."""
    real = converted.convert_source

    def swapped(source: str) -> object:
        result = real(source)
        return type(result)(result.code.replace("a0 + a1", "a0 - a1"), result.findings, True)

    monkeypatch.setattr(converted, "convert_source", swapped)
    assert converted.sweep("add", ["float32"], limit=2)["status"] == "wrong"


def test_flags_belong_to_their_function() -> None:
    source = (
        "import torch\n\ndef f0(a0: torch.Tensor):\n    return a0 + 1\n\n"
        "def f1(a0: torch.Tensor):\n    return torch.nonzero(a0)\n"
    )
    pair = converted.convert(source, ["f0", "f1"])
    assert set(pair.flagged) == {"f1"}
    assert issubclass(Wrong, Exception)

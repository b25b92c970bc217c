"""Every op definition computes what torch computes, on the samples of torch's own op database.

A tenth of the database runs by default, another one each day; ``OPDB_SEED=3`` picks one, ``OPDB_SEED=all`` runs
everything. ``python -m tests.rules.opdb`` reports in detail.
"""

from __future__ import annotations

import datetime
import os
import zlib

import pytest

from rules.registry import OPS, Unsupported
from tests.rules import database, opdb
from tests.rules.dispatch import fits

database.load()
SEED = os.environ.get("OPDB_SEED", str(datetime.date.today().toordinal() % 10))
COVERED = [
    n
    for n, infos in sorted(database.entries().items())
    if any(any(database.forms(i, None)) for i in infos)
]
CHOSEN = [n for n in COVERED if SEED == "all" or zlib.crc32(n.encode()) % 10 == int(SEED)]


@pytest.mark.parametrize("name", CHOSEN)
def test_definition_agrees_with_torch(name: str) -> None:
    dtypes = list(database.DTYPES) if zlib.crc32(name.encode()) % 3 == 0 else ["float32", "int64"]
    result = opdb.sweep(name, dtypes, limit=8)
    wrong = {n: where for one in result["dtypes"].values() for n, where in one["notes"].items()}
    assert result["status"] != "wrong", wrong


@pytest.mark.parametrize("name", sorted(n for n in OPS if not n.startswith("timm_layers.")))
def test_names_exist_in_torch(name: str) -> None:
    import torch

    value = {"Tensor": torch.Tensor, "torch": torch}[name.partition(".")[0]]
    for part in name.split(".")[1:]:
        assert hasattr(value, part), f"{name} is not a torch name"
        value = getattr(value, part)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("int", 3, True),
        ("int", True, False),
        ("int | None", None, True),
        ("Ints", (1, 2), True),
        ("Ints", [0.5], False),
        ("Tensor", 1.0, False),
        ("float", 1, True),
        ("tuple", [1], True),
        ("str", "mean", True),
    ],
)
def test_annotations_choose_overloads(annotation: str, value: object, expected: bool) -> None:
    assert fits(annotation, value) is expected


def test_a_declared_gap_is_reported_as_such() -> None:
    assert issubclass(Unsupported, NotImplementedError)

"""Files that import one another in a circle: what one says of the other's functions is what it is without."""

from __future__ import annotations

import datetime
import os
import random
from pathlib import Path

import pytest

from tests.migrator import test_questions_elsewhere as questions
from tests.migrator import test_writers_elsewhere as writers
from tests.migrator.test_packages import blocking, convert

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
ENDS = ["\n\nfrom . import net\n", "\n\ndef later():\n    from .net import Net\n\n    return Net\n"]


def in_a_circle(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Have the files that the model reads import its file."""
    for module in (writers, questions):
        own = module.convert

        def circular(root: Path, files: dict[str, str], own: object = own) -> object:
            given = {name: text if name == "net.py" else text + end for name, text in files.items()}
            return own(root, given)  # type: ignore[operator]

        monkeypatch.setattr(module, "convert", circular)


@pytest.mark.parametrize("number", range(12))
def test_a_writer_of_the_day(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_circle(monkeypatch, ENDS[number % 2])
    (_, writer), (_, use) = random.Random(SEED).sample(writers.EVERY, 12)[number]
    writers._check(tmp_path, writer, use)


@pytest.mark.parametrize("number", range(8))
def test_a_question_of_the_day(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_circle(monkeypatch, ENDS[number % 2])
    questions._ask(tmp_path, *random.Random(SEED).sample(questions.EVERY, 8)[number])


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_every_writer(tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_circle(monkeypatch, ENDS[part % 2])
    for number, ((_, writer), (_, use)) in enumerate(writers.EVERY[part::8]):
        writers._check(tmp_path / str(number), writer, use)


def test_what_another_file_of_a_circle_calls_is_asked_what_is_around_it(tmp_path: Path) -> None:
    """A line of that file, which writes to what may be a list: it stands in no ``if inplace`` of this one."""
    hooks = "from . import net\n\n\ndef on(args, places, new):\n    found = list(args)\n"
    hooks += (
        "    for i, one in zip(places, new):\n        found[i] = one\n    return tuple(found)\n\n\n"
    )
    hooks += "class Hook:\n    def __init__(self, module):\n        self.module = module\n\n"
    hooks += "    def setup(self, args):\n        return on(args, [0], args)\n"
    net = "import torch\nfrom torch import nn\nfrom .hooks import Hook\n\n\nclass Net(nn.Module):\n"
    net += "    def forward(self, x, inplace=False):\n        hook = Hook(self)\n"
    net += "        x, = hook.setup((x,))\n        y = x * 2\n        return y\n"
    found = convert(tmp_path, {"hooks.py": hooks, "net.py": net})
    assert not any("internal error" in one for one in blocking(found))

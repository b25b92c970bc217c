"""Files that import one another in a circle, and one file of all: what is said of functions is what it is without."""

from __future__ import annotations

import datetime
import os
import random
import re
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


def in_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the questions' functions, their own classes and the model stand in one file."""

    def together(root: Path, files: dict[str, str]) -> object:
        head = "import copy\nimport torch\nfrom torch import nn\n"
        own = files["own.py"].replace("from torch import nn\n", "")
        asks = files["fns.py"].replace("from .own import DerivedLinear\n", "").removeprefix(head)
        net = re.sub(r"from \.\w+ import .*\n", "", files["net.py"])
        net = net.replace("import torch\nfrom torch import nn\n", "")
        return convert(root, {"net.py": head + own + asks + net})

    monkeypatch.setattr(questions, "convert", together)


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


@pytest.mark.parametrize("number", range(8))
def test_a_question_in_one_file(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_one_file(monkeypatch)
    questions._ask(tmp_path, *random.Random(SEED + 1).sample(questions.EVERY, 8)[number])


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(16))
def test_every_question(tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if part % 2:
        in_one_file(monkeypatch)
    else:
        in_a_circle(monkeypatch, ENDS[part // 2 % 2])
    for number, one in enumerate(questions.EVERY[part // 2 :: 8]):
        questions._ask(tmp_path / str(number), *one)


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

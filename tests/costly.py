"""The tests that cost more than a second a case: of these a third runs on a day, the others on the days that follow.

python -m tests.costly REPORT.xml     # writes costly.json anew, from ``pytest --junitxml=REPORT.xml``

``COSTLY_SEED=all`` runs all of them, a number another day's; so does naming files or tests.
"""

from __future__ import annotations

import datetime
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree
from zlib import crc32

LIST = Path(__file__).with_name("costly.json")
PARTS = 3
SECONDS = 1.0
"""What a case of a test costs on average, at most, if it is to run each day."""


def seed() -> int | None:
    """Which part runs: today's where nobody says; None for all."""
    said = os.environ.get("COSTLY_SEED", "")
    return None if said == "all" else int(said or datetime.date.today().toordinal())


def runs(nodeid: str, costly: Mapping[str, Sequence[str]], part: int) -> bool:
    """Whether a case of a test, as pytest names it, is one of a part."""
    file, _, test = nodeid.partition("::")
    if test.partition("[")[0] not in costly.get(file, ()):
        return True
    return crc32(nodeid.encode()) % PARTS == part % PARTS


def listed() -> dict[str, list[str]]:
    """File → names of its costly tests."""
    found: dict[str, list[str]] = json.loads(LIST.read_text())
    return found


def costs(report: Path) -> dict[str, list[str]]:
    """The same, from what a run of all tests measured."""
    seconds = defaultdict[tuple[str, str], list[float]](list)
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace(".", "/") + ".py"
        test = case.get("name", "").partition("[")[0]
        seconds[file, test].append(float(case.get("time", "0")))
    found = defaultdict[str, list[str]](list)
    for (file, test), measured in sorted(seconds.items()):
        if sum(measured) > SECONDS * len(measured):
            found[file].append(test)
    return dict(found)


if __name__ == "__main__":
    LIST.write_text(json.dumps(costs(Path(sys.argv[1])), indent=1, sort_keys=True) + "\n")

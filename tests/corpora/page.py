"""Writes ``docs/corpora.md`` from the records of torchvision's and timm's architectures beside this file.

``python -m tests.corpora.page`` writes it anew; nothing is run.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.corpora.libraries import LIBRARIES, TORCHVISION

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "corpora.md"
Record = dict[str, Any]
COMPLETE = "complete and equal"
PARTLY = "equal, not complete"
WRONG = "wrong"
STATES = {
    COMPLETE: "no finding in any code that it runs, and all that was compared is equal",
    PARTLY: "it computes the same, but code that it runs has a finding",
    "not complete": "code that it runs has a finding, and it was not compared to the end",
    "complete, not compared": "no finding, but it was not compared to the end (time, memory)",
    WRONG: "no finding in any code that it runs, and it raises or computes something else",
    "not built": "torch itself did not build it, or took no image",
}


def status(record: Record) -> str:
    """Which of ``STATES`` an architecture is in."""
    verdict, complete = record["verdict"], not record.get("findings")
    if verdict == "not built" or "findings" not in record:
        return "not built"
    if record.get("train") in ("different", "raises"):
        verdict = record["train"]
    if verdict == "equal":
        return COMPLETE if complete else PARTLY
    if not complete:
        return "not complete"
    return WRONG if verdict in ("different", "raises") else "complete, not compared"


def record_of(library: str) -> list[Record]:
    """The recorded outcomes of a library's architectures."""
    file = Path(__file__).with_name(f"{library}.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def save_record(library: str, records: Iterable[Record]) -> None:
    """Write the record, a line for each architecture."""
    lines = [json.dumps(one) for one in sorted(records, key=lambda one: one["name"])]
    text = "\n".join(lines) + "\n"
    Path(__file__).with_name(f"{library}.jsonl").write_text(text, encoding="utf-8")


CAUSE = re.compile(r"`[^`]*`")


def cause(record: Record) -> str:
    """What stood in the way, without the names of one place."""
    findings = record.get("findings") or []
    if findings:
        return CAUSE.sub("…", findings[0].split(" ", 1)[1])
    return str(record.get("why") or record["verdict"])


def _figures(records: Sequence[Record], drawn: int) -> list[str]:
    states = Counter(map(status, records))
    lines = ["| outcome | architectures | which means |", "| --- | --- | --- |"]
    lines += [f"| {state} | {states[state]} | {means} |" for state, means in STATES.items()]
    if len(records) < drawn:
        lines.append(f"| not run | {drawn - len(records)} | for want of time |")
    good = [one for one in records if status(one) == COMPLETE]
    trained = sum(one.get("train") == "equal" for one in good)
    worst = max((one["error"] for one in good), default=0.0)
    whole = sum(one["whole"] for one in good)
    narrow = [one for one in records if reached_none(one)]
    return [
        *lines,
        "",
        f"**{len(good)} of {len(records)} ({share(good, records)}) are complete and equal, {states[WRONG]} are wrong.** The "
        f"largest error of an output is {worst:.0e} of its tensor. Of the {len(good)}, {trained} were compared in train mode "
        f"as well, with the gradient of every parameter, and {whole} stand in a file in which nothing at all is left, what "
        "no architecture of this list runs included.",
        "",
        f"Another {len(narrow) - len(good)} are equal and run through functions with a finding, but not through the statement "
        f"that has it: {len(narrow)} of {len(records)} ({share(narrow, records)}) run nothing that was left unconverted.",
    ]


def share(some: Sequence[Record], records: Sequence[Record]) -> str:
    """A part of the architectures in percent."""
    return f"{100 * len(some) // max(len(records), 1)} %"


def reached_none(record: Record) -> bool:
    """Whether an architecture is equal, and no statement that has a finding has run."""
    return status(record) in (COMPLETE, PARTLY) and not record.get("reached")


def _causes(records: Sequence[Record]) -> list[str]:
    by_cause: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in records:
        if (state := status(one)) != COMPLETE:
            by_cause[state, cause(one)].append(one["name"])
    lines = ["| | outcome | cause | architectures |", "| --- | --- | --- | --- |"]
    ordered = sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[0]))
    for (state, why), names in ordered:
        listed = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {len(names)} | {state} | {_cell(why)} | {listed} |")
    return lines if by_cause else ["None failed."]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:160]


def _each(records: Sequence[Record]) -> list[str]:
    lines = [
        "| architecture | file | built with | input | numbers | outcome | error | training |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in records:
        options = ", ".join(f"{key}={value}" for key, value in one.get("options", {}).items())
        shape = "×".join(map(str, one.get("shape", [])))
        size = f"{one['size'] / 1e6:.1f} M" if "size" in one else ""
        error = f"{one['error']:.1e}" if "error" in one else ""
        cells = [
            f"`{one['name']}`",
            one.get("file", ""),
            _cell(options),
            shape,
            size,
            status(one),
            error,
            one.get("train", ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


DRAWN = {
    "torchvision": "One or more architectures of every family of classification, segmentation and video.",
    "timm": "A hundred architectures, drawn by the seed 2026 from the registry.",
}


def page() -> str:
    """The text of ``docs/corpora.md``."""
    parts = [
        "# Published models",
        "",
        "Made by `python -m tests.corpora` from a run over the installed sources of torchvision 0.28.0 and timm 1.0.20; what "
        "the run noted is in `tests/corpora/*.jsonl`.",
        "",
        "Each library is converted once, as a package. Each architecture is then built in torch and in Flax with the same "
        "arguments, as small as its constructor allows, weights are carried over, and results are held against torch's by "
        "the [verdict](verdict.md) of `verify`: two examples in eval mode, and where time allowed (minutes an architecture) "
        "two in train mode, with the state afterwards and all gradients. *Complete* is judged by what runs: the original is "
        "watched while it is built, called in both modes and differentiated, and no function, class or top of a file that it "
        "reaches may have a finding that blocks. How a torchvision family is made small where its builder takes no sizes is "
        "in `tests/corpora/libraries.py`. The run was made with the converter as of commit a4b6abc; "
        "`seresnext26ts`, which raised when it was built, was run again once that was put right, and the VGGs, DeepLab, S3D "
        "and the video Swin of torchvision were run as of commit 2591a2a. Seventy of timm's architectures, those that are "
        "quick to compare, were run then, the other thirty as of commit 316564c; in two of these torch's numbers left "
        "float32's range with the weights to verify with, and they were compared again once those stayed in range.",
        "",
    ]
    for library, drawn in DRAWN.items():
        records = record_of(library)
        count = LIBRARIES[library].count or len(TORCHVISION)
        parts += [f"## {library} {LIBRARIES[library].version}", "", drawn, ""]
        parts += [*_figures(records, count), "", "### What failed, by cause", ""]
        parts += [*_causes(records), "", "### Each architecture", "", *_each(records), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

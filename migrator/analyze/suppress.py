"""``# migrate: ignore[DYN001]`` at the end of a line silences findings there."""

from __future__ import annotations

import re

from migrator.findings import Finding
from migrator.source import Source

_COMMENT = re.compile(r"#\s*migrate:\s*ignore\b(?:\s*\[([^\]]*)\])?")


class Suppressions:
    """The lines of a file that silence rules.

    A finding is silenced by a comment on the line where it begins or on the line where it ends."""

    def __init__(self, source: Source) -> None:
        self._lines: dict[int, frozenset[str] | None] = {}
        if "migrate:" not in source.text:
            return
        for number, line in enumerate(source.lines, 1):
            match = _COMMENT.search(line)
            if match is not None:
                codes = match[1]
                named = None if codes is None else frozenset(c.strip() for c in codes.split(","))
                self._lines[number] = named

    def covers(self, finding: Finding) -> bool:
        """Whether a comment of the file silences the finding."""
        for line in {finding.line, finding.end_line}:
            if line in self._lines:
                codes = self._lines[line]
                if codes is None or finding.rule in codes:
                    return True
        return False

    def within(self, first: int, last: int) -> bool:
        """Whether a comment silences something from one line to another."""
        return any(first <= line <= last for line in self._lines)

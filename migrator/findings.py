"""What the assistant reports about one place in a source file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

SEVERITIES = ("error", "warning", "info")


INTERNAL = "INT001"
"""The code of a finding that is an error of the program's own, not of the file."""
UNREADABLE = "SRC001"
"""The code of a finding that a file is no text or no Python; the other files are worked on all the same."""
OBSERVED = "OBS001"
"""The code of a note: something was seen in a run of the original, not proven, and the conversion rests on it."""
CONTRADICTED = "OBS002"
"""The code of a finding that a run of the original showed something else than inference has found."""

UNCLEAR = "annotate it (x: torch.Tensor), or let `convert --observe CASE` see what it is"
"""The advice where the kind of a value decides and is not known."""


@dataclass(frozen=True)
class Finding:
    """One thing a person should look at.

    Lines and columns are 1-based; ``end_column`` is the column after the last character. ``effort`` is in
    hours of a person's work; ``blocks`` says that the statement could not be converted and stands as it was,
    under a ``# TODO(migrate): …`` comment.
    """

    rule: str
    message: str
    severity: str = "error"
    line: int = 1
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    path: str = ""
    advice: str = ""
    snippet: str = ""
    effort: float = 0.0
    blocks: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping with every field."""
        return asdict(self)

    def __str__(self) -> str:
        """``file.py:12:5: DYN001 message``, the form editors and terminals link."""
        return f"{self.path or '<text>'}:{self.line}:{self.column}: {self.rule} {self.message}"


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by file, line, column and rule, each once."""
    return sorted(set(findings), key=lambda f: (f.path, f.line, f.column, f.rule, f.message))

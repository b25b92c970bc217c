"""Findings for a program: one JSON document, the same fields every time."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import migrator
from migrator.findings import Finding

FORMAT = 1
"""Raised when a field is removed or changes its meaning; new fields may come without."""


def document(command: str, findings: Sequence[Finding], **more: Any) -> str:
    """``{"format": 1, "command": …, "findings": [{"rule": …, "line": …, …}], …}``."""
    content: Mapping[str, Any] = {
        "format": FORMAT,
        "version": migrator.__version__,
        "command": command,
        **more,
        "findings": [finding.to_dict() for finding in findings],
    }
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False, default=str)


def _plain(value: Any) -> Any:
    """The same content without NaN and infinity, which JSON has no numbers for: they become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value

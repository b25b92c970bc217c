"""PyTorch to JAX: analyze, convert to Flax NNX, verify that both compute the same.

The names below are the public API. They are loaded on first use, so that ``import migrator`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from migrator.analyze import analyze_source as analyze_source
    from migrator.convert import ConvertResult as ConvertResult
    from migrator.convert import convert_source as convert_source
    from migrator.findings import Finding as Finding
    from migrator.verifying import verify as verify
    from migrator.weights import load_state_dict as load_state_dict
    from migrator.weights import to_state_dict as to_state_dict

__version__ = "0.1.0"

_HOMES = {
    "ConvertResult": "migrator.convert",
    "Finding": "migrator.findings",
    "analyze_source": "migrator.analyze",
    "convert_source": "migrator.convert",
    "load_state_dict": "migrator.weights",
    "to_state_dict": "migrator.weights",
    "verify": "migrator.verifying",
}

__all__ = [
    "ConvertResult",
    "Finding",
    "analyze_source",
    "convert_source",
    "load_state_dict",
    "to_state_dict",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

"""What leaves a block under ``torch.no_grad()`` when it may be more than arrays."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import jax


def without_gradient(value):
    """The value with no gradient behind its arrays; containers are gone through, anything else stays what it is."""
    if isinstance(value, jax.Array):
        return jax.lax.stop_gradient(value)
    kind = type(value)
    if isinstance(value, dict):
        parts = {key: without_gradient(one) for key, one in value.items()}
        if all(parts[key] is one for key, one in value.items()):
            return value
        made = value.copy()
        made.update(parts)
        return made
    if isinstance(value, (list, tuple)):
        parts = [without_gradient(one) for one in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: without_gradient(getattr(value, f.name)) for f in fields(value) if f.init}
        if any(parts[name] is not getattr(value, name) for name in parts):
            return replace(value, **parts)
    return value


def gradient_if(enabled, value):
    """What is computed under ``torch.set_grad_enabled(enabled)``: no gradient behind it where that is off."""
    return value if enabled else without_gradient(value)

"""What the forward passes of a file's modules call."""

from __future__ import annotations

from migrator.infer.facts import Facts, FunctionInfo


def of_forward(facts: Facts) -> set[FunctionInfo]:
    """The functions that the forward pass of a module of the file calls, itself or through others."""
    seen: set[FunctionInfo] = set()
    queue = [
        info.methods["forward"]
        for info in facts.classes.values()
        if info.torch_base and "forward" in info.methods
    ]
    while queue:
        one = queue.pop()
        if one not in seen:
            seen.add(one)
            queue.extend(c for c in one.calls if isinstance(c, FunctionInfo))
    return seen

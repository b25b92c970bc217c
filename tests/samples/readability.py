"""Holds ports against their originals, as a reader would: ``python -m tests.samples.readability`` writes docs/readability.md."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "readability.md"


@dataclass(frozen=True)
class Port:
    """A sample beside its port.

    Attributes:
      name: the file's, without ending.
      model: lines of the port without helpers, over lines of the original; blank lines count in both.
      helpers: lines of the definitions that the original does not have, blank lines between them left out.
      helper_names: those definitions.
    """

    name: str
    model: float
    helpers: int
    helper_names: tuple[str, ...]


def _definitions(text: str) -> dict[str, tuple[int, int]]:
    """First and last line of each class and function at the top of a file."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[node.name] = (first, node.end_lineno or first)
    return found


def texts(name: str) -> tuple[str, str]:
    """The original and the port of a sample."""
    samples = ROOT / "samples"
    return (
        (samples / f"{name}.py").read_text(encoding="utf-8"),
        (samples / "flax" / f"{name}.py").read_text(encoding="utf-8"),
    )


def parts(name: str) -> tuple[str, str, dict[str, int]]:
    """The original, the port without helpers, and the lines of each helper."""
    original, port = texts(name)
    own, lines = _definitions(original), port.splitlines()
    helpers = {}
    for helper, (first, last) in reversed(_definitions(port).items()):
        if helper not in own:
            helpers[helper] = last - first + 1
            del lines[first - 1 : last]
            while first - 1 < len(lines) and not lines[first - 1]:
                del lines[first - 1]
    return original, "\n".join(lines) + "\n", dict(reversed(helpers.items()))


def measured(name: str) -> Port:
    """How long a port is, beside its original."""
    original, model, helpers = parts(name)
    ratio = len(model.splitlines()) / len(original.splitlines())
    return Port(name, ratio, sum(helpers.values()), tuple(helpers))


SHOWN = {
    "resnet": """
- The helpers have what the file uses of each layer: `Conv2d` has no groups, no dilation and no bias here, and its
  docstring says where `bias=False` has gone; `BatchNorm2d` has always a weight and running statistics. A person would
  go on: `Conv2d` need not ask whether its input has a batch, and `BatchNorm2d` how many axes there are.
- `isinstance` does not ask for `GroupNorm`, which nothing builds.
- The loop over `nnx.iter_modules` sets what the constructors could have been given as initialisers.
- `functools.partial(max_pool2d, …)` as an attribute reads well, but a function of the file's own would do.
""",
    "vit": """
- `MultiheadAttention` is half of all helper lines. The model calls it one way: a person would take
  `nnx.MultiHeadAttention` and split the packed weight when it is loaded.
- `NamedSequential` keeps the names `fc1`, `act`, … that the state dict has; `nnx.Sequential` numbers its layers.
- `nnx.LayerNorm(…, use_fast_variance=False)` is what torch computes; on real inputs one may well want the fast one.
- `truncated_normal(-100.0, 100.0, …)` is torch's default of ±2 at a deviation of 0.02, taken at its word.
""",
    "gpt": """
- The fused attention is written out: scores in float32 at least, causal, weights. Without dropout
  `jax.nn.dot_product_attention` would do, with the heads moved behind the sequence.
- `self.apply(self._init_weights)` sets every weight, so that the layers need none of torch's first values; handing
  initialisers to them would spare the loop.
- The loss is written out step by step; without `ignore_index` it would be optax's
  `softmax_cross_entropy_with_integer_labels`.
- The tied output layer is the embedding (`self.lm_head = self.transformer.wte`) and is called by `attend`: one array,
  where torch has one under two names.
- `self.rngs` is kept for `generate`, which draws; a JAX program would hand the key in.
""",
}
"""The samples that are shown whole, and what a reviewer would still change."""


def page() -> str:
    """The text of docs/readability.md."""
    names = sorted(one.stem for one in (ROOT / "samples").glob("*.py"))
    lines = [
        "# Readability",
        "",
        "Made by `python -m tests.samples.readability`. *Model* is the length of the port without helpers over that of the",
        "original, in lines; *helpers* are the lines of the definitions that it carries for what JAX has no equivalent of.",
        "A package has them once, in one module.",
        "",
        "| sample | model | helpers | which |",
        "| --- | --- | --- | --- |",
    ]
    for port in map(measured, names):
        which = ", ".join(f"`{name}`" for name in port.helper_names)
        lines.append(f"| `{port.name}` | {port.model:.2f} | {port.helpers} | {which} |")
    for name, remarks in SHOWN.items():
        original, model, _ = parts(name)
        lines += ["", f"## {name}", "", "What a reviewer would still change:", "", remarks.strip()]
        lines += ["", "<table><tr><th>torch</th><th>Flax, helpers left out</th></tr><tr><td>", ""]
        lines += ["```python", original.rstrip(), "```", "", "</td><td>", ""]
        lines += ["```python", model.rstrip(), "```", "", "</td></tr></table>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

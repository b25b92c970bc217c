"""Writes the documentation of the flag rules: ``python -m migrator.analyze.docs``.

One page a rule under ``docs/rules/`` and an index, all made from the declarations in ``rules/flags``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from migrator.analyze.walk import BUILD_TIME, DRAWING, GENERATING, load_flags
from migrator.report.text import effort_text
from rules.registry import FLAGS, Flag

FOLDER = Path(__file__).parents[2] / "docs/rules"
FAMILIES = {
    "DYN": "shapes and control flow that depend on the values of tensors",
    "MUT": "writes that reach memory under another name",
    "TRC": "effects that happen once, while JAX traces",
    "DTY": "number types",
    "CUDA": "code for one kind of device",
    "API": "torch names, and uses of them, without a conversion",
}
_MEANING = {
    "error": "does not run in JAX",
    "warning": "runs, may differ or be slow",
    "info": "nothing to do, good to know",
}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_HOST = f"""## Code that is not traced

What depends on the values of tensors (DYN), and effects while JAX traces (TRC001 to TRC005, TRC007), stand in the way of
what runs under `jit`. They are no finding in

- constructors, initialisers and what builds, prints or loads a model: {_listed(sorted(BUILD_TIME))};
- functions that train, load or save a model, and datasets;
- functions beside the forward pass that make layers and return nothing or a layer, as `prune_heads()` does;
- methods of a module whose names begin with {_listed(GENERATING)}, with a leading underscore or without, or have the word
  {" or ".join(f"`{word}`" for word in DRAWING)} further on (`ddim_sample`, `p_sample_loop`), where they loop or run under `torch.no_grad()`: programs around their model, which call it again and again and end by what it said.
  Their branches on values are converted as they stand, and work as long as the method itself is not put under `jit`;
- functions that give back nothing but Python numbers, `return action.item()`, or lists of such, read from the tensors or
  the module that they are given, but for the forward pass: nothing under `jit` can give that. One that gives back a tensor
  beside the number is traced, and so is one that reads a tensor of its own making, `torch.linspace(0, 1, n).tolist()`.

What such a function calls of the forward pass is traced all the same, and so is it where a traced function calls it."""


def page(flag: Flag) -> str:
    """The page of one rule."""
    found_by = "`analyze` and `convert`" if flag.check is not None else "`convert`"
    if flag.code in ("API001", "API002", "API004"):
        found_by = "`analyze` and `convert`"
    effort = effort_text(flag.effort) if flag.effort else "none"
    blocks = "the statement is left in place under `# TODO(migrate)`" if flag.blocks else "goes on"
    return f"""# {flag.code} {flag.name}

{_sentence(flag.what)}

{flag.why}

| severity | conversion | work to plan | found by |
| --- | --- | --- | --- |
| {flag.severity}: {_MEANING[flag.severity]} | {blocks} | {effort} | {found_by} |

## Found

```python
{flag.example}
```

## Not found

```python
{flag.instead}
```

A comment at the end of the line silences it: `# migrate: ignore[{flag.code}]`.
"""


def index() -> str:
    """The list of all rules by family."""
    lines = [
        "# Rules",
        "",
        "What `migrate analyze` and `migrate convert` report. Codes and names are stable. "
        "`torch`, `nn` and `F` are imported in all examples.",
    ]
    for family, title in FAMILIES.items():
        lines += [
            "",
            f"## {family}: {title}",
            "",
            "| code | name | severity | what |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| [{flag.code}]({flag.code}.md) | {flag.name} | {flag.severity} | {flag.what} |"
            for code, flag in sorted(FLAGS.items())
            if code.rstrip("0123456789") == family
        ]
    lines += ["", _HOST]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name → text of every page."""
    load_flags()
    return {
        "index.md": index(),
        **{f"{code}.md": page(flag) for code, flag in sorted(FLAGS.items())},
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def main(folder: Path = FOLDER) -> None:
    """Write all pages and remove those of rules that are gone."""
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in folder.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The programs of the other generators, cut into the files of a package that import one another in several ways.

A definition stands in the same file as the one before it or in the next one; the methods of the model may be those of a
class of their own, plain or a module, from which the model derives.
"""

from __future__ import annotations

import ast
import random
import re
from dataclasses import dataclass

from tests.convert.fuzz import classes, flow
from tests.convert.fuzz.compare import Program
from tests.convert.tools import HEADER

STYLES = ["from", "from", "star", "module", "package", "init", "renamed", "named", "dotted"]


@dataclass
class Package:
    """The text of each file by its name, the last of which has the model of the program."""

    program: Program
    files: dict[str, str]


def package(seed: int) -> Package:
    """A program of classes, or now and then one of branches and loops, in two or three files."""
    draw = random.Random(seed)
    program = (classes if draw.random() < 0.75 else flow).program(seed)
    source = HEADER + program.source
    body = ast.parse(source).body
    imports = [one for one in body if isinstance(one, (ast.Import, ast.ImportFrom))]
    head = "\n".join(ast.unparse(one) for one in imports)
    parts = [one for one in body if one not in imports]
    names = draw.choice([["parts", "main"], ["layers", "main"], ["parts", "layers", "main"]])
    texts: list[list[str]] = [[] for _ in names]
    homes: dict[str, int] = {}
    at = 0
    for number, part in enumerate(parts):
        if number == len(parts) - 1:
            at = len(names) - 1
        elif at < len(names) - 2 and number and draw.random() < 0.35:
            at += 1
        homes.update(dict.fromkeys(_defined(part), at))
        texts[at].append("\n".join(source.split("\n")[_first(part) - 1 : part.end_lineno]))
    model = parts[-1]
    if isinstance(model, ast.ClassDef) and draw.random() < 0.35:
        apart = _taken_apart(draw, source, model)
        if apart is not None:
            texts[-1][-1] = apart[1]
            homes["Part"] = draw.randrange(len(names) - 1)
            texts[homes["Part"]].append(apart[0])
    return Package(program, _files(draw, head, names, texts, homes))


def _files(
    draw: random.Random, head: str, names: list[str], texts: list[list[str]], homes: dict[str, int]
) -> dict[str, str]:
    """The texts with the imports of what each needs of the files before it."""
    files, opening = {}, list[str]()
    styles = [draw.choice(STYLES) for _ in names]
    for number, name in enumerate(names):
        text = "\n\n\n".join(texts[number])
        lines = []
        for other in range(number):
            needed = sorted(n for n, home in homes.items() if home == other and _reads(text, n))
            if needed:
                file, style = names[other], styles[other]
                if style == "init" and number < len(names) - 1:
                    style = "from"
                if style == "init":
                    opening.append(f"from .{file} import {', '.join(needed)}")
                line, text = _imported(file, needed, style, text)
                lines.append(line)
        files[name] = "\n".join([head, *lines, "", "", text, ""])
    files["__init__"] = "\n".join([*opening, ""])
    return files


def _imported(file: str, needed: list[str], style: str, text: str) -> tuple[str, str]:
    """The line that brings names from a file, and the text that reads them so."""
    several = ", ".join(needed)
    before = {"module": f"{file}.", "named": f"the_{file}.", "dotted": f"pkg.{file}."}.get(
        style, ""
    )
    behind = "_there" if style == "renamed" else ""
    for name in needed if before or behind else ():
        text = re.sub(rf"{_WORD}{name}\b(?!\s*=[^=])", f"{before}{name}{behind}", text)
    line = {
        "star": f"from .{file} import *",
        "module": f"from . import {file}",
        "package": f"from pkg.{file} import {several}",
        "init": f"from . import {several}",
        "renamed": f"from .{file} import {', '.join(f'{n} as {n}_there' for n in needed)}",
        "named": f"import pkg.{file} as the_{file}",
        "dotted": f"import pkg.{file}",
    }.get(style, f"from .{file} import {several}")
    return line, text


_WORD = r"(?<![.\w\"'])"


def _reads(text: str, name: str) -> bool:
    return re.search(rf"{_WORD}{name}\b", text) is not None


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [one.id for one in targets if isinstance(one, ast.Name)]


def _first(node: ast.stmt) -> int:
    """The line that a statement begins at, its decorators too."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])


def _taken_apart(draw: random.Random, source: str, model: ast.ClassDef) -> tuple[str, str] | None:
    """A class with methods of the model, and the model that derives from it; None where ``super()`` ties them to it."""
    lines = source.split("\n")
    methods = [one for one in model.body if isinstance(one, ast.FunctionDef)]
    methods = [one for one in methods if one.name != "__init__"]
    methods = [one for one in methods if one.name != "forward" or draw.random() < 0.4]
    texts = ["\n".join(lines[_first(one) - 1 : one.end_lineno]) for one in methods]
    if not methods or any("super()" in text for text in texts):
        return None
    bases = [ast.unparse(base) for base in model.bases]
    plain = draw.random() < 0.5
    part = f"class Part{'' if plain else '(nn.Module)'}:\n" + "\n\n".join(texts)
    bases = ["Part", *bases] if plain or bases != ["nn.Module"] else ["Part"]
    gone = {n for one in methods for n in range(_first(one), (one.end_lineno or 0) + 1)}
    first, last = model.lineno, model.end_lineno or 0
    kept = [lines[n - 1] for n in range(first + 1, last + 1) if n not in gone]
    if not any(line.strip() for line in kept):
        kept = ["    pass"]
    return part, "\n".join([f"class M({', '.join(bases)}):", *kept])

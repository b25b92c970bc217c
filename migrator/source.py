"""One file: its text, its libcst tree and, when somebody asks, where each node stands."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from migrator.absent import without_kernels
from migrator.built_results import under_own_names
from migrator.byte_masks import as_booleans
from migrator.chained_writes import in_lines
from migrator.child_tables import without_tables
from migrator.chosen_lists import in_one
from migrator.chosen_makers import called_apart
from migrator.class_functions import said_static
from migrator.data_views import by_parameter
from migrator.device_numbers import as_devices
from migrator.drafts import in_variables
from migrator.dropped_rounds import under_tests
from migrator.embedding_options import as_defaults
from migrator.errors import UserError
from migrator.evaluated import spelled_out
from migrator.findings import UNREADABLE, Finding
from migrator.float_functional import by_functions
from migrator.fresh_weights import as_parameters
from migrator.gathered_lists import in_one_list
from migrator.given_back import on_copies
from migrator.gradient_helpers import in_callers
from migrator.guards import without_guards
from migrator.hit_rows import over_all
from migrator.initialised import within_parameters
from migrator.layer_dicts import as_places
from migrator.lifted import beside_classes
from migrator.lines import assigned, split
from migrator.nodes import trusted_parser
from migrator.pretrained import as_built
from migrator.pruned_places import as_lists
from migrator.pulled_back import by_pullback
from migrator.roundabout import straightened
from migrator.row_views import by_place
from migrator.run_ends import counted
from migrator.set_apart import set_apart
from migrator.size_numbers import as_numbers
from migrator.tree import Tree
from migrator.tried import asked_first
from migrator.unrolled import one_by_one
from migrator.wrappers import written_out


class SourceError(UserError):
    """A file that cannot be read: one line for the user, with file, line and what to do."""

    finding: Finding
    """The same, for a report on many files."""

    @classmethod
    def at(
        cls, path: str | Path, reason: str, advice: str = "", line: int = 0, column: int = 0
    ) -> SourceError:
        """The error at a place; a line or column of 0 is not known."""
        place = ":".join(str(one) for one in (path, line, column) if one)
        made = cls(f"{place}: {'; '.join(filter(None, (reason, advice)))}")
        line, column = max(line, 1), max(column, 1)
        where = (line, column, line, column + 1, str(path))
        made.finding = Finding(UNREADABLE, reason, "error", *where, advice, blocks=True)
        return made


@dataclass(frozen=True)
class Span:
    """Where a node stands: 1-based lines and columns, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


def read_text(path: str | Path) -> str:
    """The text of a UTF-8 file, whatever its lines end with; SourceError with one clear line when it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SourceError.at(path, error.strerror or str(error)) from error
    try:
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        what = f"not UTF-8 (byte 0x{data[error.start]:02x})"
        raise SourceError.at(path, what, "save it as UTF-8", line) from error
    return text


def with_plain_ends(text: str) -> str:
    """The text as Python reads it: lines that end as on Windows, or with a lone return, end with a newline."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _syntax_error(text: str, path: str, error: cst.ParserSyntaxError) -> SourceError:
    """Where and what the interpreter says it is; libcst says neither what nor, of brackets and indents, where."""
    line, column, reason = error.raw_line, error.raw_column + 1, "syntax error"
    try:
        ast.parse(text)
    except SyntaxError as own:
        line, column = own.lineno or line, own.offset or 1
        reason += f": {own.msg}"
    except (ValueError, RecursionError):
        pass
    advice = "migrate reads Python 3 source that the interpreter accepts"
    return SourceError.at(path, reason, advice, line, column)


_READINGS: tuple[Callable[[cst.Module, str], cst.Module], ...] = (
    *(set_apart, spelled_out, straightened, assigned, written_out, in_variables),
    *(by_place, counted, called_apart, by_parameter, without_guards, as_numbers, over_all),
    *(under_tests, without_kernels, as_built, as_lists, in_one, as_booleans, on_copies, in_lines),
    *(asked_first, as_defaults, as_places, under_own_names, in_one_list, in_callers),
    *(by_pullback, said_static, as_parameters, beside_classes, one_by_one),
    *(without_tables, within_parameters, by_functions, as_devices),
)
"""What reads a file as if some of its statements were others that do the same, each what the one before gives."""


class Source:
    """A parsed file.

    Args:
      text: the source text.
      path: where it came from, for messages.
      module: its dotted module name; own classes and functions are named ``module.Name``.
    """

    def __init__(self, text: str, path: str | Path | None = None, module: str = "file") -> None:
        self.text = text = with_plain_ends(text)
        self.path = str(path) if path is not None else "<string>"
        self.module = module
        try:
            with trusted_parser:
                self._parsed = split(cst.parse_module(text))
                tree = self._parsed
                for reading in _READINGS:
                    tree = reading(tree, text)
                self.tree = tree
        except cst.ParserSyntaxError as error:
            raise _syntax_error(text, self.path, error) from error
        except RecursionError as error:
            raise SourceError.at(self.path, "nested too deeply to be read") from error

    @classmethod
    def read(cls, path: str | Path, module: str = "file") -> Source:
        """Read and parse a file; SourceError with one clear line when that fails."""
        return cls(read_text(path), path, module)

    @cached_property
    def index(self) -> Tree:
        """All nodes of the file in one list."""
        return Tree(self.tree)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, Span]:
        return _positions(self.tree)

    @cached_property
    def _places(self) -> dict[cst.CSTNode, Mapping[cst.CSTNode, Span]]:
        return {}

    @cached_property
    def _compound(self) -> dict[cst.CSTNode, Span]:
        """Where the statements with a body stand, body and all; filled with ``_statements``."""
        return {}

    @cached_property
    def _statements(self) -> dict[cst.CSTNode, tuple[cst.CSTNode, int, int]]:
        """Every statement, with its first line and column, by Python's own parser.

        libcst finds positions by writing the file once more with bookkeeping, ten times the cost. The two
        trees hold the same statements in the same order; empty where they do not.
        """
        try:
            theirs = list(_in_order(ast.parse(self.text)))
        except (SyntaxError, ValueError):
            return {}
        nodes = self.index.nodes
        kinds = {kind for kind in map(type, nodes) if issubclass(kind, _STATEMENTS)}
        ours = [i for i, node in enumerate(nodes) if type(node) in kinds]
        lines = self.text.encode().splitlines()
        if len(ours) != len(theirs):
            return self._found_again([nodes[i] for i in ours], theirs, lines)
        found: dict[cst.CSTNode, tuple[cst.CSTNode, int, int]] = {}
        for mine, other in zip(ours, theirs, strict=True):
            first = min([other.lineno, *[d.lineno for d in getattr(other, "decorator_list", [])]])
            before = lines[first - 1][: other.col_offset].decode(errors="replace")
            if hasattr(other, "body"):
                self._compound[nodes[mine]] = _span_of(other, lines)
            found[nodes[mine]] = nodes[mine], first, len(before)
        return found

    def _found_again(
        self, statements: list[Any], theirs: list[Any], lines: list[bytes]
    ) -> dict[cst.CSTNode, tuple[cst.CSTNode, int, int]]:
        """The same where a file is read as if some statements were others: by what they still hold of the file."""
        parsed = Tree(self._parsed)
        own = [node for node in parsed.nodes if isinstance(node, _STATEMENTS)]
        if len(own) != len(theirs):
            return {}
        places = dict(zip(own, theirs, strict=True))
        found: dict[cst.CSTNode, tuple[cst.CSTNode, int, int]] = {}
        before = 1, 0
        for statement in statements:
            inner = next((one for one in self.index.below(statement) if parsed.has(one)), None)
            around = [*parsed.around(inner), inner] if inner is not None else []
            holder = next((one for one in reversed(around) if one in places), None)
            if holder is None:  # nobody wrote it: it stands behind what comes before it
                found[statement] = statement, *before
                continue
            other = places[holder]
            first = min([other.lineno, *[d.lineno for d in getattr(other, "decorator_list", [])]])
            indent = lines[first - 1][: other.col_offset].decode(errors="replace")
            if isinstance(statement, cst.BaseCompoundStatement):
                self._compound[statement] = _span_of(other, lines)
            before = first, len(indent)
            found[statement] = statement, *before
        return found

    def _statement_of(self, node: cst.CSTNode) -> tuple[cst.CSTNode, int, int] | None:
        """The innermost statement that a node of this tree stands in, with its first line and column."""
        places = self._statements
        if node in places or not self.index.has(node):
            return places.get(node)
        around = (places[one] for one in reversed(self.index.around(node)) if one in places)
        return next(around, None)

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of this tree stands; the statement around it is written once more to find out."""
        if type(node) is cst.SimpleStatementLine:
            start, end = self.span(node.body[0]), self.span(node.body[-1])
            return Span(start.line, start.column, end.end_line, end.end_column)
        known = self._statement_of(node)
        if known is None:
            return self._positions.get(node, Span(1, 1, 1, 1))
        if node in self._compound:
            return self._compound[node]
        statement, line, column = known
        text = self.lines[line - 1]
        indent = text[: len(text) - len(text.lstrip())]
        if statement not in self._places:
            self._places[statement] = _positions(_alone(statement, indent))
        place = self._places[statement].get(node)
        if place is None:
            return self._positions.get(node, Span(1, 1, 1, 1))
        first = 2 if indent else 1
        column -= len(indent)
        if text.startswith("elif", column + len(indent)):
            column += 2  # written as a plain `if`
        return Span(
            place.line + line - first,
            place.column + (column if place.line == first else 0),
            place.end_line + line - first,
            place.end_column + (column if place.end_line == first else 0),
        )

    def excerpt(self, line: int) -> str:
        """The text of a 1-based line, without its newline."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""


_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)


def _positions(tree: cst.Module) -> Mapping[cst.CSTNode, Span]:
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    return {
        node: Span(p.start.line, p.start.column + 1, p.end.line, p.end.column + 1)
        for node, p in wrapper.resolve(PositionProvider).items()
    }


def _span_of(node: Any, lines: list[bytes]) -> Span:
    """The span of a node of Python's parser, which counts columns in bytes of UTF-8."""
    places = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    ends = [len(lines[line - 1][:place].decode(errors="replace")) + 1 for line, place in places]
    return Span(node.lineno, ends[0], node.end_lineno, ends[1])


def _alone(node: cst.CSTNode, indent: str) -> cst.Module:
    """A statement alone in a file at its indentation, without the statements in it and the lines before it."""
    if isinstance(node, cst.BaseSmallStatement):
        statement: Any = cst.SimpleStatementLine([node])
    else:
        empty: dict[str, Any] = {"leading_lines": []}
        if not isinstance(node, (cst.Match, cst.Try, cst.TryStar)):
            empty["body"] = cst.SimpleStatementSuite([cst.Pass()])
            if hasattr(node, "orelse"):
                empty["orelse"] = None
        statement = node.with_changes(**empty)
    if not indent:
        return cst.Module([statement])
    return cst.Module([cst.If(cst.Name("_"), cst.IndentedBlock([statement], indent=indent))])


def _in_order(node: ast.AST) -> Iterator[Any]:
    """The statements below a node as they stand in the file."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(node, name, None) or () if not isinstance(node, ast.expr) else ():
            if isinstance(child, ast.stmt):
                yield child
            yield from _in_order(child)


def dotted(node: cst.BaseExpression) -> str | None:
    """``"a.b.c"`` for a Name or a chain of Attributes, else None."""
    if type(node) is cst.Name:
        return node.value
    if type(node) is cst.Attribute:
        base = dotted(node.value)
        return f"{base}.{node.attr.value}" if base else None
    return None

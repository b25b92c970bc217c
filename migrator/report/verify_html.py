"""Verification reports as one self-contained HTML page, with the error of every layer as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numerics.compare import Difference
    from numerics.report import Report

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
table { border-collapse: collapse } td, th { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ddd }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto } svg text { font: 12px monospace }
.ok { color: #1a7f37 } .bad { color: #b3261e; font-weight: bold } .other { color: #8a6100 }
"""
_ROW, _LEFT, _WIDTH, _DECADES = 18, 330, 420, 9
"""Of the picture, in pixels: height of a layer, room for names, width of the axis; and 1e-9 … 1 on the axis."""


def render(reports: Sequence[Report]) -> str:
    """The page."""
    wrong = sum(not report.ok for report in reports)
    head = (
        f"{len(reports)} cases, {wrong} not as expected"
        if wrong
        else f"{len(reports)} cases, all as expected"
    )
    body = "\n".join([f"<h1>migrate verify: {head}</h1>", _table(reports), *map(_case, reports)])
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>migrate verify</title><style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _class(report: Report) -> str:
    if report.ok:
        return "ok"
    return "other" if report.verdict in ("ill-conditioned", "not compared") else "bad"


def _table(reports: Sequence[Report]) -> str:
    titles = ("case", "verdict", "error", "torch's own", "of", "examples", "compiles", "seconds")
    rows = ["<tr>" + "".join(f"<th>{title}</th>" for title in titles) + "</tr>"]
    for report in reports:
        cells = [
            f'<a href="#{escape(report.name, quote=True)}">{escape(report.name)}</a>',
            f'<span class="{_class(report)}">{escape(report.verdict)}</span>',
            f"{report.max_error:.1e}",
            f"{report.torch_error:.1e}",
            report.worst.name if report.worst else "",
            str(report.examples),
            str(report.compiles),
            f"{report.seconds:.1f}",
        ]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f"<table>{''.join(rows)}</table>"


def _case(report: Report) -> str:
    name = escape(report.name, quote=True)
    parts = [f'<h2 id="{name}">{name}: <span class="{_class(report)}">{report.verdict}</span></h2>']
    parts += [f"<p>{escape(note)}</p>" for note in report.notes]
    failure = report.failure
    if failure is not None:
        if failure.submodule is not None:
            where = failure.submodule or "the module itself"
            parts.append(f"<p>First difference in <code>{escape(where)}</code></p>")
        parts.append(f"<p>{escape(failure.check)}: {escape(str(failure))}</p>")
        if failure.statement is not None:
            parts.append(f"<pre>{escape(str(failure.statement))}</pre>")
        parts.append(f"<p>Example: {escape(str(failure.example))}</p>")
        parts.append(f"<pre>{escape(failure.snippet or failure.traceback)}</pre>")
    if report.layers:
        parts.append(picture(report.layers))
    return "\n".join(parts)


def picture(layers: Sequence[Difference]) -> str:
    """An SVG: a bar a layer for the port's error on a logarithmic axis, a tick for torch's own."""
    height = _ROW * (len(layers) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 90}" height="{height}"'
        ' role="img" aria-label="error of every layer">'
    ]
    for decade in range(-_DECADES, 1, 3):
        x = _LEFT + _WIDTH * (decade + _DECADES) / _DECADES
        parts.append(f'<line x1="{x}" y1="{_ROW}" x2="{x}" y2="{height}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="12" text-anchor="middle">1e{decade}</text>')
    for row, layer in enumerate(layers, 1):
        parts.append(_bar(layer, row * _ROW))
    return "".join([*parts, "</svg>"])


def _bar(layer: Difference, y: int) -> str:
    error, own = _position(layer.error), _position(layer.torch_error)
    if layer.problem:
        error = float(_WIDTH)
    colour = "#2da44e" if layer.ok else "#cf222e"
    name = escape(layer.name or "the module itself")
    return (
        f'<g class="layer"><title>{escape(str(layer))}</title>'
        f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{name}</text>'
        f'<rect x="{_LEFT}" y="{y + 3}" width="{error:.1f}" height="{_ROW - 6}" fill="{colour}"/>'
        f'<line x1="{_LEFT + own:.1f}" y1="{y + 1}" x2="{_LEFT + own:.1f}" y2="{y + _ROW - 1}"'
        ' stroke="#222" stroke-width="2"/></g>'
    )


def _position(error: float) -> float:
    """Pixels from the left end of the axis."""
    if not error > 0 or not math.isfinite(error):
        return 0.0
    return _WIDTH * min(max(math.log10(error) + _DECADES, 0.0), _DECADES) / _DECADES

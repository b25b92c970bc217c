"""The HTML page: self-contained, well formed, one bar a layer, red where it starts to differ."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from flax import nnx

from migrator.report import verify_html
from numerics.compare import Difference
from numerics.report import Report
from numerics.spec import Array
from numerics.verify import Settings, verify
from tests.numerics.models import NET, FlaxNet, TorchNet

SVG = "{http://www.w3.org/2000/svg}"


def report(tanh: bool) -> Report:
    settings = Settings(examples=1, train=False, grad=False, layers=True, shrink_seconds=0)
    port = FlaxNet(tanh=tanh, rngs=nnx.Rngs(0))
    inputs = [Array((3, 8))]
    found = verify(TorchNet(), port, inputs, load=NET.load, dump=NET.dump, settings=settings)
    return replace(found, name="net <1>")


@pytest.mark.parametrize("tanh", [False, True], ids=["equal", "different"])
def test_every_layer_has_a_bar_and_the_wrong_ones_are_red(tanh: bool) -> None:
    found = report(tanh)
    page = verify_html.render([found])
    assert "http://" not in page.replace(SVG[1:-1], "")  # nothing to load
    assert "<h1>" in page
    assert "net &lt;1&gt;" in page
    svg = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    bars = {g.findtext(f"{SVG}text"): g.find(f"{SVG}rect") for g in svg.iter(f"{SVG}g")}
    assert list(bars) == ["net.0", "net.1", "net.2", "net.3", "net", "norm", "the module itself"]
    red = [name for name, bar in bars.items() if bar is not None and bar.get("fill") == "#cf222e"]
    assert red == ([name for name in bars if name != "net.0"] if tanh else [])


def test_longer_bars_for_larger_errors() -> None:
    layers = [Difference("a", error=e, torch_error=1e-7) for e in (0.0, 1e-8, 1e-4, 5.0)]
    svg = ElementTree.fromstring(verify_html.picture(layers))
    widths = [float(rect.get("width", "0")) for rect in svg.iter(f"{SVG}rect")]
    assert widths == sorted(set(widths))
    assert (widths[0], widths[-1]) == (0.0, 420.0)

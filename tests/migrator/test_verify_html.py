"""The HTML page: self-contained, well formed, one bar a layer, red where it starts to differ."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
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


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def screenshot(page: str, directory: Path) -> np.ndarray:
    """The page as a browser paints it, (height, width, 3) of bytes."""
    (directory / "page.html").write_text(page, encoding="utf-8")
    image = directory / "page.png"
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--window-size=1100,1400", f"--screenshot={image}"]
    command += [f"--user-data-dir={directory / 'profile'}", (directory / "page.html").as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return pixels(image.read_bytes())


def pixels(png: bytes) -> np.ndarray:
    """A PNG of 8 bits a channel, without transparency's channel (PNG specification, sections 5 and 9)."""
    at, data, size, channels = 8, b"", (0, 0), 3
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8
            size, channels = (height, width), {2: 3, 6: 4}[colour]
        data += body if kind == b"IDAT" else b""
        at += length + 12
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(size[0], -1)
    out = np.zeros((size[0], size[1] * channels), np.uint8)
    for y, (how, row) in enumerate(zip(rows[:, 0], rows[:, 1:].astype(int), strict=True)):
        above = out[y - 1].astype(int) if y else np.zeros(len(row), int)
        out[y] = _unfiltered(int(how), row, above, channels)
    return out.reshape(*size, channels)[..., :3]


def _unfiltered(how: int, row: np.ndarray, above: np.ndarray, step: int) -> np.ndarray:
    if how == 0:
        return row % 256
    if how == 2:
        return (row + above) % 256
    found = np.zeros(len(row) + step, int)
    corner = np.concatenate([np.zeros(step, int), above])
    for x, value in enumerate(row):
        left, up, diagonal = found[x], above[x], corner[x]
        guess = {1: left, 3: (left + up) // 2}.get(how)
        if guess is None:
            distances = [abs(up - diagonal), abs(left - diagonal), abs(left + up - 2 * diagonal)]
            guess = (left, up, diagonal)[distances.index(min(distances))]
        found[x + step] = (value + guess) % 256
    return found[step:]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_a_browser_paints_the_picture(tmp_path: Path) -> None:
    layers = [
        Difference("first", error=1e-7, torch_error=1e-7),
        Difference("second", error=1e-2, torch_error=1e-7, ratio=100.0),
    ]
    found = Report("net", "equal", layers=layers)
    image = screenshot(verify_html.render([found]), tmp_path).astype(int)
    red = (abs(image - [0xCF, 0x22, 0x2E]) < 8).all(-1)
    green = (abs(image - [0x2D, 0xA4, 0x4E]) < 8).all(-1)
    widths = [int(mask.any(0).sum()) for mask in (green, red)]
    # 2 and 7 of 9 decades of 420 pixels
    assert widths == pytest.approx([93, 327], abs=4)
    assert green.any(1).argmax() < red.any(1).argmax(), "the layers from top to bottom"

"""Layers that get their first values from ``self.apply(self._init_weights)`` need none of torch's; all others do."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrator.project import convert_path
from tests.convert.tools import HEADER, convert, loaded

SOURCE = """
class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.fc = nn.Linear(dim, dim)
        self.out = nn.Sequential(nn.Linear(self.dim, dim, bias=False), nn.ReLU())

    def forward(self, x):
        return x + self.out(self.fc(x))


class Net(nn.Module):
    def __init__(self, words, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.register_buffer("scale", torch.ones(dim))
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.more = nn.ModuleList()
        for _ in range(depth):
            self.more.append(Block(dim))
        self.head = nn.Linear(dim, words)
        self.apply(self._init_weights)
        self.depth = depth

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.Embedding):
            module.weight.data.normal_(mean=0.0, std=0.5)

    def forward(self, i):
        x = self.embed(i) * self.scale
        for block in self.blocks:
            x = block(x)
        return self.head(x)
"""


def of_torch(source: str) -> list[str]:
    """The layers of a conversion that begin with torch's own first values."""
    code = convert(source).code
    return [text for text in ("class Linear(", "embedding_init=") if text in code]


def test_flax_has_them_without_helpers() -> None:
    _, ours, text = loaded(SOURCE)
    assert of_torch(SOURCE) == []
    assert "isinstance(module, nnx.Linear)" in text
    net = ours["Net"](50, 32, 2, rngs=nnx.Rngs(0))
    layers = [m for _, m in nnx.iter_modules(net) if isinstance(m, nnx.Linear)]
    assert len(layers) == 9
    for layer in layers:
        np.testing.assert_allclose(np.std(layer.kernel[...]), 0.02, rtol=0.15)
        assert layer.bias is None or not jnp.any(layer.bias[...])
    np.testing.assert_allclose(np.std(net.embed.embedding[...]), 0.5, rtol=0.15)


def test_it_is_said() -> None:
    (finding,) = [f for f in convert(SOURCE).findings if f.rule == "API014"]
    assert not finding.blocks
    assert finding.snippet.strip() == "self.apply(self._init_weights)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        self.apply(self._init_weights)\n", ""),
        ("        self.apply(self._init_weights)\n", "        if dim > 3:\n            self.apply(self._init_weights)\n"),
        ("        self.embed = ", "        if dim > 9:\n            return\n        self.embed = "),
        ("        self.depth = ", "        self.late = nn.Linear(dim, dim)\n        self.depth = "),
        ("        self.head = ", "        self.loose = [nn.Linear(dim, dim)]\n        self.head = "),
        ("        self.head = ", "        self.loose = {'a': Block(dim)}\n        self.head = "),
        ("        self.head = ", "        self.early = self.blocks[0].fc.weight * 2\n        self.head = "),
        ("        self.head = ", "        self.prepare()\n        self.head = "),
        ("        self.head = ", "        register(self)\n        self.head = "),
        ("        self.head = ", "        self.head = nn.utils.weight_norm(nn.Linear(dim, dim))\n        self.head = "),
        ("        self.head = nn.Linear(dim, words)\n", "        head = nn.Linear(dim, words)\n        self.head = head\n"),
        ("        self.out = ", "        self.gain = self.fc.weight.norm()\n        self.out = "),
        ("    def forward(self, i):", "    def grow(self):\n        self.fresh = Block(3)\n\n    def forward(self, i):"),
        ("    def forward(self, i):", "    def grow(self):\n        self.fresh = nn.Linear(3, 3)\n\n    def forward(self, i):"),
        ("    def forward(self, i):", "    def children(self):\n        return iter([])\n\n    def forward(self, i):"),
        ("        if isinstance(module, nn.Linear):", "        if getattr(module, 'skip', False):\n            return\n        if isinstance(module, nn.Linear):"),
        ("        if isinstance(module, nn.Linear):", "        if isinstance(module, nn.Linear) and module.out_features > 3:"),
        ("        if isinstance(module, nn.Linear):", "        if isinstance(module, nn.Linear) and module.bias is not None:"),
        ("nn.init.normal_(module.weight, std=0.02)", "nn.init.normal_(module.weight, std=float(module.weight.std()))"),
        ("nn.init.normal_(module.weight, std=0.02)", "module.weight.data.mul_(0.5)"),
        ("nn.init.normal_(module.weight, std=0.02)", "nn.init.sparse_(module.weight, 0.5)"),
        ("                module.bias.data.zero_()\n", "                pass\n"),
    ],
)  # fmt: skip
def test_what_is_not_plain_to_see_has_torchs_values(old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert "class Linear(" in of_torch(SOURCE.replace(old, new))


@pytest.mark.parametrize(
    "after",
    [
        "class Other(Net):\n    def _init_weights(self, module):\n        pass\n",
        "class Wide(Block):\n    pass\n",
        "class Linear(nn.Linear):\n    pass\n",
        "class Alone(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.block = Block(3)\n",
        "def build():\n    return Block(3)\n",
        "LAYERS = {'block': Block}\n",
        "LAYERS = [nn.Linear]\n",
        "make = functools.partial(Block, 3)\n",
    ],
)
def test_what_else_is_built_of_them_has_torchs_values(after: str) -> None:
    assert "class Linear(" in of_torch(f"import functools\n{SOURCE}\n\n{after}")


def test_embeddings_alone() -> None:
    source = SOURCE.replace("elif isinstance(module, nn.Embedding)", "elif module is self")
    assert of_torch(source) == ["embedding_init="]


@pytest.mark.parametrize(
    "line",
    [
        "self.head.weight = self.embed.weight",
        "self.name = 'net'",
        "self.dim = dim",
    ],
)
def test_what_reads_nothing_may_stand_before(line: str) -> None:
    start = "        self.apply("
    assert of_torch(SOURCE.replace(start, f"        {line}\n{start}")) == []


def test_another_file_may_build_the_parts(tmp_path) -> None:
    (tmp_path / "net.py").write_text(HEADER + SOURCE)
    (tmp_path / "use.py").write_text("from net import Block\n\nblock = Block(3)\n")
    convert_path([tmp_path], tmp_path / "out")
    written = "".join(p.read_text() for p in (tmp_path / "out").glob("*.py"))
    assert "class Linear(" in written

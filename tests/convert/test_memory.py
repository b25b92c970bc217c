"""Names that share memory with a written one: a write that somebody else sees is a finding, and no other one is."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

from migrator.convert.sharing import VIEWS
from tests.convert.tools import X, both, check, convert, rules_of

CLASS = """
def pair(x, y):
    return x * 1, y


def same(x):
    return x, x.view(-1)


def either(x, make):
    return x if x is not None else make()


def maybe(x, y=None):
    y = x if y is None else y
    return x * 1, y


def first_of(state):
    h, c = state
    h += 1
    return h + c


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.register_buffer("buf", torch.ones(4))

    def bump(self):
        self.buf.add_(1)

    def step(self, h, x):
        h += x
        return h

    def first(self, hs, x):
        hs[0] += x

    def keep(self, held, h):
        held.append(h)

    def forward(self, x):
        h = x * 2
"""


def source(lines: str) -> str:
    return CLASS + textwrap.indent("\n".join(lines.split("; ")), " " * 8) + "\n"


SEEN = {
    "else of a loop": "for i in range(2):\n    pass\nelse:\n    y = h\n    y += 1\nreturn h + y",
    "else of a try": "try:\n    y = x\nexcept ValueError:\n    pass\nelse:\n    y = h\n    y += 1\nreturn h + y",
    "a case of a match": "match 1:\n    case 1:\n        y = h\n        y += 1\nreturn h + y",
    "a walrus": "if (y := h) is not None:\n    y += 1\nreturn h + y",
    "appended": "held = []; held.append(h); h += 1; return held[0]",
    "inserted": "held = []; held.insert(0, h); h += 1; return held[0]",
    "extended": "held = []; held.extend([h]); h += 1; return held[0]",
    "added to a list": "held = []; held += [h]; h += 1; return held[0]",
    "a sum of lists": "held = [x] + [h]; h += 1; return held[1]",
    "a dict's item": "held = {}; held['h'] = h; h += 1; return held['h']",
    "updated": "held = {}; held.update(a=h); h += 1; return held['a']",
    "popped": "held = []; held.append(h); y = held.pop(); y += 1; return h",
    "a comprehension": "held = [y for y in [h]]; y = held[0]; y += 1; return h",
    "the list under another name": "a = []; b = a; b.append(h); h += 1; return a[0]",
    "kept by a method": "held = []; self.keep(held, h); h += 1; return held[0]",
    "what a lambda takes where it is made": "f = lambda t=h: t; y = f(); y += 1; return h",
    "what may be a tensor": "a, b = maybe(h); b *= 2; return h + a",
    "what a lambda gives": "f = lambda: [h]; y = f()[0]; y += 1; return h",
    "what a lambda makes of what it is handed": "f = lambda t: t[0]; y = f(h); y += 1; return h",
    "what a lambda holds": "f = lambda: h; y = f(); y += 1; return h",
    "an element of a list": "held = [h]; held[0] += 1; return h",
    "an element of a dict": "held = {'h': h}; held['h'] += 1; return h",
    "an element named before": "held = [h * i for i in range(2)]; y = held[0]; held[0] += 1; return y",
    "a copy of the list": "held = [h * 1]; other = list(held); held[0] += 1; return other[0]",
    "one tensor twice": "held = [h] * 2; held[0] += 1; return held[1]",
    "one tensor in each": "held = [h for _ in range(2)]; held[0] += 1; return held[1]",
    "beside the write": "y = h; return h + y.add_(1)",
    "a buffer by its name": "y = self.buf; self.buf += 1; return h * y",
    "a view of a buffer": "y = self.buf[0]; self.buf.mul_(2); return h * y",
    "a buffer in another method": "y = self.buf; self.bump(); return h * y",
    "an attribute": "self.h = h; self.h += 1; return h",
    "around a function": "def f():\n    h.add_(1)\nf(); return h",
    "read by a closure": "def f(y):\n    y[0] = 5\n    return y + h\nreturn f(h)",
    "not local": "def f():\n    nonlocal h\n    h += 1\ny = h; f(); return h + y",
    "in a list that is handed over": "self.first([h], x); return h",
    "an inplace layer": "held = [h]; y = self.relu(h); return held[0] + y",
    "the same round a loop": "held = []\nfor i in range(2):\n    h += x\n    held.append(h)\nreturn torch.stack(held)",
    "a view by einsum": "y = torch.einsum('ij->ji', h); y += 1; return h",
    "the whole of what is taken apart": "a, b = h.chunk(2, 1); a += 1; return h",
    "parts of parts": "a, b = h.chunk(2, 1); c, d = a.chunk(2, 0); d += 1; return a",
    "parts taken twice": "a, b = h.chunk(2, 1); c, d = h.chunk(2, 0); a += 1; return d",
    "parts of what was turned": "b = h[:, 0]\nfor i in range(2):\n    c, a = h[0], h[1]\n    h = h.T\n    if i:\n"
    "        a += d\n    d = c\nreturn c",
    "rows of an expanded tensor": "h = h[:1].expand(3, 4); a, b = h[0], h[1]; a += 1; return b",
    "overlapping windows": "a, b = h.unfold(0, 2, 1); a += 1; return b",
    "one row twice": "a, b = h[0], h[0]; a += 1; return b",
    "a row from both ends": "a, b = h[2], h[-1]; a += 1; return b",
    "one tensor twice for a function": "return first_of((h, h))",
    "two views for a function": "return first_of((h, h.view(3, 4)))",
    "an expanded tensor for a function": "return first_of(h[:1].expand(2, 4))",
    "a pair of one tensor": "p = (h, h); a, b = p; a += 1; return b",
    "one result twice": "a, b = same(h); a += 1; return b",
    "a result that is an argument": "a, b = pair(h, h); b += 1; return h",
    "a functional dropout": "y = F.dropout(h, 0.5, False); y += 1; return h",
}

UNSEEN = {
    "new each time": "held = []\nfor i in range(2):\n    h = h + x\n    held.append(h)\nreturn torch.stack(held)",
    "written before it is kept": "held = []\nfor i in range(2):\n    y = x * i\n    y += 1\n    held.append(y)\n"
    "return torch.stack(held)",
    "elements of a list": "held = [h * i for i in range(3)]\nfor i in range(2, 0, -1):\n    held[i - 1] += held[i]\n"
    "return held[0]",
    "a list under two names": "a = [h * 1]; b = a; a[0] += 1; return b[0]",
    "a dict that a method changes": "held = [h]; self.first(held, x); return held[0]",
    "taken back": "h = self.step(h, x); return h",
    "a number that counts": "held = {'n': 0}; held['n'] += 1; return h * held['n']",
    "a sum of what is kept": "total = 0.0; held = []\nfor i in range(2):\n    y = h * i\n    total += y\n    held.append(y)\n"
    "return total + held[1]",
    "a buffer that is copied first": "y = self.buf.clone(); self.buf += 1; return h * y",
    "halves": "a, b = h.chunk(2, 1); a += 1; b *= a; return a + b",
    "parts of a size": "a, b = torch.split(h, 2, 1); a.add_(b); return a - b",
    "rows by number": "q, k = h[0], h[1]; q *= 0.5; k[0] = 7; return q + k",
    "rows unpacked": "a, b, c = h; a += b; c -= a; return a + b + c",
    "halves of a half": "a, b = h.chunk(2, 1); c, d = a.chunk(2, 1); c += d; return b + c + d",
    "halves again and again": "y = 0\nfor i in range(2):\n    a, b = (h + i).chunk(2, 1)\n    a += b\n"
    "    y = y + a * b\nreturn y",
    "two tensors for a function": "return first_of((h * 1, h))",
    "a result of its own": "a, b = pair(h, x); a += 1; return a + b + h",
    "what a lambda makes": "f = lambda: torch.ones_like(h); y = f(); y += 1; return h + y",
    "what a lambda makes for a function": "y = either(None, lambda: h * 2); y += 1; return h + y",
    "a list of copies": "held = []\nfor i in range(2):\n    h += x\n    held.append(h.clone())\nreturn torch.stack(held)",
}


@pytest.mark.parametrize("lines", SEEN.values(), ids=SEEN)
def test_what_others_see_is_a_finding(lines: str) -> None:
    assert {r[:3] for r in rules_of(source(lines))} == {"MUT"}


@pytest.mark.parametrize("lines", UNSEEN.values(), ids=UNSEEN)
def test_what_nobody_sees_is_converted(lines: str) -> None:
    model, port, _ = both(source(lines))
    expected = model(X.clone()).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), expected, rtol=1e-6)


def storages(value: Any) -> set[int]:
    tensors = [t for t in tree_leaves(value) if isinstance(t, torch.Tensor) and t.numel()]
    dense = [t for t in tensors if t.layout == torch.strided]
    return {t.untyped_storage().data_ptr() for t in dense}


def sharing() -> Iterator[str]:
    """The ops of torch's database whose result shares memory with an argument on one of the first samples."""
    for op in op_db:
        random = op.name in (
            "normal",
            "uniform",
            "cauchy",
            "exponential",
            "geometric",
            "log_normal",
        )
        if random or torch.float32 not in op.supported_dtypes("cpu") or op.name[:2] in ("__", "ma"):
            continue  # drawn in place; indexing is told by its index; torch.masked is not converted
        for _, sample in zip(range(8), op.sample_inputs("cpu", torch.float32), strict=False):
            given = storages([sample.input, sample.args, sample.kwargs])
            try:
                result = op.op(sample.input, *sample.args, **sample.kwargs)
            except (RuntimeError, NotImplementedError, AssertionError):
                continue
            if storages(result) & given:
                yield op.name.rpartition(".")[2]
                break


@pytest.mark.sweep
def test_what_shares_memory_in_torch_is_known_to() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = set(sharing())
    assert {"reshape", "meshgrid", "dropout"} <= found
    assert found - VIEWS == {"histogramdd"}  # it gives back the bins it was given


LOOPED = """
class M(nn.Module):
    def __init__(self, norm=nn.BatchNorm2d, block=nn.Linear):
        super().__init__()
        convs = []
        norms = []
        for i in range(3):
            convs.append(nn.Conv2d(2, 2, 3, padding=1))
            norms.append(norm(2))
        self.convs, self.norms = nn.ModuleList(convs), nn.ModuleList(norms)
        self.blocks = nn.ModuleList()
        for i in range(2):
            self.blocks.append(block(4, 4))
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2))

    def forward(self, x):
        pieces = torch.split(self.act(x * 2), 2, 1)
        found = []
        part = pieces[0]
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            part = pieces[i] if i == 0 else part + pieces[i]
            part = conv(part)
            part = norm(part)
            part = self.act(part)
            found.append(part)
        x = torch.cat([*found, pieces[-1]], 1)
        for block in self.blocks:
            x = block(x)
        x = x[:, 0]
        return self.head(x)
"""


def test_what_layers_of_a_list_return_is_not_memory_of_the_list() -> None:
    model, port, _ = both(LOOPED)
    x = torch.randn(2, 8, 4, 4)
    model.eval()
    port.eval()
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), expected, rtol=1e-4, atol=1e-5)
    kept = LOOPED.replace("part = norm(part)", "part = pieces[i]")
    assert rules_of(kept) == ["MUT001"]


LAYERS = """
class Twice(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x


def double(x):
    x.mul_(2)
    return x


def chosen(name):
    if name == "relu":
        return nn.ReLU(inplace=True)
    return nn.GELU()


TABLE = {"relu": functools.partial(nn.ReLU, inplace=True), "gelu": nn.GELU}


class M(nn.Module):
    def __init__(self, act=functools.partial(nn.ReLU, inplace=True), inplace=True):
        super().__init__()
        layers = [nn.Identity()]
        layers.append(nn.ReLU(True))
        after = [nn.Linear(4, 4)]
        after.append(nn.ReLU(True))
        self.layer = LAYER

    def forward(self, x):
        h = x * 2
        y = CALL
        return h + y
"""

WRITING = {
    "what a function chooses": ("chosen('relu')", "self.layer(h)"),
    "a partial by default": ("act()", "self.layer(h)"),
    "a table of partials": ("TABLE['relu']()", "self.layer(h)"),
    "inplace by an argument": ("nn.ReLU(inplace=inplace)", "self.layer(h)"),
    "in a list": ("nn.ModuleList([nn.ReLU(True), nn.GELU()])", "self.layer[h.ndim - 2](h)"),
    "an own layer in a list": ("nn.ModuleList([Twice(), nn.GELU()])", "self.layer[0](h)"),
    "behind what hands on": ("nn.Sequential(nn.Identity(), nn.ReLU(True))", "self.layer(h)"),
    "in a list of layers": ("nn.Sequential(*layers)", "self.layer(h)"),
    "an own layer": ("nn.Sequential(Twice())", "self.layer(h)"),
    "an own layer at any place": (
        "nn.ModuleList([Twice(), nn.GELU()])",
        "self.layer[h.ndim - 2](h)",
    ),
    "each of a list": ("nn.ModuleList([Twice(), nn.GELU()])", "[f(h) for f in self.layer][0]"),
    "an own layer or one of torch's": ("Twice() if inplace else nn.GELU()", "self.layer(h)"),
    "one in another": ("nn.Sequential(Twice()) if inplace else nn.GELU()", "self.layer(h)"),
    "one of a dict": (
        "nn.ModuleDict({'2': Twice(), '3': nn.GELU()})",
        "self.layer[str(h.ndim)](h)",
    ),
    "a function in a list": ("nn.Identity()", "[f(h) for f in (double, torch.tanh)][0]"),
    "a function that is mapped": ("nn.Identity()", "list(map(double, [h]))[0]"),
}
KEEPING = {
    "a layer first": ("nn.Sequential(nn.Linear(4, 4), nn.ReLU(True))", "self.layer(h)"),
    "a layer first in a list": ("nn.Sequential(*after)", "self.layer(h)"),
    "first in a list": ("nn.ModuleList([nn.ReLU(True), nn.GELU()])", "self.layer[0](h)"),
    "beside it in a list": ("nn.ModuleList([nn.ReLU(True), nn.GELU()])", "self.layer[1](h)"),
    "not in place": ("nn.ReLU(inplace=False)", "self.layer(h)"),
    "an own layer behind one of torch's": (
        "nn.Sequential(nn.Linear(4, 4), Twice())",
        "self.layer(h)",
    ),
    "rectified before": ("nn.ReLU(inplace=True)", "h + self.layer(h)"),
    "of a new value": ("chosen('relu')", "self.layer(h + 1)"),
}


def with_layer(layer: str, call: str) -> str:
    return "import functools\n" + LAYERS.replace("= LAYER", f"= {layer}").replace("CALL", call)


@pytest.mark.parametrize(("layer", "call"), WRITING.values(), ids=WRITING)
def test_layers_that_may_write_to_what_is_read_again(layer: str, call: str) -> None:
    assert {r[:3] for r in rules_of(with_layer(layer, call))} == {"MUT"}


@pytest.mark.parametrize(("layer", "call"), KEEPING.values(), ids=KEEPING)
def test_layers_that_write_to_nothing_of_others(layer: str, call: str) -> None:
    model, port, _ = both(with_layer(layer, call))
    expected = model(X.clone()).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), expected, rtol=1e-5, atol=1e-6)


STACKS = """
class Stack(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.first = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.second = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.any = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])

    def forward(self, x):
        for LOOP:
            x = x + one(F.relu(x))
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.stacks = nn.ModuleList([Stack(), Stack()])

    def forward(self, x):
        x = x * 2
        total = None
        for i in range(2):
            if total is None:
                total = self.stacks[i](x)
            else:
                total += self.stacks[i](x)
        return total + x
"""


@pytest.mark.parametrize(
    "loop",
    [
        "one in self.first",
        "one, _ in zip(self.first, self.second)",
        "_, one in enumerate(reversed(self.second))",
        "one in [self.first[i] for i in range(len(self.second))]",
    ],
)
def test_a_loop_that_surely_runs_gives_a_new_tensor(loop: str) -> None:
    model, port, _ = both(STACKS.replace("LOOP", loop))
    expected = model(X.clone()).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "loop",
    ["one in self.any", "one, _ in zip(self.first, self.any)", "one in self.first[2:]"],
)
def test_a_loop_that_may_run_no_time_gives_what_it_got(loop: str) -> None:
    assert rules_of(STACKS.replace("LOOP", loop)) == ["MUT001"]


@pytest.mark.parametrize(
    "line",
    [
        "self.first.pop()",
        "del self.first[0]",
        "self.first._modules.clear()",
        "taken = self.first\n        taken.pop()",
    ],
)
def test_a_list_that_loses_its_layers_may_be_empty(line: str) -> None:
    source = STACKS.replace("LOOP", "one in self.first")
    made = "        self.first = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])\n"
    assert made in source
    assert "MUT001" in rules_of(source.replace(made, f"{made}        {line}\n"))


OTHERS = """
class Other(BASE):
    def __init__(self):
        super().__init__()
        self.first = nn.ModuleList([nn.Linear(4, 4) for _ in range(WIDTH)])

    def forward(self, x):
        return self.first[0](x)
"""


def beside(base: str, after: str = "", width: str = "0") -> str:
    other = OTHERS.replace("BASE", base).replace("WIDTH", width)
    return STACKS.replace("LOOP", "one in self.first").replace(
        "\n\nclass M(", f"\n{other}{after}\n\nclass M("
    )


def test_a_list_of_the_same_name_in_another_class_is_another_list() -> None:
    model, port, _ = both(beside("nn.Module"))
    expected = model(X.clone()).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), expected, rtol=1e-5, atol=1e-6)


def test_a_list_is_made_in_each_branch() -> None:
    made = "        self.first = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])\n"
    source = STACKS.replace("LOOP", "one in self.first")
    branches = f"        if n == 2:\n    {made}        else:\n    {made.replace('4), nn', '4), nn.GELU(), nn')}"
    model, port, _ = both(source.replace(made, branches))
    expected = model(X.clone()).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), expected, rtol=1e-5, atol=1e-6)
    assert rules_of(
        source.replace(made, branches.replace("4), nn.GELU(), nn.Linear(4, 4)]", "4)][n:]"))
    ) == ["MUT001"]


@pytest.mark.parametrize(
    "source",
    [
        beside("Stack"),  # an heir's list may be empty
        beside("object"),  # what a mixin of others sets is not known
        beside("nn.Module", "\n\nclass Of(Other, Stack):\n    pass\n"),
        beside("nn.Module").replace(
            "self.stacks[i](x)\n        return",
            "self.stacks[i](x)\n        self.stacks[0].first = nn.ModuleList()\n        return",
        ),
    ],
    ids=["heir", "mixin", "both", "from outside"],
)
def test_a_list_that_another_class_may_set_may_be_empty(source: str) -> None:
    assert "MUT001" in rules_of(source)


def test_what_a_lambda_is_handed_is_its_own() -> None:
    source = """
    def init(layer):
        fill = lambda w: w.data.normal_(0, 0.1)
        fill(layer.weight)
    """
    assert not any("around" in f.message for f in convert(source).findings)


BUMP = "def bump(h, x):\n    h += x\n    return h\n\n\ndef twice(b, x):\n    q = bump(b, x)\n    return q\n"


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("return twice(x * 2, y)", True),
        ("return [bump(x, one) for one in y]", False),
        ("return [twice(x, one) for one in y]", False),
        ("return sum(bump(a, b) for a, b in zip(x, y)) + x", False),
        ("return list(map(lambda t: bump(t, 1), [x, x]))", False),
        ("return list(map(lambda t: bump(t, 1), y))[0] + y[0]", False),
        ("b = x * 2\n        q = twice(b, y)\n        return q + b", False),
    ],
)
def test_an_argument_that_is_written_by_a_function_of_a_function(line: str, safe: bool) -> None:
    source = f"{BUMP}\n\nclass M(nn.Module):\n    def forward(self, x, y):\n        {line}\n"
    assert rules_of(source) == ([] if safe else ["MUT003"])


SIZES = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def look(self, x, size, a=0, b=1):
        LINES
        return y, size, a + b

    def forward(self, x):
        y, size, n = self.look(self.fc(x) * 2, SIZE)
        return y.reshape(-1)[:4] * n + (size if isinstance(size, int) else size[0])
"""


@pytest.mark.parametrize(
    ("lines", "size"),
    [
        ("y = torch.reshape(x, size); y += 1; y *= size[0]", "(2, -1)"),
        ("y = torch.transpose(x, a, b); y += size", "3"),
        ("y = torch.unsqueeze(input=x, dim=size); y += 1", "1"),
        ("y = torch.narrow(x, b, a, size); y += 1", "4"),
        ("y = F.unfold(x[None, None], size, stride=size); y[0] += 1", "2"),
    ],
)
def test_sizes_and_axes_share_no_memory(lines: str, size: str) -> None:
    body = "\n        ".join(one.strip() for one in lines.split(";"))
    check(SIZES.replace("LINES", body).replace("SIZE", size))


@pytest.mark.parametrize(
    "lines",
    [
        "y = torch.reshape(x, (2, -1)); y += 1; y = y + x.sum()",
        "y = torch.transpose(input=x, dim0=a, dim1=b); y += 1; y = y.T + x",
    ],
)
def test_what_is_looked_at_is_shared(lines: str) -> None:
    body = "\n        ".join(one.strip() for one in lines.split(";"))
    source = SIZES.replace("LINES", body).replace("SIZE", "3")
    if "MUT001" not in rules_of(source):
        check(source)


def test_a_chain_of_objects_is_followed_in_no_time() -> None:
    """The names of what it goes through do not multiply."""
    lines = "".join(
        f"        node.a{i}, node.b{i} = node.next, node.last\n        node = node.a{i} or node.b{i}\n"
        for i in range(12)
    )
    source = "class M(nn.Module):\n    def __init__(self, first):\n        super().__init__()\n        self.first = first\n\n"
    source += f"    def forward(self, x):\n        node = self.first\n{lines}        x = x * 1\n        x += 1\n        return x\n"
    assert convert(source).code

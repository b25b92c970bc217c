"""Functions without a result that write to what they are handed: their callers take the new values."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import check, loaded, rules_of

LAYER = """class M(nn.Module):
    def __init__(self, bias=True):
        super().__init__()
        self.gain = 3.0
        weight = torch.zeros(5, 4)
        shift = torch.zeros(5) if bias else None
        self.begin(weight, shift, limit=2.0)
        self.weight = nn.Parameter(weight)
        self.shift = nn.Parameter(shift) if bias else None

    def begin(self, weight, shift, limit):
        weight.fill_(self.gain / limit)
        if shift is not None:
            shift.fill_(limit)

    def forward(self, x):
        return F.linear(x, self.weight, self.shift)
"""
SCALED = """def scaled(v, image, mask):
    if v == 0:
        return
    image *= v
    mask[:, 0] = 1.0

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        y, m = self.l(x) * 2, torch.zeros_like(x)
        OTHER
        for i in range(3):
            scaled(float(i), y, m)
        return y + 10 * m
"""


@pytest.mark.parametrize("bias", [True, False])
def test_a_method_that_fills_the_tensors_it_is_handed(bias: bool) -> None:
    code = check(LAYER, bias)
    assert "weight, shift = self.begin(weight, shift, limit=2.0)" in code
    assert "return weight, shift" in code


def test_what_a_method_filled_is_what_the_parameter_begins_with() -> None:
    theirs, ours, _ = loaded(LAYER)
    assert (theirs["M"]().weight == 1.5).all()
    assert (ours["M"](rngs=nnx.Rngs(0)).weight[...] == 1.5).all()


def test_a_function_that_writes_to_others_than_its_first_argument() -> None:
    code = check(SCALED.replace("        OTHER\n", ""))
    assert "y, m = scaled(float(i), y, m)" in code


def test_a_function_that_writes_to_parts_of_what_it_is_handed() -> None:
    code = check("""def clipped(boxes, shape):
    boxes[:, 0] = boxes[:, 0].clamp(0, shape[1])
    boxes[1:, 1] = shape[0]

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        boxes = self.l(x) * 9
        clipped(boxes, (1.0, 2.0))
        return boxes
""")
    assert "boxes = clipped(boxes, (1.0, 2.0))" in code


@pytest.mark.parametrize(
    "source",
    [
        SCALED.replace("OTHER", "y2 = y").replace("return y +", "return y2 +"),  # another name
        SCALED.replace("OTHER", "f = scaled").replace("            scaled(", "            f("),
        SCALED.replace("OTHER", "pass").replace(
            "    image *=", "    image = image[:]\n    image *="
        ),
        SCALED.replace("OTHER", "pass").replace("i), y, m)", "i), y[1:], m)"),
        LAYER + "\nclass N(M):\n    def begin(self, weight, shift, limit):\n        pass\n",
        LAYER.replace("self.begin(", "getattr(self, 'be' + 'gin')("),
    ],
)
def test_what_others_see_or_may_call_is_a_finding(source: str) -> None:
    assert rules_of(source)


FILLED = """def begin(w, b):
    w.fill_(0.25)
    b.zero_()
    b += 1

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(4, 4))
        self.b = nn.Parameter(torch.empty(4))
        with torch.no_grad():
            begin(self.w, self.b)

    def forward(self, x):
        return F.linear(x, self.w, self.b)
"""


def test_parameters_that_a_function_fills() -> None:
    assert "self.w[...], self.b[...] = begin(self.w[...], self.b[...])" in check(FILLED)
    _, ours, _ = loaded(FILLED)
    model = ours["M"](rngs=nnx.Rngs(0))
    assert (model.w[...] == 0.25).all()
    assert (model.b[...] == 1).all()


@pytest.mark.parametrize(
    "source",
    [
        FILLED.replace("w.fill_(0.25)", "w.data = torch.ones(2, 4)"),  # of another shape
        FILLED.replace("begin(self.w, self.b)", "pass")
        + "\n    def again(self):\n        begin(self.w, self.b)\n",
        "def begin(w):\n    w.data = torch.ones(2)\n",
        "def begin(w: torch.Tensor):\n    w.data = w.data * 2\n",
    ],
)
def test_parameters_that_a_function_gives_other_data_are_a_finding(source: str) -> None:
    assert rules_of(source)

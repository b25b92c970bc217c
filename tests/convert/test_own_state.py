"""State that methods give away or keep: who reads it sees what is written to it in place."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert, rules_of

HEAD = """class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3, 4))

    def store(self, x):
        self.seen = x

    def forward(self, x):
        return self.seen


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.arange(12.0).view(3, 4))
        self.memory = Memory()

    def get(self):
        return self.buf

    def row(self):
        return self.get()[0]

    def put(self, x):
        self.buf = x

    @property
    def shown(self):
        return self.buf

    @shown.setter
    def shown(self, value):
        self.buf = value * 1

    def forward(self, x):
        x = x * 2
"""


def model(*lines: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("v = self.get()", "self.buf.add_(1)", "return v + x"),
        ("v = self.row()", "self.buf[0] = 2", "return v + x"),
        ("v = self.shown", "self.buf += 1", "return v + x"),
        ("v = self.memory(x)", "self.memory.seen.add_(1)", "return v + x"),
        ("self.put(x)", "x.add_(1)", "return self.buf"),
        (
            "for i in range(2):",
            "    x = x * 1",
            "    self.put(x)",
            "x[:, 0] = 4",
            "return self.buf",
        ),
        ("self.memory.store(x)", "x.mul_(2)", "return self.memory.seen"),
        ("self.shown.add_(1)", "return self.buf"),
        ("self.shown[0] = 1", "return self.buf"),
        ("self.shown.view(-1)[0] = 1", "return self.buf"),
    ],
)
def test_who_holds_the_memory_of_state_is_known(lines: tuple[str, ...]) -> None:
    assert rules_of(model(*lines)) == ["MUT001"]


@pytest.mark.parametrize(
    "lines",
    [
        ("v = self.get().clone()", "self.buf.add_(1)", "return v + x"),
        ("v = self.get() + self.row()", "self.buf.add_(1)", "return v + x"),
        ("self.put(x.clone())", "x.add_(1)", "return self.buf + x"),
        ("self.put(x)", "x = x + 1", "return self.buf + x"),
        ("self.memory.store(x)", "return self.memory(x) + self.memory.seen"),
        ("self.shown = x", "self.shown += 1", "return self.shown + self.buf"),
    ],
)
def test_what_nobody_else_holds_is_written(lines: tuple[str, ...]) -> None:
    check(model(*lines))


def test_what_a_setter_is_given_is_not_declared() -> None:
    code = convert(model("self.shown = x", "self.shown += 1", "return self.buf * 1")).code
    assert "self.shown = x" in code
    assert "nnx.data" not in code


def test_a_buffer_stays_one_whatever_a_method_gives_it() -> None:
    code = check(model("return x + self.buf"))
    assert "self.buf.set_value(x)" in code


@pytest.mark.parametrize(
    "line",
    [
        "nn.init.constant_(v, 2)",
        "F.relu(v, inplace=True)",
        "torch.add(x, 1, out=v)",
        "x = v.add_(1) * x",
        "x = v.view(-1).add_(1).sum() + x",
        "v.view(-1)[0] = 1",
        "v += 1",
        "return v.add_(1)",
    ],
)
def test_a_name_for_a_buffer_writes_it(line: str) -> None:
    code = check(model("v = self.buf", line, "return v + self.buf + x"))
    assert code.count("self.buf[...] = v") == 1


def test_lists_of_what_is_not_known_are_kept_as_data() -> None:
    check(model("self.items = [getattr(self, 'same', torch.relu)(x)]", "return self.items[0] + x"))
    recursive = "        return x if n == 0 else self.down(x, n - 1)\n"
    source = model("y = self.down(x, 2)", "self.items = [y, x]", "y[0] = 1", "return x + y")
    assert rules_of(source + "\n    def down(self, x, n):\n" + recursive) in (
        ["MUT001"],
        ["MUT003"],
    )


UNKNOWN = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def swapped(self, x):
        x[[0, 1]] = x[[1, 0]]
        return x

    def forward(self, x):
        return self.fc(self.swapped(x * 1))
"""


def test_rows_of_what_is_not_known_are_written() -> None:
    check(UNKNOWN)
    check(UNKNOWN.replace("self.swapped(x * 1)", "getattr(self, 'swapped')(x * 1)"))

"""What a port does besides computing, and what makes it compile again."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrator.errors import UserError
from migrator.quick import seconds, size
from numerics import runners
from numerics.health import examine, memory_now, peak_memory, retraced, shared
from numerics.runners import FlaxRunner
from numerics.spec import Array, InputSpec
from numerics.verify import Settings, verify
from tests.numerics.models import NET, FlaxNet, TorchNet

X = np.ones((2, 8), np.float32)
KEPT: list[Any] = []


class Odd(FlaxNet):
    """A port with a habit."""

    def __init__(self, habit: str) -> None:
        super().__init__(rngs=nnx.Rngs(0))
        self.habit, self.calls = habit, 0

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.habit == "prints":
            print("called with", x.shape)
        if self.habit == "counts":
            self.calls += 1
        if self.habit == "keeps":
            KEPT.append(x * 2)
        if self.habit == "cuts":
            x = x + jnp.zeros(x.shape, jnp.float64).astype(jnp.float32)
        return super().__call__(x)


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        ("prints", "prints while it is traced, once and not in every call: 'called with (2, 8)'"),
        ("counts", "changes calls in the call, which under jit is lost"),
        ("keeps", "a traced value is kept after the call"),
        ("cuts", "a 64-bit type is cut to 32 bits at test_health.py:"),
    ],
)
def test_a_habit_is_told(habit: str, words: str) -> None:
    found = examine(Odd(habit), [X], {})
    KEPT.clear()
    assert len(found) == 1, found
    assert found[0].startswith(words)


def test_a_port_without_habits() -> None:
    assert examine(FlaxNet(dropout=0.5, rngs=nnx.Rngs(0)), [X], {}) == []


class Tied(nnx.Module):
    """Two buffers made of one array."""

    def __init__(self) -> None:
        zeros = jnp.zeros(3)
        self.mean, self.last = nnx.Variable(zeros), nnx.Variable(zeros)

    def __call__(self, x: jax.Array) -> jax.Array:
        self.last[...] = x
        return x - self.mean[...]


class Widening(nnx.Module):
    """A buffer that takes the input's type."""

    def __init__(self) -> None:
        self.last = nnx.Variable(jnp.zeros(3, jnp.bfloat16))

    def __call__(self, x: jax.Array) -> jax.Array:
        before = self.last[...]
        self.last.set_value(x)
        return before


def test_state_that_cannot_be_donated() -> None:
    port = Tied()
    assert shared(port) == ["last and mean are built as one array, so a step cannot donate them"]
    with pytest.raises(jax.errors.JaxRuntimeError, match="donate the same buffer twice"):
        jax.jit(lambda state: state, donate_argnums=0)(nnx.state(port))
    assert shared(FlaxNet(rngs=nnx.Rngs(0))) == []
    (line,) = examine(Widening(), [np.ones(3, np.float32)], {})
    assert line.startswith(
        "last is float32[3] after the call where it was bfloat16[3], so its memory"
    )


def test_what_makes_it_compile_again() -> None:
    before = {"inputs[0]": "float32(2, 8)", "state.x": "int32()"}
    assert retraced(before, {"inputs[0]": "float32(2, 8)", "state.x": "int32() (weak)"}) == [
        "state.x is int32() (weak) where it was int32()"
    ]
    assert retraced(before, {"inputs[0]": "float32(2, 8)"}) == ["state.x is gone"]


def test_each_compilation_has_its_cause() -> None:
    spec = InputSpec((Array(("B", 8)),), {"B": range(1, 3)})
    settings = Settings(examples=4, train=False, grad=False, shapes=2, shrink_seconds=0)
    port = FlaxNet(rngs=nnx.Rngs(0))
    report = verify(TorchNet(), port, spec, load=NET.load, dump=NET.dump, settings=settings)
    assert report.compilations == [
        "eval: the first",
        "eval: input 0 is float32[1, 8] where it was float32[2, 8]",
    ]
    assert report.compiles == 2
    runner = FlaxRunner(port, NET.load, NET.dump)
    for number in (np.float32(1), np.float32(1), np.float16(1)):
        runner.run([np.full((2, 8), number)], {}, train=False, grad=False)
    assert (runner.compiles, len(runner.signatures)) == (2, 1)
    assert runner.retraces == ["input 0 is float16[2, 8] where it was float32[2, 8]"]


class Where(FlaxNet):
    """Notes the threads that its Python runs in."""

    threads: ClassVar[list[str]] = []

    def __call__(self, x: jax.Array) -> jax.Array:
        self.threads.append(threading.current_thread().name)
        return super().__call__(x)


def test_xla_works_beside_and_the_ports_python_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may = threading.Event(), threading.Event()
    called = runners._called

    def held(*given: Any) -> Any:
        begun.set()
        assert may.wait(60)
        Where.threads.append(threading.current_thread().name)
        return called(*given)

    monkeypatch.setattr(runners, "_called", held)
    runner = FlaxRunner(Where(rngs=nnx.Rngs(0)), NET.load, NET.dump)
    finish = runner.start([X], {}, train=False, grad=False)
    assert begun.wait(60)
    may.set()  # until here this thread was free for torch
    assert finish().outputs
    main, beside = Where.threads
    assert main == threading.current_thread().name
    assert beside.startswith("port")
    assert runner.compiles == 1


def check(**asked: Any) -> Any:
    settings = Settings(examples=4, train=False, grad=False, shrink_seconds=0, **asked)
    port = FlaxNet(rngs=nnx.Rngs(0))
    return verify(TorchNet(), port, [X], load=NET.load, dump=NET.dump, settings=settings)


def test_memory_is_told_and_bounded() -> None:
    assert 0 < memory_now() <= 1.05 * peak_memory()
    report = check(memory=1.0)
    assert report.verdict == "not compared"
    assert any("only 0 of " in note for note in report.notes)
    assert check(memory=1e15).peak_memory > 1e8


def test_health_is_part_of_the_report() -> None:
    assert check(health=True).health == []


@pytest.mark.parametrize(
    ("text", "value"), [("60s", 60), ("5min", 300), ("90", 90), ("1.5 h", 5400)]
)
def test_times(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(("text", "value"), [("4GiB", 2**32), ("512 MB", 512e6), ("1g", 2**30)])
def test_sizes(text: str, value: float) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["", "lots", "4 apples", "-1s", "4"])
def test_quantities_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match="--memory"):
        size(text)

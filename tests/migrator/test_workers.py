"""Work in a process of its own, whose end is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from migrator.errors import UserError
from migrator.workers import Ended, Tell, Work, Worker

MEBI = 2**20


def fill(mebibytes: int, tell: Tell) -> int:
    """Take memory, keep it a while, and say how much it was."""
    taken = [np.ones(MEBI, np.uint8) for _ in range(mebibytes)]
    time.sleep(1)
    return len(taken)


def follow(order: tuple[str, int], tell: Tell) -> int:
    """What the order says; answers with the process."""
    what, number = order
    tell(f"first {what}")
    tell(what)
    if what == "complain":
        raise UserError(f"no such case {number}")
    if what == "confuse":
        raise Confused(lambda: number)
    if what == "leave":
        os._exit(number)
    if what == "die":
        os.kill(os.getpid(), number)
    return os.getpid()


class Confused(Exception):
    """An error that cannot be sent to another process."""


def once(work: Work[int, int], argument: int, limit: float) -> int:
    worker = Worker(work, limit=limit)
    try:
        return worker(argument)
    finally:
        worker.close()


def test_the_result_comes_back_where_memory_suffices() -> None:
    assert once(fill, 100, 1024 * MEBI) == 100


def test_a_process_that_needs_more_is_ended() -> None:
    with pytest.raises(Ended, match=r"more than the 0\.49 GiB") as end:
        once(fill, 1000, 500 * MEBI)
    assert end.value.status is None


def test_what_is_raised_and_how_it_died_is_told_and_the_next_argument_gets_a_new_process() -> None:
    worker = Worker(follow)
    try:
        process = worker(("work", 0))
        assert worker(("work", 0)) == process != os.getpid()
        with pytest.raises(UserError, match="no such case 5") as raised:
            worker(("complain", 5))
        assert "in follow" in str(raised.value.__cause__)
        with pytest.raises(RuntimeError, match="Confused: <function"):
            worker(("confuse", 5))
        assert worker(("work", 0)) == process, "an error does not end the process"
        with pytest.raises(Ended, match="exit status 77") as end:
            worker(("leave", 77))
        assert (end.value.status, end.value.at) == (77, "leave")
        for number in (signal.SIGSEGV, signal.SIGKILL):
            with pytest.raises(Ended, match=number.name) as end:
                worker(("die", number))
            assert (end.value.status, end.value.at) == (-number, "die")
        assert worker(("work", 0)) != process
    finally:
        worker.close()


FORKED = """
import os, sys
from migrator.workers import Worker, may_fork

def echo(what, tell):
    print(what, input(), flush=True)
    return os.getpid()

assert may_fork()
worker = Worker(echo, fork=True)
first = worker("read")
assert first != os.getpid() and worker("read") == first
worker.close()
sys.modules["torch"] = os
assert not may_fork(), "its threads are not copied"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no other system copies a process safely")
def test_a_copy_of_the_process_reads_what_the_process_would() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], input="one\ntwo\n", text=True, capture_output=True
    )
    assert (done.stdout, done.stderr) == ("read one\nread two\n", "")


ORPHAN = """
import os, time
from migrator.workers import Worker

def work(what, tell):
    print(os.getpid(), flush=True)
    os.kill(os.getppid(), 9)
    time.sleep(60)

Worker(work, fork=True)(None)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no other system copies a process safely")
def test_it_does_not_outlive_who_asked_for_it() -> None:
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", ORPHAN], text=True, capture_output=True)
    assert done.returncode == -9
    assert time.monotonic() - started < 30, "the pipe of its output is closed when it ends"

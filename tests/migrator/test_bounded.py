"""Work that may have so much memory and no more."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

from migrator.bounded import Ended, bounded
from migrator.errors import UserError

MEBI = 2**20


def fill(mebibytes: int) -> int:
    """Take memory, keep it a while, and say how much it was."""
    taken = [np.ones(MEBI, np.uint8) for _ in range(mebibytes)]
    time.sleep(1)
    return len(taken)


def complain(what: str) -> None:
    raise UserError(what)


def die(signal: int) -> None:
    os.kill(os.getpid(), signal)


def test_the_result_comes_back_where_memory_suffices() -> None:
    assert bounded(fill, 100, 1024 * MEBI) == 100


def test_a_process_that_needs_more_is_ended() -> None:
    with pytest.raises(Ended, match=r"more than the 0\.49 GiB"):
        bounded(fill, 1000, 500 * MEBI)


def test_what_is_raised_and_how_it_died_is_told() -> None:
    with pytest.raises(UserError, match="no such case"):
        bounded(complain, "no such case", 1024 * MEBI)
    with pytest.raises(Ended, match="exit status 3"):
        bounded(os._exit, 3, 1024 * MEBI)
    with pytest.raises(Ended, match="signal"):
        bounded(die, 9, 1024 * MEBI)

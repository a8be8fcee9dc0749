"""Threads whose results come in order."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar

import pytest

from tflq.interpreter.execution.engine import map_in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order(threads: int) -> None:
    def slow_at_first(x: int) -> int:
        time.sleep(0.002 * (10 - x))
        return x * x

    assert list(map_in_order(slow_at_first, range(10), threads)) == [x * x for x in range(10)]


def test_as_many_run_at_once_as_there_are_threads() -> None:
    meeting = threading.Barrier(3)
    assert len(list(map_in_order(lambda _: meeting.wait(timeout=20), range(6), 3))) == 6


def test_the_callers_context_is_seen() -> None:
    number = ContextVar("number", default=0)
    number.set(7)
    assert list(map_in_order(lambda _: number.get(), range(3), 2)) == [7, 7, 7]


def test_an_error_comes_in_its_place_and_ends_the_work() -> None:
    begun = []

    def refuse_three(x: int) -> int:
        begun.append(x)
        if x == 3:
            raise ValueError("three")
        return x

    results = map_in_order(refuse_three, range(100), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
    assert max(begun) < 6


def test_no_more_wait_than_there_are_threads() -> None:
    begun = []
    results = map_in_order(begun.append, range(50), 2)
    next(results)
    time.sleep(0.05)
    assert len(begun) <= 4
    results.close()  # type: ignore[attr-defined]  # a generator

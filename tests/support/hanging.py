"""Plugin that ends a test in which Python loops for ever, as some mutants do: `pytest -p tests.support.hanging`."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

MOST_SECONDS = 300


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid} takes more than {MOST_SECONDS} s")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(MOST_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)

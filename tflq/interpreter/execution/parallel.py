"""Work on several threads whose results come in order; numpy gives the interpreter's lock free while it computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_order(function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Yield function(item) for each item, in order; no more than `threads` results wait or are in work.

    Each call sees the caller's context variables. The first error is raised in its place; what was not begun then is
    not run.
    """
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                if len(waiting) == threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(copy_context().run, function, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

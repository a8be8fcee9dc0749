"""Heaps as the C++ standard library of GCC (libstdc++) keeps them: which of equal elements comes first depends on it.

`before(a, b)` is C++'s comparison; the heap's first element is one that is before no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Before = Callable[[T, T], bool]


def push(heap: list[T], item: T, before: Before[T]) -> None:
    """std::push_heap after push_back."""
    heap.append(item)
    _rise(heap, len(heap) - 1, 0, item, before)


def pop(heap: list[T], before: Before[T]) -> T:
    """std::pop_heap and pop_back; returns what was first."""
    first, last = heap[0], heap.pop()
    if heap:
        _sink(heap, 0, len(heap), last, before)
    return first


def partial_sort(items: list[T], count: int, before: Before[T]) -> list[T]:
    """Return the first `count` elements of std::partial_sort, which is not stable."""
    heap, rest = items[:count], items[count:]
    for hole in range((count - 2) // 2, -1, -1):
        _sink(heap, hole, count, heap[hole], before)
    for item in rest:
        if count and before(item, heap[0]):
            _sink(heap, 0, count, item, before)
    ordered: list[T] = []
    while heap:
        ordered.append(pop(heap, before))
    return ordered[::-1]


def _rise(heap: list[T], hole: int, top: int, item: T, before: Before[T]) -> None:
    while hole > top and before(heap[(hole - 1) // 2], item):
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = item


def _sink(heap: list[T], hole: int, length: int, item: T, before: Before[T]) -> None:
    """std::__adjust_heap: the hole sinks to a leaf, then the item rises from there."""
    top, child = hole, hole
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if before(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * child + 1
        heap[hole] = heap[child]
        hole = child
    _rise(heap, hole, top, item, before)

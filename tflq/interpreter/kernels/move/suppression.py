"""NON_MAX_SUPPRESSION_V4 and V5: the best boxes that do not overlap.

The best candidate is taken if no box taken since its score was last seen overlaps it by iou_threshold or more. With
sigma > 0, each such box lowers its score by exp(-0.5 / sigma * iou^2), all in float32; the candidate is taken when its
score stays as it was. exp is that of the host's mathematical library, rounded to float32.

Heaps follow the C++ standard library of GCC (libstdc++): the order of equal elements depends on it. `before(a, b)` is
C++'s comparison; the heap's first element is one that is before no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, InputError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import constant_number, equal_samples
from tflq.interpreter.registry import Kernel

T = TypeVar("T")
Before = Callable[[T, T], bool]


def push(heap: list[T], item: T, before: Before[T]) -> None:
    """std::push_heap after push_back."""
    heap.append(item)
    _rise(heap, len(heap) - 1, 0, item, before)


def pop(heap: list[T], before: Before[T]) -> T:
    """std::pop_heap and pop_back; returns the former first element."""
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


@dataclass(frozen=True)
class Suppression:
    """Length of the lists of boxes taken."""

    size: int


@dataclass(frozen=True)
class _Candidate:
    box: int
    score: np.float32
    seen: int


def _lower(node: Node, operands: Operands, scalars: tuple[int, ...]) -> Suppression:  # noqa: ARG001
    """Decide the length; `scalars` are the positions of the thresholds.

    Raises:
        GraphError: shapes that do not fit, a negative length or one computed at run time.
        UnsupportedError: other types than float32.
    """
    boxes, scores = operands.input(0), operands.input(1)
    for tensor in (boxes, scores, *(operands.input(i) for i in scalars)):
        require_type(tensor, (DType.FLOAT32,))
    if len(boxes.shape) != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise GraphError(f"boxes {boxes.shape} and scores {scores.shape} do not fit; (n, 4) and (n,) are needed")
    if any(operands.input(i).shape for i in (2, *scalars)):
        raise GraphError("the largest number of boxes and the thresholds are scalars; one has another shape")
    size = constant_number(operands, 2)
    if size < 0:
        raise GraphError(f"the largest number of boxes is {size}; it is 0 or more")
    return Suppression(size)


def _run_v4(
    params: Suppression, boxes: Array, scores: Array, _size: Array | None, overlap: Array, threshold: Array
) -> tuple[Array, ...]:
    indices, _, count = _take_boxes(params, boxes, scores, overlap, threshold, np.zeros(1, np.float32))
    return indices, count


def _run_v5(
    params: Suppression,
    boxes: Array,
    scores: Array,
    _size: Array | None,
    overlap: Array,
    threshold: Array,
    sigma: Array,
) -> tuple[Array, ...]:
    return _take_boxes(params, boxes, scores, overlap, threshold, sigma)


def _take_boxes(
    params: Suppression, boxes: Array, scores: Array, overlap: Array, threshold: Array, sigma: Array
) -> tuple[Array, Array, Array]:
    """Return int32[S, size] boxes taken, float32[S, size] their scores (both 0 after the last), int32[S] their number.

    Raises:
        InputError: a negative sigma.
    """
    given = equal_samples(boxes, scores, overlap, threshold, sigma)
    samples = given[0].shape[0]
    if np.less(given[4], 0).any():
        raise InputError(f"sigma is {given[4].min()}; it is 0 or more")
    indices = np.zeros((samples, params.size), np.int32)
    kept = np.zeros((samples, params.size), np.float32)
    counts = np.zeros(samples, np.int32)
    for s in range(samples):
        taken = _suppress(
            given[0][s].astype(np.float32), given[1][s].astype(np.float32), params.size, *(x[s] for x in given[2:])
        )
        counts[s] = len(taken)
        indices[s, : len(taken)] = [c.box for c in taken]
        kept[s, : len(taken)] = [c.score for c in taken]
    return indices, kept, counts


def _suppress(
    boxes: Singles, scores: Singles, size: int, overlap: np.float32, threshold: np.float32, sigma: np.float32
) -> list[_Candidate]:
    heap: list[_Candidate] = []
    for box in np.flatnonzero(scores > threshold):
        push(heap, _Candidate(int(box), scores[box], 0), _before)
    wanted = min(len(heap), size)
    scale = np.float32(-0.5 / float(sigma)) if sigma > 0 else np.float32(0)
    taken: list[_Candidate] = []
    while len(taken) < wanted and heap:
        best = pop(heap, _before)
        score, suppressed = best.score, False
        for other in reversed(taken[best.seen :]):
            iou = np.float32(_overlap(boxes[best.box], boxes[other.box]))
            if iou >= overlap:
                suppressed = True
                break
            if sigma > 0:
                score = np.float32(score * np.float32(math.exp(np.float32(np.float32(scale * iou) * iou))))
            if score <= threshold:
                break
        seen = len(taken)
        if not suppressed and score == best.score:
            taken.append(_Candidate(best.box, score, seen))
        if not suppressed and score > threshold:
            push(heap, _Candidate(best.box, score, seen), _before)
    return taken


def _before(a: _Candidate, b: _Candidate) -> bool:
    return bool(a.score < b.score)


def _overlap(a: Singles, b: Singles) -> float:
    """Intersection over union of two boxes that name any two opposite corners; 0 if one is empty."""
    low_a, high_a = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    low_b, high_b = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    return corner_overlap(low_a, high_a, low_b, high_b)


def corner_overlap(low_a: Singles, high_a: Singles, low_b: Singles, high_b: Singles) -> float:
    """Intersection over union of two boxes [low, high), in float32; 0 if one is empty."""
    area_a, area_b = (
        np.float32((high[0] - low[0]) * (high[1] - low[1])) for low, high in ((low_a, high_a), (low_b, high_b))
    )
    if area_a <= 0 or area_b <= 0:
        return 0.0
    sides = np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), np.float32(0))
    shared = np.float32(sides[0] * sides[1])
    return float(shared / (area_a + area_b - shared))


KERNELS = {
    "non_max_suppression_v4": Kernel(partial(_lower, scalars=(3, 4)), _run_v4,
        "float32[S or 1, n, 4], float32[S or 1, n] -> int32[S, size] the best boxes that do not overlap, int32[S] "
        "their number", "TFLite kernels/non_max_suppression.cc"),
    "non_max_suppression_v5": Kernel(partial(_lower, scalars=(3, 4, 5)), _run_v5,
        "the best boxes, scores lowered by overlap with better ones -> int32[S, size], float32[S, size] their scores, "
        "int32[S] their number", "TFLite kernels/non_max_suppression.cc"),
}  # fmt: skip

"""Average precision against the definition written out by hand and in fractions; agreement by examples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from detector.average_precision import Detections, agreement, average_precision, overlaps
from hypothesis import given, settings
from hypothesis import strategies as st


def detections(rows: list[tuple[list[float], int, float]]) -> Detections:
    boxes = np.array([row[0] for row in rows], np.float64).reshape(-1, 4)
    return Detections(boxes, np.array([row[1] for row in rows], np.int64), np.array([row[2] for row in rows]))


def ratio(a: np.ndarray, b: np.ndarray) -> Fraction:
    """Intersection over union of two boxes of whole numbers."""
    h = min(a[2], b[2]) - max(a[0], b[0])
    w = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(int(h), 0) * max(int(w), 0)
    area = sum(int((x[2] - x[0]) * (x[3] - x[1])) for x in (a, b))
    return Fraction(shared, area - shared)


def by_definition(found: list[Detections], truth: list[Detections], number: int) -> Fraction:
    """(1 / n) * sum over k = 1..n of the best precision among the ranks that recall k boxes or more."""
    ranked = sorted(
        (-f.scores[i], image, i) for image, f in enumerate(found) for i in range(len(f.boxes)) if f.classes[i] == number
    )
    taken: set[tuple[int, int]] = set()
    points = []
    right = 0
    for rank, (_, image, i) in enumerate(ranked, start=1):
        known = [g for g in range(len(truth[image].boxes)) if truth[image].classes[g] == number]
        best = max(known, key=lambda g: ratio(found[image].boxes[i], truth[image].boxes[g]), default=None)
        free = best is not None and (image, best) not in taken
        if free and 2 * ratio(found[image].boxes[i], truth[image].boxes[best]) >= 1:
            taken.add((image, best))
            right += 1
        points.append((right, Fraction(right, rank)))
    total = sum(int((t.classes == number).sum()) for t in truth)
    best_at = [max((p for r, p in points if r >= k), default=Fraction(0)) for k in range(1, total + 1)]
    return sum(best_at, Fraction(0)) / total


def test_overlap_of_boxes_side_by_side_inside_and_empty() -> None:
    a = np.array([[0, 0, 2, 2], [1, 1, 1, 1]], np.float64)
    b = np.array([[0, 1, 2, 3], [0, 0, 1, 1], [5, 5, 6, 6], [1, 1, 1, 1]], np.float64)
    assert np.array_equal(overlaps(a, b), [[2 / 6, 1 / 4, 0, 0], [0, 0, 0, 0]])


def test_average_precision_by_hand() -> None:
    truth = [detections([([0, 0, 10, 10], 1, 1), ([20, 20, 30, 30], 1, 1)])]
    found = [
        detections([([0, 0, 10, 10], 1, 0.9), ([50, 50, 60, 60], 1, 0.8), ([20, 20, 30, 29], 1, 0.7)]),
    ]
    assert average_precision(found, truth) == pytest.approx((1 + 2 / 3) / 2)


def test_a_second_box_on_the_same_object_is_wrong() -> None:
    truth = [detections([([0, 0, 10, 10], 1, 1), ([50, 50, 60, 60], 1, 1)])]
    found = [detections([([0, 0, 10, 10], 1, 0.9), ([0, 0, 10, 9], 1, 0.8), ([50, 50, 60, 60], 1, 0.7)])]
    assert average_precision(found, truth) == pytest.approx((1 + 2 / 3) / 2)


def test_nothing_found_and_nothing_there() -> None:
    nothing, one = [detections([])], [detections([([0, 0, 1, 1], 1, 1)])]
    assert average_precision(nothing, one) == 0
    assert average_precision(one, nothing) == 0
    assert agreement(nothing, one) == 0
    assert agreement(one, nothing) == 1


corner = st.integers(0, 6)
box = st.tuples(corner, corner, st.integers(1, 6), st.integers(1, 6)).map(
    lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]]
)
image = st.lists(st.tuples(box, st.integers(1, 2), st.floats(0, 1, width=16)), max_size=6).map(detections)
pairs = st.lists(st.tuples(image, image), min_size=1, max_size=4)


@given(pairs)
@settings(max_examples=150, deadline=None)
def test_average_precision_by_its_definition(drawn: list[tuple[Detections, Detections]]) -> None:
    found, truth = [list(side) for side in zip(*drawn, strict=True)]
    classes = sorted({int(c) for t in truth for c in t.classes})
    expected = float(sum(by_definition(found, truth, c) for c in classes) / len(classes)) if classes else 0.0
    assert average_precision(found, truth) == pytest.approx(expected, abs=1e-12)


def test_agreement_counts_each_box_once_and_minds_the_class() -> None:
    reference = [detections([([0, 0, 10, 10], 1, 0.9), ([0, 0, 10, 10], 2, 0.5), ([20, 20, 30, 30], 1, 0.4)])]
    mine = [detections([([0, 0, 10, 10], 1, 0.1), ([20, 20, 30, 28], 1, 0.9)])]
    assert agreement(mine, reference) == pytest.approx(1 / 3)
    assert agreement(mine, reference, 0.8) == pytest.approx(2 / 3)
    doubled = [detections([([0, 0, 10, 10], 1, 0.9), ([0, 0, 10, 10], 1, 0.8)])]
    assert agreement(mine, doubled) == pytest.approx(1 / 2)

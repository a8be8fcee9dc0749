"""The area under the ROC curve is scikit-learn's, which MLPerf Tiny's rules name."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tflq.benchmarks.accuracy import area_under_roc, one_against_rest


@pytest.fixture(scope="module")
def metrics() -> ModuleType:
    """scikit-learn's metrics, imported when a test needs them: each worker collects this file."""
    return pytest.importorskip("sklearn.metrics")


SCORED = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=40)


@kernel_settings
@given(SCORED.filter(lambda pairs: len({positive for _, positive in pairs}) == 2))
def test_with_many_ties(metrics: ModuleType, pairs: list[tuple[int, bool]]) -> None:
    scores, positive = np.array([score for score, _ in pairs]), np.array([kind for _, kind in pairs])
    assert area_under_roc(scores, positive) == pytest.approx(metrics.roc_auc_score(positive, scores), abs=1e-12)


def test_one_kind_alone_has_no_area() -> None:
    assert area_under_roc(np.array([1.0, 2.0]), np.array([True, True])) is None
    assert area_under_roc(np.array([1.0, 2.0]), np.array([False, False])) is None


@kernel_settings
@given(st.integers(0, 2**32 - 1), st.integers(3, 6))
def test_several_classes(metrics: ModuleType, seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=20)])
    outputs = rng.integers(1, 9, size=(len(labels), classes)) / 8
    shares = outputs / outputs.sum(axis=1, keepdims=True)
    expected = metrics.roc_auc_score(labels, shares, multi_class="ovr")
    assert one_against_rest(outputs, labels) == pytest.approx(expected, abs=1e-12)


def test_two_classes_score_the_second(metrics: ModuleType) -> None:
    labels = np.array([0, 1, 1, 0, 1])
    outputs = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 1.0], [0.0, 0.0], [0.125, 0.5]])
    shares = [0.25, 0.5, 0.8, 0.0, 0.8]
    assert one_against_rest(outputs, labels) == metrics.roc_auc_score(labels, shares)


def test_outputs_with_negative_ones_are_their_own_scores(metrics: ModuleType) -> None:
    labels = np.array([0, 1, 2, 0, 1, 2])
    outputs = np.array([[3, -1, 0], [-2, 5, 1], [9, 0, 1], [1, 2, 0], [0, 4, -4], [0, 0, 6]], np.float64)
    expected = np.mean([metrics.roc_auc_score(labels == c, outputs[:, c]) for c in range(3)])
    assert one_against_rest(outputs, labels) == pytest.approx(expected, abs=1e-12)


def test_classes_without_samples_are_left_out(metrics: ModuleType) -> None:
    labels = np.array([0, 2, 0, 2])
    outputs = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    expected = np.mean([metrics.roc_auc_score(labels == c, outputs[:, c]) for c in (0, 2)])
    assert one_against_rest(outputs, labels) == expected
    assert one_against_rest(outputs, np.zeros(4, np.int64)) is None

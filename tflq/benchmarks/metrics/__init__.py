"""Metrics on a data set other than top-1 and AUC: by name, or a function of the user."""

from __future__ import annotations

from tflq.benchmarks.metrics.metric import AUC, OF_TRUTHS, SCORES, TOP_1, Found, Metric, find_metric
from tflq.benchmarks.metrics.scores import (
    Boxes,
    average_precision,
    confusion_matrix,
    mean_average_precision,
    mean_iou,
    snr_db,
    top_k_percent,
    word_error_rate,
)
from tflq.benchmarks.metrics.truth import BoxDecoder, Labels, MaskDecoder, TextDecoder, Truth, figure_of, greedy

__all__ = [
    "AUC",
    "OF_TRUTHS",
    "SCORES",
    "TOP_1",
    "BoxDecoder",
    "Boxes",
    "Found",
    "Labels",
    "MaskDecoder",
    "Metric",
    "TextDecoder",
    "Truth",
    "average_precision",
    "confusion_matrix",
    "figure_of",
    "find_metric",
    "greedy",
    "mean_average_precision",
    "mean_iou",
    "snr_db",
    "top_k_percent",
    "word_error_rate",
]

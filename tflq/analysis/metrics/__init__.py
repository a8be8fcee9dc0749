"""What is measured on a data set beside top-1 and AUC: by name, or a function of the user's own."""

from __future__ import annotations

from tflq.analysis.metrics.detection import Boxes, average_precision, mean_average_precision
from tflq.analysis.metrics.metric import OF_TRUTHS, TOP_1, Found, Metric, find_metric
from tflq.analysis.metrics.scores import confusion_matrix, mean_iou, snr_db, top_k_percent, word_error_rate

__all__ = [
    "OF_TRUTHS",
    "TOP_1",
    "Boxes",
    "Found",
    "Metric",
    "average_precision",
    "confusion_matrix",
    "find_metric",
    "mean_average_precision",
    "mean_iou",
    "snr_db",
    "top_k_percent",
    "word_error_rate",
]

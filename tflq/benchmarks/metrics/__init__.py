"""What is measured on a data set beside top-1 and AUC: by name, or a function of the user's own."""

from __future__ import annotations

from tflq.benchmarks.metrics.detection import Boxes, average_precision, mean_average_precision
from tflq.benchmarks.metrics.metric import Metric, find_metric
from tflq.benchmarks.metrics.scores import confusion_matrix, mean_iou, snr_db, top_k_percent, word_error_rate

__all__ = [
    "Boxes",
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

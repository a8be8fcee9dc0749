"""Exact accumulators: the only convolution, depthwise, matrix-product and window-sum code of the project.

Weights are prepared once; the functions take arrays of stored quantized [S, N, H, W, C] and return exact integer
accumulators, stored in float32, float64 or int64, whichever the stated magnitude of the input allows. Each arithmetic
adds the rest itself: the padding value, the bias (with zero points folded: acc - zero_point * sum(w) is exact because
padded taps contain the zero point), and the step back to narrow integers (numerics.requantize). Sums of float32 in a
fixed order are here too (sequential.py).
"""

from __future__ import annotations

from tflq.interpreter.accumulate.convolution import Convolution, accumulate_convolution, prepare_convolution
from tflq.interpreter.accumulate.depthwise import Depthwise, accumulate_depthwise, prepare_depthwise
from tflq.interpreter.accumulate.pooling import window_counts, window_maxima, window_sums
from tflq.interpreter.accumulate.products import (
    MatrixProduct,
    accumulate_product,
    accumulator_range,
    exact_dtype,
    prepare_product,
    worst_magnitude,
)
from tflq.interpreter.accumulate.samples_last import (
    accumulate_in_order,
    accumulate_samples_last,
    can_run_samples_last,
    gain_in_order,
)
from tflq.interpreter.accumulate.sequential import sequential_convolution, sequential_product

__all__ = [
    "Convolution",
    "Depthwise",
    "MatrixProduct",
    "accumulate_convolution",
    "accumulate_depthwise",
    "accumulate_in_order",
    "accumulate_product",
    "accumulate_samples_last",
    "accumulator_range",
    "can_run_samples_last",
    "exact_dtype",
    "gain_in_order",
    "prepare_convolution",
    "prepare_depthwise",
    "prepare_product",
    "sequential_convolution",
    "sequential_product",
    "window_counts",
    "window_maxima",
    "window_sums",
    "worst_magnitude",
]

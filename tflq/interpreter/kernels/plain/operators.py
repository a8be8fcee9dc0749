"""Tables of the operators on plain numbers, and on quantized values without their scales."""

from __future__ import annotations

from tflq.interpreter.kernels.plain import (
    arg_extreme,
    binary,
    cast,
    comparison,
    levels,
    local_response_normalization,
    pairs,
    random_numbers,
    reduction,
    rfft2d,
    select,
    sums,
    unary,
    windows,
)
from tflq.interpreter.registry import without_scales

PLAIN = without_scales(
    {
        **arg_extreme.KERNELS,
        **binary.KERNELS,
        **cast.KERNELS,
        **levels.KERNELS,
        **local_response_normalization.KERNELS,
        **pairs.KERNELS,
        **random_numbers.KERNELS,
        **reduction.KERNELS,
        **rfft2d.KERNELS,
        **select.KERNELS,
        **sums.KERNELS,
        **unary.KERNELS,
        **windows.KERNELS,
    }
)
"""The same in every arithmetic."""

UNQUANTIZED = without_scales({**comparison.KERNELS, **pairs.UNQUANTIZED, **reduction.UNQUANTIZED, **unary.UNQUANTIZED})
"""Kernels for numbers that are not quantized; an arithmetic has other kernels for quantized ones."""

"""GPTQ: columns of weights quantised one after the other, each error spread over those that come.

Source: Frantar et al., GPTQ (arXiv 2210.17323); ai-edge-quantizer 0.10 (Apache-2.0), uniform_quantize/gptq.py, whose
order of float32 operations this has. The inverse of a triangle is LAPACK's strtri (scipy), as there.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.converters.tflite_quantiser.recipes.params import Params, from_bounds, quantised
from tflq.converters.tflite_quantiser.recipes.rules import CHANNELWISE, Widths
from tflq.converters.tflite_quantiser.recipes.weights import axis_of, bounds_of
from tflq.errors import MissingExtraError, UnsupportedError

Hessian = NDArray[np.float64]

_DAMPING = 0.01
_BLOCK = 64


def spread(values: Singles, widths: Widths, axis: int | None, hessian: Hessian) -> Params:
    """Return weights [N, K] of which each column takes over what those before it lost.

    Args:
        values: the weights.
        widths: of the quantized values; scales are those of the largest magnitude.
        axis: of the channels.
        hessian: [K, K], 2 X^T X over the samples. Its diagonal grows by 0.01 of its mean, and stays so: a second layer
            that reads the same tensor finds it grown, as in the package.

    Raises:
        UnsupportedError: other weights, or a Hessian of another size.
        MissingExtraError: scipy is not installed.
    """
    if values.ndim != 2 or hessian.shape != (values.shape[1],) * 2:
        raise UnsupportedError(f"GPTQ has a Hessian of shape {hessian.shape} for weights of shape {values.shape}")
    channel = axis if widths.granularity == CHANNELWISE else None
    params = from_bounds(bounds_of(values, widths, channel), widths, axis_of(widths, channel))
    inverse = _inverse(hessian)
    rest = values.copy()
    codes = np.zeros(values.shape, np.int8)
    for start in range(0, len(inverse), _BLOCK):
        end = min(start + _BLOCK, len(inverse))
        lost = np.zeros((len(values), end - start), np.float32)
        for i in range(start, end):
            column = _column(params, i)
            found = np.asarray(quantised(rest[:, i : i + 1], column).data)
            codes[:, i] = found[:, 0]
            back = np.multiply(found - column.zero_point, column.scale)[:, 0]
            lost[:, i - start] = (rest[:, i] - back) / inverse[i, i]
            if i + 1 < end:
                rest[:, i + 1 : end] -= np.outer(lost[:, i - start], inverse[i, i + 1 : end])
        rest[:, end:] -= np.matmul(lost, inverse[start:end, end:])
    return replace(params, data=codes)


def _column(params: Params, index: int) -> Params:
    """Return the params of one column of weights: those of its block."""
    if not params.widths.block_size:
        return params
    first = index // params.widths.block_size
    block, widths = slice(first, first + 1), replace(params.widths, granularity=CHANNELWISE)
    return replace(params, scale=params.scale[:, block], zero_point=params.zero_point[:, block], widths=widths)


def _inverse(hessian: Hessian) -> Singles:
    """Return the inverse of the damped Hessian by its Cholesky triangle, the latter part in float32."""
    try:
        lapack = import_module("scipy.linalg.lapack")
    except ImportError:
        raise MissingExtraError("recipes with GPTQ need scipy: pip install 'tflq[audio]'") from None
    diagonal = np.diag(hessian)
    diagonal = np.where(diagonal, diagonal, 1.0)
    np.fill_diagonal(hessian, diagonal + _DAMPING * np.mean(diagonal))
    triangle, failed = lapack.strtri(np.linalg.cholesky(hessian), lower=True)
    if failed:
        raise UnsupportedError("GPTQ: the Hessian has no inverse")
    return np.asarray(np.einsum("ji,jk->ik", triangle, triangle, out=triangle))

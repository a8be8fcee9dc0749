"""Moments by the whitepaper (4.46): variance as mean of squares less squared mean, unbiased where the key says so.

m = clamp(RNE(mean of q)) on the input's scale; v = floor((n * sum q^2 - (sum q)^2) / (n * d)), d = n, or n - 1 with
unbiased=true; y_v = clamp(RNE(v * M * 2^-N) - zp_v), r = s_v / s_x^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written

UNBIASED = "unbiased"


@dataclass(frozen=True, eq=False)
class MomentsParams:
    """The integers of one pair of moments.

    Attributes:
        axes: behind the sample axis.
        shapes: of the mean and of the variance.
        divisor: d.
        rescale: M and N of the variance.
        mean: type of the mean.
        variance: how the variance is stored.
        written: nothing.
    """

    axes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    divisor: int
    rescale: Multiplier
    mean: np.dtype[np.generic]
    variance: OutputCodes
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> MomentsParams:
    """Decide M and N.

    Raises:
        UnsupportedError: an unbiased variance of one value.
    """
    x, mean, variance = operands.input(0), operands.output(0), operands.output(1)
    axes = tuple(a % len(x.shape) for a in node.attributes.integers("axis"))
    count = int(np.prod([x.shape[a] for a in axes]))
    divisor = count - node.attributes.boolean(UNBIASED, False)
    if not divisor:
        raise UnsupportedError("the unbiased variance of one value is not defined; allowed are two values")
    found = find_multiplier(scale_of(variance) / np.float32(scale_of(x) * scale_of(x)), bits_of(variance))
    places, shapes = tuple(a + 1 for a in axes), (mean.shape, variance.shape)
    return MomentsParams(places, shapes, divisor, found, mean.dtype.storage, codes_of(variance))


def run(params: MomentsParams, x: Array) -> tuple[Array, ...]:
    """Run Moments: codes [S, ...] -> codes of the mean, codes of the variance."""
    q = x.astype(np.int64)
    count = int(np.prod([x.shape[a] for a in params.axes]))
    total, squares = (v.sum(axis=params.axes, keepdims=True) for v in (q, np.square(q)))
    variance = (count * squares - np.square(total)) // (count * params.divisor)
    mean = np.rint(total / count).astype(params.mean)
    first, second = params.shapes
    return mean.reshape(-1, *first), params.variance.requantise(variance, params.rescale).reshape(-1, *second)

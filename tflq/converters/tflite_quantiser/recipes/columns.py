"""GPTQ and OSCAR: columns of weights, by what is known of the layer's input.

What GPTQ and OSCAR know of a layer's input: products and squares of its columns, of a file or of samples.

GPTQ: columns of weights quantised one after the other, each error spread over those that come.

The inverse of a triangle is LAPACK's strtri (scipy), as there.

OSCAR: columns of weights scaled against those of the input, and clipped where the output errs least.

Rows of weights meet an input whose columns have the second moments m[j] = E[x[j]^2]. The algorithm is
ai-edge-quantizer's; all of it is float64. Source: ai-edge-quantizer 0.10 (Apache-2.0), uniform_quantize/oscar.py.

Source: ai-edge-quantizer 0.10 (Apache-2.0), gptq.py, oscar.py and qsv_utils.py; Frantar et al., GPTQ (arXiv
2210.17323); ai-edge-quantizer 0.10 (Apache-2.0), uniform_quantize/gptq.py, whose order of float32 operations this has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Singles
from tflq.converters.calibration import CalibrationSamples
from tflq.converters.calibration.ranges import LEAST
from tflq.converters.tflite_quantiser.recipes.params import Params, axis_of, bounds_of, from_bounds, quantised
from tflq.converters.tflite_quantiser.recipes.rules import CHANNELWISE, Widths
from tflq.errors import MissingExtraError, UnsupportedError
from tflq.graph import Array, Graph
from tflq.interpreter import Engine

HESSIAN = "hessian"
MOMENTS = "mu2"
Statistics = Mapping[str, NDArray[np.float64]]


def statistics_of(graph: Graph, tensors: Iterable[int], samples: CalibrationSamples | None) -> dict[int, Statistics]:
    """Return what is known of activations: what a calibration file says, else what the kept samples give.

    Each sample gives 2/n X^T X and the mean of x^2 of each column, n the size of the first axis and X float32 rows of
    the last one; samples count by n. Tensors of which nothing is known are not there.
    """
    found: dict[int, Statistics] = {}
    wanted = []
    for t in dict.fromkeys(tensors):
        stated = graph.tensors[t].range
        if stated is not None and stated.statistics.keys() - {LEAST}:
            found[t] = {name: values.copy() for name, values in stated.statistics.items()}
        elif graph.tensors[t].data is None:
            wanted.append(t)
    if wanted and samples is not None and samples.inputs:
        engine = Engine(graph, "float")
        for s in range(len(samples.inputs[0])):
            values = engine.run([x[s : s + 1] for x in samples.inputs], wanted)
            for t in wanted:
                found[t] = _merged(found.get(t), _of_sample(values[t][0]))
    return found


def _of_sample(values: Array) -> Statistics:
    count = values.shape[0] if values.ndim else 1
    rows = values.reshape(-1, values.shape[-1])
    wide = rows.astype(np.float64)
    return {
        HESSIAN: np.float64(2.0 / count) * rows.T.dot(rows),
        MOMENTS: np.mean(wide * wide, axis=0),
        "num_samples": np.asarray(count, np.float64),
    }


def _merged(old: Statistics | None, new: Statistics) -> Statistics:
    if old is None:
        return new
    total = old["num_samples"] + new["num_samples"]
    counts = old["num_samples"], new["num_samples"]
    merged = {name: (old[name] * counts[0] + new[name] * counts[1]) / total for name in (HESSIAN, MOMENTS)}
    return {**merged, "num_samples": total}


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


_TINY = 1e-12
_DEAD = 1e-8
_SCALES = (1e-4, 1e4)
_ROUNDS = 3


def scaled(values: Singles, widths: Widths, moments: Doubles | None) -> Params:
    """Return weights w[:, j] s[j], clipped and quantised, with the multiplier f32(1 / s) of the input.

    Args:
        values: [N, K].
        widths: symmetric; blocks lie along K.
        moments: [K]; None for an input that nothing is known of: no column is scaled, all count alike.

    Raises:
        UnsupportedError: other weights, or moments of another number of columns.
    """
    rows, columns = values.shape if values.ndim == 2 else (0, 0)
    if not columns or not widths.symmetric or columns % (widths.block_size or 1):
        raise UnsupportedError("OSCAR takes symmetric matrices of weights, whose rows the blocks divide")
    if moments is not None and moments.size != columns:
        raise UnsupportedError(f"OSCAR has moments of {moments.size} columns, its rows have {columns} weights")
    weights = values.astype(np.float64)
    factors = np.ones(columns) if moments is None else _factors(weights, moments.ravel(), widths.block_size)
    weights = weights * factors
    masses = _alive(np.ones(columns) if moments is None else moments.ravel() / (factors * factors))
    steps = 2 ** (widths.bits - 1) - 1
    sizes = np.abs(weights)
    if widths.block_size:
        parts = _parts(columns, widths.block_size)
        bounds = np.stack([_clipping(sizes[:, part], masses[part], steps) for part in parts], axis=1)
    elif widths.granularity == CHANNELWISE:
        bounds = _clipping(sizes, masses, steps).reshape(-1, 1)
    else:
        bounds = _clipping(sizes.reshape(1, -1), np.tile(masses, rows), steps).reshape(1, 1)
    axis = 1 if widths.block_size else 0
    found = from_bounds((-bounds, bounds), widths, axis if widths.granularity != "TENSORWISE" else None)
    return replace(quantised(weights, found), multiplier=(1.0 / factors).astype(np.float32))


def _parts(columns: int, size: int) -> Iterator[slice]:
    size = size or columns
    return (slice(start, start + size) for start in range(0, columns, size))


def _alive(moments: Doubles) -> Doubles:
    """Return moments of which none is 0: at least 1e-8 of the largest."""
    return np.maximum(moments, float(moments.max()) * _DEAD + _TINY)


def _clipping(sizes: Doubles, masses: Doubles, steps: int) -> Doubles:
    """Return for each row the bound c with the least c^2 M / (12 steps^2) + sum of max(a[j] - c, 0)^2 m[j].

    M is the sum of m. Between two neighbouring magnitudes the objective is a parabola, so each piece has its minimum in
    closed form, and the least of them counts; so does c = the largest magnitude.
    """
    order = np.argsort(-sizes, axis=1)
    falling, weight = np.take_along_axis(sizes, order, 1), masses[order]
    mass = float(masses.sum()) + _TINY
    zeroth, first = np.cumsum(weight, 1), np.cumsum(falling * weight, 1)
    second = np.cumsum(falling * falling * weight, 1)
    inside = 2.0 * first / (mass / (6.0 * steps * steps) + 2.0 * zeroth)
    below = np.concatenate([falling[:, 1:], np.zeros((len(sizes), 1))], 1)
    inside = np.clip(inside, below, falling)
    rounding = mass / (12.0 * steps * steps)
    errors = (inside**2) * rounding + second - 2.0 * inside * first + (inside**2) * zeroth
    largest = falling[:, :1]
    candidates = np.concatenate([largest, inside], 1)
    best = np.argmin(np.concatenate([(largest**2) * rounding, errors], 1), 1)
    return np.asarray(candidates[np.arange(len(sizes)), best])


def _factors(weights: Doubles, moments: Doubles, block_size: int) -> Doubles:
    """Return the factor of each column; ones where none makes the largest weights of rows cheaper.

    They start at sqrt(sqrt(m) / |w|) with the norm of the column, and move three times half way, geometrically, to the
    same of the squares of those weights that are the largest of their row, but a quarter of the norm's at least.
    """
    moments = _alive(moments)
    deviations, columns = np.sqrt(moments), moments.size
    norms = (weights * weights).sum(0) + _TINY
    size = block_size if block_size and columns % block_size == 0 else columns
    rows = np.arange(len(weights))
    before = _cost(weights, np.ones(columns), moments, size)
    factors = _centred(np.sqrt(deviations / np.sqrt(norms)))
    best, least = factors, _cost(weights, factors, moments, size)
    for _ in range(_ROUNDS):
        squares, grown = np.zeros(columns), np.abs(weights) * factors
        for part in _parts(columns, size):
            largest = part.start + np.argmax(grown[:, part], 1)
            np.add.at(squares, largest, weights[rows, largest] ** 2)
        squares = np.maximum(squares, 0.25 * norms)
        wanted = _centred(np.sqrt(deviations / np.sqrt(squares)))
        factors = _centred(np.sqrt(factors * wanted))
        cost = _cost(weights, factors, moments, size)
        if cost < least:
            best, least = factors, cost
    return np.ones(columns) if least >= before else best


def _centred(factors: Doubles) -> Doubles:
    return np.asarray(np.clip(factors / np.exp(np.mean(np.log(factors))), *_SCALES))


def _cost(weights: Doubles, factors: Doubles, moments: Doubles, size: int) -> float:
    """Return the sum over blocks of (sum of the rows' largest |w s|^2) (sum of m / s^2)."""
    masses, grown = moments / (factors * factors), np.abs(weights) * factors
    total = 0.0
    for part in _parts(moments.size, size):
        largest = grown[:, part].max(1)
        total += float((largest * largest).sum()) * float(masses[part].sum())
    return total

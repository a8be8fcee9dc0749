"""Statistics of activations, by the package's names: ranges, and the moments that GPTQ and OSCAR need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tflq.arrays import Reals
from tflq.converters.calibration import CalibrationSamples
from tflq.converters.calibration.ranges import LEAST
from tflq.graph import Array, Graph
from tflq.interpreter import Engine

HESSIAN, MOMENTS, _COUNT = "hessian", "mu2", "num_samples"
Statistics = Mapping[str, Reals]


def ranges_of(graph: Graph) -> dict[int, Statistics]:
    """Return the range of each computed tensor that has one: two float32 arrays of the tensor's rank, one element."""
    ranges: dict[int, Statistics] = {}
    for t, tensor in enumerate(graph.tensors):
        if tensor.range is not None and tensor.data is None:
            ends = {"min": tensor.range.minimum.min(), "max": tensor.range.maximum.max()}
            shape = (1,) * len(tensor.shape)
            ranges[t] = {name: np.asarray(end, np.float32).reshape(shape) for name, end in ends.items()}
    return ranges


def moments_of(graph: Graph, tensors: Iterable[int], samples: CalibrationSamples | None) -> dict[int, Statistics]:
    """Return the moments of activations: from a calibration file, otherwise from the kept samples.

    A sample X, float32[n, ..., K] as rows of K, yields 2/n X^T X and the mean of x^2 of each column. Samples
    count by n. A tensor without either source is left out.
    """
    moments: dict[int, Statistics] = {}
    computed = []
    for t in dict.fromkeys(tensors):
        stated = graph.tensors[t].range
        if stated is not None and stated.statistics.keys() - {LEAST}:
            moments[t] = {name: values.copy() for name, values in stated.statistics.items()}
        elif graph.tensors[t].data is None:
            computed.append(t)
    if computed and samples is not None and samples.inputs:
        engine = Engine(graph, "float")
        for s in range(len(samples.inputs[0])):
            values = engine.run([x[s : s + 1] for x in samples.inputs], computed)
            for t in computed:
                moments[t] = _merge(moments.get(t), _compute_moments(values[t][0]))
    return moments


def _compute_moments(values: Array) -> Statistics:
    count = values.shape[0] if values.ndim else 1
    rows = values.reshape(-1, values.shape[-1])
    wide = rows.astype(np.float64)
    return {
        HESSIAN: np.float64(2.0 / count) * rows.T.dot(rows),
        MOMENTS: np.mean(wide * wide, axis=0),
        _COUNT: np.asarray(count, np.float64),
    }


def _merge(old: Statistics | None, new: Statistics) -> Statistics:
    if old is None:
        return new
    counts = old[_COUNT], new[_COUNT]
    total = counts[0] + counts[1]
    merged = {name: (old[name] * counts[0] + new[name] * counts[1]) / total for name in (HESSIAN, MOMENTS)}
    return {**merged, _COUNT: np.asarray(total)}

"""What GPTQ and OSCAR know of a layer's input: products and squares of its columns, of a file or of samples.

Source: ai-edge-quantizer 0.10 (Apache-2.0), gptq.py, oscar.py and qsv_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from tflq.converters.calibration import CalibrationSamples
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
        if stated is not None and stated.statistics:
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

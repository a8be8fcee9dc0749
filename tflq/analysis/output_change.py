"""How far the outputs of one execution are from those of another."""

from __future__ import annotations

import numpy as np

from tflq.analysis.executions import Execution, real_values
from tflq.analysis.inputs import Samples


def largest_output_change(execution: Execution, reference: Execution, samples: Samples) -> float:
    """Return max |real(output) - real(reference's output)| over all samples and outputs, in float64.

    Args:
        execution: some quantisation of a model.
        reference: another one of the same model: outputs in the same order.
        samples: in the encoding of that model.
    """
    largest = 0.0
    for mine, other in zip(execution.iterate(samples), reference.iterate(samples), strict=True):
        for t, r in zip(execution.graph.outputs, reference.graph.outputs, strict=True):
            a = real_values(mine[t], execution.graph.tensors[t])
            b = real_values(other[r], reference.graph.tensors[r])
            largest = max(largest, float(np.abs(a - b).max(initial=0.0)))
    return largest

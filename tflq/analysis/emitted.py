"""Holds the .tflite that a target writes, run by TFLite, against the target's own arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.executions import Execution, real_values
from tflq.analysis.inputs import Samples
from tflq.analysis.oracle import Oracle, OracleIdentity
from tflq.converters.tflite import model_from_bytes
from tflq.graph import Affine, Array, Tensor


@dataclass(frozen=True)
class EmittedDifference:
    """How far TFLite's result is from the target's.

    Attributes:
        identity: who TFLite was.
        samples: number of samples that were run.
        elements: number of output elements compared.
        differing: number of elements that stand for another real number.
        largest_lsb: largest difference in steps of the output's scale, the wider one where the two scales differ.
    """

    identity: OracleIdentity
    samples: int
    elements: int
    differing: int
    largest_lsb: float


def compare_emitted(execution: Execution, content: bytes, samples: Samples, oracle: Oracle) -> EmittedDifference:
    """Run samples in both and compare the outputs as real numbers.

    Args:
        execution: the target's graph in the target's arithmetic.
        content: the .tflite file that the target wrote for it; inputs and outputs in the same order.
        samples: in the encoding of the model that was converted.
        oracle: TFLite.

    Raises:
        OracleError: TFLite refuses the file, aborts, or does not answer.
    """
    emitted = model_from_bytes(content, "the emitted .tflite").main
    pairs = [
        (execution.graph.tensors[t], emitted.tensors[e])
        for t, e in zip(execution.graph.outputs, emitted.outputs, strict=True)
    ]
    elements = differing = 0
    largest = 0.0
    for start in range(0, samples.count, execution.samples_at_a_time):
        codes = execution.encode(samples.take(start, min(start + execution.samples_at_a_time, samples.count)))
        ours = execution.engine.run(codes)
        inputs = [
            recode(x, execution.graph.tensors[t], emitted.tensors[e])
            for x, t, e in zip(codes, execution.graph.inputs, emitted.inputs, strict=True)
        ]
        theirs = oracle.run(content, inputs, tensors="outputs").outputs
        for (mine, other), t, found in zip(pairs, execution.graph.outputs, theirs, strict=True):
            steps = steps_between(ours[t], mine, found, other)
            elements += steps.size
            differing += int(np.count_nonzero(steps))
            largest = max(largest, float(steps.max(initial=0.0)))
    return EmittedDifference(oracle.identity, samples.count, elements, differing, largest)


def recode(codes: Array, source: Tensor, target: Tensor) -> Array:
    """Return the codes of `target` that stand for the same real numbers: clip(floor(real / scale + 1/2) + zero_point).

    Equal scales give the same steps, whatever the zero points; the float32 rounding of a scale does not matter.
    """
    real = real_values(codes, source)
    quantisation = target.quantisation
    if not isinstance(quantisation, Affine) or not target.dtype.is_integer:
        return np.asarray(real.astype(target.dtype.storage))
    scale, zero_point = quantisation.along(codes.ndim)
    found = np.floor(real / scale.astype(np.float64) + 0.5) + zero_point
    return np.asarray(np.clip(found, target.dtype.minimum, target.dtype.maximum).astype(target.dtype.storage))


def steps_between(a: Array, tensor_a: Tensor, b: Array, tensor_b: Tensor) -> NDArray[np.float64]:
    """Return |real(a) - real(b)| / scale as whole steps where both scales are equal: float64[S, *shape].

    The scale is the wider one of the two tensors'; without any it is 1.
    """
    scales = [float(t.quantisation.scale.max()) for t in (tensor_a, tensor_b) if isinstance(t.quantisation, Affine)]
    lsb = max(scales, default=1.0)
    distance = np.abs(real_values(a, tensor_a) - real_values(b, tensor_b)) / lsb
    # scales that agree to float32 give whole steps but for its rounding
    return np.asarray(np.where(np.abs(distance - np.rint(distance)) < 1e-4, np.rint(distance), distance), np.float64)

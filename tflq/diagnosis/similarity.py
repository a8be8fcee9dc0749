"""Similarity of a target's layers to floating point, and of two executions' outputs.

Each tensor has two figures. y_f is the float result, y_q the target's quantized values with scale 1 / s and zero point
-zp, so that y_q encodes the floating-point value y = (y_q + zp) / s:

    cosine       cos(y_f, y) = sum y_f * y / sqrt(sum y_f^2 * sum y^2), float64; 1 if both are all zero
    requantized  y_f as quantized values of the target, clamp(round(s * y_f - zp)), compared with y_q: the cosine of the
                 decoded values, the share of elements that differ, and the largest difference in quantized values

The second figure excludes the error that the encoding itself causes; it is meaningful even if most values are zero.
Source: whitepaper ACN-AWP-1002A, 6.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.diagnosis.compare.matching import Match, match
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.compare.tally import Tally, TensorFigures
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, Model, Node, Tensor
from tflq.parallel.executions import Execution, in_float, real_values
from tflq.sampling import Samples

CHUNK_BYTES = 32 << 20
"""Bytes of tensors in memory at a time."""


@dataclass(frozen=True)
class Similarity:
    """Similarity of one tensor of a target to floating point.

    Attributes:
        tensor: index in the target's graph.
        name: Name of the tensor in that graph.
        source: name of the model's tensor.
        node: name of the target's node that writes it; empty for inputs.
        cosine: Cosine of the float result and the decoded quantized values.
        code_cosine: Cosine of the requantized float result and the quantized values, both decoded; NaN if the tensor
            is not quantized.
        differing: share of the requantized float result's quantized values that differ; NaN as above.
        largest: largest difference of these quantized values; NaN as above.
    """

    tensor: int
    name: str
    source: str
    node: str
    cosine: float
    code_cosine: float
    differing: float
    largest: float

    @property
    def figures(self) -> dict[str, float]:
        """The figures, with the names of reports and templates."""
        return {
            "cosine": self.cosine,
            "requantized_cosine": self.code_cosine,
            "requantized_differing": self.differing,
            "requantized_largest": self.largest,
        }


@dataclass(frozen=True)
class Similarities:
    """Result of a measurement.

    Attributes:
        tensors: Figures in order of execution.
        samples: Number of samples.
    """

    tensors: tuple[Similarity, ...]
    samples: int

    def of(self, node: Node) -> Similarity | None:
        """Return the figures of the node's least similar output; None if no output was measured."""
        return min((s for s in self.tensors if s.tensor in node.outputs), key=lambda s: s.cosine, default=None)

    def of_outputs(self, execution: Execution) -> float:
        """Return the smallest cosine of the graph's outputs; NaN if none was measured."""
        outputs = set(execution.graph.outputs)
        return min((s.cosine for s in self.tensors if s.tensor in outputs), default=math.nan)


def similarities(
    execution: Execution, model: Model, samples: Samples, progress: Callable[[int], object] = lambda _: None
) -> Similarities:
    """Measure every tensor that the target and the float view of the model have in common.

    Args:
        execution: the model under a target.
        model: the model itself.
        samples: Samples in the encoding of the model.
        progress: called with the number of samples just finished.

    Raises:
        UnsupportedError: an operator without a float kernel.
    """
    ours, theirs = Running(execution, samples), Running(in_float(model, "independent"), samples)
    matches = match(ours.columns, theirs.columns).matches
    pairs = [_Pair(m, ours) for m in matches]
    step = _chunk(matches)
    for start in range(0, samples.count, step):
        stop = min(start + step, samples.count)
        ours_values = ours.take(start, stop, [m.first for m in matches])
        reference = theirs.take(start, stop, [m.second for m in matches])
        for pair in pairs:
            pair.add(ours_values, reference, start)
        progress(stop - start)
    return Similarities(tuple(pair.result() for pair in pairs), samples.count)


def measured_similarities(
    execution: Execution, model: Model, samples: Samples, progress: Callable[[int], object] = lambda _: None
) -> Similarities | str:
    """Return the result of `similarities`, or the reason why it could not be measured."""
    try:
        return similarities(execution, model, samples, progress)
    except (GraphError, UnsupportedError) as error:
        return str(error)


class _Pair:
    """Counts one tensor's differences, from the float result and from the requantized one."""

    def __init__(self, found: Match, ours: Running) -> None:
        target = ours.execution.target
        self._match, self._ours, self._target = found, ours, target
        tensor = found.first.tensor
        self._real = Tally(tensor, found.second.tensor)
        self._codes = Tally(tensor, tensor) if target is not None and _has_codes(tensor) else None

    def add(self, ours: Mapping[str, Array], theirs: Mapping[str, Array], start: int) -> None:
        """Add a chunk of samples; both sides by the names of their columns."""
        codes = self._ours.as_read(ours[self._match.first.name], self._match.first)
        reals = theirs[self._match.second.name]
        self._real.add(codes, reals, start)
        tensor = self._match.first.tensor
        if self._codes is not None and self._target is not None and tensor is not None:
            requantized = self._target.encode(reals.reshape(codes.shape), tensor)
            self._codes.add(codes, requantized.astype(codes.dtype), start)

    def result(self) -> Similarity:
        """Return the figures over all chunks."""
        column, real = self._match.first, self._real.figures()
        codes = None if self._codes is None else self._codes.figures()
        return Similarity(
            column.index,
            column.name,
            self._match.second.name,
            column.node,
            _cosine(real),
            math.nan if codes is None else _cosine(codes),
            math.nan if codes is None else codes.differing / max(codes.elements, 1),
            math.nan if codes is None else codes.largest,
        )


def _has_codes(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.dtype.is_integer and isinstance(tensor.quantization, Affine)


def _chunk(matches: Sequence[Match]) -> int:
    tensors = [c.tensor for m in matches for c in (m.first, m.second)]
    return max(1, CHUNK_BYTES // max(1, sum(8 * t.size for t in tensors if t is not None)))


def _cosine(figures: TensorFigures) -> float:
    """Return the cosine; 1 if both sides are zero, 0 if only one is."""
    if not math.isnan(figures.cosine):
        return figures.cosine
    return 0.0 if figures.differing else 1.0


def largest_output_change(execution: Execution, reference: Execution, samples: Samples) -> float:
    """Return max |real(output) - real(reference's output)| over all samples and outputs, in float64.

    Args:
        execution: Quantization of a model.
        reference: Another quantization of the same model, with outputs in the same order.
        samples: Samples in the encoding of that model.
    """
    largest = 0.0
    for mine, other in zip(execution.iterate(samples), reference.iterate(samples), strict=True):
        for t, r in zip(execution.graph.outputs, reference.graph.outputs, strict=True):
            a = real_values(mine[t], execution.graph.tensors[t])
            b = real_values(other[r], reference.graph.tensors[r])
            largest = max(largest, float(np.abs(a - b).max(initial=0.0)))
    return largest

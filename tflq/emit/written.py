"""Holds the .tflite that a target writes, run by TFLite, against the target's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite import model_from_bytes
from tflq.errors import MissingExtraError, OracleError, UnsupportedError
from tflq.graph import Affine, Array, Graph, Tensor
from tflq.oracle import Oracle, OracleIdentity, OracleRefused
from tflq.oracle.package import RUNTIME_ORACLES
from tflq.parallel.executions import Execution, real_values
from tflq.sampling import Samples


@dataclass(frozen=True)
class Steps:
    """How far one tensor is from another, in steps of its scale (LSB), the wider one where the two scales differ.

    Attributes:
        elements: number of elements compared.
        differing: number of elements that stand for another real number.
        largest_lsb: largest difference.
    """

    elements: int = 0
    differing: int = 0
    largest_lsb: float = 0.0

    def with_more(self, steps: NDArray[np.float64]) -> Steps:
        """Add the distances of further samples."""
        return Steps(
            self.elements + steps.size,
            self.differing + int(np.count_nonzero(steps)),
            max(self.largest_lsb, float(steps.max(initial=0.0))),
        )


@dataclass(frozen=True)
class EmittedDifference:
    """How far TFLite's results are from the target's.

    Attributes:
        identity: who TFLite was.
        samples: number of samples that were run.
        tensors: index in the target's graph -> its difference, for tensors that both graphs have.
        outputs: the graph's outputs, all of which are among the tensors.
    """

    identity: OracleIdentity
    samples: int
    tensors: Mapping[int, Steps]
    outputs: tuple[int, ...]

    @property
    def output(self) -> Steps:
        """All outputs together."""
        found = [self.tensors[t] for t in self.outputs]
        largest = max((f.largest_lsb for f in found), default=0.0)
        return Steps(sum(f.elements for f in found), sum(f.differing for f in found), largest)


def compare_emitted(execution: Execution, content: bytes, samples: Samples, oracle: Oracle) -> EmittedDifference:
    """Run samples in both and compare, as real numbers, the outputs and the tensors of equal name and shape.

    Every layer of both gets its own graph's input, so differences accumulate.

    Args:
        execution: the target's graph in the target's arithmetic.
        content: the .tflite file that the target wrote for it; inputs and outputs in the same order.
        samples: in the encoding of the model that was converted.
        oracle: TFLite.

    Raises:
        OracleError: TFLite refuses the file, aborts, or does not answer.
    """
    graph = execution.graph
    emitted = model_from_bytes(content, "the emitted .tflite").main
    pairs = _pairs(graph, emitted)
    found = dict.fromkeys(pairs, Steps())
    for start in range(0, samples.count, execution.samples_at_a_time):
        codes = execution.encode(samples.take(start, min(start + execution.samples_at_a_time, samples.count)))
        ours = execution.engine.run(codes, keep=tuple(pairs))
        inputs = [
            recode(x, graph.tensors[t], emitted.tensors[e])
            for x, t, e in zip(codes, graph.inputs, emitted.inputs, strict=True)
        ]
        theirs = oracle.run(content, inputs, tensors=tuple(pairs.values())).tensors
        for t, e in pairs.items():
            steps = steps_between(ours[t], graph.tensors[t], theirs[e], emitted.tensors[e])
            found[t] = found[t].with_more(steps)
    return EmittedDifference(oracle.identity, samples.count, found, tuple(graph.outputs))


_OPERATOR_UNKNOWN = ("Didn't find op for builtin opcode", "Encountered unresolved custom op")
"""Messages of TFLite if its kernels lack a version of an operator, or a custom operator."""


def check_emitted(
    execution: Execution, artifacts: Mapping[str, bytes], samples: Samples
) -> EmittedDifference | str | None:
    """Compare the .tflite among a target's files with its arithmetic; None without one, in words why it was not done.

    Arguments as for `compare_emitted`; the oracle is the package of the target's runtime, else TFLite.

    Raises:
        UnsupportedError: TFLite does not take the file, although it has its operators in their versions.
    """
    content = next((data for name, data in artifacts.items() if name.endswith(".tflite")), None)
    if content is None:
        return None
    target = execution.target
    runtime = () if target is None else RUNTIME_ORACLES.get(target.arithmetic, ())
    try:
        with Oracle(*runtime) as oracle:
            return compare_emitted(execution, content, samples, oracle)
    except OracleRefused as error:
        if any(words in str(error) for words in _OPERATOR_UNKNOWN):
            return str(error)
        raise UnsupportedError(f"TFLite does not take the .tflite that would be written: {error}") from None
    except (MissingExtraError, OracleError, UnsupportedError) as error:  # a sample that a kernel refuses
        return str(error)


def _pairs(graph: Graph, emitted: Graph) -> dict[int, int]:
    """Map tensors of one graph to those of the other: outputs by position, others by name.

    Where two nodes in a row write one name, the later one counts: it is the activation that TFLite has fused.
    """
    written = {emitted.tensors[e].name: e for node in emitted.nodes for e in node.outputs}
    ours = {graph.tensors[t].name: t for node in graph.nodes for t in node.outputs}
    pairs = {
        t: written[name]
        for name, t in ours.items()
        if name in written and graph.tensors[t].shape == emitted.tensors[written[name]].shape
    }
    return {**pairs, **dict(zip(graph.outputs, emitted.outputs, strict=True))}


def recode(codes: Array, source: Tensor, target: Tensor) -> Array:
    """Return the quantized values of `target` that stand for the same real numbers.

    Clip(floor(real / scale + 1/2) + zero_point).

    Equal scales give the same steps, whatever the zero points; the float32 rounding of a scale does not matter.
    """
    real = real_values(codes, source)
    quantization = target.quantization
    if not isinstance(quantization, Affine) or not target.dtype.is_integer:
        return np.asarray(real.astype(target.dtype.storage))
    scale, zero_point = quantization.along(codes.ndim)
    found = np.floor(real / scale.astype(np.float64) + 0.5) + zero_point
    return np.asarray(np.clip(found, target.dtype.minimum, target.dtype.maximum).astype(target.dtype.storage))


def steps_between(a: Array, tensor_a: Tensor, b: Array, tensor_b: Tensor) -> NDArray[np.float64]:
    """Return |real(a) - real(b)| / scale as whole steps where both scales are equal: float64[S, *shape].

    The scale is the wider one of the two tensors'; without any it is 1.
    """
    scales = [float(t.quantization.scale.max()) for t in (tensor_a, tensor_b) if isinstance(t.quantization, Affine)]
    lsb = max(scales, default=1.0)
    distance = np.abs(real_values(a, tensor_a) - real_values(b, tensor_b)) / lsb
    # scales that agree to float32 give whole steps but for its rounding
    return np.asarray(np.where(np.abs(distance - np.rint(distance)) < 1e-4, np.rint(distance), distance), np.float64)

"""The ways to run one model on one set of samples: as it is, in floating point, or as a target does."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.inputs import Samples
from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, Model, Tensor
from tflq.graph.float_view import dequantise, float_view
from tflq.interpreter import Engine
from tflq.interpreter.execution.engine import State

AS_IS = "as is"
"""Name of a model's execution in TFLite's arithmetic."""


@dataclass(frozen=True)
class Execution:
    """A graph that runs the samples of a model, whatever encoding it uses itself.

    Attributes:
        name: how tables call it.
        engine: the lowered graph.
        source: the model's own graph, whose encoding the samples have.
        target: who converts the samples; None where they go in as they are or as float32.
        samples_at_a_time: how many samples are converted and run at once; results do not depend on it.
    """

    name: str
    engine: Engine
    source: Graph
    target: Target | None = None
    samples_at_a_time: int = 256

    @property
    def graph(self) -> Graph:
        """The graph that runs: its tensors have the encoding of what comes out."""
        return self.engine.graph

    def encode(self, inputs: Sequence[Array]) -> list[Array]:
        """Convert samples from the model's encoding to this graph's, by way of the real numbers that they stand for."""
        encoded = []
        for array, s, t in zip(inputs, self.source.inputs, self.graph.inputs, strict=True):
            before, after = self.source.tensors[s], self.graph.tensors[t]
            if self.target is None and before.dtype is after.dtype:
                encoded.append(array)
            elif self.target is not None and isinstance(after.quantisation, Affine):
                encoded.append(self.target.encode(real_values(array, before), after))
            else:
                encoded.append(real_values(array, before).astype(after.dtype.storage))
        return encoded

    def iterate(self, samples: Samples, keep: Collection[int] | None = None) -> Iterator[dict[int, Array]]:
        """Run the samples chunk by chunk and yield the tensors asked for, by index; None for the graph's outputs."""
        for start in range(0, samples.count, self.samples_at_a_time):
            inputs = samples.take(start, min(start + self.samples_at_a_time, samples.count))
            yield self.engine.run(self.encode(inputs), keep)


def as_is(model: Model, state: State | None = None) -> Execution:
    """Run the model as TFLite's reference kernels do; `state` is for models that keep any, as in Engine."""
    return Execution(AS_IS, Engine(model.main, "tflite", graphs=model.graphs, state=state), model.main)


def in_float(model: Model, state: State | None = None) -> Execution:
    """Run the model's float view in float32."""
    views = [float_view(graph) for graph in model.graphs]
    return Execution("float", Engine(views[0], "float", graphs=views, state=state), model.main)


def for_target(graph: Graph, target: Target, settings: Settings) -> Execution:
    """Quantise the model for a target and run it in the target's integers.

    Raises:
        UnsupportedError: operators that the target cannot take, all at once.
        OptionError: a setting that does not fit the graph.
    """
    return Execution(target.name, Engine(quantised(graph, target, settings), target.arithmetic), graph, target)


def quantised(graph: Graph, target: Target, settings: Settings) -> Graph:
    """Return the target's graph, not lowered. Raises as `for_target`."""
    problems = target.check(graph, settings)
    if problems:
        raise UnsupportedError(f"target {target.name}: " + "; ".join(problems))
    return target.quantise(graph, settings)


def real_values(codes: Array, tensor: Tensor) -> NDArray[np.float64]:
    """Return the real numbers that an array of samples stands for: float64[S, *shape].

    Args:
        codes: dtype[S, *shape] of the tensor.
        tensor: says how; without a quantisation the numbers stand for themselves.
    """
    quantisation = tensor.quantisation
    if isinstance(quantisation, Affine) and tensor.dtype.is_integer:
        axis = None if quantisation.axis is None else quantisation.axis + 1
        shifted = Affine(quantisation.scale, quantisation.zero_point, axis, quantisation.bits, quantisation.signed)
        return np.asarray(dequantise(codes, shifted), np.float64)
    if tensor.dtype is DType.BFLOAT16:
        return np.asarray((codes.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64))
    return np.asarray(codes.astype(np.float64))

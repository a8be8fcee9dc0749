"""The ways to run one model on one set of samples: as it is, in floating point, or as a target does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.converters.settings import Settings
from tflq.converters.targets import Target, find_target, problems_of
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, Model, Tensor
from tflq.graph.float_view import dequantize, float_view
from tflq.interpreter import Engine
from tflq.interpreter.execution.engine import State
from tflq.interpreter.execution.values import concatenate
from tflq.interpreter.runtimes import REFERENCE, RUNTIME_NAMES, RuntimeName, find_runtime
from tflq.parallel.workers import Run, in_order, open_workers
from tflq.sampling import Portion, Samples

AS_IS = "as is"
"""Name of a model's execution in TFLite's reference kernels."""

_PIECES = 4
"""Of the samples that run at once, where workers share them: so many go to workers one by one."""

Part = tuple[Portion, tuple[int, ...] | None]
"""Some samples in the model's own encoding, and the tensors to return."""


@dataclass(frozen=True)
class Execution:
    """A graph that runs the samples of a model, whatever encoding it uses itself.

    Attributes:
        name: how tables call it.
        engine: the lowered graph.
        source: the model's own graph, whose encoding the samples have.
        target: who converts the samples; None where they go in as they are or as float32.
        samples_at_a_time: how many samples are converted and run at once, a multiple of 4; results do not depend on it.
        recipe: the function and arguments that make it again; it is sent to other processes so.
        workers: that run its samples; None for this process.
    """

    name: str
    engine: Engine
    source: Graph
    target: Target | None = None
    samples_at_a_time: int = 256
    recipe: tuple[Callable[..., Execution], tuple[object, ...]] | None = None
    workers: Run[Part, dict[int, Array]] | None = None

    def __reduce__(self) -> tuple[Callable[..., Execution], tuple[object, ...]]:
        """Send the recipe in place of what was made by it."""
        if self.recipe is None:
            raise TypeError(f"execution {self.name} has no recipe")
        return self.recipe

    @property
    def is_as_is(self) -> bool:
        """Whether the model runs in its own encoding, in any runtime."""
        return self.name == AS_IS or self.name in RUNTIME_NAMES

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
            elif self.target is not None and isinstance(after.quantization, Affine):
                encoded.append(self.target.encode(real_values(array, before), after))
            else:
                encoded.append(real_values(array, before).astype(after.dtype.storage))
        return encoded

    def iterate(self, samples: Samples, keep: Collection[int] | None = None) -> Iterator[dict[int, Array]]:
        """Run the samples chunk by chunk and yield the tensors asked for, by index; None for the graph's outputs."""
        size = self.samples_at_a_time
        if self.workers is None or self.engine.is_stream:
            for start in range(0, samples.count, size):
                yield self.engine.run(self.encode(samples.take(start, min(start + size, samples.count))), keep)
            return
        kept = None if keep is None else tuple(keep)
        pieces: list[dict[int, Array]] = []
        for piece in in_order(self.workers, ((part, kept) for part in _portions(samples, size // _PIECES))):
            pieces.append(piece)
            if len(pieces) == _PIECES:
                yield _joined(pieces)
                pieces = []
        if pieces:
            yield _joined(pieces)


@contextmanager
def spread(execution: Execution, jobs: int = 1, scheduler: str | None = None) -> Iterator[Execution]:
    """Yield an execution whose samples run in other processes; what it yields is the same to the bit.

    Samples that follow each other (a stream) run in this process.

    Args:
        execution: of a model.
        jobs: processes of this machine; 1 for this process alone.
        scheduler: address of a dask scheduler, whose workers are used instead.

    Raises:
        MissingExtraError, OptionError: as `open_workers`.
    """
    if jobs == 1 and scheduler is None:
        yield execution
        return
    with open_workers(partial(_run_part, execution), jobs, scheduler) as run:
        yield replace(execution, workers=run)


def _run_part(execution: Execution, part: Part) -> dict[int, Array]:
    portion, keep = part
    return execution.engine.run(execution.encode(portion.arrays()), keep)


def _portions(samples: Samples, size: int) -> Iterator[Portion]:
    for start in range(0, samples.count, size):
        yield Portion.from_samples(samples, start, start + size)


def _joined(pieces: Sequence[dict[int, Array]]) -> dict[int, Array]:
    return {t: concatenate([piece[t] for piece in pieces]) for t in pieces[0]}


def as_is(model: Model, state: State | None = None, runtime: RuntimeName = REFERENCE) -> Execution:
    """Run the model as a runtime of .tflite files does.

    Args:
        model: Model in its own encoding.
        state: For models that keep state, as in Engine.
        runtime: Runtime (default: TFLite's reference kernels).

    Raises:
        OptionError: an unknown runtime.
    """
    engine = Engine(model.main, find_runtime(runtime).arithmetic, graphs=model.graphs, state=state)
    name = AS_IS if runtime == REFERENCE else runtime
    return Execution(name, engine, model.main, recipe=(as_is, (model, state, runtime)))


def in_float(model: Model, state: State | None = None) -> Execution:
    """Run the model's float view in float32."""
    views = [float_view(graph) for graph in model.graphs]
    engine = Engine(views[0], "float", graphs=views, state=state)
    return Execution("float", engine, model.main, recipe=(in_float, (model, state)))


def for_target(graph: Graph, target: Target, settings: Settings) -> Execution:
    """Quantize the model for a target and run it in the target's integers.

    Raises:
        UnsupportedError: operators that the target cannot take, all at once.
        OptionError: a setting that does not fit the graph.
    """
    engine = Engine(quantized(graph, target, settings), target.arithmetic)
    return Execution(target.name, engine, graph, target, recipe=(_for_named_target, (graph, target.name, settings)))


def taking(execution: Execution, source: Graph) -> Execution:
    """Return an execution that takes samples in another graph's encoding: the real numbers stay the same."""
    return replace(execution, source=source, recipe=(taking, (execution, source)))


def _for_named_target(graph: Graph, name: str, settings: Settings) -> Execution:
    """A target is a record of functions, which other processes find by its name."""
    return for_target(graph, find_target(name), settings)


def quantized(graph: Graph, target: Target, settings: Settings) -> Graph:
    """Return the target's graph, not lowered. Raises as `for_target`."""
    problems = problems_of(target, graph, settings)
    if problems:
        raise UnsupportedError(f"target {target.name}: " + "; ".join(problems))
    return target.quantize(graph, settings)


def all_outputs(
    execution: Execution, samples: Samples, progress: Callable[[int], object] = lambda _: None
) -> NDArray[np.float64]:
    """Run samples and return all outputs, one behind the other, as real numbers: float64[S, elements]."""
    graph, chunks = execution.graph, []
    for chunk in execution.iterate(samples):
        reals = [real_values(chunk[t], graph.tensors[t]) for t in graph.outputs]
        chunks.append(np.concatenate([r.reshape(len(r), -1) for r in reals], axis=1))
        progress(len(chunks[-1]))
    return np.concatenate(chunks)


def real_values(codes: Array, tensor: Tensor) -> NDArray[np.float64]:
    """Return the real numbers that an array of samples stands for: float64[S, *shape].

    Args:
        codes: dtype[S, *shape] of the tensor.
        tensor: says how; without a quantization the numbers stand for themselves.
    """
    quantization = tensor.quantization
    if isinstance(quantization, Affine) and tensor.dtype.is_integer:
        axis = None if quantization.axis is None else quantization.axis + 1
        shifted = Affine(quantization.scale, quantization.zero_point, axis, quantization.bits, quantization.signed)
        return np.asarray(dequantize(codes, shifted), np.float64)
    if tensor.dtype is DType.BFLOAT16:
        return np.asarray((codes.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64))
    return np.asarray(codes.astype(np.float64))

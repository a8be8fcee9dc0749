"""Runs samples through the float view of a graph and gives its tensors ranges.

Samples cut into batches, whether they come as arrays or in chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tflq.converters.calibration.options import StatisticsOptions
from tflq.converters.calibration.ranges import LEAST, computed_tensors, range_of
from tflq.converters.calibration.statistics import Statistics
from tflq.converters.calibration.strategies import bounds_of
from tflq.converters.passes.rewrite import with_attributes
from tflq.errors import InputError, OptionError, SampleError
from tflq.graph import Affine, Array, DType, Graph, Node, Range, Tensor, dequantize, float_view
from tflq.interpreter import Engine
from tflq.interpreter.execution.engine import State
from tflq.interpreter.samples import align

Batch = Sequence[Array]
"""One array [S, *shape] for each graph input, in the encoding of that input."""


def chunks_of(data: Batch | Iterable[Batch], inputs: int, options: StatisticsOptions) -> Iterator[Batch]:
    """Yield lists of arrays, one for each input; arrays that are there already may be shuffled."""
    whole = _as_arrays(data)
    if whole is None:
        if options.shuffle_seed is not None:
            raise OptionError("calibration: only arrays can be shuffled, the data come in chunks")
        yield from data  # type: ignore[misc]  # an iterable of batches
        return
    if len(whole) != inputs:
        raise InputError(f"calibration: {len(whole)} arrays were given, the model has {inputs} inputs")
    if options.shuffle_seed is not None:
        order = shuffled(len(whole[0]), options.shuffle_seed)
        for start in range(0, len(order), options.batch_size):
            yield [x[order[start : start + options.batch_size]] for x in whole]
        return
    yield whole


def shuffled(samples: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers of samples in the order in which a seed takes them."""
    return np.random.default_rng(seed).permutation(samples)


def original_number(data: Batch | Iterable[Batch], options: StatisticsOptions, position: int) -> int:
    """Return the number of the sample that comes at a position."""
    whole = _as_arrays(data)
    if whole is None or options.shuffle_seed is None:
        return position
    return int(shuffled(len(whole[0]), options.shuffle_seed)[position])


def _as_arrays(data: Batch | Iterable[Batch]) -> list[Array] | None:
    if not isinstance(data, (list, tuple)):
        return None
    arrays = [x for x in data if isinstance(x, np.ndarray)]
    return arrays if len(arrays) == len(data) else None


def batches_of(chunks: Iterator[Batch], size: int) -> Iterator[list[Array]]:
    """Cut chunks of any length into batches of `size` samples; the last may be shorter."""
    rest: list[Array] = []
    for chunk in chunks:
        counts = {len(x) for x in chunk}
        if len(counts) > 1:
            raise InputError(f"calibration: inputs have {sorted(counts)} samples; they need the same number")
        arrays = [np.concatenate([a, b]) for a, b in zip(rest, chunk, strict=True)] if rest else list(chunk)
        count = len(arrays[0]) if arrays else 0
        full = count - count % size
        for start in range(0, full, size):
            yield [x[start : start + size] for x in arrays]
        rest = [x[full:] for x in arrays] if full < count else []
    if rest:
        yield rest


DIFFERENCE_RANGE = "difference_range"
"""What a SQUARED_DIFFERENCE is told: the range of its operands' difference."""


@dataclass(frozen=True, eq=False)
class CalibrationSamples:
    """What `calibrate` leaves in `Graph.extra` beside the ranges.

    Attributes:
        inputs: real values of the first samples: one float32[S, *shape] for each graph input.
        strategy: the strategy's name.
        count: number of samples that were run.
        positive: graph inputs of which every value was above 0, whatever their range was widened to.
        origin: what stood in `Graph.extra` before.
        options: Strategy and its numbers.
        ranges: Range of each tensor that the samples gave one, by index; later ranges of files are other objects.
    """

    inputs: tuple[NDArray[np.float32], ...]
    strategy: str
    count: int
    positive: frozenset[int] = frozenset()
    origin: object | None = None
    ranges: Mapping[int, Range] = field(default_factory=dict, repr=False)
    options: StatisticsOptions = field(default_factory=StatisticsOptions)


def samples_of(graph: Graph) -> CalibrationSamples | None:
    """Return the samples that a calibration kept, if there was one."""
    return graph.extra if isinstance(graph.extra, CalibrationSamples) else None


def calibrate(
    graph: Graph,
    data: Batch | Iterable[Batch],
    options: StatisticsOptions | None = None,
    *,
    graphs: Sequence[Graph] | None = None,
    state: State | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Graph:
    """Return the graph with a float32 `range` on each input and each computed tensor of real numbers.

    The float view runs (docs/internals/architecture.md), one batch at a time; memory does not grow with the number of
    samples.
    A QUANTIZE or DEQUANTIZE gives its output the range of its input. Constants get no range.

    Args:
        graph: float or quantized.
        data: arrays [S, *shape], one for each input; or chunks of such arrays, of any length, read once. A quantized
            input takes its integers, or float32, which is not rounded.
        options: strategy and its numbers.
        graphs: all graphs of the model, where this one runs others.
        state: for models that keep state, as in `Engine`.
        progress: called with the number of samples just finished.

    Raises:
        InputError: no sample, arrays that do not fit, NaN or infinity: which tensor, which sample.
        OptionError: weights that do not fit the batches; shuffling of chunks.
        UnsupportedError: an operator without a float kernel.
    """
    chosen = options or StatisticsOptions()
    views = [float_view(g) for g in (graphs or [graph])]
    number = next(i for i, g in enumerate(graphs or [graph]) if g is graph)
    view = views[number]
    observer = _Observer(view, chosen, lambda position: original_number(data, chosen, position))
    engine = Engine(view, "float", [observer], graphs=views, state=state)
    kept: list[Batch] = []
    for batch in batches_of(chunks_of(data, len(graph.inputs), chosen), chosen.batch_size):
        reals = [_real(x, graph.tensors[t]) for x, t in zip(batch, graph.inputs, strict=True)]
        engine.check_inputs(reals)
        for t, x in zip(graph.inputs, reals, strict=True):
            observer.observe(t, x)
        engine.run(reals, (), chunk_size=chosen.batch_size)
        if observer.samples < chosen.keep_samples:
            kept.append([x[: chosen.keep_samples - observer.samples] for x in reals])
        observer.finish(len(reals[0]) if reals else 1)
        progress(len(reals[0]) if reals else 1)
    if not observer.samples:
        raise InputError("calibration: there is no sample; give at least one")
    result = _with_ranges(graph, view, engine.graph, observer, chosen)
    inputs = tuple(np.concatenate([b[i] for b in kept]) for i in range(len(graph.inputs))) if kept else ()
    positive = frozenset(t for t in graph.inputs if t in observer.statistics and observer.statistics[t].minimum > 0)
    ranges = {t: x.range for t, x in enumerate(result.tensors) if x.range is not None and x is not graph.tensors[t]}
    result.extra = CalibrationSamples(inputs, chosen.strategy, observer.samples, positive, graph.extra, ranges, chosen)
    return result


@runtime_checkable
class _Within(Protocol):
    """Params of a layer that quantizes what it computes within itself."""

    def intermediate_values(self, *inputs: Array | None) -> tuple[Array, ...]:
        """Return the real numbers of each of the node's intermediates, [S, ...]; nothing where it has no rule."""


class _Observer:
    """Gathers the statistics of the tensors that pass by; a listener of the engine."""

    def __init__(self, graph: Graph, options: StatisticsOptions, number: Callable[[int], int]) -> None:
        self._graph = graph
        self._number = number
        self._options = options
        self._parts: dict[int, list[NDArray[np.float32]]] = {}
        self.statistics: dict[int, Statistics] = {}
        self.differences: dict[str, Statistics] = {}
        self.samples = 0

    def will_run(self, index: int, node: Node, inputs: Sequence[Array | None]) -> None:  # noqa: ARG002
        """Take what no tensor of the graph holds and targets need the range of.

        That is the difference that is squared, and what a layer computes within itself.
        """
        if node.operator == "squared_difference" and self._graph.tensors[node.outputs[0]].dtype is DType.FLOAT32:
            first, second = (x.astype(np.float32) for x in align(*(x for x in inputs if x is not None)))
            self.differences.setdefault(node.name, Statistics(self._options)).update(
                np.asarray(first - second, np.float32)
            )
        if node.intermediates and isinstance(node.params, _Within):
            values = node.params.intermediate_values(*inputs)
            for t, array in zip(node.intermediates, values, strict=bool(values)):
                self.observe(t, array)

    def did_run(self, index: int, node: Node, outputs: Sequence[Array]) -> None:  # noqa: ARG002
        """Take a node's results."""
        for t, array in zip(node.outputs, outputs, strict=True):
            self.observe(t, array)

    def observe(self, t: int, array: Array) -> None:
        """Take values [S, *shape] of the current batch, or an object array [S] of arrays where shapes differ."""
        if self._graph.tensors[t].dtype is not DType.FLOAT32:
            return
        if array.dtype == object:
            array = np.concatenate(
                [self._finite(row[None], t, self.samples + s).reshape(1, -1) for s, row in enumerate(array)],
                axis=1,
            )
        if array.size:
            # An engine that takes samples one by one shows a batch in parts.
            self._parts.setdefault(t, []).append(np.array(self._finite(array, t, self._seen(t))))

    def finish(self, samples: int) -> None:
        """End a batch."""
        for t, parts in self._parts.items():
            values = parts[0] if len(parts) == 1 else np.concatenate([part.reshape(-1) for part in parts])
            self.statistics.setdefault(t, Statistics(self._options)).update(values)
        self._parts.clear()
        self.samples += samples

    def _finite(self, array: Array, t: int, first: int) -> NDArray[np.float32]:
        return _finite(array, self._graph.tensors[t], lambda row: self._number(first + row))

    def _seen(self, t: int) -> int:
        return self.samples + sum(len(part) for part in self._parts.get(t, ()))


def _finite(array: Array, tensor: Tensor, number: Callable[[int], int]) -> NDArray[np.float32]:
    """Return the array, checked; `number` tells the number of the sample in a row.

    Raises:
        SampleError: NaN or infinity: which tensor, which sample.
    """
    good = np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        values = array[row].reshape(-1)
        found = values[~np.isfinite(values)][0]
        sample = number(row)
        raise SampleError(
            f"calibration: tensor '{tensor.name}' is {found} in sample {sample}; every value must be finite: "
            f"leave the sample out, or fix the model",
            sample,
        )
    return np.asarray(array, np.float32)


def _with_ranges(graph: Graph, view: Graph, lowered: Graph, observer: _Observer, options: StatisticsOptions) -> Graph:
    result = graph.copy()
    source = _sources(graph, view)
    within = (t for node in graph.nodes for t in node.intermediates or () if t in observer.statistics)
    for t in (*computed_tensors(graph), *within):
        seen = source.get(t, t)
        statistics = observer.statistics.get(seen)
        constant = lowered.tensors[seen].data
        if (
            statistics is None
            and constant is not None
            and lowered.tensors[seen].dtype is DType.FLOAT32
            and constant.size
        ):
            statistics = Statistics(options)  # folded: the same for every sample
            statistics.update(_finite(constant[None], lowered.tensors[seen], lambda row: row))
        if statistics is not None:
            found = range_of(*bounds_of(statistics, options))
            if t in graph.inputs and statistics.minimum < 0 <= found.minimum[0]:
                found = replace(found, statistics={LEAST: np.array([statistics.minimum], np.float64)})
            result.tensors[t] = replace(graph.tensors[t], range=found)
    for index, node in enumerate(result.nodes):
        if node.name in observer.differences:
            bounds = bounds_of(observer.differences[node.name], options)
            ends = tuple(float(np.float32(end)) for end in bounds)
            result.nodes[index] = with_attributes(node, **{DIFFERENCE_RANGE: ends})
    return result


def _sources(graph: Graph, view: Graph) -> dict[int, int]:
    """Map the output of each node that the float view leaves out to the tensor that it stands for."""
    kept = {t for node in view.nodes for t in node.outputs}
    source: dict[int, int] = {}
    for node in graph.nodes:
        for t in node.outputs:
            if t not in kept:
                source[t] = source.get(node.inputs[0], node.inputs[0])
    return source


def _real(array: Array, tensor: Tensor) -> Array:
    """Return quantized values dequantized to float32; other arrays unchanged."""
    affine = tensor.quantization
    if not isinstance(affine, Affine) or not tensor.dtype.is_integer or array.dtype == np.float32:
        return array
    if array.dtype != tensor.dtype.storage:
        raise InputError(f"calibration: input '{tensor.name}' takes {tensor.dtype.value}, the array is {array.dtype}")
    axis = None if affine.axis is None else affine.axis + 1
    return dequantize(array, replace(affine, axis=axis)).astype(np.float32)

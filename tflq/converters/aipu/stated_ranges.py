"""Ranges that the Compass Parser reads from a quantized file, and the layers for which it states them.

A tensor object with the range travels along each edge of the Parser's graph. A layer states `layer_top_range` only if
its outgoing edge still has one. tflq keeps a range for every tensor: a range that the Parser has lost is marked, and
`stated` distinguishes the two. Compass's Optimizer, with calibration `in_ir`, calibrates the layers without one.

Source: Compass Parser, front_end/lite/buffer.py, parse_quantization_info; docs/rules/aipu/compass_ir.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.calibration import ranges_from_quantization, samples_of
from tflq.converters.calibration.ranges import stated_range
from tflq.graph import ABSENT, Affine, Graph, Node, Range, Tensor, float_view
from tflq.graph.operators import Trait, has_trait

INHERITED = "inherited"
"""Statistic of a range that the Parser does not state."""

SAMPLED = "sampled"
"""Statistic of a range of a file: minimum and maximum of the samples."""


def is_quantized_file(graph: Graph) -> bool:
    """Return True if a computed tensor of a TFLite graph is of quantized integers."""
    computed = {*graph.inputs, *(t for node in graph.nodes for t in node.outputs if t != ABSENT)}
    return any(_is_quantized(graph.tensors[t]) for t in computed)


def _is_quantized(tensor: Tensor) -> bool:
    return isinstance(tensor.quantization, Affine) and tensor.dtype.is_integer


def is_stated(tensor: Tensor) -> bool:
    """Return True if the Parser states the range of a tensor."""
    return tensor.range is not None and INHERITED not in tensor.range.statistics


def inherit(tensor: Tensor) -> Tensor:
    """Return the tensor with its range marked as not stated."""
    if tensor.range is None:
        return tensor
    return replace(tensor, range=replace(tensor.range, statistics={**tensor.range.statistics, INHERITED: np.ones(1)}))


def with_samples(own: Range, sampled: Range) -> Range:
    """Return a range with the range of the samples as a statistic."""
    limits = np.array([sampled.minimum.min(), sampled.maximum.max()], np.float64)
    return replace(own, statistics={**sampled.statistics, **own.statistics, SAMPLED: limits})


def settle_ranges(graph: Graph) -> Graph:
    """Return a graph of layers with the ranges that the Optimizer uses: the samples' if the Parser states none."""
    result = graph.copy()
    for t, tensor in enumerate(graph.tensors):
        if tensor.range is None or not tensor.range.statistics:
            continue
        sampled = tensor.range.statistics.get(SAMPLED)
        used = tensor.range
        if sampled is not None and not is_stated(tensor):
            used = Range(*(np.array([limit], np.float32) for limit in sampled))
        kept = {k: v for k, v in tensor.range.statistics.items() if k not in (INHERITED, SAMPLED)}
        result.tensors[t] = replace(tensor, range=replace(used, statistics=kept))
    return result


def read_as_float(graph: Graph) -> Graph:
    """Return a quantized TFLite graph as the Parser reads it with `force_float_ir = true`.

    Integers are float32. Every tensor that states a range or has one scale keeps its range, constants included.
    QUANTIZE and DEQUANTIZE stay. A constant of rank 0 has shape [1], as its product with the scale in the Parser.

    Args:
        graph: Settled; ranges of samples on the tensors become statistics of the file's own ranges.
    """
    ranged = _with_file_ranges(graph)
    view = float_view(ranged)
    kept = iter(view.nodes)
    nodes, following = list[Node](), next(kept, None)
    for node in ranged.nodes:
        if has_trait(node, Trait.CONVERSION) and (following is None or following.outputs != node.outputs):
            nodes.append(replace(node, arithmetic=None, params=None))
            continue
        assert following is not None
        pairs = zip(node.inputs, following.inputs, strict=True)
        inputs = (new if t == ABSENT or ranged.tensors[t].is_constant else t for t, new in pairs)
        nodes.append(replace(following, inputs=tuple(inputs)))
        following = next(kept, None)
    tensors = [_vector(old, new) for old, new in zip(ranged.tensors, view.tensors, strict=False)]
    tensors += view.tensors[len(tensors) :]
    return replace(view, tensors=tensors, nodes=nodes, outputs=graph.outputs)


def _vector(old: Tensor, new: Tensor) -> Tensor:
    if not _is_quantized(old) or new.data is None or new.shape:
        return new
    data = np.asarray(new.data).reshape(1)
    data.setflags(write=False)
    return replace(new, shape=(1,), data=data)


def _with_file_ranges(graph: Graph) -> Graph:
    """Return the graph with the ranges of the file; ranges that only tflq infers for real tensors are marked."""
    samples = samples_of(graph)
    sampled: Mapping[int, Range] = {} if samples is None else samples.ranges
    file = graph.copy()
    for t, measured in sampled.items():
        if graph.tensors[t].range is measured:
            file.tensors[t] = replace(graph.tensors[t], range=None)
    result = ranges_from_quantization(file)
    for t, tensor in enumerate(file.tensors):
        stated = None if _is_per_axis(tensor) else stated_range(tensor)
        if stated is None:
            result.tensors[t] = inherit(result.tensors[t])
        elif tensor.is_constant or tensor.is_variable:
            result.tensors[t] = replace(tensor, range=stated)
        own_samples, own = sampled.get(t), result.tensors[t]
        if own_samples is not None and graph.tensors[t].range is own_samples:
            kept = inherit(replace(own, range=own_samples)) if own.range is None else own
            assert kept.range is not None
            result.tensors[t] = replace(kept, range=with_samples(kept.range, own_samples))
    return result


def _is_per_axis(tensor: Tensor) -> bool:
    return isinstance(tensor.quantization, Affine) and tensor.quantization.scale.size > 1

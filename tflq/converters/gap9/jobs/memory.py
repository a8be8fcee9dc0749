"""Memory of a filter: addresses of its bytes, and their values before its jobs and after each one.

Source: docs/rules/gap9/ne16.md#jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.converters.gap9.emit.hardware import filter_integers, multiplied_bias
from tflq.converters.gap9.jobs.filters import Filter, filter_of
from tflq.converters.gap9.jobs.registers import Addresses, Registers, jobs_of
from tflq.converters.gap9.packing import GROUP, PlaneLayout, pack_planes
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph
from tflq.interpreter.numerics.fixed_point import wrap_int32

ALIGNMENT = 16


@dataclass(frozen=True, eq=False)
class LayerMemory:
    """One layer with everything that its jobs need; addresses begin at 0.

    Attributes:
        name: of the node.
        layer: the filter.
        at: where its parts lie: planes, multipliers, shifts, biases, features, output, each at a multiple of 16.
        constants: the bytes from address 0 on: planes, multipliers, shifts and biases.
        weights: quantized values, int64[O, KH, KW, I] (depthwise [C, KH, KW, 1], linear [O, I]), with channels that are
            computed and dropped.
        multiplier: of each channel.
        shift: of each channel.
        bias: multiplied, of each channel.
        outputs: channels that count; those behind them are computed and dropped.
        minimum: the least value that the cluster keeps of a 32-bit output.
        maximum: the largest.
    """

    name: str
    layer: Filter
    at: Addresses
    constants: bytes
    weights: NDArray[np.int64]
    multiplier: NDArray[np.int64]
    shift: NDArray[np.int64]
    bias: NDArray[np.int64]
    outputs: int
    minimum: int
    maximum: int

    @property
    def jobs(self) -> list[Registers]:
        """The registers of its jobs."""
        return list(jobs_of(self.layer, self.at))

    @property
    def features_shape(self) -> tuple[int, int, int, int]:
        """Images, rows, columns, channels of the features in memory, with padding and zeros that stand there."""
        height, width, _ = self.layer.size_in
        return (self.layer.images, height, width, self.layer.input_bytes)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """Images, rows, columns, channels of the output in memory."""
        return (self.layer.images, *self.layer.size_out)

    @property
    def output_bytes(self) -> int:
        """Size of the output in memory."""
        return prod(self.output_shape) * self.layer.out_bits // 8

    def features(self, values: Array) -> Array:
        """Return features as memory holds them, uint8[features_shape], from quantized values of an input tensor."""
        images, height, width, size = self.features_shape
        top, bottom, left, right = self.layer.padded_in_memory
        channels = self.layer.size_in[2]
        inside = values.reshape(images, height - top - bottom, width - left - right, channels).astype(np.uint8)
        padded = np.pad(
            inside, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=self.layer.padding_value
        )
        found: Array = np.pad(padded, ((0, 0), (0, 0), (0, 0), (0, size - channels)))
        return found

    def output(self, content: bytes) -> Array:
        """Return quantized values, [images, rows, columns, channels], from the output's bytes: what counts, clipped."""
        kind = np.dtype("<i4") if self.layer.out_bits == 32 else np.dtype(np.int8 if self.layer.signed else np.uint8)
        found = np.frombuffer(content, kind).reshape(self.output_shape)[..., : self.outputs]
        clipped: Array = np.clip(found, self.minimum, self.maximum)
        return clipped


def layer_memory(graph: Graph, index: int) -> LayerMemory:
    """Return the memory of a filter on NE16 of a lowered graph.

    Raises:
        UnsupportedError: no job computes it.
    """
    node, layer = graph.nodes[index], filter_of(graph, index)
    if layer.wide:
        raise UnsupportedError(
            f"{graph.where(index)}: 16-bit features: their accumulators are shifted before they are multiplied, and "
            "jobs with 16-bit outputs never end in NE16's open RTL"
        )
    params = filter_integers(node)
    outputs = params.weights.shape[0]
    added = layer.size_out[2] - outputs
    rescaling = params.rescaling
    codes = _codes(graph, index, added)
    parts = (
        pack_planes(codes, PlaneLayout(layer.mode, codes.shape, layer.bits, GROUP)),
        np.pad(rescaling.mul_bias.multiplier.astype(np.uint8), (0, added)),
        np.pad(rescaling.shift.astype(np.uint8), (0, added)),
        np.pad(multiplied_bias(node), (0, added)).astype("<i4"),
    )
    content, addresses = bytearray(), []
    for part in parts:
        content.extend(bytes(-len(content) % ALIGNMENT))
        addresses.append(len(content))
        content.extend(part.tobytes())
    features = _aligned(len(content))
    # A 3x3 job's first padded pixel lies in front of the features; the address must not be below 0.
    features += _aligned((layer.window.top * layer.size_in[1] + layer.window.left) * layer.input_bytes)
    output = _aligned(features + layer.images * prod(layer.size_in[:2]) * layer.input_bytes)
    at = Addresses(features, addresses[0], output, *addresses[1:])
    weights = codes.astype(np.int64) - layer.weight_zero_point
    limits = (rescaling.minimum, rescaling.maximum)
    multiplier, shift, bias = (part.astype(np.int64) for part in parts[1:])
    return LayerMemory(node.name, layer, at, bytes(content), weights, multiplier, shift, bias, outputs, *limits)


def _codes(graph: Graph, index: int, added: int) -> Array:
    """Return the weights as bit planes hold them, uint8, with zeros for channels that are computed and dropped."""
    params = filter_integers(graph.nodes[index])
    codes = (params.weights + params.weight_zero_point).astype(np.uint8)
    if graph.nodes[index].operator == "depthwise_conv_2d":
        codes = np.moveaxis(codes, 1, 3)
    found: Array = np.pad(codes, ((0, added), *((0, 0),) * (codes.ndim - 1)))
    return found


def _aligned(address: int) -> int:
    return address + -address % ALIGNMENT


def outputs_after_jobs(memory: LayerMemory, features: Array, output: Array) -> Iterator[Array]:
    """Yield the bytes from the output's address on after each job, uint8[output_bytes]; 0 before the first.

    A job over the whole map leaves all of its image; one of a strided layer up to 2x2 pixels; one of taps sums of 32
    bits over the taps so far, the last job (sum * M + bias) >> N in 32 bits, cut off at 0 where the output has no
    sign. Channels that are computed and dropped are among them.

    Args:
        memory: of the filter.
        features: quantized values of the input tensor, one sample.
        output: of the output tensor.
    """
    layer = memory.layer
    kind = np.dtype("<i4") if layer.out_bits == 32 else output.dtype
    state: Array = np.zeros(memory.output_shape, kind)
    inputs = memory.features(features)
    final = output if layer.out_bits == 32 else output.reshape(memory.output_shape)
    for image in range(layer.images):
        if layer.mode == "taps":
            for values in _taps(memory, inputs[image]):
                state[image] = values
                yield _bytes(state)
            continue
        rows, columns, _ = layer.size_out
        step = (layer.step, layer.step) if layer.is_strided else (rows, columns)
        for row in range(0, rows, step[0]):
            for column in range(0, columns, step[1]):
                place = (image, slice(row, row + step[0]), slice(column, column + step[1]))
                state[place] = final[place]
                yield _bytes(state)


def _bytes(state: Array) -> Array:
    return np.frombuffer(state.tobytes(), np.uint8)


def _taps(memory: LayerMemory, inputs: Array) -> Iterator[Array]:
    """Yield the int32 that the jobs of one image leave, int32[rows, columns, outputs]."""
    layer = memory.layer
    rows, columns, outputs = layer.size_out
    (down, across), dilation, width = layer.window.stride, layer.window.dilation, layer.window.kernel[1]
    sums = np.zeros((rows, columns, outputs), np.int64)
    x = inputs.astype(np.int64)
    for tap in range(layer.window.taps):
        top, left = (tap // width) * dilation[0], (tap % width) * dilation[1]
        seen = x[top : top + (rows - 1) * down + 1 : down, left : left + (columns - 1) * across + 1 : across]
        sums += seen @ memory.weights[:, tap // width, tap % width].T
        if tap < layer.window.taps - 1:
            yield wrap_int32(sums)
    found = wrap_int32(wrap_int32(wrap_int32(sums) * memory.multiplier) + memory.bias) >> memory.shift
    yield found if layer.signed else np.maximum(found, 0)

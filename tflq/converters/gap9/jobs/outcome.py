"""What NE16's jobs leave in memory, one after the other (docs/gap9.md, 20)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.converters.gap9.jobs.memory import LayerMemory
from tflq.graph import Array
from tflq.interpreter.numerics.fixed_point import wrap_int32


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

"""An IR whose first axis is open: the same network for two batches, and what differs between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.openvino.ir import Network
from tflq.converters.openvino.ir.network import Layer, Port
from tflq.errors import UnsupportedError
from tflq.graph import Array

OPEN = -1


def open_batch(one: Network, two: Network) -> Network:
    """Return a network for any batch: axes that differ are open, in shapes of Reshape they are -1.

    Args:
        one: for the file's batch.
        two: for twice the batch, otherwise the same.

    Raises:
        UnsupportedError: a constant that holds the batch and is no shape of a Reshape.
    """
    if [layer.type for layer in one.layers] != [layer.type for layer in two.layers]:
        raise UnsupportedError("batch=dynamic: the network is another one for another batch; convert with batch=static")
    shapes = {layer.sources[1].layer for layer in one.layers if layer.type == "Reshape"}
    pairs = zip(one.layers, two.layers, strict=True)
    return replace(one, layers=tuple(_open(a, b, number in shapes) for number, (a, b) in enumerate(pairs)))


def _open(one: Layer, two: Layer, is_shape: bool) -> Layer:
    outputs = tuple(_port(a, b, one.name) for a, b in zip(one.outputs, two.outputs, strict=True))
    if one.value is not None and two.value is not None and not np.array_equal(one.value, two.value, equal_nan=True):
        return replace(one, value=_shape(one.name, one.value, two.value, is_shape))
    if one.type == "Parameter":
        shape = ",".join("?" if size == OPEN else str(size) for size in outputs[0].shape)
        return replace(one, data={**one.data, "shape": shape}, outputs=outputs)
    return replace(one, outputs=outputs)


def _shape(name: str, one: Array, two: Array, is_shape: bool) -> Array:
    if not is_shape or one.shape != two.shape or np.count_nonzero(one != two) != 1:
        raise UnsupportedError(f"batch=dynamic: constant '{name}' holds the batch; convert with batch=static")
    return np.where(one != two, OPEN, one)


def _port(one: Port, two: Port, name: str) -> Port:
    if len(one.shape) != len(two.shape):
        raise UnsupportedError(f"batch=dynamic: '{name}' has other axes for another batch; convert with batch=static")
    return replace(one, shape=tuple(a if a == b else OPEN for a, b in zip(one.shape, two.shape, strict=True)))

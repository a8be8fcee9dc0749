"""The inverse of GAP9's files: a graph from quantization.json and the binary, weights from planes and streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import cast

import numpy as np

from tflq.converters.gap9.emit.hardware import BINARY
from tflq.converters.gap9.operators import FILTERS
from tflq.converters.gap9.packing import ORDERS, PlaneLayout
from tflq.errors import FormatError
from tflq.graph import Affine, Array, Attribute, Attributes, DType, Graph, Node, Range, Tensor, validate
from tflq.schemas import Json

_Object = dict[str, Json]


def read_graph(files: Mapping[str, bytes]) -> Graph:
    """Return the graph, not lowered.

    Args:
        files: quantization.json and hardware.bin, as `artifacts_of` made them.

    Raises:
        FormatError: a file is missing, is no JSON, or lacks what the schema demands.
    """
    for name in ("quantization.json", BINARY):
        if name not in files:
            raise FormatError(f"{name} is missing; a GAP9 graph needs quantization.json and {BINARY}")
    try:
        content = cast("_Object", json.loads(files["quantization.json"]))
        return _graph(content, files[BINARY])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FormatError(
            f"quantization.json: {type(error).__name__}: {error}; write it anew with tflq convert"
        ) from None


def _graph(content: _Object, binary: bytes) -> Graph:
    entries = _objects(cast("_Object", cast("_Object", content["artefacts"])["hardware"])["entries"])
    tensors = [_tensor(entry) for entry in _objects(content["tensors"])]
    nodes = [_node(entry) for entry in _objects(content["nodes"])]
    for node, described in zip(nodes, _objects(content["nodes"]), strict=True):
        own = {
            str(e["kind"]) + (str(e["layout"]) if e["kind"] == "operand" else ""): e
            for e in entries
            if e["node"] == node.name
        }
        for position, t in enumerate(node.inputs):
            if t < 0 or not _is_constant(content, t):
                continue
            data = _constant(node, position, tensors[t], own, described, binary)
            data.setflags(write=False)
            tensors[t] = _with_data(tensors[t], data)
    graph = Graph(tensors, nodes, _indices(content["inputs"]), _indices(content["outputs"]), str(content["graph"]))
    validate(graph, "quantization.json")
    return graph


def _constant(
    node: Node, position: int, tensor: Tensor, own: Mapping[str, _Object], described: _Object, binary: bytes
) -> Array:
    if node.operator not in FILTERS:
        return _plain(own[f"operand{position}"], binary).astype(tensor.dtype.storage)
    if position == 1:
        return _weights(node, tensor, own["weights_stream"], binary)
    offset = cast("list[int]", cast("_Object", described["integers"])["offset"])
    return (_plain(own["bias"], binary).astype(np.int64) - np.array(offset, np.int64)).astype(np.int32)


def _weights(node: Node, tensor: Tensor, entry: _Object, binary: bytes) -> Array:
    """Quantized values from the dense stream, turned from the vendor's order to TFLite's."""
    on_ne16 = tensor.dtype is DType.UINT8
    shape = tuple(_indices(entry["shape"]))
    stream = np.frombuffer(_bytes(entry, binary), np.uint8)
    codes = unpack_stream(stream, tensor.affine.bits if on_ne16 else 8, shape).view(tensor.dtype.storage)
    if node.operator == "conv_2d" and on_ne16:
        codes = np.moveaxis(codes, 1, 3)
    elif node.operator == "depthwise_conv_2d":
        codes = codes[:, 0] if on_ne16 else codes[..., 0]
        codes = np.moveaxis(codes, 0, 2)[None]
    return np.ascontiguousarray(codes)


def _tensor(entry: _Object) -> Tensor:
    quantization, range_ = None, None
    if "quantization" in entry:
        quantization = _affine(cast("_Object", entry["quantization"]))
    if "range" in entry:
        low, high = cast("list[float]", entry["range"])
        kind = str(entry["range_precision"])
        range_ = Range(np.array([low], kind), np.array([high], kind))
    dtype = DType(str(entry["dtype"]))
    return Tensor(str(entry["name"]), _indices(entry["shape"]), dtype, quantization, range_)


def _affine(entry: _Object) -> Affine:
    scale = np.array(cast("list[float]", entry["scale"]), str(entry["scale_precision"]))
    zero_point = np.array(cast("list[int]", entry["zero_point"]), np.int64)
    axis = cast("int | None", entry["axis"])
    bits = cast("int", entry["bits"])
    return Affine(scale, zero_point, axis, bits, bool(entry["signed"]), bool(entry["narrow_range"]))


def _node(entry: _Object) -> Node:
    attributes = {k: _attribute(v) for k, v in cast("_Object", entry["attributes"]).items()}
    return Node(
        str(entry["operator"]),
        _indices(entry["inputs"]),
        _indices(entry["outputs"]),
        Attributes(attributes),
        str(entry["name"]),
        cast("int", entry["version"]),
        arithmetic="gap9",
    )


def _attribute(value: Json) -> Attribute:
    return tuple(cast("list[int]", value)) if isinstance(value, list) else cast("Attribute", value)


def _with_data(tensor: Tensor, data: Array) -> Tensor:
    return Tensor(
        tensor.name, tensor.shape, tensor.dtype, tensor.quantization, tensor.range, data.reshape(tensor.shape)
    )


def _plain(entry: _Object, binary: bytes) -> Array:
    found = np.frombuffer(_bytes(entry, binary), np.dtype(str(entry["element"])).newbyteorder("<"))
    return found.reshape(_indices(entry["shape"]))


def _bytes(entry: _Object, binary: bytes) -> bytes:
    start, size = cast("int", entry["offset"]), cast("int", entry["size_bytes"])
    if start + size > len(binary):
        raise FormatError(f"{BINARY} has {len(binary)} bytes, '{entry['name']}' ends at {start + size}")
    return binary[start : start + size]


def _is_constant(content: _Object, tensor: int) -> bool:
    return bool(_objects(content["tensors"])[tensor]["constant"])


def _objects(value: Json) -> list[_Object]:
    return cast("list[_Object]", value)


def _indices(value: Json) -> tuple[int, ...]:
    return tuple(cast("list[int]", value))


def unpack_planes(packed: Array, layout: PlaneLayout) -> Array:
    """Return the quantized values, uint8[shape]: the inverse of `pack_planes`."""
    order = ORDERS[layout.mode]
    outer = _outer_shape(layout)
    turned = packed.reshape([outer[a] for a in order]).transpose(np.argsort(order))
    bits = np.unpackbits(turned.astype(np.uint8), axis=-1, bitorder="little")
    weights = (1 << np.arange(layout.bits)).astype(np.uint8)
    codes = (bits * weights[:, None]).sum(axis=-2, dtype=np.uint8)
    flat = codes.reshape(*outer[:-3], -1)
    if layout.mode == "3x3dw":
        return np.ascontiguousarray(np.moveaxis(flat[0], 2, 0)[: layout.shape[0], ..., None])
    return np.ascontiguousarray(flat[..., : layout.shape[-1]])


def unpack_stream(stream: Array, bits: int, shape: tuple[int, ...]) -> Array:
    """Return the quantized values, uint8[shape]: the inverse of `pack_stream`."""
    count = prod(shape)
    planes = np.unpackbits(stream.astype(np.uint8), count=count * bits, bitorder="little").reshape(count, bits)
    codes = (planes * (1 << np.arange(bits)).astype(np.uint8)).sum(axis=1, dtype=np.uint8)
    return np.asarray(codes.reshape(shape))


def _outer_shape(layout: PlaneLayout) -> tuple[int, ...]:
    inner = (layout.groups, layout.bits, layout.group // 8)
    if layout.mode == "linear":
        return (layout.shape[0], *inner)
    outputs, height, width, _ = layout.shape
    return (1 if layout.mode == "3x3dw" else outputs, height, width, *inner)

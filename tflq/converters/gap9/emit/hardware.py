"""The constants as the device reads them: by name, as one binary with an index, and as C.

Source: docs/rules/gap9/ne16.md#memory.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from tflq.converters.gap9.jobs.filters import job_mode
from tflq.converters.gap9.jobs.registers import config_word
from tflq.converters.gap9.operators import FILTERS
from tflq.converters.gap9.packing import (
    GROUP,
    WIDE_GROUP,
    WIDE_MODES,
    PlaneLayout,
    pack_planes,
    pack_stream,
)
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.graph import Array, Graph, Node
from tflq.interpreter.kernels.gap9.linear import FilterParams
from tflq.interpreter.numerics.fixed_point import wrap_int32
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node
from tflq.quoting import c_identifiers
from tflq.schemas import Json


def filter_integers(node: Node) -> FilterParams:
    """Return the params of a lowered filter."""
    params: object = getattr(node.params, "filter", None)
    assert isinstance(params, FilterParams)
    return params


def stored_weights(node: Node) -> Array:
    """Return weights as the device reads them.

    NE16: uint8 q + 2^(bits-1), [O, I, H, W], depthwise [C, 1, H, W]. SQ8: int8, [O, H, W, I], depthwise [C, H, W, 1].
    Fully connected: [O, I].
    """
    params = filter_integers(node)
    on_ne16 = node.attributes.text("engine") == NE16
    codes = params.weights + params.weight_zero_point
    if node.operator == "conv_2d" and on_ne16:
        codes = np.moveaxis(codes, 3, 1)
    elif node.operator == "depthwise_conv_2d" and not on_ne16:
        codes = np.moveaxis(codes, 1, 3)
    return np.ascontiguousarray(codes, np.uint8 if on_ne16 else np.int8)


def constants_of(graph: Graph) -> dict[str, Array]:
    """Return every constant of a lowered graph.

    <node>/weights, <node>/bias (int32, with the folded zero points, not multiplied), <node>/multiplier and
    <node>/shift (uint8, one for each output channel); <node>/operand<i> for constant operands of other operators.
    """
    found: dict[str, Array] = {}
    for node in graph.nodes:
        if node.operator in FILTERS:
            rescaling = filter_integers(node).rescaling
            found[f"{node.name}/weights"] = stored_weights(node)
            found[f"{node.name}/bias"] = rescaling.bias.astype(np.int32)
            found[f"{node.name}/multiplier"] = rescaling.mul_bias.multiplier.astype(np.uint8)
            found[f"{node.name}/shift"] = rescaling.shift.astype(np.uint8)
            continue
        for position, t in enumerate(node.inputs):
            data = graph.tensors[t].data if t >= 0 else None
            if data is not None:
                found[f"{node.name}/operand{position}"] = data
    return found


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as an uncompressed .npz; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


BINARY, SOURCE, HEADER = "hardware.bin", "constants.c", "constants.h"
ALIGNMENT = 16


@dataclass(frozen=True)
class Entry:
    """One array of the binary.

    Attributes:
        name: C identifier.
        node: the operator that it belongs to.
        kind: weights_stream, weights_planes, bias, bias_multiplied, multiplier, shift, operand, config.
        offset: in the binary; a multiple of 16.
        size_bytes: without the bytes that fill up to the next entry.
        shape: of the elements; of a stream that of the quantized values.
        element: uint8, int8, int32, ..., or "bits".
        layout: order of the axes in words.
    """

    name: str
    node: str
    kind: str
    offset: int
    size_bytes: int
    shape: tuple[int, ...]
    element: str
    layout: str


def hardware_memory(graph: Graph) -> tuple[bytes, tuple[Entry, ...]]:
    """Return the binary of a lowered graph and its index; numbers are little endian."""
    content, entries = bytearray(), []
    identifiers = c_identifiers([node.name for node in graph.nodes])
    for index, node in enumerate(graph.nodes):
        for kind, array, shape, layout in _arrays(graph, index):
            content.extend(bytes(-len(content) % ALIGNMENT))
            data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
            name = f"{identifiers[index]}_{kind}" + (f"_{layout}" if kind == "operand" else "")
            element = "bits" if kind == "weights_stream" else array.dtype.name
            entries.append(Entry(name, node.name, kind, len(content), len(data), shape, element, layout))
            content.extend(data)
    return bytes(content), tuple(entries)


def index_json(entries: tuple[Entry, ...]) -> Json:
    """Return the index as it stands in quantization.json."""
    listed: list[Json] = []
    for entry in entries:
        fields: dict[str, Json] = dict(asdict(entry))
        listed.append({**fields, "shape": list(entry.shape)})
    return {"file": BINARY, "header": HEADER, "alignment": ALIGNMENT, "entries": listed}


def config0(graph: Graph, index: int) -> int:
    """Return CONFIG0 of a filter's last job; tap by tap sums stream into it, and 32 bits leave."""
    node, params = graph.nodes[index], filter_integers(graph.nodes[index])
    window = _window(graph, node)
    mode = job_mode(node.operator, window)
    is_tap = mode == "taps"
    output = graph.tensors[node.outputs[0]].affine
    return config_word(
        bits=params.weight_bits,
        wide=_is_wide(graph, node),
        mode=mode,
        strided=window.stride == (2, 2) and mode in ("3x3", "3x3dw"),
        out_bits=32 if is_tap else output.bits,
        signed=output.signed,
        right_shift=params.rescaling.pre_normalization,
        stream_in=is_tap and window.taps > 1,
    )


def multiplied_bias(node: Node) -> Array:
    """Return stored * M + (N > 0 ? 2^(N-1) : 0), int32[O], wrapped: NE16 computes (acc * M + bias) >> N in 32 bits."""
    rescaling = filter_integers(node).rescaling
    shift = rescaling.shift
    half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    return wrap_int32(rescaling.bias * rescaling.mul_bias.multiplier + half).astype(np.int32)


_Item = tuple[str, Array, tuple[int, ...], str]


def _arrays(graph: Graph, index: int) -> Iterator[_Item]:
    node = graph.nodes[index]
    if node.operator not in FILTERS:
        for position, t in enumerate(node.inputs):
            data = graph.tensors[t].data if t >= 0 else None
            if data is not None:
                yield "operand", data, data.shape, str(position)
        return
    yield from _weights(graph, node)
    params = filter_integers(node)
    rescaling = params.rescaling
    channels = rescaling.bias.shape
    yield "bias", rescaling.bias.astype(np.int32), channels, "O"
    on_ne16 = node.attributes.text("engine") == NE16
    if on_ne16 and not rescaling.pre_normalization and not _is_wide(graph, node):
        yield "bias_multiplied", multiplied_bias(node), channels, "O"
    yield "multiplier", rescaling.mul_bias.multiplier.astype(np.uint8), channels, "O"
    yield "shift", rescaling.shift.astype(np.uint8), channels, "O"
    if on_ne16:
        registers = np.array([config0(graph, index), -params.weight_zero_point & 0xFFFFFFFF], np.uint32)
        is_tap = job_mode(node.operator, _window(graph, node)) == "taps"
        yield "config", registers, (2,), f"CONFIG0{' of the last tap' if is_tap else ''}, WEIGHT_OFFSET"


def _weights(graph: Graph, node: Node) -> Iterator[_Item]:
    params, stored = filter_integers(node), stored_weights(node)
    order = {4: "O,I,H,W" if stored.dtype == np.uint8 else "O,H,W,I", 2: "O,I"}[stored.ndim]
    if node.attributes.text("engine") != NE16:
        yield "weights_stream", stored.view(np.uint8), stored.shape, order
        return
    yield "weights_stream", pack_stream(stored, params.weight_bits), stored.shape, order
    layout = plane_layout(graph, node)
    if layout is not None:
        codes = (params.weights + params.weight_zero_point).astype(np.uint8)
        if node.operator == "depthwise_conv_2d":
            codes = np.moveaxis(codes, 1, 3)
        packed = pack_planes(codes, layout)
        yield "weights_planes", packed, packed.shape, layout.mode


def plane_layout(graph: Graph, node: Node) -> PlaneLayout | None:
    """Return the layout of the bit planes; None for 16-bit features in modes whose grouping is not published."""
    params, mode = filter_integers(node), job_mode(node.operator, _window(graph, node))
    shape = params.weights.shape
    if mode == "3x3dw":
        shape = (shape[0], shape[2], shape[3], 1)
    if not _is_wide(graph, node):
        return PlaneLayout(mode, shape, params.weight_bits, GROUP)
    return PlaneLayout(mode, shape, params.weight_bits, WIDE_GROUP) if mode in WIDE_MODES else None


def _window(graph: Graph, node: Node) -> Window:
    if node.operator == "fully_connected":
        return Window((1, 1))
    return window_of_node(node, *(graph.tensors[t].shape for t in node.inputs[:2]))


def _is_wide(graph: Graph, node: Node) -> bool:
    return graph.tensors[node.inputs[0]].affine.bits == 16


_GUARD = "TFLQ_GAP9_CONSTANTS_H"
_PER_LINE = 16
_SIZES = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}


def c_source(content: bytes, entries: tuple[Entry, ...], comment: Sequence[str]) -> bytes:
    """Return the arrays behind a comment; bits and bytes as uint8_t, numbers in their own type."""
    told = [f" * {line}".rstrip() for line in comment]
    parts = ["\n".join(["/* Written by tflq.", " *", *told, " */", f'#include "{HEADER}"', ""]).encode()]
    for entry in entries:
        data = content[entry.offset : entry.offset + entry.size_bytes]
        start = f"{_declaration(entry)} __attribute__((aligned({ALIGNMENT}))) = {{"
        parts.append("\n".join(["", start, *_values(entry, data), "};", ""]).encode())
    return b"".join(parts)


def c_header(entries: tuple[Entry, ...]) -> bytes:
    """Return the declarations, each with its layout."""
    lines = ["/* Written by tflq. */", f"#ifndef {_GUARD}", f"#define {_GUARD}", "", "#include <stdint.h>", ""]
    for entry in entries:
        shape = "x".join(map(str, entry.shape)) or "scalar"
        lines.append(f"extern {_declaration(entry)}; /* {entry.kind} {shape}, {entry.layout} */")
    return ("\n".join([*lines, "", f"#endif /* {_GUARD} */"]) + "\n").encode()


def _element(entry: Entry) -> str:
    return entry.element if entry.element in _SIZES else "uint8"


def _declaration(entry: Entry) -> str:
    element = _element(entry)
    # C has no arrays of length 0.
    return f"const {element}_t {entry.name}[{max(1, entry.size_bytes // _SIZES[element])}]"


_BYTES = {"uint8": [str(n) for n in range(256)], "int8": [str(n - (n & 128) * 2) for n in range(256)]}
"""Literal of each byte: large arrays consist of bytes, and a lookup is several times as fast as a conversion."""


def _values(entry: Entry, data: bytes) -> list[str]:
    literals = _literals(_element(entry), data) or ["0"]
    return [f"    {', '.join(literals[i : i + _PER_LINE])}," for i in range(0, len(literals), _PER_LINE)]


def _literals(element: str, data: bytes) -> list[str]:
    if element in _BYTES:
        return list(map(_BYTES[element].__getitem__, data))
    numbers = map(str, np.frombuffer(data, np.dtype(element).newbyteorder("<")).tolist())
    # -2147483648 is an expression of an unsigned literal in C89; hexadecimal avoids the question.
    return ["(int32_t)0x80000000" if element == "int32" and n == str(-(1 << 31)) else n for n in numbers]

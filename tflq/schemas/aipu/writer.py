"""Compass IR as its two files, in the layout of the Optimizer (quantised) or of the Parser (float).

Source: as reader.py.
"""

from __future__ import annotations

import numpy as np

from tflq.schemas.aipu.model import STORAGE, Constant, Edge, Layer, Network, Value
from tflq.schemas.aipu.values import format_value

# The Parser prints these with a fixed number of digits: key -> digits, where not all layer types agree with the type.
_DIGITS = {
    "clip_min": 6,
    "clip_max": 6,
    "negative_slope_value": 6,
    "constant_value": 6,
    "iou_threshold": 6,
    "score_threshold": 6,
    "soft_nms_sigma": 6,
}
_DIGITS_OF = {
    ("LRN", "alpha"): 6,
    ("LRN", "beta"): 6,
    ("LRN", "bias"): 6,
    ("BatchNorm", "epsilon"): 12,
    ("Activation", "alpha"): 8,
    ("Activation", "gamma"): 8,
}


def write_network(network: Network) -> tuple[str, bytes]:
    """Return the text and the bytes of the binary file.

    Constants stand back to back in the order of the text, without alignment. A quantised text ends with one blank
    line, a float one with two, and real numbers of a float one have the Parser's fixed digits where it has such.

    Raises:
        FormatError: a name with a character that the format keeps for itself.
    """
    binary = bytearray()
    sections = [[f"{key}={format_value(value)}" for key, value in network.header.items()]]
    fixed = not network.is_quantised
    sections.extend(_section(i, layer, binary, fixed) for i, layer in enumerate(network.layers))
    text = "".join("".join(f"{line}\n" for line in section) + "\n" for section in sections)
    return text + "\n" * fixed, bytes(binary)


def _section(index: int, layer: Layer, binary: bytearray, fixed: bool) -> list[str]:
    lines = [f"layer_id={index}", f"layer_name={format_value(layer.name)}", f"layer_type={format_value(layer.type)}"]
    lines += _edges("bottom", layer.bottoms) + _edges("top", layer.tops)
    for key, entry in layer.entries.items():
        if isinstance(entry, Constant):
            lines += _constant(key, entry, binary)
        else:
            lines.append(f"{key}={_formatted(layer.type, key, entry, fixed)}")
    return lines


def _formatted(kind: str, key: str, value: Value, fixed: bool) -> str:
    digits = _DIGITS_OF.get((kind, key), _DIGITS.get(key)) if fixed else None
    return f"{value:.{digits}f}" if digits is not None and isinstance(value, float) else format_value(value)


def _edges(side: str, edges: tuple[Edge, ...]) -> list[str]:
    columns: tuple[Value, ...] = (
        tuple(e.name for e in edges),
        tuple(e.shape for e in edges),
        tuple(e.dtype for e in edges),
    )
    keys = (f"layer_{side}{part}" for part in ("", "_shape", "_type"))
    return [f"{key}={format_value(column)}" for key, column in zip(keys, columns, strict=True)]


def _constant(key: str, constant: Constant, binary: bytearray) -> list[str]:
    data = np.ascontiguousarray(constant.data, np.dtype(STORAGE[constant.dtype]).newbyteorder("<")).tobytes()
    offset = len(binary)
    binary += data
    return [
        f"{key}_type={constant.dtype}",
        f"{key}_offset={offset}",
        f"{key}_size={len(data)}",
        f"{key}_shape={format_value(constant.data.shape)}",
    ]

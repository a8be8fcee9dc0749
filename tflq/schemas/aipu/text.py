"""The two files of Compass IR, read and written: the text and the constants.

Values are numbers, words, true and false, nested lists; the files are in the layout of the Optimizer (quantized) or of
the Parser (float).

Source: Arm-China/Compass_Unified_Parser, writer.py; Arm-China/Compass_Optimizer, framework/pycore/pyir.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.arrays import Array
from tflq.errors import FormatError, UnsupportedError
from tflq.quoting import compass_word
from tflq.schemas.aipu.model import STORAGE, Constant, Edge, Entry, Layer, Network, Value

_INTEGER = re.compile(r"-?\d+")
_REAL = re.compile(r"-?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)")
LARGEST_DEPTH = 8


def parse_value(text: str) -> Value:
    """Return the value of a text.

    `-?digits` is a whole number; `1.2`, `1e-05`, `inf` a real one; `true` and `false` are truth values; `[a,[b,c]]` a
    tuple; everything else a word.

    Raises:
        FormatError: a list that does not close, or with text behind it.
    """
    if not text.startswith("["):
        return _scalar(text)
    value, end = _list(text, 0, 0)
    if end != len(text):
        raise FormatError(f"'{text[:40]}' has text behind the list's end at character {end}")
    return value


def format_value(value: Value) -> str:
    """Return the text of a value; real numbers as Python's shortest form.

    Raises:
        FormatError: a word with a character that the format keeps for itself; a value of another type, such as a
            number of NumPy, which `repr` prints with its type.
    """
    if isinstance(value, tuple):
        return "[" + ",".join(format_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if compass_word(value) != value.replace(" ", "_"):
            raise FormatError(
                f"'{value[:60]}' has one of = , [ ], which Compass IR keeps for itself, or what is not printable"
            )
        return value
    if type(value) not in (int, float):
        raise FormatError(f"{value!r} is of type {type(value).__name__}; allowed are bool, int, float, str and tuples")
    return repr(value)


def _scalar(text: str) -> Value:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text, text)


def _list(text: str, start: int, depth: int) -> tuple[tuple[Value, ...], int]:
    """Read the list whose bracket stands at `start`; return it and where it ends."""
    if depth >= LARGEST_DEPTH:
        raise FormatError(f"lists are nested deeper than {LARGEST_DEPTH}")
    items: list[Value] = []
    at = start + 1
    if text[at : at + 1] == "]":
        return (), at + 1
    while True:
        if text[at : at + 1] == "[":
            item, at = _list(text, at, depth + 1)
            items.append(item)
        else:
            end = min((e for e in (text.find(",", at), text.find("]", at)) if e >= 0), default=-1)
            word = text[at:end].strip() if end >= 0 else ""
            if end < 0 or not word or "[" in word:
                raise FormatError(f"'{text[:40]}' is no list: an entry is missing or a bracket is not closed")
            items.append(_scalar(word))
            at = end
        mark = text[at : at + 1]
        at += 1
        if mark == "]":
            return tuple(items), at
        if mark != ",":
            found = f"found '{mark}' where ',' or ']' is allowed" if mark else "a bracket is not closed"
            raise FormatError(f"'{text[:40]}' is no list: {found}")


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

    Constants stand back to back in the order of the text, without alignment. A quantized text ends with one blank
    line, a float one with two, and real numbers of a float one have the Parser's fixed digits where it has such.

    Raises:
        FormatError: a name with a character that the format keeps for itself.
    """
    binary = bytearray()
    sections = [[f"{key}={format_value(value)}" for key, value in network.header.items()]]
    fixed = not network.is_quantized
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


MANDATORY = (
    "layer_id",
    "layer_name",
    "layer_type",
    *(f"layer_{side}{part}" for side in ("bottom", "top") for part in ("", "_shape", "_type")),
)
_PARTS = ("type", "offset", "size", "shape")
_HEADER = ("model_name", "input_tensors", "output_tensors")


@dataclass(frozen=True)
class _Line:
    number: int
    value: Value


_Section = dict[str, _Line]


def read_network(text: str, constants: bytes) -> Network:
    """Return the network of a text file and its binary file.

    Args:
        text: sections of key=value lines, separated by blank lines: the header, then one section a layer.
        constants: raw tensors, little-endian.

    Raises:
        FormatError: a missing or repeated key, a list that is none, a tensor that no earlier layer writes, or an offset
            outside the binary file; the message begins with the line number and the key.
        UnsupportedError: subgraphs.
    """
    sections = _sections(text)
    if not sections:
        raise FormatError("Compass IR: the text is empty; it begins with model_name=...")
    header = sections[0]
    for key in _HEADER:
        _need(header, key)
    layers = tuple(_layer(i, section, constants) for i, section in enumerate(sections[1:]))
    _check_edges(layers, sections[1:], header)
    stated = header.get("layer_number")
    if stated is not None and stated.value != len(layers):
        raise FormatError(f"line {stated.number}: layer_number={stated.value}, but {len(layers)} layers follow")
    return Network({key: line.value for key, line in header.items()}, layers)


def _sections(text: str) -> list[_Section]:
    found: list[_Section] = []
    is_open = False
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped:
            is_open = False
            continue
        if not is_open:
            found.append({})
            is_open = True
        _add_line(found[-1], number, stripped)
    return found


def _add_line(section: _Section, number: int, line: str) -> None:
    key, equals, text = (part.strip() for part in line.partition("="))
    if not equals or not key or "=" in text:
        raise FormatError(f"line {number}: '{line[:60]}': allowed is key=value with one '='")
    if key == "subgraph_name":
        raise UnsupportedError(f"line {number}: subgraph_name: subgraphs are not read; allowed is one graph a file")
    if key in section:
        raise FormatError(f"line {number}: {key} stands twice in its section, first in line {section[key].number}")
    try:
        section[key] = _Line(number, parse_value(text))
    except FormatError as error:
        raise FormatError(f"line {number}: {key}: {error}") from None


def _need(section: _Section, key: str) -> _Line:
    if key not in section:
        first = min(line.number for line in section.values())
        raise FormatError(f"line {first}: the section that begins here has no key {key}")
    return section[key]


def _layer(index: int, section: _Section, constants: bytes) -> Layer:
    for key in MANDATORY:
        _need(section, key)
    identity = section["layer_id"]
    if identity.value != index:
        raise FormatError(f"line {identity.number}: layer_id={identity.value}, allowed is {index}: ids count from 0")
    name, kind = str(section["layer_name"].value), str(section["layer_type"].value)
    entries: dict[str, Entry] = {}
    for key, line in section.items():
        constant = _constant_key(section, key)
        if key in MANDATORY or (constant is not None and constant in entries):
            continue
        if constant is None:
            entries[key] = line.value
        else:
            entries[constant] = _read_constant(section, constant, constants)
    return Layer(name, kind, _read_edges(section, "bottom"), _read_edges(section, "top"), entries)


def _read_edges(section: _Section, side: str) -> tuple[Edge, ...]:
    names, shapes, types = (_items(section, f"layer_{side}{part}") for part in ("", "_shape", "_type"))
    number = section[f"layer_{side}"].number
    if not len(names) == len(shapes) == len(types):
        raise FormatError(
            f"line {number}: layer_{side} has {len(names)} names, {len(shapes)} shapes and {len(types)} types; "
            f"allowed is the same number of each"
        )
    edges = []
    for name, shape, dtype in zip(names, shapes, types, strict=True):
        if not isinstance(dtype, str) or dtype not in STORAGE:
            line = section[f"layer_{side}_type"].number
            raise FormatError(f"line {line}: layer_{side}_type: '{dtype}' is no type; known are {', '.join(STORAGE)}")
        edges.append(
            Edge(str(name), _shape(shape, section[f"layer_{side}_shape"].number, f"layer_{side}_shape"), dtype)
        )
    return tuple(edges)


def _items(section: _Section, key: str) -> tuple[Value, ...]:
    line = section[key]
    if not isinstance(line.value, tuple):
        raise FormatError(f"line {line.number}: {key}={line.value}: allowed is a list such as [a,b]")
    return line.value


def _shape(value: Value, number: int, key: str) -> tuple[int, ...]:
    if not isinstance(value, tuple):
        raise FormatError(f"line {number}: {key}: '{value}' is no shape; allowed is a list of sizes")
    sizes = tuple(size for size in value if isinstance(size, int) and not isinstance(size, bool) and size >= 0)
    if len(sizes) != len(value):
        raise FormatError(f"line {number}: {key}: {list(value)} is no shape; allowed are whole numbers of 0 or more")
    return sizes


def _constant_key(section: _Section, key: str) -> str | None:
    """Return the constant that a key belongs to: one that has all four keys."""
    stem, _, part = key.rpartition("_")
    is_part = part in _PARTS and f"{stem}_offset" in section
    return stem if is_part and stem else None


def _read_constant(section: _Section, stem: str, constants: bytes) -> Constant:
    lines = {part: _need(section, f"{stem}_{part}") for part in _PARTS}
    number = lines["offset"].number
    dtype, offset, size = lines["type"].value, lines["offset"].value, lines["size"].value
    if not isinstance(dtype, str) or dtype not in STORAGE:
        raise FormatError(
            f"line {lines['type'].number}: {stem}_type: '{dtype}' is no type; known are {', '.join(STORAGE)}"
        )
    if not isinstance(offset, int) or not isinstance(size, int):
        raise FormatError(f"line {number}: {stem}_offset={offset}, {stem}_size={size}: allowed are whole numbers")
    shape = _shape(lines["shape"].value, lines["shape"].number, f"{stem}_shape")
    storage = np.dtype(STORAGE[dtype]).newbyteorder("<")
    needed = prod(shape) * storage.itemsize
    if size != needed:
        raise FormatError(f"line {lines['size'].number}: {stem}_size={size}; {dtype}{list(shape)} takes {needed}")
    if offset < 0 or offset + size > len(constants):
        raise FormatError(
            f"line {number}: {stem}_offset={offset} with {size} bytes lies outside the binary file of "
            f"{len(constants)} bytes"
        )
    data: Array = np.frombuffer(constants, storage, prod(shape), offset).reshape(shape)
    data = data.astype(storage.newbyteorder("="))
    data.setflags(write=False)
    return Constant(data, dtype)


def _check_edges(layers: tuple[Layer, ...], sections: list[_Section], header: _Section) -> None:
    written: set[str] = set()
    names: set[str] = set()
    for layer, section in zip(layers, sections, strict=True):
        for edge in layer.bottoms:
            if edge.name not in written:
                number = section["layer_bottom"].number
                raise FormatError(f"line {number}: layer_bottom: no earlier layer writes '{edge.name}'")
        if layer.name in names:
            raise FormatError(f"line {section['layer_name'].number}: layer_name '{layer.name}' stands twice")
        for edge in layer.tops:
            if edge.name in written:
                raise FormatError(f"line {section['layer_top'].number}: layer_top '{edge.name}' is written twice")
            written.add(edge.name)
        names.add(layer.name)
    for key in ("input_tensors", "output_tensors"):
        for name in _items(header, key):
            if name not in written:
                raise FormatError(f"line {header[key].number}: {key}: no layer writes '{name}'")

"""Compass IR from its two files; every error names the line and the key.

Source: Arm-China/Compass_Unified_Parser, writer.py; Arm-China/Compass_Optimizer, framework/pycore/pyir.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.arrays import Array
from tflq.errors import FormatError, UnsupportedError
from tflq.schemas.aipu.model import STORAGE, Constant, Edge, Entry, Layer, Network, Value
from tflq.schemas.aipu.text import parse_value

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
            entries[constant] = _constant(section, constant, constants)
    return Layer(name, kind, _edges(section, "bottom"), _edges(section, "top"), entries)


def _edges(section: _Section, side: str) -> tuple[Edge, ...]:
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


def _constant(section: _Section, stem: str, constants: bytes) -> Constant:
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

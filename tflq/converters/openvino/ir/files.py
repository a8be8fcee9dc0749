"""The files of an IR, read and written: XML with one layer a line, and the bytes of its constants.

Every id, port, shape, offset and size is checked before it is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush

from tflq.converters.openvino.ir import PRECISIONS, Layer, Network, Port, Source, from_bytes, size_bytes, to_bytes
from tflq.converters.openvino.ir.elements import Element, parse
from tflq.graph import Array
from tflq.quoting import xml_attribute

VERSIONS = ("10", "11")
_TYPES = {precision: name for name, precision in PRECISIONS.items()}
_MOST_ELEMENTS = 1 << 40
_BETWEEN_NAMES = re.compile(r"(?<!\\),")


def network_from_bytes(xml: bytes | memoryview, weights: bytes | memoryview, where: str) -> Network:
    """Return the layers of an IR, sources before readers.

    Args:
        xml: content of the .xml.
        weights: content of the .bin; empty where there is none.
        where: the .xml, for messages.

    Raises:
        FormatError: what does not follow the format, with its line.
    """
    root = parse(xml, where)
    if root.tag != "net":
        raise root.error(f"<{root.tag}> is no <net>: no IR of OpenVINO")
    version = root.attribute("version")
    if version not in VERSIONS:
        raise root.error(f"IR version {version[:20]}; read are {' and '.join(VERSIONS)}")
    elements = root.one("layers").all("layer")
    ids = [element.number("id") for element in elements]
    used = set[int]()
    for element, number in zip(elements, ids, strict=True):
        if number in used:
            raise element.error(f"layer id {number} is used twice")
        used.add(number)
    ports = [_ports(element) for element in elements]
    sources = _sources(root.one("edges"), elements, ids, ports)
    layers = [
        _layer(element, outputs, sources[i], weights)
        for i, (element, (_, outputs)) in enumerate(zip(elements, ports, strict=True))
    ]
    return Network(root.attributes.get("name", "model"), _sorted(layers, elements))


def _ports(element: Element) -> tuple[dict[int, int], dict[int, tuple[int, Port]]]:
    """Return input port id -> position, and output port id -> position and port."""
    inputs: dict[int, int] = {}
    outputs: dict[int, tuple[int, Port]] = {}
    for group in element.all("input"):
        for port in group.all("port"):
            inputs[port.number("id")] = len(inputs)
    for group in element.all("output"):
        for port in group.all("port"):
            precision = port.attribute("precision")
            if precision not in _TYPES:
                raise port.error(f"precision {precision[:20]}; read are {', '.join(_TYPES)}")
            names = _names(port.attributes.get("names", ""))
            outputs[port.number("id")] = len(outputs), Port(_TYPES[precision], _dims(port), names)
    return inputs, outputs


def _names(joined: str) -> tuple[str, ...]:
    r"""Return the names of a port: "a,b\,c" is a and b,c."""
    return tuple(name.replace("\\,", ",") for name in _BETWEEN_NAMES.split(joined)) if joined else ()


def _dims(port: Element) -> tuple[int, ...]:
    shape = []
    for dim in port.all("dim"):
        if dim.text.strip().startswith("-"):
            raise dim.error("a dimension is open (-1); shapes must be fixed: reshape the model before it is saved")
        shape.append(dim.whole(dim.text, "a dimension"))
    if math.prod(shape) > _MOST_ELEMENTS:
        raise port.error(f"shape {tuple(shape)} has more than {_MOST_ELEMENTS} elements")
    return tuple(shape)


def _sources(
    edges: Element,
    elements: list[Element],
    ids: list[int],
    ports: list[tuple[dict[int, int], dict[int, tuple[int, Port]]]],
) -> list[tuple[Source, ...]]:
    position = {number: i for i, number in enumerate(ids)}
    found: list[dict[int, Source]] = [{} for _ in elements]
    for edge in edges.all("edge"):
        start, first = edge.number("from-layer"), edge.number("from-port")
        end, last = edge.number("to-layer"), edge.number("to-port")
        if start not in position or first not in ports[position[start]][1]:
            raise edge.error(f"it comes from output {first} of layer {start}, which does not exist")
        if end not in position or last not in ports[position[end]][0]:
            raise edge.error(f"it goes to input {last} of layer {end}, which does not exist")
        target = ports[position[end]][0][last]
        if target in found[position[end]]:
            raise edge.error(f"a second edge goes to input {last} of layer {end}")
        found[position[end]][target] = Source(position[start], ports[position[start]][1][first][0])
    for element, (inputs, _), given in zip(elements, ports, found, strict=True):
        if len(given) != len(inputs):
            raise element.error(f"layer has {len(inputs)} inputs, edges go to {len(given)} of them")
    return [tuple(given[i] for i in range(len(given))) for given in found]


def _layer(
    element: Element,
    outputs: Mapping[int, tuple[int, Port]],
    sources: tuple[Source, ...],
    weights: bytes | memoryview,
) -> Layer:
    groups = element.all("data")
    data = groups[0].attributes if groups else {}
    kind = element.attribute("type")
    ports = tuple(port for _, port in outputs.values())
    value = _constant(groups[0] if groups else element, ports, weights) if kind == "Const" else None
    version = element.attributes.get("version", "opset1")
    return Layer(element.attribute("name"), kind, version, data, sources, ports, value, element.line)


def _constant(data: Element, ports: tuple[Port, ...], weights: bytes | memoryview) -> Array:
    kind, offset, size = data.attribute("element_type"), data.number("offset"), data.number("size")
    if kind not in PRECISIONS:
        raise data.error(f"element_type {kind[:20]}; read are {', '.join(PRECISIONS)}")
    parts = data.attribute("shape").split(",")
    shape = () if parts == [""] else tuple(data.whole(part, "a dimension of shape") for part in parts)
    if len(ports) != 1 or ports[0].shape != shape or ports[0].element_type != kind:
        raise data.error(f"{kind}{list(shape)} differs from what its output port states")
    needed = size_bytes(kind, math.prod(shape))
    if size != needed:
        raise data.error(f"size is {size} bytes; {kind}{list(shape)} has {needed}")
    if offset + size > len(weights):
        raise data.error(f"bytes {offset}..{offset + size} lie outside the .bin, which has {len(weights)}")
    return from_bytes(kind, memoryview(weights)[offset : offset + size], shape)


def _sorted(layers: list[Layer], elements: list[Element]) -> tuple[Layer, ...]:
    """Put each layer behind its sources, Results last, else in the order of the file: outputs have that of Results."""
    readers: list[list[int]] = [[] for _ in layers]
    missing = [len({s.layer for s in layer.sources}) for layer in layers]
    for i, layer in enumerate(layers):
        for start in {s.layer for s in layer.sources}:
            readers[start].append(i)
    ready = [(layers[i].type == "Result", i) for i, count in enumerate(missing) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        _, i = heappop(ready)
        order.append(i)
        for reader in readers[i]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (layers[reader].type == "Result", reader))
    if len(order) < len(layers):
        first = next(i for i, count in enumerate(missing) if count)
        number = elements[first].attribute("id")
        raise elements[first].error(f"layer {number} waits for itself: the edges run in a circle")
    place = {i: number for number, i in enumerate(order)}
    return tuple(
        replace(layers[i], sources=tuple(Source(place[s.layer], s.output) for s in layers[i].sources)) for i in order
    )


ALIGNMENT_BYTES = 64
"""Constants start at multiples of this; readers take any place, the runtime maps aligned ones without a copy."""


def network_to_bytes(network: Network) -> tuple[bytes, bytes]:
    """Return the .xml and the .bin of a network."""
    weights = bytearray()
    lines = ['<?xml version="1.0"?>', f'<net name={xml_attribute(network.name)} version="11">', "<layers>"]
    for number, layer in enumerate(network.layers):
        lines.append("".join(_layer_text(network, number, layer, weights)))
    lines += ["</layers>", "<edges>", *_edges(network), "</edges>", "</net>", ""]
    return "\n".join(lines).encode(), bytes(weights)


def _layer_text(network: Network, number: int, layer: Layer, weights: bytearray) -> Iterator[str]:
    yield f'<layer id="{number}" name={xml_attribute(layer.name)} type="{layer.type}" version="{layer.version}">'
    data = dict(layer.data)
    if layer.value is not None:
        data = _stored(layer, weights)
    if data:
        yield f"<data{''.join(f' {key}={xml_attribute(text)}' for key, text in data.items())}/>"
    if layer.sources:
        yield from _ports_text("input", [network.port(s) for s in layer.sources], 0, named=False)
    if layer.outputs:
        yield from _ports_text("output", layer.outputs, len(layer.sources), named=True)
    yield "</layer>"


def _stored(layer: Layer, weights: bytearray) -> dict[str, str]:
    assert layer.value is not None
    (port,) = layer.outputs
    content = to_bytes(port.element_type, layer.value)
    weights.extend(bytes(-len(weights) % ALIGNMENT_BYTES))
    offset = len(weights)
    weights.extend(content)
    shape = ",".join(map(str, port.shape))
    return {"element_type": port.element_type, "shape": shape, "offset": str(offset), "size": str(len(content))}


def _ports_text(tag: str, ports: Sequence[Port], first: int, named: bool) -> Iterator[str]:
    yield f"<{tag}>"
    for number, port in enumerate(ports, first):
        joined = ",".join(n.replace(",", "\\,") for n in port.names)
        names = f" names={xml_attribute(joined)}" if port.names else ""
        yield f'<port id="{number}" precision="{PRECISIONS[port.element_type]}"{names if named else ""}>'
        yield from (f"<dim>{size}</dim>" for size in port.shape)
        yield "</port>"
    yield f"</{tag}>"


def _edges(network: Network) -> Iterator[str]:
    for number, layer in enumerate(network.layers):
        for port, source in enumerate(layer.sources):
            output = len(network.layers[source.layer].sources) + source.output
            yield (f'<edge from-layer="{source.layer}" from-port="{output}" to-layer="{number}" to-port="{port}"/>')

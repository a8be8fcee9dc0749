"""Writes an IR: XML with one layer a line, and the bytes of its constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.converters.openvino.ir.element_types import to_bytes
from tflq.converters.openvino.ir.network import Layer, Network, Port
from tflq.quoting import xml_attribute

ALIGNMENT_BYTES = 64
"""Constants start at multiples of this; readers take any place, the runtime maps aligned ones without a copy."""


def network_to_bytes(network: Network) -> tuple[bytes, bytes]:
    """Return the .xml and the .bin of a network."""
    weights = bytearray()
    lines = ['<?xml version="1.0"?>', f'<net name={xml_attribute(network.name)} version="11">', "<layers>"]
    for number, layer in enumerate(network.layers):
        lines.append("".join(_layer(network, number, layer, weights)))
    lines += ["</layers>", "<edges>", *_edges(network), "</edges>", "</net>", ""]
    return "\n".join(lines).encode(), bytes(weights)


def _layer(network: Network, number: int, layer: Layer, weights: bytearray) -> Iterator[str]:
    yield f'<layer id="{number}" name={xml_attribute(layer.name)} type="{layer.type}" version="{layer.version}">'
    data = dict(layer.data)
    if layer.value is not None:
        data = _stored(layer, weights)
    if data:
        yield f"<data{''.join(f' {key}={xml_attribute(text)}' for key, text in data.items())}/>"
    if layer.sources:
        yield from _ports("input", [network.port(s) for s in layer.sources], 0, named=False)
    if layer.outputs:
        yield from _ports("output", layer.outputs, len(layer.sources), named=True)
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


def _ports(tag: str, ports: Sequence[Port], first: int, named: bool) -> Iterator[str]:
    yield f"<{tag}>"
    for number, port in enumerate(ports, first):
        joined = ",".join(n.replace(",", "\\,") for n in port.names)
        names = f" names={xml_attribute(joined)}" if port.names else ""
        yield f'<port id="{number}" precision="{port.precision}"{names if named else ""}>'
        yield from (f"<dim>{size}</dim>" for size in port.shape)
        yield "</port>"
    yield f"</{tag}>"


def _edges(network: Network) -> Iterator[str]:
    for number, layer in enumerate(network.layers):
        for port, source in enumerate(layer.sources):
            output = len(network.layers[source.layer].sources) + source.output
            yield (f'<edge from-layer="{source.layer}" from-port="{output}" to-layer="{number}" to-port="{port}"/>')

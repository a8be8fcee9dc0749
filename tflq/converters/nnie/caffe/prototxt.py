"""A Caffe network as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tflq.converters.nnie.caffe.layer import CaffeLayer, Parameter


def prototxt(name: str, layers: Sequence[CaffeLayer]) -> str:
    """Return the .prototxt."""
    lines = [f'name: "{name}"']
    for layer in layers:
        lines += ["layer {", f'  name: "{layer.name}"', f'  type: "{layer.type}"']
        lines += [f'  bottom: "{blob}"' for blob in layer.bottoms]
        lines += [f'  top: "{blob}"' for blob in layer.tops]
        lines += _fields(layer.parameters, "  ")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _fields(fields: Mapping[str, Parameter], indent: str) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key} {{"
            yield from _fields(value, indent + "  ")
            yield f"{indent}}}"
        elif isinstance(value, tuple):
            yield from (f"{indent}{key}: {item}" for item in value)
        else:
            yield f"{indent}{key}: {str(value).lower() if isinstance(value, bool) else value}"

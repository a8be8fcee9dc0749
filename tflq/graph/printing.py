"""The text form of a graph: one line for each input, constant and node (docs/internals/rewriting.md).

    graph tiny {
      input %x: int8[1,4] q(0.5, -3)
      const %w: int8[2,4] q([0.25, 0.5], 0, axis=0) = [[1, 2, 3, 4], [5, 6, 7, 8]]
      %y: int8[1,2] q(0.125, 4) = fully_connected(%x, %w, _) {fused_activation_function="relu"} "FULLY_CONNECTED_0_0"
      output %y
    }

`tflq.graph.parsing.parse_graph` reads it. Facts that only a file format knows (`extra`) and lowered params are
left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from tflq.arrays import Array
from tflq.graph.attributes import Attribute
from tflq.graph.dtypes import DType
from tflq.graph.quantization import Affine, Blockwise, FakeQuantize, Logarithmic, Quantization, Range

if TYPE_CHECKING:
    from tflq.graph.graph import Graph, Node, Tensor

MOST_INLINE = 16
"""Elements of a constant that the short form shows; longer constants are shown as their checksum."""

BARE_NAME = re.compile(r"[A-Za-z_][\w./;-]*", re.ASCII)
"""Names that need no quotes."""


def format_graph(graph: Graph, *, most_inline: int | None = MOST_INLINE) -> str:
    """Return the text form of a graph.

    Args:
        graph: Any graph.
        most_inline: Largest number of elements of a constant that is written out; a longer one is written as
            `... #checksum`, which cannot be parsed. None writes all.
    """
    return "\n".join(_graph_lines(graph, most_inline)) + "\n"


def _graph_lines(graph: Graph, most_inline: int | None) -> Iterator[str]:
    printer = TensorPrinter(graph.tensors, most_inline)
    yield f"graph {graph.name if BARE_NAME.fullmatch(graph.name) else quoted(graph.name)} {{"
    for line in printer.declarations(graph.inputs, graph.nodes):
        yield f"  {line}"
    for node in graph.nodes:
        yield f"  {printer.node(node)}"
    for t in graph.outputs:
        yield f"  output {printer.name(t)}"
    yield "}"


def quoted(text: str) -> str:
    """Return a text in double quotes, with the escapes of JSON."""
    return json.dumps(text)


class TensorPrinter:
    """Prints lines of a graph with the names of its tensors.

    Args:
        tensors: Tensors by index.
        most_inline: As in `format_graph`.
    """

    def __init__(self, tensors: Sequence[Tensor], most_inline: int | None = MOST_INLINE) -> None:
        self._tensors, self._most_inline = tensors, most_inline
        self._times = Counter(tensor.name for tensor in tensors)

    def name(self, t: int) -> str:
        """Return `%name` of a tensor, quoted if needed, with its index if several have the name; `_` if absent."""
        if t < 0:
            return "_"
        name = self._tensors[t].name
        shown = name if BARE_NAME.fullmatch(name) else quoted(name)
        return f"%{shown}" if self._times[name] == 1 else f"%{shown}#{t}"

    def declarations(
        self, inputs: Collection[int], nodes: Iterable[Node], constants: Collection[int] | None = None
    ) -> Iterator[str]:
        """Yield the lines of the inputs, constants, variables and of other tensors without a writer that are used.

        Args:
            inputs: Inputs of the graph.
            nodes: All nodes.
            constants: Constants to show (default: all).
        """
        nodes = list(nodes)
        written = {t for node in nodes for t in node.outputs}
        read = {t for node in nodes for t in (*node.inputs, *(node.intermediates or ()))}
        for t in inputs:
            yield f"input {self.typed(t)}"
        scales = {t for tensor in self._tensors for t in _scale_tensors(tensor)}
        for t in sorted(range(len(self._tensors)), key=lambda t: t not in scales):  # a line names only earlier ones
            tensor = self._tensors[t]
            if tensor.data is not None:
                if constants is not None and t not in constants:
                    continue
                yield f"const {self.typed(t)} = {self._value(tensor.data, tensor.dtype)}"
            elif t not in inputs and (tensor.is_variable or (t in read and t not in written)):
                yield f"tensor {self.typed(t)}"

    def node(self, node: Node) -> str:
        """Return the line of a node."""
        results = ", ".join(self.typed(t) for t in node.outputs)
        parts = [f"{results} = " if results else ""]
        parts.append(f"{node.operator}({', '.join(self.name(t) for t in node.inputs)})")
        if node.attributes:
            parts.append(f" {{{', '.join(f'{key}={attribute_text(v)}' for key, v in node.attributes.items())}}}")
        parts.append(f" {quoted(node.name)}")
        if node.version != 1:
            parts.append(f" version={node.version}")
        if node.custom_code is not None:
            parts.append(f" custom={quoted(node.custom_code)}")
        if node.custom_options is not None:
            parts.append(f" options={node.custom_options!r}")
        if node.arithmetic is not None:
            parts.append(f" arithmetic={node.arithmetic}")
        if node.intermediates is not None:
            parts.append(f" intermediates=({', '.join(self.name(t) for t in node.intermediates)})")
        return "".join(parts)

    def typed(self, t: int) -> str:
        """Return `%name: type[shape] quantization range`."""
        tensor = self._tensors[t]
        signature = tensor.shape_signature or tensor.shape
        sizes = (f"?{n}" if stated < 0 else str(n) for n, stated in zip(tensor.shape, signature, strict=True))
        text = f"{self.name(t)}: {tensor.dtype.value}[{','.join(sizes)}]"
        if tensor.quantization is not None:
            text += f" {self._quantization(tensor.quantization)}"
        if tensor.range is not None:
            text += f" {_range(tensor.range)}"
        if tensor.is_variable:
            text += " variable"
        return text + (" has_rank" if tensor.has_rank else "")

    def _value(self, data: Array, dtype: DType) -> str:
        if self._most_inline is not None and data.size > self._most_inline:
            stored = repr(data.tolist()).encode() if data.dtype == object else np.ascontiguousarray(data).tobytes()
            return f"... #{crc32(stored):08x}"
        return array_text(data, dtype.storage)

    def _quantization(self, quantization: Quantization) -> str:
        if isinstance(quantization, Affine):
            return _affine(quantization)
        if isinstance(quantization, Blockwise):
            names = f"{self.name(quantization.scales)}, {self.name(quantization.zero_points)}"
            shape = f", {quantization.block_shape!r}" if quantization.block_shape else ""
            return f"blocks({names}, {quantization.block_size}{shape})"
        if isinstance(quantization, Logarithmic):
            return f"log({quantization.clipping!r}, bits={quantization.bits})"
        bounds = (getattr(quantization, key) for key in FAKE_BOUNDS)
        return f"fake({quantization.levels}, {', '.join(array_text(np.asarray(b), np.float32) for b in bounds)})"


def _scale_tensors(tensor: Tensor) -> tuple[int, ...]:
    quantization = tensor.quantization
    return (quantization.scales, quantization.zero_points) if isinstance(quantization, Blockwise) else ()


FAKE_BOUNDS = ("input_low", "input_high", "output_low", "output_high")
"""Bounds of FakeQuantize in the order of the text form."""
assert set(FAKE_BOUNDS) < set(FakeQuantize.__dataclass_fields__)


def _affine(affine: Affine) -> str:
    one = affine.axis is None and affine.scale.size == 1
    scale = array_text(affine.scale.reshape(()) if one else affine.scale, np.float32)
    single = affine.zero_point.size == 1 and (one or int(affine.zero_point[0]) == 0)
    zero_point = array_text(affine.zero_point.reshape(()) if single else affine.zero_point, np.int64)
    extra = f", axis={affine.axis}" if affine.axis is not None else ""
    extra += f", bits={affine.bits}" if affine.bits != 8 else ""
    extra += "" if affine.signed else ", unsigned"
    return f"q({scale}, {zero_point}{extra}{', narrow' if affine.narrow_range else ''})"


def _range(bounds: Range) -> str:
    sides = (side.reshape(()) if side.shape == (1,) else side for side in (bounds.minimum, bounds.maximum))
    return f"range({', '.join(array_text(side, np.float32) for side in sides)})"


def array_text(data: Array, expected: np.dtype[np.generic] | type[np.generic]) -> str:
    """Return an array as nested lists; a type other than the expected one follows, as in `[0.1, 0.2]:float64`."""
    text = _nested(np.asarray(data))
    return text if data.dtype == np.dtype(expected) else f"{text}:{data.dtype.name}"


def _nested(data: Array) -> str:
    if data.ndim and not data.size:
        return f"empty{data.shape!r}".replace(" ", "")
    if data.ndim:
        return f"[{', '.join(_nested(data[i, ...]) for i in range(len(data)))}]"
    item = data[()]
    if isinstance(item, np.complexfloating):
        return f"complex({item.real!s}, {item.imag!s})"
    if isinstance(item, np.floating):
        return str(item)
    return repr(item.item() if isinstance(item, np.generic) else item)


def attribute_text(value: Attribute) -> str:
    """Return an attribute's value as a literal."""
    if isinstance(value, np.ndarray):
        return f"array({value.dtype.name}, {_nested(value)})"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    return repr(value)

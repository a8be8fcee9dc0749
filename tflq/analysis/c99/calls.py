"""The body of network_run: one call a layer, its tensors in the arena, and copies from and to variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflq.analysis.c99.layer import Layer
from tflq.analysis.c99.variables import MOVES, Variables, value_of
from tflq.analysis.c99.words import array, stored_type
from tflq.graph import Graph, Node
from tflq.graph.arena import arena_of
from tflq.quoting import c_string


@dataclass(frozen=True)
class Calls:
    """The calls of a program.

    Attributes:
        lines: the body.
        constants: what it copies that no layer has.
        arena_bytes: of the tensors that are computed.
    """

    lines: tuple[str, ...]
    constants: tuple[str, ...]
    arena_bytes: int


def calls_of(graph: Graph, layers: Sequence[Layer], variables: Variables) -> Calls:
    """Write the calls.

    Args:
        graph: of the program: layers, and the operators that move variables.
        layers: in the order of their nodes.
        variables: of the network.
    """
    rest = iter(layers)
    steps = [(node, None if node.operator in MOVES else next(rest)) for node in graph.nodes]
    places = _Places(graph, steps, variables)
    lines: list[str] = []
    for node, layer in steps:
        lines += places.move(node) if layer is None else places.call(layer)
        for t in node.outputs:
            name = c_string(graph.tensors[t].name)
            lines.append(f"    if (hook) hook(context, {t}, {name}, {places.bytes_at(t)}, {tensor_size(graph, t)});")
    for n, t in enumerate(graph.outputs):
        lines.append(f"    memcpy(outputs[{n}], {places.bytes_at(t)}, {tensor_size(graph, t)});")
    return Calls(tuple(lines), tuple(places.constants.values()), places.size)


def tensor_size(graph: Graph, t: int) -> int:
    """Return the bytes of a tensor as it is stored."""
    return graph.tensors[t].size * graph.tensors[t].dtype.storage.itemsize


class _Places:
    """Where each tensor is: in the arena, the inputs, the state or a constant.

    A layer writes the new value of a variable into the arena, from where it is copied: it may still read the old one.
    """

    def __init__(self, graph: Graph, steps: Sequence[tuple[Node, Layer | None]], variables: Variables) -> None:
        self.graph, self.variables = graph, variables
        self.constants: dict[int, str] = {}
        tensors, nodes = list(graph.tensors), []
        self._new: dict[int, tuple[int, ...]] = {}
        for node, layer in steps:
            kept = layer.keeps if layer else ()
            new = tuple(range(len(tensors), len(tensors) + len(kept)))
            tensors += [replace(tensors[t], is_variable=False) for t in kept]
            read = tuple(t for t in node.inputs if t not in variables)
            nodes.append(replace(node, inputs=read, outputs=(*node.outputs, *new)))
            if layer:
                self._new[layer.index] = new
        computed = {t for node in nodes for t in node.outputs}
        arena = arena_of(replace(graph, tensors=tensors, nodes=nodes, inputs=()))
        self._offsets = {b.tensor: b.offset for b in arena.buffers if b.tensor in computed}
        self.size = max((b.offset + b.size for b in arena.buffers if b.tensor in computed), default=0)

    def call(self, layer: Layer) -> list[str]:
        """Call a layer, and keep the variables that it changes."""
        new = dict(zip(layer.keeps, self._new[layer.index], strict=True))
        arguments = [self._argument(t) for t in layer.arguments]
        for t, place in new.items():
            kind = stored_type(self.graph.tensors[t].dtype.storage)
            arguments.append(f"({kind} *)(void *)(arena.at + {self._offsets[place]})")
        lines = [f"    {layer.name}({', '.join(arguments)});"]
        return lines + [self._assign(t, f"arena.at + {self._offsets[place]}") for t, place in new.items()]

    def move(self, node: Node) -> list[str]:
        """Copy from a variable or to it."""
        handle, t = node.inputs[0], value_of(node)
        if node.outputs:
            return [
                f"    memcpy({self.bytes_at(t)}, state->{self.variables[handle].name}, {tensor_size(self.graph, t)});"
            ]
        return [self._assign(handle, self.bytes_at(t))]

    def bytes_at(self, t: int) -> str:
        """Return the place of a tensor, which may be a constant or an input."""
        if t in self._offsets:
            return f"arena.at + {self._offsets[t]}"
        data = self.graph.tensors[t].data
        if data is None:
            return f"inputs[{self.graph.inputs.index(t)}]"
        kind = stored_type(data.dtype)
        self.constants[t] = f"static const {kind} constant_{t}[{data.size}] = {{\n{array(data, kind)}\n}};"
        return f"constant_{t}"

    def _assign(self, t: int, source: str) -> str:
        member = self.variables[t]
        return f"    memcpy(state->{member.name}, {source}, {member.start.nbytes});"

    def _argument(self, t: int) -> str:
        if t in self.variables:
            return f"state->{self.variables[t].name}"
        kind = stored_type(self.graph.tensors[t].dtype.storage)
        if t in self._offsets:
            return f"({kind} *)(void *)(arena.at + {self._offsets[t]})"
        return f"(const {kind} *)inputs[{list(self.graph.inputs).index(t)}]"

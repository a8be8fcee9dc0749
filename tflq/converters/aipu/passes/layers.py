"""Layers of Compass under change: a graph editor with the facts that only the Parser's order and names need.

A layer keeps its name while passes change its operator; a tensor keeps its index, whichever layer writes it. In the
file a tensor has the name of its layer and its port, which `to_graph` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.stated_ranges import inherit, is_stated
from tflq.graph import Array, Attributes, DType, Graph, Node, Range, Tensor
from tflq.graph.attributes import Attribute
from tflq.graph.rewriting import GraphEditor
from tflq.quoting import compass_name

INPUT, CONSTANT = "input", "constant"


class Layers(GraphEditor):
    """A graph of Compass's layers that passes change; an input of the graph is a layer without operands.

    Attributes:
        births: Place of a layer in the order in which the Parser makes its nodes, by name; the order of the file
            follows from it.
        settings: Name of the node of the source with the settings of a layer, by name of the layer.
        stands_for: Tensor that is read in the place of one without a writer, by the latter.
        faults: True if passes repeat the Parser's faults (faults.py).
        is_quantized: True if ranges are of a quantized file and follow the Parser's edges (stated_ranges.py).
        departures: Result of the Parser, by name of a layer that follows the model instead.
        shapeless: Names of Reshapes that no pass of the Parser moves, because their input has no shape there.
        limits_of_pairs: Names of CLIP and RELU6 that were a minimum and a maximum, which have no operands for limits.
    """

    def __init__(self) -> None:
        self.births: dict[str, int] = {}
        self.settings: dict[str, str] = {}
        self.stands_for: dict[int, int] = {}
        self.faults = False
        self.is_quantized = False
        self.shapeless: set[str] = set()
        self.departures: dict[str, str] = {}
        self.limits_of_pairs: set[str] = set()
        super().__init__()

    # ---- queries

    def nodes_of(self, *operators: str) -> list[Node]:
        """Return the layers of some operators by name, which is the order of the Parser's matches.

        New layers are made in this order, so it decides their place in the file.
        Source: Compass Parser, graph/pattern_match.py, matched_patterns.
        """
        return sorted(super().nodes_of(*operators), key=lambda node: node.name)

    def constant(self, t: int) -> Array | None:
        """Return the value of a Constant layer or of a layer's own constant; None for a computed tensor."""
        writer = self.writer(t)
        return self.tensors[writer.inputs[0] if writer is not None and writer.operator == CONSTANT else t].data

    def operands(self, node: Node) -> list[int]:
        """Return the inputs of a layer without its own constants."""
        return [t for t in node.inputs if self.writer(t) is not None]

    def own(self, node: Node, key: str) -> Array:
        """Return a layer's own constant by its key."""
        (tensor,) = (self.tensors[t] for t in node.inputs if self.tensors[t].name.rpartition("/")[2] == key)
        assert tensor.data is not None
        return tensor.data

    def is_dead(self, node: Node) -> bool:
        """Return True if no result of a layer is used; inputs of the graph stay."""
        return node.operator != INPUT and super().is_dead(node)

    # ---- changes

    def unique_name(self, wanted: str) -> str:
        """Return a name that no layer has: the one wanted in Compass's letters, with _0, _1 appended if it is taken."""
        base = name = compass_name(wanted) or "layer"
        number = 0
        while name in self:
            name, number = f"{base}_{number}", number + 1
        return name

    def add(self, node: Node, *, before: Node | None = None, after: Node | None = None) -> Node:
        """Add a layer as `GraphEditor.add` does; a new name is the youngest in the Parser's order."""
        added = super().add(node, before=before, after=after)
        self.births.setdefault(added.name, len(self.births))
        return added

    def add_constant(self, layer: str, key: str, data: Array) -> int:
        """Add a constant of a layer: float32, or the integers that it holds."""
        value = np.array(data, data.dtype if np.issubdtype(data.dtype, np.integer) else np.float32, order="C")
        value.setflags(write=False)
        return self.add_tensor(Tensor(f"{layer}/{key}", data.shape, DType.of(value.dtype), data=value))

    def add_constant_layer(self, wanted: str, data: Array, settings: str = "", *, stated: Range | None = None) -> int:
        """Add a Constant layer, with the range of the file's constant if it is one, and return its result."""
        name = self.unique_name(wanted)
        weights = self.add_constant(name, "weights", data)
        top = self.add_tensor(replace(self.tensors[weights], data=None, range=stated))
        self.add(Node(CONSTANT, (weights,), (top,), name=name))
        self.settings[name] = settings
        return top

    def become(
        self,
        node: Node,
        operator: str,
        inputs: Sequence[int],
        keys: Mapping[str, Attribute] | None = None,
        constants: Mapping[str, Array] | None = None,
        outputs: Sequence[int] | None = None,
    ) -> Node:
        """Let a layer become another one of the same name, which writes the same values unless told."""
        own = tuple(self.add_constant(node.name, key, data) for key, data in (constants or {}).items())
        written = node.outputs if outputs is None else tuple(outputs)
        return self.replace(node, Node(operator, (*inputs, *own), written, Attributes(keys or {}), node.name))

    def add_layer(
        self, like: Node, wanted: str, operator: str, inputs: Sequence[int], top: int, **keys: Attribute
    ) -> Node:
        """Add a layer with the settings of another one."""
        added = self.add(Node(operator, tuple(inputs), (top,), Attributes(keys), wanted))
        self.settings[added.name] = self.settings.get(like.name, "")
        return added

    def reshaped(self, t: int, shape: Iterable[int]) -> int:
        """Return a new value like another one, in another shape."""
        return self.add_tensor(replace(self.tensors[t], shape=tuple(shape), data=None))

    def insert_layer_before(
        self, node: Node, position: int, operator: str, suffix: str, shape: Sequence[int], /, **keys: Attribute
    ) -> Node:
        """Add a layer between one operand of a layer and the layer, named after the writer of the operand.

        Returns:
            The layer with its new operand.
        """
        source = node.inputs[position]
        writer = self.writer(source)
        assert writer is not None
        top = self.reshaped(source, shape)
        self.add_layer(node, writer.name + suffix, operator, (source,), top, **keys)
        return self.set_input(node, position, top)

    def insert_layer_after(
        self, node: Node, operator: str, suffix: str, shape: Sequence[int], /, port: int = 0, **keys: Attribute
    ) -> Node:
        """Let a layer write another shape, and add a layer after it that writes the old tensor.

        A layer before an added Reshape states no range (Compass Parser, common_passes.py, insert_reshape_after).

        Returns:
            The layer with its new result.
        """
        old = node.outputs[port]
        inner = self.reshaped(old, shape)
        if operator == "reshape":
            self.unstate(inner)
        changed = self.change(node, outputs=(inner if p == port else t for p, t in enumerate(node.outputs)))
        self.add_layer(node, node.name + suffix, operator, (inner,), old, **keys)
        return changed

    def unite(self, node: Node, kept: Node) -> None:
        """Remove a layer that equals another one; the results of the latter take its ranges."""
        for old, new in zip(node.outputs, kept.outputs, strict=True):
            self.redirect(old, new)
            self.take_range(new, old)
        self.remove(node)

    def redirect(self, old: int, new: int) -> None:
        """Let all readers of a tensor, and the graph's outputs, use another one; one without a range gets the range."""
        super().redirect(old, new)
        self.stands_for[old] = new
        if self.tensors[new].range is None and self.writer(new) is not None:
            self.tensors[new] = replace(self.tensors[new], range=self.tensors[old].range)

    def unstate(self, t: int) -> None:
        """Let a tensor of a quantized file have a range that the Parser does not state."""
        if self.is_quantized:
            self.tensors[t] = inherit(self.tensors[t])

    def take_range(self, t: int, source: int) -> None:
        """Let a tensor of a quantized file have the range of another one, as the Parser copies the edge."""
        if self.is_quantized:
            self.tensors[t] = replace(self.tensors[t], range=self.tensors[source].range)

    def mark_shapeless(self, t: int) -> None:
        """Note that the input of the Reshape that writes a tensor has no shape in the Parser."""
        writer = self.writer(t)
        assert writer is not None
        self.shapeless.add(writer.name)

    def bypass(self, node: Node, position: int = 0) -> None:
        """Remove a layer as `GraphEditor.bypass`; its operand takes the range that the result states.

        Source: Compass Parser, common_passes.py, remove_node_safely.
        """
        node = self.node(node.name)
        source, result = node.inputs[position], node.outputs[0]
        super().bypass(node, position)
        if is_stated(self.tensors[result]):
            self.take_range(source, result)

    # ---- results

    def order(self) -> list[str]:
        """Return the names in the Parser's order.

        Depth first from the outputs; a layer stands as soon as all that it reads does, which is taken in the order in
        which those layers were made. Then the first input of more than two axes that is not in front goes there.
        """
        placed: dict[str, None] = {}
        for output in self.outputs:
            waiting = [self.writer(output)]
            while waiting:
                node = waiting[-1]
                if node is None or node.name in placed:
                    waiting.pop()
                    continue
                before = {w.name: w for t in node.inputs if (w := self.writer(t)) is not None and w.name not in placed}
                if before:
                    waiting.append(before[min(before, key=self.births.__getitem__)])
                else:
                    placed[node.name] = None
                    waiting.pop()
        names = [*placed, *(node.name for node in self.nodes if node.name not in placed)]
        inputs = (n for n in names[1:] if self.node(n).operator == INPUT)
        main = next((n for n in inputs if len(self.shape(self.node(n).outputs[0])) > 2), None)
        return names if main is None else [main, *(n for n in names if n != main)]

    def to_graph(self, name: str, inputs: Sequence[int]) -> Graph:
        """Return the graph, its tensors named by their layers.

        Args:
            name: of the graph.
            inputs: values, in the order that callers know.
        """
        nodes = [self.node(name) for name in self.order()]
        for t in (t for node in nodes for t in node.outputs if not self.uses(t)):
            self.unstate(t)
        tensors = list(self.tensors)
        for node in nodes:
            for port, t in enumerate(node.outputs):
                tensors[t] = replace(tensors[t], name=f"{node.name}_{port}")
            for t in (*node.inputs, *(node.intermediates or ())):
                if self.writer(t) is None:
                    tensors[t] = replace(tensors[t], name=f"{node.name}/{tensors[t].name.rpartition('/')[2]}")
        kept = [node for node in nodes if node.operator != INPUT]
        return Graph(tensors, kept, tuple(inputs), self.outputs, name)

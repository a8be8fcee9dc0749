"""Layers of Compass under rewriting: nodes by name, values by index, names of tensors only at the end.

A layer keeps its name while passes change what it is; a tensor is a value, whoever writes it. In the file a tensor has
the name of its layer and its port, which `to_graph` gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.converters.passes.rewrite import with_input
from tflq.graph import Array, Attributes, DType, Graph, Node, Tensor
from tflq.graph.attributes import Attribute
from tflq.quoting import compass_name

INPUT, CONSTANT = "input", "constant"


@dataclass
class Layers:
    """A graph of Compass's layers that passes change.

    Attributes:
        tensors: values; an index stays what it stands for.
        nodes: layer by name; an input of the graph is a layer without inputs.
        outputs: values.
        births: name -> place in the order in which the Parser makes its nodes; the order of the file follows from it.
        settings: name -> node of the source whose settings the layer has.
        stands_for: value that nothing writes any more -> the one that is read in its place.
        faults: whether passes do what the Parser does where it is wrong (faults.py).
        limits_of_pairs: names of CLIP and RELU6 that were a minimum and a maximum, which have no operands for limits.
    """

    tensors: list[Tensor] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    outputs: list[int] = field(default_factory=list)
    births: dict[str, int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    stands_for: dict[int, int] = field(default_factory=dict)
    faults: bool = False
    limits_of_pairs: set[str] = field(default_factory=set)
    _writers: dict[int, str] = field(default_factory=dict)
    _readers: dict[int, list[str]] = field(default_factory=dict)

    def name(self, wanted: str) -> str:
        """Return a name that no layer has: with _0, _1 behind it where it is taken."""
        base = name = compass_name(wanted) or "layer"
        number = 0
        while name in self.nodes:
            name, number = f"{base}_{number}", number + 1
        return name

    def put(self, node: Node) -> None:
        """Add a layer, or change the one of its name."""
        self.births.setdefault(node.name, len(self.births))
        old = self.nodes.get(node.name)
        for t in old.outputs if old else ():
            if self._writers.get(t) == node.name:
                del self._writers[t]
        self._writers.update(dict.fromkeys(node.outputs, node.name))
        self.nodes[node.name] = node
        self._readers.clear()

    def remove(self, name: str) -> None:
        """Take a layer away."""
        for t in self.nodes.pop(name).outputs:
            if self._writers.get(t) == name:
                del self._writers[t]
        self._readers.clear()

    def writer(self, t: int) -> Node | None:
        """Return the layer that writes a value."""
        name = self._writers.get(t)
        return None if name is None else self.nodes[name]

    def readers(self, t: int) -> list[Node]:
        """Return the layers that read a value, once for each time, and once more for each time it is an output."""
        if not self._readers:
            for node in self.nodes.values():
                for i in node.inputs:
                    self._readers.setdefault(i, []).append(node.name)
        return [self.nodes[name] for name in self._readers.get(t, ())]

    def uses(self, t: int) -> int:
        """Return how often a value is read, as an output of the graph too."""
        return len(self.readers(t)) + self.outputs.count(t)

    def only_reader(self, t: int) -> Node | None:
        """Return the layer that alone reads a value; None where several do or it is an output."""
        return self.readers(t)[0] if self.uses(t) == 1 and t not in self.outputs else None

    def shape(self, t: int) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.tensors[t].shape

    def constant(self, t: int) -> Array | None:
        """Return what a Constant layer or a layer's own constant holds; None for a computed value."""
        writer = self.writer(t)
        return self.tensors[writer.inputs[0] if writer is not None and writer.operator == CONSTANT else t].data

    def own(self, node: Node, key: str) -> Array:
        """Return a layer's own constant by its key."""
        (found,) = (self.tensors[t] for t in node.inputs if self.tensors[t].name.rpartition("/")[2] == key)
        assert found.data is not None
        return found.data

    def operands(self, node: Node) -> list[int]:
        """Return a layer's inputs without its own constants."""
        return [t for t in node.inputs if self.writer(t) is not None]

    def add_tensor(self, tensor: Tensor) -> int:
        """Add a value and return its index."""
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def add_constant(self, layer: str, key: str, data: Array) -> int:
        """Add a constant of a layer: float32, or the integers that it holds."""
        value = np.array(data, data.dtype if np.issubdtype(data.dtype, np.integer) else np.float32, order="C")
        value.setflags(write=False)
        return self.add_tensor(Tensor(f"{layer}/{key}", data.shape, DType.of(value.dtype), data=value))

    def add_constant_layer(self, wanted: str, data: Array, settings: str = "") -> int:
        """Add a Constant layer and return what it writes."""
        name = self.name(wanted)
        weights = self.add_constant(name, "weights", data)
        top = self.add_tensor(replace(self.tensors[weights], data=None))
        self.put(Node(CONSTANT, (weights,), (top,), name=name))
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
        result = Node(operator, (*inputs, *own), written, Attributes(keys or {}), node.name)
        self.put(result)
        return result

    def add(self, like: Node, wanted: str, operator: str, inputs: Sequence[int], top: int, **keys: Attribute) -> Node:
        """Add a layer with the settings of another one."""
        name = self.name(wanted)
        self.settings[name] = self.settings.get(like.name, "")
        node = Node(operator, tuple(inputs), (top,), Attributes(keys), name)
        self.put(node)
        return node

    def reshaped(self, t: int, shape: Iterable[int]) -> int:
        """Return a new value like another one, in another shape."""
        return self.add_tensor(replace(self.tensors[t], shape=tuple(shape), data=None))

    def insert_before(
        self, node: Node, position: int, operator: str, suffix: str, shape: Sequence[int], /, **keys: Attribute
    ) -> Node:
        """Put a layer between one input of a layer and it, named after the layer that writes the input.

        Returns:
            the layer with its new input.
        """
        source = node.inputs[position]
        writer = self.writer(source)
        assert writer is not None
        top = self.reshaped(source, shape)
        self.add(node, writer.name + suffix, operator, (source,), top, **keys)
        changed = with_input(node, position, top)
        self.put(changed)
        return changed

    def insert_after(self, node: Node, operator: str, suffix: str, shape: Sequence[int], /, **keys: Attribute) -> Node:
        """Let a layer write another shape, and put a layer behind it that writes what it wrote.

        Returns:
            the layer in front.
        """
        old, *others = node.outputs
        inner = self.reshaped(old, shape)
        changed = replace(node, outputs=(inner, *others))
        self.put(changed)
        self.add(node, node.name + suffix, operator, (inner,), old, **keys)
        return changed

    def redirect(self, old: int, new: int) -> None:
        """Let all readers of a value read another one."""
        for node in self.readers(old):
            inputs = tuple(new if t == old else t for t in self.nodes[node.name].inputs)
            self.put(replace(self.nodes[node.name], inputs=inputs))
        self.outputs = [new if t == old else t for t in self.outputs]
        self.stands_for[old] = new
        if self.tensors[new].range is None and self.writer(new) is not None:
            self.tensors[new] = replace(self.tensors[new], range=self.tensors[old].range)

    def prune(self) -> None:
        """Take away what no output needs; inputs stay."""
        reached, waiting = set[str](), [self.writer(t) for t in self.outputs]
        while waiting:
            node = waiting.pop()
            if node is not None and node.name not in reached:
                reached.add(node.name)
                waiting += [self.writer(t) for t in node.inputs]
        for name, node in list(self.nodes.items()):
            if name not in reached and node.operator != INPUT:
                self.remove(name)

    def order(self) -> list[str]:
        """Return the names in the Parser's order.

        Depth first from the outputs; a layer stands as soon as all that it reads does, which is taken in the order in
        which those layers were made. Then the first input of more than two axes that is not in front goes there.
        """
        found: dict[str, None] = {}
        for output in self.outputs:
            waiting = [self.writer(output)]
            while waiting:
                node = waiting[-1]
                if node is None or node.name in found:
                    waiting.pop()
                    continue
                before = {w.name: w for t in node.inputs if (w := self.writer(t)) is not None and w.name not in found}
                if before:
                    waiting.append(before[min(before, key=self.births.__getitem__)])
                else:
                    found[node.name] = None
                    waiting.pop()
        names = [*found, *(name for name, node in self.nodes.items() if name not in found)]
        inputs = (n for n in names[1:] if self.nodes[n].operator == INPUT)
        main = next((n for n in inputs if len(self.shape(self.nodes[n].outputs[0])) > 2), None)
        return names if main is None else [main, *(n for n in names if n != main)]

    def to_graph(self, name: str, inputs: Sequence[int]) -> Graph:
        """Return the graph, its tensors named by their layers.

        Args:
            name: of the graph.
            inputs: values, in the order that callers know.
        """
        nodes = [self.nodes[name] for name in self.order()]
        tensors = list(self.tensors)
        for node in nodes:
            for port, t in enumerate(node.outputs):
                tensors[t] = replace(tensors[t], name=f"{node.name}_{port}")
            for t in (*node.inputs, *(node.intermediates or ())):
                if self.writer(t) is None:
                    tensors[t] = replace(tensors[t], name=f"{node.name}/{tensors[t].name.rpartition('/')[2]}")
        kept = [node for node in nodes if node.operator != INPUT]
        return Graph(tensors, kept, tuple(inputs), tuple(self.outputs), name)

"""What a fault is planted in, and what a planted one is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.faults import device
from tflq.diagnosis.compare.isolated import constants_of, run_node

Values = dict[int, np.ndarray]


@dataclass
class Case:
    """A network of a target on some samples, sound: what faults change.

    Attributes:
        graph: lowered.
        inputs: of the graph, by tensor.
        sound: every computed tensor, dtype[S, *shape].
        rng: draws layers, channels and numbers.
    """

    graph: object
    inputs: Values
    rng: np.random.Generator
    sound: Values = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sound = self.play({})

    def play(self, faults: dict[int, Callable[[Values], np.ndarray]], inputs: Values | None = None) -> Values:
        """Run every node; those of `faults` by other functions of the values so far."""
        values = {**constants_of(self.graph), **(self.inputs if inputs is None else inputs)}
        count = len(next(iter(self.inputs.values())))
        found = {}
        for i, node in enumerate(self.graph.nodes):
            if all(self.graph.tensors[t].is_constant for t in node.outputs):
                continue
            made = {node.outputs[0]: faults[i](values)} if i in faults else run_node(node, values)
            for t, a in made.items():
                values[t] = a
                found[t] = np.ascontiguousarray(np.broadcast_to(a, (count, *a.shape[1:])))
        return found

    def pick(self, wanted: Callable[[int], bool]) -> int | None:
        """Draw a node."""
        found = [i for i, n in enumerate(self.graph.nodes) if n.outputs[0] in self.sound and wanted(i)]
        return int(self.rng.choice(found)) if found else None

    def out(self, i: int) -> int:
        return self.graph.nodes[i].outputs[0]

    def linear(self) -> tuple[int, device.Layer] | None:
        """Draw a linear layer that the device's numpy computes as the target does."""
        order = self.rng.permutation(len(self.graph.nodes)).tolist()
        for i in order:
            node = self.graph.nodes[i]
            t = node.inputs[0] if node.inputs else -1
            x = self.inputs.get(t, self.sound.get(t))
            if x is None or self.out(i) not in self.sound:
                continue
            layer = device.layer_of(self.graph, i, x)
            if layer is not None and np.array_equal(device.run(layer), self.sound[self.out(i)]):
                return i, layer
        return None


@dataclass(frozen=True)
class Planted:
    """A dump with a fault.

    Attributes:
        dump: by tensor.
        tensor: that must be named first.
        says: what one of the named causes must match, as a regular expression.
        inputs: what the network was really fed with is not in the dump.
    """

    dump: Values
    tensor: int
    says: str


Plant = Callable[[Case], Planted | None]

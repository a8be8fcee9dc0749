"""Layers over a sequence: the function of one step, and the loop that calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tflq.analysis.c99.words import stored_type
from tflq.graph import ABSENT, Array, Graph
from tflq.interpreter.registry import kernel, kernel_name

if TYPE_CHECKING:
    from tflq.analysis.c99.layer import Layer

SEQUENCES = ("unidirectional_sequence_lstm",)
"""Operators of input [B, T, I], or [T, B, I] with `time_major`, whose state is variable tensors."""


@dataclass(frozen=True)
class Step:
    """One step of one sequence; with `time_major`, of all sequences at once, as TFLite computes them.

    Attributes:
        graph: the layer's, with the shapes of one step.
        inputs: what it reads.
        sequences: how many are computed one after the other.
        steps: of each.
    """

    graph: Graph
    inputs: list[Array | None]
    sequences: int
    steps: int

    def loop(self, name: str, layer: Layer) -> str:
        """Return the function that calls `layer`, that of one step, for all of them.

        The variables' new values are memory that each step reads and writes: it gets a copy of what it reads.
        """
        head = re.search(rf"static void {layer.name}\(([^)]*)\)", layer.function)
        assert head is not None
        words = head[1].split(", ")
        names = [word.split("*")[1] for word in words]
        kept = dict(zip(layer.keeps, names[len(layer.arguments) :], strict=True))
        lines, before, given = [], [], []
        turn = f"(sequence * {self.steps} + step)" if self.sequences > 1 else "step"
        for t, own in (*zip(layer.arguments, names, strict=False), *kept.items()):
            size = self.graph.tensors[t].size
            is_state = t in kept
            place = f" + sequence * {size}" if is_state and self.sequences > 1 else f" + {turn} * {size}"
            place = "" if is_state and self.sequences == 1 else place
            if not is_state or own == kept[t]:
                given.append(own + place)
                continue
            kind = stored_type(self.graph.tensors[t].dtype.storage)
            lines.append(f"    static {kind} {own}_before[{size}];")
            before.append(f"        memcpy({own}_before, {kept[t]}{place}, sizeof {own}_before);")
            given.append(f"{own}_before")
            lines.append(f"    memcpy({kept[t]}, {own}, {self.sequences} * sizeof {own}_before);")
        loops = [f"for (int32_t step = 0; step < {self.steps}; step++) {{"]
        if self.sequences > 1:
            loops = [f"for (int32_t sequence = 0; sequence < {self.sequences}; sequence++) {{", *loops]
        pads = ["    " * (n + 1) for n in range(len(loops))]
        body = [*before, f"        {layer.name}({', '.join(given)});"]
        lines += [pad + loop for pad, loop in zip(pads, loops, strict=True)]
        lines += ["    " * (len(loops) - 1) + line for line in body]
        lines += [pad + "}" for pad in reversed(pads)]
        return "\n".join([f"static void {name}({', '.join(words)})", "{", *lines, "}"])


def step_of(graph: Graph, index: int, inputs: Sequence[Array | None]) -> Step | None:
    """Return one step of a node over a sequence, lowered for it; None for other nodes.

    Args:
        graph: lowered.
        index: of the node.
        inputs: what it reads for one sample, dtype[*shape].
    """
    node = graph.nodes[index]
    if node.operator not in SEQUENCES or node.arithmetic != "tflite":
        return None
    x, y = node.inputs[0], node.outputs[0]
    together = node.attributes.boolean("time_major", False)
    first, second = graph.tensors[x].shape[:2]
    batch, steps = (1, first) if together else (first, second)
    lead = (1, second) if together else (1, 1)
    tensors, given = list(graph.tensors), list(inputs)
    for t in (x, y):
        tensors[t] = replace(tensors[t], shape=(*lead, tensors[t].shape[-1]))
    for position, t in enumerate(node.inputs):
        values = given[position]
        if t == ABSENT or values is None:
            continue
        if tensors[t].is_variable:
            tensors[t] = replace(tensors[t], shape=(batch, tensors[t].size // batch))
            tensors[t] = replace(tensors[t], shape=(1, tensors[t].shape[1])) if batch > 1 else graph.tensors[t]
            given[position] = values.reshape(-1)[: tensors[t].size].reshape(tensors[t].shape)
        elif t == x:
            given[position] = values[: lead[0], : lead[1]]
    nodes = list(graph.nodes)
    one = replace(graph, tensors=tensors)
    params = kernel(node.arithmetic, kernel_name(node)).lower(node, one.operands(index))
    nodes[index] = replace(node, params=params)
    return Step(replace(one, nodes=nodes), given, batch, steps)

"""Builds LSTM graphs of every variant: integer, hybrid and float."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from tests.support.draw import affine
from tests.support.types import FLOAT32, INT8, INT16
from tflq.graph import ABSENT, Affine, Attribute, DType, Graph, GraphBuilder, Tensor

INT32 = DType.INT32


@dataclass(frozen=True)
class Lstm:
    """One LSTM.

    Attributes:
        batch: sequences.
        steps: of each; 0 for an input without an axis of time.
        inputs: I.
        cells: C.
        outputs: O; equal to C without projection.
        cifg: whether the input gate is coupled.
        peephole: whether gates see the cells.
        norm: whether gates are normalized.
        projection: whether outputs are projected.
        time_major: order of the axes.
        clip: of cells and projection; 0 for none.
        seed: of all values.
    """

    batch: int = 1
    steps: int = 4
    inputs: int = 5
    cells: int = 6
    outputs: int = 6
    cifg: bool = False
    peephole: bool = False
    norm: bool = False
    projection: bool = False
    time_major: bool = False
    clip: float = 0.0
    seed: int = 0


@st.composite
def lstms(draw: st.DrawFn, largest: int = 20, norms: bool = True) -> Lstm:
    cells = draw(st.integers(1, largest))
    projection = draw(st.booleans())
    return Lstm(
        draw(st.integers(1, 2)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, largest)),
        cells,
        draw(st.integers(1, cells)) if projection else cells,
        draw(st.booleans()),
        draw(st.booleans()),
        norms and draw(st.booleans()),
        projection,
        draw(st.booleans()),
        draw(st.sampled_from([0.0, 0.3])),
        draw(st.integers(0, 2**32 - 1)),
    )


class Values:
    """Draws constants of one kind of LSTM: "int8", "float", or "hybrid"."""

    def __init__(self, b: GraphBuilder, kind: str, seed: int) -> None:
        self.b, self.kind = b, kind
        self.rng = np.random.default_rng(seed)

    def matrix(self, name: str, shape: tuple[int, ...], reach: float = 0.6) -> int:
        if self.kind == "float":
            return self.b.constant(name, self.rng.normal(0, reach, shape).astype(np.float32))
        codes = self.rng.integers(-127, 128, shape).astype(np.int8)
        return self.b.constant(name, codes, affine(INT8, reach * self.rng.uniform(0.7, 1.3) / 127))

    def vector(self, name: str, size: int, reach: float) -> int:
        """Weights of a peephole or a normalization."""
        if self.kind == "int8":
            codes = self.rng.integers(-32767, 32768, size).astype(np.int16)
            return self.b.constant(name, codes, affine(INT16, reach / 32767))
        return self.b.constant(name, self.rng.normal(0, reach, size).astype(np.float32))

    def bias(self, name: str, size: int, scale: float) -> int:
        if self.kind == "int8":
            codes = self.rng.normal(0, 0.5 / scale, size).astype(np.int32)
            return self.b.constant(name, codes, Affine.per_tensor(np.float32(scale), 0, 32))
        return self.b.constant(name, self.rng.normal(0, 0.5, size).astype(np.float32))


def lstm_graph(operator: str, how: Lstm, kind: str, **attributes: Attribute) -> Graph:
    b = GraphBuilder(operator)
    values = Values(b, kind, how.seed)
    rng = values.rng
    integer = kind == "int8"
    axes = (how.steps, how.batch) if how.time_major else (how.batch, how.steps)
    lead = axes if how.steps else (how.batch,)
    dtype = INT8 if integer else FLOAT32
    x_affine = affine(INT8, 1 / 64, int(rng.integers(-20, 20))) if integer else None
    y_affine = affine(INT8, 1 / 128, int(rng.integers(-20, 20))) if integer else None
    hidden = affine(INT8, 1 / 128, int(rng.integers(-9, 9))) if how.projection and integer else y_affine
    x = b.input("x", (*lead, how.inputs), dtype, x_affine)
    gates = ["i", "f", "c", "o"]
    absent = {"i"} if how.cifg else set()
    weights = [ABSENT if g in absent else values.matrix(f"w{g}", (how.cells, how.inputs)) for g in gates]
    recurrent = [ABSENT if g in absent else values.matrix(f"r{g}", (how.cells, how.outputs)) for g in gates]
    peep = [ABSENT if g in absent or not how.peephole else _peephole(values, g, how.cells) for g in "ifo"]
    biases = [ABSENT if g in absent else values.bias(f"b{g}", how.cells, 1e-4) for g in gates]
    projection = values.matrix("p", (how.outputs, how.cells)) if how.projection else ABSENT
    projection_bias = values.bias("pb", how.outputs, 1e-4) if how.projection and rng.integers(2) else ABSENT
    states = [
        b.variable("h", (how.batch, how.outputs), dtype, y_affine),
        b.variable("c", (how.batch, how.cells), INT16 if integer else FLOAT32,
                   affine(INT16, 2.0 ** int(rng.integers(-15, -8))) if integer else None),
    ]  # fmt: skip
    norms = [ABSENT if g in absent or not how.norm else values.vector(f"n{g}", how.cells, 1.0) for g in gates]
    operands = [x, *weights, *recurrent, *peep, *biases, projection, projection_bias, *states, *norms]
    y = b.tensor("y", (*lead, how.outputs), dtype, y_affine)
    inner = tuple(_intermediates(b, hidden)) if integer else None
    sequence = {"time_major": how.time_major} if how.steps else {"kernel_type": "full"}
    b.node(
        operator, operands if how.norm else operands[:20], [y], 3, inner,
        **{"fused_activation_function": "tanh", "cell_clip": how.clip, "proj_clip": how.clip, **sequence, **attributes},
    )  # fmt: skip
    return b.build([y])


def _peephole(values: Values, gate: str, cells: int) -> int:
    return values.matrix(f"v{gate}", (cells,)) if values.kind == "hybrid" else values.vector(f"v{gate}", cells, 0.5)


def _intermediates(b: GraphBuilder, hidden: Affine | None) -> list[int]:
    gates = [b.tensor(f"g{i}", (0,), INT16, affine(INT16, 2.0**-12 * (1 + i / 4))) for i in range(4)]
    return [*gates, b.tensor("hidden", (0,), INT8, hidden)]


def eight_bit_graph(how: Lstm) -> Graph:
    """LSTM of int8 with twelve intermediates: normalized, projected, a cell state of scale 2^-15."""
    how = replace(how, norm=True, projection=True, steps=0, time_major=False)
    graph = lstm_graph("lstm", how, "int8")
    rng = np.random.default_rng(how.seed)
    node = graph.nodes[0]
    state = node.inputs[19]
    graph.tensors[state] = replace(graph.tensors[state], quantization=affine(INT16, 2.0**-15))
    inputs = list(node.inputs)
    if inputs[17] == ABSENT:
        inputs[17] = len(graph.tensors)
        codes = rng.integers(-9999, 9999, how.outputs).astype(np.int32)
        graph.tensors.append(Tensor("pb", codes.shape, INT32, Affine.per_tensor(np.float32(1e-4), 0, 32), data=codes))
    first = len(graph.tensors)
    for i in range(12):
        q = affine(INT8 if i % 3 else INT16, float(rng.uniform(0.5, 2)) * (0.02 if i % 3 else 2.0**-12),
                   int(rng.integers(-20, 20)) if i % 3 else 0)  # fmt: skip
        graph.tensors.append(Tensor(f"inner{i}", (0,), INT8 if i % 3 else INT16, q))
    graph.nodes[0] = replace(node, inputs=tuple(inputs), intermediates=tuple(range(first, first + 12)))
    return graph

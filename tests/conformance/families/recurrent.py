"""Layers with state: LSTM, RNN; samples alone or as a stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.conformance.case import Case, graph_case
from tests.conformance.cells import Cell
from tests.conformance.draws import FUSED, Draw, affine, flag, numbers, pick, rng_of, whole
from tests.interpreter.tflite.test_bidirectional_sequence_lstm import graph_of as bidirectional_graph
from tests.interpreter.tflite.test_bidirectional_sequence_rnn import graph_of as rnn_both_ways_graph
from tests.interpreter.tflite.test_rnn import rnn_graph
from tests.support.lstm import lstm_graph, lstms
from tflq.graph import Affine, DType, Graph, GraphBuilder


def _kind(cell: Cell) -> str:
    if cell.is_quantised:
        return "int8"
    return "float" if cell.kind.weights is None else "hybrid"


def _run(draw: Draw, graph: Graph) -> Case:
    inputs = [numbers(draw, graph.tensors[t].dtype, graph.tensors[t].shape, 4) for t in graph.inputs]
    return graph_case(graph, inputs, str(pick(draw, ["independent", "stream"])))


def _changes(draw: Draw, cell: Cell) -> dict[str, bool]:
    return {"asymmetric_quantize_inputs": flag(draw)} if cell.kind.weights is not None else {}


def lstm(draw: Draw, cell: Cell) -> Case:
    """LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM; real cells fill registers, so that no libm enters."""
    how = draw(lstms())
    if cell.operator == "lstm":
        how = replace(how, steps=0, time_major=False)
    if not cell.is_quantised:
        cells = -(-how.cells // 4) * 4
        how = replace(how, cells=cells, outputs=how.outputs if how.projection else cells)
    return _run(draw, lstm_graph(cell.operator, how, _kind(cell), **_changes(draw, cell)))


def basic(draw: Draw, cell: Cell) -> Case:
    """LSTM's basic cell of uint8, whose state is int16 and goes in and out as a tensor."""
    batch, inputs, units = whole(draw, 1, 3), whole(draw, 1, 12), whole(draw, 1, 8)
    b, rng = GraphBuilder("basic"), rng_of(draw)
    codes, state = affine(cell.dtype, 1 / 128, 128), affine(DType.INT16, 2.0**-11)
    weights = affine(cell.dtype, float(rng.uniform(0.002, 0.02)), int(rng.integers(100, 156)))
    bias = Affine.per_tensor(np.float32(weights.scale[0] / 128), 0, 32)
    operands = [
        b.input("x", (batch, inputs), cell.dtype, codes),
        b.input("h", (batch, units), cell.dtype, codes),
        b.constant("w", rng.integers(0, 256, (4 * units, inputs + units)).astype(np.uint8), weights),
        b.constant("b", rng.integers(-9999, 9999, 4 * units).astype(np.int32), bias),
        b.input("c", (batch, units), DType.INT16, state),
    ]
    outputs = [
        b.tensor("h2", (batch, units), cell.dtype, codes),
        b.tensor("c2", (batch, units), DType.INT16, state),
        b.tensor("together", (batch, inputs + units), cell.dtype, codes),
        b.tensor("gates", (batch, 4 * units), DType.INT16, affine(DType.INT16, 2.0**-12)),
    ]
    b.node("lstm", operands, outputs, 2, None, kernel_type="basic", fused_activation_function="tanh")
    return _run(draw, b.build(outputs[:2]))


def rnn(draw: Draw, cell: Cell) -> Case:
    """RNN and UNIDIRECTIONAL_SEQUENCE_RNN."""
    batch, steps, inputs, units = (whole(draw, 1, n) for n in (3, 5, 40, 20))
    changes: dict[str, object] = {**_changes(draw, cell), "fused_activation_function": pick(draw, [*FUSED[:3], "tanh"])}
    shape: tuple[int, ...] = (batch, inputs)
    if cell.operator != "rnn":
        changes["time_major"] = flag(draw)
        shape = (steps, batch, inputs) if changes["time_major"] else (batch, steps, inputs)
    return _run(draw, rnn_graph(cell.operator, _kind(cell), shape, units, whole(draw, 0, 999), **changes))


def rnn_both_ways(draw: Draw, cell: Cell) -> Case:
    """BIDIRECTIONAL_SEQUENCE_RNN."""
    time_major, merge = flag(draw), flag(draw)
    changes = _changes(draw, cell)
    several = not (time_major and merge) or cell.kind.weights is None or changes["asymmetric_quantize_inputs"]
    batch, steps, inputs = whole(draw, 1, 3) if several else 1, whole(draw, 1, 4), whole(draw, 1, 20)
    shape = (steps, batch, inputs) if time_major else (batch, steps, inputs)
    options = {
        "time_major": time_major,
        "merge_outputs": merge,
        "fused_activation_function": pick(draw, ["relu", "tanh"]),
    }
    graph = rnn_both_ways_graph(
        _kind(cell), shape, pick(draw, [None, "added", "own"]), whole(draw, 0, 999), **options, **changes
    )
    return _run(draw, graph)


def both_ways(draw: Draw, cell: Cell) -> Case:
    """BIDIRECTIONAL_SEQUENCE_LSTM."""
    time_major, merge, cifg, peephole = (flag(draw) for _ in range(4))
    batch = whole(draw, 1, 3) if time_major or not merge else 1
    steps, inputs = whole(draw, 1, 4), whole(draw, 1, 20)
    shape = (steps, batch, inputs) if time_major else (batch, steps, inputs)
    second = pick(draw, [None, "added", "own"])
    graph = bidirectional_graph(
        _kind(cell), shape, time_major, merge, second, cifg, peephole, whole(draw, 0, 999), **_changes(draw, cell)
    )
    return _run(draw, graph)

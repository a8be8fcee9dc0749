"""Layers with state: LSTM, RNN; samples alone or as a stream."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.case import Case, graph_case
from tests.conformance.cells import Cell
from tests.conformance.draws import FUSED, Draw, flag, numbers, pick, whole
from tests.interpreter.tflite.test_bidirectional_sequence_lstm import graph_of as bidirectional_graph
from tests.interpreter.tflite.test_bidirectional_sequence_rnn import graph_of as rnn_both_ways_graph
from tests.interpreter.tflite.test_lstm import basic_float_graph, basic_graph
from tests.interpreter.tflite.test_rnn import rnn_graph
from tests.support.lstm import eight_bit_graph, lstm_graph, lstms
from tflq.graph import Graph


def _kind(cell: Cell) -> str:
    if cell.is_quantized:
        return "int8"
    return "float" if cell.kind.weights is None else "hybrid"


def _run(draw: Draw, graph: Graph) -> Case:
    inputs = [numbers(draw, graph.tensors[t].dtype, graph.tensors[t].shape, 4) for t in graph.inputs]
    return graph_case(graph, inputs, str(pick(draw, ["independent", "stream"])))


def _changes(draw: Draw, cell: Cell) -> dict[str, bool]:
    return {"asymmetric_quantize_inputs": flag(draw)} if cell.kind.weights is not None else {}


def lstm(draw: Draw, cell: Cell) -> Case:
    """LSTM, with the basic cell of floats, and UNIDIRECTIONAL_SEQUENCE_LSTM; real cells fill registers: no libm."""
    if cell.operator == "lstm" and _kind(cell) == "float" and flag(draw):
        batch, inputs, registers = (whole(draw, 1, n) for n in (3, 12, 3))
        return _run(draw, basic_float_graph(whole(draw, 0, 9999), batch, inputs, 4 * registers, flag(draw)))
    how = draw(lstms())
    if cell.operator == "lstm":
        how = replace(how, steps=0, time_major=False)
        if cell.is_quantized and flag(draw):
            return _run(draw, eight_bit_graph(how))
    if not cell.is_quantized:
        cells = -(-how.cells // 4) * 4
        how = replace(how, cells=cells, outputs=how.outputs if how.projection else cells)
    return _run(draw, lstm_graph(cell.operator, how, _kind(cell), **_changes(draw, cell)))


def basic(draw: Draw, cell: Cell) -> Case:
    """LSTM's basic cell of uint8, whose state is int16, a variable or an input."""
    sizes = (whole(draw, 1, n) for n in (3, 12, 8))
    return _run(draw, basic_graph(whole(draw, 0, 9999), *sizes, flag(draw)))


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

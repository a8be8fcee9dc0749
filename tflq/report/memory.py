"""The table of memory: activations over the order of execution."""

from __future__ import annotations

from tflq.graph import Graph
from tflq.graph.arena import arena_of
from tflq.report.svg import Chart, Mark, area
from tflq.report.table import Table, identifier, number
from tflq.units import size


def memory_table(graph: Graph) -> Table:
    """Return the tensors that are alive at the peak, with a drawing of the sizes over time."""
    arena = arena_of(graph)
    peak = arena.peak_operator
    if peak is None:
        return Table()
    marks = [
        Mark(live, f"{number} {graph.nodes[number].name}: {size(live)}", live == arena.peak_bytes)
        for number, live in enumerate(arena.live_bytes)
    ]
    caption = (
        f"Activations that are alive while each operator runs: at most {size(arena.peak_bytes)}, at operator {peak} "
        f"({graph.nodes[peak].name}); an arena of {size(arena.planned_bytes)} holds them."
    )
    columns = (
        identifier("", "alive at the peak", lambda b: graph.tensors[b.tensor].name),
        number("", "size", "size", lambda b: size(b.size)),
        number("", "offset in the arena", "offset"),
    )
    drawing = Chart(area(marks, "bytes", "operators in order of execution"), caption)
    return Table("", columns, arena.alive_at(peak), "Memory over time", charts=lambda: [drawing], terminal="never")

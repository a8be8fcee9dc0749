"""The section on memory: activations over the order of execution."""

from __future__ import annotations

from tflq.graph import Graph
from tflq.graph.arena import arena_of
from tflq.report.page import Chart, Section, Table
from tflq.report.svg import Mark, area
from tflq.units import size


def memory_section(graph: Graph) -> Section:
    """Draw who is alive when, and name the tensors of the peak."""
    arena = arena_of(graph)
    if arena.peak_operator is None:
        return Section("Memory", [])
    marks = [
        Mark(live, f"{number} {graph.nodes[number].name}: {size(live)}", live == arena.peak_bytes)
        for number, live in enumerate(arena.live_bytes)
    ]
    caption = (
        f"Activations that must be there while each operator runs: at most {size(arena.peak_bytes)}, at operator "
        f"{arena.peak_operator} ({graph.nodes[arena.peak_operator].name}); an arena of {size(arena.planned_bytes)} "
        f"holds them."
    )
    rows = [(graph.tensors[b.tensor].name, size(b.size), str(b.offset)) for b in arena.alive_at(arena.peak_operator)]
    return Section(
        "Memory over time",
        [
            Chart(area(marks, "bytes", "operators in order of execution"), caption),
            Table(("alive at the peak", "size", "offset in the arena"), rows, ("size", "offset in the arena")),
        ],
    )

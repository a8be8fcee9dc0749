"""What a network costs on GAP9: cycles, memory, energy, each figure with what it is worth (docs/gap9.md, 21)."""

from __future__ import annotations

from tflq.converters.gap9.estimate.network import estimate_graph as estimate_graph

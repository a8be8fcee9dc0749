"""A quantised model as a float model: its float view, with ranges, ready to be written."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.passes.requirements import float_network
from tflq.graph import Model, pruned, with_graphs


def dequantized(model: Model) -> Model:
    """Return the model with the float view of each graph (tflq.graph.float_view), for TFLite to run.

    Each activation keeps the range that its quantisation reached, as minimum and maximum: the float file can be
    quantised again without calibration. Inputs and outputs stay in their order; signatures follow them.

    Raises:
        GraphError: a constant whose scales do not fit its shape.
    """
    graphs = [pruned(float_network(graph)) for graph in model.graphs]
    return replace(with_graphs(model, graphs), extra=None)

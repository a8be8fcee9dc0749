"""What stands in the way, all at once: operators that the IR writer does not know, weights without an int8 form."""

from __future__ import annotations

from tflq.converters.openvino.emit.translate import unsupported
from tflq.converters.openvino.options import LayerOptions
from tflq.converters.openvino.passes.operators import FILTERS
from tflq.converters.openvino.passes.ranges import is_on_codes
from tflq.converters.openvino.passes.weights import weight_codes
from tflq.converters.passes.requirements import float_network
from tflq.converters.settings import Options
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Graph


def problems_of(graph: Graph, options: Options[LayerOptions]) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, or whose weights no arithmetic can use.

    Raises:
        GraphError: constants whose scales do not fit their shapes.
    """
    network = float_network(graph)
    found = list(unsupported(network))
    for index, node in enumerate(network.nodes):
        if node.operator not in FILTERS or not is_on_codes(node, options) or len(node.inputs) < 2:
            continue
        t = node.inputs[1]
        layer = options.of(node.name)
        try:
            weight_codes(graph.tensors[t], network.tensors[t], FILTERS[node.operator], layer)
        except (GraphError, UnsupportedError) as error:
            line = f"{network.where(index)}: {error}"
            if not any(known.startswith(f"{network.where(index)}:") for known in found):
                found.append(line)
    return tuple(found)

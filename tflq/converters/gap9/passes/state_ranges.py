"""Every activation gets the real range that its type will be chosen from."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.affine_types import file_range, repaired
from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.graph import ABSENT, Graph


def state_ranges(graph: Graph) -> Graph:
    """Return the graph with a repaired `range` on each computed tensor that holds real numbers.

    The file's min/max (float32) if it states them, else the whole type's range from scale and zero point (float64).

    Raises:
        UnsupportedError: tensors without either: a float model, or one that is quantised in part; all are counted.
    """
    stated = graph.copy()
    missing = []
    computed = dict.fromkeys([*graph.inputs, *(t for node in graph.nodes for t in node.outputs if t != ABSENT)])
    for index in computed:
        tensor = graph.tensors[index]
        found = file_range(tensor)
        if found is not None:
            stated.tensors[index] = replace(tensor, range=repaired(found))
        elif tensor.dtype.is_floating or tensor.quantisation is not None:
            missing.append(tensor.name)
    way_out = "GAP9 takes ranges from the file; give a model that is quantised to int8, or calibrate this one first"
    refuse_missing_ranges(missing, len(computed), way_out)
    return stated

"""Which operators of a float TFLite graph the target cannot take, and why: all at once, each with its way out."""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu.descriptor import Source
from tflq.converters.aipu.faults import LIMITS
from tflq.converters.aipu.file_passes import fold_constants
from tflq.converters.aipu.operators.sources import SOURCES, source_of
from tflq.converters.passes.requirements import no_mapping
from tflq.graph import ABSENT, DType, Graph, Node


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, in order of the file."""
    known = fold_constants(graph).keys()
    computed = ((i, node) for i, node in enumerate(graph.nodes) if not known >= set(node.outputs))
    reasons = ((graph.where(i), _reason(graph, node)) for i, node in computed)
    return tuple(f"{where}: {reason}" for where, reason in reasons if reason)


def _reason(graph: Graph, node: Node) -> str:
    source = source_of(node)
    if source is None:
        return no_mapping(node, "no mapping to Zhouyi")
    fused = node.attributes.text("fused_activation_function", "none")
    if fused not in ("none", *SOURCES):
        return f"fused activation {fused} has no mapping to Zhouyi; make it an operator that has one"
    return (
        _operands_reason(graph, node, source)
        or _constants_reason(graph, node, source)
        or (source.refuse(graph, node) if source.refuse else "")
    )


def _constants_reason(graph: Graph, node: Node, source: Source) -> str:
    """Say which constant operand holds whole numbers that no Constant layer can; limits may, nothing reaches them."""
    for place, t in enumerate(() if node.operator in LIMITS else node.inputs):
        data = None if t == ABSENT or place in source.constants else graph.tensors[t].data
        if data is None or data.size == 0 or not np.issubdtype(data.dtype, np.floating):
            continue
        largest = float(np.max(np.abs(np.asarray(data, np.float64))))
        if largest > DType.INT32.maximum and np.array_equal(data, np.rint(data)):
            return f"its input {place} holds {largest:g}; allowed are whole numbers of 32 bits: take it out"
    return ""


def _operands_reason(graph: Graph, node: Node, source: Source) -> str:
    """Say which operand is missing, or has a type, a shape or a place in the graph that the layer cannot have."""
    count = max(source.operands, *(place + 1 for place in source.constants or (0,)))
    given = (*node.inputs, *(ABSENT,) * count)[:count]
    if ABSENT in given:
        return f"its input {given.index(ABSENT)} is missing; the operator has {count}"
    for place in source.constants:
        if not graph.tensors[node.inputs[place]].is_constant:
            return f"its input {place} is computed at run time; allowed is a constant"
    x = graph.tensors[node.inputs[source.data]]
    if not source.any_type and x.dtype is not DType.FLOAT32:
        return f"its input is {x.dtype.value}; allowed are real numbers"
    if source.is_image and len(x.shape) != 4:
        return f"its input has the shape {x.shape}; allowed are 4 axes"
    return ""

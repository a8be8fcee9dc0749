"""A float TFLite graph -> the graph of Compass's layers, as the Compass Parser maps them (docs/aipu.md, 6)."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.aipu.fusions import RECTIFIED, Fusion, find_fusions
from tflq.converters.aipu.operators import FUSIONS, SOURCES
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.translation import Translation
from tflq.graph import Graph, validate
from tflq.quoting import compass_word


def translate(source: Graph, name: str) -> Graph:
    """Return the graph of Compass's layers; ranges come along.

    Args:
        source: float, with the operators that `SOURCES` names, and nothing that `check` refuses.
        name: of the model.
    """
    work = Translation(source, Graph([], [], (), (), name))
    layers = {f"{layer}_0": layer for layer in (work.input(t) for t in source.inputs)}
    work.graph.inputs = tuple(work.places[t] for t in source.inputs)
    fusions = find_fusions(source)
    for index, node in enumerate(source.nodes):
        fusion = fusions.get(index)
        if fusion is None:
            SOURCES[node.operator].translate(work, node)
        elif fusion.place == index:
            (_rectified if fusion.kind == RECTIFIED else FUSIONS[fusion.kind])(work, fusion)
    work.graph.outputs = tuple(work.operand(t) for t in source.outputs)
    order = (*layers.values(), *(node.name for node in work.graph.nodes))
    work.graph.extra = Origin(compass_word(name), layers, order, work.sources(), work.settings)
    validate(work.graph, "Compass layers")
    return work.graph


def _rectified(work: Translation, fusion: Fusion) -> None:
    """Add the layer of the first node with the second, a rectifier, fused."""
    first, last = (work.source.nodes[n] for n in fusion.nodes)
    work.rename(last.outputs[0], first.outputs[0])
    attributes = first.attributes.updated(fused_activation_function=last.operator)
    SOURCES[first.operator].translate(work, replace(first, outputs=last.outputs, attributes=attributes))

"""A float TFLite graph -> the graph of Compass's layers, as the Compass Parser maps them.

Source: docs/rules/aipu/compass_ir.md.
"""

from __future__ import annotations

import numpy as np

from tflq.converters.aipu.faults import name_wrong_stacks, remove_unreached_limits, with_faults
from tflq.converters.aipu.file_passes import (
    cut_ranges,
    fold_constants,
    name_cut_ranges,
    rectify_by_name,
    split_activations,
)
from tflq.converters.aipu.front_end import PARSER
from tflq.converters.aipu.operators.sources import source_of
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.stated_ranges import is_quantized_file, read_as_float
from tflq.converters.aipu.translation import Translation
from tflq.graph import Graph, float_view, pruned, validate
from tflq.graph.operators import CONVERSIONS
from tflq.graph.rewriting import run_passes
from tflq.quoting import compass_word


def translate(source: Graph, name: str, faults: bool = False) -> Graph:
    """Return the graph of Compass's layers; ranges come along.

    Args:
        source: Float graph, or quantized one with inferred shapes, that `check` accepts.
        name: of the model.
        faults: whether the Parser's faults are made, too (faults.py).
    """
    wrong: dict[int, tuple[str, float]] = {}
    is_quantized = is_quantized_file(source)
    if is_quantized:
        source = read_as_float(source)
    departures = name_cut_ranges(source) if is_quantized and not faults else {}
    if faults:
        source, wrong = with_faults(cut_ranges(source) if is_quantized else source)
    known = fold_constants(float_view(source))
    work = Translation(split_activations(rectify_by_name(source, faults), is_quantized))
    work.layers.is_quantized = is_quantized
    for t in source.inputs:
        work.input(t)
    for index, node in enumerate(work.source.nodes):
        work.current = index
        if node.outputs[0] in wrong:
            (t,), (suffix, value) = node.outputs, wrong[node.outputs[0]]
            data = np.full(work.shape(t), value, np.float32)
            work.places[t] = work.layer_of_constant(f"{work.name_of(t)}{suffix}", data)
            continue
        if node.operator in CONVERSIONS:
            work.append(node, node.operator, {})  # an Identity of float32, which the Parser removes later
            continue
        if not known.keys() >= set(node.outputs):
            rule = source_of(node)
            assert rule is not None
            rule.translate(work, node)
            continue
        for t in node.outputs:
            work.places[t] = work.layer_of_constant(work.name_of(t), known[t])
    layers = work.layers
    layers.faults = faults
    layers.set_outputs([work.operand(t) for t in source.outputs])
    if not faults:
        layers.departures.update({**departures, **name_wrong_stacks(source)})
        remove_unreached_limits(layers)
    run_passes(layers, PARSER, owner="aipu")
    order = layers.order()
    inputs = [work.places[t] for t in source.inputs]
    graph = layers.to_graph(name, inputs)
    sources = {graph.tensors[new].name: old for new, old in work.sources(len(source.tensors)).items()}
    graph = pruned(graph)
    present = {tensor.name for tensor in graph.tensors}
    graph.extra = Origin(
        compass_word(name),
        {graph.tensors[t].name: graph.tensors[t].name.removesuffix("_0") for t in graph.inputs},
        tuple(order),
        {tensor: t for tensor, t in sources.items() if tensor in present},
        {layer: node for layer, node in layers.settings.items() if layer in layers and node},
        departures=dict(layers.departures),
    )
    validate(graph, "Compass layers")
    return graph

"""Faults of the Compass tools, which tflq repeats only on request (docs/rules/aipu/compass_ir.md).

The Parser takes two outputs of one Split for the same value: a * b becomes a Square of a, a - b and (a - b)^2 a
Constant of zeros, a / b one of ones; other operators read both. tflq computes what the model says, and names such
layers; with `parser_faults=true` it makes the Parser's files.

It keeps a minimum or maximum by a number that 32 bits do not hold, as Keras' UnitNormalization writes it. The Optimizer
brings both sides to one scale, in which nothing is left of the other side: the result is 0. tflq leaves such a layer
out, which nothing reaches, and names it; with `parser_faults=true` it stays.

It takes a rectifier into TANH or ELU in front of it, whose layer has no place for it, so that it is lost. tflq keeps
and names it; with `parser_faults=true` it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.passes.activations import RECTIFIERS, loses_rectifier
from tflq.converters.aipu.passes.layers import Layers
from tflq.converters.passes.rewrite import with_attributes
from tflq.errors import TflqError
from tflq.graph import DType, Graph, float_view
from tflq.graph.operators import Trait, with_traits
from tflq.interpreter.execution.settle import settle
from tflq.interpreter.kernels.aipu.eltwise import EltwiseParams, forgets_scale
from tflq.interpreter.kernels.aipu.scales import scale_of
from tflq.quoting import compass_name

PARSER_FAULTS = "parser_faults"
"""Setting: make the graph that the Parser makes where it is wrong."""

_FOLDED = {"sub": ("", 0.0), "squared_difference": ("_pow", 0.0), "div": ("", 1.0)}
"""Operator -> what the Constant's name ends in, and its value."""

LIMITS = with_traits(Trait.EXTREME)
_LEFT_OUT = (
    "left out, because no value reaches its limit; the Optimizer, whose 32 bits do not hold the limit, computes 0: "
    f"{PARSER_FAULTS}=true gives its files"
)
_SQUARED = ("mul",)
_SPLITS = ("split", "split_v")


def with_faults(source: Graph) -> tuple[Graph, dict[int, tuple[str, float]]]:
    """Return a TFLite graph whose products read one output of a Split twice, and the tensors that are constant.

    Returns:
        The graph; tensor -> what the name of its Constant ends in, and the value.
    """
    result, folded = source.copy(), dict[int, tuple[str, float]]()
    for index in _of_one_split(source):
        node = source.nodes[index]
        if node.operator in _SQUARED:
            result.nodes[index] = replace(node, inputs=(node.inputs[0],) * 2)
        elif node.operator in _FOLDED:
            folded[node.outputs[0]] = _FOLDED[node.operator]
    return _with_wrong_stacks(result), folded


def find_wrong_stacks(source: Graph) -> dict[int, int]:
    """Return the PACK nodes with a negative axis, which the Parser counts in the rank of the inputs: node -> axis."""
    packs = ((i, node) for i, node in enumerate(source.nodes) if node.operator == "pack")
    axes = ((i, node.attributes.integer("axis"), len(source.tensors[node.inputs[0]].shape)) for i, node in packs)
    return {i: axis % rank for i, axis, rank in axes if axis < 0 and rank}


def _with_wrong_stacks(source: Graph) -> Graph:
    """Return the graph with the Parser's axes and shapes; the graph itself if its shapes then contradict."""
    wrong = find_wrong_stacks(source)
    if not wrong:
        return source
    result = source.copy()
    for i, axis in wrong.items():
        result.nodes[i] = with_attributes(source.nodes[i], axis=axis)
    try:
        shapes = [tensor.shape for tensor in settle(float_view(result)).graph.tensors]
    except TflqError:
        return source
    for t, shape in enumerate(shapes[: len(source.tensors)]):
        if not source.tensors[t].is_constant:
            result.tensors[t] = replace(result.tensors[t], shape=shape)
    return result


def name_wrong_stacks(source: Graph) -> dict[str, str]:
    """Return the layers of PACK that the Parser stacks along another axis: name -> both axes, in words."""
    stacks = {}
    for i, axis in find_wrong_stacks(source).items():
        node = source.nodes[i]
        rank = len(source.tensors[node.inputs[0]].shape) + 1
        given = node.attributes.integer("axis")
        stacks[compass_name(source.tensors[node.outputs[0]].name)] = (
            f"stacked along axis {given % rank}; the Parser counts axis {given} in the rank of the inputs and stacks "
            f"along axis {axis}: write the axis as {given % rank}; {PARSER_FAULTS}=true gives its files"
        )
    return stacks


def remove_unreached_limits(layers: Layers) -> None:
    """Remove minima and maxima by constants beyond 32 bits, and note each one with a consumer."""
    for node in layers.nodes_of(*LIMITS):
        sides = [layers.constant(t) for t in node.inputs]
        for place, side in enumerate(sides):
            other = node.inputs[1 - place]
            if side is None or layers.shape(other) != layers.shape(node.outputs[0]):
                continue
            limits = np.asarray(side, np.float64) * (1 if node.operator == "minimum" else -1)
            if (limits > DType.INT32.maximum).all() and layers.uses(node.outputs[0]):
                layers.redirect(node.outputs[0], other)
                layers.departures[node.name] = _LEFT_OUT
    layers.remove_dead()


def faults_of(graph: Graph) -> Mapping[str, str]:
    """Return the layers of which the tools make others than a quantized graph has: name -> what they make."""
    found = dict(graph.extra.departures) if isinstance(graph.extra, Origin) else {}
    for node in (graph.nodes[index] for index in _of_one_split(graph)):
        method = str(node.attributes.get("method", node.operator)).lower()
        if method in (*_SQUARED, *_FOLDED):
            made = f"a Constant of {_FOLDED[method][1]:g}" if method in _FOLDED else "a Square of the first"
            found[node.name] = (
                f"computed as the model says; the Parser takes two outputs of a Split for one and makes {made} of it: "
                f"{PARSER_FAULTS}=true gives its files"
            )
    writers = {t: node for node in graph.nodes for t in node.outputs}
    readers = graph.consumers()
    for node in graph.nodes:
        before = writers.get(node.inputs[0]) if node.attributes.get("method") in RECTIFIERS else None
        if before is not None and before.operator == "transpose" and len(readers[before.outputs[0]]) == 1:
            before = writers.get(before.inputs[0])
        if before is None or not loses_rectifier(before) or len(readers[before.outputs[0]]) != 1:
            continue
        if before.outputs[0] not in graph.outputs:
            function = str(before.attributes["method"])
            found[node.name] = f"stays; the Parser loses it behind {function}: {PARSER_FAULTS}=true gives its files"
    return found


def _of_one_split(graph: Graph) -> list[int]:
    """Return the nodes whose two inputs are different outputs of one Split."""
    splits = {t: index for index, node in enumerate(graph.nodes) if node.operator in _SPLITS for t in node.outputs}
    pairs = [(index, node.inputs) for index, node in enumerate(graph.nodes) if len(node.inputs) == 2]
    return [i for i, (a, b) in pairs if a != b and a in splits and splits[a] == splits.get(b)]


def departures(graph: Graph) -> Mapping[str, str]:
    """Return the layers of a lowered graph that depart: name -> what the Compass tools make of it, and the way out."""
    found = dict(faults_of(graph))
    for name, words in _forgotten_scales(graph).items():
        found[name] = f"{found[name]}; {words}" if name in found else words
    return found


def _forgotten_scales(graph: Graph) -> Mapping[str, str]:
    """Name the differences and extremes whose results have another scale than the file says (specs: Eltwise)."""
    found = {}
    for node in graph.nodes:
        if not isinstance(node.params, EltwiseParams) or node.params.method == "MUL":
            continue
        a, b, output = (graph.tensors[t] for t in (*node.inputs[:2], node.outputs[0]))
        factor = float(scale_of(a)) / float(scale_of(output))
        if factor != 1 and forgets_scale(node.params.method, a, b):
            found[node.name] = (
                f"both inputs have one type, at which the Optimizer forgets the output's scale: results are "
                f"{factor:.3g} times what they should be; give one input another range (--ranges)"
            )
    return found

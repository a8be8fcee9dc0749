"""The ONNX graph in the forms that TPU-MLIR reads rightly and fuses (docs/targets/tpu_mlir.md#files)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.onnx import OnnxGraph, OnnxNode
from tflq.graph import Array

_MOVERS = ("Reshape", "Transpose")


def for_the_tool(network: OnnxGraph) -> OnnxGraph:
    """Return the ONNX graph with what TPU-MLIR needs.

    It takes Elu without alpha for one whose alpha is 0, and leaves the integers for averages that may meet padding.
    The bias of a ConvTranspose goes into it, a rectifier behind a product that is reshaped comes in front of that.
    """
    constants = dict(network.constants)
    nodes: list[OnnxNode] = []
    for node in network.nodes:
        before = nodes[-1] if nodes else node
        if node.op_type == "Elu":
            nodes.append(replace(node, attributes={"alpha": 1.0, **node.attributes}))
        elif node.op_type == "AveragePool" and node.attributes.get("pads") == (0, 0, 0, 0):
            nodes.append(replace(node, attributes={**node.attributes, "count_include_pad": 1}))
        elif node.op_type == "Add" and before.op_type == "ConvTranspose" and node.inputs[0] == before.outputs[0]:
            constants[node.inputs[1]] = constants[node.inputs[1]].reshape(-1)
            nodes[-1] = replace(before, inputs=(*before.inputs, node.inputs[1]), outputs=node.outputs)
        else:
            nodes.append(node)
    nodes = list(_with_early_rectifiers(nodes, network))
    return replace(network, nodes=_with_known_gelus(nodes, constants), constants=constants)


def _with_known_gelus(nodes: list[OnnxNode], constants: dict[str, Array]) -> tuple[OnnxNode, ...]:
    """Write x * (1 + erf(x / sqrt 2)) * 0.5: of the forms of GELU the one that is fused whoever reads its result."""
    places = {node.outputs[0]: index for index, node in enumerate(nodes)}
    result = list(nodes)
    for erf in (node for node in nodes if node.op_type == "Erf"):
        scaled = nodes[places[erf.inputs[0]]]
        add = next(n for n in nodes if n.op_type == "Add" and erf.outputs[0] in n.inputs)
        last = next(n for n in nodes if n.op_type == "Mul" and add.outputs[0] in n.inputs)
        half = nodes[places[next(v for v in last.inputs if v != add.outputs[0])]]
        constants[scaled.inputs[1]] = np.array(np.sqrt(2.0), np.float32)
        result[places[scaled.outputs[0]]] = replace(scaled, op_type="Div")
        place, whole = places[half.outputs[0]], half.outputs[0]
        first, second = sorted((place, places[add.outputs[0]]))
        product = replace(half, inputs=(scaled.inputs[0], add.outputs[0]), outputs=(whole,))
        result[first], result[second] = add, product
        result[places[last.outputs[0]]] = replace(last, inputs=(whole, half.inputs[1]))
    return tuple(result)


def _with_early_rectifiers(nodes: list[OnnxNode], network: OnnxGraph) -> tuple[OnnxNode, ...]:
    """Move a rectifier behind Gemm, Reshape, Transpose, each read once, to the Gemm, where TPU-MLIR fuses it."""
    own = set(network.values.values())
    places = {node.outputs[0]: index for index, node in enumerate(nodes)}
    uses: dict[str, int] = {}
    for node in nodes:
        for value in node.inputs:
            uses[value] = uses.get(value, 0) + 1
    for index, node in enumerate(nodes):
        moved = []
        place = places.get(node.inputs[0]) if node.op_type in ("Relu", "Clip") else None
        while place is not None and uses[nodes[place].outputs[0]] == 1 and nodes[place].outputs[0] not in own:
            moved.append(place)
            if nodes[place].op_type not in _MOVERS:
                break
            place = places.get(nodes[place].inputs[0])
        if len(moved) > 1 and nodes[moved[-1]].op_type == "Gemm":
            # the product's place + 1 gets the rectifier, each mover comes one later
            *movers, product = moved
            early = f"{nodes[product].outputs[0]}_rectified"
            chain = [replace(node, inputs=(nodes[product].outputs[0], *node.inputs[1:]), outputs=(early,))]
            source = early
            for number, mover in enumerate(reversed(movers)):
                target = node.outputs if number == len(movers) - 1 else nodes[mover].outputs
                chain.append(replace(nodes[mover], inputs=(source, *nodes[mover].inputs[1:]), outputs=target))
                source = target[0]
            for place, new in zip((*reversed(movers), index), chain, strict=True):
                nodes[place] = new
    return tuple(nodes)

"""The chosen types go onto the tensors, those inside fusions too, and Quantize nodes onto the edges that need one."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.operators import GLOBAL_POOLS, POOLS, departing
from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.types.network import GRAPH_OUTPUT
from tflq.converters.gap9.types.plan import TypePlan
from tflq.converters.passes.conversions import Conversions
from tflq.converters.passes.patterns import computed_inputs
from tflq.converters.passes.rewrite import with_attributes, with_input
from tflq.graph import Affine, Attributes, DType, Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.rounding import code_type

_DEPARTURE = "NNTool computes M and N for the type in front of the Quantize node, not for the one behind it (17.7)"

_WORDS = "NNTool gives the pool and the ReLU behind it int8, and takes it for int16 (17.9)"


def apply_types(graph: Graph, plan: TypePlan) -> Graph:
    """Return the graph with GAP9's types on all computed tensors and a node for each conversion of the plan."""
    result = graph.copy()
    for tensor, affine in plan.types.items():
        result.tensors[tensor] = _typed(result.tensors[tensor], affine)
    for index, affine in plan.inside.items():
        inside = {"inside_scale": float(affine.scale[0]), "inside_zero_point": int(affine.zero_point[0])}
        result.nodes[index] = with_attributes(departing(result.nodes[index], _DEPARTURE), **inside)
    for index, reason in plan.failing.items():
        result.nodes[index] = departing(result.nodes[index], reason)
    sources = {}
    for index, affine in plan.outside.items():
        outside = {"outside_scale": float(affine.scale[0]), "outside_zero_point": int(affine.zero_point[0])}
        result.nodes[index] = with_attributes(result.nodes[index], **outside)
        last = next(unit.outputs[0] for unit in plan.units if unit.nodes[0] == index)
        sources[last] = outside
    _insert_conversions(result, plan)
    _take_bytes_as_words(result)
    result.nodes = [
        with_attributes(node, **sources[node.inputs[0]]) if node.inputs[0] in sources else node for node in result.nodes
    ]
    return result


def _typed(tensor: Tensor, affine: Affine) -> Tensor:
    return replace(tensor, dtype=code_type(affine), quantization=affine)


def _insert_conversions(graph: Graph, plan: TypePlan) -> None:
    """Put one Quantize node for each tensor and type, in front of its first reader; named after it.

    Where another reader takes the tensor as it is, each has a node of its own.
    """
    names = _names(graph, plan)
    nodes, graph.nodes = graph.nodes, []
    conversions = Conversions(graph)
    for index, reader in enumerate(nodes):
        first, node = len(graph.nodes), reader
        for position, source in enumerate(reader.inputs):
            affine = plan.conversions.get((index, position))
            if affine is not None:
                maker = Conversions(graph) if (index, position) in plan.alone else conversions
                made = _converted(maker, source, affine, names[index, position], reader)
                node = with_input(node, position, made)
        # Of several in front of one node, that of the last operand runs first, as in NNTool's graphs.
        graph.nodes[first:] = [*reversed(graph.nodes[first:]), node]
    outputs = list(graph.outputs)
    for number, source in enumerate(graph.outputs):
        affine = plan.conversions.get((GRAPH_OUTPUT, number))
        if affine is not None:
            layer = Node("", (), (), name=graph.tensors[source].name)
            outputs[number] = _converted(conversions, source, affine, f"output_{number + 1}_qin0", layer)
    graph.outputs = tuple(outputs)


def _take_bytes_as_words(graph: Graph) -> None:
    """Put a node that takes int8 for int16 in front of a pool that NNTool gives the one and computes in the other."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        found = node
        if node.operator in POOLS:
            source, affine = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]].affine
            if source.affine.bits < affine.bits:
                name = f"{node.attributes.text('fusion')}_words"
                words = graph.add_tensor(replace(_typed(source, affine), name=name, data=None))
                graph.nodes.append(_as_words(node, words, name, affine))
                found = departing(with_input(node, 0, words), _WORDS)
        graph.nodes.append(found)


def _as_words(pool: Node, words: int, name: str, affine: Affine) -> Node:
    facts = {"layer": pool.name, "engine": SQ8, "engine_reason": "takes int8 for int16", "numerics": "nntool"}
    taken = {"outside_scale": float(affine.scale[0]), "outside_zero_point": int(affine.zero_point[0])}
    return Node("quantize", pool.inputs[:1], (words,), Attributes({**facts, **taken}), name)


def _names(graph: Graph, plan: TypePlan) -> dict[tuple[int, int], str]:
    """Name each conversion after the first of the nodes that share it, global pools last: a transpose parts them."""
    names: dict[tuple[int, int], str] = {}
    shared: dict[tuple[int, DType, Affine], list[tuple[int, int]]] = {}
    alone: list[list[tuple[int, int]]] = []
    for (index, position), affine in sorted(plan.conversions.items(), key=lambda item: item[0]):
        if index == GRAPH_OUTPUT:
            continue
        if (index, position) in plan.alone:
            alone.append([(index, position)])
            continue
        source = graph.nodes[index].inputs[position]
        key = next((k for k in shared if k[0] == source and k[2] == affine), (source, code_type(affine), affine))
        shared.setdefault(key, []).append((index, position))
    for places in [*shared.values(), *alone]:
        index, position = min(places, key=lambda place: (graph.nodes[place[0]].operator in GLOBAL_POOLS, place))
        reader = graph.nodes[index]
        number = [p for p, _ in computed_inputs(graph, reader)].index(position)
        names |= dict.fromkeys(places, f"{_name_in_front(graph, reader)}_qin{number}")
    return names


def _name_in_front(graph: Graph, reader: Node) -> str:
    """Return what NNTool names a Quantize node after.

    A mean of rank 3 has a transpose in front of it, and, where it is not over the channels, a reshape, too.
    """
    name = reader.attributes.text("fusion", "") or reader.name
    if reader.operator not in GLOBAL_POOLS or len(graph.tensors[reader.inputs[0]].shape) != 3:
        return name
    axes = graph.tensors[reader.inputs[1]].data
    over_channels = axes is not None and {int(a) % 3 for a in axes.reshape(-1)} == {2}
    return f"{name}_trans" if over_channels else f"{name}_trans_in0_reshape"


def _converted(conversions: Conversions, source: int, affine: Affine, name: str, reader: Node) -> int:
    tensors = conversions.graph.tensors
    wanted = replace(_typed(tensors[source], affine), name=name, data=None)
    numerics = reader.attributes.text("numerics", "exact")
    facts = {"layer": reader.name, "engine": SQ8, "engine_reason": "changes the type"}
    attributes = Attributes(facts if numerics == "exact" else {**facts, "numerics": numerics})
    return conversions.convert(source, wanted, Node("quantize", (), (), attributes, name))

"""Units: which nodes the hardware's generators take together, seen as one thing that reads and writes typed tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflq.converters.gap9.operators import CURVES, FILTERS, GLOBAL_POOLS, POOLS, RECTIFIERS, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.converters.passes.patterns import computed_inputs, constant_operand, only_reader
from tflq.converters.passes.rewrite import with_attributes
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Node
from tflq.graph.operators import CONVOLUTIONS
from tflq.interpreter.operands.windows import window_of_node

_ACTIVATION, _RECTIFIER, _MAX, _AVERAGE = "activation", "rectifier", "max_pool_2d", "average_pool_2d"
_NO_TANH = "activation, but for a tanh"
_CONVOLUTION_CHAINS = ((_ACTIVATION, _MAX), (_ACTIVATION,), (_MAX,), (_AVERAGE,))
_CHAINS: dict[str, tuple[tuple[str, ...], ...]] = {
    "conv_2d": ((_MAX, _RECTIFIER), (_AVERAGE, _RECTIFIER), *_CONVOLUTION_CHAINS),
    "depthwise_conv_2d": ((_MAX, _RECTIFIER), (_AVERAGE, _RECTIFIER), *_CONVOLUTION_CHAINS),
    "fully_connected": ((_ACTIVATION,),),
    "add": ((_RECTIFIER,),),
    **dict.fromkeys(POOLS, ((_RECTIFIER,),)),
    **dict.fromkeys(GLOBAL_POOLS, ((_NO_TANH,),)),
}
"""First operator -> what may follow it in one fusion, the longest first."""
_FAILING = {
    **dict.fromkeys(CONVOLUTIONS, ((_MAX, "curve"), (_AVERAGE, "curve"))),
    **dict.fromkeys((*POOLS, "add"), (("leaky_relu",), ("hard_swish",), ("hard_sigmoid",), ("logistic",))),
}
"""What NNTool joins too, and then cannot quantize."""
_AFTER_CONSTANT = ("relu", "relu6", "tanh", "logistic")
JOINED = "NNTool joins it with the activation behind it and then fails (18); here they run one after the other"


def fuse(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the attribute `fusion` on each node of a fusion: <first node>_fusion.

    A node joins only if nobody else reads what it reads. An average pool does not join behind an activation.

    Raises:
        UnsupportedError: with numerics=nntool, what NNTool joins and then cannot quantize.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if "fusion" in result.nodes[index].attributes:
            continue
        failing = next((c for c in _FAILING.get(node.operator, ()) if _follow(graph, index, c) is not None), None)
        if failing and options[layer_of(node)].numerics == "nntool":
            raise UnsupportedError(
                f"{graph.where(index)}: NNTool joins it with the {failing[-1]} behind it and cannot quantize the two; "
                "numerics=exact computes them one after the other"
            )
        _refuse_after_constant(graph, index)
        members = next(
            (m for chain in _CHAINS.get(node.operator, ()) if (m := _follow(graph, index, chain)) is not None), None
        )
        for member in members or ():
            result.nodes[member] = with_attributes(graph.nodes[member], fusion=f"{node.name}_fusion")
        if failing:
            result.nodes[index] = with_attributes(result.nodes[index], departure=JOINED)
    return result


def _refuse_after_constant(graph: Graph, index: int) -> None:
    """An addition of a constant of rank 0 joins what follows, and NNTool then fails, whatever is set."""
    node = graph.nodes[index]
    place = constant_operand(graph, node) if node.operator == "add" else None
    reader = only_reader(graph, node.outputs[0])
    if place is None or graph.tensors[node.inputs[place]].shape != () or reader is None:
        return
    if graph.nodes[reader].operator in _AFTER_CONSTANT:
        raise UnsupportedError(
            f"{graph.where(index)}: NNTool fails on the addition of a constant of rank 0 in front of "
            f"{graph.nodes[reader].operator.upper()}; give it the shape [1]"
        )


def _follow(graph: Graph, index: int, chain: tuple[str, ...]) -> list[int] | None:
    members = [index]
    for kind in chain:
        reader = only_reader(graph, graph.nodes[members[-1]].outputs[0])
        if reader is None or kind not in _kinds(graph.nodes[reader].operator):
            return None
        members.append(reader)
    return members


def _kinds(operator: str) -> tuple[str, ...]:
    if operator in RECTIFIERS:
        return (_ACTIVATION, _NO_TANH, _RECTIFIER)
    if operator in CURVES:
        return (operator, _ACTIVATION, "curve", *((_NO_TANH,) if operator != "tanh" else ()))
    return (operator,)


@dataclass(frozen=True)
class Unit:
    """One or more nodes that run together.

    Attributes:
        nodes: indices, in order.
        operators: their operators.
        engine: "ne16", "sq8", or "" for a move, and for all before engines are chosen.
        inputs: (position, tensor) of the computed inputs of the first node.
        outputs: tensors that the last node writes.
        pads: which nodes pad.
    """

    nodes: tuple[int, ...]
    operators: tuple[str, ...]
    engine: str
    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[int, ...]
    pads: tuple[bool, ...]

    @property
    def operator(self) -> str:
        """The first node's operator."""
        return self.operators[0]

    @property
    def on_ne16(self) -> bool:
        """Whether it works in NE16's types."""
        return self.engine == NE16

    @property
    def is_filter(self) -> bool:
        """Whether it begins with a convolution or a fully connected layer."""
        return self.operator in FILTERS


def units_of(graph: Graph) -> list[Unit]:
    """Return the units in order of their first nodes."""
    groups: dict[str, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        groups.setdefault(node.attributes.text("fusion", "") or node.name, []).append(index)
    return [_unit(graph, indices) for indices in groups.values()]


def _unit(graph: Graph, indices: list[int]) -> Unit:
    nodes = [graph.nodes[i] for i in indices]
    return Unit(
        nodes=tuple(indices),
        operators=tuple(n.operator for n in nodes),
        engine=nodes[0].attributes.text("engine", ""),
        inputs=tuple((p, t) for p, t in computed_inputs(graph, nodes[0]) if not graph.tensors[t].is_variable),
        outputs=nodes[-1].outputs,
        pads=tuple(_pads(graph, n) for n in nodes),
    )


def _pads(graph: Graph, node: Node) -> bool:
    if node.operator not in (*CONVOLUTIONS, *POOLS):
        return False
    tensors = [graph.tensors[t] for t in node.inputs[:2]]
    return any(window_of_node(node, tensors[0].shape, tensors[1].shape if len(tensors) > 1 else ()).padding)

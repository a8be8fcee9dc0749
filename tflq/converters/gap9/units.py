"""Units: which nodes the hardware's generators take together, seen as one thing that reads and writes typed tensors."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import CURVES, FILTERS, GLOBAL_POOLS, POOLS, RECTIFIERS
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.converters.passes.patterns import computed_inputs, constant_operand
from tflq.errors import UnsupportedError
from tflq.graph import Node
from tflq.graph.operators import CONVOLUTIONS
from tflq.graph.rewriting import GraphEditor
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
_AFTER_CONSTANT = (*RECTIFIERS, "tanh", "logistic")
JOINED = "NNTool joins it with the activation behind it and then fails (18); here they run one after the other"


def fuse(editor: Gap9Editor) -> None:
    """Set the attribute `fusion` on each node of a fusion: <first node>_fusion.

    A node joins only if it is the only reader. An average pool does not join behind an activation.

    Raises:
        UnsupportedError: NNTool joins nodes that it cannot quantize, with numerics=nntool.
    """
    for node in map(editor.current, editor.nodes):
        if node is None or "fusion" in node.attributes:
            continue
        failing = next((chain for chain in _FAILING.get(node.operator, ()) if _follow(editor, node, chain)), None)
        if failing and editor.is_vendor(node):
            raise UnsupportedError(
                f"{editor.where(node)}: NNTool joins it with the {failing[-1]} behind it and cannot quantize the two; "
                "numerics=exact computes them one after the other"
            )
        _refuse_after_constant(editor, node)
        chains = (_follow(editor, node, chain) for chain in _CHAINS.get(node.operator, ()))
        for member in next(filter(None, chains), ()):
            editor.change(member, fusion=f"{node.name}_fusion")
        if failing:
            editor.change(node, departure=JOINED)


def _refuse_after_constant(editor: Gap9Editor, node: Node) -> None:
    """An addition of a constant of rank 0 joins its reader, and NNTool then fails, with all settings."""
    place = constant_operand(editor, node) if node.operator == "add" else None
    reader = editor.only_reader(node.outputs[0])
    if place is None or editor.shape(node.inputs[place]) != () or reader is None:
        return
    if reader.operator in _AFTER_CONSTANT:
        raise UnsupportedError(
            f"{editor.where(node)}: NNTool fails on the addition of a constant of rank 0 in front of "
            f"{reader.operator.upper()}; give it the shape [1]"
        )


def _follow(editor: Gap9Editor, node: Node, chain: tuple[str, ...]) -> list[Node]:
    """Return a node and its readers of these kinds; no node if one of them is missing."""
    members = [node]
    for kind in chain:
        reader = editor.only_reader(members[-1].outputs[0])
        if reader is None or kind not in _kinds(reader.operator):
            return []
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
        nodes: Nodes in order.
        engine: "ne16", "sq8", or "" for a move, and for all before engines are chosen.
        inputs: (position, tensor) of the computed inputs of the first node.
        pads: Whether each node pads.
    """

    nodes: tuple[Node, ...]
    engine: str
    inputs: tuple[tuple[int, int], ...]
    pads: tuple[bool, ...]

    @property
    def first(self) -> Node:
        """The first node."""
        return self.nodes[0]

    @property
    def operator(self) -> str:
        """Operator of the first node."""
        return self.first.operator

    @property
    def outputs(self) -> tuple[int, ...]:
        """Tensors that the last node writes."""
        return self.nodes[-1].outputs

    @property
    def on_ne16(self) -> bool:
        """Whether it works in NE16's types."""
        return self.engine == NE16

    @property
    def is_filter(self) -> bool:
        """Whether it begins with a convolution or a fully connected layer."""
        return self.operator in FILTERS

    @property
    def is_fusion(self) -> bool:
        """Whether it has several nodes."""
        return len(self.nodes) > 1


def units_of(editor: GraphEditor) -> list[Unit]:
    """Return the units in order of their first nodes."""
    groups: dict[str, list[Node]] = {}
    for node in editor.nodes:
        groups.setdefault(node.attributes.text("fusion", "") or node.name, []).append(node)
    return [_unit(editor, nodes) for nodes in groups.values()]


def _unit(editor: GraphEditor, nodes: list[Node]) -> Unit:
    return Unit(
        nodes=tuple(nodes),
        engine=nodes[0].attributes.text("engine", ""),
        inputs=tuple((p, t) for p, t in computed_inputs(editor, nodes[0]) if not editor.tensors[t].is_variable),
        pads=tuple(_pads(editor, node) for node in nodes),
    )


def _pads(editor: GraphEditor, node: Node) -> bool:
    if node.operator not in (*CONVOLUTIONS, *POOLS):
        return False
    shapes = [editor.shape(t) for t in node.inputs[:2]]
    return any(window_of_node(node, shapes[0], shapes[1] if len(shapes) > 1 else ()).padding)

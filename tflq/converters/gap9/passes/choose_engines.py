"""Which layer runs on NE16 and which on the cluster's cores (SQ8), and why."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.gap9.operators import EXPRESSION, FILTERS, LSTM, MOVES, POOLS, RECTIFIERS, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.packing import plane_mode
from tflq.converters.passes.rewrite import with_attributes
from tflq.errors import OptionError
from tflq.graph import Graph, Node, Tensor
from tflq.graph.operators import CONVOLUTIONS

NE16, SQ8, CLUSTER = "ne16", "sq8", "cluster"
_UNSIGNED_KERNELS = (*POOLS, *RECTIFIERS, "add", "sub")

_HANDED_OVER = ("allow_asymmetric_out", "softmax_out_8bits", "max_precision_limit")
_DEFAULTS = LayerOptions()
"""NNTool has these options, too; a node says which of them were set, for the script that is handed over."""
_WAYS_OUT = {"mean": "; an AVERAGE_POOL_2D over the whole map would stay uint8"}
_MODES = {
    "3x3dw": "NE16, depthwise 3x3 mode",
    "linear": "NE16, linear mode",
    "taps": "NE16, tap by tap in 1x1 mode; 3x3 and 1x1 kernels have modes of their own",
}


def choose_engines(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the attributes `engine` and `engine_reason` on every node.

    Operators that only move data take the type of their neighbors and have no engine.

    Raises:
        OptionError: 16-bit features for a filter that shall run on SQ8.
    """
    result = graph.copy()
    fusions: dict[str, str] = {}
    for index, node in enumerate(graph.nodes):
        layer = options[layer_of(node)]
        fusion = node.attributes.text("fusion", "")
        if fusion in fusions:
            engine, reason = fusions[fusion], "follows its layer"
        else:
            engine, reason = _engine(graph, node, layer)
        if fusion:
            fusions[fusion] = engine
        if node.operator in FILTERS and layer.feature_bits == 16 and not layer.use_ne16:
            raise OptionError(
                f"{graph.where(index)}: feature_bits=16 on a layer that runs on SQ8 ({reason}); SQ8 takes 8: set "
                f"feature_bits=8, or use_ne16=true for this layer"
            )
        facts = {"engine": engine, "engine_reason": reason}
        changed = [f"{k}={getattr(layer, k)}" for k in _HANDED_OVER if getattr(layer, k) != getattr(_DEFAULTS, k)]
        if changed:
            facts["requested"] = " ".join(changed)
        if layer.numerics != "exact":
            facts["numerics"] = layer.numerics
        special = _no_mode(graph, node) if layer.use_ne16 else ""
        if special:
            facts["departure"] = f"NNTool gives {special} to NE16, which has no mode for it (17.8)"
        result.nodes[index] = with_attributes(node, **facts)
    return result


def engines_of(graph: Graph) -> dict[int, str]:
    """Return first output of a node -> the engine that runs it: "ne16", "sq8", "cluster", or "" for moves.

    The attribute `engine` of a node names the engine with its types: uint8 kernels next to NE16's layers run on the
    cluster's cores. A rectifier fused with a filter on NE16 is the clip of that filter.
    """
    writers, engines = graph.producers(), dict[int, str]()
    for node in graph.nodes:
        engine = node.attributes.text("engine", "")
        if engine == NE16 and node.operator not in (*FILTERS, LSTM):
            source = graph.nodes[writers[node.inputs[0]]] if node.inputs[0] in writers else node
            is_clip = node.operator in RECTIFIERS and _fusion(source) == _fusion(node) != ""
            engine = engines[source.outputs[0]] if is_clip and source is not node else CLUSTER
        engines[node.outputs[0]] = engine
    return engines


def _fusion(node: Node) -> str:
    return node.attributes.text("fusion", "")


def _engine(graph: Graph, node: Node, options: LayerOptions) -> tuple[str, str]:
    if node.operator in MOVES:
        return "", "moves data: takes the type of its neighbors"
    if node.operator == EXPRESSION:
        return SQ8, f"one expression kernel in Q15 on the cluster; {node.attributes.text('matched')}"
    if not options.use_ne16:
        return SQ8, "use_ne16 is false"
    if node.operator in FILTERS:
        special = _no_mode(graph, node)
        if special:
            chosen = f"NNTool's choice: NE16, which has no mode for {special}"
            return (NE16, chosen) if options.numerics == "nntool" else (SQ8, f"{special}, NE16 takes 1")
        return _filter_engine(node, graph.tensors[node.inputs[1]])
    if node.operator == LSTM:
        return NE16, "NE16 takes its matrix products"
    if node.operator in _UNSIGNED_KERNELS:
        return NE16, "uint8 kernel on the cluster, in the types of NE16"
    return SQ8, f"{node.operator} has int8 kernels only" + _WAYS_OUT.get(node.operator, "")


def _no_mode(graph: Graph, node: Node) -> str:
    """Name what NNTool counts as a dense convolution for NE16 although NE16 has no mode for it."""
    if node.operator not in CONVOLUTIONS:
        return ""
    channels, taken = graph.tensors[node.inputs[0]].shape[3], graph.tensors[node.inputs[1]].shape[3]
    if node.operator == "conv_2d":
        return f"{channels // taken} groups" if channels > taken else ""
    return f"depthwise multiplier {taken // channels}" if taken > channels else ""


def _filter_engine(node: Node, weights: Tensor) -> tuple[str, str]:
    single = node.operator == "conv_2d" and weights.shape[0] == weights.shape[3] == 1
    if (single or node.operator == "depthwise_conv_2d") and weights.shape[1:3] != (3, 3):
        height, width = weights.shape[1:3]
        if single:
            return SQ8, f"one channel to one is depthwise for NNTool, and {height}x{width} is not NE16's 3x3"
        return SQ8, f"depthwise kernel {height}x{width}, NE16 takes 3x3; make it 3x3, or a dense convolution"
    mode = plane_mode(node.operator, weights.shape[1:3])
    return NE16, _MODES.get(mode, f"NE16, {mode} mode")

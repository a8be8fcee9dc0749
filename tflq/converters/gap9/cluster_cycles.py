"""Cycles of the cluster's kernels: what one published log or one fit says of them (docs/guides/estimate.md).

Sources: GreenWaves' MLPerf Tiny v1.0 submission: the medians of its results, and its two logs of GVSOC, layer by layer.
"""

from __future__ import annotations

from tflq.converters.estimate import Figure, Grade, exact, not_offered
from tflq.converters.gap9.jobs.filters import is_on_ne16
from tflq.converters.gap9.operators import FILTERS, RECTIFIERS
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.graph import Graph, Node
from tflq.graph.arena import macs
from tflq.graph.operators import RESHAPES
from tflq.interpreter.operands.windows import window_of_node

FIRST_CONVOLUTION_MACS = 6.500141
"""MACs of a cycle, SQ8 convolution 10x4 of one channel, eight cores: fitted on KWS."""
ADDED_ELEMENT = 0.9981875
"""Cycles of an element that is added in L1: fitted on ResNet-8."""
_SQ8_MACS, _SQ8_SLOWEST, _SQ8_FASTEST = 6.2, 4.7, 7.9
"""MACs of a cycle of seven SQ8 convolutions 3x3, channels first: geometric mean, least, most."""
_SQ8_ADDED, _SQ8_LEAST_ADDED, _SQ8_MOST_ADDED = 2.0, 1.90, 2.12
_SQ8_POINTWISE = {16: 70948, 32: 38222}
"""Cycles of the two SQ8 convolutions 1x1 of stride 2 by their input channels."""
_SQ8_POINTWISE_MACS = 131072
_SQ8_LINEAR = 2350
_POOLS = {(25, 5, 64): 4657, (8, 8, 64): 5063}
"""Cycles of an average pool over the whole map in the two logs."""
_ASSUMED_POOLS = {(3, 3, 256): 3000}
"""What the fit of the networks took for VWW's pool; no log has it."""
_POOLED_LEAST, _POOLED = 0.58, 1.24
"""Cycles of an input element in the two logs."""
_SOFTMAX, _SOFTMAX_LEAST, _SOFTMAX_MOST, _CLASSES = 2015, 2005, 2025, (10, 12)
_NO_FIGURE = "no public cycles of GAP9 for it"


def cluster_cycles(graph: Graph, index: int) -> Figure:
    """Return the cycles of a node that NE16 does not compute."""
    node = graph.nodes[index]
    if node.operator in RESHAPES:
        return exact(0, "cycles", "moves no data")
    if node.operator in RECTIFIERS and _is_fused(node):
        return exact(0, "cycles", "the clip of the layer that it is fused with")
    if node.operator in FILTERS:
        return _filter(graph, index)
    if node.operator == "quantize" and _is_behind_first_convolution(graph, node):
        return _case(0, 0, 0, "part of what was fitted on KWS' first convolution alone")
    kernel = {"add": _add, "average_pool_2d": _pool, "softmax": _softmax}.get(node.operator)
    return (
        not_offered("cycles", f"{node.operator} on the cluster: {_NO_FIGURE}")
        if kernel is None
        else kernel(graph, node)
    )


def _is_fused(node: Node) -> bool:
    fusion = node.attributes.text("fusion", "")
    return bool(fusion) and fusion != f"{node.name}_fusion"


def _case(value: float, low: float, high: float, basis: str) -> Figure:
    return Figure(value, "cycles", Grade.SINGLE_CASE, low, high, basis)


def _by_macs(count: int, rate: float, basis: str) -> Figure:
    """MACs over their rate; ends by the slowest and fastest of the log's convolutions."""
    return _case(count / rate, count / _SQ8_FASTEST, count / _SQ8_SLOWEST, basis)


def _is_behind_first_convolution(graph: Graph, node: Node) -> bool:
    """Whether it changes the type of that convolution for NE16: the published figures are of the two together."""
    writers = graph.producers()
    source = writers.get(node.inputs[0])
    while source is not None and graph.nodes[source].operator in RECTIFIERS:
        source = writers.get(graph.nodes[source].inputs[0])
    return source is not None and _is_first_convolution(graph, graph.nodes[source])


def _is_first_convolution(graph: Graph, node: Node) -> bool:
    """Whether it is what KWS runs on the cluster: kernel 10x4, one channel and image, in front of NE16."""
    if node.operator != "conv_2d" or is_on_ne16(node) or not any(map(is_on_ne16, graph.nodes)):
        return False
    x, weights = (graph.tensors[t] for t in node.inputs[:2])
    window = window_of_node(node, x.shape, weights.shape)
    return (window.kernel, window.dilation, x.shape[0], x.shape[3]) == ((10, 4), (1, 1), 1, 1)


def _filter(graph: Graph, index: int) -> Figure:
    node, count = graph.nodes[index], macs(graph, index)
    x, weights, y = (graph.tensors[t] for t in (node.inputs[0], node.inputs[1], node.outputs[0]))
    if node.operator == "fully_connected" and weights.shape == (10, 64) and y.size == 10:
        return _case(_SQ8_LINEAR, _SQ8_LINEAR * 0.76, _SQ8_LINEAR * 1.27, "one layer of the log of ResNet-8, SQ8")
    if _is_first_convolution(graph, node):
        return _by_macs(count, FIRST_CONVOLUTION_MACS, "fitted on KWS' first convolution alone")
    beside_ne16 = any(map(is_on_ne16, graph.nodes))
    if node.operator == "conv_2d" and weights.shape[3] == x.shape[3] and x.shape[0] == 1 and not beside_ne16:
        window = window_of_node(node, x.shape, weights.shape)
        log = "of the log of ResNet-8, SQ8, channels first"
        if window.kernel == (3, 3) and window.dilation == (1, 1):
            return _by_macs(count, _SQ8_MACS, f"mean of the seven 3x3 convolutions {log}")
        logged = _SQ8_POINTWISE.get(x.shape[3])
        if logged and window.kernel == (1, 1) and window.stride == (2, 2) and count == _SQ8_POINTWISE_MACS:
            return _case(logged, count / 3.5, count / 1.8, f"one layer {log}")
    where = "beside NE16 layers, channels last" if beside_ne16 else "channels first"
    return not_offered("cycles", f"SQ8 {node.operator} {tuple(weights.shape)}, {where}: {_NO_FIGURE}")


def _add(graph: Graph, node: Node) -> Figure:
    size = graph.tensors[node.outputs[0]].size
    if any(graph.tensors[t].shape != graph.tensors[node.outputs[0]].shape for t in node.inputs):
        return not_offered("cycles", f"add that broadcasts: {_NO_FIGURE}")
    if node.attributes.text("engine") == NE16:
        basis = "fitted on ResNet-8 alone, activations in L1; the log from L2 has 2.12 cycles an element"
        return _case(ADDED_ELEMENT * size, ADDED_ELEMENT * size, _SQ8_MOST_ADDED * size, basis)
    basis = "mean of the three of the log of ResNet-8, SQ8"
    return _case(_SQ8_ADDED * size, _SQ8_LEAST_ADDED * size, _SQ8_MOST_ADDED * size, basis)


def _pool(graph: Graph, node: Node) -> Figure:
    x = graph.tensors[node.inputs[0]]
    if graph.tensors[node.outputs[0]].shape[:3] != (1, 1, 1):
        return not_offered("cycles", f"average pool over a part of the map: {_NO_FIGURE}")
    shape = (x.shape[1], x.shape[2], x.shape[3])
    value = {**_ASSUMED_POOLS, **_POOLS}.get(shape, _POOLED * x.size)
    low, high = min(value, _POOLED_LEAST * x.size), max(value, _POOLED * x.size)
    kind = "; this is one of them" if shape in _POOLS else "; assumed in the fit" if shape in _ASSUMED_POOLS else ""
    return _case(value, low, high, f"logs of two pools, 0.6 and 1.2 cycles an element{kind}")


def _softmax(graph: Graph, node: Node) -> Figure:
    size = graph.tensors[node.outputs[0]].size
    if size > _CLASSES[1]:
        return not_offered("cycles", f"softmax of {size} numbers: {_NO_FIGURE}; 10 and 12 are known")
    low = _SOFTMAX_LEAST if size >= _CLASSES[0] else 0
    return _case(_SOFTMAX, low, _SOFTMAX_MOST, "logs of softmaxes of 10 and 12 numbers")

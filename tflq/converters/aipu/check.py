"""Which operators of a float TFLite graph the target cannot take, and why: all at once, each with its way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflq.converters.aipu.fusions import RECTIFIED, find_fusions
from tflq.converters.aipu.translate import RULES
from tflq.converters.aipu.translate_moves import MOVES
from tflq.converters.aipu.translate_others import COMPARISONS, PAIRS
from tflq.converters.aipu.translation import FUSED
from tflq.graph import ABSENT, DType, Graph, Node
from tflq.interpreter.kernels.aipu.softmax import LARGEST_AXIS

_FILTERS = ("conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv")
_FUSING = (*_FILTERS, "add", "sub", "mul")
_REDUCTIONS = ("mean", "reduce_all", "reduce_any", "reduce_max", "reduce_min", "reduce_prod", "sum")
_SUPPRESSIONS = ("non_max_suppression_v4", "non_max_suppression_v5")
_OF_INTEGERS_TOO = (*MOVES, *COMPARISONS, "cast", "logical_not", "one_hot", "reduce_all", "reduce_any")
_OF_IMAGES = (
    "average_pool_2d",
    "batch_to_space_nd",
    "conv_2d",
    "depth_to_space",
    "depthwise_conv_2d",
    "local_response_normalization",
    "max_pool_2d",
    "resize_bilinear",
    "resize_nearest_neighbor",
    "space_to_batch_nd",
    "space_to_depth",
    "transpose_conv",
)
_SAME_SHAPES = ("maximum", "minimum", "pow", "select", "select_v2", *COMPARISONS)
# Where the operand stands whose type counts, if not first.
_DATA: Mapping[str, int] = {"select": 1, "select_v2": 1, "split": 1, "transpose_conv": 2}
# Operands that must be constants; the weights of filters have a check of their own.
_CONSTANTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys((*_REDUCTIONS, "arg_max", "arg_min", "broadcast_to", "cumsum", "mirror_pad", "pad"), (1,)),
    **dict.fromkeys(("prelu", "segment_sum"), (1,)),
    **dict.fromkeys(("resize_bilinear", "resize_nearest_neighbor", "reverse_v2", "tile", "topk_v2", "transpose"), (1,)),
    **dict.fromkeys(("batch_to_space_nd", "space_to_batch_nd", "slice", "split_v", "padv2"), (1, 2)),
    **dict.fromkeys(("one_hot", "strided_slice"), (1, 2, 3)),
    "non_max_suppression_v4": (2, 3, 4),
    "non_max_suppression_v5": (2, 3, 4, 5),
    "scatter_nd": (2,),
    "split": (0,),
}


# How many operands there must be, where it is more than one and the constants do not say.
_OPERANDS: Mapping[str, int] = {
    **dict.fromkeys((*COMPARISONS, *PAIRS, "batch_matmul", "div", "floor_div", "pow", "squared_difference"), 2),
    **dict.fromkeys(("conv_2d", "depthwise_conv_2d", "fully_connected", "embedding_lookup", "gather", "gather_nd"), 2),
    **dict.fromkeys(("reverse_sequence", "split"), 2),
    **dict.fromkeys(("select", "select_v2", "transpose_conv"), 3),
}


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, in order of the file."""
    fused = {
        index for index, fusion in find_fusions(graph).items() if fusion.kind != RECTIFIED or index == fusion.place
    }
    checked = (i for i in range(len(graph.nodes)) if i not in fused)
    reasons = ((graph.where(i), _reason(graph, graph.nodes[i])) for i in checked)
    return tuple(f"{where}: {reason}" for where, reason in reasons if reason)


def _reason(graph: Graph, node: Node) -> str:
    if node.custom_code:
        return f"custom operator '{node.custom_code}' has no mapping; replace it or cut the graph in front of it"
    if node.operator not in RULES:
        return f"no mapping to Zhouyi; it takes {', '.join(sorted(RULES))}"
    fused = node.attributes.text("fused_activation_function", "none")
    if fused != "none" and (node.operator not in _FUSING or fused not in FUSED):
        return f"fused activation {fused}; allowed is relu or relu6 in {', '.join(_FUSING)}: make it an operator"
    special = _SPECIAL.get(node.operator)
    return _operands_reason(graph, node) or (special(graph, node) if special else "")


def _operands_reason(graph: Graph, node: Node) -> str:
    """Say which operand is missing, or has a type, a shape or a place in the graph that the layer cannot have."""
    count = max(_OPERANDS.get(node.operator, 1), *(place + 1 for place in _CONSTANTS.get(node.operator, (0,))))
    given = (*node.inputs, *(ABSENT,) * count)[:count]
    if ABSENT in given:
        return f"its input {given.index(ABSENT)} is missing; the operator has {count}"
    for place in _CONSTANTS.get(node.operator, ()):
        if not graph.tensors[node.inputs[place]].is_constant:
            return f"its input {place} is computed at run time; allowed is a constant"
    x = graph.tensors[node.inputs[_DATA.get(node.operator, 0)]]
    if node.operator not in _OF_INTEGERS_TOO and x.dtype is not DType.FLOAT32:
        return f"its input is {x.dtype.value}; allowed are real numbers"
    if node.operator in _OF_IMAGES and len(x.shape) != 4:
        return f"its input has the shape {x.shape}; allowed are 4 axes"
    if node.operator in _SAME_SHAPES:
        wanted = graph.tensors[node.outputs[0]].shape
        computed = (graph.tensors[t].shape for t in node.inputs if not graph.tensors[t].is_constant)
        other = next((shape for shape in computed if shape != wanted), None)
        return "" if other is None else f"shapes {other} and {wanted} differ; allowed are equal ones"
    return ""


def _filter_reason(graph: Graph, node: Node) -> str:
    computed = 2 if node.operator == "transpose_conv" else 0
    others = [t for i, t in enumerate(node.inputs) if i != computed and t != ABSENT]
    if not all(graph.tensors[t].is_constant for t in others):
        return "weights or bias are computed at run time; allowed are constants"
    weights = graph.tensors[node.inputs[1]]
    if node.operator == "fully_connected" and graph.tensors[node.outputs[0]].shape[-1:] != weights.shape[:1]:
        return f"output {graph.tensors[node.outputs[0]].shape} does not end in the {weights.shape[0]} outputs"
    return ""


def _softmax_reason(graph: Graph, node: Node) -> str:
    shape = graph.tensors[node.inputs[0]].shape
    terms = shape[-1] if shape else 1
    if node.attributes.real("beta", 1.0) != 1.0:
        return f"beta is {node.attributes.real('beta')}; allowed is 1: multiply in front of it"
    return f"softmax over {terms} terms; allowed are {LARGEST_AXIS}" if terms > LARGEST_AXIS else ""


def _nearest_reason(_graph: Graph, node: Node) -> str:
    if node.attributes.boolean("align_corners", False):
        return "align_corners, whose rounding in Compass is not known; allowed are the other two rules of coordinates"
    return ""


def _slice_reason(_graph: Graph, node: Node) -> str:
    masks = [key for key in ("ellipsis_mask", "new_axis_mask") if node.attributes.integer(key, 0)]
    if node.attributes.boolean("offset", False):
        masks.append("offset")
    return f"{', '.join(masks)} set; allowed are begin, end and shrink_axis masks" if masks else ""


def _cast_reason(graph: Graph, node: Node) -> str:
    types = [graph.tensors[t].dtype for t in (node.inputs[0], node.outputs[0])]
    if any(t.is_integer or t is DType.BOOL for t in types):
        return ""
    return f"from {types[0].value} to {types[1].value}; allowed is from or to integers: take it out"


def _reverse_reason(graph: Graph, node: Node) -> str:
    axes = graph.tensors[node.inputs[1]].size
    rank = len(graph.tensors[node.inputs[0]].shape)
    return f"{axes} axes of {rank}; allowed is one of two or more" if axes != 1 or rank < 2 else ""


def _blocks_reason(graph: Graph, node: Node) -> str:
    sizes = graph.tensors[node.inputs[1]].size
    return f"blocks along {sizes} axes; allowed are 2" if sizes != 2 else ""


def _suppression_reason(graph: Graph, node: Node) -> str:
    return "" if graph.tensors[node.inputs[2]].size == 1 else "its number of results is no single number"


_SPECIAL: Mapping[str, Callable[[Graph, Node], str]] = {
    **dict.fromkeys(_FILTERS, _filter_reason),
    **dict.fromkeys(("batch_to_space_nd", "space_to_batch_nd"), _blocks_reason),
    **dict.fromkeys(_SUPPRESSIONS, _suppression_reason),
    "cast": _cast_reason,
    "resize_nearest_neighbor": _nearest_reason,
    "reverse_v2": _reverse_reason,
    "softmax": _softmax_reason,
    "strided_slice": _slice_reason,
}

"""The kernels of TensorFlow Lite Micro: operators, types of their data, and the methods that register them.

Source: tflite-micro, tensorflow/lite/micro/kernels and micro_mutable_op_resolver.h.
"""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.passes.requirements import no_mapping
from tflq.graph import ABSENT, DType, Graph, Node
from tflq.graph.operators import Trait, has_trait, row_of

CUSTOM = {"TFLite_Detection_PostProcess": "AddDetectionPostprocess", "CIRCULAR_BUFFER": "AddCircularBuffer"}
"""Custom operators with a kernel -> the method that registers it."""
LARGEST_CONCATENATION = 10
"""Operands of a CONCATENATION (kMaxInputNum)."""

_F, _B, _H, _I, _L = DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64
_ANY = (_F, _B, _H, _I, _L, DType.UINT8, DType.BOOL)
_OPERATORS_BY_TYPES: Mapping[tuple[DType, ...], str] = {
    (_F,): "ceil cos exp floor floor_div floor_mod l2_pool_2d log round sin sqrt square",
    (_F, _B): "add_n arg_max arg_min batch_to_space_nd cumsum depth_to_space elu embedding_lookup gather gather_nd "
    "hard_swish l2_normalization log_softmax mirror_pad neg reduce_max reduce_min resize_bilinear space_to_batch_nd "
    "space_to_depth",
    (_F, _B, _H): "abs average_pool_2d batch_matmul conv_2d depthwise_conv_2d expand_dims fully_connected leaky_relu "
    "logistic max_pool_2d mean prelu relu relu6 resize_nearest_neighbor rsqrt select_v2 softmax sum svdf tanh "
    "transpose transpose_conv unidirectional_sequence_lstm",
    (_F, _B, _I): "div zeros_like",
    (_F, _B, _H, _I): "add dynamic_update_slice mul pad padv2 split split_v squared_difference sub unpack",
    (_F, _B, _H, _I, _L): "fill maximum minimum pack",
    (_F, _B, _H, _I, DType.BOOL): "cast slice strided_slice",
    (_F, _B, _I, _L): "greater greater_equal less less_equal",
    (_F, _B, _I, _L, DType.BOOL): "equal not_equal",
    (_F, _B, _H, _I, _L, DType.BOOL): "concatenation",
    _ANY: "reshape reverse_v2 shape squeeze",
    (_B, _H, DType.UINT8): "dequantize",
    (_F, _B, _H, _I, DType.UINT8): "quantize",
    (_I, _L): "broadcast_args broadcast_to",
    (DType.BOOL,): "logical_and logical_not logical_or reduce_all",
}
TYPES = {name: frozenset(types) for types, names in _OPERATORS_BY_TYPES.items() for name in names.split()}
"""Operator -> types of its data operand."""
_METHODS = {
    "batch_matmul": "AddBatchMatMul",
    "cumsum": "AddCumSum",
    "padv2": "AddPadV2",
    "unidirectional_sequence_lstm": "AddUnidirectionalSequenceLSTM",
}
_WEIGHTS = (DType.INT8, DType.INT4)


def has_kernel(operator: str, dtype: DType) -> bool:
    """Return True if the runtime has a kernel for the operator on data of a type."""
    return dtype in TYPES.get(operator, ())


def find_method(node: Node) -> str:
    """Return the method of MicroMutableOpResolver that registers the kernel of a node."""
    if node.custom_code:
        return CUSTOM[node.custom_code]
    words = node.operator.split("_")
    camel = "".join(word.capitalize() for word in words).replace("2d", "2D")
    return _METHODS.get(node.operator, f"Add{camel}")


def describe_problem(graph: Graph, node: Node) -> str:
    """Return why the runtime cannot run a node, and the way out; empty if it can."""
    if node.custom_code:
        return "" if node.custom_code in CUSTOM else no_mapping(node, "no kernel in TensorFlow Lite Micro")
    if has_trait(node, Trait.CONTROL):
        return "it runs other graphs, which are not rewritten; cut the graph in front of it"
    if node.operator not in TYPES:
        return no_mapping(node, "no kernel in TensorFlow Lite Micro")
    data = graph.tensors[node.inputs[row_of(node).data]]
    if data.dtype not in TYPES[node.operator]:
        allowed = ", ".join(sorted(dtype.value for dtype in TYPES[node.operator]))
        return f"TensorFlow Lite Micro has no kernel for {data.dtype.value}; allowed is {allowed}"
    if node.operator in ("arg_max", "arg_min") and graph.tensors[node.outputs[0]].dtype is not DType.INT32:
        return "its result is int64; TensorFlow Lite Micro returns int32"
    return _describe_weights(graph, node)


def _describe_weights(graph: Graph, node: Node) -> str:
    """Return why the runtime refuses the second operand of a product."""
    x = graph.tensors[node.inputs[row_of(node).data]]
    if node.operator == "batch_matmul":
        other = graph.tensors[node.inputs[1]]
        return (
            ""
            if other.dtype is x.dtype
            else f"operands of {x.dtype.value} and {other.dtype.value}; allowed is one type"
        )
    if not has_trait(node, Trait.WEIGHTS) or node.inputs[1] == ABSENT:
        return ""
    weights = graph.tensors[node.inputs[1]]
    allowed = (DType.FLOAT32,) if x.dtype.is_floating else _WEIGHTS
    if weights.dtype not in allowed:
        return (
            f"weights of {weights.dtype.value} for data of {x.dtype.value}: TensorFlow Lite Micro has no hybrid kernels"
        )
    return ""

"""Arithmetic `aipu`: Zhouyi's integers as the Compass Optimizer computes them (docs/aipu.md).

Operators have the names of Compass's layers, and their nodes the keys of its IR. A node reads the layer's tensors
first, then its constants; the name of a constant ends in "/" and the key.
"""

from __future__ import annotations

from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.aipu"
_CURVES = ("bnll", "ceil", "exp", "floor", "log", "round", "rsqrt", "sqrt", "square")
_LAYOUTS = (
    "batch_to_depth",
    "batch_to_space",
    "crop",
    "data_stride",
    "depth_to_space",
    "pad",
    "slice",
    "space_to_batch",
    "space_to_depth",
    "split",
    "tile",
    "transpose",
)
_OPERATORS = (
    "activation",
    "arg_min_max",
    "batch_norm",
    "bias_add",
    "bounding_box",
    "cast",
    "concat",
    "constant",
    "convolution",
    "depthwise_conv",
    "dequantize",
    "conv_transpose",
    "count",
    "crelu",
    "ctc_greedy_decoder",
    "cumulate",
    "detection_output",
    "div",
    "eltwise",
    "fully_connected",
    "log_softmax",
    "logical",
    "lrn",
    "mat_mul",
    "in_top_k",
    "max_pooling_with_arg_max",
    "max_roi_pool",
    "nms",
    "moments",
    "normalization",
    "one_hot",
    "pooling",
    "pow",
    "proposal",
    "quantize",
    "pyramid_roi_align",
    "reduce",
    "repeat",
    "reshape",
    "resize",
    "roi_align",
    "scatter_nd",
    "segment_reduce",
    "sign",
    "softmax",
    "squared_difference",
    "top_k",
    "upsample_by_index",
    "where",
)

ARITHMETIC = Arithmetic(
    "aipu",
    {
        **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS},
        **dict.fromkeys(_CURVES, f"{_HERE}.curve"),
        **dict.fromkeys(_LAYOUTS, f"{_HERE}.layout"),
        **dict.fromkeys(("add", "sub", "mul"), f"{_HERE}.eltwise"),
        **dict.fromkeys(("cosine", "sine"), f"{_HERE}.periodic"),
        **dict.fromkeys(("gather", "gather_nd", "reverse_sequence"), f"{_HERE}.gather"),
        "filter": f"{_HERE}.filter_rows",
        **dict.fromkeys(("abs", "negative"), f"{_HERE}.signed_rescale"),
    },
    "float",
)

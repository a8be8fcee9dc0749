"""Arithmetic `aipu_float`: Compass's layers on real numbers, as a float IR states them (docs/aipu.md, 6).

Nodes of a float IR name it: it is what runs them in float, calibrates them, and what their quantised run is compared
with. Layers that only move or choose values are those of arithmetic `aipu`. Sums of products run in the order of
TFLite's float kernels; the Optimizer's forward adds in its library's, so results differ in their last bits.
"""

from __future__ import annotations

from tflq.interpreter.registry import Arithmetic, places

NAME = "aipu_float"

ARITHMETIC = Arithmetic(
    NAME,
    {
        **places(
            "tflq.interpreter.kernels.aipu",
            indices="arg_min_max ctc_greedy_decoder in_top_k one_hot top_k",
            layout="batch_to_depth batch_to_space channel_shuffle constant crop data_stride depth_to_space pad reshape "
            "slice space_to_batch space_to_depth split tile transpose",
            rows="filter gather gather_nd repeat reverse_sequence",
        ),
        **places(
            __name__,
            functions="abs activation bnll cast ceil cosine crelu erf exp floor log log_softmax negative reciprocal "
            "round rsqrt sign sine softmax sqrt square",
            linear="batch_norm bias_add conv_transpose convolution convolution_3d depthwise_conv fully_connected "
            "mat_mul",
            pairs="add concat div eltwise logical mul pow scatter_elements scatter_nd squared_difference sub where",
            recurrent="basic_lstm gru_v1 gru_v3",
            spreads="cumulate group_norm instance_norm layer_norm lrn moments normalization reduce segment_reduce",
            windows="global_pool grid_sample pooling resize",
        ),
    },
)

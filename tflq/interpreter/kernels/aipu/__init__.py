"""Arithmetic `aipu`: Zhouyi's integers as the Compass Optimizer computes them (docs/aipu.md).

Operators have the names of Compass's layers, and their nodes the keys of its IR. A node reads the layer's tensors
first, then its constants; the name of a constant ends in "/" and the key.
"""

from __future__ import annotations

from tflq.interpreter.registry import Arithmetic, places

ARITHMETIC = Arithmetic(
    "aipu",
    places(
        "tflq.interpreter.kernels.aipu",
        "basic_lstm bounding_box count grid_sample nms pyramid_roi_align resize",
        activation="abs activation crelu negative sign",
        branches="concat where",
        casts="cast dequantize quantize",
        curve="bnll ceil cosine erf exp floor log reciprocal round rsqrt sine sqrt square",
        gru="gru_v1 gru_v3",
        detections="detection_output proposal",
        eltwise="add eltwise logical mul squared_difference sub",
        pooling="global_pool max_pooling_with_arg_max pooling upsample_by_index",
        indices="arg_min_max ctc_greedy_decoder in_top_k one_hot top_k",
        layout="batch_to_depth batch_to_space channel_shuffle constant crop data_stride depth_to_space pad reshape "
        "slice space_to_batch space_to_depth split tile transpose",
        linear="batch_norm conv_transpose convolution depthwise_conv fully_connected",
        normalization="moments normalization",
        norms="group_norm instance_norm layer_norm lrn",
        pairs_by_table="div pow",
        roi="max_roi_pool roi_align",
        reductions="cumulate reduce segment_reduce",
        rows="filter gather gather_nd repeat reverse_sequence",
        scatter_nd="scatter_elements scatter_nd",
        softmax="log_softmax softmax",
        unweighted="bias_add mat_mul",
        volumes="convolution_3d",
    ),
    "float",
)

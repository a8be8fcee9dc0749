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
        """convolution depthwise_conv conv_transpose fully_connected pooling mat_mul logical lrn scatter_nd count resize
        bounding_box detection_output max_roi_pool nms proposal pyramid_roi_align roi_align""",
        activation="abs activation crelu negative sign",
        arg_pooling="max_pooling_with_arg_max upsample_by_index",
        branches="concat where",
        casts="cast dequantize quantize",
        channels="batch_norm bias_add",
        curve="bnll ceil cosine exp floor log round rsqrt sine sqrt square",
        eltwise="add eltwise mul squared_difference sub",
        indices="arg_min_max ctc_greedy_decoder in_top_k one_hot top_k",
        layout="""batch_to_depth batch_to_space constant crop data_stride depth_to_space pad reshape slice
        space_to_batch
        space_to_depth split tile transpose""",
        normalization="moments normalization",
        pairs_by_table="div pow",
        reductions="cumulate reduce segment_reduce",
        rows="filter gather gather_nd repeat reverse_sequence",
        softmax="log_softmax softmax",
    ),
    "float",
)

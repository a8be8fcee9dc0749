"""The front end of Compass in order: rewrites of the Parser, from the TFLite graph to the layers of its float IR.

Each row names one rewrite, its reason, the place in the tool and the graphs of the live tool on which it was checked.
scripts/worked_layers makes the page docs/rules/aipu/front_end.md from it. Everything after the front end may assume
that the graph is the Parser's.

The mode is that of the Parser's `force_float_ir = true` for a quantized file: integers become float32 and ranges stay
(stated_ranges.py). The Parser's default for quantized files, `compat_quantized_model = true`, is another graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflq.converters.aipu.passes import activations, arithmetic, linear, reductions, shapes, transposes
from tflq.converters.aipu.passes.layers import Layers
from tflq.graph.rewriting import Pass

TOOL = "Compass Parser, "

RECORDED = "112 recorded graphs"
"""cases/aipu_parser: one pattern each."""

ZOO = "zoo, seeds 1 and 77"


@dataclass(frozen=True)
class FileStep:
    """One step on the TFLite graph or from it to layers; `translate` runs it.

    Attributes:
        name: Verb and noun.
        why: Reason in one line.
        source: Place in the tool.
        evidence: Graphs of the live tool on which the rule was checked.
    """

    name: str
    why: str
    source: str
    evidence: str = RECORDED


def _row(run: Callable[[Layers], None], why: str, source: str, evidence: str = RECORDED) -> Pass[Layers]:
    """Return the rewrite of a function, which has its name; the source is a file and function of front_end/onnx."""
    return Pass(run.__name__, run, why, f"{TOOL}{source}", evidence)


FILE: tuple[FileStep, ...] = (
    FileStep(
        "read_ranges",
        "a range is (q - Z) * S at both ends of the type, or the file's own; constants too",
        "lite/buffer.py, parse_quantization_info",
        f"{ZOO}, 74 int8 files",
    ),
    FileStep(
        "rectify_by_name",
        "a name that ends in RELU or RELU6 is an activation, and cuts the range at 0 and 6",
        "lite/buffer.py, get_act_info_from_tensor",
        f"{ZOO}: LEAKY_RELU in 4 files (by parser_faults only)",
    ),
    FileStep(
        "dequantize",
        "force_float_ir: integers are float32, a scalar gets shape [1], QUANTIZE and DEQUANTIZE stay",
        "lite/buffer.py, dequantize_tensor_data",
        f"{ZOO}, 74 int8 files",
    ),
    FileStep(
        "split_activations",
        "an activation of an operator is a layer NAME_RELU; the operator states no range",
        "lite/front_passes.py, split_op_has_activation",
    ),
    FileStep(
        "map_operators",
        "operators become layers; dense layers, UNPACK, STRIDED_SLICE and blocks get Reshapes",
        "lite/front_passes.py, split_fc to convert_strided_slice",
        "11 slices: ends, ranks, lengths 1 to 48",
    ),
    FileStep(
        "map_lstm",
        "UNIDIRECTIONAL_SEQUENCE_LSTM is BasicLSTM with Constants for its first states",
        "lite/front_passes.py, convert_special_uni_seq_lstm",
        "2 public files; 2 refused by both",
    ),
    FileStep("fold_constants", "results that no input changes are Constants", "onnx/common_passes.py, fuse_const"),
)
"""Steps before the layers."""

PARSER: tuple[Pass[Layers], ...] = (
    _row(shapes.remove_dequantize, "the numbers are float32", "lite/process.py, remove_useless_op", ZOO),
    _row(Layers.remove_dead, "no output of the graph needs them", "graph_algo.py, clear_redundant_nodes"),
    _row(
        reductions.name_root_norms,
        "x * rsqrt(mean(x * x) + e) is RMSNorm: named, not made",
        "lite/front_passes.py, merge_rms_norm",
        "1 graph",
    ),
    _row(
        transposes.convert_abnormal_reshapes,
        "a Reshape to the shape of the other layout is a Transpose",
        "middle_passes.py, convert_abnormal_reshape",
        "zoo: yolo_v8 in 2 seeds",
    ),
    _row(
        transposes.merge_transposes,
        "two consecutive Transposes equal one",
        "common_passes.py, remove_redundant_transpose",
    ),
    _row(shapes.remove_identities, "their output equals their input", "common_passes.py, remove_useless_op"),
    _row(
        transposes.merge_transposes,
        "removed layers leave consecutive Transposes",
        "common_passes.py, remove_redundant_transpose",
    ),
    _row(
        linear.dilate_convolutions,
        "a convolution between SpaceToBatch and BatchToSpace is a dilated one",
        "middle_passes.py, merge_dilated_conv",
    ),
    _row(
        arithmetic.recognize_squares,
        "x * x and x^2 are Square, x^0.5 is Sqrt",
        "middle_passes.py, convert_special_pow, convert_special_mul",
    ),
    _row(
        shapes.remove_quantize,
        "QUANTIZE is an Identity with force_float_ir",
        "common_passes.py, remove_useless_op",
        ZOO,
    ),
    _row(
        activations.recognize_activations,
        "SILU, SWISH, HARDSWISH, HARDSIGMOID, SOFTPLUS and MISH are one layer each",
        "middle_passes.py, convert_sigmoid_mul_to_silu to merge_mish",
    ),
    _row(activations.clip_relu, "a minimum after RELU is an upper limit", "middle_passes.py, merge_clip"),
    _row(
        reductions.recognize_lengths,
        "sums of magnitudes and roots of sums of squares are Reduce L1 and L2",
        "middle_passes.py, merge_reducel1, merge_reducel2",
    ),
    _row(
        activations.recognize_l2_products,
        "x * rsqrt(max(sum(x^2), epsilon)) is Normalization",
        "middle_passes.py, merge_l2norm",
    ),
    _row(
        reductions.recognize_l2_quotients, "x / (L2 of x + epsilon) is Normalization", "middle_passes.py, merge_l2norm2"
    ),
    _row(reductions.recognize_softmaxes, "exp(x) / sum(exp(x)) is Softmax", "middle_passes.py, merge_softmax"),
    _row(
        shapes.recognize_channel_shuffles,
        "Reshape, Transpose and Reshape are ChannelShuffle",
        "middle_passes.py, merge_channel_shuffle",
    ),
    _row(
        reductions.merge_equal_differences,
        "x - mean written twice is one: the first by name, with the range of the other",
        "middle_passes.py, deduplicate_mean_sub",
        "zoo: instance_norm in 2 seeds",
    ),
    _row(
        reductions.recognize_layer_norms, "a written-out norm is LayerNorm", "middle_passes.py, merge_ln to merge_ln6"
    ),
    _row(
        reductions.name_mean_variance_norms,
        "a norm without factor and shift is MVN: named, not made",
        "middle_passes.py, merge_mvn",
        "3 graphs",
    ),
    _row(
        arithmetic.merge_reciprocals,
        "x * (1 / y) is x / y",
        "middle_passes.py, merge_special_div_mul",
        "5 graphs: scalar, vector, 2 / y, two readers, broadcast",
    ),
    _row(
        reductions.duplicate_means,
        "the matcher takes a value that is a mean for the mean of the variance",
        "middle_passes.py, duplicate_moments_mean",
        "6 graphs: rank, keep_dims, a layer between, no mean",
    ),
    _row(
        reductions.recognize_variances,
        "the mean of squared differences is Reduce VARIANCE",
        "middle_passes.py, merge_reduce_variance",
    ),
    _row(
        reductions.recognize_moments, "mean and variance of one tensor are Moments", "middle_passes.py, merge_moments"
    ),
    _row(
        linear.connect_constants,
        "MatMul with a constant is FullyConnected",
        "middle_passes.py, convert_special_matmul_to_fc",
    ),
    _row(
        arithmetic.recognize_batch_norms,
        "a product and a sum with constants are BatchNorm",
        "middle_passes.py, fuse_mul_add_or_sub",
    ),
    _row(shapes.slice_single_indices, "Gather of one index is Slice", "middle_passes.py, convert_gather_to_slice"),
    _row(
        shapes.lift_arithmetic,
        "sums and products precede a Reshape; the moved layer has the range of the Reshape's input",
        "middle_passes.py, lift_single_add_sub_mul_div",
        ZOO,
    ),
    _row(
        arithmetic.replace_divisions,
        "a product with the reciprocal replaces a division by a constant",
        "middle_passes.py, convert_div_to_mul",
    ),
    _row(
        linear.fold_arithmetic,
        "weights and biases fold sums and products",
        "middle_passes.py, fuse_bias, rename_single_mul_or_add_or_sub, fuse_linear_bn",
    ),
    _row(
        arithmetic.remove_neutral_arithmetic,
        "a sum with zeros and a product with ones change no element",
        "middle_passes.py, rename_single_mul_or_add_or_sub",
    ),
    _row(linear.fold_pads, "convolutions have padding", "middle_passes.py, fuse_pad"),
    _row(reductions.pool_means, "a mean over an image is a pool", "middle_passes.py, convert_reducemean_to_avgpool"),
    _row(
        arithmetic.merge_constant_operands,
        "two consecutive sums or products with constants equal one",
        "middle_passes.py, remove_redundant_arithmetic",
    ),
    _row(activations.clip_pairs, "a minimum and a maximum are CLIP", "middle_passes.py, convert_min_max_to_clip"),
    _row(
        shapes.merge_reshapes,
        "two consecutive Reshapes equal one; the layer before states the range of the first",
        "common_passes.py, remove_redundant_reshape",
        ZOO,
    ),
    _row(
        shapes.lift_rectifiers,
        "a linear layer can fuse only a rectifier directly after it",
        "middle_passes.py, rearrange_linear_reshape_relu",
    ),
    _row(
        transposes.narrow_transposes,
        "a Transpose of six axes moves five",
        "middle_passes.py, convert_special_6d_transpose",
        "3 graphs and 2 of the zoo",
    ),
    _row(
        arithmetic.recognize_squared_differences,
        "the square of a difference is SquaredDifference",
        "back_passes.py, merge_squared_diff",
    ),
    _row(
        shapes.lift_arithmetic,
        "earlier passes made new pairs of Reshape and arithmetic",
        "middle_passes.py, lift_single_add_sub_mul_div",
        ZOO,
    ),
    _row(
        arithmetic.repeat_operands,
        "these layers have no broadcasting; a repeated constant keeps its range",
        "middle_passes.py, multidirectional_broadcasting",
        ZOO,
    ),
    _row(
        reductions.keep_axes,
        "ArgMinMax, Moments and Reduce keep their axes, in this order; no pass moves the added Reshapes",
        "back_passes.py, rename_argminmax, rename_moments, rename_reduce",
        "9 graphs: sum, maximum, mean and deviation before Sqrt, Exp, Tanh",
    ),
    _row(
        arithmetic.choose_eltwise,
        "Eltwise requires equal shapes; other pairs are Add, Sub, Mul",
        "back_passes.py, rename_mul_add_max_min",
    ),
    _row(activations.limit_sigmoids, "the range of a SIGMOID is 0..1", "back_passes.py, rename_activations"),
    _row(
        activations.fuse_rectifiers,
        "the layer before computes the rectifier, and states its range",
        "back_passes.py, fuse_relu",
        ZOO,
    ),
    _row(
        arithmetic.merge_equal_layers,
        "equal layers compute equal tensors; the first has the range of the last",
        "back_passes.py, common_subexpression_elimination",
        ZOO,
    ),
    _row(
        shapes.remove_single_reductions,
        "a reduction over axes of size 1 changes no element",
        "common_passes.py, remove_useless_op",
    ),
    _row(
        shapes.remove_identities,
        "earlier passes left layers with equal input and output",
        "common_passes.py, remove_useless_op",
    ),
    _row(
        transposes.drop_transposes,
        "a Reshape makes a Transpose of axes of size 1 redundant",
        "back_passes.py, remove_special_transpose",
    ),
    _row(
        transposes.sink_transposes,
        "Transposes meet and cancel",
        "back_passes.py, sink_transpose_through_special_reshape",
    ),
    _row(
        transposes.convert_reshapes,
        "a Reshape next to a Transpose becomes one, so that the two merge",
        "back_passes.py, convert_special_reshape",
    ),
    _row(shapes.sink_reshapes, "Reshapes meet and cancel", "back_passes.py, sink_single_reshape", ZOO),
    _row(shapes.merge_reshapes, "sunk Reshapes are consecutive", "common_passes.py, remove_redundant_reshape", ZOO),
    _row(
        transposes.merge_transposes, "sunk Transposes are consecutive", "common_passes.py, remove_redundant_transpose"
    ),
    _row(shapes.remove_identities, "merged Reshapes and Transposes can cancel", "common_passes.py, remove_useless_op"),
    _row(
        transposes.convert_transposes,
        "a Transpose of axes of size 1 is a Reshape",
        "back_passes.py, convert_special_transpose",
    ),
    _row(
        shapes.merge_reshapes,
        "converted Transposes are consecutive Reshapes",
        "common_passes.py, remove_redundant_reshape",
        ZOO,
    ),
    _row(transposes.fold_transposes, "MatMul transposes its operands", "back_passes.py, merge_transpose_matmul_gemm"),
)
"""Rewrites of the Compass Parser over layers, in its order."""

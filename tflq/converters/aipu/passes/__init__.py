"""Passes of the Compass Parser over the layers that a file states, in the Parser's order.

Source: docs/rules/aipu/compass_ir.md.

Source: Compass Parser, front_end/onnx/passes. A row names the tool's passes if they are known one by one.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.converters.aipu.passes import activations, arithmetic, linear, reductions, shapes, transposes
from tflq.converters.aipu.passes.layers import Layers
from tflq.graph.rewriting import Pass


def _row(run: Callable[[Layers], None], why: str, source: str = "docs/rules/aipu/compass_ir.md") -> Pass[Layers]:
    """Return the pass of a function, which has its name."""
    return Pass(run.__name__, run, why, source)


PARSER: tuple[Pass[Layers], ...] = (
    _row(shapes.remove_dequantize, "the numbers are float32", "Compass Parser, lite/process.py, remove_useless_op"),
    _row(Layers.remove_dead, "no output of the graph needs them"),
    _row(
        transposes.convert_abnormal_reshapes,
        "a Reshape to the shape of the other layout is a Transpose",
        "Compass Parser, middle_passes.py, convert_abnormal_reshape",
    ),
    _row(transposes.merge_transposes, "two consecutive Transposes equal one"),
    _row(shapes.remove_identities, "their output equals their input"),
    _row(transposes.merge_transposes, "removed layers leave consecutive Transposes"),
    _row(linear.dilate_convolutions, "a convolution between SpaceToBatch and BatchToSpace is a dilated one"),
    _row(arithmetic.recognize_squares, "x * x and x^2 are Square, x^0.5 is Sqrt"),
    _row(
        shapes.remove_quantize,
        "QUANTIZE is an Identity with force_float_ir",
        "Compass Parser, middle_passes.py, remove_useless_op",
    ),
    _row(
        activations.recognize_activations, "SILU, SWISH, HARDSWISH, HARDSIGMOID, SOFTPLUS and MISH are one layer each"
    ),
    _row(activations.clip_relu, "a minimum after RELU is an upper limit"),
    _row(reductions.recognize_lengths, "sums of magnitudes and roots of sums of squares are Reduce L1 and L2"),
    _row(activations.recognize_l2_products, "x * rsqrt(max(sum(x^2), epsilon)) is Normalization"),
    _row(reductions.recognize_l2_quotients, "x / (L2 of x + epsilon) is Normalization"),
    _row(reductions.recognize_softmaxes, "exp(x) / sum(exp(x)) is Softmax"),
    _row(shapes.recognize_channel_shuffles, "Reshape, Transpose and Reshape are ChannelShuffle"),
    _row(reductions.merge_equal_differences, "converters write x - mean twice; the norm patterns read one"),
    _row(reductions.recognize_layer_norms, "a written-out norm is LayerNorm"),
    _row(
        arithmetic.merge_reciprocals,
        "x * (1 / y) is x / y",
        "Compass Parser, middle_passes.py, merge_special_div_mul",
    ),
    _row(
        reductions.duplicate_means,
        "the matcher takes a value that is a mean for the mean of the variance",
        "Compass Parser, middle_passes.py, duplicate_moments_mean",
    ),
    _row(reductions.recognize_variances, "the mean of squared differences is Reduce VARIANCE"),
    _row(reductions.recognize_moments, "mean and variance of one tensor are Moments"),
    _row(linear.connect_constants, "MatMul with a constant is FullyConnected"),
    _row(arithmetic.recognize_batch_norms, "a product and a sum with constants are BatchNorm"),
    _row(shapes.slice_single_indices, "Gather of one index is Slice"),
    _row(shapes.lift_arithmetic, "weights can fold only sums and products directly after the linear layer"),
    _row(arithmetic.replace_divisions, "a product with the reciprocal replaces a division by a constant"),
    _row(
        linear.fold_arithmetic,
        "weights and biases fold sums and products",
        "Compass Parser, middle_passes.py, fuse_bias, rename_single_mul_or_add_or_sub, fuse_linear_bn",
    ),
    _row(arithmetic.remove_neutral_arithmetic, "a sum with zeros and a product with ones change no element"),
    _row(linear.fold_pads, "convolutions have padding"),
    _row(reductions.pool_means, "a mean over an image is a pool"),
    _row(arithmetic.merge_constant_operands, "two consecutive sums or products with constants equal one"),
    _row(activations.clip_pairs, "a minimum and a maximum are CLIP"),
    _row(shapes.merge_reshapes, "two consecutive Reshapes equal one"),
    _row(shapes.lift_rectifiers, "a linear layer can fuse only a rectifier directly after it"),
    _row(
        transposes.narrow_transposes,
        "the closed tools move at most five axes",
        "Compass Parser, middle_passes.py, convert_special_6d_transpose",
    ),
    _row(arithmetic.recognize_squared_differences, "the square of a difference is SquaredDifference"),
    _row(shapes.lift_arithmetic, "earlier passes made new pairs of Reshape and arithmetic"),
    _row(arithmetic.repeat_operands, "these layers have no broadcasting"),
    _row(reductions.keep_axes, "Reduce and ArgMinMax keep their axes"),
    _row(arithmetic.choose_eltwise, "Eltwise requires equal shapes; other pairs are Add, Sub, Mul"),
    _row(activations.limit_sigmoids, "the range of a SIGMOID is 0..1"),
    _row(
        activations.fuse_rectifiers,
        "the layer before computes the rectifier",
        "Compass Parser, back_passes.py, fuse_relu",
    ),
    _row(arithmetic.merge_equal_layers, "equal layers compute equal tensors"),
    _row(shapes.remove_single_reductions, "a reduction over axes of size 1 changes no element"),
    _row(shapes.remove_identities, "earlier passes left layers with equal input and output"),
    _row(transposes.drop_transposes, "a Reshape makes a Transpose of axes of size 1 redundant"),
    _row(transposes.sink_transposes, "Transposes meet and cancel"),
    _row(transposes.convert_reshapes, "a Reshape next to a Transpose becomes one, so that the two merge"),
    _row(shapes.sink_reshapes, "Reshapes meet and cancel", "Compass Parser, back_passes.py, sink_single_reshape"),
    _row(shapes.merge_reshapes, "sunk Reshapes are consecutive"),
    _row(transposes.merge_transposes, "sunk Transposes are consecutive"),
    _row(shapes.remove_identities, "merged Reshapes and Transposes can cancel"),
    _row(transposes.convert_transposes, "a Transpose of axes of size 1 is a Reshape"),
    _row(shapes.merge_reshapes, "converted Transposes are consecutive Reshapes"),
    _row(transposes.fold_transposes, "MatMul transposes its operands"),
)

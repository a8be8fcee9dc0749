"""What the Compass Parser makes of the layers that a file names, in its order (docs/aipu.md, 6).

Source: Compass Parser, front_end/onnx/passes; each line names what the tool's passes of that place do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflq.converters.aipu.passes import activations, arithmetic, linear, reductions, shapes, transposes
from tflq.converters.aipu.passes.layers import Layers


@dataclass(frozen=True)
class Step:
    """One rewrite of layers, and what it is for."""

    run: Callable[[Layers], None]
    why: str


PARSER = (
    Step(transposes.merge_transposes, "two Transposes are one"),
    Step(shapes.remove_unneeded, "what changes nothing goes"),
    Step(transposes.merge_transposes, "two Transposes are one"),
    Step(linear.dilated_filters, "a convolution of pixels that lie apart is a dilated one"),
    Step(arithmetic.squares, "x * x and x^2 are one thing"),
    Step(activations.recognise, "SILU, SWISH, HARDSWISH, HARDSIGMOID, SOFTPLUS, MISH are written out"),
    Step(activations.clip_relu, "a minimum behind RELU is an upper limit"),
    Step(reductions.lengths, "sums of sizes, and roots of sums of squares, are one layer"),
    Step(activations.normalise, "x / |x| is one layer"),
    Step(reductions.normalise_by_length, "x / |x| is one layer, however it is written"),
    Step(reductions.softmaxes, "exp / sum(exp) is one layer"),
    Step(shapes.channel_shuffles, "three moves are one layer"),
    Step(reductions.same_differences, "x - mean is written twice"),
    Step(reductions.layer_norms, "the whole norm is one layer"),
    Step(reductions.variances, "the variance is one layer"),
    Step(reductions.moments, "mean and variance are one layer"),
    Step(linear.connect_constants, "a product with constants is FullyConnected"),
    Step(arithmetic.scale_and_shift, "a product and a sum are BatchNorm"),
    Step(shapes.slice_single_indices, "one row is a slice"),
    Step(shapes.lift_arithmetic, "sums and products come nearer to the layer whose weights take them"),
    Step(arithmetic.by_reciprocal, "a product is cheaper than a quotient"),
    Step(linear.into_weights, "weights take sums and products"),
    Step(arithmetic.neutral, "what adds nothing goes"),
    Step(linear.pads_into_filters, "convolutions pad themselves"),
    Step(reductions.pool_means, "means over images are pools"),
    Step(arithmetic.joined, "two constants are one"),
    Step(activations.clip_pairs, "a minimum and a maximum are CLIP"),
    Step(shapes.merge_reshapes, "two Reshapes are one"),
    Step(shapes.rectify_before_reshape, "rectifiers come nearer to the layer that takes them"),
    Step(arithmetic.squared_differences, "a difference's square is one layer"),
    Step(shapes.lift_arithmetic, "again, behind what changed"),
    Step(arithmetic.repeat_operands, "these layers know no broadcasting"),
    Step(reductions.keep_axes, "Reduce keeps its axes"),
    Step(arithmetic.of_equal_shapes, "Eltwise is for equal shapes"),
    Step(activations.limit_sigmoids, "their values are known"),
    Step(activations.fuse, "rectifiers go into the layer in front"),
    Step(arithmetic.merge_equal, "what is computed twice is computed once"),
    Step(shapes.remove_single_reductions, "what changes nothing goes"),
    Step(shapes.remove_unneeded, "what changes nothing goes"),
    Step(transposes.drop_transposes, "axes of size 1 need no Transpose"),
    Step(transposes.sink_transposes, "Transposes meet and vanish"),
    Step(transposes.transpose_for_reshape, "so that they meet"),
    Step(shapes.sink_reshapes, "Reshapes meet and vanish"),
    Step(shapes.merge_reshapes, "two Reshapes are one"),
    Step(transposes.merge_transposes, "two Transposes are one"),
    Step(shapes.remove_unneeded, "what changes nothing goes"),
    Step(transposes.reshape_for_transpose, "axes of size 1 need no Transpose"),
    Step(shapes.merge_reshapes, "two Reshapes are one"),
    Step(transposes.transposes_into_products, "MatMul turns its operands itself"),
)


def run_parser(layers: Layers) -> None:
    """Rewrite layers as the Parser does, and take away what no output needs."""
    layers.remove_dead()
    for step in PARSER:
        step.run(layers)
